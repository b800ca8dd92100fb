"""Where an engine is put to the test: its database, the processes that work on it, and the log of what they did."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fairwitness.engine.base import JOURNAL_VERSION, Body, Engine, Json
from support.engine.raw_engine import RawEngine

TESTS = Path(__file__).parents[1]
PATIENCE_S = 60.0


class Kind(StrEnum):
    """The engines there are."""

    RAW = "raw"
    DBOS_SQLITE = "dbos-sqlite"
    DBOS_POSTGRES = "dbos-postgres"


@dataclass(frozen=True, slots=True)
class Done:
    """One line of the log: what happened to a step of a run, in which process."""

    what: str
    run: str
    key: str
    pid: int


@dataclass(frozen=True, slots=True)
class Ground:
    """One database and one log."""

    kind: Kind
    address: str
    folder: Path

    @property
    def log(self) -> Path:
        """To which every process appends."""
        return self.folder / "log"

    def make(
        self, flows: Mapping[str, Body], *, executor: str | None = None, version: str = JOURNAL_VERSION, cap: int = 4
    ) -> Engine:
        """An engine in this process."""
        if self.kind is Kind.RAW:
            return RawEngine(self.address, flows, executor=executor, version=version, cap=cap)
        from fairwitness.engine.dbos_engine import DbosEngine

        return DbosEngine(self.address, flows, executor=executor, version=version, cap=cap)

    @contextmanager
    def worker(
        self,
        *,
        run: str = "",
        flow: str = "",
        args: Json = None,
        kill: str = "",
        cap: int = 4,
        host: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> "Iterator[subprocess.Popen[str]]":
        """A process that works until the run it was given has ended, or for ever; `kill` is where it shall die.

        With a `host` it takes itself for a process of another machine, which needs root. Whatever is left of it at the
        end of the block is killed.
        """
        spec = {"kind": self.kind, "address": self.address, "log": str(self.log), "cap": cap, "kill": kill}
        spec |= {"run": run, "flow": flow, "args": args, "host": host}
        environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTHONWARNINGS": "ignore", **(environment or {})}
        program = [*(("unshare", "--uts") if host else ()), sys.executable, "-m", "engine.program", json.dumps(spec)]
        with subprocess.Popen(program, env=environment, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def works(self, *, run: str, flow: str = "", args: Json = None, kill: str = "", cap: int = 4) -> None:
        """A worker from its start to its end, which must be the end that was meant."""
        with self.worker(run=run, flow=flow, args=args, kill=kill, cap=cap) as process:
            assert ended(process) == (-signal.SIGKILL if kill else 0)

    def is_begun(self) -> bool:
        """Whether something of the engine stands in its database; on a server, where tables come one by one, a few."""
        if self.kind is not Kind.DBOS_POSTGRES:
            return Path(self.address).exists()
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            row = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname LIKE '%fairwitness%'").fetchone()
        return row is not None and row[0] > 2

    def release(self) -> None:
        """Lets steps go on that are held."""
        held_until(self.log).touch()

    def done(self) -> list[Done]:
        """The log."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [Done(what, run, key, int(pid)) for what, run, key, pid in map(str.split, lines)]

    def count(self, what: str) -> Counter[tuple[str, str]]:
        """How often something happened to each step of each run."""
        return Counter((done.run, done.key) for done in self.done() if done.what == what)

    def in_flight(self, pid: int) -> set[tuple[str, str]]:
        """Steps that a process has begun and not ended."""
        mine = [done for done in self.done() if done.pid == pid]
        begun = {(done.run, done.key) for done in mine if done.what == "begin"}
        return begun - {(done.run, done.key) for done in mine if done.what == "end"}

    def until(self, holds: Callable[[list[Done]], bool], *processes: "subprocess.Popen[str]") -> list[Done]:
        """Waits until the log is so, while the processes that shall make it so live."""
        end = time.monotonic() + PATIENCE_S
        while not holds(done := self.done()):
            assert time.monotonic() < end, done
            for process in processes:
                assert process.poll() is None, process.communicate()[1]
            time.sleep(0.005)
        return done


def held_until(log: Path) -> Path:
    """The file for which steps wait that are held."""
    return log.with_suffix(".release")


def ended(process: "subprocess.Popen[str]", *, patience_s: float = PATIENCE_S) -> int:
    """How a process ended; what it said is shown if it should not have said anything."""
    _, said = process.communicate(timeout=patience_s)
    if process.returncode not in (0, -signal.SIGKILL):
        raise AssertionError(said)
    return process.returncode


def kill(process: "subprocess.Popen[str]") -> None:
    """As if the power had failed."""
    process.send_signal(signal.SIGKILL)
    process.wait()
