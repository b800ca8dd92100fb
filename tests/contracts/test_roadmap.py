"""The roadmap's contracts: phases in order and said once, slugs that can stand in a path, settings that are closed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.autopilot.roadmap import (
    SLUG_LIMIT,
    Criterion,
    DetailedPhase,
    ProjectConfig,
    ProjectSettings,
    Requirement,
    Roadmap,
    at_line,
    phase_number,
    phase_slug,
)
from fairwitness.contracts.autopilot.vocabulary import PhaseType
from fairwitness.contracts.common.ids import Slug

SLUGS: TypeAdapter[str] = TypeAdapter(Slug)


def _phase(phase_id: str, *depends_on: str, done: bool = False, requirements: str = "") -> DetailedPhase:
    return DetailedPhase(
        id=phase_id,
        name=f"Phase {phase_id}!",
        type=PhaseType.DATA,
        depends_on=depends_on,
        goal="it works",
        requirements=tuple(Requirement(id=one) for one in requirements.split()),
        criteria=(Criterion(text="it runs", command=None),),
        done=done,
    )


@pytest.mark.req("A2")
def test_a_roadmap_knows_its_outline_and_what_is_ticked() -> None:
    roadmap = Roadmap(phases=(_phase("2", "10", done=True), _phase("2.1"), _phase("10")))
    assert roadmap.ticked == {"2"}
    assert roadmap.outline[0] == RoadmapPhase(id="2", name="Phase 2!", type=PhaseType.DATA, depends_on=("10",))
    assert [phase.slug for phase in roadmap.phases] == ["phase-2", "phase-2-1", "phase-10"]
    assert Roadmap.model_validate(roadmap.plain()) == roadmap


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    "phases",
    [(), (_phase("2"), _phase("1")), (_phase("6.10"), _phase("6.9")), (_phase("1"), _phase("1")), (_phase("1", "2"),)],
)
def test_phases_out_of_order_twice_or_behind_an_unknown_one_are_no_roadmap(phases: tuple[DetailedPhase, ...]) -> None:
    with pytest.raises(ValidationError):
        Roadmap(phases=phases)


@pytest.mark.req("A2")
def test_a_phase_says_everything_once() -> None:
    for wrong in ({"depends_on": ("2", "2")}, {"depends_on": ("1",)}, {"requirements": ({"id": "A1"}, {"id": "A1"})}):
        with pytest.raises(ValidationError):
            DetailedPhase.model_validate(_phase("1").plain() | wrong)
    for nothing in ("goal", "criteria", "done", "type", "depends_on"):
        with pytest.raises(ValidationError):
            DetailedPhase.model_validate({name: said for name, said in _phase("1").plain().items() if name != nothing})


@pytest.mark.req("A2")
@pytest.mark.parametrize("word", ["REQ-01", "A2", "FR-1.2", "x_1"])
def test_an_id_of_a_requirement_has_a_number(word: str) -> None:
    assert Requirement(id=word).plain() == {"id": word}
    for wrong in (f"{word}-", f" {word}", "".join(sign for sign in word if sign.isalpha()), "A٣", "1"):
        with pytest.raises(ValidationError):
            Requirement(id=wrong)


@pytest.mark.req("A2")
@settings(max_examples=200)
@given(st.text(max_size=80))
def test_any_name_has_a_slug_that_can_stand_in_a_path(name: str) -> None:
    slug = phase_slug("6.1", name)
    assert SLUGS.validate_python(slug) == slug
    assert len(slug) <= SLUG_LIMIT


def test_what_is_no_phase_id_has_no_number() -> None:
    with pytest.raises(ValueError, match="no phase id"):
        phase_number("٣")


def test_a_long_finding_is_shown_in_part() -> None:
    problem = at_line(7, "less", "x" * 500)
    assert (problem.line, len(problem.found), problem.where) == (7, 120, ("line 7",))


@pytest.mark.req("A2")
def test_settings_tell_silence_from_null_and_keep_what_other_tools_wrote() -> None:
    value = {"project": {"type": "rust", "commands": {"test": None}}, "mode": "yolo"}
    assert ProjectConfig.model_validate(value).plain() == value
    assert ProjectConfig.model_validate({"project": {}}).plain() == {"project": {"commands": {}}}


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    "wrong",
    [
        {"comands": {}},
        {"commands": {"deploy": "x"}},
        {"commands": {"test": ""}},
        {"commands": {"test": "a\nb"}},
        {"type": "java"},
        {"commands_source": "guess"},
        {"spec_paths": []},
        {"spec_paths": ["a.md", "a.md"]},
        {"spec_paths": ["../secret.md"]},
        {"ui": {"source_dir": "src", "file_extensions": []}},
        {"ui": {"source_dir": "src", "file_extensions": ["*.tsx"]}},
    ],
)
def test_settings_that_nobody_can_mean_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ProjectSettings.model_validate(wrong)
