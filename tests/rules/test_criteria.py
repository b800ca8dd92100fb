"""What may be run for a criterion, and how what a verifier proposes is matched with what the task asks."""

from typing import Any

import pytest

from fairwitness.contracts.common.criteria import CriterionJudgement
from fairwitness.contracts.feature.facts import ChangedFile, ChangeKind
from fairwitness.contracts.verify.checks import CheckSpec, Language, ReportFormat
from fairwitness.rules.criteria import (
    ByCommand,
    ByPlace,
    Unjudged,
    beginnings,
    by_command,
    evidence_for,
    files_of_tests,
    is_about,
    may_fail_before,
    own_place_problem,
    planned_problem,
    planned_words,
    proposal,
    required_checks,
    task_type,
    unrunnable,
)


def check(id_: str, *argv: str, **differs: Any) -> CheckSpec:
    """A check that says yes or no by its exit code."""
    plain: dict[str, Any] = {
        "id": id_,
        "name": "tests",
        "tier": 2,
        "root": ".",
        "language": Language.PYTHON,
        "tool": argv[0],
        "argv": argv,
        "report": ReportFormat.EXIT,
        "writes": False,
        "required": True,
        "found_in": "fairwitness.toml",
    }
    return CheckSpec(**(plain | differs))


_SELECT = ("{python}", "-m", "pytest", "--junitxml={report}", "{ids}")
PYTEST = check("pytest", *_SELECT[:-1], select=_SELECT, report=ReportFormat.JUNIT, report_on="file")
UNITTEST = check("unittest", "{python}", "-m", "unittest", "discover", "-v", "-s", ".", report=ReportFormat.UNITTEST)
RUFF = check("ruff", "{python}", "-m", "ruff", "check", "--output-format=json", report=ReportFormat.RUFF)
OWN = check("lint", "python3", "tools/lint.py", "till")
SCRIPT = check("prices", "sh", "tests/prices.sh")
TEXT = check("grep", "sh", "-c", "! grep -n TODO price")
JEST = check("jest", "{node_modules}/.bin/jest", "--json", language=Language.NODE)
NPM = check("npm", "npm", "run", "-s", "lint")
MAKE = check("make", "make", "check")
ALL = (PYTEST, UNITTEST, RUFF, OWN, SCRIPT, TEXT, JEST, NPM, MAKE)
PATHS = frozenset({"tests/test_a.py", "tests/prices.sh", "till/money.py", "api/tests/test_b.py"})


def argv(command: str, *checks: CheckSpec) -> tuple[str, ...]:
    found = by_command(1, command, checks or ALL, PATHS)
    assert isinstance(found, ByCommand), found
    return found.spec.argv


@pytest.mark.req("P9")
def test_an_agent_is_told_how_commands_may_begin_and_not_the_text_of_our_own_programs() -> None:
    ours = check("syntax", "{python}", "-I", "-c", "import sys\n\nsys.exit(0)\n", ".")
    said = ("python3 -m pytest", "python3 -m unittest", "python3 tools/lint.py", "jest")
    assert beginnings((PYTEST, UNITTEST, ours, OWN, JEST, PYTEST)) == said


@pytest.mark.req("P9")
@pytest.mark.parametrize(
    ("command", "becomes"),
    [
        ("pytest -k price tests/test_a.py", (*_SELECT[:-1], "-k", "price", "tests/test_a.py")),
        ("python3 -m pytest tests/test_a.py::test_x", (*_SELECT[:-1], "tests/test_a.py::test_x")),
        ("tests/test_a.py::test_x", (*_SELECT[:-1], "tests/test_a.py::test_x")),
        ("python -m unittest tests.test_a.A.test_x", ("{python}", "-m", "unittest", "-v", "tests.test_a.A.test_x")),
        ("tests.test_a.A.test_x", ("{python}", "-m", "unittest", "-v", "tests.test_a.A.test_x")),
        (
            "python3.11 -m unittest discover -s tests",
            ("{python}", "-m", "unittest", "discover", "-v", "-s", "tests"),
        ),
        ("ruff check 'till/a b.py'", ("{python}", "-m", "ruff", "check", "till/a b.py")),
        ("python3 tools/lint.py tests", ("python3", "tools/lint.py", "tests")),
        ("sh tests/prices.sh 3", ("sh", "tests/prices.sh", "3")),
        ("sh -c '! grep -n TODO price'", TEXT.argv),
        ("npx jest a.test.js", ("{node_modules}/.bin/jest", "a.test.js")),
        ("npm run -s lint -- src", ("npm", "run", "-s", "lint", "--", "src")),
        ("make test", ("make", "test")),
        ("python3 -m unittest", UNITTEST.argv),
    ],
)
def test_a_command_of_the_projects_own_checks_may_be_run(command: str, becomes: tuple[str, ...]) -> None:
    assert argv(command) == becomes


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("true", "begins with true"),
        ("grep -q price till/money.py", "begins with grep"),
        ("python3 -c pass", "begins with python3 -c"),
        ("python3 tools/other.py", "begins with python3 tools/other.py"),
        ("sh -c true", "begins with sh -c"),
        ("bash tests/prices.sh", "begins with bash"),
        ("npm exec anything", "begins with npm"),
        ("env pytest", "begins with env"),
        ("PYTHONPATH=. pytest", "begins with PYTHONPATH"),
        ("/tmp/pytest", "begins with /tmp/pytest"),
        ("tests/test_gone.py::test_x", "begins with tests/test_gone.py"),
        ("os.path.join", "begins with os.path.join"),
        ("pytest tests || true", "needs a shell"),
        ("pytest $(echo tests)", "needs a shell"),
        ("pytest 'tests", "cannot be read"),
        ("pytest --junitxml={report}", "placeholder"),
        ("pytest --collect-only", "cannot fail"),
        ("python3 -m pytest --version", "cannot fail"),
        ("ruff check --exit-zero .", "cannot fail"),
        ("  ", "needs a shell"),
    ],
)
def test_any_other_command_is_refused_with_its_reason(command: str, reason: str) -> None:
    found = by_command(1, command, ALL, PATHS)
    assert isinstance(found, Unjudged)
    assert reason in found.reason


@pytest.mark.req("P9")
def test_where_tests_have_names_they_are_read_and_elsewhere_the_exit_code_is() -> None:
    for command, report, name in (
        ("pytest tests/test_a.py", ReportFormat.JUNIT, "ac-4"),
        ("python3 -m unittest tests.test_a", ReportFormat.UNITTEST, "ac-4"),
        ("ruff check till", ReportFormat.EXIT, "ac-4"),
    ):
        found = by_command(4, command, ALL, PATHS)
        assert isinstance(found, ByCommand)
        assert (found.spec.report, found.spec.name, found.spec.id, found.spec.writes) == (report, name, name, True)


@pytest.mark.req("P9")
def test_of_several_projects_the_one_whose_files_are_named_is_asked() -> None:
    below = PYTEST.model_copy(update={"id": "api/pytest", "root": "api"})
    for command in ("pytest api/tests/test_b.py", "api/tests/test_b.py::test_x"):
        found = by_command(1, command, (below, PYTEST), PATHS)
        assert isinstance(found, ByCommand)
        assert (found.of.id, found.spec.root) == ("api/pytest", "api")
        assert found.spec.argv[-1].startswith("tests/test_b.py")
    top = by_command(1, "pytest tests/test_a.py", (below, PYTEST), PATHS)
    assert isinstance(top, ByCommand)
    assert top.of.id == "pytest"


def judgement(**said: Any) -> CriterionJudgement:
    return CriterionJudgement.model_validate({"criterion": "An old token\n is refused."} | said)


def proposed(*judgements: CriterionJudgement) -> object:
    return proposal(1, "An old TOKEN is  refused. ", judgements, ALL, PATHS)


@pytest.mark.req("P9")
def test_a_judgement_is_found_by_its_words_whatever_their_case_and_spaces() -> None:
    other = judgement(criterion="A new token is taken.", command="make test")
    found = proposed(other, judgement(command="pytest"))
    assert isinstance(found, ByCommand)
    assert found.of is PYTEST
    assert proposed(other) == Unjudged("the verifier did not judge it")


@pytest.mark.req("P9")
def test_a_place_with_a_claim_is_a_claim_that_it_is_met_there_unless_the_verifier_says_more() -> None:
    said = {"location": "./till/money.py:3", "claim": "it compares"}
    assert proposed(judgement(**said)) == ByPlace("till/money.py", 3, "it compares", met=True)
    for word in (False, "yes", None, 1):
        assert proposed(judgement(**said, met=word)) == ByPlace("till/money.py", 3, "it compares", met=False)


@pytest.mark.req("P9", "X1")
def test_what_says_nothing_or_two_things_is_no_judgement() -> None:
    place = judgement(location="till/money.py:3", claim="it compares")
    for judgements, reason in (
        ((judgement(),), "neither"),
        ((judgement(claim="it works"),), "neither"),
        ((judgement(location="till/money.py:3"),), "does not say what is true there"),
        ((place, judgement(command="pytest")), "more than one way"),
        ((judgement(command="true", location="till/money.py:3", claim="it compares"),), "was not run"),
    ):
        found = proposed(*judgements)
        assert isinstance(found, Unjudged)
        assert reason in found.reason
    assert proposed(place, place) == proposed(place), "the same twice is one"


@pytest.mark.req("P9")
def test_a_task_asks_for_one_check_for_each_criterion() -> None:
    task = ("one", "two", "three")
    text, settings, code = (ChangedFile(path=path, change=ChangeKind.MODIFIED) for path in ("a.md", "b.toml", "c.py"))
    criteria = ("ac-1", "ac-2", "ac-3")
    others: tuple[tuple[ChangedFile, ...], ...] = ((text,), (text, settings), (settings,))
    for files in others:
        assert required_checks(task, files, is_waived=False) == criteria
    codes: tuple[tuple[ChangedFile, ...], ...] = ((), (code,), (text, settings, code))
    for files in codes:
        assert required_checks(task, files, is_waived=False) == (*criteria, "red-at-baseline-new-tests")
        assert required_checks(task, files, is_waived=True) == criteria


@pytest.mark.req("F2", "X1")
def test_the_plan_says_how_a_criterion_is_judged_and_the_worker_where_the_plan_is_silent() -> None:
    planned = judgement(criterion="One", command="pytest tests/test_one.py")
    other, two = judgement(criterion="one", command="pytest"), judgement(criterion="Two", command="make test")
    stray = judgement(criterion="Three", command="pytest")
    assert evidence_for(["ONE", "two", "four"], [planned], [other, two, stray]) == (planned, two)
    assert evidence_for(["one"], [], [other]) == (other,)


@pytest.mark.req("F2", "X1")
def test_an_author_names_only_lines_that_it_wrote_in_texts_that_the_plan_speaks_of() -> None:
    added = {"README.md": frozenset({3}), "till/money.py": frozenset({3}), "settings.toml": frozenset({1})}
    words = "The README and settings.toml say so; docs/other.md, too."
    assert own_place_problem(words, "README.md", 3, added) is None
    assert own_place_problem(words, "settings.toml", 1, added) is None
    assert own_place_problem(words, "README.md", 4, added) == "README.md:4 is not a line that this change wrote"
    assert own_place_problem(words, "docs/other.md", 1, added) == "docs/other.md:1 is not a line that this change wrote"
    said = own_place_problem("till/money.py adds", "till/money.py", 3, added)
    assert said == "till/money.py:3 is only named: name a test or a command that shows it"
    said = own_place_problem("A voucher pays.", "README.md", 3, added)
    assert said == "README.md:3 is only text, and the plan does not speak of README.md: name a test or a command"


@pytest.mark.req("F2", "X1")
@pytest.mark.parametrize(
    ("words", "path", "speaks"),
    [
        ("CHANGELOG.md tells of it.", "CHANGELOG.md", True),
        ("The option is in `./docs/usage.md`.", "docs/usage.md", True),
        ("usage.md names it", "docs/usage.md", True),
        ("other/usage.md names it", "docs/usage.md", False),
        ("the readme names it", "README.rst", True),
        ("the docs explain it", "docs/usage.md", True),
        ("everything in guide/ is spelled right", "guide/a.md", True),
        ("the guide is spelled right", "guide/a.md", False),
        ("parts/task-001 is good", "README.md", False),
        ("parts/task-001 is good", "good.md", False),
        ("pyproject.toml asks for 3.11", "pyproject.toml", True),
    ],
)
def test_words_speak_of_a_file_by_its_name_its_folder_or_as_one_speaks_of_documents(
    words: str, path: str, speaks: bool
) -> None:
    assert is_about(words, path) is speaks


@pytest.mark.req("F2", "X1")
def test_a_plan_that_names_a_file_leaves_the_line_to_the_worker() -> None:
    planned = judgement(criterion="One", location="docs/a.md:1", claim="it is there")
    own, other = (judgement(criterion="one", location=f"{path}:7", claim="here") for path in ("docs/a.md", "b.md"))
    assert evidence_for(["one"], [planned], [own]) == (own,)
    assert evidence_for(["one"], [planned], [other]) == (planned,)
    assert evidence_for(["one"], [planned], [judgement(criterion="one", command="make test")]) == (planned,)
    assert planned_words("one", [planned, judgement(criterion="two", location="c.md:1")]) == "one docs/a.md"
    assert planned_words("one", [judgement(criterion="one", command="make test")]) == "one"


@pytest.mark.req("F2", "X1")
@pytest.mark.parametrize(
    ("command", "counts"),
    [
        ("ruff check till/new.py", False),
        ("ruff check ./till/new.py", False),
        ("ruff check fresh/", False),
        ("ruff check --config=fresh/ruff.toml till", False),
        ("ruff check till", True),
        ("ruff check till/money.py", True),
        ("mypy -m till.new", False),
        ("mypy -m till.money", True),
        ("mypy -p fresh", False),
        ("sh tests/prices.sh till/new.py", True),
        ("pytest tests/test_a.py", False),
    ],
)
def test_a_tool_that_misses_its_file_says_nothing_about_the_old_code(command: str, counts: bool) -> None:
    lint = RUFF.model_copy(update={"name": "lint"})
    mypy = check("mypy", "{python}", "-m", "mypy", ".", name="type-check")
    proposed = by_command(1, command, (PYTEST, lint, mypy, SCRIPT), PATHS)
    assert isinstance(proposed, ByCommand), proposed
    added = {"till/new.py", "fresh/__init__.py", "fresh/ruff.toml"}
    assert may_fail_before(proposed, PATHS, PATHS | added) is counts


def test_what_kind_of_work_a_change_is_follows_from_its_files() -> None:
    text, settings, code = (ChangedFile(path=path, change=ChangeKind.MODIFIED) for path in ("a.md", "b.toml", "c.py"))
    assert [task_type(files).value for files in ((), (text,), (settings,), (text, settings), (text, code))] == [
        "code",
        "documentation",
        "configuration",
        "configuration",
        "code",
    ]


@pytest.mark.req("P8", "P9")
@pytest.mark.parametrize(
    ("criterion", "why"),
    [
        ("`python3 -c 'import till; assert till.price() == 3'` passes.", "begins with python3 -c"),
        ("`node -e 'process.exit(1)'` passes.", "begins with node -e"),
        ("`tests/test_none.py::test_x` passes.", "begins with tests/test_none.py::test_x"),
        ("`pytest --collect-only tests` lists it.", "cannot fail, for it has --collect-only"),
        ("`tox -e py311` is green.", "begins with tox"),
        ("`python -m nose2 tests` is green.", "begins with python -m"),
        ("`pytest tests/test_a.py && make docs` is green.", "needs a shell"),
    ],
)
def test_a_criterion_that_names_what_can_never_be_run_is_told_why(criterion: str, why: str) -> None:
    (reason,) = unrunnable(criterion, ALL, PATHS)
    assert why in reason


@pytest.mark.req("P8", "P9")
@pytest.mark.parametrize(
    "criterion",
    [
        "A voucher of 25.00 pays 16.90.",
        "`pytest tests/test_a.py::test_x` passes.",
        "`tests/test_a.py::test_x` passes.",
        "`ruff check till` finds nothing.",
        "`make docs` builds the pages.",
        "`pytest` is the runner, and `till.price()` returns `3`.",
        "`python -m till 3` prints the price.",
        "`till --help` names the option `--rate`.",
        "`std::fmt::Display` is implemented; ` ` stays a space.",
    ],
)
def test_what_is_no_command_or_can_be_run_is_left_alone(criterion: str) -> None:
    assert unrunnable(criterion, ALL, PATHS) == ()


@pytest.mark.req("P8")
def test_where_checks_or_tests_are_not_known_yet_their_commands_are_not_judged() -> None:
    assert unrunnable("`python3 -c 'assert False'` passes.", (), PATHS) == ()
    assert unrunnable("`tests/test_none.py::test_x` and `pytest tests` pass.", (RUFF,), PATHS) == ()
    assert len(unrunnable("`python3 -c 'assert False'` passes.", (RUFF,), PATHS)) == 1


def test_files_are_taken_from_the_ids_of_tests() -> None:
    assert files_of_tests("`a/test_b.py::C::d`, `a/test_b.py::e` and `x::y`") == ("a/test_b.py",)


@pytest.mark.req("F1", "X1")
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("verify all", "begins with verify"),
        ("python3 -c pass", "begins with python3 -c"),
        ("pytest --collect-only", "cannot fail"),
        ("", "needs a shell"),
        ("pytest tests/test_new.py::test_x", None),
        ("tests/test_new.py::test_x", None),
        ("tests.test_new.A.test_x", None),
        ("make test", None),
    ],
)
def test_a_plan_names_only_commands_that_can_be_run_once_its_tests_are_there(command: str, why: str | None) -> None:
    found = planned_problem(command, ALL, PATHS)
    assert (found is None) is (why is None)
    assert (why or "") in (found or "")


@pytest.mark.req("F1")
def test_of_a_plan_for_a_project_without_checks_or_tests_nothing_can_be_said_of_them() -> None:
    assert planned_problem("verify all", (), PATHS) is None
    assert planned_problem("pytest tests/test_new.py", (RUFF,), PATHS) is None
    assert planned_problem("verify all", (RUFF,), PATHS) is not None
