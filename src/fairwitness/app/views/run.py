"""Runs as people look at them: where each stands, what works now, what waits, and how it ended.

It is read from the last events that still count and follows new ones one by one. No contract and no engine is loaded;
what is shown here is what a fold of all events says, and a test holds the two equal.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from fairwitness.errors import EventsBroken
from fairwitness.kit.text import visible
from fairwitness.ledger.glance import NODE_TYPES, RUN_TYPES, Event

AUTOPILOT = "autopilot"
NOT_STARTED, IN_PROGRESS, COMPLETED, FAILED = "not_started", "in_progress", "completed", "failed"
DEFERRED, SKIPPED = "needs_human_verification", "skipped"
ALREADY = "already_completed"
"""Why a phase is skipped that an earlier run completed."""
_WORDS = {DEFERRED: "waits for you", IN_PROGRESS: "in progress", NOT_STARTED: "not started"}


def phase_status_text(status: str) -> str:
    """A phase's status as a person reads it.

    >>> [phase_status_text(status) for status in ("needs_human_verification", "completed")]
    ['waits for you', 'completed']
    """
    return _WORDS.get(status, status)


class PhaseStatuses:
    """The phases of a run after the events it was told of."""

    def __init__(self) -> None:
        self.wanted: tuple[str, ...] = ()
        """The phases that the run takes up."""
        self.statuses: dict[str, str] = {}
        self.needs: Mapping[str, Sequence[str]] = {}
        """Which phases each rests on, if whoever looks knows; events do not tell it."""
        self._done_before: set[str] = set()

    def apply_event(self, event: Event) -> None:
        """Goes one event on."""
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
        """The phases in a status, in the order of the run; the parts of a split one after the others."""
        order = (*self.wanted, *(phase for phase in self.statuses if phase not in self.wanted))
        return tuple(phase for phase in order if self.statuses[phase] == status)

    def counts(self) -> dict[str, int]:
        """How many of the wanted phases there are, are done, failed, and wait for a person."""
        of = [self.statuses[phase] for phase in self.wanted]
        return {
            "total": len(of),
            "completed": of.count(COMPLETED) + sum(phase in self._done_before for phase in self.wanted),
            "failed": of.count(FAILED),
            "deferred": of.count(DEFERRED),
        }

    @property
    def is_held(self) -> bool:
        """Whether nothing can go on before a person has said something."""
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
"""Of every event there is; held to what the folds read by a test."""
_ALIVE = frozenset({"RUNNING", "DONE", "MERGE_READY", "MERGED"})
_OVER_BUDGET = ("over budget", "the budget")
"""How the reason of a run begins that was stopped for its budget; no name and no agent's word can stand there."""


class WatchEnd(StrEnum):
    """Why there is nothing more to watch."""

    COMPLETED = "completed"
    FAILED = "failed"
    BUDGET = "budget"
    PERSON = "person"
    """It waits for somebody."""


def status_text(status: str) -> str:
    """A status as a person reads it; what is none, but the name of an event, stays as it is."""
    return "plan review" if status == "plan_review" else status


class RunSummary:
    """A run as a whole, after the events it was told of."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.workflow = ""
        self.seq = 0
        self.status = "planning"
        """As in run-state.json, for forge; the nearest word to it for the others."""
        self._unstarted = self.status
        """Where it goes on if it failed before it was started."""
        self.reason: str | None = None
        self.request = ""
        self.is_approved = False
        self.asks: frozenset[str] = frozenset()
        """The questions that nobody has answered."""
        self._is_autonomous = self._decides_requests = False
        """Whether nobody reviews the plan, and whether a person answers change requests."""
        self.is_over = False
        self.phases = PhaseStatuses()
        """Of an autopilot run; of others there are none."""
        self.tasks = 0
        self.began: str | None = None
        self.started: str | None = None
        self.last_time: str | None = None

    def apply_event(self, event: Event) -> None:
        """Goes one event on."""
        if event.version != EVENT_VERSION and event.type in _COUNTED:
            raise EventsBroken(
                f"run {self.run_id}: event {event.seq} is of version {event.version}, this Fair Witness reads {EVENT_VERSION}",
                next_step="use the Fair Witness that wrote it",
            )
        try:
            self._apply(event)
        except (KeyError, TypeError, ValueError):
            raise EventsBroken(
                f"run {self.run_id}: event {event.seq}, {visible(event.type)}, is not as it should be",
                next_step="fairwitness ledger verify",
            ) from None
        self.advance_to(event)

    def advance_to(self, event: Event) -> None:
        """Notes that everything up to this event is known, also what did not have to be looked at."""
        self.workflow, self.seq, self.last_time = event.workflow, event.seq, event.timestamp
        self.began = self.began or event.timestamp

    def _apply(self, event: Event) -> None:
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

    def _apply_to_phases(self, event: Event) -> None:
        """A run of phases may be paused without being over, and waits for verdicts when nothing else is left to do."""
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
        """Its status as a person reads it."""
        return status_text(self.status)

    @property
    def is_reviewed(self) -> bool:
        """Whether a person has its plan before them."""
        return self.status == "plan_review" and not self._is_autonomous

    def end(self, at_work: int) -> WatchEnd | None:
        """Why there is nothing more to watch; None while it goes on. `at_work` counts nodes that are not at rest."""
        if self.is_over:
            if self.status in _GOOD_ENDS:
                return WatchEnd.COMPLETED
            is_budget = self.status == "out_of_budget" or (self.reason or "").startswith(_OVER_BUDGET)
            return WatchEnd.BUDGET if is_budget else WatchEnd.FAILED
        if self.status == "waiting" or (self.is_reviewed and not self.is_approved):
            return WatchEnd.PERSON
        if self.workflow == AUTOPILOT:  # what it asks holds nothing up as long as another phase can go on
            return WatchEnd.PERSON if self.status == "paused" else None
        is_held = self.status == "paused" or (self.status == "executing" and bool(self.asks))
        return WatchEnd.PERSON if is_held and not at_work else None

    def waits_for(self, at_work: str) -> str:
        """What it waits for, in words, which may be what is at work; empty if for nothing."""
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
    """How far the current attempt of a node is; the words of the executor's own view, and `resting` for the rest."""

    WORKING = "working"
    QUEUED = "queued"
    MERGING = "merging"
    HELPING = "helping"
    WAITING = "waiting"
    RESTING = "resting"


class NodeView:
    """One node that something happened to."""

    __slots__ = (
        *("agent", "attempt", "changed", "error", "helped", "is_exhausted", "most", "name", "since", "state"),
        "verified",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = "PENDING"
        self.attempt = 1
        self.most: int | None = None
        """How many attempts it has, if a person gave it more than the run gives to each."""
        self.since = ""
        self.changed = self.verified = self.helped = 0
        """Where in the events it last changed its state, was verified, and was given to a helper."""
        self.error: str | None = None
        self.agent: str | None = None
        self.is_exhausted = False

    @property
    def last(self) -> int:
        """Where in the events it last moved on."""
        return max(self.changed, self.verified, self.helped)


class RunView(RunSummary):
    """A run of a graph with its nodes."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self.nodes: dict[str, NodeView] = {}
        self.batch: tuple[str, ...] = ()
        """The nodes that are being merged."""
        self.max_attempts: int | None = None

    def _apply(self, event: Event) -> None:
        data = event.data
        match event.type:
            case "node.changed":
                node = self._node(event)
                node.state, node.since, node.changed = str(data["newStatus"]), event.timestamp, event.seq
                node.attempt = int(data.get("attemptId") or node.attempt)
                node.error = str(data["reason"]) if data.get("reason") else node.error
                if node.state in _ALIVE:  # a later graph of the run took it up again
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

    def _node(self, event: Event) -> NodeView:
        name = str(event.data["nodeId"])
        return self.nodes.setdefault(name, NodeView(name))

    def stage(self, node: NodeView) -> NodeStage:
        """How far a node's attempt is."""
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
        """Which attempt a node is at, and how many it has."""
        return f"{node.attempt}/{node.most or self.max_attempts or '?'}"

    def at(self, *stages: NodeStage) -> list[NodeView]:
        """The nodes at these stages, those first that have been there longest."""
        found = [node for node in self.nodes.values() if self.stage(node) in stages]
        return sorted(found, key=lambda node: node.last)

    def exhausted(self) -> list[NodeView]:
        """The nodes that have no attempt left, in the order in which they failed for good."""
        return sorted((node for node in self.nodes.values() if node.is_exhausted), key=lambda node: node.last)

    def counts(self) -> dict[str, int]:
        """What run-state.json counts, and what is on its way."""
        stages = [self.stage(node) for node in self.nodes.values()]
        return {
            "total": self.tasks,
            "merged": sum(node.state == "MERGED" for node in self.nodes.values()),
            "failed": sum(node.is_exhausted for node in self.nodes.values()),
            "running": sum(node.state == "RUNNING" for node in self.nodes.values()),
            **{stage.value: stages.count(stage) for stage in NodeStage if stage is not NodeStage.RESTING},
        }

    def waits(self) -> str:
        """What it waits for, in words; empty if for nothing."""
        counts = self.counts()
        parts = ((counts["running"] - counts["queued"], "at work"), (counts["queued"], "to be merged"))
        return self.waits_for(", ".join(f"{count} {what}" for count, what in parts if count))

    def ended(self) -> WatchEnd | None:
        """Why there is nothing more to watch; None while it goes on."""
        return self.end(sum(node.state == "RUNNING" for node in self.nodes.values()))
