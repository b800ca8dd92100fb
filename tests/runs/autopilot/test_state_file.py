"""The state file says where a run stands, is a fold of its events, and comes back from whatever damaged it."""

import json
import shutil
from pathlib import Path

import pytest

from fairwitness.contracts.autopilot.events_run import AutopilotRunCompleted, CheckpointWritten
from fairwitness.contracts.autopilot.order import AutopilotTable
from fairwitness.contracts.autopilot.state import State
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, PhaseStatus, StepName
from fairwitness.contracts.common.problems import Problem
from fairwitness.errors import UnsafePath, UsageError
from fairwitness.rules.fold_autopilot import fold_autopilot
from fairwitness.runs.autopilot.state_file import StateFile, StateSource, archive, read_state, rendered
from fairwitness.store.layout import autopilot
from runs.autopilot.logbook import RUN, Logbook, killed_everywhere, order
from support.call_depth import CallDepth


def _written(logbook: Logbook, path: str = autopilot.STATE) -> State:
    return State.model_validate(json.loads(logbook.files.get(path)))


def _folded(logbook: Logbook, kept: int | None = 8) -> State:
    folded = fold_autopilot(logbook.log.ledger.events(logbook.log.run_id), order().setup(kept))
    assert not isinstance(folded, Problem)
    return folded.state


@pytest.fixture
def logbook(tmp_path: Path) -> Logbook:
    return Logbook.create(tmp_path / "run")


@pytest.mark.req("A1", "A5")
def test_the_file_is_the_fold_of_the_events_after_each_refresh(logbook: Logbook) -> None:
    state_file = StateFile(logbook.log, logbook.files)
    for events in (0, 3, 40):
        logbook.fill(events)
        logbook.begins("5")
        refreshed = state_file.refresh()
        assert _written(logbook) == refreshed.state == _folded(logbook)
        assert json.loads(logbook.files.get(autopilot.STATE)) == _folded(logbook).plain()


@pytest.mark.req("A1")
def test_the_file_alone_says_where_the_run_stands(logbook: Logbook) -> None:
    logbook.passes("5")
    logbook.begins("6")
    StateFile(logbook.log, logbook.files).refresh()
    logbook.close()
    shutil.move(logbook.root / "evidence.db", logbook.root / "elsewhere.db")
    found = read_state(logbook.files)
    assert found is not None
    assert found.source is StateSource.FILE
    meta = found.state.meta
    assert (meta.run_id, meta.status, meta.current_phase, meta.current_step) == (
        RUN,
        AutopilotRunStatus.RUNNING,
        "6",
        StepName.RESEARCH,
    )
    statuses = {phase: record.status for phase, record in found.state.phases.items()}
    assert statuses == {"5": PhaseStatus.COMPLETED, "6": PhaseStatus.IN_PROGRESS, "7": PhaseStatus.NOT_STARTED}


@pytest.mark.req("A1", "A5")
def test_a_refresh_tells_of_its_checkpoint_once_and_changes_nothing_when_nothing_is_new(logbook: Logbook) -> None:
    state_file = StateFile(logbook.log, logbook.files)
    state_file.refresh()
    before = logbook.tree()
    assert state_file.refresh() == StateFile(logbook.log, logbook.files).refresh()
    assert logbook.events() == ["run_started", "checkpoint_written"]
    assert logbook.tree() == before
    told = _written(logbook).event_log[-1]
    assert isinstance(told, CheckpointWritten)
    assert told.details.path == autopilot.STATE
    assert _written(logbook).meta.last_checkpoint == told.timestamp


@pytest.mark.req("A1")
def test_what_stood_there_is_the_backup(logbook: Logbook) -> None:
    state_file = StateFile(logbook.log, logbook.files)
    first = state_file.refresh().state
    logbook.begins("5")
    second = state_file.refresh().state
    assert (_written(logbook, autopilot.STATE_BACKUP), _written(logbook)) == (first, second)


@pytest.mark.req("A1", "A5")
def test_the_event_stands_in_the_ledger_before_the_file_it_names(logbook: Logbook) -> None:
    StateFile(logbook.log, logbook.files).refresh()
    before = logbook.tree()
    logbook.begins("5")
    assert logbook.events()[-1] == "checkpoint_written"
    assert logbook.tree() == before


@pytest.mark.req("A1", "P16")
def test_an_event_and_the_checkpoint_after_it_are_one_record(logbook: Logbook) -> None:
    logbook.begins("5")
    logbook.passes("5")
    told = list(logbook.log.ledger.events(logbook.log.run_id))
    moments = {each.timestamp for each in told if each.type == "checkpoint_written"}
    assert len(moments) > 2
    assert {each.timestamp for each in told if each.type not in ("checkpoint_written", "run_started")} == moments
    before = logbook.events()
    StateFile(logbook.log, logbook.files).refresh()
    assert logbook.events() == before  # a process that takes the run up adds none


@pytest.mark.req("A1")
def test_killed_between_any_two_writes_the_next_refresh_mends_it(logbook: Logbook, tmp_path: Path) -> None:
    StateFile(logbook.log, logbook.files).refresh()
    before = _written(logbook)
    logbook.begins("5")
    told = logbook.events()
    logbook.close()
    for found in killed_everywhere(logbook, "refresh", tmp_path):
        assert read_state(found.files) is not None
        StateFile(found.log, found.files).refresh()
        assert _written(found) == _folded(found)
        assert _written(found, autopilot.STATE_BACKUP) == before
        assert found.events() == told


DAMAGE = [b"", b"\0" * 4096, b'{"_meta": ', b"{}", b"[]", b"\xff\xfe", b'{"_meta": {}, "_meta": {}}']


@pytest.mark.req("A1")
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_falls_back_to_the_backup_and_then_to_nothing(logbook: Logbook, damage: bytes) -> None:
    state_file = StateFile(logbook.log, logbook.files)
    first = state_file.refresh().state
    logbook.begins("5")
    second = state_file.refresh().state
    assert read_state(logbook.files) == (second, StateSource.FILE)
    logbook.files.put(autopilot.STATE, damage)
    assert read_state(logbook.files) == (first, StateSource.BACKUP)
    logbook.files.put(autopilot.STATE_BACKUP, damage)
    assert read_state(logbook.files) is None


@pytest.mark.req("A1")
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_never_becomes_the_backup(logbook: Logbook, damage: bytes) -> None:
    state_file = StateFile(logbook.log, logbook.files)
    first = state_file.refresh().state
    logbook.begins("5")
    state_file.refresh()
    logbook.files.put(autopilot.STATE, damage)
    state_file.refresh()
    assert _written(logbook) == _folded(logbook)
    assert _written(logbook, autopilot.STATE_BACKUP) == first


def test_files_of_another_run_say_nothing_of_this_one(logbook: Logbook) -> None:
    other = Logbook.create(logbook.root, run_id="run-2026-02-08-000000")
    StateFile(other.log, other.files).refresh()
    assert read_state(logbook.files, run_id=RUN) is None
    assert read_state(logbook.files, run_id=other.log.run_id) is not None


def test_a_link_where_the_file_should_be_is_refused(logbook: Logbook, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (logbook.files.root / ".autopilot").mkdir(parents=True)
    (logbook.files.root / autopilot.STATE).symlink_to(tmp_path / "precious")
    with pytest.raises(UnsafePath):
        StateFile(logbook.log, logbook.files).refresh()
    assert (tmp_path / "precious").read_text() == "mine"


@pytest.mark.req("A5")
def test_a_refresh_writes_as_much_after_ten_thousand_events_as_after_one_thousand(tmp_path: Path) -> None:
    logbook = Logbook.create(tmp_path / "run", limits=AutopilotTable())
    state_file = StateFile(logbook.log, logbook.files)

    def written() -> int:
        state_file.refresh()
        amounts = []
        for _ in range(3):
            logbook.fill(1)
            before = _bytes()
            state_file.refresh()
            amounts.append(_bytes() - before)
        return min(amounts)

    logbook.fill(1_000)
    early = written()
    logbook.fill(9_000)
    late = written()
    assert late <= 1.1 * early
    assert len(_written(logbook).event_log) == 50


def _bytes() -> int:
    """Handed to the disk so far."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("wchar:"):
            return int(line.split()[1])
    raise AssertionError("this kernel does not count")


def _completed(logbook: Logbook) -> None:
    logbook.passes("5")
    logbook.fill(30)
    logbook.tell(AutopilotRunCompleted)
    StateFile(logbook.log, logbook.files).refresh()


@pytest.mark.req("A1", "A5")
def test_the_archive_holds_all_events_and_the_file_is_gone(logbook: Logbook) -> None:
    _completed(logbook)
    assert len(_written(logbook).event_log) == 8
    path = archive(logbook.log, logbook.files)
    assert path == f".autopilot/archive/{RUN}.json"
    assert _written(logbook, path) == _folded(logbook, None)
    assert [event.event for event in _written(logbook, path).event_log] == logbook.events()
    assert not logbook.files.exists(autopilot.STATE)
    found = read_state(logbook.files)
    assert found is not None
    assert (found.source, found.state.meta.status) == (StateSource.BACKUP, AutopilotRunStatus.COMPLETED)
    before = logbook.tree()
    StateFile(logbook.log, logbook.files).refresh()
    assert archive(logbook.log, logbook.files) == path
    assert logbook.tree() == before


@pytest.mark.req("A1")
def test_only_a_completed_run_is_archived(logbook: Logbook) -> None:
    StateFile(logbook.log, logbook.files).refresh()
    with pytest.raises(UsageError, match="is running, and only a completed run is archived"):
        archive(logbook.log, logbook.files)
    assert logbook.files.exists(autopilot.STATE)


def test_the_file_of_another_run_stays_where_it_is(logbook: Logbook) -> None:
    _completed(logbook)
    other = Logbook.create(logbook.root, run_id="run-2026-02-10-000000")
    StateFile(other.log, other.files).refresh()
    theirs = logbook.files.get(autopilot.STATE)
    path = archive(logbook.log, logbook.files)
    assert logbook.files.get(autopilot.STATE) == theirs
    assert logbook.files.get(path) == rendered(_folded(logbook, None))


@pytest.mark.req("A4", "A5")
def test_a_long_history_is_read_and_written_without_deeper_calls(tmp_path: Path) -> None:
    depths = []
    for events in (5, 120):
        logbook = Logbook.create(tmp_path / f"{events}")
        logbook.fill(events)
        logbook.begins("5")
        depth = CallDepth()
        with depth.watch():
            logbook.log.state()
            logbook.ending().pause("the breaker is open")
            StateFile(logbook.log, logbook.files).refresh()
        depths.append(depth.deepest)
        logbook.close()
    assert depths[1] <= depths[0] + 5
