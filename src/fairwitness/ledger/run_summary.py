"""The summary of a run: its status, phases, questions and nodes in plain values, after each of its events.

The ledger writes it in the same record as the events, so that a list of runs is one query that loads no contract. It is
never evidence: decisions fold the events themselves, tests compare both, and `fairwitness ledger verify` rebuilds a
summary that differs from its events.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from fairwitness.errors import EventsBroken
from fairwitness.kit.text import visible

AUTOPILOT = "autopilot"
NOT_STARTED, IN_PROGRESS, COMPLETED, FAILED = "not_started", "in_progress", "completed", "failed"
DEFERRED, SKIPPED = "needs_human_verification", "skipped"
ALREADY = "already_completed"
"""The reason of skipping a phase that an earlier run completed."""

RUN_TYPES = (
    *("run.created", "run.started", "run.paused", "run.resumed", "run.completed", "run.failed"),
    *("plan.proposed", "plan.approved", "plan.returned", "overlay.applied"),
    *("cr.emitted", "cr.approved", "cr.rejected"),
    *("run_started", "run_resumed", "run_finished", "run_completed", "run_halted"),
    *("approval_requested", "approval_answered"),
    *("phase_started", "phase_completed", "phase_failed", "phase_skipped", "human_verdict_recorded"),
)
"""The events of all workflows that determine the state of a whole run."""

NODE_TYPES = (
    *("node.changed", "task.started", "task.verified", "task.retried", "task.exhausted", "task.reopened"),
    *("conflict.found", "merge.started", "merge.finished"),
)
"""The events that determine the state of nodes."""

EVENT_VERSION = 1
"""The version of all events; a test compares it with the folds."""

_COUNTED = frozenset((*RUN_TYPES, *NODE_TYPES))
_STATUS = {
    "run.created": "planning",
    "plan.proposed": "plan_review",
    "plan.approved": "plan_review",
    "plan.returned": "planning",
    "run.started": "executing",
    "run.paused": "paused",
    "run.resumed": "executing",
    "run.completed": "completed",
    "run.failed": "failed",
    "run_started": "executing",
    "run_resumed": "executing",
    "run_completed": "completed",
    "run_halted": "failed",
    "approval_requested": "waiting",
    "approval_answered": "executing",
}
_ENDS = frozenset({"run.completed", "run.failed", "run_finished", "run_completed", "run_halted"})
_ALIVE = frozenset({"RUNNING", "DONE", "MERGE_READY", "MERGED"})

Plain = dict[str, Any]
SummaryT = TypeVar("SummaryT", bound="RunSummary")


class SummaryEvent(NamedTuple):
    """One event as in the table; its data is not validated."""

    event_id: str
    seq: int
    timestamp: str
    workflow: str
    run_id: str
    phase: str | None
    task: str | None
    attempt: int | None
    type: str
    version: int
    data: dict[str, Any]

    def plain(self) -> dict[str, Any]:
        """Return the event as plain JSON values."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class PhaseStatuses:
    """The phases of an autopilot run and their statuses after the applied events."""

    def __init__(self) -> None:
        self.wanted: tuple[str, ...] = ()
        """The phases of this run."""
        self.statuses: dict[str, str] = {}
        self.needs: Mapping[str, Sequence[str]] = {}
        """The dependencies of each phase, from the order of the run; events do not contain them."""
        self._done_before: set[str] = set()

    def apply_event(self, event: SummaryEvent) -> None:
        """Apply one event."""
        if event.type == "run_started":
            self.wanted = tuple(map(str, event.data.get("phases") or ()))
            self.statuses = dict.fromkeys(self.wanted, NOT_STARTED)
        phase = event.phase
        if phase is None:
            return
        match event.type:
            case "phase_started":
                self.statuses[phase] = IN_PROGRESS
            case "phase_completed":
                self.statuses[phase] = COMPLETED
            case "phase_failed":
                self.statuses[phase] = FAILED
            case "phase_skipped" if self.statuses.get(phase, NOT_STARTED) == NOT_STARTED:
                self.statuses[phase] = SKIPPED
                if event.data.get("reason") == ALREADY:
                    self._done_before.add(phase)
            case "human_verdict_recorded" if event.data.get("verdict") is not None:
                self.statuses[phase] = COMPLETED if event.data["verdict"] == "pass" else FAILED
            case _:
                pass
        facts = event.data.get("facts")
        if isinstance(facts, dict) and facts.get("deferral") is not None:
            self.statuses[phase] = DEFERRED

    def at(self, status: str) -> tuple[str, ...]:
        """Return the phases in a status, in the order of the run; parts of split phases come last."""
        order = (*self.wanted, *(phase for phase in self.statuses if phase not in self.wanted))
        return tuple(phase for phase in order if self.statuses[phase] == status)

    def counts(self) -> dict[str, int]:
        """Return how many phases of this run there are, are completed, failed, and deferred to a person."""
        of = [self.statuses[phase] for phase in self.wanted]
        return {
            "total": len(of),
            "completed": of.count(COMPLETED) + sum(phase in self._done_before for phase in self.wanted),
            "failed": of.count(FAILED),
            "deferred": of.count(DEFERRED),
        }

    @property
    def is_held(self) -> bool:
        """Whether no phase can continue before a verdict."""
        return bool(self.at(DEFERRED)) and not self.at(IN_PROGRESS) and not any(map(self._can_begin, self.wanted))

    def _can_begin(self, phase: str) -> bool:
        if self.statuses[phase] != NOT_STARTED:
            return False
        return all(self._is_done(other) for other in self.needs.get(phase, ()) if other in self.wanted)

    def _is_done(self, phase: str) -> bool:
        return self.statuses[phase] == COMPLETED or phase in self._done_before

    def plain(self) -> Plain:
        """Return the phases as plain JSON values; statuses are pairs, because their order counts."""
        return {
            "wanted": list(self.wanted),
            "statuses": list(map(list, self.statuses.items())),
            "needs": {phase: list(others) for phase, others in self.needs.items()},
            "done_before": sorted(self._done_before),
        }

    def restore(self, plain: Plain) -> None:
        """Set everything from plain values."""
        self.wanted, self.statuses = tuple(plain["wanted"]), dict(plain["statuses"])
        self.needs, self._done_before = plain["needs"], set(plain["done_before"])


class NodeSummary:
    """A node of the graph that at least one event mentions."""

    __slots__ = (
        *("agent", "attempt", "changed", "error", "first", "helped", "is_exhausted", "most", "name", "since"),
        *("state", "verified"),
    )

    def __init__(self, name: str, first: int = 0) -> None:
        self.name = name
        self.first = first
        """The sequence number of the first event that mentions it."""
        self.state = "PENDING"
        self.attempt = 1
        self.most: int | None = None
        """The maximum number of attempts, if a person raised it for this node."""
        self.since = ""
        self.changed = self.verified = self.helped = 0
        """The sequence numbers of its last state change, verification and call of a helper."""
        self.error: str | None = None
        self.agent: str | None = None
        self.is_exhausted = False

    @property
    def last(self) -> int:
        """The sequence number of its last progress."""
        return max(self.changed, self.verified, self.helped)

    def counts(self) -> tuple[bool, bool, bool]:
        """Return whether the node is merged, has no attempts left, and is running."""
        return self.state == "MERGED", self.is_exhausted, self.state == "RUNNING"

    def plain(self) -> Plain:
        """Return the node as plain JSON values."""
        return {slot: getattr(self, slot) for slot in self.__slots__}

    @classmethod
    def restored(cls, plain: Plain) -> "NodeSummary":
        """Return the node of plain values."""
        node = cls(plain["name"])
        for slot in cls.__slots__:
            setattr(node, slot, plain[slot])
        return node


_SIMPLE = (
    *("workflow", "seq", "status", "reason", "request", "is_approved", "is_over", "tasks", "began", "started"),
    *("last_time", "last_event", "broken"),
)


class RunSummary:
    """The state of a run and of the nodes of its graph after the applied events."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.workflow = ""
        self.seq = 0
        self.status = "planning"
        """As in run-state.json for forge runs; the closest equivalent for others, and else the last event."""
        self._is_named = False
        """Whether an event has set the status."""
        self._unstarted = self.status
        """The status after resuming a run that failed before it was started."""
        self.reason: str | None = None
        self.request = ""
        self.is_approved = False
        self.asks: frozenset[str] = frozenset()
        """The open questions."""
        self._is_autonomous = self._decides_requests = False
        """Whether the plan is approved without a review, and whether a person decides change requests."""
        self.is_over = False
        self.phases = PhaseStatuses()
        """The phases of an autopilot run; empty for other workflows."""
        self.tasks = 0
        self.began: str | None = None
        self.started: str | None = None
        self.last_time: str | None = None
        self.last_event = ""
        self.nodes: dict[str, NodeSummary] = {}
        self.counted = {"merged": 0, "failed": 0, "running": 0}
        """How many nodes are merged, have no attempts left, and are running; known even if the nodes are not loaded."""
        self.batch: tuple[str, ...] = ()
        """The nodes that are being merged."""
        self.broken: list[str] | None = None
        """What is wrong with an event that cannot be applied, and what to do next; nothing is applied after it."""

    def advance(self, event: SummaryEvent) -> str | None:
        """Apply one event that is being recorded; return the node that it changed.

        An event that cannot be applied is remembered and not raised: it is recorded all the same.
        """
        if self.broken is None:
            try:
                self.apply_event(event)
            except EventsBroken as error:
                self.broken = [error.what, error.next_step]
        self.advance_to(event)
        name = event.data.get("nodeId") if event.type in NODE_TYPES else None
        return name if name in self.nodes else None

    def apply_event(self, event: SummaryEvent) -> None:
        """Apply one event; raise `EventsBroken` if it is malformed or of another version."""
        if event.version != EVENT_VERSION and event.type in _COUNTED:
            raise self.other_version(event)
        try:
            if event.type in NODE_TYPES:
                self._apply_to_nodes(event, event.data)
            else:
                self._apply(event)
        except (KeyError, TypeError, ValueError):
            raise self.malformed(event) from None
        self.advance_to(event)

    def other_version(self, event: SummaryEvent) -> EventsBroken:
        """Return the error for an event of another version."""
        return EventsBroken(
            f"run {self.run_id}: event {event.seq} has version {event.version}, expected {EVENT_VERSION}",
            next_step="use the version of Fair Witness that wrote it",
        )

    def malformed(self, event: SummaryEvent) -> EventsBroken:
        """Return the error for an event without the expected data."""
        return EventsBroken(
            f"run {self.run_id}: event {event.seq}, {visible(event.type)}, is malformed",
            next_step="fairwitness ledger verify",
        )

    def advance_to(self, event: SummaryEvent) -> None:
        """Record that everything up to this event is known."""
        self.workflow, self.seq, self.last_time = event.workflow, event.seq, event.timestamp
        self.last_event = event.type
        self.began = self.began or event.timestamp
        if not self._is_named:
            self.status = event.type

    def _apply(self, event: SummaryEvent) -> None:
        data = event.data
        match event.type:
            case "run.created":
                self.request = str(data["request"])
                self._is_autonomous = data.get("mode") == "autonomous"
                self._decides_requests = data.get("decider") == "person"
            case "cr.emitted" if self._decides_requests:
                self.asks |= {str(data["crId"])}
            case "cr.approved" | "cr.rejected":
                self.asks -= {str(data["crId"])}
            case "run_started" if "slug" in data:
                self.request = str(data["slug"])
            case "plan.proposed":
                self.tasks = int(data["tasks"]) + int(data["refineries"])
            case "overlay.applied":
                self.tasks += len(data["addedNodes"])
            case "run.started":
                self.started = event.timestamp
            case "approval_requested":
                self.asks |= {str(data["gate_id"])}
            case "approval_answered":
                self.asks -= {str(data["gate_id"])}
            case _:
                pass
        if event.type in _STATUS or event.type in _ENDS:
            self.status, self._is_named = _STATUS.get(event.type) or str(data["outcome"]), True
            if event.type == "run_resumed" and self.asks:
                self.status = "waiting"
            self.reason = str(data["reason"]) if data.get("reason") else None
            self.is_over = event.type in _ENDS
            if event.type.startswith("plan."):
                self.is_approved, self._unstarted = event.type == "plan.approved", self.status
            elif event.type == "run.resumed" and self.started is None:
                self.status = self._unstarted
        if event.workflow == AUTOPILOT:
            self._apply_to_phases(event)

    def _apply_to_phases(self, event: SummaryEvent) -> None:
        """Apply an event to the phases. A paused run is not over; a run waits when only verdicts are left."""
        self.phases.apply_event(event)
        if event.type == "run_started":
            self.request = f"phases {', '.join(self.phases.wanted)}" if self.phases.wanted else ""
        self.asks = frozenset(f"verdict:{phase}" for phase in self.phases.at(DEFERRED))
        if event.type == "run_halted" and event.data.get("status") == "paused":
            self.status, self.is_over = "paused", False
        elif self.status in ("executing", "waiting") and not self.is_over:
            self.status = "waiting" if self.phases.is_held else "executing"

    def _apply_to_nodes(self, event: SummaryEvent, data: Mapping[str, Any]) -> None:
        if event.type in ("merge.started", "merge.finished"):
            self.batch = tuple(map(str, data["nodes"])) if event.type == "merge.started" else ()
            return
        name = str(data["nodeId"])
        node = self.nodes.setdefault(name, NodeSummary(name, event.seq))
        before = node.counts()
        self._apply_to_node(node, event, data)
        for name, was, now in zip(self.counted, before, node.counts(), strict=True):
            self.counted[name] += now - was

    @staticmethod
    def _apply_to_node(node: NodeSummary, event: SummaryEvent, data: Mapping[str, Any]) -> None:
        match event.type:
            case "node.changed":
                node.state, node.since, node.changed = str(data["newStatus"]), event.timestamp, event.seq
                node.attempt = int(data.get("attemptId") or node.attempt)
                node.error = str(data["reason"]) if data.get("reason") else node.error
                if node.state in _ALIVE:  # a later graph of the run started it again
                    node.is_exhausted = False
            case "task.started":
                node.agent = str(data["agent"])
            case "task.verified":
                node.verified = event.seq
            case "conflict.found":
                node.helped = event.seq
            case "task.retried":
                node.error = str(data["reason"])
            case "task.exhausted":
                node.error, node.is_exhausted = str(data["lastError"]), True
            case "task.reopened":
                node.is_exhausted, node.most = False, int(data["maxAttempts"])
            case _:
                raise KeyError(event.type)

    def plain(self) -> Plain:
        """Return the run as plain JSON values, without its nodes."""
        return {
            **{name: getattr(self, name) for name in _SIMPLE},
            "is_named": self._is_named,
            "unstarted": self._unstarted,
            "is_autonomous": self._is_autonomous,
            "decides_requests": self._decides_requests,
            "asks": sorted(self.asks),
            "batch": list(self.batch),
            "counted": dict(self.counted),
            "phases": self.phases.plain(),
        }

    @classmethod
    def restored(cls: type[SummaryT], run_id: str, plain: Plain, nodes: Iterable[Plain] = ()) -> SummaryT:
        """Return the run of plain values."""
        run = cls(run_id)
        for name in _SIMPLE:
            setattr(run, name, plain[name])
        run._is_named, run._unstarted = plain["is_named"], plain["unstarted"]
        run._is_autonomous, run._decides_requests = plain["is_autonomous"], plain["decides_requests"]
        run.asks, run.batch = frozenset(plain["asks"]), tuple(plain["batch"])
        run.counted = {name: plain["counted"][name] for name in run.counted}
        run.phases.restore(plain["phases"])
        run.nodes = {node["name"]: NodeSummary.restored(node) for node in nodes}
        return run

    def refuse_broken(self) -> None:
        """Raise `EventsBroken` if an event of the run could not be applied."""
        if self.broken is not None:
            raise EventsBroken(self.broken[0], next_step=self.broken[1])
