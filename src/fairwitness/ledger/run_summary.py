"""The summary of a run: its status, phases, questions and nodes in plain values, after each of its events.

The ledger writes it in the same record as the events, so that a list of runs is one query that loads no contract. It is
never evidence: decisions fold the events themselves, tests compare both, and `fairwitness ledger verify` rebuilds a
summary that differs from its events.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from fairwitness.errors import EventsBroken
from fairwitness.kit.text import visible
from fairwitness.ledger.feature_summary import FeatureSummary
from fairwitness.ledger.phase_summary import DEFERRED, BoardSummary, PhaseStatuses
from fairwitness.ledger.summary_event import EVENT_VERSION, Plain, SummaryEvent, SummaryLine

FEATURE, AUTOPILOT = "feature", "autopilot"
RUN, DETAIL, NODE, CALL = "", "detail", "node/", "call/"
"""The parts of a stored summary: the run itself, its pipeline or board, each node, and each call of a feature run."""

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

SummaryT = TypeVar("SummaryT", bound="RunSummary")


class NodeSummary(SummaryLine):
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
        self.board = BoardSummary(self.phases)
        self.feature = FeatureSummary()
        """What only the view of one run shows: the board of an autopilot run, the pipeline of a feature run."""
        self.detail_broken: list[str] | None = None
        """Like `broken`, for an event that only board or pipeline cannot apply."""
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

    def advance(self, event: SummaryEvent) -> set[str]:
        """Apply one event that is being recorded; return the parts that it may have changed.

        An event that cannot be applied is remembered and not raised: it is recorded all the same.
        """
        if self.detail_broken is None:
            self.detail_broken = _problem(self._apply_to_detail, event)
        if self.broken is None:
            self.broken = _problem(self._apply_to_run, event)
        self.advance_to(event)
        if event.type in NODE_TYPES:
            return {RUN, f"{NODE}{event.data.get('nodeId')}"}
        call = {f"{CALL}{event.data.get('dispatch_id')}"} if event.workflow == FEATURE else set()
        return {RUN, DETAIL, *call} if event.workflow in (FEATURE, AUTOPILOT) else {RUN}

    def apply_event(self, event: SummaryEvent) -> None:
        """Apply one event; raise `EventsBroken` if it is malformed or of another version."""
        self._apply_to_detail(event)
        self._apply_to_run(event)
        self.advance_to(event)

    def _apply_to_run(self, event: SummaryEvent) -> None:
        if event.version != EVENT_VERSION and event.type in _COUNTED:
            raise self.other_version(event)
        try:
            if event.type in NODE_TYPES:
                self._apply_to_nodes(event, event.data)
            else:
                self._apply(event)
        except (KeyError, TypeError, ValueError):
            raise self.malformed(event) from None

    def _apply_to_detail(self, event: SummaryEvent) -> None:
        if event.type in NODE_TYPES or event.workflow not in (FEATURE, AUTOPILOT):
            return
        if event.version != EVENT_VERSION:
            raise self.other_version(event)
        try:
            (self.feature if event.workflow == FEATURE else self.board).apply_event(event)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self.malformed(event) from None

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
        """Return the run as plain JSON values, without its nodes, board and pipeline."""
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

    def parts(self, names: Iterable[str] | None = None) -> dict[str, Plain]:
        """Return the parts of the summary by name: all of them, or those of the names that exist."""
        if names is None:
            nodes, calls = (f"{NODE}{name}" for name in self.nodes), (f"{CALL}{name}" for name in self.feature.calls)
            names = (RUN, DETAIL, *nodes, *calls)
        found = {name: self._part(name) for name in names}
        return {name: plain for name, plain in found.items() if plain is not None}

    def _part(self, name: str) -> Plain | None:
        if name == RUN:
            return self.plain()
        if name == DETAIL:
            if self.workflow not in (FEATURE, AUTOPILOT):
                return None
            of = self.feature if self.workflow == FEATURE else self.board
            return {**of.plain(), "broken": self.detail_broken}
        kind, _, of_name = name.partition("/")
        item = (self.nodes if f"{kind}/" == NODE else self.feature.calls).get(of_name)
        return None if item is None else item.plain()

    @classmethod
    def restored(cls: type[SummaryT], run_id: str, parts: Mapping[str, Plain]) -> SummaryT:
        """Return the run of its parts; those that are missing stay empty."""
        run, plain = cls(run_id), parts[RUN]
        for name in _SIMPLE:
            setattr(run, name, plain[name])
        run._is_named, run._unstarted = plain["is_named"], plain["unstarted"]
        run._is_autonomous, run._decides_requests = plain["is_autonomous"], plain["decides_requests"]
        run.asks, run.batch = frozenset(plain["asks"]), tuple(plain["batch"])
        run.counted = {name: plain["counted"][name] for name in run.counted}
        run.phases.restore(plain["phases"])
        nodes = sorted((NodeSummary.restored(node) for node in _under(NODE, parts).values()), key=lambda n: n.first)
        run.nodes = {node.name: node for node in nodes}
        detail = parts.get(DETAIL)
        if detail is not None:
            run.detail_broken = detail["broken"]
            if run.workflow == FEATURE:
                run.feature.restore(detail, _under(CALL, parts))
            else:
                run.board.restore(detail)
        return run

    def refuse_broken(self) -> None:
        """Raise `EventsBroken` if an event of the run could not be applied."""
        broken = self.broken or self.detail_broken
        if broken is not None:
            raise EventsBroken(broken[0], next_step=broken[1])


def _under(prefix: str, parts: Mapping[str, Plain]) -> dict[str, Plain]:
    return {part.removeprefix(prefix): plain for part, plain in parts.items() if part.startswith(prefix)}


def _problem(apply: Callable[[SummaryEvent], None], event: SummaryEvent) -> list[str] | None:
    """Apply an event; return what is wrong with it and what to do next, or None."""
    try:
        apply(event)
    except EventsBroken as error:
        return [error.what, error.next_step]
    return None
