"""Verdicts on phases: recorded, sent to the engine, and written to the state file."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairwitness.app.run_records.autopilot import WORDS, RecordedVerdict, open_autopilot_run, record_verdict
from fairwitness.app.run_records.autopilot_history import autopilot_runs
from fairwitness.app.runs.answer import wake_engine
from fairwitness.app.views.autopilot import opened_ledger
from fairwitness.app.views.detail import resolve_run_at
from fairwitness.app.views.workers import has_engine, worker_on
from fairwitness.contracts.autopilot.vocabulary import PhaseStatus
from fairwitness.errors import UsageError
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.text import visible
from fairwitness.runs.autopilot.log import AutopilotLog


@dataclass(frozen=True, slots=True)
class GivenVerdict:
    """A recorded verdict and the next command."""

    recorded: RecordedVerdict
    is_carried: bool

    @property
    def following(self) -> str:
        """The next command."""
        if self.recorded.waiting:
            return f"fairwitness verdict {self.recorded.waiting[0]} pass|fail|issues"
        return f"fairwitness {'watch' if self.is_carried else 'resume'} {self.recorded.run_id}"

    def plain(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        said = self.recorded
        return {
            "run_id": said.run_id,
            "phase": said.phase,
            "verdict": said.verdict.value,
            "confidence_limit": {"before": said.old_limit, "after": said.new_limit},
            "warning": said.warning,
            "waiting": list(said.waiting),
            "is_carried": self.is_carried,
            "next": self.following,
        }


def give_verdict(
    root: Path, phase: str, word: str, issues: tuple[str, ...], run: str | None, *, clock: Clock = system_clock
) -> GivenVerdict:
    """Record a verdict; without a run, for the latest in which the phase waits."""
    run_id = _asking(root, phase) if run is None else resolve_run_at(root, run)
    with open_autopilot_run(root, run_id, clock=clock) as context:
        recorded = record_verdict(context, phase, WORDS[word], issues)
        is_carried = worker_on(root, run_id) is not None
        if not is_carried:
            context.refresh()
    if has_engine(root):
        asyncio.run(wake_engine(root, run_id, recorded.gate))
    return GivenVerdict(recorded, is_carried)


def _asking(root: Path, phase: str) -> str:
    with opened_ledger(root) as ledger:
        runs = autopilot_runs(ledger)
        for run_id in reversed(runs):
            record = AutopilotLog(ledger, run_id).state().state.phases.get(phase)
            if record is not None and record.status is PhaseStatus.NEEDS_HUMAN_VERIFICATION:
                return run_id
    if not runs:
        raise UsageError("there is no autopilot run here yet", next_step="fairwitness autopilot next")
    raise UsageError(f"no phase {visible(phase)} waits for a verdict", next_step="fairwitness inbox")
