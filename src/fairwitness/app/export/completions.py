"""The completion contract of agents: when to report done, revision or failure, and what else it contains."""

from collections.abc import Iterator, Mapping

from fairwitness.contracts.common.completion import Agent
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.vocabulary import Status
from fairwitness.contracts.feature.document import SIGNATURES, Presence

_RESEARCHERS = Policy().researchers

CONDITIONS: Mapping[tuple[Agent, Status], str] = {
    (Agent.ORCHESTRATOR, Status.DONE): "the last step is reached, and you said with which confidence.",
    (Agent.ORCHESTRATOR, Status.ERROR): "a step failed for good, a blocker was found, or a person ended the run.",
    (Agent.RESEARCHER, Status.DONE): "every finding has its place, and the document is written.",
    (Agent.RESEARCHER, Status.ERROR): "the repository could not be read, or nothing in it belongs to your focus.",
    (Agent.SPEC, Status.DONE): "every functional requirement has a criterion, and the pushback is on record.",
    (Agent.SPEC, Status.ERROR): f"fewer than {_RESEARCHERS} foci were researched, or a person abandoned the request.",
    (Agent.DESIGNER, Status.DONE): "every requirement is met by a decision or has a deviation record.",
    (Agent.DESIGNER, Status.ERROR): "the specification contradicts itself or is not there.",
    (
        Agent.REVIEWER,
        Status.DONE,
    ): "all three categories are judged, however badly: the verdict routes, not the status.",
    (Agent.REVIEWER, Status.ERROR): "what is under review could not be opened.",
    (Agent.PLANNER, Status.DONE): "every requirement is reached by a task, and every task document is written.",
    (Agent.PLANNER, Status.NEEDS_REVISION): "in replan mode only: the design itself must change. It routes like DONE.",
    (Agent.PLANNER, Status.ERROR): "specification or design is not there, or the tasks cannot be put in an order.",
    (Agent.IMPLEMENTER, Status.DONE): "the task was carried out, or tried and its failures stand in `self_check`.",
    (Agent.IMPLEMENTER, Status.ERROR): "the task could not be begun.",
    (Agent.VERIFIER, Status.DONE): "every check and every criterion passed.",
    (
        Agent.VERIFIER,
        Status.NEEDS_REVISION,
    ): "a check failed, something regressed, or the reported baseline is not true.",
    (Agent.VERIFIER, Status.ERROR): "the task could not be verified at all.",
    (Agent.KNOWLEDGE, Status.DONE): "what was learnt is written down; nothing learnt is an answer, too.",
    (Agent.KNOWLEDGE, Status.ERROR): "the documents of the run could not be read. The run goes on all the same.",
}

_SAID: Mapping[Presence, str] = {
    Presence.REQUIRED: "always filled",
    Presence.NULL: "always null",
    Presence.FREE: "null where it says nothing",
}


def contract(agent: Agent, *, signs: bool) -> str:
    """Return the completion contract of an agent in words; `signs` if its document contains the completion."""
    return "\n".join(_lines(agent, signs=signs))


def _lines(agent: Agent, *, signs: bool) -> Iterator[str]:
    signature = SIGNATURES[agent]
    for status in Status:
        if status in signature.statuses:
            yield f"- **{status.value}**: {CONDITIONS[agent, status]}"
    yield ""
    named = (
        ("severity", signature.severity),
        ("risk_level", signature.risk_level),
        ("evidence_summary", signature.evidence_summary),
    )
    yield "; ".join(f"`{name}` is {_SAID[presence]}" for name, presence in named) + "."
    if not signs:
        yield "Your answer has no `completion`: send a `completion-contract` beside it."
