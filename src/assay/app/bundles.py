"""The evidence bundle of a run, as it was stored."""

from pathlib import Path
from typing import NamedTuple

from assay.app.database import ledger_in
from assay.app.feature import order_of, room_of
from assay.app.looking import meant, opened
from assay.app.state import state_of
from assay.errors import UsageError
from assay.git.repository import Repository


class Bundle(NamedTuple):
    """The page, and by what it is known."""

    run_id: str
    path: str
    sha256: str
    text: str


def bundle_of(root: Path, wanted: str) -> Bundle:
    """The bundle of a run; read by its hash, so that it is the one its commit names."""
    with opened(root) as database:
        run_id = meant(database, wanted)
    repository = Repository.open(root)
    ledger = ledger_in(state_of(repository))
    try:
        order, _ = order_of(ledger, run_id)
        room = room_of(repository, ledger, run_id, order)
        path = room.layout.evidence_bundle
        digest = room.state().artifacts.get(path)
        if digest is None:
            raise UsageError(f"run {run_id} has no evidence bundle yet", next_step=f"assay status {run_id}")
        return Bundle(run_id, path, digest.removeprefix("sha256:"), room.kept_bytes(digest).decode())
    finally:
        ledger.close()
