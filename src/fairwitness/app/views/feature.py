"""The view of a feature run: the summary of its pipeline in words, with active agents and tasks.

No contract is loaded.
"""

from datetime import datetime
from typing import NamedTuple

from fairwitness.app.views.run import NodeStage, RunView
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.durations import seconds_between
from fairwitness.ledger.feature_summary import LIGHT, NOT_ON_LIGHT, CallSummary
from fairwitness.ledger.feature_summary import (
    StepSummary as StepSummary,
)  # for screens, which may not import the ledger
from fairwitness.ledger.run_summary import NodeSummary

_STAGES = {
    NodeStage.WORKING: "working",
    NodeStage.QUEUED: "to be merged",
    NodeStage.MERGING: "merging",
    NodeStage.HELPING: "in conflict",
    NodeStage.WAITING: "to be merged",
}
_STATES = {"MERGED": "merged", "FAILED": "failed", "STALE": "lost", "PENDING": "waiting"}


class FeatureTaskView(NamedTuple):
    """A task and its state in the last graph that contains it."""

    name: str
    word: str
    attempt: int
    since: str
    error: str | None
    is_under_way: bool


class FeatureView(RunView):
    """The state of a feature run in words."""

    def __init__(self, run_id: str, *, clock: Clock = system_clock) -> None:
        super().__init__(run_id)
        self._clock = clock

    @property
    def now(self) -> datetime:
        """The current time."""
        return self._clock()

    @property
    def word(self) -> str:
        """The status in one or two words."""
        if self.is_over:
            return self.status.replace("_", " ")
        return "waiting for you" if self.feature.question is not None else "running"

    @property
    def is_light(self) -> bool:
        """Whether the run is on the light path."""
        return self.feature.path == LIGHT

    def state_of(self, step: StepSummary) -> str:
        """Return the state of a step; a step that was running when the run ended is stopped.

        A step that the light path lacks is skipped.
        """
        if step.state == "waiting" and self.is_light and step.step in NOT_ON_LIGHT:
            return "skipped"
        return "stopped" if self.is_over and step.state == "running" else step.state

    def running(self) -> list[CallSummary]:
        """Return the running calls, the longest first; calls from before a crash do not count."""
        return [call for call in self.feature.calls.values() if call.status is None and call.life == self.feature.lives]

    def seconds(self) -> float:
        """Return how long the run took, or has taken so far."""
        if self.began is None:
            return 0.0
        return seconds_between(self.began, self.last_time if self.is_over and self.last_time else self.now)

    def started_tasks(self) -> list[FeatureTaskView]:
        """Return every started task, in the order of their start."""
        return [self._task(node) for node in self.nodes.values()]

    def _task(self, node: NodeSummary) -> FeatureTaskView:
        stage = self.stage(node)
        word = _STAGES.get(stage) or _STATES.get(node.state, node.state.lower())
        if self.feature.reverted.get(node.name, 0) > node.last:
            word = "reverted"
        return FeatureTaskView(node.name, word, node.attempt, node.since, node.error, stage is not NodeStage.RESTING)
