"""The demos on Postgres, and what can happen to them there: each ends as it would have without the fault."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.graph_grounds import NEEDS_SANDBOX
from support.postgres import Server, own_server

pytestmark = [NEEDS_SANDBOX, pytest.mark.timeout(900), pytest.mark.req("P16")]

PROGRAM = str(Path(sys.executable).with_name("fairwitness"))
FLAGS = {"feature": (), "forge": ("--forge",), "autopilot": ("--autopilot",)}
STARTED = {"feature": "task-01 ", "forge": "task-001 ", "autopilot": "Stock"}
"""What a demo prints once its agents work."""


@pytest.fixture
def server(postgres_url: str) -> Iterator[Server]:
    """A server of one test."""
    with own_server() as made:
        yield made


class Demo:
    """A demo in a process of its own."""

    def __init__(self, kind: str, server: Server, folder: Path, *, wait_minutes: float = 15) -> None:
        wait = {"FAIRWITNESS_DATABASE_WAIT": str(wait_minutes)}
        self._environment = {**os.environ, "FAIRWITNESS_DATABASE_URL": server.url, "NO_COLOR": "1", **wait}
        self._log = folder / "printed"
        self.process = self._run("demo", *FLAGS[kind], "--plain", "--dir", str(folder / "demo"), cwd=folder)
        self.until(STARTED[kind])

    def _run(self, *arguments: str, cwd: Path) -> "subprocess.Popen[bytes]":
        with self._log.open("ab") as log:
            command = [PROGRAM, *arguments]
            return subprocess.Popen(command, cwd=cwd, env=self._environment, stdout=log, stderr=subprocess.STDOUT)

    @property
    def printed(self) -> str:
        """Everything that it printed."""
        return self._log.read_text()

    def until(self, text: str) -> None:
        """Wait until it has printed a text."""
        give_up = time.monotonic() + 300
        while text not in self.printed:
            assert self.process.poll() is None, self.printed
            if time.monotonic() > give_up:
                self.process.kill()  # a failed test leaves nothing behind
                raise AssertionError(self.printed)
            time.sleep(0.1)

    def resume(self) -> None:
        """Continue it in another process."""
        (repository,) = re.findall(r"^repository +(.+)$", self.printed, re.M)
        self.process = self._run("resume", "--plain", cwd=Path(repository))

    def ended(self) -> int:
        """Return the exit code."""
        try:
            return self.process.wait(600)
        finally:
            self.process.kill()


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        pytest.param("feature", "outage", marks=pytest.mark.width("sweep")),
        *(
            pytest.param(kind, fault, marks=pytest.mark.width("sweep"))
            for kind in FLAGS
            for fault in ("none", "outage", "cut")
            if (kind, fault) != ("feature", "outage")
        ),
    ],
)
def test_a_demo_ends_as_recorded_whatever_happens_to_its_server(
    kind: str, fault: str, server: Server, tmp_path: Path
) -> None:
    demo = Demo(kind, server, tmp_path)
    if fault == "outage":
        server.stop()
        demo.until("waiting for the database since ")
        time.sleep(40)
        server.start()
    while fault == "cut" and demo.process.poll() is None:
        server.terminate()
        time.sleep(3)
    assert demo.ended() == 0, demo.printed


@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.width("sweep")),
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.width("sweep")),
    ],
)
def test_a_signal_stops_a_demo_in_order_and_resume_continues_it(
    number: signal.Signals, code: int, server: Server, tmp_path: Path
) -> None:
    demo = Demo("feature", server, tmp_path)
    demo.process.send_signal(number)
    assert demo.ended() == code, demo.printed
    assert "everything so far is saved" in demo.printed
    demo.resume()
    assert demo.ended() == 0, demo.printed


@pytest.mark.width("full")
def test_a_server_that_stays_away_interrupts_a_run_and_never_fails_it(server: Server, tmp_path: Path) -> None:
    demo = Demo("feature", server, tmp_path, wait_minutes=0.1)
    server.stop()
    assert demo.ended() == 3, demo.printed
    assert re.search(r"was interrupted: the database has not answered since \d\d:\d\d", demo.printed), demo.printed
    server.start()
    demo.resume()
    assert demo.ended() == 0, demo.printed
