"""The feature demo as values that tests compare with: its sessions by name, its tasks, and what its agents write."""

import copy
import re
from dataclasses import replace
from typing import Any, NamedTuple

from fairwitness.contracts.common.tools import Tool
from fairwitness.contracts.common.vocabulary import Risk
from fairwitness.demo.bundle import HONEST, LYING, load
from fairwitness.demo.sessions import RecordedCall, RecordedSession
from fairwitness.kit import yaml_text
from fairwitness.store.layout.feature import FeatureLayout

Document = dict[str, Any]

DEMO = load("feature")
LAYOUT = FeatureLayout(DEMO.slug)
CHECKS = (
    ("python3", "-m", "unittest"),
    ("python3", "tools/lint.py", "till", "tests", "tools"),
    ("python3", "tools/check_types.py", "till"),
)
"""The checks of the repository as a person runs them. `fairwitness.toml` declares the last two; the first is found."""
BASE_TESTS = 11
"""The number of tests in the repository."""
ALL_TESTS = 32
"""The same with the tests of all four tasks; the second attempt at the receipt adds one more."""

HONEST_TEAM = DEMO.team(HONEST)
LYING_TEAM = DEMO.team(LYING)


def _sessions(*names: str, variant: str = HONEST) -> tuple[RecordedSession, ...]:
    return tuple(DEMO.session(name, variant) for name in names)


INTAKE = DEMO.session("intake")
GROUNDWORK = (
    INTAKE,
    *_sessions("researcher-architecture", "researcher-impact", "researcher-dependencies", "researcher-patterns"),
)
SPEC = DEMO.session("spec")
FIRST_DESIGN, DESIGN = _sessions("designer-1", "designer-2")
"""The design that is sent back, and the one that is implemented."""
PLANNED, REPLANNED = _sessions("planner-1", "planner-2")
_PERSPECTIVES = ("security", "architecture", "pragmatic")
DESIGN_REVIEWS = _sessions(*(f"design-review-1-{each}" for each in _PERSPECTIVES))
DESIGN_REVIEWS_AGAIN = _sessions(*(f"design-review-2-{each}" for each in _PERSPECTIVES))
CODE_REVIEWS = {
    HONEST: _sessions(*(f"code-review-{each}" for each in _PERSPECTIVES)),
    LYING: _sessions(
        "code-review-security",
        "code-review-architecture",
        "code-review-pragmatic-without-receipt",
        variant=LYING,
    ),
}
FIRST_ITERATION = _sessions(
    *(f"{role}-{task}" for task in ("task-01", "task-02", "task-03") for role in ("implementer", "verifier")),
    "implementer-task-04-1",
    "verifier-task-04-1",
)
SECOND_ITERATION = _sessions("implementer-task-04-2", "verifier-task-04-2")
KNOWLEDGE = DEMO.session("knowledge")


def writing_calls(name: str) -> tuple[RecordedCall, ...]:
    """Return the tool calls of a session that change files."""
    return tuple(call for call in DEMO.sessions[name].calls if call.tool is not Tool.READ_FILE)


CALLS = {
    "task-01": writing_calls("implementer-task-01"),
    "task-02": writing_calls("implementer-task-02"),
    "task-03": writing_calls("implementer-task-03"),
    "task-04": writing_calls("implementer-task-04-1"),
}
CALLS_AGAIN = writing_calls("implementer-task-04-2")
LYING_CALLS = writing_calls("implementer-task-04-lie")


class Criterion(NamedTuple):
    """A criterion of a task, and the command that its verifier names for it."""

    text: str
    command: str


class Task(NamedTuple):
    """A task document that the planner writes, and its criteria with the commands of its verifier."""

    plain: Document
    criteria: tuple[Criterion, ...]

    @property
    def id(self) -> str:
        """Its name."""
        return str(self.plain["task"]["id"])

    @property
    def risk(self) -> Risk:
        """The colour that the planner gives it."""
        return Risk(self.plain["task"]["risk"])

    @property
    def files(self) -> tuple[tuple[str, Risk], ...]:
        """The files that it may change, with their colours."""
        listed = self.plain["task"]["relevant_context"]["files_to_modify"]
        return tuple((each["path"], Risk(each["risk"])) for each in listed)

    @property
    def decisions(self) -> tuple[str, ...]:
        """The decisions of the design that it points to."""
        return _ids(self.plain["task"]["relevant_context"]["design_sections"])

    @property
    def requirements(self) -> tuple[str, ...]:
        """The parts of the specification that it points to."""
        return _ids(self.plain["task"]["relevant_context"]["spec_requirements"])

    def document(self) -> Document:
        """Return a copy of `tasks/<id>.yaml`."""
        return copy.deepcopy(self.plain)


def _ids(pointers: list[str]) -> tuple[str, ...]:
    return tuple(re.findall(r"\[id='([^']+)'\]", "\n".join(pointers)))


def _task(planner: str, number: int, verifier: str) -> Task:
    document = yaml_text.parse(DEMO.sessions[planner].calls[number - 1].args["content"])
    judged = DEMO.document(verifier)["agent_output"]["payload"]["criteria"]
    texts = document["task"]["acceptance_criteria"]
    return Task(document, tuple(Criterion(text, each["command"]) for text, each in zip(texts, judged, strict=True)))


TASKS = (
    *(_task("planner-1", number, f"verifier-task-0{number}") for number in (1, 2, 3)),
    _task("planner-1", 4, "verifier-task-04-1"),
)
RECEIPT_AGAIN = _task("planner-2", 4, "verifier-task-04-2")
TASKS_AGAIN = (*(_task("planner-2", number, f"verifier-task-0{number}") for number in (1, 2, 3)), RECEIPT_AGAIN)


def replanned(number: int) -> RecordedSession:
    """Return the planner's n-th session, in which it replaces the document of the receipt's task."""
    return replace(REPLANNED, number=number)
