"""Governed changes to instruction files: proposed by the knowledge agent, applied only with approval."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from fairwitness.contracts.common.base import AgentDocument, Prose
from fairwitness.contracts.common.ids import RelPath

COPILOT_INSTRUCTIONS = ".github/copilot-instructions.md"
INSTRUCTIONS_FOLDER = ".github/instructions/"


class InstructionChange(StrEnum):
    """What is to be done to the file."""

    CREATE = "create"
    APPEND = "append"
    MODIFY = "modify"
    DELETE = "delete"


def _governed(path: str) -> str:
    if path != COPILOT_INSTRUCTIONS and not path.startswith(INSTRUCTIONS_FOLDER):
        raise PydanticCustomError(
            "instruction_path", "a file under .github/instructions/ or .github/copilot-instructions.md"
        )
    return path


class InstructionUpdate(AgentDocument):
    """One proposed change to one file."""

    file_path: Annotated[RelPath, AfterValidator(_governed)]
    change_type: InstructionChange
    change_summary: Annotated[str, Field(pattern=r"\S", max_length=1000)]
    patch: Prose
