"""The view of a run: its summary in words, active nodes, what it waits for, and how it ended.

The ledger keeps the summary; no contract and no engine is loaded.
"""

from enum import StrEnum

from fairwitness.ledger.phase_summary import DEFERRED, IN_PROGRESS, NOT_STARTED
from fairwitness.ledger.run_summary import AUTOPILOT, NodeSummary, RunSummary

CANCELLED = "cancelled by"
"""How the reason of a cancelled run begins; such a run can be resumed."""
_WORDS = {DEFERRED: "waits for you", IN_PROGRESS: "in progress", NOT_STARTED: "not started"}


def phase_status_text(status: str) -> str:
    """Return the status of a phase in words.

    >>> [phase_status_text(status) for status in ("needs_human_verification", "completed")]
    ['waits for you', 'completed']
    """
    return _WORDS.get(status, status)


_GOOD_ENDS = frozenset({"completed", "committed"})
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


class NodeStage(StrEnum):
    """The stage of a node's current attempt, in the words of the executor; `resting` is everything else."""

    WORKING = "working"
    QUEUED = "queued"
    MERGING = "merging"
    HELPING = "helping"
    WAITING = "waiting"
    RESTING = "resting"


class RunView(RunSummary):
    """The summary of a run in words, and the stages of its nodes."""

    max_attempts: int | None = None

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

    def stage(self, node: NodeSummary) -> NodeStage:
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

    def tries(self, node: NodeSummary) -> str:
        """Return the attempt of a node and its maximum, such as `2/3`."""
        return f"{node.attempt}/{node.most or self.max_attempts or '?'}"

    def at(self, *stages: NodeStage) -> list[NodeSummary]:
        """Return the nodes at these stages, the longest first."""
        found = [node for node in self.nodes.values() if self.stage(node) in stages]
        return sorted(found, key=lambda node: node.last)

    def exhausted(self) -> list[NodeSummary]:
        """Return the nodes without attempts left, in the order of their failure."""
        return sorted((node for node in self.nodes.values() if node.is_exhausted), key=lambda node: node.last)

    def counts(self) -> dict[str, int]:
        """Return the counts of run-state.json and the number of nodes per stage."""
        stages = [self.stage(node) for node in self.nodes.values()]
        return {
            "total": self.tasks,
            **self.counted,
            **{stage.value: stages.count(stage) for stage in NodeStage if stage is not NodeStage.RESTING},
        }

    def waits(self) -> str:
        """Return what the run waits for in words; empty if it waits for nothing."""
        counts = self.counts()
        parts = ((counts["running"] - counts["queued"], "at work"), (counts["queued"], "to be merged"))
        return self.waits_for(", ".join(f"{count} {what}" for count, what in parts if count))

    def ended(self) -> WatchEnd | None:
        """Return why there is nothing more to watch, or None."""
        return self.end(self.counted["running"])
