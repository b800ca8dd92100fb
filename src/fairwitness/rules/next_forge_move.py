"""The progress of a forge run, folded from its events, and its next move."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.forge.documents import ChangeRequestStatus
from fairwitness.contracts.graph.forge_order import Decider, ForgeTable


class RequestProgress(NamedTuple):
    """The progress of a change request."""

    status: ChangeRequestStatus
    emitted_by: str
    refused: int = 0
    """How many of the captain's extensions for it did not fit."""


class ForgeProgress(NamedTuple):
    """The progress of a forge run."""

    proposals: int = 0
    """The number of plans that the captain proposed."""
    is_proposed: bool = False
    """Whether the last plan is still proposed."""
    is_approved: bool = False
    is_started: bool = False
    is_over: bool = False
    asked: int = 0
    """The last interview round in which the captain asked questions; 0 if none."""
    answered: int = 0
    """The last round that a person answered, or ended by returning the plan."""
    returned: int = 0
    """How many times a person returned a plan."""
    requests: Mapping[str, RequestProgress] = {}
    gates: tuple[str, ...] = ()
    """The names of the answered questions."""

    def active(self) -> tuple[str, ...]:
        """Return the unfinished requests, oldest first."""
        ended = (ChangeRequestStatus.REJECTED, ChangeRequestStatus.APPLIED)
        return tuple(name for name, request in self.requests.items() if request.status not in ended)


def forge_progress(envelopes: Iterable[Envelope], onto: ForgeProgress = ForgeProgress()) -> ForgeProgress:  # noqa: B008  # it cannot be changed
    """Return the progress after these events."""
    course = onto
    for envelope in envelopes:
        before = _gate(course)
        course = _after(course, envelope)
        if before is not None and before != _gate(course):
            course = course._replace(gates=(*course.gates, before))
    return course


def _gate(course: ForgeProgress) -> str | None:
    """Return the question that waits for an answer in an interactive run."""
    return next_move(course, ApprovalMode.INTERACTIVE, ForgeTable(change_requests=Decider.PERSON)).gate


def _after(course: ForgeProgress, envelope: Envelope) -> ForgeProgress:
    data = envelope.data
    match envelope.type:
        case "captain.message" if "round" in data:
            spoken = {"asked": data["round"]} if data["speaker"] == "captain" else {"answered": data["round"]}
            return course._replace(**spoken)
        case "plan.proposed":
            made = 0 if course.is_proposed else 1  # a plan that a person edited still counts as the captain's
            return course._replace(proposals=course.proposals + made, is_proposed=True)
        case "plan.approved":
            return course._replace(is_approved=True)
        case "plan.returned":
            # returning a plan answers the questions that came with it, so they are not asked again
            return course._replace(is_proposed=False, returned=course.returned + 1, answered=course.asked)
        case "run.started":
            return course._replace(is_started=True)
        case "run.completed" | "run.failed":
            return course._replace(is_over=True)
        case "run.resumed":
            return course._replace(is_over=False)
        case "cr.emitted":
            return _request(course, data["crId"], RequestProgress(ChangeRequestStatus.PENDING, data["emittedBy"]))
        case "cr.approved" | "cr.rejected" | "overlay.applied" if data["crId"] in course.requests:
            return _request(course, data["crId"], course.requests[data["crId"]]._replace(status=_MEANS[envelope.type]))
        case "overlay.refused" if data["crId"] in course.requests:
            known = course.requests[data["crId"]]
            return _request(course, data["crId"], known._replace(refused=known.refused + 1))
        case _:
            return course


_MEANS: Mapping[str, ChangeRequestStatus] = {
    "cr.approved": ChangeRequestStatus.APPROVED,
    "cr.rejected": ChangeRequestStatus.REJECTED,
    "overlay.applied": ChangeRequestStatus.APPLIED,
}


def _request(course: ForgeProgress, cr_id: str, request: RequestProgress) -> ForgeProgress:
    return course._replace(requests={**course.requests, cr_id: request})


class ForgeMoveKind(StrEnum):
    """The kinds of moves of a forge run."""

    PLAN = "plan"
    """Ask the captain for a plan."""
    WAIT = "wait"
    """Wait for a person."""
    SEAL = "seal"
    """Approve the plan without asking a person."""
    START = "start"
    EXECUTE = "execute"
    REPLAN = "replan"
    """Ask the captain about a change request."""
    END = "end"


class ForgeMove(NamedTuple):
    """The next move and its subject."""

    kind: ForgeMoveKind
    gate: str | None = None
    """The question to wait for."""
    request: str | None = None


INTERVIEW, REVIEW = "interview", "plan-review"


def next_move(course: ForgeProgress, mode: ApprovalMode, limits: ForgeTable) -> ForgeMove:
    """Return the next move of a run."""
    if course.is_over:
        return ForgeMove(ForgeMoveKind.END)
    if not course.is_approved:
        return _planning(course, mode)
    if not course.is_started:
        return ForgeMove(ForgeMoveKind.START)
    active = course.active()
    if not active:
        return ForgeMove(ForgeMoveKind.EXECUTE)
    first = course.requests[active[0]]
    if first.status is ChangeRequestStatus.PENDING and limits.change_requests is Decider.PERSON:
        return ForgeMove(ForgeMoveKind.WAIT, gate=active[0], request=active[0])
    return ForgeMove(ForgeMoveKind.REPLAN, request=active[0])


def _planning(course: ForgeProgress, mode: ApprovalMode) -> ForgeMove:
    if not course.is_proposed:
        return ForgeMove(ForgeMoveKind.PLAN)
    if mode is ApprovalMode.AUTONOMOUS:
        return ForgeMove(ForgeMoveKind.SEAL)
    if course.asked > course.answered:
        return ForgeMove(ForgeMoveKind.WAIT, gate=f"{INTERVIEW}.{course.asked}")
    return ForgeMove(ForgeMoveKind.WAIT, gate=f"{REVIEW}.{course.proposals}")
