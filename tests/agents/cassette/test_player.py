"""Recorded turns with real tools: a replay does what was done, and says where it no longer can."""

import asyncio
import time
from pathlib import Path

import pytest

from agents.api.kit import job_in, project, tree
from agents.cassette.kit import ask, play, turn, write
from agents.jobs import GOOD, Kept
from fairwitness.agents.backends.cassette import CassetteBackend
from fairwitness.agents.cassette_file import prompt_digest, seen
from fairwitness.agents.driver import drive
from fairwitness.contracts.agents.dispatch import EnforcementTier, Kind, OutcomeStatus, Stop, UsageSource
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.tools import Role
from fairwitness.errors import BadDocument, NotReady, UsageError

pytestmark = pytest.mark.req("X3")
NOTHING = seen([], Path("/"))
FIXED = "def add(a, b):\n    return a + b\n"
WRITE_FIXED = ("create_file", {"path": "{root}/src/add.py", "content": FIXED})


def test_calls_are_made_for_real_in_the_worktree_at_hand(tmp_path: Path) -> None:
    kept = Kept()
    path = write(tmp_path / "tapes", turn(0, WRITE_FIXED, text="I will fix it.", seen=NOTHING), turn(1, text="Done."))
    job = job_in(project(tmp_path), kept=kept)
    (end,) = play(path, job)
    assert (end.stop, end.text, end.model) == (Stop.DONE, "Done.", "canned")
    assert tree(job.worktree)["src/add.py"] == FIXED
    assert (end.usage.source, end.usage.tokens_in, end.usage.tokens_out) == (UsageSource.CASSETTE, 2000, 100)
    assert end.usage.turns == 2
    assert kept.texts(Kind.TEXT) == ["I will fix it.", "Done."]
    kinds = [one.kind for one in kept.happenings if one.kind is not Kind.NOTE]
    assert kinds == [Kind.TEXT, Kind.USAGE, Kind.CALL, Kind.RESULT, Kind.TEXT, Kind.USAGE]


def test_a_recorded_call_is_judged_like_any_other(tmp_path: Path) -> None:
    path = write(tmp_path / "tapes", turn(0, WRITE_FIXED), turn(1, text="x"), role=Role.REVIEWER)
    job = job_in(project(tmp_path), role=Role.REVIEWER)
    before = tree(job.worktree)
    play(path, job)
    assert tree(job.worktree) == before
    assert [one.tool for one in job.tools.denials] == ["create_file"]


def test_another_result_than_the_recorded_one_stops_at_that_turn(tmp_path: Path) -> None:
    shown = seen([(True, "what it was")], tmp_path)
    recorded = turn(0, ("read_file", {"path": "src/add.py"}), ("read_file", {"path": "gone.py"}))
    recorded["calls"][1]["ok"] = True
    path = write(tmp_path / "tapes", recorded, turn(1, WRITE_FIXED, seen=shown), turn(2, text="Done."))
    job = job_in(project(tmp_path))
    (end,) = play(path, job)
    assert (end.stop, end.cause) == (Stop.FAILED, ErrorCause.MISSING_INPUT)
    assert end.error.startswith("diverged at turn 1: read_file was done when this was recorded and is not done now;")
    assert "return a - b" in end.error
    assert tree(job.worktree)["src/add.py"] != FIXED


def test_a_lenient_replay_says_so_and_goes_on(tmp_path: Path) -> None:
    kept = Kept()
    shown = seen([(True, "what it was")], tmp_path)
    path = write(
        tmp_path / "tapes", turn(0, ("read_file", {"path": "src/add.py"})), turn(1, WRITE_FIXED, seen=shown), turn(2)
    )
    job = job_in(project(tmp_path), kept=kept)
    (end,) = play(path, job, strict=False)
    assert end.stop is Stop.DONE
    assert tree(job.worktree)["src/add.py"] == FIXED
    assert any("diverged at turn 1: the results of the last calls" in text for text in kept.texts(Kind.NOTE))


@pytest.mark.parametrize("strict", [True, False])
def test_a_recording_that_ends_too_early_has_diverged(tmp_path: Path, strict: bool) -> None:
    path = write(tmp_path / "tapes", turn(0, WRITE_FIXED))
    (end,) = play(path, job_in(project(tmp_path)), strict=strict)
    assert end.stop is Stop.FAILED
    assert end.error == "diverged at turn 1: the recording has no more turns"


def test_a_second_ask_goes_on_in_the_same_recording(tmp_path: Path) -> None:
    bad, good = {**GOOD, "recommendation": 7}, GOOD
    path = write(
        tmp_path / "tapes",
        turn(0, ("read_file", {"path": "notes.md"})),
        turn(1, submitted=bad),
        turn(2, submitted=good, seen=NOTHING),
        role=Role.JUDGE,
    )
    job = job_in(project(tmp_path), role=Role.JUDGE)
    outcome = asyncio.run(drive(CassetteBackend(path), job))
    assert outcome.status is OutcomeStatus.OK, outcome
    assert (outcome.asked, outcome.usage.turns) == (2, 3)


def test_another_prompt_is_told_and_does_not_stop_the_replay(tmp_path: Path) -> None:
    worktree = project(tmp_path)
    recorded = prompt_digest(f"Work in {worktree}.", worktree)
    last = turn(0, text="Done.", seen=NOTHING)
    path = write(tmp_path / "tapes", last, prompt=recorded, schema_digest="sha256:" + "1" * 64)
    same, other = Kept(), Kept()
    play(path, job_in(worktree, kept=same), f"Work in {worktree}.")
    (end,) = play(path, job_in(worktree, kept=other), "Other words.")
    assert end.stop is Stop.DONE
    schema = "the answer's schema is not the one this was recorded with"
    assert same.texts(Kind.NOTE) == [schema]
    assert other.texts(Kind.NOTE) == ["the prompt is not the one this was recorded with", schema]


def test_each_dispatch_of_an_instance_has_its_own_recording(tmp_path: Path) -> None:
    folder = tmp_path / "tapes"
    write(folder, turn(0, text="first"), number=1)
    write(folder, turn(0, text="second"), number=2)
    write(folder, turn(0, text="other"), number=1, role=Role.JUDGE)
    backend = CassetteBackend(folder)
    worktree = project(tmp_path)
    texts = [ask(backend, job_in(worktree, role=role))[0].text for role in (Role.IMPLEMENTER, Role.JUDGE)]
    texts += [ask(backend, job_in(worktree))[0].text]
    assert texts == ["first", "other", "second"]
    with pytest.raises(NotReady, match=r"implementer\.implementer\.3\.jsonl"):
        ask(backend, job_in(worktree))


def test_a_session_that_was_cut_short_is_played_again_and_not_counted(tmp_path: Path) -> None:
    folder = tmp_path / "tapes"
    write(folder, turn(0, ("list_dir", {})), turn(1, text="first"), number=1)
    write(folder, turn(0, text="second"), number=2)
    worktree, backend = project(tmp_path), CassetteBackend(folder)
    assert ask(backend, job_in(worktree, turns=1))[0].stop is Stop.LIMIT
    assert ask(backend, job_in(worktree))[0].text == "first"
    assert ask(backend, job_in(worktree))[0].text == "second"
    later = CassetteBackend(folder, done={(Role.IMPLEMENTER, "implementer"): 1})
    assert ask(later, job_in(worktree))[0].text == "second"


def test_a_recording_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "tapes", turn(0, text="x"), instance="task-09")
    with pytest.raises(UsageError, match="a recording of implementer task-09, and implementer implementer was asked"):
        play(path, job_in(project(tmp_path)))


def test_a_bad_recording_is_named_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "tapes", {"turn": 0})
    with pytest.raises(BadDocument, match=r"implementer\.1\.jsonl:2:\d+: not a turn of a cassette"):
        play(path, job_in(project(tmp_path)))


@pytest.mark.req("P12")
def test_turns_and_tokens_are_limits_of_a_replay_too(tmp_path: Path) -> None:
    path = write(tmp_path / "tapes", *[turn(number, ("list_dir", {})) for number in range(9)], turn(9, text="x"))
    worktree = project(tmp_path)
    (by_turns,) = play(path, job_in(worktree, turns=3))
    (by_tokens,) = play(path, job_in(worktree, tokens=2000))
    assert (by_turns.stop, by_turns.usage.turns) == (Stop.LIMIT, 3)
    assert (by_tokens.stop, by_tokens.usage.turns) == (Stop.LIMIT, 2)


def test_turns_that_nobody_asked_for_are_told(tmp_path: Path) -> None:
    kept = Kept()
    path = write(tmp_path / "tapes", turn(0, text="x"), turn(1, text="y"))
    play(path, job_in(project(tmp_path), kept=kept))
    assert "1 of 2 recorded turns were not played" in kept.texts(Kind.NOTE)


def test_at_life_speed_it_takes_the_recorded_time_and_can_be_cancelled(tmp_path: Path) -> None:
    path = write(tmp_path / "tapes", turn(0, ("list_dir", {}), ms=150), turn(1, text="x", ms=60_000))

    async def run() -> None:
        job = job_in(project(tmp_path))
        began = time.monotonic()
        async with CassetteBackend(path, speed=1).open(job) as session:
            asking = asyncio.ensure_future(session.ask("go"))
            await asyncio.sleep(0.6)
            assert not asking.done()
            await session.cancel()
            assert (await asking).stop is Stop.CANCELLED
        assert 0.15 < time.monotonic() - began < 5

    asyncio.run(run())


def test_a_probe_says_whether_there_is_anything_to_play(tmp_path: Path) -> None:
    there, gone = CassetteBackend(tmp_path).probe(), CassetteBackend(tmp_path / "no").probe()
    assert (there.found, there.kind, there.tier) == (True, "cassette", EnforcementTier.A)
    assert not gone.found
    assert gone.missing
    assert gone.next_step
