"""What the workers do and say: one of them twice, one with a helper, one with two subtasks."""

from fairwitness.app.demo_feature.scripts import Call, Said, Session, create, read, replace
from fairwitness.app.demo_forge import changes, later_changes
from fairwitness.app.demo_forge.plans import (
    ADDED,
    ASK,
    CLASHES,
    CONTRIBUTING,
    DURATION,
    MASS,
    MIXED,
    NAMES,
    PACKAGE,
    PARSE,
    README,
    SHOW,
    SUMS,
    TASKS,
)
from fairwitness.app.demo_forge.scripts import NO_ISSUES, use, walkthrough
from fairwitness.contracts.common.tools import Role, Tool
from fairwitness.rules.spawning import ROLE_OF

_TASK_OF = {task.id: task for task in (*TASKS, *ADDED)}
_ADDING, _COMPARING = "subtask-001", "subtask-002"


def _changed(calls: tuple[Call, ...]) -> dict[str, str]:
    """Every file of some calls with the reason for it."""
    paths = dict.fromkeys(call.args["path"] for call in calls)
    return {path: "what the task asks for" if "test" not in path else "tests of the criteria" for path in paths}


def _tests(calls: tuple[Call, ...]) -> tuple[str, ...]:
    paths = dict.fromkeys(call.args["path"] for call in calls if call.args["path"].startswith("tests/"))
    return tuple(path.removesuffix(".py").replace("/", ".") for path in paths)


def _worked(
    node: str,
    reads: tuple[str, ...],
    *calls: Call,
    attempt: int = 1,
    issues: str = NO_ISSUES,
    confidence: float = 0.9,
    followups: tuple[str, ...] = (),
) -> Session:
    """An attempt at a task by somebody who does it alone."""
    task = _TASK_OF[node]
    said = walkthrough(
        _changed(calls),
        _tests(calls),
        f"{task.title}: done.",
        issues=issues,
        confidence=confidence,
        followups=followups,
    )
    turns = (Said("First what is there.", read(*reads)), Said("Tests, then code.", calls))
    return Session(ROLE_OF[task.agent], f"{node}-{attempt}", 1, {"walkthrough": said}, f"{task.title}: done.", turns)


def _helped(parent: str, number: int, role: Role, summary: str, *calls: Call) -> Session:
    """A helper of an attempt, the how-manieth it is."""
    said = walkthrough(_changed(calls), _tests(calls), summary)
    turns = (Said("At once.", calls),)
    return Session(role, f"{parent}-1-h{number}", 1, {"walkthrough": said}, summary, turns)


_PARSE_TEST = create("tests/test_parse.py", changes.TEST_PARSE)
PARSE_FIRST = _worked(PARSE, ("measure/convert.py",), _PARSE_TEST, create("measure/parse.py", changes.PARSE_WRONG))
"""It ran nothing: "90min" has no space, and the walkthrough says that all tests pass."""
PARSE_AGAIN = _worked(
    PARSE,
    ("measure/convert.py",),
    _PARSE_TEST,
    create("measure/parse.py", changes.PARSE),
    attempt=2,
    issues="The attempt before split at the space, which need not be there.",
)
BEFORE_THE_REFINERY = (
    _worked(
        MASS,
        ("measure/length.py", "measure/kinds.py"),
        create("tests/test_mass.py", changes.TEST_MASS),
        create("measure/mass.py", changes.MASS),
        replace("measure/kinds.py", changes.KINDS_WITH_MASS),
    ),
    _worked(
        DURATION,
        ("measure/length.py", "measure/kinds.py"),
        create("tests/test_duration.py", changes.TEST_DURATION),
        create("measure/duration.py", changes.DURATION),
        replace("measure/kinds.py", changes.KINDS_WITH_DURATION),
    ),
    _worked(
        NAMES,
        ("measure/length.py",),
        create("tests/test_names.py", changes.TEST_NAMES),
        create("measure/names.py", changes.NAMES),
    ),
    PARSE_FIRST,
    PARSE_AGAIN,
)

_SHOW_TESTS = create("tests/test_show.py", changes.TEST_SHOW)
_SHOW_CODE = create("measure/show.py", changes.SHOW)
_ERRAND = (
    "Write the examples of the spec `writing` about showing into tests/test_show.py, each as an assertion about "
    "show(amount, unit, places=2) of measure/show.py, and 10 without any places. Touch nothing else."
)
SHOWN = Session(
    Role.WORKER,
    f"{SHOW}-1",
    1,
    {
        "walkthrough": walkthrough(
            _changed((_SHOW_TESTS, _SHOW_CODE)),
            ("tests.test_show",),
            "Quantities are shown; a throwaway worker wrote the examples down as tests.",
            issues="Without places there is no point, and a zero at the end must stay.",
        )
    },
    "Shown as the spec says.",
    (
        Said("The examples are an errand.", (use(Tool.AGENT, agent=Role.THROWAWAY.value, task=_ERRAND),)),
        Said("I check them against the spec.", read("tests/test_show.py")),
        Said("They are right. Now the code.", (_SHOW_CODE,)),
    ),
)
SHOWN_HELPERS = (_helped(SHOW, 1, Role.THROWAWAY, "Three tests with the examples of the spec.", _SHOW_TESTS),)

_ADD = (
    create("tests/test_total.py", later_changes.TEST_TOTAL),
    create("measure/sums.py", later_changes.SUMS_BEGUN),
)
_COMPARE = (
    create("tests/test_largest.py", later_changes.TEST_LARGEST),
    replace("measure/sums.py", later_changes.SUMS_LARGEST),
)
_JOIN = replace("measure/sums.py", later_changes.SUMS_HEAD)
SUMMED = Session(
    Role.SUB_EXECUTOR,
    f"{SUMS}-1",
    1,
    {
        "walkthrough": walkthrough(
            _changed((*_ADD, *_COMPARE)),
            _tests((*_ADD, *_COMPARE)),
            f"{_ADDING} (adding up) and {_COMPARING} (the largest) are completed and stand in one module.",
        )
    },
    "Both parts are done and fit together.",
    (
        Said("What do the parts rest on?", read("measure/parse.py", "measure/convert.py")),
        Said(
            "Two parts; the second builds on the first.",
            (
                use(
                    Tool.WRITE_SUBTASK,
                    id=_ADDING,
                    title="Adding up",
                    type=1,
                    body="## Description\n\nmeasure/sums.py: total(texts, to) in a unit, with tests/test_total.py.\n",
                ),
                use(
                    Tool.WRITE_SUBTASK,
                    id=_COMPARING,
                    title="The largest",
                    type=2,
                    body="## Description\n\nmeasure/sums.py: largest(texts) by total, with tests/test_largest.py.\n",
                    depends_on=[_ADDING],
                ),
            ),
        ),
        Said("The first part.", (use(Tool.AGENT, agent=Role.THROWAWAY.value, task=_ADDING),)),
        Said("The second part.", (use(Tool.AGENT, agent=Role.WORKER.value, task=_COMPARING),)),
        Said("I read what came of it.", read("measure/sums.py")),
        Said("It should say both at its head.", (_JOIN,)),
    ),
)
SUMMED_HELPERS = (
    _helped(SUMS, 1, Role.THROWAWAY, "total adds up.", *_ADD),
    _helped(SUMS, 2, Role.WORKER, "largest compares by total.", *_COMPARE),
)

BEHIND_THE_REFINERY = (
    _worked(
        MIXED,
        ("measure/kinds.py",),
        create("tests/test_mixed.py", later_changes.TEST_MIXED),
        create("measure/mixed.py", later_changes.MIXED),
        confidence=0.55,
        followups=("Amounts with a decimal part are not taken apart.",),
    ),
    _worked(
        ASK,
        ("measure/parse.py", "measure/names.py", "measure/show.py"),
        create("tests/test_ask.py", later_changes.TEST_ASK),
        create("measure/ask.py", later_changes.ASK),
    ),
    _worked(README, ("README.md",), replace("README.md", later_changes.README)),
    _worked(
        PACKAGE,
        ("measure/__init__.py",),
        create("tests/test_package.py", later_changes.TEST_PACKAGE),
        create("measure/__init__.py", later_changes.PACKAGE),
    ),
    _worked(
        CLASHES,
        ("measure/kinds.py",),
        create("tests/test_clashes.py", later_changes.TEST_CLASHES),
        create("measure/clashes.py", later_changes.CLASHES),
    ),
    _worked(CONTRIBUTING, ("README.md",), create("CONTRIBUTING.md", later_changes.CONTRIBUTING)),
)
SESSIONS = (
    *BEFORE_THE_REFINERY,
    SHOWN,
    *SHOWN_HELPERS,
    SUMMED,
    *SUMMED_HELPERS,
    *BEHIND_THE_REFINERY,
)
