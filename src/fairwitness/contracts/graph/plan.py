"""A graph with what is known about its tasks: all that a scheduler needs."""

from collections.abc import Mapping
from typing import NamedTuple

from fairwitness.contracts.common.words import Workflow
from fairwitness.contracts.forge.dag import Dag


class Plan(NamedTuple):
    """What is to be carried out."""

    base: Dag
    """The graph as it was planned."""
    dag: Dag
    """The same with every overlay that was applied."""
    estimates: Mapping[str, int] | None = None
    """How long each task may take, in any unit."""
    writes: Mapping[str, frozenset[str]] | None = None
    """What each task may write; None if nobody declared anything, and then branches alone keep tasks apart."""
    workflow: Workflow = Workflow.FORGE
    """Whose events tell of it."""
