"""Who is silent, who only slept, and what a worker that was taken over can still write: nothing."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from engine.flows import chain_value
from engine.grounds import Ground, Kind, ended
from engine.judging import outcome
from engine.test_dbos_engine import on_a_file, on_both
from engine.test_dbos_leases import ELSEWHERE, change, database_of, give_to, make
from fairwitness.db.base import Transaction
from fairwitness.db.postgres import IDLE_IN_TRANSACTION_MS, PostgresDatabase
from fairwitness.engine.base import ExecutionStatus, RunOutcome
from fairwitness.engine.leases import DEAD_AFTER_S, Fence, Fenced, FencedDatabase, FenceHolder, Leases, SilenceWatch
from fairwitness.engine.locks import end_stopped, this_process
from support.jumping_clock import HAS_COMPILER, MISSING, JumpingClock

on_a_server = pytest.mark.parametrize("ground", [Kind.DBOS_POSTGRES], indirect=True, ids=str)


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.req("P16")
def test_silence_counts_only_while_its_observer_looks() -> None:
    clock = Clock()
    watch = SilenceWatch(clock)
    assert watch.look({"a": 1, "b": 1}) == {"a": 0.0, "b": 0.0}
    clock.now += 4
    assert watch.look({"a": 1, "b": 2, "c": 1}) == {"a": 4.0, "b": 0.0, "c": 0.0}
    clock.now += 3600  # a closed lid, a stopped observer or a lost database
    assert watch.look({"a": 1, "b": 2}) == {"a": 14.0, "b": 10.0}, "an hour of sleep is one look"
    clock.now -= 7200
    assert watch.look({"a": 1, "b": 2}) == {"a": 14.0, "b": 10.0}, "and no clock takes anything back"
    clock.now += 5
    assert watch.look({"a": 2}) == {"a": 0.0}, "any change is a sign of life"
    assert watch.look({"a": 2, "b": 2}) == {"a": 0.0, "b": 0.0}, "who comes back begins anew"


@on_both
@pytest.mark.req("P16")
def test_a_database_whose_clock_jumps_kills_nobody_who_beats(ground: Ground) -> None:
    make(ground, "r")
    with database_of(ground) as (database, tables):
        leases = Leases(database, tables)
        leases.join("far", ELSEWHERE, 4)
        give_to(database, tables, "far", "r")
        clock = Clock()
        watch = SilenceWatch(clock)
        for _ in range(12):
            clock.now += 5.0
            leases.beat("far")
            change(database, f"UPDATE {tables.lease} SET heartbeat = heartbeat - 3600")
            (far,) = leases.all()
            assert far.is_dead, "by the clock of the database it has been silent for an hour"
            assert not far.is_lost(watch.look({far.executor: far.epoch})[far.executor])
        (far,) = leases.all()
        for beat_s, lost in ((5.0, False), (5.0, False), (5.0, True)):
            clock.now += beat_s
            assert far.is_lost(watch.look({far.executor: far.epoch})[far.executor]) is lost
        quiet = replace(far, silent_s=-3600.0)
        assert not quiet.is_lost(DEAD_AFTER_S), "a clock that went back does not prolong a life"
        assert quiet.is_lost(DEAD_AFTER_S + 1)


@on_both
@pytest.mark.req("P16")
def test_a_worker_without_its_lease_writes_nothing_and_nobody_takes_it_over_in_the_middle(ground: Ground) -> None:
    make(ground)
    with database_of(ground) as (database, tables), database_of(ground) as (other, _):
        leases = Leases(other, tables)
        leases.join("w", this_process(), 4)
        holder = FenceHolder()
        fenced = FencedDatabase(database, holder)
        insert = f"INSERT INTO {tables.gate} (run_id, gate) VALUES (?, 'g')"

        def write(run: str) -> None:
            fenced.write(lambda transaction: transaction.run(insert, (run,)))

        write("before it joined")
        holder.fence = Fence(database.dialect, tables, "w")
        write("with its lease")
        if ground.kind is Kind.DBOS_POSTGRES:
            _hold(fenced, leases, insert)
            leases.join("w", this_process(), 4)
        (lease,) = leases.all()
        assert leases.take_over(lease)
        with pytest.raises(Fenced, match="another one continues its runs"):
            write("after it was taken over")
        leases.join("w", this_process(), 4)
        write("again")
        written = {run for (run,) in database.read(f"SELECT run_id FROM {tables.gate}")}
    assert written - {"held"} == {"before it joined", "with its lease", "again"}


def _hold(fenced: FencedDatabase, leases: Leases, insert: str) -> None:
    """A takeover waits for a write that has begun, and a heartbeat does not."""
    inside, go = threading.Event(), threading.Event()

    def slow(transaction: Transaction) -> None:
        inside.set()
        go.wait(5)
        transaction.run(insert, ("held",))

    writing = threading.Thread(target=lambda: fenced.write(slow))
    writing.start()
    inside.wait(5)
    assert leases.beat("w")
    (lease,) = leases.all()
    took: list[bool] = []
    taking = threading.Thread(target=lambda: took.append(leases.take_over(lease)))
    taking.start()
    taking.join(0.5)
    assert taking.is_alive(), "it waits for the write"
    go.set()
    writing.join()
    taking.join(5)
    assert took == [True]


@on_a_server
@pytest.mark.width("full")
@pytest.mark.req("P16")
@pytest.mark.timeout(120)
def test_a_process_that_froze_in_a_transaction_loses_its_locks_before_others_lose_their_patience(
    ground: Ground,
) -> None:
    program = (
        "import sys, time\nfrom fairwitness.db.postgres import PostgresDatabase\n"
        f"database = PostgresDatabase({ground.address!r})\n"
        "def work(transaction):\n"
        "    transaction.take_turns('run')\n"
        "    print('inside', flush=True)\n"
        "    time.sleep(600)\n"
        "database.write(work)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as frozen:
        assert frozen.stdout is not None
        assert frozen.stdout.readline() == "inside\n"
        frozen.send_signal(signal.SIGSTOP)
        database = PostgresDatabase(ground.address)
        try:
            began = time.monotonic()
            database.write(lambda transaction: transaction.take_turns("run"))
            assert time.monotonic() - began < IDLE_IN_TRANSACTION_MS / 1000 + 15
        finally:
            database.close()
            frozen.kill()


def test_only_a_stopped_process_of_this_user_is_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        started = Path(f"/proc/{child.pid}/stat").read_text().split()[21]
        process = replace(this_process(), pid=child.pid, started=started)
        assert not end_stopped(process), "one that runs is left alone"
        child.send_signal(signal.SIGSTOP)
        while Path(f"/proc/{child.pid}/stat").read_text().split()[2] != "T":
            time.sleep(0.01)
        assert not end_stopped(replace(process, started="1")), "so is another with its number"
        assert not end_stopped(replace(process, host="another-machine"))
        assert end_stopped(process)
        assert child.wait(5) == -signal.SIGKILL
    assert not end_stopped(process)


@pytest.mark.width("full")
@pytest.mark.timeout(300)
@pytest.mark.req("P16")
@on_both
def test_a_frozen_worker_is_ended_and_the_survivor_finishes_its_runs(ground: Ground) -> None:
    with ground.worker(run="r", flow="chain", args={"steps": 3, "pause_s": -1}) as frozen:
        ground.until(lambda _: ground.in_flight(frozen.pid) == {("r", "s0")}, frozen)
        frozen.send_signal(signal.SIGSTOP)
        ground.release()
        with ground.worker(run="r") as survivor:
            assert ended(survivor, patience_s=150) == 0
        frozen.send_signal(signal.SIGCONT)
        assert frozen.wait(10) == -signal.SIGKILL
    assert outcome(ground, "r") == RunOutcome(ExecutionStatus.DONE, chain_value(3))
    assert ground.count("end")["r", "s0"] == 1


@on_a_server
@pytest.mark.width("full")
@pytest.mark.timeout(300)
@pytest.mark.req("P16")
@pytest.mark.skipif(os.getuid() != 0, reason="another host name needs root")
def test_a_frozen_worker_of_another_machine_is_taken_over_and_writes_nothing_when_it_thaws(ground: Ground) -> None:
    with ground.worker(run="r", flow="chain", args={"steps": 3, "pause_s": -1}, host="far-away") as frozen:
        ground.until(lambda _: ground.in_flight(frozen.pid) == {("r", "s0")}, frozen)
        frozen.send_signal(signal.SIGSTOP)
        with ground.worker(run="r") as survivor:
            ground.until(lambda _: bool(ground.in_flight(survivor.pid)), survivor)
            before = ground.done()
            frozen.send_signal(signal.SIGCONT)
            ground.until(lambda done: any((one.what, one.pid) == ("left", frozen.pid) for one in done), survivor)
            ground.release()
            assert ended(survivor) == 0
        assert ended(frozen) == 0, "it joined again and saw that the run was over"
    mine = [one for one in ground.done()[len(before) :] if one.pid == frozen.pid]
    assert {one.what for one in mine} == {"left"}, mine
    assert outcome(ground, "r") == RunOutcome(ExecutionStatus.DONE, chain_value(3))
    assert set(ground.count("end").values()) == {1}


@pytest.mark.skipif(not HAS_COMPILER, reason=MISSING)
@on_a_file
@pytest.mark.width("sample")
@pytest.mark.timeout(120)
@pytest.mark.req("P16")
def test_a_clock_that_jumps_discards_no_living_child(ground: Ground, tmp_path: Path) -> None:
    clock = JumpingClock(tmp_path)
    with ground.worker(run="p", flow="patient", args={"stale_s": 20}, environment=clock.environment) as process:
        ground.until(lambda _: ("p/child", "s0") in ground.in_flight(process.pid), process)
        for jump in (120, 2 * 86400, -3600):
            clock.jump(jump)
            time.sleep(1.0)
        ground.release()
        assert ended(process) == 0
    assert outcome(ground, "p") == RunOutcome(ExecutionStatus.DONE, {"lost": 0, "value": chain_value(1)})
