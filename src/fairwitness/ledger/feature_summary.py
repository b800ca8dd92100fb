"""The pipeline of a feature run in plain values: steps, agent calls, gates and reviews after the applied events.

It is a part of the summary of a run, so `status`, `watch`, the closing block and the report show the same state.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from fairwitness.kit.durations import seconds_between
from fairwitness.ledger.summary_event import Plain, SummaryEvent, SummaryLine

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
FULL, LIGHT = "full", "light"
NOT_ON_LIGHT = frozenset({"step-1", "step-1a", "step-2", "step-3", "step-3b", "step-8"})
"""The steps that the light path lacks; a test compares them with the rules."""
HARNESS = "orchestrator"
"""The role whose calls this program answers itself."""

_OUTCOMES = {"advanced": "done", "skipped": "skipped", "revised": "revised", "failed": "failed"}
_BUNDLE = "/evidence-bundle.md"


class CallSummary(SummaryLine):
    """A call of an agent; it is running while it has no status."""

    __slots__ = ("agent", "first", "instance", "life", "since", "status", "step", "task", "tokens", "visit")

    def __init__(
        self, step: str, agent: str, instance: str, since: str, task: str | None, *, life: int, visit: int, first: int
    ) -> None:
        self.step, self.agent, self.instance, self.since, self.task = step, agent, instance, since, task
        self.life, self.visit, self.first = life, visit, first
        """How often the run was resumed and the step visited before the call, and the number of its first event."""
        self.status: str | None = None
        self.tokens = 0


_STEP = ("visits", "revised", "started", "finished", "outcome", "reason", "tokens", "visit_tokens", "tokens_before")


class StepSummary:
    """A step of the pipeline over all its visits."""

    def __init__(self, step: str) -> None:
        self.step, self.name = step, STEPS.get(step, step)
        self.visits = self.revised = 0
        """How often the step was started, and how often it asked for a revision."""
        self.started: str | None = None
        self.finished: str | None = None
        self.outcome: str | None = None
        self.reason: str | None = None
        self.calls: dict[str, CallSummary] = {}
        """The calls of the current visit by instance and task; a retry replaces the first call."""
        self.tokens = self.visit_tokens = self.tokens_before = 0
        """Tokens of all visits, of the last visit that ended, and of all visits up to that one."""

    def start(self, timestamp: str) -> None:
        """Begin a visit."""
        self.visits += 1
        self.started, self.finished, self.outcome, self.reason = timestamp, None, None, None
        self.calls = {}

    def finish(self, timestamp: str, outcome: str, reason: str | None) -> None:
        """End the current visit."""
        self.finished, self.outcome, self.reason = timestamp, outcome, reason
        self.revised += outcome == "revised"
        self.visit_tokens, self.tokens_before = self.tokens - self.tokens_before, self.tokens

    def add_call(self, call: CallSummary) -> None:
        """Add a call to the current visit, as its last one."""
        key = f"{call.instance} {call.task or ''}"
        self.calls.pop(key, None)
        self.calls[key] = call

    @property
    def state(self) -> str:
        """The state: waiting, running, done, skipped, revised or failed."""
        if not self.visits:
            return "waiting"
        return "running" if self.outcome is None else _OUTCOMES.get(self.outcome, self.outcome)

    @property
    def agents(self) -> list[CallSummary]:
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


_SIMPLE = (
    *("lives", "decisions", "refused", "slug", "mode", "base", "decided", "iteration", "confidence", "commit"),
    *("rollback", "bundle", "exhausted_budgets", "reverted", "tokens"),
)


class FeatureSummary:
    """The pipeline of a feature run after the applied events."""

    def __init__(self) -> None:
        self.lives = self.decisions = self.refused = self.tokens = 0
        """How often the run was resumed, its decisions, refused tool calls, and the tokens of all finished calls."""
        self.slug = self.mode = self.base = self.decided = ""
        """`decided` is the reason of the last decision."""
        self.path = FULL
        self.left_path: str | None = None
        """Why the run left the light path; None if it did not."""
        self.iteration = 1
        self.steps = {step: StepSummary(step) for step in STEPS}
        self.calls: dict[str, CallSummary] = {}
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
        self.reverted: dict[str, int] = {}
        """The event that reverted a task."""

    def apply_event(self, event: SummaryEvent) -> None:
        """Apply one event; raise an error if it lacks the expected data."""
        data = event.data
        match event.type:
            case "run_started":
                self.slug, self.mode, self.base = str(data["slug"]), str(data["mode"]), str(data["base_commit"])
                self.path = str(data.get("path", FULL))
            case "path_changed":
                self.path, self.left_path = str(data["path"]), str(data["reason"])
            case "run_resumed":
                self.lives += 1
                self.confidence = None
            case "run_finished":
                self.confidence = data["confidence"]
            case "step_started":
                self._step(data).start(event.timestamp)
            case "step_finished":
                reason = str(data["reason"]) if data.get("reason") else None
                self._step(data).finish(event.timestamp, str(data["outcome"]), reason)
            case "dispatch_started":
                self._begin_call(event, data)
            case "dispatch_finished":
                self._end_call(data)
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
                round_ = self.reviews.setdefault((str(data["scope"]), int(data["round"])), {})
                round_[str(data["perspective"])] = approves
            case "artifact_written" if str(data["path"]).endswith(_BUNDLE):
                self.bundle = str(data["path"])
            case "task_reverted":
                self.reverted[str(data["task"])] = event.seq
            case "degraded":
                self.degradations.append((str(data["kind"]), str(data["detail"])))
            case "budget_exhausted":
                self.exhausted_budgets.append(spelled_exhaustion(data))
            case "committed":
                self.commit, self.rollback = str(data["commit"]), str(data["rollback_command"])
            case _:
                pass  # no view shows it

    def _step(self, data: Plain) -> StepSummary:
        name = str(data["step"])
        return self.steps.setdefault(name, StepSummary(name))

    def _begin_call(self, event: SummaryEvent, data: Plain) -> None:
        step = self._step(data)
        call = CallSummary(
            step.step,
            str(data["agent"]),
            str(data["instance"]),
            event.timestamp,
            event.task,
            life=self.lives,
            visit=step.visits,
            first=event.seq,
        )
        self.calls.pop(str(data["dispatch_id"]), None)  # a crash interrupted it: it begins again
        self.calls[str(data["dispatch_id"])] = call
        step.add_call(call)

    def _end_call(self, data: Plain) -> None:
        call = self.calls[str(data["dispatch_id"])]
        call.status, call.tokens = str(data["status"]), int(data["tokens"])
        self.steps[call.step].tokens += call.tokens
        self.tokens += call.tokens

    def _gate(self, event: SummaryEvent, data: Plain) -> None:
        gate, missing, is_open = str(data["gate"]), tuple(map(str, data["missing"])), data["open"] is True
        before = self.gates.get((gate, event.task))
        is_news = before is None or before.is_open != is_open
        self.gates[gate, event.task] = LastGateAnswer(
            gate, event.task, is_open, int(data["count"]), int(data["threshold"]), missing, is_news
        )

    def plain(self) -> Plain:
        """Return the pipeline as plain JSON values, without its calls."""
        return {
            **{name: getattr(self, name) for name in _SIMPLE},
            **({} if self.path == FULL and self.left_path is None else {"path": [self.path, self.left_path]}),
            "steps": [[name, {field: getattr(step, field) for field in _STEP}] for name, step in self.steps.items()],
            "question": self.question,
            "gates": list(self.gates.values()),
            "reviews": [[scope, round_, said] for (scope, round_), said in self.reviews.items()],
            "degradations": self.degradations,
        }

    def restore(self, plain: Plain, calls: Mapping[str, Plain]) -> None:
        """Set everything from plain values; calls come in any order."""
        for name in _SIMPLE:
            setattr(self, name, plain[name])
        self.path, self.left_path = plain.get("path", (FULL, None))
        for name, fields in plain["steps"]:
            step = self.steps.setdefault(name, StepSummary(name))
            for field in _STEP:
                setattr(step, field, fields[field])
        asked = plain["question"]
        self.question = None if asked is None else OpenQuestion(asked[0], tuple(asked[1]), asked[2])
        for gate, task, is_open, counted, threshold, missing, is_news in plain["gates"]:
            self.gates[gate, task] = LastGateAnswer(gate, task, is_open, counted, threshold, tuple(missing), is_news)
        self.reviews = {(scope, round_): said for scope, round_, said in plain["reviews"]}
        self.degradations = [(kind, detail) for kind, detail in plain["degradations"]]
        restored = {name: CallSummary.restored(call) for name, call in calls.items()}
        for name, call in sorted(restored.items(), key=lambda each: each[1].first):
            self.calls[name] = call
            if call.visit == self.steps[call.step].visits:
                self.steps[call.step].add_call(call)
