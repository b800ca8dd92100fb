"""Phase 5, the slip: what commands can decide is decided, and what only a reader of paper can is put to a person."""

from fairwitness.app.demo_autopilot.roadmap import SLIP_HELD
from fairwitness.app.demo_autopilot.scripts import (
    Task,
    carried_out,
    judged,
    plan_checked,
    planned,
    researched,
    shown,
    verified,
)
from fairwitness.app.demo_feature.scripts import Document, create
from fairwitness.contracts.autopilot.plan import TaskKind
from fairwitness.contracts.autopilot.words import Complexity

PHASE = 5
_PATH, _TESTS = "larder/slip.py", "tests/test_slip.py"
SLIP = '''\
"""The shopping list on paper."""

from collections.abc import Mapping

COLUMNS = 24


def slip(lines: Mapping[str, int]) -> str:
    """A list for the slip printer: names on the left, cut if they must be, and amounts on the right."""
    return "".join(f"{_line(name, str(amount))}\\n" for name, amount in lines.items())


def _line(name: str, amount: str) -> str:
    room = COLUMNS - len(amount) - 1
    return f"{name[:room]:.<{room}} {amount}"
'''
_TEST_SLIP = '''\
"""Slips are as wide as their paper."""

import unittest

from larder.slip import slip


class Slips(unittest.TestCase):
    def test_amounts_stand_on_the_right(self) -> None:
        self.assertEqual(slip({"oats": 3, "rice": 12}), "oats.................. 3\\nrice................. 12\\n")

    def test_a_long_name_is_cut(self) -> None:
        self.assertEqual(slip({"extremely fine wholemeal flour": 1}), "extremely fine wholeme 1\\n")

    def test_an_empty_list_is_an_empty_slip(self) -> None:
        self.assertEqual(slip({}), "")
'''

_COLUMNS, _READABLE = SLIP_HELD
_FILLS = shown(_PATH, SLIP, 'return f"{name')
TASK = Task(
    PHASE,
    "slip",
    "Print lists in 24 columns. Write larder/slip.py with slip(lines): each line of a shopping list with the name on "
    "the left, dots, and the amount on the right; a name that does not fit is cut.",
    "slip() gives the text that goes to the slip printer.",
    (_COLUMNS,),
    ("LAR-06", _COLUMNS.criterion),
    (create(_TESTS, _TEST_SLIP), create(_PATH, SLIP)),
    (_FILLS,),
    ("larder/shopping.py",),
)
TASKS = (TASK,)
AT_THE_SHELF = "read-at-the-shelf"
BY_A_PERSON: Document = {
    "id": AT_THE_SHELF,
    "kind": TaskKind.HUMAN_VERIFY.value,
    "complexity": Complexity.SIMPLE.value,
    "wave": 2,
    "files": [],
    "action": "Print a slip of twelve lines on the kitchen's slip printer, hold it at arm's length at the shelf, and "
    "read every amount aloud",
    "criteria": [
        {
            "criterion": _READABLE.criterion,
            "command": "python3 -c \"from larder.slip import slip; print(slip({'oats': 3, 'rice': 12}))\"",
        }
    ],
    "done": "Somebody has read a printed slip without a mistake.",
    "requirements": ["LAR-06", _READABLE.criterion],
}
_UNSURE: Document = {
    "autonomous_resolution_attempted": True,
    "autonomous_confidence": 4.0,
    "deferral_evidence": [
        {
            "criterion": _READABLE.criterion,
            "methods_attempted": [
                "slip({'oats': 3, 'rice': 12}) printed to the terminal and its columns counted: 24 each",
                "looked for a driver or a font of the slip printer in the repository: there is none",
            ],
            "why_insufficient": "How large and how dark the letters are, the printer decides, and no file here.",
        }
    ],
}

SESSIONS = (
    researched(
        PHASE,
        (
            "missing() of larder/shopping.py gives names and amounts in the order in which they are to be printed.",
            "The printer takes plain text of 24 columns; everything else is its own affair.",
            "Whether paper can be read no command can say: the plan needs a task for a person.",
        ),
        "One function from a list to text, and a look at the paper by somebody.",
        ("Long names would push the amount off the paper.",),
        ("larder/shopping.py",),
    ),
    planned(PHASE, TASKS, BY_A_PERSON),
    plan_checked(PHASE, 9.0, "The task for a person says what to do and what counts."),
    *carried_out(TASK),
    verified(
        PHASE,
        1,
        (
            (_COLUMNS, _FILLS),
            (_READABLE, f"as far as text goes: {_FILLS}; the paper itself I cannot see"),
        ),
        (_PATH, _TESTS),
        more=_UNSURE,
    ),
    judged(
        PHASE,
        1,
        (f"Two long names that begin alike look the same once {_FILLS.partition(' -- ')[0]} has cut them.",),
        (_FILLS, "slip({'oats': 3}) -> oats.................. 3"),
        "Width and order are right in everything I tried, and nothing is built that nobody asked for. The verifier and "
        "I differ nowhere: I cannot see paper either, and the plan says who can.",
        (_PATH, _TESTS, "larder/shopping.py"),
    ),
)
