"""Contracts about agents and verifications: what is unknown stays unknown, and no key stands on a command line."""

import pytest
from pydantic import ValidationError

from fairwitness.agents.profiles import FOLDER, read_profiles
from fairwitness.contracts.agents.dispatch import Usage
from fairwitness.contracts.agents.profile import AgentProfile
from fairwitness.contracts.autopilot.roadmap import SLUG_LIMIT, phase_slug
from fairwitness.contracts.feature.events import PathChanged
from fairwitness.contracts.verify.checks import CheckSpec, Language, ReportFormat
from fairwitness.contracts.verify.report import VerifySubject
from rules.build import task

CHECK = CheckSpec(
    id="x",
    name="lint",
    tier=1,
    root=".",
    language=Language.PYTHON,
    tool="x",
    argv=("x",),
    report=ReportFormat.EXIT,
    writes=False,
    required=True,
    found_in="x.toml",
)


@pytest.mark.parametrize(("tokens_in", "tokens_out", "both"), [(None, 1, None), (1, None, None), (2, 3, 5)])
def test_tokens_are_known_only_if_both_directions_are(
    tokens_in: int | None, tokens_out: int | None, both: int | None
) -> None:
    assert Usage(tokens_in=tokens_in, tokens_out=tokens_out).tokens == both


@pytest.mark.req("X3")
def test_no_profile_shows_a_token_on_a_command_line() -> None:
    for profile in read_profiles(FOLDER).values():
        with pytest.raises(ValidationError, match="no token on a command line"):
            AgentProfile.model_validate({**profile.plain(), "args": ["--key={token}"]})


def test_a_long_name_of_a_phase_is_cut_at_a_word() -> None:
    slug = phase_slug("1", "as many words as a person may want to write down")
    assert len(slug) <= SLUG_LIMIT
    assert slug == "as-many-words-as-a-person-may-want-to"


def test_the_schema_of_an_event_demands_its_type() -> None:
    assert PathChanged.model_json_schema()["required"][0] == "type"


def test_files_that_no_plan_names_are_not_written() -> None:
    assert "planned" not in task().plain()
    assert task(planned=("a.py",)).plain()["planned"] == ["a.py"]


def test_a_subject_shares_the_round_of_its_baseline_with_nobody() -> None:
    assert [VerifySubject(task_id="t", round=round_).baseline_round for round_ in (1, 2)] == [0, 1]


@pytest.mark.parametrize(
    ("root", "path", "is_covered"), [(".", "a/b.py", True), ("a", "a/b.py", True), ("a", "ab/b.py", False)]
)
def test_a_check_covers_the_files_below_its_project(root: str, path: str, is_covered: bool) -> None:
    assert CHECK.model_copy(update={"root": root}).covers(path) is is_covered
