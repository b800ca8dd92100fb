"""What an agent thought of a document it had to work from; carried in its return, inserted by the harness."""

from typing import Annotated

from pydantic import Field

from fairwitness.contracts.common.base import AgentDocument, Integer, Maybe
from fairwitness.contracts.common.ids import RelPath

Rating = Annotated[Integer, Field(ge=1, le=10)]
Remark = Annotated[str, Field(max_length=2000)]


class ArtifactEvaluation(AgentDocument):
    """One row for `artifact_evaluations`; a remark may be empty or left out."""

    artifact_path: RelPath
    usefulness_score: Rating
    clarity_score: Rating
    missing_information: Maybe[Remark] = None
    inaccuracies: Maybe[Remark] = None
    impact_on_work: Maybe[Remark] = None
