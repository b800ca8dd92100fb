"""The briefs of the captain: for a plan, or for a change request to the current plan.

Text by a person or an agent goes into prompt sections. Building a brief writes nothing, so it can be repeated.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from fairwitness.contracts.agents.dispatch import Brief, PromptSection
from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.forge.dag import Dag
from fairwitness.contracts.graph.forge_order import ForgeOrder, ForgePlan
from fairwitness.errors import UsageError
from fairwitness.kit.clock import spell
from fairwitness.kit.json_text import render
from fairwitness.runs.forge.change_requests import RequestState, request_state
from fairwitness.runs.forge.log import ForgeLog, document_of
from fairwitness.runs.forge.walkthroughs import last_walkthrough
from fairwitness.runs.shared.sections import list_section

PLAN, REPLAN = "plan", "replan"
_TO_A_PERSON: Final = (
    "What only the person can say goes under `open_questions`: it is asked, and you are called again with the answer."
)
_TO_NOBODY: Final = "Nobody can be asked any more: decide what is open, and write it under `assumptions`."


class PlanMessageKind(StrEnum):
    """The kinds of messages between captain and person."""

    ASKED = "The captain asked"
    ANSWERED = "The person answered"
    RETURNED = "The person sent the plan back"


class PlanMessage(NamedTuple):
    """One message."""

    kind: PlanMessageKind
    text: str


def plan_messages(envelopes: Iterable[Envelope]) -> tuple[PlanMessage, ...]:
    """Return all messages so far; an answer that also returned the plan appears once, as an answer."""
    return tuple(_sayings(envelopes))


def _sayings(envelopes: Iterable[Envelope]) -> Iterator[PlanMessage]:
    answer: tuple[int, str] | None = None
    for envelope in envelopes:
        data = envelope.data
        if envelope.type == "captain.message" and data["speaker"] == "captain":
            yield PlanMessage(PlanMessageKind.ASKED, data["text"])
        elif envelope.type == "captain.message":
            answer = (envelope.seq, data["text"])
            yield PlanMessage(PlanMessageKind.ANSWERED, data["text"])
        elif envelope.type == "plan.returned" and answer != (envelope.seq - 1, data["feedback"]):
            yield PlanMessage(PlanMessageKind.RETURNED, data["feedback"])


class CaptainBriefs:
    """The briefs of one run."""

    def __init__(self, log: ForgeLog) -> None:
        self._log = log

    def plan(self, dispatch_id: str, number: int) -> Brief:
        """Return the brief for the plan with this number."""
        order = self._order()
        last = self._log.proposal()
        said = plan_messages(self._log.ledger.events(self._log.run_id))
        task = "Plan what the request asks for."
        if last is not None:
            task = "Make a new plan of your last one and of what the person said since, and return all of it."
        return Brief(
            dispatch_id=dispatch_id,
            run_id=self._log.run_id,
            role=Role.CAPTAIN,
            instance=plan_instance(number),
            task=f"{task} {_TO_A_PERSON if self.may_ask() else _TO_NOBODY}",
            parameters={"mode": PLAN},
            inputs=(
                PromptSection(title="The request", text=order.request),
                *_talk(said),
                *(() if last is None else _proposed(last)),
            ),
            known={
                "dag.version": 1,
                "dag.runId": self._log.run_id,
                "dag.metadata.createdAt": spell(self._log.clock()),
                "dag.metadata.createdBy": "captain",
                # a plan has neither, so the captain is not asked for them
                "overlay": None,
                "rejected": None,
                "specs[].replaces": None,
            },
        )

    def may_ask(self) -> bool:
        """Return whether a person answers the questions of the next plan."""
        order = self._order()
        asked = self._log.course().asked
        return order.mode is ApprovalMode.INTERACTIVE and asked < order.limits.interview_rounds

    def replan(self, dispatch_id: str, cr_id: str) -> Brief:
        """Return the brief for a change request; the overlay gets its number and time when it is applied."""
        state = request_state(self._log, cr_id)
        return Brief(
            dispatch_id=dispatch_id,
            run_id=self._log.run_id,
            role=Role.CAPTAIN,
            instance=request_instance(cr_id),
            task=f"Answer change request {cr_id}: say in `overlay` what it adds to the plan, or why it is `rejected`."
            " Nobody can be asked.",
            parameters={"mode": REPLAN},
            inputs=tuple(self._current_plan(state)),
            known={
                "dag": None,  # the current graph does not change
                "overlay.crId": cr_id,
                "overlay.appliedAt": spell(self._log.clock()),
            },
        )

    def _current_plan(self, state: RequestState) -> Iterator[PromptSection]:
        log, request = self._log, state.request
        _, dag = log.effective()
        order = log.order()
        if order is not None:
            yield PromptSection(title="The request", text=order.request)
        yield PromptSection(title=f"Change request {request.id}", text=document_of(request.plain()))
        yield from list_section("Why your last answer could not be applied", state.refused[-1] if state.refused else ())
        yield PromptSection(title="The graph, each node with its state", text=render(self._with_states(dag)))
        for name, body in log.specs_in_force().items():
            yield PromptSection(title=f"Spec {name}, which does not change", text=body)
        for node in dag.nodes:
            try:
                yield PromptSection(title=f"Task {node.id}, which does not change", text=log.document(node.id))
            except UsageError:  # a refinery needs no document
                continue
        for node in dag.nodes:
            kept = last_walkthrough(log, node.id)
            if kept is not None:
                yield PromptSection(title=f"Walkthrough of {node.id}", text=kept.text)

    def _with_states(self, dag: Dag) -> dict[str, Any]:
        plain, states = dag.plain(), self._log.run().nodes
        for node in plain["nodes"]:
            node["status"] = states[node["id"]].status.value
        return plain

    def _order(self) -> ForgeOrder:
        order = self._log.order()
        assert order is not None, f"run {self._log.run_id} was planned by somebody else"
        return order


def plan_instance(number: int) -> str:
    """Return the name of the agent that makes the plan with this number."""
    return f"captain-{number}"


def request_instance(cr_id: str) -> str:
    """Return the name of the agent that answers a change request."""
    return f"captain-{cr_id}"


def _talk(said: Sequence[PlanMessage]) -> tuple[PromptSection, ...]:
    if not said:
        return ()
    text = "\n\n".join(f"{saying.kind.value}:\n{saying.text or '(nothing)'}" for saying in said)
    return (PromptSection(title="What was said so far", text=text),)


def _proposed(plan: ForgePlan) -> Iterator[PromptSection]:
    yield PromptSection(title="Your last plan: the graph", text=render(plan.dag.plain()))
    for spec in plan.specs:
        yield PromptSection(title=f"Your last plan: spec {spec.name}", text=spec.body)
    for task in plan.tasks:
        yield PromptSection(title=f"Your last plan: task {task.id}", text=document_of(task.plain()))
    yield from list_section("Your last plan: assumptions", plan.assumptions)
