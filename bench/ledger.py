"""What the ledger costs: a record beside a bare commit, many writers beside direct writing, a gate as rows pile up."""

import os
import random
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from bench.measure import medians, report
from fairwitness.contracts.common.evidence import Execution, Phase
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.db.base import Transaction, Value
from fairwitness.errors import DatabaseBusy
from fairwitness.ledger.chain import START, link_hash, spell_members
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record, plain_json
from fairwitness.ledger.tables import CHAINED, OWN_INDEXES, PUBLISHED_INDEXES, Table

RUN = "2026-02-26T14:30:00Z"
TIME = "2026-02-26T14:30:00Z"
HASH = "sha256:" + "0" * 64
DATA = {"step": "step-6", "task": "task-03"}
ROWS_PER_RUN = 382
TASKS = 20
SMALL = 10_000
LARGE = int(os.environ.get("FAIRWITNESS_BENCH_ROWS", "1000000"))

_EVENT_COLUMNS = CHAINED["events"].columns
_INSERT_EVENT = f"INSERT INTO events ({', '.join(_EVENT_COLUMNS)}) VALUES ({', '.join('?' * len(_EVENT_COLUMNS))})"


def run() -> bool:
    """Prints every ratio of the ledger."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        root = Path(folder)
        return all([_append(root), _chain(root), _writers(root), _gate(root)])


def _event(record: Record) -> int:
    return record.event(Workflow.FEATURE, "step_started", DATA, timestamp=TIME, task="task-03", attempt=1)


def _executions() -> Iterator[Execution]:
    number = 0
    while True:
        number += 1
        yield Execution.model_validate(
            {
                "run_id": RUN,
                "task_id": "task-03",
                "key": f"step-6/{number}",
                "argv": ["pytest", "-q", "tests"],
                "cwd": ".",
                "env_digest": HASH,
                "tool": "pytest",
                "tool_version": "9.2.0",
                "tree": "a" * 40,
                "sandbox": "ns",
                "started_at": TIME,
                "duration_ms": 1200,
                "exit_code": 0,
                "signal": None,
                "stdout": HASH,
                "stderr": HASH,
                "assessment": "pass",
            }
        )


def _by_hand(path: Path, ddl: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(ddl)
    return connection


def _append(root: Path) -> bool:
    """One writer: a record of one event, and one of a check with its execution and source."""
    ledger = Ledger.open_file(root / "append.db")
    ((ddl,),) = ledger.database.read("SELECT sql FROM sqlite_master WHERE name = 'events'")
    keyed = _by_hand(root / "keyed.db", str(ddl))
    bare = str(ddl).replace("PRIMARY KEY (run_id, seq)", "CHECK (1)").replace("WITHOUT ROWID", "")
    plain = _by_hand(root / "plain.db", bare)
    executions = _executions()
    count = 0

    def commit(connection: sqlite3.Connection) -> None:
        nonlocal count
        count += 1
        row = (RUN, count, f"{RUN}.{count}", TIME, "feature", None, "task-03", 1, "step_started", 1, plain_json(DATA))
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_INSERT_EVENT, row)
        connection.execute("COMMIT")

    baseline = "the same row committed by hand"
    with closing(keyed), closing(plain), closing(ledger):
        measured = medians(
            {
                baseline: lambda: commit(keyed),
                "by hand into a table without any index": lambda: commit(plain),
                "record of one event": lambda: ledger.record(RUN, _event),
                "record of a check (three rows)": lambda: ledger.record(RUN, _check(next(executions))),
            },
            rounds=2000,
        )
    return report("durable append, one writer", measured, baseline, {"record of one event": 1.5})


class _Unchained(Record):
    """A record whose rows are written without digests; nobody links it."""

    def _insert(self, table: str, row: Mapping[str, Value]) -> int:
        shape, statement = _BARE[table]
        values = [row.get(column) for column in shape]
        written = self._transaction.run(statement, values)
        return int(written[0][0]) if written else 0


def _bare(table: Table) -> tuple[tuple[str, ...], str]:
    columns = table.columns[1:] if table.key == "id" else table.columns
    insert = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    return columns, f"{insert} RETURNING id" if table.key == "id" else insert


_BARE = {name: _bare(table) for name, table in CHAINED.items()}


def _chain(root: Path) -> bool:
    """CPU time of the rows alone, and of the rows with their digests and their link."""
    chained = Ledger.open_file(root / "chained.db")
    bare, hashed = Ledger.open_file(root / "unchained.db"), Ledger.open_file(root / "hashed.db")
    moment = datetime(2026, 2, 26, 14, 30, tzinfo=UTC)
    checks = [_check(execution) for execution in islice(_executions(), 3000)]
    met = True
    with closing(chained), closing(bare), closing(hashed):
        for title, works in (
            ("CPU of a record of one event", [_event] * len(checks)),
            ("CPU of a record of a check (three rows)", checks),
        ):
            spent = {"rows alone": 0.0, "hashed, the link not stored": 0.0, "with digests and link": 0.0}
            for work in works:
                for name, write in (
                    ("rows alone", lambda work: bare.database.write(_unchained(work, moment))),
                    ("hashed, the link not stored", lambda work: hashed.database.write(_hashed(work, moment))),
                    ("with digests and link", lambda work: chained.record(RUN, work)),
                ):
                    began = time.process_time()
                    write(work)
                    spent[name] += time.process_time() - began
            each = {name: seconds / len(works) for name, seconds in spent.items()}
            met = report(title, each, "rows alone", {"with digests and link": 1.05}) and met
    return met


def _unchained(work: Callable[[Record], int], moment: datetime) -> Callable[[Transaction], int]:
    return lambda transaction: work(_Unchained(transaction, RUN, moment))


def _hashed(work: Callable[[Record], int], moment: datetime) -> Callable[[Transaction], str]:
    def write(transaction: Transaction) -> str:
        record = Record(transaction, RUN, moment)
        work(record)
        return link_hash(RUN, 1, spell_members(record.members), START)

    return write


def _check(execution: Execution) -> Callable[[Record], int]:
    return lambda record: record.executed(execution, phase=Phase.AFTER, check_name="tests", round_=1, output="ok")


def _writers(root: Path) -> bool:
    """Threads that share one database beside threads that each have a connection of their own."""
    met = True
    for writers, each, rounds in ((16, 150, 3), (4, 400, 3)):
        shared: list[float] = []
        direct: list[float] = []
        walls = {"shared": 0.0, "direct": 0.0}
        busy = {"shared": 0, "direct": 0}
        for number in range(rounds):
            for name, taken in (("shared", shared), ("direct", direct)):
                path = root / f"{name}-{writers}-{number}.db"
                wall, refused = _together(path, writers, each, taken, own=name == "direct")
                walls[name] += wall
                busy[name] += refused
        shared.sort()
        direct.sort()
        print(f"\n{writers} durable writers, {len(shared)} records of one event  (baseline: a connection for each)")
        print(f"  refused as busy and asked again: {busy['shared']} shared, {busy['direct']} direct")
        is_crowd = writers == 16
        met = _line("throughput", walls["direct"] / walls["shared"], 3.0 if is_crowd else None, at_least=True) and met
        middle = statistics.median(shared) / statistics.median(direct)
        met = _line("latency, median", middle, None if is_crowd else 1.5) and met
        _line("latency, mean", statistics.mean(shared) / statistics.mean(direct), None)
        _line("latency, 99 of 100", shared[len(shared) * 99 // 100] / direct[len(direct) * 99 // 100], None)
        met = _line("latency, worst", shared[-1] / direct[-1], 1 / 50 if is_crowd else None) and met
    return met


def _line(name: str, ratio: float, goal: float | None, *, at_least: bool = False) -> bool:
    good = goal is None or (ratio >= goal if at_least else ratio <= goal)
    said = "" if goal is None else f"goal {'>=' if at_least else '<='} {goal:.2f}: {'met' if good else 'MISSED'}"
    print(f"  {ratio:6.3f}x  {name:<44} {said}")
    return good


def _together(path: Path, writers: int, each: int, taken: list[float], *, own: bool) -> tuple[float, int]:
    """Wall seconds until every record is written, and how often a writer was refused as busy and asked again.

    The time of each record goes into `taken`, with all its tries: a writer that starves is part of what is measured.
    """
    ledgers = [Ledger.open_file(path)]
    ledgers += [Ledger.open_file(path) if own else ledgers[0] for _ in range(writers - 1)]
    gate = threading.Barrier(writers + 1)
    refused: list[int] = []

    def write(number: int) -> None:
        own_times = []
        gate.wait()
        for _ in range(each):
            began = time.perf_counter()
            while True:
                try:
                    ledgers[number].record(f"run-{number}", _event)
                    break
                except DatabaseBusy:
                    refused.append(number)
            own_times.append(time.perf_counter() - began)
        taken.extend(own_times)

    before = len(taken)
    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    gate.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - began
    for ledger in set(ledgers):
        ledger.close()
    if len(taken) - before != writers * each:
        raise RuntimeError("a writer did not finish, so these times mean nothing")
    return wall, len(refused)


def _gate(root: Path) -> bool:
    """The question a gate asks, in a small ledger and in a large one."""
    ledgers = {}
    for rows in (SMALL, LARGE):
        path = root / f"gate-{rows}.db"
        Ledger.open_file(path).close()
        _fill(path, rows)
        ledgers[rows] = Ledger.read_only(path)
    chance = random.Random(1)

    def ask(rows: int) -> Callable[[], object]:
        runs = rows // ROWS_PER_RUN
        ledger = ledgers[rows]
        return lambda: ledger.tally(
            f"run-{chance.randrange(runs):08}", f"task-{chance.randrange(TASKS):02}", Phase.AFTER, 1
        )

    baseline, grown = f"{SMALL:,} rows", f"{LARGE:,} rows"
    measured = medians({baseline: ask(SMALL), grown: ask(LARGE)}, rounds=4000)
    for ledger in ledgers.values():
        ledger.close()
    return report("one gate", measured, baseline, {grown: 1.5})


def _fill(path: Path, rows: int) -> None:
    """Checks, executions and sources in bulk: tasks repeat over runs, indexes are built afterwards."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for setting in ("synchronous=OFF", "journal_mode=OFF", "cache_size=-200000", "foreign_keys=OFF"):
            connection.execute(f"PRAGMA {setting}")
        names = connection.execute("SELECT type, name FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        for kind, name in names:
            if (
                kind == "trigger"
                or (kind == "index" and name.startswith("idx_anvil"))
                or name == "idx_fairwitness_gate"
            ):
                connection.execute(f"DROP {kind} {name}")
        numbers = f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {rows})"
        run = f"printf('run-%08d', i / {ROWS_PER_RUN})"
        task = f"printf('task-%02d', i % {ROWS_PER_RUN} % {TASKS})"
        connection.execute("BEGIN")
        connection.execute(
            "INSERT INTO executions (id, run_id, task_id, key, argv, cwd, env_digest, tool, tree, sandbox, started_at, "
            f"duration_ms, exit_code, stdout, stderr, assessment) {numbers} SELECT i + 1, {run}, {task}, "
            f"printf('%04d', i % {ROWS_PER_RUN}), '[]', '.', '', 'pytest', '{'a' * 40}', 'ns', '', 1, 0, '', '', "
            "'pass' FROM n"
        )
        connection.execute(
            "INSERT INTO anvil_checks (id, run_id, task_id, phase, check_name, tool, passed, round, ts) "
            f"{numbers} SELECT i + 1, {run}, {task}, iif(i % {ROWS_PER_RUN} < 140, 'baseline', 'after'), "
            f"printf('check-%d', i % {ROWS_PER_RUN} / {TASKS}), 'pytest', 1, 1, '' FROM n"
        )
        connection.execute(
            "INSERT INTO check_sources (check_id, run_id, provenance, execution_id) "
            f"{numbers} SELECT i + 1, {run}, 'executed', i + 1 FROM n"
        )
        for index in (*PUBLISHED_INDEXES, *OWN_INDEXES):
            connection.execute(index)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode=WAL")
