"""How an autopilot run is begun: all is read once and written down, and refused in a sentence where it cannot be."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from app.autopilot_grounds import (
    MOMENT,
    ROADMAP,
    RUN,
    begun,
    commit,
    completed,
    deferred,
    failed,
    fixed,
    git,
    halted,
    lay_out,
    opened,
    over,
    paused,
    started,
    tell,
    types_of,
)
from fairwitness.app.runs.begin_autopilot import BegunAutopilot, PhasesRequest, begin_autopilot
from fairwitness.contracts.autopilot.roadmap import CommandKind
from fairwitness.contracts.autopilot.vocabulary import PhaseStatus, RunFlag
from fairwitness.errors import FairWitnessError
from fairwitness.sandbox.probe import probe
from fairwitness.store.artifacts import content_hash

NEEDS_SANDBOX = pytest.mark.skipif(not probe().tiers, reason="nothing here can keep a command in")
LATER = fixed(MOMENT + timedelta(hours=1))


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return lay_out(tmp_path / "shop")


def begin(top: Path, phases: str, *flags: str, **differs: object) -> BegunAutopilot:
    recordings = top.parent / "cassettes"
    recordings.mkdir(exist_ok=True)
    said = {"cycles": None, "pause_after": None} | differs
    wanted = PhasesRequest(phases, flags, agents="cassette", cassettes=recordings, **said)  # type: ignore[arg-type]  # of a test
    return begin_autopilot(top, wanted, clock=LATER)


def refused(top: Path, phases: str, *flags: str, **differs: object) -> str:
    with pytest.raises(FairWitnessError) as found:
        begin(top, phases, *flags, **differs)
    assert found.value.next_step
    return found.value.what


def done(top: Path, *phases: str, run_id: str = RUN) -> None:
    """An earlier run that completed these phases on a branch that is gone."""
    begun(top, phases, run_id=run_id)
    for phase in phases:
        tell(top, started(phase), completed(phase), run_id=run_id)
    tell(top, over(), run_id=run_id)


@NEEDS_SANDBOX
@pytest.mark.req("A2")
def test_everything_that_a_run_goes_by_is_written_down_once(top: Path) -> None:
    (top / ".planning" / "PROJECT.md").write_text("a shop\n")
    (top / "fairwitness.toml").write_text("[autopilot]\ncap = 2\n")
    commit(top)
    done = begin(top, "1-2", "--complete", "--lenient", pause_after=1)
    assert done.run_id == "run-2026-02-26-153000"
    with opened(top, done.run_id) as log:
        order = log.order()
        state = log.state().state
    assert order == done.order
    assert (order.phases, order.flags) == (("1", "2"), (RunFlag.COMPLETE, RunFlag.LENIENT))
    assert (order.limits.cap, order.pause_after, order.started_by) == (2, 1, "Ada <ada@example.org>")
    assert order.commands == {kind: ("make test" if kind is CommandKind.TEST else None) for kind in CommandKind}
    assert order.base_commit == git(top, "rev-parse", "HEAD")
    assert [(lock.path, lock.hash) for lock in order.specs] == [
        (path, content_hash((top / path).read_bytes())) for path in (".planning/PROJECT.md", ".planning/ROADMAP.md")
    ]
    assert (state.meta.run_id, state.meta.pass_threshold, set(state.phases)) == (done.run_id, 7.0, {"1", "2"})
    assert git(top, "status", "--porcelain") == ""


@NEEDS_SANDBOX
@pytest.mark.req("A2")
@pytest.mark.parametrize(
    ("source", "found"), [("auto-detected", "python -m pytest"), ("user-override", None)], ids=["detected", "a person"]
)
def test_commands_that_an_earlier_detection_did_not_find_are_those_of_the_checks(
    top: Path, source: str, found: str | None
) -> None:
    (top / "Makefile").unlink()
    (top / "setup.py").write_text("from setuptools import setup\n\nsetup(name='shop', py_modules=['shop'])\n")
    (top / "test_shop.py").write_text("import pytest\n\n\ndef test_it():\n    assert True\n")
    nulls = dict.fromkeys(kind.value for kind in CommandKind)
    config = {"project": {"type": "unknown", "commands": nulls, "commands_source": source}}
    (top / ".planning" / "config.json").write_text(json.dumps(config))
    commit(top)
    assert begin(top, "1").order.commands[CommandKind.TEST] == found


@NEEDS_SANDBOX
@pytest.mark.req("A2")
def test_texts_of_requirements_come_from_the_specifications_and_a_missing_one_is_told(top: Path) -> None:
    roadmap = top / ".planning" / "ROADMAP.md"
    roadmap.write_text(roadmap.read_text().replace("**Success", "**Requirements**: REQ-91, REQ-92\n**Success", 1))
    (top / ".planning" / "REQUIREMENTS.md").write_text("- **REQ-91**: It sells\n  apples.\n")
    commit(top)
    begun_now = begin(top, "1")
    assert begun_now.order.requirements == {"REQ-91": "It sells apples."}
    assert "REQ-92 is described in no specification" in begun_now.warnings


@NEEDS_SANDBOX
def test_a_second_in_which_a_run_was_begun_is_not_taken_again(top: Path) -> None:
    first = begin(top, "1")
    tell(top, halted(), run_id=first.run_id)
    assert begin(top, "1").run_id == "run-2026-02-26-153001"


@NEEDS_SANDBOX
@pytest.mark.req("A11")
def test_what_earlier_runs_finished_is_known_and_left_alone(top: Path) -> None:
    done(top, "1", "2")
    begun_now = begin(top, "1,3.1")
    assert begun_now.order.phases == ("3.1",)
    assert any("left as they are: 1" in warning for warning in begun_now.warnings)
    earlier = begun_now.order.earlier
    assert {phase: (left.status, left.alignment_score) for phase, left in earlier.items()} == {
        "1": (PhaseStatus.COMPLETED, 9.3),
        "2": (PhaseStatus.COMPLETED, 9.3),
    }


@NEEDS_SANDBOX
@pytest.mark.parametrize(
    ("phases", "flags", "expected"),
    [
        ("next", (), ("2",)),
        ("1-2", ("--complete",), ("1", "2")),
        ("1-2", ("--quality",), ("1", "2")),
        ("all", ("--force",), ("1",)),
        ("1", ("--gaps",), ("1",)),
    ],
)
@pytest.mark.req("A14")
def test_the_flags_say_which_phases_a_run_takes_up(
    top: Path, phases: str, flags: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    done(top, "1")
    assert begin(top, phases, *flags).order.phases == expected


@NEEDS_SANDBOX
def test_a_ticked_box_is_a_persons_word_that_a_phase_is_done(top: Path) -> None:
    (top / ".planning" / "ROADMAP.md").write_text(ROADMAP.replace("[ ] **Phase 1", "[x] **Phase 1"))
    commit(top)
    order = begin(top, "next").order
    assert order.phases == ("2",)
    assert order.earlier["1"].status is PhaseStatus.COMPLETED


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    ("phases", "flags", "differs", "told"),
    [
        ("9", (), {}, "expected a phase of the roadmap, found 9"),
        ("two", (), {}, "found two"),
        ("2-1", (), {}, "from the lower to the higher"),
        ("3", (), {}, ".planning/ROADMAP.md:30: phase 3 has no goal yet (and 1 more)"),
        ("1", ("--force",), {}, "phase 1: expected a phase that is completed, found not_started"),
        ("all", ("--gaps",), {}, "none of these phases is completed yet"),
        ("1", ("--map",), {}, "--map is not implemented yet"),
        ("1", (), {"cycles": 2}, "--cycles requires"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(
    top: Path, phases: str, flags: tuple[str, ...], differs: dict[str, object], told: str
) -> None:
    assert told in refused(top, phases, *flags, **differs)
    with opened(top) as log:
        assert log.ledger.runs() == ()


def test_nothing_left_to_do_is_said(top: Path) -> None:
    done(top, "1", "2")
    assert refused(top, "1-2") == "all of these phases are completed"


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        (
            ".planning/ROADMAP.md",
            ROADMAP.replace("**Depends on**: Phase 1", "**Depends on**: Phase 7", 1),
            "ROADMAP.md:23",
        ),
        (".planning/config.json", "{", ".planning/config.json"),
        (".planning/config.json", '{"project": {"type": "cobol"}}', "project.type"),
        ("fairwitness.toml", "[autopilot]\nspeed = 3\n", "speed"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_named(top: Path, path: str, text: str, told: str) -> None:
    (top / path).write_text(text)
    commit(top)
    assert told in refused(top, "1")


def test_a_repository_without_a_roadmap_is_told_how_to_get_one(tmp_path: Path) -> None:
    assert refused(lay_out(tmp_path / "bare", None), "all") == "there is no .planning/ROADMAP.md"


def test_what_is_not_committed_is_asked_for_first(top: Path) -> None:
    (top / "new.py").write_text("x = 1\n")
    (top / ".autopilot").mkdir()
    (top / ".autopilot" / "state.json").write_text("{}")
    assert refused(top, "1") == "there are uncommitted changes: new.py"


def test_there_is_one_run_at_a_time(top: Path) -> None:
    begun(top)
    assert refused(top, "1") == f"{RUN} is running, and only one autopilot run may be active"
    tell(top, paused())
    assert f"{RUN} is paused" in refused(top, "1")


@NEEDS_SANDBOX
def test_a_phase_that_waits_for_a_person_belongs_to_its_run(top: Path) -> None:
    begun(top)
    tell(top, started("1"), deferred("1"), halted())
    order = begin(top, "1").order
    assert "1" not in order.earlier


@NEEDS_SANDBOX
def test_what_was_done_on_a_branch_that_is_not_merged_is_not_there(top: Path) -> None:
    git(top, "checkout", "-q", "-b", f"fairwitness/{RUN}/target")
    (top / "login.py").write_text("x = 1\n")
    made = commit(top)
    git(top, "checkout", "-q", "main")
    begun(top)
    tell(top, started("1"), completed("1", checkpoint_sha=made), started("2"), failed("2"), halted())
    assert refused(top, "2") == f"phase 1 was completed by {RUN} on a branch that is not merged here"
    git(top, "merge", "-q", f"fairwitness/{RUN}/target")
    assert begin(top, "2").order.phases == ("2",)


@pytest.mark.req("A14")
def test_flags_that_exclude_each_other_are_told_in_the_latest_run(top: Path) -> None:
    assert refused(top, "1", "--force", "--gaps") == "--force and --gaps exclude each other"
    done(top, "1")
    assert refused(top, "1", "--gaps", "--complete") == "--gaps and --complete exclude each other"
    assert types_of(top)[-1] == "flag_mutual_exclusivity_error"
    with opened(top) as log:
        assert log.state().state.meta.status.value == "completed"
