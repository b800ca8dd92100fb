"""What an autopilot run is begun with, and what a person may set about such runs."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from fairwitness.contracts.autopilot.breaker import BreakerSettings
from fairwitness.contracts.autopilot.facts import RunSetup
from fairwitness.contracts.autopilot.order import AutopilotOrder, AutopilotSettings, AutopilotTable, EarlierPhase
from fairwitness.contracts.autopilot.roadmap import ROADMAP_PATH, CommandKind
from fairwitness.contracts.autopilot.vocabulary import PhaseStatus, RunFlag
from fairwitness.contracts.graph.orders import DEFAULT_CAP

HASH = "sha256:" + "0" * 64


def phase(id_: str, *depends_on: str) -> dict[str, Any]:
    about = {"name": f"phase {id_}", "type": "data", "goal": "it works", "requirements": [], "criteria": []}
    return {"id": id_, "depends_on": list(depends_on), **about, "done": False}


def spec(path: str) -> dict[str, Any]:
    return {"path": path, "hash": HASH, "locked_at": "2026-02-26T14:30:00Z"}


ORDER: dict[str, Any] = {
    "roadmap": {"phases": [phase("1"), phase("2", "1"), phase("2.1")]},
    "phases": ["2.1", "1"],
    "earlier": {},
    "flags": ["quality", "complete"],
    "base_commit": "a" * 40,
    "target": "fairwitness/run-2026-02-26-143000/target",
    "commands": {"test": "pytest -q", "lint": None},
    "specs": [spec("SPEC.md"), spec(ROADMAP_PATH)],
    "verify": {},
    "settings_hash": HASH,
    "started_by": "Ada <ada@localhost>",
}
EARLIER: dict[str, Any] = {"status": "completed", "alignment_score": 9.2, "deficiencies": []}


def places(document: dict[str, Any]) -> list[tuple[tuple[str | int, ...], str]]:
    """Where it is refused, and with which words."""
    with pytest.raises(ValidationError) as error:
        AutopilotOrder.model_validate(document)
    return [(found["loc"], found["msg"]) for found in error.value.errors()]


@pytest.mark.req("A1", "A2")
def test_an_order_is_the_same_when_it_is_read_again() -> None:
    bare = AutopilotOrder.model_validate(ORDER)
    whole = AutopilotOrder.model_validate(
        ORDER
        | {
            "earlier": {"1": EARLIER | {"completed_at": "2026-02-25"}, "9": EARLIER | {"alignment_score": None}},
            "cycles": 2,
            "pause_after": 1,
            "limits": {"cap": 2, "breaker": {"max_replan_attempts_per_phase": 2}},
            "budget": {"tokens": 9},
            "agents": "cassette",
            "cassettes": "recordings",
        }
    )
    for order in (bare, whole):
        assert AutopilotOrder.model_validate(json.loads(json.dumps(order.plain()))) == order
    assert (bare.cycles, bare.pause_after, bare.agents, bare.cassettes, bare.ui) == (None, None, None, None, None)
    assert bare.flags == (RunFlag.QUALITY, RunFlag.COMPLETE)
    assert bare.commands[CommandKind("test")] == "pytest -q"
    assert bare.limits == AutopilotTable()
    assert whole.earlier["1"] == EarlierPhase.model_validate(EARLIER | {"completed_at": "2026-02-25"})
    assert whole.earlier["9"].status is PhaseStatus.COMPLETED


@pytest.mark.parametrize("field", [*ORDER])
def test_what_an_order_cannot_do_without_has_no_default(field: str) -> None:
    assert places({key: value for key, value in ORDER.items() if key != field})[0][0] == (field,)


OTHERS = "phases of the roadmap"
ONCE = "each phase once, and at least one"


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    ("field", "bad", "told"),
    [
        ("phases", ["1", "3"], OTHERS),
        ("phases", ["2a"], OTHERS),
        ("phases", ["1", "1"], ONCE),
        ("phases", [], ONCE),
        ("specs", [], "at least one specification"),
    ],
)
def test_an_order_is_about_phases_of_its_roadmap_and_rests_on_a_specification(
    field: str, bad: object, told: str
) -> None:
    assert places(ORDER | {field: bad}) == [((field,), told)]


@pytest.mark.req("A2")
@pytest.mark.parametrize("phases", [["1"], ["2"], ["1", "2", "2.1"], ["2.1", "2", "1"]])
def test_any_of_its_phases_in_any_order_will_do(phases: list[str]) -> None:
    assert AutopilotOrder.model_validate(ORDER | {"phases": phases}).phases == tuple(phases)


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("roadmap", {"phases": []}),
        ("phases", ["one"]),
        ("earlier", {"one": EARLIER}),
        ("earlier", {"1": {"status": "completed", "deficiencies": []}}),
        ("earlier", {"1": EARLIER | {"status": "good"}}),
        ("earlier", {"1": EARLIER | {"alignment_score": 9}}),
        ("flags", ["--quality"]),
        ("cycles", 0),
        ("pause_after", 0),
        ("base_commit", "HEAD"),
        ("target", "a..b"),
        ("commands", {"dance": "true"}),
        ("commands", {"test": " "}),
        ("specs", [{"path": "SPEC.md"}]),
        ("limits", {"cap": 0}),
        ("settings_hash", "0" * 64),
        ("agents", ""),
        ("started_by", " "),
        ("surprise", 1),
    ],
)
def test_what_an_order_does_not_know_it_refuses(field: str, bad: object) -> None:
    assert places(ORDER | {field: bad})[0][0][0] == field


@pytest.mark.req("A1")
@pytest.mark.parametrize("kept", [None, 1, 50])
def test_the_fold_of_a_run_begins_with_what_it_was_asked_for(kept: int | None) -> None:
    order = AutopilotOrder.model_validate(ORDER | {"limits": {"deferral_rate": 0.5, "kept_events": 7}})
    setup = order.setup(kept)
    assert setup == RunSetup(
        roadmap_path=ROADMAP_PATH,
        phases=order.roadmap.outline,
        spec=order.specs[0],
        specs=order.specs,
        deferral_threshold=0.5,
        kept_events=kept,
    )
    assert [one.id for one in setup.phases] == ["1", "2", "2.1"], "the whole roadmap, whichever phases it takes up"


@pytest.mark.req("P12")
def test_whoever_sets_nothing_has_limits_all_the_same() -> None:
    assert AutopilotSettings().autopilot == AutopilotTable(
        cap=DEFAULT_CAP,
        kept_events=50,
        deferral_rate=0.05,
        command_seconds=60,
        quick_phase_seconds=300,
        minimum_verification_seconds=0,
        audit=True,
        breaker=BreakerSettings(),
    )


@pytest.mark.parametrize(
    "bad",
    [
        {"cap": 0},
        {"kept_events": 0},
        {"deferral_rate": 1.5},
        {"command_seconds": 0},
        {"quick_phase_seconds": -1},
        {"minimum_verification_seconds": -1},
        {"audit": "no"},
        {"breaker": {"cooldown_minutes": 0}},
        {"breaker": {"output_degradation_pct": 0}},
        {"caps": 4},
    ],
)
def test_settings_that_mean_nothing_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AutopilotSettings.model_validate({"autopilot": bad})
