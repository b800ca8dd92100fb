"""How an acceptance criterion is proven."""

from typing import Annotated

from pydantic import Field

from fairwitness.contracts.common.base import AgentDocument, Maybe, Text


class CriterionJudgement(AgentDocument):
    """How the verifier proposes to prove one criterion: by a command the harness runs, or by a place to look at."""

    criterion: Text
    command: Maybe[Text] = None
    location: Maybe[Annotated[str, Field(pattern=r"^\S.*:[0-9]+$")]] = None
    claim: Maybe[Text] = None
