"""What the seven signed documents of the pipeline have in common: a header with a payload, and a completion.

Which agent may return which status, and which completion fields it must or must not fill, is data here; every
document checks itself against its own row.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Generic, NamedTuple, Self, TypeVar

from pydantic import model_validator

from fairwitness.contracts.common.base import AgentDocument
from fairwitness.contracts.common.completion import Completion, FeatureAgent, Header
from fairwitness.contracts.common.problems import FieldRefusal, refuse_if_any
from fairwitness.contracts.common.vocabulary import CompletionStatus


class Presence(StrEnum):
    """Whether a completion field must be filled, must be null, or may be either."""

    REQUIRED = "required"
    NULL = "null"
    FREE = "free"


class Signature(NamedTuple):
    """What one agent's completion may look like."""

    statuses: frozenset[CompletionStatus]
    severity: Presence
    risk_level: Presence
    evidence_summary: Presence


_DONE_OR_ERROR = frozenset({CompletionStatus.DONE, CompletionStatus.ERROR})
_ANY = frozenset(CompletionStatus)
_NULLS = (Presence.NULL, Presence.NULL, Presence.NULL)

SIGNATURES: Mapping[FeatureAgent, Signature] = {
    FeatureAgent.ORCHESTRATOR: Signature(_DONE_OR_ERROR, *_NULLS),
    FeatureAgent.RESEARCHER: Signature(_DONE_OR_ERROR, *_NULLS),
    FeatureAgent.SPEC: Signature(_DONE_OR_ERROR, *_NULLS),
    # The field table wants a null risk here, the published example carries a colour: both are read.
    FeatureAgent.DESIGNER: Signature(_DONE_OR_ERROR, Presence.NULL, Presence.FREE, Presence.NULL),
    # A reviewer signs no document; the harness records its completion under this row.
    FeatureAgent.REVIEWER: Signature(_DONE_OR_ERROR, Presence.FREE, Presence.REQUIRED, Presence.FREE),
    # NEEDS_REVISION from a planner happens in replan mode only and is routed as DONE.
    FeatureAgent.PLANNER: Signature(_ANY, Presence.NULL, Presence.REQUIRED, Presence.NULL),
    FeatureAgent.IMPLEMENTER: Signature(_DONE_OR_ERROR, *_NULLS),
    FeatureAgent.VERIFIER: Signature(_ANY, Presence.FREE, Presence.NULL, Presence.FREE),
    FeatureAgent.KNOWLEDGE: Signature(_DONE_OR_ERROR, *_NULLS),
}


def signature_refusals(agent: FeatureAgent, completion: Completion) -> tuple[FieldRefusal, ...]:
    """Every way in which a completion is not one this agent may give; places are relative to the completion."""
    signature = SIGNATURES[agent]
    refusals = []
    if completion.status not in signature.statuses:
        allowed = " or ".join(status.value for status in CompletionStatus if status in signature.statuses)
        refusals.append(FieldRefusal(("status",), f"{allowed} from {agent.value}", completion.status.value))
    for name, presence, value in (
        ("severity", signature.severity, completion.severity),
        ("risk_level", signature.risk_level, completion.risk_level),
        ("evidence_summary", signature.evidence_summary, completion.evidence_summary),
    ):
        if presence is Presence.NULL and value is not None:
            refusals.append(FieldRefusal((name,), f"null from {agent.value}", value))
        if presence is Presence.REQUIRED and value is None:
            refusals.append(FieldRefusal((name,), f"a value from {agent.value}", value))
    return tuple(refusals)


PayloadT = TypeVar("PayloadT", bound=AgentDocument)


class Output(Header, Generic[PayloadT]):
    """The common header with an agent's own payload."""

    payload: PayloadT


class SignedDocument(AgentDocument, Generic[PayloadT]):
    """A document with header, payload and completion, signed by one kind of agent."""

    signer: ClassVar[FeatureAgent]

    agent_output: Output[PayloadT]
    completion: Completion

    @model_validator(mode="after")
    def _signed_by_the_right_agent(self) -> Self:
        refusals = [
            refusal._replace(where=("completion", *refusal.where))
            for refusal in signature_refusals(self.signer, self.completion)
        ]
        if self.agent_output.agent is not self.signer:
            refusals.append(
                FieldRefusal(("agent_output", "agent"), f"'{self.signer.value}'", self.agent_output.agent.value)
            )
        refuse_if_any(type(self).__name__, refusals)
        return self
