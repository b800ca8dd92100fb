"""A review during which no file was opened is not complete: the record of tool calls says what was opened."""

from pathlib import Path
from typing import Any

import pytest

from fairwitness.agents.backends.cassette import CassetteBackend
from fairwitness.contracts.agents.dispatch import DispatchOutcome, EnforcementTier, Kind, OutcomeStatus
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.feature.review import Category, Perspective
from fairwitness.rules.review import UNREAD
from feature.grounds import Turn, call, cassette
from runs.dispatch.world import INTAKE, Scripted, World, brief, says

ANSWER: dict[str, Any] = {
    "schema_version": "1.0",
    "reviewer_perspective": Perspective.SECURITY.value,
    "scope": "code",
    "round": 1,
    "findings": [],
    "clean_categories": [category.value for category in Category],
    "summary": "Nothing is wrong with it.",
}
DONE = Turn("Done.", submitted=ANSWER)
READ = Turn("", (call("read_file", path="src/shop.py"),))
LISTED = Turn("", (call("list_dir", path="src"),))
MISSED = Turn("", (call("read_file", path="src/none.py"),))


def _review(world: World, folder: Path, *turns: Turn) -> DispatchOutcome:
    spec_brief = brief(Role.REVIEWER)
    place = folder / "reviewer.jsonl"
    place.write_bytes(cassette(Role.REVIEWER, spec_brief.instance, turns))
    backend: Any = CassetteBackend(place)
    return world.run(backend, role=Role.REVIEWER).outcome


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.make(tmp_path)


@pytest.mark.req("P7")
@pytest.mark.parametrize("looked", [(), (LISTED,), (MISSED,)], ids=["no call", "only names", "no such file"])
def test_three_quick_approvals_count_for_nothing(world: World, tmp_path: Path, looked: tuple[Turn, ...]) -> None:
    outcome = _review(world, tmp_path, *looked, DONE, DONE)
    assert (outcome.status, outcome.cause) == (OutcomeStatus.INVALID_ANSWER, ErrorCause.SCHEMA_VIOLATION)
    assert outcome.problems == (UNREAD,)
    assert (outcome.answer, outcome.asked, outcome.opened) == (None, 2, 0)


@pytest.mark.req("P7")
@pytest.mark.parametrize(
    "looked", [READ, Turn("", (call("grep_search", query="price"),))], ids=["a file", "a search in files"]
)
def test_a_reviewer_that_opened_a_file_is_heard_at_once(world: World, tmp_path: Path, looked: Turn) -> None:
    outcome = _review(world, tmp_path, looked, DONE)
    assert (outcome.status, outcome.asked, outcome.opened) == (OutcomeStatus.OK, 1, 1)


@pytest.mark.req("P7")
def test_a_reviewer_is_told_why_and_may_look_in_its_repair_turn(world: World, tmp_path: Path) -> None:
    outcome = _review(world, tmp_path, DONE, READ, DONE)
    assert (outcome.status, outcome.asked, outcome.opened) == (OutcomeStatus.OK, 2, 1)


@pytest.mark.req("P7")
@pytest.mark.parametrize("tier", [EnforcementTier.B, EnforcementTier.C, EnforcementTier.D])
def test_what_an_external_program_reads_by_itself_cannot_be_known_and_blocks_nothing(
    world: World, tier: EnforcementTier
) -> None:
    outcome = world.run(Scripted(says(ANSWER), tier=tier), role=Role.REVIEWER).outcome
    assert (outcome.status, outcome.opened) == (OutcomeStatus.OK, 0)


@pytest.mark.req("P7")
def test_a_read_that_an_external_agent_reports_is_counted(world: World) -> None:
    def reports(job: Any) -> None:
        job.report(Kind.RESULT, "12 lines", tool="Read src/shop.py", call="1", ok=True)
        job.report(Kind.RESULT, "received", tool="fairwitness: submit_result", call="2", ok=True)

    outcome = world.run(Scripted(says(ANSWER), (reports,), tier=EnforcementTier.C), role=Role.REVIEWER).outcome
    assert (outcome.status, outcome.opened) == (OutcomeStatus.OK, 1)


def test_other_roles_may_answer_from_what_they_were_given(world: World) -> None:
    assert world.run(Scripted(says(INTAKE)), role=Role.INTAKE).outcome.status is OutcomeStatus.OK
