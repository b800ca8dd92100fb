"""Group commit: in order, fair, and whatever happens to one writer happens to no other."""

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairwitness.db.base import Transaction
from fairwitness.db.group import LARGEST, PASSES, GroupCommit, WriteJob
from fairwitness.db.sqlite import SqliteDatabase
from fairwitness.errors import DatabaseBusy, DatabaseUnusable, RowRefused, UsageError

Work = Callable[[Transaction], object]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    """A database with one table of words, each of which may be said once."""
    database = SqliteDatabase(tmp_path / "words.db")
    database.write(lambda transaction: transaction.run("CREATE TABLE said (word TEXT PRIMARY KEY)"))
    yield database
    database.close()


def say(word: str) -> Work:
    return lambda transaction: transaction.run("INSERT INTO said (word) VALUES (?)", (word,))


def said(database: SqliteDatabase) -> list[str]:
    return [str(word) for (word,) in database.read("SELECT word FROM said ORDER BY rowid")]


class Crowd:
    """Writers that queue up, in a known order, behind one that is held in its work."""

    def __init__(self, write: Callable[[Work], object], queue_length: Callable[[], int]) -> None:
        self._write = write
        self._queue_length = queue_length
        self._is_held = threading.Event()
        self._may_go = threading.Event()
        self._threads: list[threading.Thread] = []
        self.told: dict[int, object] = {}
        self._start(-1, self._hold)
        assert self._is_held.wait(20)

    def _hold(self, _: Transaction) -> None:
        self._is_held.set()
        assert self._may_go.wait(20)

    def _start(self, number: int, work: Work) -> None:
        def run() -> None:
            try:
                self.told[number] = self._write(work)
            except BaseException as error:  # noqa: BLE001  # what a thread was told is what this is about
                self.told[number] = error

        thread = threading.Thread(target=run)
        thread.start()
        self._threads.append(thread)

    def queue(self, *works: Work) -> None:
        """Each in its own thread, one after the other."""
        for work in works:
            before = self._queue_length()
            self._start(len(self._threads) - 1, work)
            while self._queue_length() == before:
                pass

    def go(self) -> dict[int, object]:
        """What each was told, by its place in the queue."""
        self._may_go.set()
        for thread in self._threads:
            thread.join(20)
            assert not thread.is_alive(), "a writer sleeps for ever"
        return self.told


def crowd_of(database: SqliteDatabase, *works: Work) -> dict[int, object]:
    """Works that share one commit."""
    crowd = Crowd(database.write, lambda: len(database._group._waiting))
    crowd.queue(*works)
    return crowd.go()


@pytest.fixture
def noted() -> list[list[WriteJob]]:
    """The companies that were committed."""
    return []


@pytest.fixture
def group(noted: list[list[WriteJob]]) -> GroupCommit:
    """Group commit onto nothing: every work is run, and the company is noted."""

    def commit(jobs: list[WriteJob]) -> None:
        noted.append(list(jobs))
        for job in jobs:
            job.work(None)  # type: ignore[arg-type]  # these works need no database
            job.settle()

    return GroupCommit(commit)


def test_a_lone_writer_commits_alone_and_at_once(group: GroupCommit, noted: list[list[WriteJob]]) -> None:
    for _ in range(3):
        group.submit(WriteJob(lambda _: None))
    assert [len(jobs) for jobs in noted] == [1, 1, 1]


def test_those_who_wait_are_committed_together_in_the_order_they_came(
    group: GroupCommit, noted: list[list[WriteJob]]
) -> None:
    done: list[int] = []
    crowd = Crowd(lambda work: group.submit(WriteJob(work)), lambda: len(group._waiting))
    crowd.queue(*[lambda _, number=number: done.append(number) for number in range(LARGEST + 10)])
    crowd.go()
    assert done == list(range(LARGEST + 10))
    assert [len(jobs) for jobs in noted] == [1, LARGEST, 10]


def test_in_a_crowd_hardly_anybody_waits_for_more_than_the_commit_under_way_and_the_next(
    group: GroupCommit, noted: list[list[WriteJob]]
) -> None:
    waited: list[int] = []

    def write_on() -> None:
        for _ in range(200):
            before = len(noted)
            group.submit(WriteJob(lambda _: None))
            waited.append(len(noted) - before)

    threads = [threading.Thread(target=write_on) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(waited) == 8 * 200
    # one under way, one of its own, and those that begin between its settling and its looking
    assert sorted(waited)[len(waited) * 9 // 10] <= 3
    assert sum(len(jobs) for jobs in noted) == 8 * 200


def test_a_few_who_wait_are_passed_over_only_so_often() -> None:
    passed: Counter[WriteJob] = Counter()

    def commit(jobs: list[WriteJob]) -> None:
        passed.update(tuple(shared._waiting))
        for job in jobs:
            job.settle()

    shared = GroupCommit(commit)

    def write_on() -> None:
        for _ in range(400):
            shared.submit(WriteJob(lambda _: None))

    threads = [threading.Thread(target=write_on) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a writer sleeps for ever"
    assert max(passed.values(), default=0) <= PASSES + 1  # and the commit that was under way when it came


def test_a_failing_work_in_company_takes_back_only_its_own_part(database: SqliteDatabase) -> None:
    def fail_half_way(transaction: Transaction) -> None:
        transaction.run("INSERT INTO said (word) VALUES ('half')")
        raise LookupError("mine")

    told = crowd_of(database, say("a"), fail_half_way, say("b"), say("a"), say("c"))
    assert said(database) == ["a", "b", "c"]
    assert [type(told[number]) for number in range(5)] == [list, LookupError, list, RowRefused, list]


def test_each_writer_gets_its_own_result_and_its_own_error(database: SqliteDatabase) -> None:
    def work(number: int) -> Work:
        def run(transaction: Transaction) -> int:
            transaction.run("INSERT INTO said (word) VALUES (?)", (str(number),))
            if number % 3 == 0:
                raise ValueError(number)
            return number

        return run

    told = crowd_of(database, *[work(number) for number in range(12)])
    for number in range(12):
        answer = told[number]
        if number % 3 == 0:
            assert isinstance(answer, ValueError)
            assert answer.args == (number,)
        else:
            assert answer == number
    assert said(database) == [str(number) for number in range(12) if number % 3]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_leader_leaves_nobody_waiting(database: SqliteDatabase, kind: type[BaseException]) -> None:
    def interrupt(transaction: Transaction) -> None:
        transaction.run("INSERT INTO said (word) VALUES ('half')")
        raise kind

    told = crowd_of(database, interrupt, say("a"), say("b"))
    assert isinstance(told[0], kind)
    for number in (1, 2):
        answer = told[number]
        assert isinstance(answer, DatabaseBusy)
        assert "nothing of it was written" in answer.what
    assert told[1] is not told[2]  # each has a traceback of its own
    assert said(database) == []
    database.write(say("after"))
    assert said(database) == ["after"]


def test_a_full_database_is_told_to_everyone_whose_part_is_gone(database: SqliteDatabase) -> None:
    ((pages,),) = database.read("PRAGMA page_count")
    database._writer.execute(f"PRAGMA max_page_count={pages + 3}")
    told = crowd_of(database, say("a"), say("x" * 200_000), say("b"))
    assert isinstance(told[1], DatabaseUnusable)
    assert "full" in told[1].what
    present = set(said(database))
    for number, word in ((0, "a"), (2, "b")):
        answer = told[number]
        assert (word in present) is (not isinstance(answer, Exception))
        assert not isinstance(answer, Exception) or isinstance(answer, DatabaseUnusable)
    database.write(say("after"))


def test_a_work_that_swallows_an_error_writes_nothing_after_sqlite_has_taken_everything_back(
    database: SqliteDatabase,
) -> None:
    def carry_on(transaction: Transaction) -> None:
        transaction.run("INSERT INTO said (word) VALUES ('before')")
        database._writer.execute("ROLLBACK")  # as SQLite does by itself when the disk fails
        with pytest.raises(UsageError, match="after the end of its transaction"):
            transaction.run("INSERT INTO said (word) VALUES ('alone')")

    with pytest.raises(DatabaseUnusable):
        database.write(carry_on)
    assert said(database) == []


def test_sixty_four_threads_write_fifty_rows_each_in_their_own_order(database: SqliteDatabase) -> None:
    def write_on(name: int) -> None:
        for number in range(50):
            database.write(say(f"{name}-{number}"))

    threads = [threading.Thread(target=write_on, args=(name,)) for name in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a writer sleeps for ever"
    words = said(database)
    assert len(words) == 64 * 50
    for name in range(64):
        own = [word for word in words if word.startswith(f"{name}-")]
        assert own == [f"{name}-{number}" for number in range(50)]


def test_interrupts_at_any_moment_make_nobody_wait_for_ever_and_nobody_is_told_a_lie(
    database: SqliteDatabase,
) -> None:
    program = Path(__file__).with_name("interrupted.py")
    done = subprocess.run(
        [sys.executable, str(program), str(database.path), "2.5"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    present = said(database)
    assert set(told["written"]) <= set(present)
    assert not set(told["busy"]) & set(present)
    assert set(present) <= set(told["written"]) | set(told["interrupted"])
    assert len(present) == len(set(present))
    assert len(told["interrupted"]) > 20
    assert len([word for word in told["written"] if word.startswith("other")]) > 100
