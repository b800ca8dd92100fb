"""Comparison of agents' claims with what Fair Witness observed itself.

Claims about commands are compared only where they are clear: an exit code, or that a command passed or failed. A
command that Fair Witness did not run, and words that say neither, are no difference, but no evidence either. A worker's
walkthrough is compared with the files that changed and with the test results.
"""

import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
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


_LOOKS = frozenset(
    {"cat", "cd", "find", "git", "grep", "head", "ls", "rg", "sed", "tail", "wc", "read_file", "grep_search"}
)
"""Programs that only look; an agent has tools of its own for them, and their results decide nothing."""
_RUNNERS = re.compile(
    r"bash|bun|bundle|cargo|cmake|composer|ctest|dotnet|eslint|flake8|go|gradlew?|jest|make|meson|mix|mocha|mvn|mypy|ninja"
    r"|node|nose2|nox|npm|phpunit|pip|pnpm|poetry|pre-commit|pylint|pyright|pytest|python[\d.]*|rake|rspec|ruff|run_check"
    r"|sh|swift|tox|tsc|unittest|uv|vitest|yarn"
)
"""Programs whose result is a claim, even where no arrow separates it from the command."""
_BEFORE = re.compile(
    r"(?:(?:i\s+)?(?:re-?)?(?:ran|run|running|executed)[:\s]\s*|[A-Za-z_]\w*=\S*\s+|(?:ba|da|z)?sh\s+-l?c\s+"
    r"|(?:\S*/)?python[\d.]*\s+-m\s+|(?:uv|poetry|pipenv|pdm)\s+run\s+|npx\s+|env\s+|time\s+|timeout\s+\S+\s+)+",
    re.IGNORECASE,
)
"""What may stand before a command without making another one of it."""
_PROSE = re.compile(r"make sure\b|go (?!build|run|test|vet)")
_LOUDNESS = re.compile(r"(?<=\s)(?:-q+|-v+|--quiet|--verbose|--tb=\S+|(?:\d|&)?>(?:&\d|\s?/dev/null))(?=\s|$)")
"""Options that change only what a command prints."""
_JOINS = re.compile(r"&&|\|\||[;|\n]")
_QUOTES = re.compile(r"['\"\\`]")
_TICKED = re.compile(r"`([^`]+)`")
_FIELD = re.compile(r"(?P<indent>\s*(?:[-*]\s+|\d+\.\s+)?)[A-Za-z_][\w ]*:(?:\s+|$)")
_ITEM = re.compile(r"^\s*(?:[-*$]|\d+\.)\s+")
_NAME_ENDS = re.compile(r":?[\s(),'\"`]+")
_DEEPER = ("/", "::", ".", "[")
"""What follows the name of a file, folder or test in the name of something inside it."""
_RESULT_BEGINS = re.compile(
    r"[:,;]\s|\s[-–—=]\s|\s\(|\s(?=(?:\d+ (?:tests? )?)?(?:ok|pass|passe[sd]|fails?|failed|exit(?:s|ed)?)\b)",
    re.IGNORECASE,
)


def unrun_claims(claims: Sequence[str], ran: Collection[str], shown: str) -> Texts:
    """Return one sentence for each claim of a result of a command that did not run.

    `ran` are the commands that ran in the dispatch, a check as `run_check <name>`, or `run_check <name> <path>` if only
    a part of it ran; `shown` is the text of the agent's inputs: a command that stands there whole is run by Fair
    Witness itself. Claims without a clear result, and of programs that only look, are passed over.

    >>> unrun_claims(["pytest -q -> 400 passed", "make test: OK"], ["python -m pytest"], "we make tests")
    ('“make test” is said to have passed, but it was not run in this session',)
    """
    checks: dict[str, set[str]] = {}
    for each in ran:
        if each.startswith("run_check "):
            name, _, path = each.removeprefix("run_check ").partition(" ")
            checks.setdefault(name, set()).add(path)
    known = {single for each in (*ran, *_shown(shown)) for single in _single_commands(each)}
    return tuple(dict.fromkeys(each for claim in claims for each in _unrun(claim, known, checks)))


def _shown(text: str) -> Iterator[str]:
    """Yield what a text may name as a command: whole lines, values of fields, and what stands between backticks."""
    lines = deque(text.splitlines())
    while lines:
        line = lines.popleft()
        field = _FIELD.match(line)
        if field is not None:
            line = line[field.end() :]
            while line and line[0] != "|" and lines and len(lines[0]) - len(lines[0].lstrip()) > len(field["indent"]):
                line += f" {lines.popleft().strip()}"  # a long value goes on in lines that are indented further
        plain = _ITEM.sub("", line)
        yield from (plain, plain.partition(" (")[0], *_TICKED.findall(line))


def _single_commands(text: str) -> frozenset[str]:
    """Return the commands that a line runs, spelled alike: without wrappers, quotes and options for the output.

    >>> sorted(_single_commands("cd a && CI=1 .venv/bin/python -m pytest -q  tests 2>&1 | tail -3; ./check.sh 'x'"))
    ['check.sh x', 'pytest tests']
    """
    found = set()
    for part in _JOINS.split(text):
        plain = " ".join(_QUOTES.sub("", part).split()).removeprefix("$ ")
        wrapped = _BEFORE.match(plain)
        words = _LOUDNESS.sub("", plain if wrapped is None else plain[wrapped.end() :]).split()
        if words and words[0] not in _LOOKS:
            found.add(" ".join((words[0].rpartition("/")[2], *(word.removeprefix("./") for word in words[1:]))))
    return frozenset(found)


def _unrun(claim: str, known: set[str], checks: Mapping[str, Collection[str]]) -> Iterator[str]:
    readings = tuple(_readings(claim))
    if any(_single_commands(command) <= known or _is_checked(command, checks) for command, _ in readings):
        return
    for command, result in readings[:1]:
        passed = said_of(result).passed
        if passed is not None:
            yield f"“{command}” is said to have {'passed' if passed else 'failed'}, but it was not run in this session"


def _is_checked(command: str, checks: Mapping[str, Collection[str]]) -> bool:
    """Return True if a command names a check that ran, and no place beyond the parts of it that ran.

    >>> [_is_checked(each, {"pytest": {"t/a.py"}}) for each in ("pytest", "pytest t/a.py::test_b", "pytest t/b.py")]
    [True, True, False]
    """
    words = [word.rstrip(":;") for word in _NAME_ENDS.split(command) if word]
    for name in checks.keys() & {*words, *(word.rpartition("/")[2] for word in words)}:
        parts = [part.removeprefix("./").rstrip("/") for part in checks[name]]
        places = [word.removeprefix("./").rstrip("/") for word in words if word != name]
        if "" in parts or all(_is_within(place, parts) for place in places if _is_place(place, parts)):
            return True
    return False


def _is_place(word: str, parts: Sequence[str]) -> bool:
    """Return True for a word that names a file, folder or test."""
    if word.startswith("-") or "=" in word or _RUNNERS.fullmatch(word.rpartition("/")[2]):
        return False
    return any(sign in word for sign in ("/", ".", "::")) or any(_is_within(part, [word]) for part in parts)


def _is_within(place: str, parts: Sequence[str]) -> bool:
    return any(place == part or place.startswith(tuple(f"{part}{sign}" for sign in _DEEPER)) for part in parts)


def _readings(claim: str) -> Iterator[tuple[str, str]]:
    """Yield each way to read a claim as a command and its result.

    Without an arrow, a claim is read only if it begins with a program that is known for its results.
    """
    arrows = tuple(_ARROW.finditer(claim))
    for arrow in arrows:
        head = claim[: arrow.start()]
        ticked = _TICKED.search(head)
        yield plain_command(head if ticked is None else ticked[1]), claim[arrow.end() :]
    if arrows:
        return
    ticked = _TICKED.search(claim)
    if ticked is not None:
        heads = [(ticked[1], claim[ticked.end() :])]
    else:
        ends = (found.start() for found in _RESULT_BEGINS.finditer(claim))
        heads = [(claim[:end], claim[end:]) for end in ends]
    for head, result in heads:
        programs = (single.split()[0] for single in _single_commands(head))
        if any(_RUNNERS.fullmatch(each) for each in programs) and not _PROSE.match(head):
            yield plain_command(head), result


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


class SeenAttempt(NamedTuple):
    """What Fair Witness saw of an attempt, as far as a walkthrough speaks of it."""

    changed: Collection[str]
    """The files that differ from those that the attempt began with."""
    settled: Collection[str] = ()
    """Files that were in conflict or are named as mended; a walkthrough need not name them."""
    red: Collection[str] = ()
    """The checks that failed on the attempt's tree."""
    absent: Collection[str] = ()
    """The traces of claimed tests that the attempt's tree does not have."""


def differences(said: Walkthrough, seen: SeenAttempt) -> tuple[str, ...]:
    """Return every difference between walkthrough and observation."""
    return (*_files(said, seen), *_invented(said, seen.absent), *_tests(said, seen.red))


def _files(said: Walkthrough, seen: SeenAttempt) -> Iterator[str]:
    named, changed = {each.path for each in said.files_changed}, set(seen.changed)
    invented, untold = sorted(named - changed - set(seen.settled)), sorted(changed - named - set(seen.settled))
    if invented:
        yield f"the walkthrough names files that did not change: {_listed(invented)}"
    if untold:
        yield f"files changed that the walkthrough does not name: {_listed(untold)}"


_TEST_NAME = re.compile(r"test_\w+|Test\w+|\w+_test|test[A-Z]\w*")
_PARAMETERS = re.compile(r"\[.*\]$")


def trace_of(test: str) -> str | None:
    """Return the word that a tree has if it has this test; None if the claim names no single test.

    >>> [trace_of(each) for each in ("tests/test_a.py::test_b[1 2]", "t.A.test_c", "TestFoo/sub", "test_a.py")]
    ['test_b', 'test_c', 'TestFoo', None]
    """
    name = _PARAMETERS.sub("", test.strip().strip("`")).removesuffix("()")
    last = re.split(r"::|[./]", name)[-1]
    if "::" in name:
        return last if last.isidentifier() else None
    if _TEST_NAME.fullmatch(last) or "." in name:
        return last if _TEST_NAME.fullmatch(last) else None  # what ends otherwise is a file
    return next((part for part in name.split("/") if _TEST_NAME.fullmatch(part)), None)


def _invented(said: Walkthrough, absent: Collection[str]) -> Iterator[str]:
    invented = [test.name for test in said.tests or () if trace_of(test.name) in absent]
    if invented:
        yield f"the walkthrough tells of tests that do not exist: {_listed(invented)}"


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
