"""Acceptance criteria: their names in the ledger, how agents propose to judge them, and which commands may be run.

An agent chooses the command, so it must be one of the project's own checks with other arguments, or tests by name. Code
given as text, shell lines, and options that make a command unable to fail are refused.
"""

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fairwitness.contracts.common.criteria import CriterionJudgement
from fairwitness.contracts.feature.facts import ChangedFile
from fairwitness.contracts.feature.implementation import TaskType
from fairwitness.contracts.verify.checks import TEST_FORMATS, CheckSpec, ReportFormat
from fairwitness.contracts.verify.results import RED, Evidence, ItemOutcome, Ran
from fairwitness.rules.risk import is_configuration, is_documentation

_NAMED = 3
"""The most failing tests that a sentence lists."""
RED_AT_BASELINE = "red-at-baseline-new-tests"
_PYTHON = "{python}"
_PYTHONS = re.compile(r"python(?:3(?:\.[0-9]+)?)?")
_OPEN = re.compile(r"\{(?:python|report|tmp|root|node_modules|ids)\}")
_MODULES = "{node_modules}/.bin/"
_INTERPRETERS = frozenset(
    {"node", "sh", "bash", "dash", "zsh", "ksh", "ruby", "perl", "php", "lua", "deno", "bun", "java"}
)
"""Programs whose first argument decides what is run."""
_LAUNCHERS = frozenset(
    {"env", "timeout", "nice", "nohup", "xargs", "sudo", "uv", "uvx", "poetry", "pipenv", "hatch", "pdm", "npx", "npm"}
    | {"pnpm", "yarn", "bundle", "docker", "tox", "nox"}
)
"""Programs that can start any other: a command must repeat the check's own arguments completely."""
_SHELL = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "<", "<<", "2>&1", "2>", "&>"})
_VACUOUS = frozenset(
    {"--version", "-V", "--help", "-h", "--collect-only", "--co", "--exit-zero", "--passWithNoTests", "--no-run"}
    | {"--list-tests", "--listTests", "--fixtures", "--markers", "--dry-run"}
)
"""Options that make a command succeed regardless of its result."""


class Unjudged(NamedTuple):
    """The reason why a criterion cannot be judged."""

    reason: str


class ByCommand(NamedTuple):
    """A command that Fair Witness runs to judge a criterion."""

    spec: CheckSpec
    of: CheckSpec
    """The project's check that the command is derived from; it runs in that check's environment."""


class CommandVerdict(NamedTuple):
    """What the command of a criterion shows."""

    met: bool | None
    """None if the criterion cannot be judged."""
    text: str
    """The reason, in one clause."""
    seen: str | None = None
    """What contradicts a command that passed, to be recorded beside it."""


def command_verdict(report: ReportFormat, ran: Ran) -> CommandVerdict:
    """Judge a criterion by its command; tests that are all skipped do not meet it."""
    if ran.evidence is Evidence.NONE:
        return CommandVerdict(None, ran.reason or "no reason is known")
    if ran.evidence is Evidence.FAILED:
        red = [item.message if report is ReportFormat.EXIT else item.id for item in ran.items if item.outcome in RED]
        more = f" and {len(red) - _NAMED} more" if len(red) > _NAMED else ""
        return CommandVerdict(False, f"it fails: {', '.join(red[:_NAMED])}{more}")
    if report in TEST_FORMATS and not any(item.outcome is ItemOutcome.PASSED for item in ran.items):
        seen = "no test that it runs passes: they are skipped or expected to fail"
        return CommandVerdict(False, seen, seen)
    return CommandVerdict(True, "it passes")


class ByPlace(NamedTuple):
    """A place in a file that is claimed to satisfy a criterion."""

    path: str
    line: int
    claim: str
    met: bool


Proposal = ByCommand | ByPlace | Unjudged


_RUN_THE_CODE = frozenset({"tests", "smoke-execution"})
"""The names of checks that run the code, also if only their exit code is known. The others read it."""


def may_fail_before(proposed: ByCommand, old: Collection[str], new: Collection[str]) -> bool:
    """Return whether the failure of a command on the old files says something about the old code.

    `old` and `new` are the paths without and with the change. A single test that does not exist there fails for that
    reason only, and so does a linter, a type check or a build that is given a file or a module that is not there.
    """
    if proposed.spec.report in TEST_FORMATS:
        return False
    if proposed.of.name in _RUN_THE_CODE:
        return True
    there, coming = _with_folders(old), _with_folders(new)
    return not any(form in coming and form not in there for word in proposed.spec.argv for form in _path_forms(word))


def _with_folders(paths: Collection[str]) -> frozenset[str]:
    parts = (path.split("/") for path in paths)
    return frozenset("/".join(each[:count]) for each in parts for count in range(1, len(each) + 1))


def _path_forms(word: str) -> Iterator[str]:
    """Yield the paths that a word of a command may mean: a path, or the dotted name of a module."""
    path = word.rpartition("=")[2].removeprefix("./").rstrip("/")
    yield path
    yield path.replace(".", "/")
    yield f"{path.replace('.', '/')}.py"


def check_name(number: int) -> str:
    """Return the name of the n-th criterion in the ledger.

    >>> check_name(3)
    'ac-3'
    """
    return f"ac-{number}"


def task_type(files: Iterable[ChangedFile]) -> TaskType:
    """Return the kind of work from the changed files, not from the author's claim: anything but text and settings is
    code.

    >>> from fairwitness.contracts.feature.facts import ChangeKind
    >>> task_type([ChangedFile(path="docs/a.md", change=ChangeKind.ADDED)]).value
    'documentation'
    """
    paths = [file.path for file in files]
    if paths and all(is_documentation(path) for path in paths):
        return TaskType.DOCUMENTATION
    if paths and all(is_documentation(path) or is_configuration(path) for path in paths):
        return TaskType.CONFIGURATION
    return TaskType.CODE


def needs_new_test(files: Iterable[ChangedFile], *, is_waived: bool) -> bool:
    """Return whether a change needs a new test that fails without it: code does, unless a person waived it.

    `files` is what was really changed; `is_waived` says that a person approved a plan that says why no test is needed.
    """
    return task_type(files) is TaskType.CODE and not is_waived


def required_checks(criteria: Sequence[str], files: Sequence[ChangedFile], *, is_waived: bool) -> tuple[str, ...]:
    """Return the checks that a task's gate asks for: one for each criterion, and for code `RED_AT_BASELINE`."""
    names = tuple(check_name(number) for number, _ in enumerate(criteria, start=1))
    return (*names, RED_AT_BASELINE) if needs_new_test(files, is_waived=is_waived) else names


def evidence_for(
    criteria: Iterable[str], planned: Sequence[CriterionJudgement], claimed: Sequence[CriterionJudgement]
) -> tuple[CriterionJudgement, ...]:
    """Return how each criterion is judged: as the plan says, or as the author of the work says where it is silent.

    A plan that names a file cannot know the line; the author of the work names it.

    >>> said = CriterionJudgement(criterion="A", command="pytest")
    >>> [each.command for each in evidence_for(["a"], [], [said])]
    ['pytest']
    """
    found: list[CriterionJudgement] = []
    for criterion in criteria:
        own, said = (
            [each for each in source if _plain(each.criterion) == _plain(criterion)] for source in (planned, claimed)
        )
        files = {file for each in own for file in _file_named(each)}
        found += [each for each in said if files.intersection(_file_named(each))] or own or said
    return tuple(found)


def planned_words(criterion: str, planned: Sequence[CriterionJudgement]) -> str:
    """Return what a plan says about a criterion: its text, and the files in which it is to be seen."""
    own = (each for each in planned if _plain(each.criterion) == _plain(criterion))
    return " ".join((criterion, *(file for each in own for file in _file_named(each))))


def _file_named(judgement: CriterionJudgement) -> tuple[str, ...]:
    if judgement.command is not None or judgement.location is None:
        return ()
    return (judgement.location.rpartition(":")[0].removeprefix("./"),)


_PATH = re.compile(r"[\w./-]+")


def is_about(words: str, path: str) -> bool:
    """Return whether words speak of a file: by its path, its name, a folder of it, or as one speaks of documents.

    >>> [is_about("The README names src/a.py.", path) for path in ("README.md", "src/a.py", "a.md")]
    [True, True, False]
    """
    whole = path.casefold()
    name, top = whole.rpartition("/")[2], whole.partition("/")[0]
    for word in _PATH.findall(words.casefold()):
        said = word.removeprefix("./").rstrip(".")
        if said in (whole, name) or (said.endswith("/") and whole.startswith(said)):
            return True
        if is_documentation(said) and said in (top, name.partition(".")[0]):
            return True
    return False


def own_place_problem(words: str, path: str, line: int, added: Mapping[str, Collection[int]]) -> str | None:
    """Return why a place that the author of a change names does not prove a criterion, or None.

    Code is judged by running it. Text cannot be run; the place must then be a line that the change wrote, in a file
    that the plan speaks of: otherwise any text would prove anything. `words` is what the plan says about the criterion,
    `added` holds the lines that the change wrote, by path.
    """
    if not is_documentation(path) and not is_configuration(path):
        return f"{path}:{line} is only named: name a test or a command that shows it"
    if line not in added.get(path, ()):
        return f"{path}:{line} is not a line that this change wrote"
    if not is_about(words, path):
        return f"{path}:{line} is only text, and the plan does not speak of {path}: name a test or a command"
    return None


def proposal(
    number: int,
    criterion: str,
    judgements: Sequence[CriterionJudgement],
    checks: Sequence[CheckSpec],
    paths: Collection[str],
    who: str = "the verifier",
) -> Proposal:
    """How the n-th criterion is to be judged; `paths` are the files of the tree, `who` made the judgements.

    A command goes before a place: it was run, and the other only said.
    """
    own = {_said(each): each for each in judgements if _plain(each.criterion) == _plain(criterion)}
    if not own:
        return Unjudged(f"{who} did not judge it")
    if len(own) > 1:
        return Unjudged(f"{who} judged it in more than one way")
    (judgement,) = own.values()
    if judgement.command is not None:
        return by_command(number, judgement.command, checks, paths)
    if judgement.location is None:
        return Unjudged(f"{who} names neither a command nor a place")
    if judgement.claim is None:
        return Unjudged(f"{who} names {judgement.location} and does not say what is true there")
    path, _, line = judgement.location.rpartition(":")
    return ByPlace(path.removeprefix("./"), int(line), judgement.claim, met=_is_met(judgement))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _said(judgement: CriterionJudgement) -> tuple[object, ...]:
    return (judgement.command, judgement.location, judgement.claim, _is_met(judgement))


def _is_met(judgement: CriterionJudgement) -> bool:
    """To name a place is to say that it is met there; if more is said, anything but yes is no."""
    return (judgement.model_extra or {}).get("met", True) is True


def by_command(number: int, command: str, checks: Sequence[CheckSpec], paths: Collection[str]) -> ByCommand | Unjudged:
    """Return the command as a check, or the reason why it must not be run."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        return Unjudged(f"`{command}` cannot be read as a command: {error}")
    if not words or _SHELL.intersection(words) or any("$(" in word or "`" in word for word in words):
        return Unjudged(f"`{command}` needs a shell, and none is given to it")
    if any(_OPEN.search(word) for word in words[1:]):
        return Unjudged(f"`{command}` has a placeholder in it")
    vacuous = _VACUOUS.intersection(words)
    if vacuous:
        return Unjudged(f"`{command}` cannot fail, for it has {sorted(vacuous)[0]}")
    found = _begun(words, checks) or _named(words, checks, paths)
    if found is None:
        return Unjudged(f"`{command}` was not run: no check of this project begins with {_beginning(words)}")
    check, start, rest = found
    return ByCommand(_as_check(number, check, start, rest), check)


_SPAN = re.compile(r"`([^`\n]+)`")
_GIVES_CODE = frozenset({"-c", "-e", "-p", "--eval", "--print", "-ec", "-lc"})
_TEST_RUNNERS = frozenset(
    {"pytest", "unittest", "nose2", "tox", "nox", "jest", "vitest", "mocha", "ava", "rspec", "phpunit", "ctest"}
)
_TEST_ID = re.compile(r"([\w./-]+\.\w+)::\S+")


def unrunnable(criterion: str, checks: Sequence[CheckSpec], paths: Collection[str]) -> tuple[str, ...]:
    """Return why commands and tests that a criterion names between backticks could never be run.

    Only what is clearly meant to be run is judged: tests by id, a test runner or a check of the project with arguments,
    code that is given to an interpreter. Tests are judged only in a project that has tests; `paths` are its files and
    those that will be made.
    """
    has_tests = any(check.report in TEST_FORMATS for check in checks)
    found = []
    for command in _SPAN.findall(criterion) if checks else ():
        words = command.split()
        if words and (_is_code(words) or _begun(tuple(words), checks) or (has_tests and _is_test_run(words))):
            answer = by_command(1, command, checks, paths)
            found += [answer.reason] if isinstance(answer, Unjudged) else []
    return tuple(found)


def planned_problem(command: str, checks: Sequence[CheckSpec], paths: Collection[str]) -> str | None:
    """Return why a command that a plan names for a criterion could never be run, or None.

    As for `unrunnable`, nothing is said of a project without checks, nor of tests where there are none yet; a test may
    be in a file that the plan makes.
    """
    words = command.split()
    has_tests = any(check.report in TEST_FORMATS for check in checks)
    if not checks or (words and _is_test_run(words) and not has_tests):
        return None
    coming = {*paths, *files_of_tests(command), *(file for word in words for file in _modules_of(word))}
    answer = by_command(1, command, checks, coming)
    return answer.reason if isinstance(answer, Unjudged) else None


def _modules_of(name: str) -> Iterator[str]:
    """Yield the files in which the test of a dotted name may be."""
    parts = name.split(".")
    yield from ("/".join(parts[:count]) + ".py" for count in range(1, len(parts)))


def files_of_tests(text: str) -> tuple[str, ...]:
    """Return the files of the tests that a text names by their ids.

    >>> files_of_tests("`pytest tests/test_a.py::test_b` passes, and `std::fmt` is no test")
    ('tests/test_a.py',)
    """
    return tuple(dict.fromkeys(_TEST_ID.findall(text)))


def _is_code(words: Sequence[str]) -> bool:
    is_interpreter = words[0] in _INTERPRETERS or _PYTHONS.fullmatch(words[0]) is not None
    return is_interpreter and len(words) > 1 and words[1] in _GIVES_CODE


def _is_test_run(words: Sequence[str]) -> bool:
    if all(_TEST_ID.fullmatch(word) for word in words):
        return True
    module = words[2] if _PYTHONS.fullmatch(words[0]) and words[1:2] == ["-m"] and len(words) > 2 else words[0]
    return len(words) > 1 and module in _TEST_RUNNERS


def beginnings(checks: Iterable[CheckSpec]) -> tuple[str, ...]:
    """Return how the command of a criterion may begin: with the program of a check of the project.

    Checks whose command is a program as text are left out: they are Fair Witness's own, and nobody types them.
    """
    found = (next(_forms(check))[0] for check in checks)
    spelled = (" ".join(form).replace(_PYTHON, "python3") for form in found)
    return tuple(dict.fromkeys(each for each in spelled if "\n" not in each))


def _beginning(words: Sequence[str]) -> str:
    return " ".join(words[:2]) if words[0] in _INTERPRETERS or _PYTHONS.fullmatch(words[0]) else words[0]


_Begun = tuple[CheckSpec, tuple[str, ...], tuple[str, ...]]
"""A check, how its command begins, and the words that follow."""


def _begun(words: tuple[str, ...], checks: Sequence[CheckSpec]) -> _Begun | None:
    """The check whose program a command begins with: by most words, then where its paths lie, then at the top."""
    spoken = _neutral(words)
    found: list[tuple[tuple[bool | int, ...], _Begun]] = []
    for check in checks:
        for form, start in _forms(check):
            if spoken[: len(form)] == form:
                rest = words[len(form) :]
                inside = check.root != "." and any(word.startswith(f"{check.root}/") for word in rest)
                found.append(((len(form), inside, check.root == "."), (check, start, rest)))
    return max(found, key=lambda each: each[0])[1] if found else None


def _neutral(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words with one name for every way to call Python."""
    return (_PYTHON, *words[1:]) if _PYTHONS.fullmatch(words[0]) else words


def _forms(check: CheckSpec) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """How a person may write the beginning of a check's command, and how the check itself does."""
    argv = check.argv
    neutral = _neutral(argv)
    first, second = neutral[0], neutral[1] if len(neutral) > 1 else ""
    if first == _PYTHON and second == "-m" and len(argv) > 2:
        yield neutral[:3], argv[:3]
        yield (argv[2],), argv[:3]
    elif first.startswith(_MODULES):
        name = first.removeprefix(_MODULES)
        for form in ((name,), ("npx", name), (f"node_modules/.bin/{name}",), (f"./node_modules/.bin/{name}",)):
            yield form, argv[:1]
    elif first == _PYTHON or first in _INTERPRETERS:
        known = bool(second) and (not second.startswith("-") or (first, second) == ("node", "--test"))
        start = 2 if known else len(argv)
        yield neutral[:start], argv[:start]
    elif first.rpartition("/")[2] in _LAUNCHERS:
        yield argv, argv
    else:
        yield (first,), argv[:1]
        yield (first.removeprefix("./") if first.startswith("./") else first.rpartition("/")[2],), argv[:1]


def _named(words: tuple[str, ...], checks: Sequence[CheckSpec], paths: Collection[str]) -> _Begun | None:
    """The runner that knows tests by these names."""
    for check in checks:
        if is_pytest(check) and all("::" in word and _file_of(check, word) in paths for word in words):
            return check, check.argv[:3], words
        if is_unittest(check) and all(_is_dotted(check, word, paths) for word in words):
            return check, check.argv[:3], words
    return None


def _file_of(check: CheckSpec, word: str) -> str:
    return check.in_repository(_below(check, word).partition("::")[0])


def _is_dotted(check: CheckSpec, word: str, paths: Collection[str]) -> bool:
    """Whether a dotted name begins with a module of the tree."""
    parts = word.split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        return False
    return any(check.in_repository("/".join(parts[:count]) + ".py") in paths for count in range(1, len(parts) + 1))


def is_pytest(check: CheckSpec) -> bool:
    """Return True if a check is pytest with a report."""
    return check.argv[:3] == (_PYTHON, "-m", "pytest") and check.select is not None


def is_unittest(check: CheckSpec) -> bool:
    """Return True if a check is the unittest runner."""
    return _neutral(check.argv)[:3] == (_PYTHON, "-m", "unittest")


def _below(check: CheckSpec, word: str) -> str:
    return word if check.root == "." else word.removeprefix(f"{check.root}/")


def _as_check(number: int, check: CheckSpec, start: tuple[str, ...], rest: tuple[str, ...]) -> CheckSpec:
    """The command as a check of its own: where tests can be told from each other they are, so that none is no yes."""
    own = {"id": check_name(number), "name": check_name(number), "select": None, "writes": True, "required": True}
    below = tuple(_below(check, word) for word in rest)
    if not rest:
        return check.model_copy(update=own)  # the whole of it
    if is_pytest(check) and check.select is not None:
        argv = tuple(one for word in check.select for one in (below if word == "{ids}" else (word,)))
        return check.model_copy(update=own | {"argv": argv})
    if is_unittest(check):
        options = ("discover", "-v", *below[1:]) if below[0] == "discover" else ("-v", *below)
        report = {"report": ReportFormat.UNITTEST, "report_on": "stderr"}
        return check.model_copy(update=own | report | {"argv": (*start, *options)})
    plain = {"report": ReportFormat.EXIT, "report_on": "stdout", "root": "."}
    return check.model_copy(update=own | plain | {"argv": (*start, *rest)})
