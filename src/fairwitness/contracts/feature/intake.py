"""The result of the intake step: concerns about a request, and whether it is feasible."""

from typing import Self

from pydantic import model_validator

from fairwitness.contracts.common.base import AgentDocument, Flag, Text
from fairwitness.contracts.common.problems import FieldRefusal, refuse_if_any
from fairwitness.contracts.common.vocabulary import Severity
from fairwitness.contracts.feature.pushback import Concern


class IntakeReturn(AgentDocument):
    """The answer of the intake role; a run stops here only if the request is impossible."""

    understanding: Text
    """The request in the agent's own words, to reveal a misunderstanding before work starts."""
    concerns: tuple[Concern, ...]
    """The concerns; an empty list records that there are none."""
    infeasible: Flag
    """True only if the request is impossible; a bad idea is a concern."""
    infeasible_because: Text | None
    """What makes it impossible; null if it is possible."""

    @model_validator(mode="after")
    def _one_verdict(self) -> Self:
        refusals = []
        if self.infeasible is (self.infeasible_because is None):
            expected = "the reason, since it is infeasible" if self.infeasible else "null, since it is feasible"
            refusals.append(FieldRefusal(("infeasible_because",), expected, self.infeasible_because))
        blocked = any(concern.severity is Severity.BLOCKER for concern in self.concerns)
        if self.infeasible is not blocked:
            expected = "a Blocker, since it is infeasible" if self.infeasible else "no Blocker, since it is feasible"
            refusals.append(
                FieldRefusal(("concerns",), expected, [concern.severity.value for concern in self.concerns])
            )
        refuse_if_any("IntakeReturn", refusals)
        return self
