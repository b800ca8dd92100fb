"""What the captain returns: the plan with twelve nodes, and two more when a refinery asks for them."""

from dataclasses import dataclass

from fairwitness.app.demo_feature.scripts import Document, Said, Session, read
from fairwitness.app.demo_forge.repository import MOMENT
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.forge.dag import NodeState, NodeType

MASS, DURATION, NAMES, PARSE, SHOW = (f"task-{number:03d}" for number in range(1, 6))
SUMS, MIXED, ASK, README, PACKAGE = (f"task-{number:03d}" for number in range(6, 11))
CLASHES, CONTRIBUTING = "task-011", "task-012"
FIRST_REFINERY, SECOND_REFINERY = "refinery-01", "refinery-02"
CHANGE_REQUEST = "cr-001"
CONFLICTING = (MASS, DURATION)
"""Both add a line at the same place; the first refinery collects both."""
TWICE = PARSE
"""Its first attempt is red, and says that it is green."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task of the plan."""

    id: str
    title: str
    agent: int
    after: tuple[str, ...]
    writes: tuple[str, ...]
    criteria: tuple[str, ...]
    context: str
    complexity: str = "small"


COLLECTED: dict[str, tuple[str, ...]] = {
    FIRST_REFINERY: (MASS, DURATION, NAMES, PARSE),
    SECOND_REFINERY: (SHOW, SUMS, MIXED),
}
"""What each refinery joins."""
TASKS = (
    Task(
        MASS,
        "Masses",
        2,
        (),
        ("measure/mass.py", "measure/kinds.py", "tests/test_mass.py"),
        ("mg, g and kg are converted into each other", "a mass is not converted into a length"),
        "measure/length.py shows how a kind looks; it is listed in KINDS of measure/kinds.py.",
    ),
    Task(
        DURATION,
        "Times",
        2,
        (),
        ("measure/duration.py", "measure/kinds.py", "tests/test_duration.py"),
        ("s, min and h are converted into each other", "a time is not converted into a length"),
        "measure/length.py shows how a kind looks; it is listed in KINDS of measure/kinds.py.",
    ),
    Task(
        NAMES,
        "Units that are written out",
        1,
        (),
        ("measure/names.py", "tests/test_names.py"),
        ('symbol("hours") is "h"', 'symbol("km") is "km"'),
        "The names stand in the spec `writing`.",
    ),
    Task(
        PARSE,
        "Quantities are read",
        2,
        (),
        ("measure/parse.py", "tests/test_parse.py"),
        ('parse("1.5 km") is 3/2 and "km"', "the space is not needed", "anything else is refused with a ValueError"),
        "How people write quantities stands in the spec `writing`.",
    ),
    Task(
        SHOW,
        "Quantities are shown",
        2,
        (),
        ("measure/show.py", "tests/test_show.py"),
        ('3/2 and "km" is "1.5 km"', "two places at most, unless others are asked for", "10 stays 10"),
        "How people read quantities stands in the spec `writing`.",
    ),
    Task(
        SUMS,
        "Several quantities at once",
        3,
        (FIRST_REFINERY,),
        ("measure/sums.py", "tests/test_total.py", "tests/test_largest.py"),
        ("total adds up quantities of one kind", "largest finds the largest, whatever the units are"),
        "Quantities are given as texts; measure/parse.py reads them.",
        complexity="medium",
    ),
    Task(
        MIXED,
        "Quantities in more than one unit",
        2,
        (FIRST_REFINERY,),
        ("measure/mixed.py", "tests/test_mixed.py"),
        ('5400 and "s" is "1 h 30 min"', "units that are not needed are left out"),
        "measure/kinds.py knows the units of a kind and their sizes.",
    ),
    Task(
        ASK,
        "A whole question",
        2,
        (SECOND_REFINERY,),
        ("measure/ask.py", "tests/test_ask.py"),
        ('ask("1.5 km in metres") is "1500 m"', "a question without a unit is refused"),
        "parse, symbol, convert and show do the parts.",
    ),
    Task(
        README,
        "The README tells what there is",
        1,
        (SECOND_REFINERY,),
        ("README.md",),
        ("an example of ask, total and mixed",),
        "README.md knows lengths only.",
    ),
    Task(
        PACKAGE,
        "Everything at hand in the package",
        1,
        (ASK, README),
        ("measure/__init__.py", "tests/test_package.py"),
        ("ask, convert, largest, mixed and total can be imported from measure",),
        "measure/__init__.py holds a sentence only.",
    ),
)
"""In the order of the graph; the refineries stand between them."""
ADDED = (
    Task(
        CLASHES,
        "No unit belongs to two kinds",
        2,
        (FIRST_REFINERY,),
        ("measure/clashes.py", "tests/test_clashes.py"),
        ("a unit of two kinds is told", "a test holds our own kinds to it"),
        f"{CHANGE_REQUEST}: kind_of in measure/kinds.py takes the first kind that knows a unit.",
    ),
    Task(
        CONTRIBUTING,
        "How a kind is added",
        1,
        (CLASHES,),
        ("CONTRIBUTING.md",),
        ("every step is named, the test for units that are taken included",),
        f"{CHANGE_REQUEST}: whoever adds a kind must know of the test.",
    ),
)
"""What the change request brings; the package is closed after it."""
UNITS = """\
# Units

A kind is a dictionary of its units, each with its size in the smallest one, a whole number. KINDS in
`measure/kinds.py` lists all kinds. Amounts are fractions; nothing is rounded before it is shown.
"""
WRITING = """\
# Writing

- Read: an amount with or without a decimal part, a unit in small letters, a space between them or none.
- Written out: metre, kilometre, gram, kilogram, minute, hour, with or without an s at the end.
- Shown: two places at most, no zeros after the point, a space, the unit.
"""


def _node(task: Task) -> Document:
    return {
        "id": task.id,
        "type": NodeType.TASK.value,
        "agentType": task.agent,
        "dependencies": list(task.after),
        "status": NodeState.PENDING.value,
        "metadata": {"writes": list(task.writes)},
    }


def _refinery(name: str) -> Document:
    return {
        "id": name,
        "type": NodeType.REFINERY.value,
        "agentType": "refinery",
        "dependencies": list(COLLECTED[name]),
        "status": NodeState.PENDING.value,
    }


def _document(task: Task) -> Document:
    body = (
        f"## Description\n\n{task.title}, as the criteria say.\n\n## Context\n\n{task.context}\n\n"
        f"## Instructions\n\nTests first. Change only {', '.join(task.writes)}.\n"
    )
    return {
        "id": task.id,
        "title": task.title,
        "type": task.agent,
        "dependencies": list(task.after),
        "acceptance_criteria": list(task.criteria),
        "estimated_complexity": task.complexity,
        "status": NodeState.PENDING.value,
        "branch": None,
        "attemptId": None,
        "body": body,
    }


_NODES = (
    *(_node(task) for task in TASKS[:4]),
    _refinery(FIRST_REFINERY),
    *(_node(task) for task in TASKS[4:7]),
    _refinery(SECOND_REFINERY),
    *(_node(task) for task in TASKS[7:]),
)
PLAN: Document = {
    "specs": [{"name": "units", "body": UNITS}, {"name": "writing", "body": WRITING}],
    "tasks": [_document(task) for task in TASKS],
    "dag": {
        "nodes": list(_NODES),
        "metadata": {"totalTasks": len(TASKS), "totalRefineries": len(COLLECTED)},
    },
    "assumptions": ["Only the units that the request names are wanted; others can be added in a line each."],
    "open_questions": [],
}
"""Without what only the harness knows: the run, the time and the author."""
EXTENSION: Document = {
    "specs": [],
    "tasks": [_document(task) for task in ADDED],
    "overlay": {
        "crId": CHANGE_REQUEST,
        "appliedAt": MOMENT,
        "addedNodes": [_node(task) for task in ADDED],
        "addedEdges": [{"from": CONTRIBUTING, "to": PACKAGE}],
    },
    "assumptions": ["The package is closed only when the new test stands."],
    "open_questions": [],
}
SESSIONS = (
    Session(
        Role.CAPTAIN,
        "captain-1",
        1,
        PLAN,
        "Ten tasks, two places where their branches meet.",
        (Said("What is there already?", read("README.md", "measure/kinds.py", "measure/convert.py")),),
    ),
    Session(
        Role.CAPTAIN,
        f"captain-{CHANGE_REQUEST}",
        1,
        EXTENSION,
        "The refinery is right: two tasks more, and the package waits for them.",
    ),
)
