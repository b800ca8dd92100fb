"""What a semantic check answers: every problem, each with its place and what was expected."""

from enum import StrEnum
from typing import TypeAlias

from fairwitness.contracts.common.base import Contract, Text

Path: TypeAlias = tuple[str | int, ...]
"""The way to a value in a document: `("payload", "tasks", 0, "risk")`."""


class Level(StrEnum):
    """Whether a problem refuses the document or is only worth saying."""

    ERROR = "error"
    WARNING = "warning"


class Problem(Contract):
    """One thing that is wrong, where it stands, and what should stand there."""

    where: Path
    expected: Text
    found: Text
    level: Level = Level.ERROR


def spell_path(path: Path) -> str:
    """A path as people write it.

    >>> spell_path(("payload", "tasks", 0, "risk"))
    'payload.tasks[0].risk'
    >>> spell_path(())
    '(document)'
    """
    spelled = ""
    for part in path:
        if isinstance(part, int):
            spelled += f"[{part}]"
        else:
            spelled += f".{part}" if spelled else part
    return spelled or "(document)"
