"""Change requests: who may decide about one and when, and whether the captain's extension fits the plan.

A request goes from pending to approved and then to applied, or it is rejected. An approved request is rejected only if
the captain's extension does not fit, because then nothing can be applied.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.forge.dag import Dag, DagOverlay, NodeState
from fairwitness.contracts.forge.documents import ChangeRequestStatus
from fairwitness.contracts.forge.returns import CaptainReturn
from fairwitness.contracts.forge.status import DagStatus
from fairwitness.contracts.graph.forge_order import Decider
from fairwitness.rules.captain_answer import overlapping_writes
from fairwitness.rules.dag import apply_overlay, overlay_problems


class RequestDecision(StrEnum):
    """A decision about a change request."""

    APPROVE = "approve"
    REJECT = "reject"
    APPLY = "apply"


AFTER: Mapping[tuple[ChangeRequestStatus, RequestDecision], ChangeRequestStatus | None] = {
    (ChangeRequestStatus.PENDING, RequestDecision.APPROVE): ChangeRequestStatus.APPROVED,
    (ChangeRequestStatus.PENDING, RequestDecision.REJECT): ChangeRequestStatus.REJECTED,
    (ChangeRequestStatus.PENDING, RequestDecision.APPLY): None,
    (ChangeRequestStatus.APPROVED, RequestDecision.APPROVE): None,
    (ChangeRequestStatus.APPROVED, RequestDecision.REJECT): ChangeRequestStatus.REJECTED,
    (ChangeRequestStatus.APPROVED, RequestDecision.APPLY): ChangeRequestStatus.APPLIED,
    (ChangeRequestStatus.REJECTED, RequestDecision.APPROVE): None,
    (ChangeRequestStatus.REJECTED, RequestDecision.REJECT): None,
    (ChangeRequestStatus.REJECTED, RequestDecision.APPLY): None,
    (ChangeRequestStatus.APPLIED, RequestDecision.APPROVE): None,
    (ChangeRequestStatus.APPLIED, RequestDecision.REJECT): None,
    (ChangeRequestStatus.APPLIED, RequestDecision.APPLY): None,
}
"""The status after each decision; None if the decision is not allowed."""


def verdict_problem(
    status: ChangeRequestStatus, verdict: RequestDecision, *, actor: str, emitted_by: str, is_refused: bool
) -> str | None:
    """Return why this decision is not allowed, or None. `is_refused` means that the planned extension did not fit.

    >>> pending, approve = ChangeRequestStatus.PENDING, RequestDecision.APPROVE
    >>> verdict_problem(pending, approve, actor="r-1", emitted_by="r-1", is_refused=False)
    'r-1 emitted the request and cannot decide about it'
    """
    if _same(actor, emitted_by):
        return f"{actor} emitted the request and cannot decide about it"
    after = AFTER[status, verdict]
    if after is None or (
        status is ChangeRequestStatus.APPROVED and verdict is RequestDecision.REJECT and not is_refused
    ):
        return f"the request is {status.value}"
    return None


def _same(one: str, other: str) -> bool:
    return one.strip().casefold() == other.strip().casefold()


def extension_problems(
    answer: CaptainReturn, cr_id: str, dag: Dag, status: DagStatus, sealed: Mapping[str, str]
) -> tuple[Problem, ...]:
    """Return everything that forbids an extension by the captain; `sealed` maps the names of existing specs to their
    texts.
    """
    overlay = answer.overlay
    if overlay is None:
        return (Problem(where=("overlay",), expected="an overlay, or rejected", found="a whole new plan"),)
    return (
        *_about_another(overlay, cr_id),
        *_sealed(answer, sealed),
        *_unreached(overlay),
        *(overlay_problems(dag, overlay, status) or _written_twice(answer, dag, overlay, status)),
    )


def _written_twice(answer: CaptainReturn, dag: Dag, overlay: DagOverlay, status: DagStatus) -> tuple[Problem, ...]:
    over = {name for name, node in status.nodes.items() if node.status is NodeState.MERGED}
    return tuple(overlapping_writes(apply_overlay(dag, overlay).nodes, answer.tasks, over))


def _about_another(overlay: DagOverlay, cr_id: str) -> Iterator[Problem]:
    if overlay.crId != cr_id:
        yield Problem(where=("overlay", "crId"), expected=cr_id, found=overlay.crId)


def _sealed(answer: CaptainReturn, sealed: Mapping[str, str]) -> Iterator[Problem]:
    for index, spec in enumerate(answer.specs):
        if spec.name in sealed and sealed[spec.name] != spec.body:
            where = ("specs", index, "name")
            yield Problem(where=where, expected="a new name, since existing specifications are sealed", found=spec.name)
        if spec.replaces is not None and (spec.replaces not in sealed or spec.name in sealed):
            where = ("specs", index, "replaces")
            expected = "an existing specification, replaced by one with a new name"
            yield Problem(where=where, expected=expected, found=spec.replaces)


def _unreached(overlay: DagOverlay) -> Iterator[Problem]:
    if not overlay.addedNodes and not overlay.addedEdges:
        yield Problem(where=("overlay",), expected="at least one node or edge", found="nothing")


def usual_decider(mode: ApprovalMode) -> Decider:
    """Return who answers change requests if the settings do not say: an agent only where no person takes part.

    Refinery and captain are often the same model, which would approve its own request.

    >>> usual_decider(ApprovalMode.INTERACTIVE).value, usual_decider(ApprovalMode.AUTONOMOUS).value
    ('person', 'captain')
    """
    return Decider.CAPTAIN if mode is ApprovalMode.AUTONOMOUS else Decider.PERSON


def next_number(taken: Iterable[str]) -> str:
    """Return the id of the next change request.

    >>> next_number(["cr-001", "cr-007"])
    'cr-008'
    """
    return f"cr-{1 + max((int(name.removeprefix('cr-')) for name in taken), default=0):03d}"
