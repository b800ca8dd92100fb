"""A forge run in the ledger: its log and files; pausing, retrying and resuming."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fairwitness.app.settings.tables import read_tables
from fairwitness.app.state import artifact_root, ledger_in, state_of
from fairwitness.contracts.forge.events import RunPaused
from fairwitness.contracts.graph.forge_order import ForgeSettings
from fairwitness.errors import UsageError
from fairwitness.git.identity import read_identity
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.text import visible
from fairwitness.runs.forge.files import ForgeFiles
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout


@dataclass(frozen=True, slots=True)
class ForgeRunRecord:
    """The log and files of a forge run."""

    log: ForgeLog
    repository: Repository
    files: Store
    """The files of the folder that contains the run's folder."""
    layout: ForgeLayout

    @property
    def actor(self) -> str:
        """The git identity of the person."""
        return read_identity(self.repository).author

    def refresh(self) -> None:
        """Update the run's files from its events, so that they are right while no process drives the run."""
        ForgeFiles(self.log, self.files, self.layout).refresh()


@contextmanager
def open_forge_run(root: Path, run_id: str, *, clock: Clock = system_clock) -> Iterator[ForgeRunRecord]:
    """Open a forge run; raise `UsageError` if the id belongs to no forge run."""
    repository = Repository.open(root)
    state = state_of(repository)
    ledger = ledger_in(state, repository, clock=clock)
    try:
        if ledger.last_event(run_id, "run.created") is None:
            raise UsageError(f"{visible(run_id)} is not a forge run", next_step="fairwitness status lists the runs")
        log = ForgeLog(ledger, run_id, clock=clock)
        yield ForgeRunRecord(log, repository, Store(artifact_root(repository, state)), ForgeLayout(run_id))
    finally:
        ledger.close()


def refresh_files(root: Path, run_id: str) -> None:
    """Update a run's files from its events."""
    with open_forge_run(root, run_id) as context:
        context.refresh()


def settled_gates(root: Path, run_id: str) -> tuple[str, ...]:
    """Return the answered questions of a run, by the engine's names."""
    with open_forge_run(root, run_id) as context:
        return context.log.course().gates


def pause(root: Path, run_id: str, reason: str | None) -> bool:
    """Pause a run: no new task starts, running tasks may finish. Return False if it was paused already."""
    with open_forge_run(root, run_id) as context:
        paused = RunPaused(reason=f"{context.actor}: {reason}" if reason else f"{context.actor} wanted it")
        while True:
            run = context.log.run() if context.log.course().is_started else None
            if run is None or run.is_over:
                text = "has not begun its work" if run is None else "has ended"
                raise UsageError(
                    f"{run_id} {text}, so there is nothing to pause", next_step=f"fairwitness status {run_id}"
                )
            if run.is_paused:
                return False
            if context.log.write(lambda _now: (paused,), after=run.seq):
                context.refresh()
                return True


def retry(root: Path, run_id: str, task: str, *, more: int) -> int:
    """Give an exhausted task `more` attempts; return the number of the next one."""
    with open_forge_run(root, run_id) as context:
        if not context.log.course().is_started:
            raise UsageError(f"{run_id} has not begun its work", next_step=f"fairwitness status {run_id}")
        context.log.reopen(task, context.actor, more=more)
        context.refresh()
        return context.log.run().nodes[task].currentAttempt


def resume_forge(root: Path, run_id: str) -> None:
    """Record that a paused or failed run is resumed with the current budget setting."""
    with open_forge_run(root, run_id) as context:
        context.log.resume(read_tables(ForgeSettings, context.repository.top).budget)
