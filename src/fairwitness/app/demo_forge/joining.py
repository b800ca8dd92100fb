"""What the refineries do and say: the first settles a conflict and asks for what the plan forgot."""

from fairwitness.app.demo_feature.scripts import Document, Said, Session, read
from fairwitness.app.demo_forge.changes import KINDS_SETTLED
from fairwitness.app.demo_forge.plans import (
    CHANGE_REQUEST,
    COLLECTED,
    CONFLICTING,
    DURATION,
    FIRST_REFINERY,
    MASS,
    PACKAGE,
    SECOND_REFINERY,
    TWICE,
)
from fairwitness.app.demo_forge.repository import MOMENT
from fairwitness.app.demo_forge.scripts import use, walkthrough
from fairwitness.contracts.common.ids import attempt_branch
from fairwitness.contracts.common.tools import Role, Tool
from fairwitness.contracts.forge.documents import ChangeRequestStatus

SETTLED = "measure/kinds.py"
"""The file in which the two tasks meet."""
ASKED_FOR: Document = {
    "id": CHANGE_REQUEST,
    "title": "Nobody would notice a unit that two kinds claim",
    "emitted_by": FIRST_REFINERY,
    "emitted_at": MOMENT,
    "status": ChangeRequestStatus.PENDING.value,
    "reason": "kind_of takes the first kind that knows a unit, and with three kinds a unit is easily taken twice.",
    "affected_tasks": [PACKAGE],
    "suggested_changes": "A function that finds units of two kinds, a test that holds KINDS to it, and a note for "
    "whoever adds a kind.",
    "body": (
        f"## Description\n\n{MASS} and {DURATION} each added a kind. Nothing says that their units differ.\n\n"
        "## Impact Assessment\n\nNothing that stands changes. The package should wait for it.\n\n"
        "## Proposed Resolution\n\nTwo small tasks behind this refinery.\n"
    ),
}


def _refined(
    node: str,
    said: Document,
    words: str,
    *turns: Said,
    requests: tuple[Document, ...] = (),
    fixes: tuple[str, ...] = (),
) -> Session:
    """A refinery's session: everything that it was given is merged."""
    answer = {
        # which run they belong to only the harness knows
        "merged_branches": [attempt_branch(task, 2 if task == TWICE else 1) for task in COLLECTED[node]],
        "unmerged": [],
        "failing_tests": [],
        "fixes": [{"path": path, "reason": "two branches added a kind at the same place"} for path in fixes],
        "change_requests": list(requests),
        "walkthrough": said,
    }
    return Session(Role.REFINERY, f"{node}-1", 1, answer, words, turns)


FIRST = _refined(
    FIRST_REFINERY,
    walkthrough(
        {SETTLED: "both kinds are listed"},
        ("tests.test_mass", "tests.test_duration", "tests.test_convert"),
        f"Four branches are one; {' and '.join(CONFLICTING)} met in {SETTLED}.",
        issues="Both added a kind to KINDS. Both stand there now, in the order of the plan.",
    ),
    "Joined; the plan should grow by a test for units that are taken twice.",
    Said("Where do they meet?", read(SETTLED)),
    Said("Both kinds stay.", (use(Tool.FIX_CONFLICT, path=SETTLED, content=KINDS_SETTLED),)),
    Said("Do all tests pass?", (use(Tool.RUN_TESTS),)),
    requests=(ASKED_FOR,),
    fixes=(SETTLED,),
)
SECOND = _refined(
    SECOND_REFINERY,
    walkthrough({}, ("tests.test_show", "tests.test_total", "tests.test_mixed"), "Three branches, no conflict."),
    "They fit as they are.",
    Said("Do they know of each other?", read("measure/show.py", "measure/sums.py", "measure/mixed.py")),
)
SESSIONS = (FIRST, SECOND)
