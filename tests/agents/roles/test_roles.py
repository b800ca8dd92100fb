"""Roles are data: all of them are there, and what they say agrees with contracts, signatures, policies and prompts."""

import json
import re
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from fairwitness.agents.prompt_text import PROMPTS
from fairwitness.agents.roles import FOLDER, ROLES, read_roles
from fairwitness.contracts.autopilot.breaker import BreakerSettings
from fairwitness.contracts.catalog import catalog, entry_of
from fairwitness.contracts.common.completion import FeatureAgent
from fairwitness.contracts.common.markdown import headings
from fairwitness.contracts.common.tools import POLICIES, Role, Tool
from fairwitness.contracts.common.vocabulary import CompletionStatus, Workflow
from fairwitness.contracts.feature.document import SIGNATURES, SignedDocument
from fairwitness.contracts.feature.research import Focus
from fairwitness.contracts.feature.review import Perspective
from fairwitness.errors import UsageError

DISPATCHED = [role for role in Role if role is not Role.ORCHESTRATOR]
_WORDS_ANYBODY_USES = {Tool.AGENT, Tool.MEMORY}


def _words(role: Role) -> str:
    """Everything that a role may be told by files of ours."""
    spec = ROLES[role]
    texts = [(PROMPTS / f"{spec.prompt}.md").read_text()]
    if spec.variants is not None:
        texts += [path.read_text() for path in sorted((PROMPTS / spec.variants.folder).glob("*.md"))]
    return "\n".join(texts)


@pytest.mark.req("P15")
def test_every_role_is_described_once() -> None:
    assert set(ROLES) == set(Role)
    assert all(spec.role is role for role, spec in ROLES.items())
    assert {agent.value for agent in FeatureAgent} <= {role.value for role in ROLES}


@pytest.mark.req("P15")
def test_the_role_files_hold_the_values_that_were_reviewed() -> None:
    reviewed = json.loads(Path(__file__).with_name("roles.json").read_text())
    assert {role.value: spec.plain() for role, spec in ROLES.items()} == reviewed


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("turns = 60", "turns = 0", "roles/judge.toml turns: expected "),
        ("turns = 60", 'turns = "60"', "roles/judge.toml turns: expected "),
        ("turns = 60\n", "", "roles/judge.toml turns: expected "),
        ("turns = 60", "turns = 60\ncolour = 1", "roles/judge.toml colour: expected "),
        ("tokens = 60_000", "tokens = -1", "roles/judge.toml budget.tokens: expected "),
        ("turns = 60", "turns = ", "roles/judge.toml is not TOML: "),
        (
            'role = "judge"',
            'role = "rater"',
            "roles/judge.toml role: expected judge, as the file is called, found rater",
        ),
    ],
)
def test_a_broken_role_file_gives_one_clear_sentence(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "roles")
    file = folder / "judge.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(UsageError) as refused:
        read_roles(folder)
    assert refused.value.what.startswith(sentence)
    assert "\n" not in refused.value.what
    assert refused.value.next_step


def test_a_role_without_a_file_is_named(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "roles")
    (folder / "judge.toml").unlink()
    with pytest.raises(UsageError, match="no file describes the role judge"):
        read_roles(folder)


@pytest.mark.req("P2", "A3")
def test_only_the_orchestrator_is_never_dispatched_and_returns_nothing() -> None:
    silent = [role for role, spec in ROLES.items() if spec.answer is None or not spec.is_dispatched]
    assert silent == [Role.ORCHESTRATOR]


@pytest.mark.req("A3")
@pytest.mark.parametrize("role", DISPATCHED)
def test_an_answer_is_a_contract_of_the_roles_own_workflow(role: Role) -> None:
    spec = ROLES[role]
    assert spec.answer is not None
    assert entry_of(spec.answer).workflow == spec.workflow.value


@pytest.mark.req("P2")
@pytest.mark.parametrize("role", DISPATCHED)
def test_a_role_may_say_what_its_signature_allows_and_nothing_if_it_signs_nothing(role: Role) -> None:
    spec = ROLES[role]
    assert spec.answer is not None
    shape = entry_of(spec.answer).shape
    if not issubclass(shape, SignedDocument):
        assert spec.statuses == ()
        return
    assert shape.signer.value == role.value
    assert spec.statuses == tuple(status for status in CompletionStatus if status in SIGNATURES[shape.signer].statuses)


@pytest.mark.req("P4", "P7")
def test_researchers_have_four_foci_and_reviewers_three_perspectives() -> None:
    assert ROLES[Role.RESEARCHER].instances == tuple(f"researcher-{focus.value}" for focus in Focus)
    assert ROLES[Role.REVIEWER].instances == tuple(perspective.value for perspective in Perspective)
    assert {path.stem for path in (PROMPTS / "foci").iterdir()} == set(Focus)
    assert {path.stem for path in (PROMPTS / "perspectives").iterdir()} == set(Perspective)
    assert {role for role, spec in ROLES.items() if spec.instances} == {
        role for role, spec in ROLES.items() if spec.variants
    }


@pytest.mark.req("P15")
def test_each_role_has_its_file_of_words_and_there_is_no_other() -> None:
    wanted = {f"{spec.prompt}.md" for spec in ROLES.values()} | {
        spec.variants.folder for spec in ROLES.values() if spec.variants is not None
    }
    assert {path.name for path in PROMPTS.iterdir()} == wanted
    assert len({spec.prompt for spec in ROLES.values()}) == len(ROLES)
    assert all(spec.prompt == spec.role.value for spec in ROLES.values())


@pytest.mark.req("P15")
@pytest.mark.parametrize("role", Role)
def test_the_words_of_a_role_are_short_and_have_the_same_parts_in_the_same_order(role: Role) -> None:
    text = (PROMPTS / f"{ROLES[role].prompt}.md").read_text()
    assert text.startswith(f"# {ROLES[role].title}\n")
    assert headings(text) == ("What you get", "How to work", "What to return", "Before you answer", "Remember")
    assert 150 <= len(text.split()) <= 400
    anchor = text.partition("## Remember\n")[2].strip()
    assert 1 <= len(re.findall(r"[.!?](\s|$)", anchor)) <= 3


@pytest.mark.parametrize("role", Role)
def test_a_role_is_told_of_no_tool_that_it_does_not_have(role: Role) -> None:
    named = {tool for tool in set(Tool) - _WORDS_ANYBODY_USES if re.search(rf"\b{tool.value}\b", _words(role))}
    assert named <= POLICIES[role].tools


@pytest.mark.req("A20")
def test_the_rater_has_no_tool_and_is_told_so() -> None:
    assert POLICIES[Role.RATER].tools == frozenset()
    assert "You have no tools" in _words(Role.RATER)


@pytest.mark.req("P2")
def test_documents_that_a_role_writes_are_among_those_its_policy_lets_it_write() -> None:
    assert any(spec.documents for spec in ROLES.values())
    for role, spec in ROLES.items():
        assert tuple(spec.documents) == POLICIES[role].writes
        assert set(spec.documents) <= set(POLICIES[role].outputs)
        assert set(spec.documents.values()) <= set(catalog())


@pytest.mark.req("F8")
def test_workers_start_only_smaller_ones_and_answer_alike() -> None:
    workers = (Role.THROWAWAY, Role.WORKER, Role.SUB_EXECUTOR)
    assert {ROLES[role].answer for role in workers} == {"forge-worker-return"}
    for index, role in enumerate(workers):
        assert POLICIES[role].spawns == set(workers[:index])
        # so that whoever hands out work can still pay for it
        assert all(ROLES[smaller].budget.tokens < ROLES[role].budget.tokens for smaller in workers[:index])


@pytest.mark.parametrize("role", DISPATCHED)
def test_what_a_dispatch_reserves_covers_the_time_it_has(role: Role) -> None:
    spec = ROLES[role]
    assert spec.budget.milliseconds == spec.timeout_s * 1000
    assert spec.budget.tokens
    assert spec.budget.money_micros


@pytest.mark.parametrize(
    ("workflow", "builder"), [(Workflow.FEATURE, Role.IMPLEMENTER), (Workflow.AUTOPILOT, Role.EXECUTOR)]
)
def test_whoever_builds_has_the_most_of_everything(workflow: Workflow, builder: Role) -> None:
    spec = ROLES[builder]
    others = [
        other
        for other in ROLES.values()
        # the audit reads everything that a whole run has built, which is no step of a phase
        if other.workflow is workflow and other.is_dispatched and other.role is not Role.SELF_AUDIT
    ]
    assert spec.budget.tokens == max(other.budget.tokens for other in others)
    assert spec.timeout_s == max(other.timeout_s for other in others)
    assert spec.turns == max(other.turns for other in others)


@pytest.mark.req("A3")
def test_a_phase_of_one_task_fits_into_the_default_caps_of_the_breaker() -> None:
    steps = (
        *(Role.PHASE_RESEARCHER, Role.PHASE_PLANNER, Role.PLAN_CHECKER, Role.EXECUTOR, Role.MINI_VERIFIER),
        *(Role.PHASE_VERIFIER, Role.JUDGE, Role.RATER),
    )
    caps = BreakerSettings()
    assert sum(ROLES[role].budget.tokens for role in steps) <= caps.cost_cap_tokens_per_phase
    taken = timedelta(seconds=sum(ROLES[role].timeout_s for role in steps))
    assert taken <= timedelta(minutes=caps.wall_clock_timeout_minutes_per_phase)
