"""One check at one tree: what the harness is asked."""

from collections.abc import Sequence
from typing import NamedTuple

from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.verify.checks import CheckSpec, Project


class Question(NamedTuple):
    """One check at one tree."""

    spec: CheckSpec
    project: Project
    tree: str
    purpose: str
    """`baseline`, `after`, `protected`, `red`, `canary`, `mutant`, `again`."""
    phase: Phase | None = None
    """Under which phase the check's row stands; None for a run that only feeds another check."""
    ids: tuple[str, ...] = ()
    """Only these things, where the tool can."""
    environment_tree: str | None = None
    """Whose environment to use; the tree's own unless said."""
    turn: int = 0
    """How often the very same question was asked before, on purpose."""


def narrowed(spec: CheckSpec, ids: Sequence[str]) -> tuple[str, ...]:
    """What to ask a tool for so that it runs some of its things; nothing if it can only run all.

    Pytest is asked for whole files: a test whose file does not load any more has no name that it would know.
    """
    if spec.select is None:
        return ()
    if spec.tool == "pytest":
        return tuple(dict.fromkeys(id_.split("::", 1)[0] for id_ in ids))
    return tuple(ids)
