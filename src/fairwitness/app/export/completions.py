"""The completion contract of agents: when to report done, revision or failure, and what else it contains."""

from collections.abc import Iterator, Mapping

from fairwitness.contracts.common.completion import FeatureAgent
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.vocabulary import CompletionStatus
from fairwitness.contracts.feature.document import SIGNATURES, Presence

_RESEARCHERS = Policy().researchers

CONDITIONS: Mapping[tuple[FeatureAgent, CompletionStatus], str] = {
    (FeatureAgent.ORCHESTRATOR, CompletionStatus.DONE): "the last step is reached, and you said with which confidence.",
    (
        FeatureAgent.ORCHESTRATOR,
        CompletionStatus.ERROR,
    ): "a step failed for good, a blocker was found, or a person ended the run.",
    (FeatureAgent.RESEARCHER, CompletionStatus.DONE): "every finding has its place, and the document is written.",
    (
        FeatureAgent.RESEARCHER,
        CompletionStatus.ERROR,
    ): "the repository could not be read, or nothing in it belongs to your focus.",
    (
        FeatureAgent.SPEC,
        CompletionStatus.DONE,
    ): "every functional requirement has a criterion, and the pushback is on record.",
    (
        FeatureAgent.SPEC,
        CompletionStatus.ERROR,
    ): f"fewer than {_RESEARCHERS} foci were researched, or a person abandoned the request.",
    (FeatureAgent.DESIGNER, CompletionStatus.DONE): "every requirement is met by a decision or has a deviation record.",
    (FeatureAgent.DESIGNER, CompletionStatus.ERROR): "the specification contradicts itself or is not there.",
    (
        FeatureAgent.REVIEWER,
        CompletionStatus.DONE,
    ): "all three categories are judged, however badly: the verdict routes, not the status.",
    (FeatureAgent.REVIEWER, CompletionStatus.ERROR): "what is under review could not be opened.",
    (
        FeatureAgent.PLANNER,
        CompletionStatus.DONE,
    ): "every requirement is reached by a task, and every task document is written.",
    (
        FeatureAgent.PLANNER,
        CompletionStatus.NEEDS_REVISION,
    ): "in replan mode only: the design itself must change. It routes like DONE.",
    (
        FeatureAgent.PLANNER,
        CompletionStatus.ERROR,
    ): "specification or design is not there, or the tasks cannot be put in an order.",
    (
        FeatureAgent.IMPLEMENTER,
        CompletionStatus.DONE,
    ): "the task was carried out, or tried and its failures stand in `self_check`.",
    (FeatureAgent.IMPLEMENTER, CompletionStatus.ERROR): "the task could not be begun.",
    (FeatureAgent.VERIFIER, CompletionStatus.DONE): "every check and every criterion passed.",
    (
        FeatureAgent.VERIFIER,
        CompletionStatus.NEEDS_REVISION,
    ): "a check failed, something regressed, or the reported baseline is not true.",
    (FeatureAgent.VERIFIER, CompletionStatus.ERROR): "the task could not be verified at all.",
    (
        FeatureAgent.KNOWLEDGE,
        CompletionStatus.DONE,
    ): "the lessons are recorded; nothing learnt is an answer, too.",
    (
        FeatureAgent.KNOWLEDGE,
        CompletionStatus.ERROR,
    ): "the documents of the run could not be read. The run goes on all the same.",
}

_SAID: Mapping[Presence, str] = {
    Presence.REQUIRED: "always filled",
    Presence.NULL: "always null",
    Presence.FREE: "null where it says nothing",
}


def contract(agent: FeatureAgent, *, signs: bool) -> str:
    """Return the completion contract of an agent in words; `signs` if its document contains the completion."""
    return "\n".join(_lines(agent, signs=signs))


def _lines(agent: FeatureAgent, *, signs: bool) -> Iterator[str]:
    signature = SIGNATURES[agent]
    for status in CompletionStatus:
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
