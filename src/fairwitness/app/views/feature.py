"""The view of a feature run: its summary, and all steps, active agents, gates and reviews beside it.

The summary of the run determines status, times, questions and tasks, as in every other view. The rest is shown nowhere
else and applied here, without loading a contract. A test compares it with the fold of the same events.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from fairwitness.app.views.run import NodeStage, RunView
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.durations import seconds_between
from fairwitness.ledger.run_summary import EVENT_VERSION, NODE_TYPES, NodeSummary, SummaryEvent

STEPS: Mapping[str, str] = {
    "step-0": "setup",
    "step-1": "research",
    "step-1a": "research gate",
    "step-2": "specification",
    "step-3": "design",
    "step-3b": "design review",
    "step-4": "plan",
    "step-4a": "plan gate",
    "step-5": "implement",
    "step-6": "verify",
    "step-7": "code review",
    "step-8": "knowledge",
    "step-8b": "evidence",
    "step-9": "commit",
}
"""The steps of the pipeline and their names, in order; a test compares them with the rules."""
HARNESS = "orchestrator"
"""The role whose calls this program answers itself."""

_OUTCOMES = {"advanced": "done", "skipped": "skipped", "revised": "revised", "failed": "failed"}


class CallView:
    """A call of an agent; it is running while it has no status."""

    __slots__ = ("agent", "instance", "life", "since", "status", "step", "task", "tokens")

    def __init__(self, step: str, agent: str, instance: str, since: str, task: str | None, life: int) -> None:
        self.step, self.agent, self.instance = step, agent, instance
        self.since, self.task, self.life = since, task, life
        self.status: str | None = None
        self.tokens = 0


class StepView:
    """A step of the pipeline over all its visits."""

    def __init__(self, step: str, name: str) -> None:
        self.step, self.name = step, name
        self.visits = self.revised = 0
        """How often the step was started, and how often it asked for a revision."""
        self.started: str | None = None
        self.finished: str | None = None
        self.outcome: str | None = None
        self.reason: str | None = None
        self.calls: dict[str, CallView] = {}
        """The calls of the current visit by instance and task; a retry replaces the first call."""
        self.tokens = self.visit_tokens = 0
        """Tokens of all visits, and those of the last visit that ended."""
        self._tokens_before = 0

    def finish(self, timestamp: str, outcome: str, reason: str | None) -> None:
        """End the current visit."""
        self.finished, self.outcome, self.reason = timestamp, outcome, reason
        self.revised += outcome == "revised"
        self.visit_tokens, self._tokens_before = self.tokens - self._tokens_before, self.tokens

    @property
    def state(self) -> str:
        """The state: waiting, running, done, skipped, revised or failed."""
        if not self.visits:
            return "waiting"
        return "running" if self.outcome is None else _OUTCOMES.get(self.outcome, self.outcome)

    @property
    def agents(self) -> list[CallView]:
        """The calls of agents, without those of the program itself."""
        return [call for call in self.calls.values() if call.agent != HARNESS]

    @property
    def answered(self) -> int:
        """The number of agents with a usable answer."""
        return sum(call.status in ("DONE", "NEEDS_REVISION") for call in self.agents)

    def seconds(self, now: datetime) -> float:
        """Return how long the current visit took, or has taken so far."""
        if self.started is None:
            return 0.0
        return seconds_between(self.started, now if self.finished is None else self.finished)


_STAGES = {
    NodeStage.WORKING: "working",
    NodeStage.QUEUED: "to be merged",
    NodeStage.MERGING: "merging",
    NodeStage.HELPING: "in conflict",
    NodeStage.WAITING: "to be merged",
}
_STATES = {"MERGED": "merged", "FAILED": "failed", "STALE": "lost", "PENDING": "waiting"}
_BUNDLE = "/evidence-bundle.md"


class FeatureTaskView(NamedTuple):
    """A task and its state in the last graph that contains it."""

    name: str
    word: str
    attempt: int
    since: str
    error: str | None
    is_under_way: bool


class OpenQuestion(NamedTuple):
    """A question that waits for a person."""

    gate: str
    options: tuple[str, ...]
    since: str


class LastGateAnswer(NamedTuple):
    """The last result of a gate."""

    gate: str
    task: str | None
    is_open: bool
    counted: int
    threshold: int
    missing: tuple[str, ...]
    is_news: bool = True
    """Whether this opened or blocked it: the result before was another one, or there was none."""


def spelled_exhaustion(data: Mapping[str, Any]) -> str:
    """Return the sentence of a `budget_exhausted` event; runs of older versions recorded only numbers."""
    what = str(data["what"])
    return what if " may use " in what else f"{what}: {int(data['used'])} of {int(data['cap'])}"


class FeatureView(RunView):
    """The state of a feature run after the applied events."""

    def __init__(self, run_id: str, *, clock: Clock = system_clock) -> None:
        super().__init__(run_id)
        self._clock = clock
        self.lives = self.decisions = self.refused = 0
        self.slug = self.mode = self.base = self.decided = ""
        """`decided` is the reason of the last decision."""
        self.iteration = 1
        self.steps = {step: StepView(step, name) for step, name in STEPS.items()}
        self.calls: dict[str, CallView] = {}
        self.question: OpenQuestion | None = None
        self.confidence: str | None = None
        self.commit: str | None = None
        self.rollback: str | None = None
        self.gates: dict[tuple[str, str | None], LastGateAnswer] = {}
        self.reviews: dict[tuple[str, int], dict[str, bool]] = {}
        """Which reviewers approve, for each scope and round."""
        self.bundle: str | None = None
        """The page with all evidence, once it is written."""
        self.degradations: list[tuple[str, str]] = []
        self.exhausted_budgets: list[str] = []
        self._reverted: dict[str, int] = {}

    @property
    def now(self) -> datetime:
        """The current time."""
        return self._clock()

    def apply_event(self, event: SummaryEvent) -> None:
        """Apply one event; raise `EventsBroken` if it is malformed or of another version."""
        super().apply_event(event)
        if event.type in NODE_TYPES:
            return
        if event.version != EVENT_VERSION:
            raise self.other_version(event)
        try:
            self._apply_to_screen(event, event.data)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self.malformed(event) from None

    def _apply_to_screen(self, event: SummaryEvent, data: Mapping[str, Any]) -> None:
        match event.type:
            case "run_started":
                self.slug, self.mode, self.base = str(data["slug"]), str(data["mode"]), str(data["base_commit"])
            case "run_resumed":
                self.lives += 1
                self.confidence = None
            case "run_finished":
                self.confidence = data["confidence"]
            case "step_started" | "step_finished":
                self._step(event, data)
            case "dispatch_started" | "dispatch_finished":
                self._call(event, data)
            case "call_refused":
                self.refused += 1
            case "approval_requested":
                self.question = OpenQuestion(str(data["gate_id"]), tuple(map(str, data["options"])), event.timestamp)
            case "approval_answered":
                self.question = None
            case "gate_evaluated":
                self._gate(event, data)
            case "decided":
                self.decisions, self.decided = int(data["number"]), str(data["reason"])
            case "replan_started":
                self.iteration = int(data["iteration"])
            case "review_submitted":
                approves = all(verdict == "approve" for verdict in data["verdicts"].values())
                self.reviews.setdefault((str(data["scope"]), int(data["round"])), {})[str(data["perspective"])] = (
                    approves
                )
            case "artifact_written" if str(data["path"]).endswith(_BUNDLE):
                self.bundle = str(data["path"])
            case "task_reverted":
                self._reverted[str(data["task"])] = event.seq
            case "degraded":
                self.degradations.append((str(data["kind"]), str(data["detail"])))
            case "budget_exhausted":
                self.exhausted_budgets.append(spelled_exhaustion(data))
            case "committed":
                self.commit, self.rollback = str(data["commit"]), str(data["rollback_command"])
            case _:
                pass  # not shown in this view

    def _step(self, event: SummaryEvent, data: Mapping[str, Any]) -> None:
        name = str(data["step"])
        step = self.steps.setdefault(name, StepView(name, name))
        if event.type == "step_started":
            step.visits += 1
            step.started, step.finished, step.outcome, step.reason = event.timestamp, None, None, None
            step.calls = {}
            return
        step.finish(event.timestamp, str(data["outcome"]), str(data["reason"]) if data.get("reason") else None)

    def _call(self, event: SummaryEvent, data: Mapping[str, Any]) -> None:
        number = str(data["dispatch_id"])
        if event.type == "dispatch_started":
            step = self.steps.setdefault(str(data["step"]), StepView(str(data["step"]), str(data["step"])))
            call = CallView(
                step.step, str(data["agent"]), str(data["instance"]), event.timestamp, event.task, self.lives
            )
            self.calls[number] = step.calls[f"{call.instance} {call.task or ''}"] = call
            return
        call = self.calls[number]
        call.status, call.tokens = str(data["status"]), int(data["tokens"])
        self.steps[call.step].tokens += call.tokens

    def _gate(self, event: SummaryEvent, data: Mapping[str, Any]) -> None:
        gate, missing, is_open = str(data["gate"]), tuple(map(str, data["missing"])), data["open"] is True
        before = self.gates.get((gate, event.task))
        is_news = before is None or before.is_open != is_open
        self.gates[gate, event.task] = LastGateAnswer(
            gate, event.task, is_open, int(data["count"]), int(data["threshold"]), missing, is_news
        )

    @property
    def tokens(self) -> int:
        """The tokens of all finished calls."""
        return sum(call.tokens for call in self.calls.values())

    @property
    def word(self) -> str:
        """The status in one or two words."""
        if self.is_over:
            return self.status.replace("_", " ")
        return "waiting for you" if self.question is not None else "running"

    def state_of(self, step: StepView) -> str:
        """Return the state of a step; a step that was running when the run ended is stopped."""
        return "stopped" if self.is_over and step.state == "running" else step.state

    def running(self) -> list[CallView]:
        """Return the running calls, the longest first; calls from before a crash do not count."""
        return [call for call in self.calls.values() if call.status is None and call.life == self.lives]

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
        if self._reverted.get(node.name, 0) > node.last:
            word = "reverted"
        return FeatureTaskView(node.name, word, node.attempt, node.since, node.error, stage is not NodeStage.RESTING)
