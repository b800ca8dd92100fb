"""One run as one HTML file that opens anywhere: read from the ledger, checked against its chain, written whole."""

import json
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from fairwitness.app.gates import run_gates
from fairwitness.app.ledger import known_run, open_ledger
from fairwitness.app.report_evidence import GateFact, gate_fact, gates_in_decisions
from fairwitness.app.report_facts import read_facts
from fairwitness.app.report_model import RunFacts
from fairwitness.app.report_page import MARK, Checked, outcome_of, page
from fairwitness.app.status import state_in
from fairwitness.contracts.common.decisions import Graded
from fairwitness.contracts.common.ids import run_ref
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.feature.facts import FeatureFacts
from fairwitness.errors import NotStored, StoreError, UsageError
from fairwitness.git.heads import kept_heads
from fairwitness.kit import files
from fairwitness.ledger.chain import Head
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.verify import verify
from fairwitness.rules.confidence import confidence_facts, grade

FOLDER = "reports"
_LOOK = 1024
_LARGEST = 256 << 20


class Written(NamedTuple):
    """A report that stands on the disk."""

    path: Path
    run_id: str
    outcome: str
    is_sound: bool
    """Whether the ledger is as it was written; if not, the report says so first."""
    bytes: int


def write_report(root: Path, wanted: str, *, out: Path | None = None, force: bool = False) -> Written:
    """Writes the report of a run; a file that is no report is not replaced unless `force` says so."""
    ledger = open_ledger(root)
    try:
        run_id = known_run(ledger, wanted)
        facts, checked = read_run(ledger, root, run_id)
    finally:
        ledger.close()
    content = page(facts, checked).encode()
    folder, name = _place(root, run_id, out)
    if not force:
        _refuse_other(folder, name)
    files.replace_file(folder, name, content)
    return Written(folder / name, run_id, outcome_of(facts), not checked.tampering, len(content))


def read_run(ledger: Ledger, root: Path, run_id: str) -> tuple[RunFacts, Checked]:
    """Everything a report tells of a run, and whether the ledger is as it was written."""
    facts = ledger.database.look(lambda read: read_facts(read, run_id))
    kept = {run: Head(*head) for run, head in kept_heads(root).items()}.get(run_ref(run_id))
    heads = [Head(facts.links, facts.head), *([kept] if kept is not None else [])]
    tampering = tuple(str(finding) for finding in verify(ledger.database, run_id, heads))
    gates = gates_in_decisions(facts) or _gates_now(ledger, run_id)
    return facts, Checked(gates, tampering, _graded(facts))


def _gates_now(ledger: Ledger, run_id: str) -> list[GateFact]:
    """For a run whose decisions are not on record: what its gates answer now."""
    return [gate_fact(view.answer.plain()) for view in run_gates(ledger, run_id)]


def _graded(facts: RunFacts) -> Graded | None:
    """How sure the facts that the last decision rests on let us be, and why not surer."""
    if not facts.decisions or not facts.decisions[-1].facts:
        return None
    try:
        last = FeatureFacts.model_validate_json(json.dumps(facts.decisions[-1].facts))
        policy = Policy.model_validate_json(json.dumps(facts.order.get("policy") or {}))
    except ValidationError:
        return None
    return grade(confidence_facts(last, policy))


def _place(root: Path, run_id: str, out: Path | None) -> tuple[Path, str]:
    """The folder that the report is written in, and its name there."""
    if out is None:
        return state_in(root), f"{FOLDER}/{run_ref(run_id)}.html"
    given = out if out.is_absolute() else Path.cwd() / out
    if given.is_dir():
        raise UsageError(f"{given} is a folder", next_step="name the file to write")
    if not given.parent.is_dir():
        raise UsageError(f"there is no folder {given.parent}", next_step="make it first")
    return given.parent, given.name


def _refuse_other(folder: Path, name: str) -> None:
    try:
        present = files.read_plain(folder, name, limit=_LARGEST)
    except NotStored:
        return
    except StoreError as error:
        raise UsageError(f"{folder / name} is no report: {error.what}", next_step="choose another name") from error
    if MARK.encode() not in present[:_LOOK]:
        raise UsageError(
            f"{folder / name} is no report, so it was not replaced", next_step="choose another name, or --force"
        )
