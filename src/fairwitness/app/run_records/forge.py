"""A forge run that stands in the ledger of a repository: its book and its files, and what people do to it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fairwitness.app.settings.tables import read_tables
from fairwitness.app.state import ledger_in, state_of
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
    """Where a forge run is at home."""

    log: ForgeLog
    repository: Repository
    files: Store
    """Of the person's checkout; the run's folder is beneath it."""
    layout: ForgeLayout

    @property
    def actor(self) -> str:
        """The person at this machine."""
        return read_identity(self.repository).author

    def refresh(self) -> None:
        """Brings the run's files up to its events, so that they are right while nobody carries it."""
        ForgeFiles(self.log, self.files, self.layout).refresh()


@contextmanager
def open_forge_run(root: Path, run_id: str, *, clock: Clock = system_clock) -> Iterator[ForgeRunRecord]:
    """The room of a run, for as long as it is asked for; `UsageError` if it is no run of forge."""
    repository = Repository.open(root)
    state = state_of(repository)
    ledger = ledger_in(state, clock=clock)
    try:
        if ledger.last_event(run_id, "run.created") is None:
            raise UsageError(f"{visible(run_id)} is no forge run", next_step="fairwitness status lists the runs")
        log = ForgeLog(ledger, run_id, clock=clock)
        yield ForgeRunRecord(log, repository, Store(repository.top or state), ForgeLayout(run_id))
    finally:
        ledger.close()


def refresh_files(root: Path, run_id: str) -> None:
    """Brings a run's files up to its events."""
    with open_forge_run(root, run_id) as context:
        context.refresh()


def settled_gates(root: Path, run_id: str) -> tuple[str, ...]:
    """The questions of a run that people have answered, as the engine knows them."""
    with open_forge_run(root, run_id) as context:
        return context.log.course().gates


def pause(root: Path, run_id: str, reason: str | None) -> bool:
    """Starts nothing new in a run; what is at work may end. False if it was paused before."""
    with open_forge_run(root, run_id) as context:
        paused = RunPaused(reason=f"{context.actor}: {reason}" if reason else f"{context.actor} wanted it")
        while True:
            run = context.log.run() if context.log.course().is_started else None
            if run is None or run.is_over:
                told = "has not begun its work" if run is None else "has ended"
                raise UsageError(
                    f"{run_id} {told}, so there is nothing to pause", next_step=f"fairwitness status {run_id}"
                )
            if run.is_paused:
                return False
            if context.log.write(lambda _now: (paused,), after=run.seq):
                context.refresh()
                return True


def retry(root: Path, run_id: str, task: str, *, more: int) -> int:
    """Gives a task without attempts more of them; the number of its next one."""
    with open_forge_run(root, run_id) as context:
        if not context.log.course().is_started:
            raise UsageError(f"{run_id} has not begun its work", next_step=f"fairwitness status {run_id}")
        context.log.reopen(task, context.actor, more=more)
        context.refresh()
        return context.log.run().nodes[task].currentAttempt


def resume_forge(root: Path, run_id: str) -> None:
    """Writes down that a run that was paused or had failed goes on, with the budget that is set now."""
    with open_forge_run(root, run_id) as context:
        context.log.resume(read_tables(ForgeSettings, context.repository.top).budget)
