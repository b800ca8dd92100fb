"""The demo's scenes about evidence: a gate without any, a ledger that refuses an edit, and one that shows it."""

import sqlite3
from pathlib import Path

from assay.app.scenes import Scene
from assay.app.status import DATABASE, FOLDER
from assay.contracts.common.evidence import Observation, Phase
from assay.contracts.common.words import Size
from assay.errors import RowRefused
from assay.kit.clock import spell, system_clock
from assay.ledger.ledger import Ledger
from assay.ledger.verify import verify
from assay.rules.gates import verification_sufficient

_EDIT = "UPDATE observations SET holds = ? WHERE run_id = ?"
_GUARD = "observations_no_update"


def play(folder: Path, run_id: str, task: str, artifact: str, sha256: str) -> tuple[Scene, ...]:
    """Records what the demo saw of its own artifact, then tries to spoil the record."""
    file = folder / FOLDER / DATABASE
    ledger = Ledger.open_file(file)
    try:
        seen = Observation(
            run_id=run_id,
            task_id=task,
            key=f"{run_id}/demo/stored",
            kind="artifact-hash",
            subject=artifact,
            holds=True,
            detail={"sha256": sha256},
            tree=None,
            observed_at=spell(system_clock()),
        )
        ledger.record(run_id, lambda record: record.observation(seen))
        return (
            _unproven(ledger, run_id, task),
            _edited_in_vain(ledger, run_id),
            _edited_for_real(ledger, file, run_id),
        )
    finally:
        ledger.close()


def _unproven(ledger: Ledger, run_id: str, task: str) -> Scene:
    tally = ledger.tally(run_id, task, Phase.AFTER, 1)
    answer = verification_sufficient(tally, size=Size.STANDARD, iteration=1)
    title = "the agent says it is done, nothing was run"
    if answer.answer == "open":
        return Scene(title, "blocked", "open")
    return Scene(title, "blocked", "blocked", (answer.because, *(f"missing: {one}" for one in answer.missing)))


def _edited_in_vain(ledger: Ledger, run_id: str) -> Scene:
    title = "someone tries to edit the ledger"
    try:
        ledger.database.write(lambda transaction: transaction.run(_EDIT, (0, run_id)))
    except RowRefused as error:
        return Scene(title, "refused", "refused", (error.what.rpartition(": ")[2],))
    return Scene(title, "refused", "edited")


def _edited_for_real(ledger: Ledger, file: Path, run_id: str) -> Scene:
    """The same with the guards taken away, as anyone with the file could; put back afterwards."""
    with sqlite3.connect(file, isolation_level=None) as connection:
        ((guard,),) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (_GUARD,)).fetchall()
        connection.execute(f"DROP TRIGGER {_GUARD}")
        connection.execute(_EDIT, (0, run_id))
        findings = tuple(str(finding) for finding in verify(ledger.database, run_id))
        connection.execute(_EDIT, (1, run_id))
        connection.execute(guard)
    connection.close()
    return Scene("and does it with other tools", "noticed", "noticed" if findings else "not noticed", findings)
