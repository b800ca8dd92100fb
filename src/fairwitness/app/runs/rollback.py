"""Rolls back the commit of a run."""

from pathlib import Path

from fairwitness.app.state import ledger_in, state_of
from fairwitness.app.views.detail import resolve_run_at
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.runs.feature.rollback import RolledBack, rollback


def roll_back(root: Path, wanted: str, *, revert: bool) -> RolledBack:
    """Roll back the commit of a run, or raise an error that says why it cannot be done."""
    run_id = resolve_run_at(root, wanted)
    repository = Repository.open(root)
    state = state_of(repository)
    ledger = ledger_in(state, repository)
    try:
        return rollback(repository, Shadow.open(state / "git", repository), ledger, run_id, revert=revert)
    finally:
        ledger.close()
