"""The log of a forge run: its order, the proposed plans, the approved plan, and the messages about them.

The log is the only source of truth about the run. The run's files are written from it and read back only when a plan is
approved, because a person may have edited them.
"""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from fairwitness.contracts.common.budgets import BudgetTable
from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.common.evidence import Observation
from fairwitness.contracts.forge.dag import NodeType
from fairwitness.contracts.forge.events import (
    CaptainMessage,
    ForgeRunResumed,
    PlanApproved,
    PlanProposed,
    PlanReturned,
    RunCreated,
)
from fairwitness.contracts.graph.forge_order import ForgeOrder, ForgePlan
from fairwitness.contracts.verify.run_settings import RunSettings
from fairwitness.errors import UsageError
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.documents import Format, render
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.kept import recorded
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.rules.dag import is_exhausted
from fairwitness.rules.graph_events import reopened
from fairwitness.rules.next_forge_move import ForgeProgress, forge_progress
from fairwitness.runs.graph.log import GRAPH, GraphLog, plain_graph

ORDER, BUDGET, PROPOSAL, DOCUMENT, SPEC = "order", "budget", "proposal", "document", "spec"

NOBODY: Final = "fairwitness (autonomous run)"
"""The approver if no person takes part."""

REVIEWING = frozenset({"plan.proposed", "plan.approved", "plan.returned", "captain.message", "run.failed"})
"""The events that change which plan is under review, or whether one is."""


class ForgeLog(GraphLog):
    """The log of one forge run."""

    def __init__(self, ledger: Ledger, run_id: str, *, clock: Clock = system_clock) -> None:
        super().__init__(ledger, run_id, clock=clock)
        self._order: ForgeOrder | None = None
        self._course, self._course_seq = ForgeProgress(), 0
        self._guard = threading.Lock()

    def create(self, order: ForgeOrder, *, repo_url: str, model: str) -> None:
        """Write the first record of a run; the ledger refuses a run id that exists."""
        now = self.now()
        created = RunCreated(
            repoUrl=repo_url,
            model=model,
            request=order.request,
            mode=order.mode,
            decider=order.limits.change_requests.value,
        )

        def write(record: Record) -> None:
            record.observation(self.observation(ORDER, ORDER, self.run_id, {"order": order.plain()}, now))
            self.put_events(record, (created,), now)

        self.write_first(write)
        killpoint("forge.begun")

    def order(self) -> ForgeOrder | None:
        """Return the order of the run, or None if it started with a graph that was planned elsewhere."""
        if self._order is None:
            row = self.ledger.observation(self.run_id, ORDER)
            self._order = None if row is None else recorded(ForgeOrder, row, "order")
        return self._order

    def settings(self) -> RunSettings:
        """Return the settings in force when the run started: checks and agents."""
        return self.order() or RunSettings.model_validate(self.begun().settings)

    def budget(self) -> BudgetTable:
        """Return the budget of the run; resuming a run may have raised it."""
        order, raised = self.order(), self.ledger.observations(self.run_id, BUDGET)
        assert order is not None
        return recorded(BudgetTable, raised[-1]) if raised else order.budget

    def resume(self, budget: BudgetTable) -> None:
        """Record that a paused or failed run continues."""
        now = self.now()
        number = 1 + len(self.ledger.observations(self.run_id, BUDGET))
        is_other = self.order() is not None and budget != self.budget()

        def write(record: Record) -> None:
            if is_other:
                record.observation(self.observation(f"{BUDGET}:{number}", BUDGET, self.run_id, budget.plain(), now))
            self.put_events(record, (ForgeRunResumed(),), now)

        self.ledger.record(self.run_id, write)

    def course(self) -> ForgeProgress:
        """Return the progress of the run."""
        return self._position()[0]

    def _position(self) -> tuple[ForgeProgress, int]:
        with self._guard:
            for envelope in self.ledger.events(self.run_id, after=self._course_seq):
                self._course, self._course_seq = forge_progress((envelope,), self._course), envelope.seq
            return self._course, self._course_seq

    def propose(self, plan: ForgePlan, *, asked: int | None = None) -> None:
        """Propose a plan; `asked` is the interview round that its questions open."""
        now = self.now()
        events: list[EventData] = [_proposed(plan)]
        if asked is not None:
            events.append(CaptainMessage(speaker="captain", text="\n".join(plan.questions), round=asked))
        proposal = self._proposal(plan, now)

        def write(record: Record) -> None:
            record.observation(proposal)
            self.put_events(record, events, now)

        self.ledger.record(self.run_id, write)
        killpoint("forge.proposed")

    def proposal(self) -> ForgePlan | None:
        """Return the last proposed plan, or None."""
        rows = self.ledger.observations(self.run_id, PROPOSAL)
        return recorded(ForgePlan, rows[-1]) if rows else None

    def seal(self, plan: ForgePlan, actor: str) -> None:
        """Approve a plan as it is now; from here on the run uses only this record."""
        order = self.order()
        assert order is not None
        now = self.now()
        documents = {task.id: document_of(task.plain()) for task in plan.tasks}
        detail = plain_graph(plan.dag, order.options, order.base_commit, documents, {})
        detail["specs"] = {spec.name: spec.body for spec in plan.specs}
        edited = self._proposal(plan, now) if plan != self.proposal() else None

        def write(record: Record) -> None:
            if edited is not None:
                record.observation(edited)
                self.put_events(record, (_proposed(plan),), now)
            record.observation(self.observation(GRAPH, GRAPH, self.run_id, detail, now))
            self.put_events(record, (PlanApproved(actor=actor),), now)

        self._review(write)
        killpoint("forge.sealed")

    def is_approved_by_person(self) -> bool:
        """Return whether a person approved the plan."""
        events = self.ledger.events(self.run_id)
        return any(event.type == "plan.approved" and event.data["actor"] != NOBODY for event in events)

    def give_back(self, actor: str, feedback: str, *, answers: int | None = None) -> None:
        """Return the plan to the captain; `answers` is the interview round that this answers."""
        events: tuple[EventData, ...] = (PlanReturned(actor=actor, feedback=feedback),)
        if answers is not None:
            events = (CaptainMessage(speaker="user", text=feedback, round=answers), *events)
        self.review(*events)

    def review(self, *events: EventData) -> None:
        """Record a person's answer about the current plan, unless another answer came first."""
        now = self.now()
        self._review(lambda record: self.put_events(record, events, now))

    def _review(self, write: Callable[[Record], None]) -> None:
        course, seq = self._position()

        def once(record: Record) -> bool:
            if record.has_event(after=seq, types=REVIEWING):
                return False
            write(record)
            return True

        is_open = course.is_proposed and not course.is_approved and not course.is_over
        if not is_open or not self.ledger.record(self.run_id, once):
            raise UsageError(
                f"the plan of {self.run_id} has been answered already", next_step=f"fairwitness status {self.run_id}"
            )

    def specs(self) -> dict[str, str]:
        """Return the approved specs and those added since, by name."""
        row = self.ledger.observation(self.run_id, GRAPH)
        sealed: Mapping[str, str] = {} if row is None else row.detail.get("specs", {})
        added = {row.subject: str(row.detail["body"]) for row in self.ledger.observations(self.run_id, SPEC)}
        return {**sealed, **added}

    def specs_in_force(self) -> dict[str, str]:
        """Return the specs that no later one replaces, by name."""
        rows = self.ledger.observations(self.run_id, SPEC)
        replaced = {row.detail["replaces"] for row in rows if row.detail.get("replaces")}
        return {name: body for name, body in self.specs().items() if name not in replaced}

    def document(self, node: str) -> str:
        """Return a task's document; nodes of an overlay have their own, and a refinery needs only its inputs."""
        row = self.ledger.observation(self.run_id, f"{DOCUMENT}:{node}")
        if row is not None:
            return str(row.detail["text"])
        inputs = {each.id: each.dependencies for each in self.effective()[1].nodes if each.type is NodeType.REFINERY}
        if node in inputs and node not in self.begun().documents:
            return f"Join {', '.join(inputs[node])}, so that the tests of all of them hold together."
        return super().document(node)

    def reopen(self, node: str, actor: str, *, more: int = 1) -> None:
        """Give an exhausted node more attempts, and make it pending again."""
        while True:
            run = self.run()
            status = run.nodes.get(node)
            if status is None:
                raise UsageError(f"there is no node {node}", next_step=f"fairwitness dag show {self.run_id}")
            if not is_exhausted(status):
                raise UsageError(
                    f"{node} is {status.status.value}, attempt {status.currentAttempt} of {status.maxAttempts}",
                    next_step="only a task without attempts left needs a retry",
                )
            if self.write(partial(reopened, status, more, actor), after=run.seq):
                return

    def _proposal(self, plan: ForgePlan, now: str) -> Observation:
        number = 1 + len(self.ledger.observations(self.run_id, PROPOSAL))
        return self.observation(f"{PROPOSAL}:{number}", PROPOSAL, self.run_id, plan.plain(), now)


def _proposed(plan: ForgePlan) -> PlanProposed:
    return PlanProposed(tasks=plan.dag.metadata.totalTasks, refineries=plan.dag.metadata.totalRefineries)


def document_of(plain: Mapping[str, object]) -> str:
    """Return a document with front matter, as its file contains it."""
    return render(dict(plain), Format.MARKDOWN)
