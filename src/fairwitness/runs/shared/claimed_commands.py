"""Compares the commands that an agent's answer names with those that ran in its own dispatch."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from fairwitness.contracts.agents.dispatch import Brief
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.tools import Role
from fairwitness.runs.dispatch.model import ClaimCheck, no_claims

if TYPE_CHECKING:  # autopilot's contracts, which other runs do not load
    from fairwitness.contracts.autopilot.returns import ExecutorReturn
    from fairwitness.contracts.autopilot.verification import MiniVerifierReturn, VerifierReturn


def claim_check(brief: Brief) -> ClaimCheck:
    """Return the check of an answer's claims about commands: it objects to results of commands that did not run.

    A command in the brief is run by Fair Witness itself, so a wrong claim about it is found by comparison.
    """
    claims = _CLAIMS.get(brief.role)
    if claims is None:
        return no_claims
    from fairwitness.rules.claims import unrun_claims  # with autopilot's contracts, which other runs do not load

    # a script in a diff is not run because of that
    shown = "\n".join(box.text for box in brief.inputs if not box.title.startswith("The change"))

    def objections(answer: Contract, ran: tuple[str, ...]) -> tuple[str, ...]:
        found = unrun_claims(tuple(claims(answer)), ran, shown)
        return tuple(f"{each}; run it, or leave it out" for each in found)

    return objections


def _of_executor(answer: "ExecutorReturn") -> Iterator[str]:
    yield from (claim for each in answer.evidence for claim in each.commands_run)


def _of_mini_verifier(answer: "MiniVerifierReturn") -> Iterator[str]:
    yield from answer.commands_run
    yield from (_claim(each.command, each.status.value) for each in answer.criteria_results)


def _of_verifier(answer: "VerifierReturn") -> Iterator[str]:
    yield from answer.commands_run
    for each in answer.execution_results or ():
        if each.exit_code is not None:
            yield _claim(each.command, f"exit code {each.exit_code}")


def _claim(command: str, result: str) -> str:
    """Return a claim that counts only if the command begins with a program that is known for results."""
    return f"`{'; '.join(command.replace('`', '').splitlines())}`: {result}"


_CLAIMS: Final[Mapping[Role, Callable[[Any], Iterator[str]]]] = {
    Role.EXECUTOR: _of_executor,
    Role.MINI_VERIFIER: _of_mini_verifier,
    Role.PHASE_VERIFIER: _of_verifier,
}
"""The roles that run commands and say how they ended; an answer may have further fields, which say nothing here."""
