"""Compares the commands that an agent's answer names with those that ran in its own dispatch."""

from collections.abc import Iterator
from typing import Any

from fairwitness.contracts.agents.dispatch import Brief
from fairwitness.contracts.common.tools import Role
from fairwitness.runs.dispatch.model import ClaimCheck, no_claims

_CHECKED = frozenset({Role.EXECUTOR, Role.MINI_VERIFIER, Role.PHASE_VERIFIER})
"""The roles that run commands and say how they ended."""


def claim_check(brief: Brief) -> ClaimCheck:
    """Return the check of an answer's claims about commands: it objects to results of commands that did not run.

    A command in the brief is run by Fair Witness itself, so a wrong claim about it is found by comparison.
    """
    if brief.role not in _CHECKED:
        return no_claims
    from fairwitness.rules.claims import unrun_claims  # with autopilot's contracts, which other runs do not load

    shown = "\n".join(box.text for box in brief.inputs)

    def objections(answer: dict[str, Any], ran: tuple[str, ...]) -> tuple[str, ...]:
        found = unrun_claims(tuple(_claims(answer)), ran, shown)
        return tuple(f"{each}; run it, or leave it out" for each in found)

    return objections


def _claims(answer: dict[str, Any]) -> Iterator[str]:
    yield from answer.get("commands_run", ())
    for each in answer.get("evidence", ()):
        yield from each.get("commands_run", ())
