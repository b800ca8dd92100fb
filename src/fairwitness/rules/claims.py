"""Comparison of agents' claims with what Fair Witness observed itself.

Claims about commands are compared only where they are clear: an exit code, or that a command passed or failed. A
command that Fair Witness did not run, and words that say neither, are no difference, but no evidence either. A worker's
walkthrough is compared with the files that changed and with the test results.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.verification import MiniVerifierReturn, TaskCriterionStatus
from fairwitness.contracts.common.base import Texts
from fairwitness.contracts.forge.documents import TestResult, Walkthrough

_ARROW = re.compile(r"->|=>|→")
_EXIT = re.compile(
    r"\b(?:exit(?:s|ed)?|exit[ _-]?(?:code|status)|return[ _-]?code|rc)\s?(?:with|was|is|of|:|=)?\s?(?:code\s?)?"
    r"(-?[0-9]{1,5})\b",
    re.IGNORECASE,
)
_NOTHING_RED = re.compile(
    r"\b(?:no|0|zero|without(?: any)?) (?:test )?"
    r"(?:failed|failing|fail(?:ure)?s?|errors?|issues?|problems?|warnings?)\b",
    re.IGNORECASE,
)
_NOT_GREEN = re.compile(
    r"(?:\bnot|n't|\bnever|\b0|\bno tests?) (?:ok|pass\w*|succeed\w*|successful|clean|green)\b", re.IGNORECASE
)
_RED = re.compile(
    r"\b(?:fail\w*|errors?|errored|broken|breaks|timed out|time-?out|killed|crash\w*|red)\b", re.IGNORECASE
)
_GREEN = re.compile(r"\b(?:ok|okay|pass|passe[sd]|passing|success\w*|succeed\w*|clean|green)\b", re.IGNORECASE)


class ClaimedResult(NamedTuple):
    """The result that an agent claims for a command; None where the text does not say it."""

    exit_code: int | None
    passed: bool | None


def said_of(result: str) -> ClaimedResult:
    """Return what a result claims. A failure outweighs every success in the same text.

    >>> said_of("14 passed, 0 failed"), said_of("exit code 2"), said_of("3 passed, 1 failed").passed
    (ClaimedResult(exit_code=None, passed=True), ClaimedResult(exit_code=2, passed=False), False)
    >>> said_of("does not pass").passed, said_of("no errors").passed, said_of("src/a.py:3").passed
    (False, True, None)
    """
    found = _EXIT.search(result)
    code = None if found is None else int(found[1])
    rest = _NOTHING_RED.sub(" clean ", result)
    if _NOT_GREEN.search(rest) or _RED.search(rest):
        return ClaimedResult(code, False)
    if code is not None:
        return ClaimedResult(code, code == 0)
    return ClaimedResult(None, True if _GREEN.search(rest) else None)


def plain_command(text: str) -> str:
    """Return a command without surrounding quotes and prompt signs.

    >>> plain_command("`pytest  -q`"), plain_command("$ make test ")
    ('pytest -q', 'make test')
    """
    return " ".join(text.strip().strip("`").removeprefix("$ ").split())


def claim_differences(claims: Sequence[str], executions: Sequence[ExecutionResult]) -> Texts:
    """Return one sentence for each claim of the form `command -> result` that contradicts what Fair Witness observed.

    A command may contain an arrow, so each arrow is tried: the command is the one that Fair Witness ran.
    """
    return tuple(dict.fromkeys(each for claim in claims for each in _of_claim(claim, executions)))


_LOOKS = frozenset({"cat", "find", "git", "grep", "head", "ls", "rg", "sed", "tail", "wc", "read_file", "grep_search"})
"""Programs that only look; an agent has tools of its own for them, and their results decide nothing."""


def unrun_claims(claims: Sequence[str], ran: Collection[str], shown: str) -> Texts:
    """Return one sentence for each claim of a result of a command that did not run.

    `ran` are the commands and checks that ran in the dispatch; `shown` is the text of the agent's inputs: a command in
    it is run by Fair Witness itself. Claims without a clear result, and of programs that only look, are passed over.

    >>> unrun_claims(["pytest -q -> 400 passed", "make test -> OK"], ["pytest -q"], "")
    ('“make test” is said to have passed, but it was not run in this session',)
    """
    known, inputs = {_signs(each) for each in ran}, _signs(shown)
    return tuple(dict.fromkeys(each for claim in claims for each in _unrun(claim, known, inputs)))


_SPELLING = re.compile(r"[\s'\"\\`]+")


def _signs(text: str) -> str:
    """Return a text without white space and quotes, which differ from one spelling of a command to another."""
    return _SPELLING.sub("", text)


def _unrun(claim: str, known: Collection[str], inputs: str) -> Iterator[str]:
    arrows = [(plain_command(claim[: arrow.start()]), claim[arrow.end() :]) for arrow in _ARROW.finditer(claim)]
    if not arrows or any(_signs(command) in known or _signs(command) in inputs for command, _ in arrows):
        return
    command, result = arrows[0]
    words, said = command.split(), said_of(result)
    if not words or words[0] in _LOOKS or said.passed is None or any(each in words for each in known):
        return
    ended_as = "passed" if said.passed else "failed"
    yield f"“{command}” is said to have {ended_as}, but it was not run in this session"


def _of_claim(claim: str, executions: Sequence[ExecutionResult]) -> Iterator[str]:
    for arrow in _ARROW.finditer(claim):
        command = plain_command(claim[: arrow.start()])
        runs = [run for run in executions if plain_command(run.command) == command]
        if runs:
            said = said_of(claim[arrow.end() :])
            yield from (_sentence(said, run) for run in runs if _differs(said, run))
            return


def _differs(said: ClaimedResult, run: ExecutionResult) -> bool:
    if said.exit_code is not None and said.exit_code != run.exit_code:
        return True
    return said.passed is not None and said.passed is not run.passed


def _sentence(said: ClaimedResult, run: ExecutionResult) -> str:
    word = "passed" if said.passed else "failed"
    claimed = f"have {word}" if said.exit_code is None else f"have ended with exit code {said.exit_code}"
    return f"“{plain_command(run.command)}” is said to {claimed}; it {ended(run)}"


def ended(run: ExecutionResult) -> str:
    """Return how a command ended, as the predicate of a sentence."""
    code = "" if run.exit_code is None else f" (exit code {run.exit_code})"
    return f"ended with {run.assessment.value}{code} when the harness ran it"


def mini_differences(said: MiniVerifierReturn, executions: Sequence[ExecutionResult]) -> Texts:
    """In what the check of a task is not what the harness saw.

    A criterion may be refused although its command passes, for a command does not see everything. It may not be
    passed although its command did not, nor be left out then of a check that says pass.
    """
    return tuple(dict.fromkeys((*_criteria(said, executions), *claim_differences(said.commands_run, executions))))


def _criteria(said: MiniVerifierReturn, executions: Sequence[ExecutionResult]) -> Iterator[str]:
    passed = [each for each in said.criteria_results if each.status is TaskCriterionStatus.PASS]
    criteria = {_plain(each.criterion) for each in passed}
    commands = {plain_command(each.command) for each in passed}
    for run in executions:
        if run.passed:
            continue
        if _plain(run.criterion) in criteria or plain_command(run.command) in commands:
            yield f"“{run.criterion}” is said to pass; its command {ended(run)}"
        elif said.pass_:
            yield f"the task is said to pass without a word on “{run.criterion}”; its command {ended(run)}"


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


DOUBTFUL = 0.6
"""Walkthroughs with a confidence below this are flagged for review."""
_SHOWN = 5


def differences(said: Walkthrough, changed: Collection[str], *, red: Collection[str]) -> tuple[str, ...]:
    """Return every difference between walkthrough and observation; `red` are the checks that failed on the attempt's
    tree.
    """
    return (*_files(said, changed), *_tests(said, red))


def _files(said: Walkthrough, changed: Collection[str]) -> Iterator[str]:
    named = {each.path for each in said.files_changed}
    invented, untold = sorted(named - set(changed)), sorted(set(changed) - named)
    if invented:
        yield f"the walkthrough names files that did not change: {_listed(invented)}"
    if untold:
        yield f"files changed that the walkthrough does not name: {_listed(untold)}"


def _tests(said: Walkthrough, red: Collection[str]) -> Iterator[str]:
    """Compare only claimed passes: a worker that reports a failure has reported enough."""
    if not red:
        return
    claimed = said.tests or ()
    green = [test.name for test in claimed if test.result is TestResult.PASS]
    if green and not any(test.result in (TestResult.FAIL, TestResult.ERROR) for test in claimed):
        seen = f"{_listed(sorted(red))} failed when Fair Witness ran them"
        yield f"the walkthrough says that {_listed(green)} pass; {seen}"


def _listed(items: list[str]) -> str:
    more = len(items) - _SHOWN
    return ", ".join(items[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def is_doubtful(said: Walkthrough) -> bool:
    """Return True if the worker reports low confidence."""
    return said.confidence < DOUBTFUL
