"""The view of a run: status, active nodes, what it waits for, and how it ended.

It is built from the last relevant events and applies new ones one by one, without loading a contract or the engine. A
test compares it with the fold of all events.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from fairwitness.errors import EventsBroken
from fairwitness.kit.text import visible
from fairwitness.ledger.summary import NODE_TYPES, RUN_TYPES, SummaryEvent

AUTOPILOT = "autopilot"
NOT_STARTED, IN_PROGRESS, COMPLETED, FAILED = "not_started", "in_progress", "completed", "failed"
DEFERRED, SKIPPED = "needs_human_verification", "skipped"
ALREADY = "already_completed"
"""The reason of skipping a phase that an earlier run completed."""
_WORDS = {DEFERRED: "waits for you", IN_PROGRESS: "in progress", NOT_STARTED: "not started"}


def phase_status_text(status: str) -> str:
    """Return the status of a phase in words.

    >>> [phase_status_text(status) for status in ("needs_human_verification", "completed")]
    ['waits for you', 'completed']
    """
    return _WORDS.get(status, status)


class PhaseStatuses:
    """The phases of an autopilot run and their statuses after the applied events."""

    def __init__(self) -> None:
        self.wanted: tuple[str, ...] = ()
        """The phases of this run."""
        self.statuses: dict[str, str] = {}
        self.needs: Mapping[str, Sequence[str]] = {}
        """The dependencies of each phase, if the caller sets them; events do not contain them."""
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
_COUNTED = frozenset((*RUN_TYPES, *NODE_TYPES))
_ENDS = frozenset({"run.completed", "run.failed", "run_finished", "run_completed", "run_halted"})
_GOOD_ENDS = frozenset({"completed", "committed"})
EVENT_VERSION = 1
"""The version of all events; a test compares it with the folds."""
_ALIVE = frozenset({"RUNNING", "DONE", "MERGE_READY", "MERGED"})
_OVER_BUDGET = ("over budget", "the budget")
"""How the reason of a run stopped by its budget begins; no text of an agent can begin a reason."""


class WatchEnd(StrEnum):
    """Why there is nothing more to watch."""

    COMPLETED = "completed"
    FAILED = "failed"
    BUDGET = "budget"
    PERSON = "person"
    """The run waits for a person."""


def status_text(status: str) -> str:
    """Return a status in words; the name of an event is returned unchanged."""
    return "plan review" if status == "plan_review" else status


class RunSummary:
    """The state of a run as a whole after the applied events."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.workflow = ""
        self.seq = 0
        self.status = "planning"
        """As in run-state.json for forge runs; the closest equivalent for others."""
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

    def apply_event(self, event: SummaryEvent) -> None:
        """Apply one event."""
        if event.version != EVENT_VERSION and event.type in _COUNTED:
            raise EventsBroken(
                f"run {self.run_id}: event {event.seq} has version {event.version}, expected {EVENT_VERSION}",
                next_step="use the version of Fair Witness that wrote it",
            )
        try:
            self._apply(event)
        except (KeyError, TypeError, ValueError):
            raise EventsBroken(
                f"run {self.run_id}: event {event.seq}, {visible(event.type)}, is malformed",
                next_step="fairwitness ledger verify",
            ) from None
        self.advance_to(event)

    def advance_to(self, event: SummaryEvent) -> None:
        """Record that everything up to this event is known, including events that need not be applied."""
        self.workflow, self.seq, self.last_time = event.workflow, event.seq, event.timestamp
        self.began = self.began or event.timestamp

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
            self.status = _STATUS.get(event.type) or str(data["outcome"])
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

    @property
    def word(self) -> str:
        """The status in words."""
        return status_text(self.status)

    @property
    def is_reviewed(self) -> bool:
        """Whether the plan waits for a person's review."""
        return self.status == "plan_review" and not self._is_autonomous

    def end(self, at_work: int) -> WatchEnd | None:
        """Return why there is nothing more to watch, or None; `at_work` is the number of running nodes."""
        if self.is_over:
            if self.status in _GOOD_ENDS:
                return WatchEnd.COMPLETED
            is_budget = self.status == "out_of_budget" or (self.reason or "").startswith(_OVER_BUDGET)
            return WatchEnd.BUDGET if is_budget else WatchEnd.FAILED
        if self.status == "waiting" or (self.is_reviewed and not self.is_approved):
            return WatchEnd.PERSON
        if self.workflow == AUTOPILOT:  # a question blocks nothing while another phase can run
            return WatchEnd.PERSON if self.status == "paused" else None
        is_held = self.status == "paused" or (self.status == "executing" and bool(self.asks))
        return WatchEnd.PERSON if is_held and not at_work else None

    def waits_for(self, at_work: str) -> str:
        """Return what the run waits for, which may be `at_work`; empty if it waits for nothing."""
        if self.is_over:
            return ""
        is_autopilot = self.workflow == AUTOPILOT
        match self.status:
            case "waiting" if is_autopilot:
                return f"your verdict on phase {', '.join(self.phases.at(DEFERRED))}"
            case "executing" if is_autopilot:
                return at_work
            case "paused" if is_autopilot:
                return f"you: fairwitness resume {self.run_id}"
            case "plan_review" if self.is_approved:
                return f"a worker: fairwitness resume {self.run_id}"
            case "plan_review":
                return "you, to approve its plan" if self.is_reviewed else ""
            case "executing" if self.asks and not at_work:
                return f"you, about {', '.join(sorted(self.asks))}"
            case "waiting":
                return "you, to answer its question"
            case "paused":
                return at_work or f"you: fairwitness resume {self.run_id}"
            case _:
                return at_work


class NodeStage(StrEnum):
    """The stage of a node's current attempt, in the words of the executor; `resting` is everything else."""

    WORKING = "working"
    QUEUED = "queued"
    MERGING = "merging"
    HELPING = "helping"
    WAITING = "waiting"
    RESTING = "resting"


class NodeView:
    """A node that at least one event mentions."""

    __slots__ = (
        *("agent", "attempt", "changed", "error", "helped", "is_exhausted", "most", "name", "since", "state"),
        "verified",
    )

    def __init__(self, name: str) -> None:
        self.name = name
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


class RunView(RunSummary):
    """The state of a run with the nodes of its graph."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self.nodes: dict[str, NodeView] = {}
        self.batch: tuple[str, ...] = ()
        """The nodes that are being merged."""
        self.max_attempts: int | None = None

    def _apply(self, event: SummaryEvent) -> None:
        data = event.data
        match event.type:
            case "node.changed":
                node = self._node(event)
                node.state, node.since, node.changed = str(data["newStatus"]), event.timestamp, event.seq
                node.attempt = int(data.get("attemptId") or node.attempt)
                node.error = str(data["reason"]) if data.get("reason") else node.error
                if node.state in _ALIVE:  # a later graph of the run started it again
                    node.is_exhausted = False
            case "task.started":
                self._node(event).agent = str(data["agent"])
            case "task.verified":
                self._node(event).verified = event.seq
            case "conflict.found":
                self._node(event).helped = event.seq
            case "task.retried":
                self._node(event).error = str(data["reason"])
            case "task.exhausted":
                node = self._node(event)
                node.error, node.is_exhausted = str(data["lastError"]), True
            case "task.reopened":
                node = self._node(event)
                node.is_exhausted, node.most = False, int(data["maxAttempts"])
            case "merge.started":
                self.batch = tuple(map(str, data["nodes"]))
            case "merge.finished":
                self.batch = ()
            case _:
                super()._apply(event)

    def _node(self, event: SummaryEvent) -> NodeView:
        name = str(event.data["nodeId"])
        return self.nodes.setdefault(name, NodeView(name))

    def stage(self, node: NodeView) -> NodeStage:
        """Return the stage of a node's attempt."""
        if node.state in ("DONE", "MERGE_READY"):
            return NodeStage.WAITING
        if node.state != "RUNNING":
            return NodeStage.RESTING
        if node.name in self.batch:
            return NodeStage.MERGING
        if node.last == node.changed:
            return NodeStage.WORKING
        return NodeStage.QUEUED if node.last == node.verified else NodeStage.HELPING

    def tries(self, node: NodeView) -> str:
        """Return the attempt of a node and its maximum, such as `2/3`."""
        return f"{node.attempt}/{node.most or self.max_attempts or '?'}"

    def at(self, *stages: NodeStage) -> list[NodeView]:
        """Return the nodes at these stages, the longest first."""
        found = [node for node in self.nodes.values() if self.stage(node) in stages]
        return sorted(found, key=lambda node: node.last)

    def exhausted(self) -> list[NodeView]:
        """Return the nodes without attempts left, in the order of their failure."""
        return sorted((node for node in self.nodes.values() if node.is_exhausted), key=lambda node: node.last)

    def counts(self) -> dict[str, int]:
        """Return the counts of run-state.json and the number of nodes per stage."""
        stages = [self.stage(node) for node in self.nodes.values()]
        return {
            "total": self.tasks,
            "merged": sum(node.state == "MERGED" for node in self.nodes.values()),
            "failed": sum(node.is_exhausted for node in self.nodes.values()),
            "running": sum(node.state == "RUNNING" for node in self.nodes.values()),
            **{stage.value: stages.count(stage) for stage in NodeStage if stage is not NodeStage.RESTING},
        }

    def waits(self) -> str:
        """Return what the run waits for in words; empty if it waits for nothing."""
        counts = self.counts()
        parts = ((counts["running"] - counts["queued"], "at work"), (counts["queued"], "to be merged"))
        return self.waits_for(", ".join(f"{count} {what}" for count, what in parts if count))

    def ended(self) -> WatchEnd | None:
        """Return why there is nothing more to watch, or None."""
        return self.end(sum(node.state == "RUNNING" for node in self.nodes.values()))
