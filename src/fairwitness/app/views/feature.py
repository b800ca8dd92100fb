"""A feature run as people look at it: all its steps from the first moment, who works now, what waits, how it ended.

It follows the events one by one, and no contract is loaded for it. What it shows is what a fold of the same events
says; a test holds the two equal.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from fairwitness.app.views.run import NodeStage, NodeView, RunView
from fairwitness.errors import EventsBroken
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.text import visible
from fairwitness.ledger.glance import NODE_TYPES, Event

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
"""The pipeline in plain words, in its order; a test holds it equal to what the rules know."""
HARNESS = "orchestrator"
"""Whose calls no agent answers, but this program itself."""

_OUTCOMES = {"advanced": "done", "skipped": "skipped", "revised": "revised", "failed": "failed"}


class CallView:
    """One call of an agent; without a status it is under way."""

    __slots__ = ("agent", "instance", "life", "since", "status", "step", "task", "tokens")

    def __init__(self, step: str, agent: str, instance: str, since: str, task: str | None, life: int) -> None:
        self.step, self.agent, self.instance = step, agent, instance
        self.since, self.task, self.life = since, task, life
        self.status: str | None = None
        self.tokens = 0


class StepView:
    """One step of the pipeline, over all its visits."""

    def __init__(self, step: str, name: str) -> None:
        self.step, self.name = step, name
        self.visits = self.revised = 0
        """How often it was begun, and how often it sent the work back."""
        self.started: str | None = None
        self.finished: str | None = None
        self.outcome: str | None = None
        self.reason: str | None = None
        self.calls: dict[str, CallView] = {}
        """Of its present visit, by what each is about; a second try takes the place of the first."""
        self.tokens = 0
        """Of all its visits."""

    @property
    def state(self) -> str:
        """waiting, running, done, skipped, revised or failed."""
        if not self.visits:
            return "waiting"
        return "running" if self.outcome is None else _OUTCOMES.get(self.outcome, self.outcome)

    @property
    def agents(self) -> list[CallView]:
        """Its calls of agents; what the program does itself is told by the same events, and is none."""
        return [call for call in self.calls.values() if call.agent != HARNESS]

    @property
    def answered(self) -> int:
        """How many of its agents have brought an answer that could be used."""
        return sum(call.status in ("DONE", "NEEDS_REVISION") for call in self.agents)

    def seconds(self, now: datetime) -> float:
        """How long its present visit took, or has taken so far."""
        if self.started is None:
            return 0.0
        until = now if self.finished is None else datetime.fromisoformat(self.finished)
        return max(0.0, (until - datetime.fromisoformat(self.started)).total_seconds())


_STAGES = {
    NodeStage.WORKING: "working",
    NodeStage.QUEUED: "to be merged",
    NodeStage.MERGING: "merging",
    NodeStage.HELPING: "in conflict",
    NodeStage.WAITING: "to be merged",
}
_STATES = {"MERGED": "merged", "FAILED": "failed", "STALE": "lost", "PENDING": "waiting"}
VERSION = 1


class FeatureTaskView(NamedTuple):
    """One task, as it stands in the last graph that holds it."""

    name: str
    word: str
    attempt: int
    since: str
    error: str | None
    is_under_way: bool


class OpenQuestion(NamedTuple):
    """What waits for a person."""

    gate: str
    options: tuple[str, ...]
    since: str


class RunOutcomeView(NamedTuple):
    """How the run ended."""

    outcome: str
    confidence: str | None
    commit: str | None
    reason: str
    at: str


class GateAnswer(NamedTuple):
    """What a gate answered when it was last asked."""

    gate: str
    task: str | None
    is_open: bool
    counted: int
    threshold: int
    missing: tuple[str, ...]


class FeatureView:
    """A feature run after the events it was told of."""

    def __init__(self, run_id: str, *, clock: Clock = system_clock) -> None:
        self.run_id, self._clock = run_id, clock
        self.seq = self.lives = self.decisions = self.refused = self.gates_asked = 0
        self.slug = self.mode = self.base = self.last_time = ""
        self.began: str | None = None
        self.planned: int | None = None
        """How many tasks the plan has, if whoever looks knows; events tell of a task only when it begins."""
        self.iteration = 1
        self.steps = {step: StepView(step, name) for step, name in STEPS.items()}
        self.calls: dict[str, CallView] = {}
        self.question: OpenQuestion | None = None
        self.ending: RunOutcomeView | None = None
        self.commit: str | None = None
        self.rollback: str | None = None
        self.gates: dict[tuple[str, str | None], GateAnswer] = {}
        self.degradations: list[tuple[str, str]] = []
        self.exhausted: list[str] = []
        self._graphs: dict[str, RunView] = {}
        self._reverted: dict[str, int] = {}

    @property
    def now(self) -> datetime:
        """The time, for how long things take."""
        return self._clock()

    def apply_event(self, event: Event) -> None:
        """Goes one event on."""
        if event.version != VERSION:
            raise EventsBroken(
                f"run {self.run_id}: event {event.seq} is of version {event.version}, this Fair Witness reads {VERSION}",
                next_step="use the Fair Witness that wrote it",
            )
        try:
            if event.type in NODE_TYPES:
                self._graph(event).apply_event(event)
            else:
                self._apply(event, event.data)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise EventsBroken(
                f"run {self.run_id}: event {event.seq}, {visible(event.type)}, is not as it should be",
                next_step="fairwitness ledger verify",
            ) from None
        self.seq, self.last_time = event.seq, event.timestamp
        self.began = self.began or event.timestamp

    def _graph(self, event: Event) -> RunView:
        return self._graphs.setdefault(event.phase or "", RunView(self.run_id))

    def _apply(self, event: Event, data: Mapping[str, Any]) -> None:
        match event.type:
            case "run_started":
                self.slug, self.mode, self.base = str(data["slug"]), str(data["mode"]), str(data["base_commit"])
            case "run_resumed":
                self.lives += 1
                self.ending = None
            case "run_finished":
                self.ending = RunOutcomeView(
                    str(data["outcome"]), data["confidence"], data.get("commit"), str(data["reason"]), event.timestamp
                )
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
                self.decisions = int(data["number"])
            case "replan_started":
                self.iteration = int(data["iteration"])
            case "task_reverted":
                self._reverted[str(data["task"])] = event.seq
            case "degraded":
                self.degradations.append((str(data["kind"]), str(data["detail"])))
            case "budget_exhausted":
                self.exhausted.append(f"{data['what']}: {int(data['used'])} of {int(data['cap'])}")
            case "committed":
                self.commit, self.rollback = str(data["commit"]), str(data["rollback_command"])
            case _:
                pass  # tells nothing that is shown here

    def _step(self, event: Event, data: Mapping[str, Any]) -> None:
        name = str(data["step"])
        step = self.steps.setdefault(name, StepView(name, name))
        if event.type == "step_started":
            step.visits += 1
            step.started, step.finished, step.outcome, step.reason = event.timestamp, None, None, None
            step.calls = {}
            return
        step.finished, step.outcome = event.timestamp, str(data["outcome"])
        step.reason = str(data["reason"]) if data.get("reason") else None
        step.revised += step.outcome == "revised"

    def _call(self, event: Event, data: Mapping[str, Any]) -> None:
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

    def _gate(self, event: Event, data: Mapping[str, Any]) -> None:
        gate, missing = str(data["gate"]), tuple(map(str, data["missing"]))
        self.gates_asked += 1
        self.gates[gate, event.task] = GateAnswer(
            gate, event.task, data["open"] is True, int(data["count"]), int(data["threshold"]), missing
        )

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.ending is not None

    @property
    def tokens(self) -> int:
        """What all calls have used that have ended."""
        return sum(call.tokens for call in self.calls.values())

    @property
    def word(self) -> str:
        """Where the run stands, in one word or two."""
        if self.ending is not None:
            return self.ending.outcome.replace("_", " ")
        return "waiting for you" if self.question is not None else "running"

    def state_of(self, step: StepView) -> str:
        """The state of a step; one that was under way when the run ended is stopped."""
        return "stopped" if self.is_over and step.state == "running" else step.state

    def running(self) -> list[CallView]:
        """The calls that are under way, those first that have been for longest; a crash ends those before it."""
        return [call for call in self.calls.values() if call.status is None and call.life == self.lives]

    def seconds(self) -> float:
        """How long the run has been going, or went on for."""
        if self.began is None:
            return 0.0
        until = datetime.fromisoformat(self.ending.at) if self.ending is not None else self.now
        return max(0.0, (until - datetime.fromisoformat(self.began)).total_seconds())

    def tasks(self) -> list[FeatureTaskView]:
        """Every task that was begun, in the order in which they were."""
        found: dict[str, FeatureTaskView] = {}
        for graph in self._graphs.values():
            for node in graph.nodes.values():
                found[node.name] = self._task(graph, node)
        return list(found.values())

    def _task(self, graph: RunView, node: NodeView) -> FeatureTaskView:
        stage = graph.stage(node)
        word = _STAGES.get(stage) or _STATES.get(node.state, node.state.lower())
        if self._reverted.get(node.name, 0) > node.last:
            word = "reverted"
        return FeatureTaskView(node.name, word, node.attempt, node.since, node.error, stage is not NodeStage.RESTING)
