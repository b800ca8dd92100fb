"""What the rules between fields ask of a generated document: each function makes one kind of document keep them.

A document is generated field by field, so sums, pairs and repeated names first fit by chance only. Filtering would
throw nearly all of them away; here the dependent field is set to what the others say.
"""

from collections.abc import Callable, Iterable
from typing import Any

from fairwitness.contracts.common.approvals import ApprovalRecord, ApprovalRequest
from fairwitness.contracts.common.vocabulary import CompletionStatus, Risk
from fairwitness.contracts.feature.document import SIGNATURES, Presence, SignedDocument
from fairwitness.contracts.feature.intake import IntakeReturn
from fairwitness.contracts.feature.pushback import PushbackLog
from fairwitness.contracts.forge.returns import CaptainReturn, RefineryReturn
from fairwitness.contracts.forge.status import DagStatus, NodeStatus, RunState

Plain = dict[str, Any]
Fitting = Callable[[Plain], None]
SOME_TIME = "2026-02-26T14:30:00Z"


def ordered(low: str, high: str) -> Fitting:
    """The lower of two numbers belongs into the first field."""

    def fit(document: Plain) -> None:
        document[low], document[high] = sorted((document[low], document[high]))

    return fit


def together(first: str, second: str) -> Fitting:
    """Two fields that are both null or both filled."""

    def fit(document: Plain) -> None:
        if document[first] is None or document[second] is None:
            document[first] = document[second] = None

    return fit


def distinct(items: Iterable[Plain], field: str) -> list[Plain]:
    """Only one entry for each value of a field."""
    return list({item[field]: item for item in items}.values())


def fit_signed(document: Plain, shape: type[SignedDocument[Any]]) -> None:
    """Signed by the shape's own agent, with the completion this agent may give."""
    signature = SIGNATURES[shape.signer]
    document["agent_output"]["agent"] = shape.signer.value
    said = document["completion"]
    if said["status"] not in signature.statuses:
        said["status"] = CompletionStatus.DONE.value
    for name in ("severity", "risk_level", "evidence_summary"):
        presence = getattr(signature, name)
        if presence is Presence.NULL:
            said[name] = None
        elif presence is Presence.REQUIRED and said[name] is None:
            said[name] = Risk.GREEN.value


def _request(document: Plain) -> None:
    for number, option in enumerate(document["options"]):
        if [other["id"] for other in document["options"]].count(option["id"]) > 1:
            option["id"] = f"option-{number}"
    chosen = document["options"][-1]["id"]
    for option in document["options"]:
        option["is_default"] = option["id"] == chosen


def _record(document: Plain) -> None:
    document["auto_selected"] = document["auto_selected"] and document["mode"] == "autonomous"


def _pushback(document: Plain) -> None:
    _record(document)
    document["concerns_identified"] = len(document["concerns"])


def _dag_status(document: Plain) -> None:
    for key, node in document["nodes"].items():
        node["taskId"] = key


def _run_state(document: Plain) -> None:
    if document.get("startedAt") is None:
        document["startedAt"] = SOME_TIME
    document["completedAt"] = SOME_TIME if document["status"] in ("completed", "failed") else None


def _intake(document: Plain) -> None:
    document["infeasible"] = any(concern["severity"] == "Blocker" for concern in document["concerns"])
    because = document["infeasible_because"] or "there is no such thing"
    document["infeasible_because"] = because if document["infeasible"] else None


def _captain(document: Plain) -> None:
    """Either a refusal alone, or the graph that the tasks draw."""
    graph = document.get("dag") or document.get("overlay")
    if graph is None:
        document |= {"specs": [], "tasks": [], "dag": None, "overlay": None}
        document["rejected"] = document.get("rejected") or "no"
        return
    is_dag = document.get("dag") is graph
    document |= {"rejected": None, "overlay": None if is_dag else graph, "dag": graph if is_dag else None}
    for task in document["tasks"]:
        task |= {"type": 2, "status": "PENDING", "branch": None, "attemptId": None}
    nodes = [
        {"id": task["id"], "type": "task", "agentType": 2, "dependencies": task["dependencies"], "status": "PENDING"}
        for task in document["tasks"]
    ]
    graph["nodes" if is_dag else "addedNodes"] = nodes
    if not is_dag:
        graph["addedEdges"] = []


def _refinery(document: Plain) -> None:
    for request in document["change_requests"]:
        request["status"] = "pending"
    if document["failing_tests"] or document["unmerged"]:
        document["walkthrough"]["status"] = "partial"


FITTINGS: dict[type, Fitting] = {
    IntakeReturn: _intake,
    CaptainReturn: _captain,
    RefineryReturn: _refinery,
    ApprovalRequest: _request,
    ApprovalRecord: _record,
    PushbackLog: _pushback,
    NodeStatus: ordered("currentAttempt", "maxAttempts"),
    DagStatus: _dag_status,
    RunState: _run_state,
}
