"""`fairwitness watch`: history first, then what happens as it happens, and an exit code that says how the run ended."""

import io
import json
import queue
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.graph_walk import Walk, dag_of
from cli.graph_ledgers import HOSTILE, completed, failed, fits, going
from cli.runner import FAIRWITNESS, fairwitness
from cli.terminal import Terminal
from fairwitness.app.views.followed_run import follow_run
from fairwitness.cli.screens.run import LINES, GraphLines, LiveScreen, PlainLines
from fairwitness.contracts.forge import events as happened


class Following:
    """`fairwitness watch` in a pipe, line by line."""

    def __init__(self, cwd: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [FAIRWITNESS, "watch", *arguments], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._hearing = threading.Thread(target=self._hear, daemon=True)
        self._hearing.start()

    def _hear(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))

    def line(self) -> str:
        """The next line it says."""
        return self._lines.get(timeout=30)

    def ended(self) -> tuple[int, str]:
        """Its exit code, and what it said on stderr."""
        assert self.process.stderr is not None
        code = self.process.wait(timeout=30)
        return code, self.process.stderr.read()


@contextmanager
def following(cwd: Path, *arguments: str) -> Iterator[Following]:
    """`fairwitness watch`, ended in any case."""
    made = Following(cwd, *arguments)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()
        made._hearing.join()
        for stream in (made.process.stdout, made.process.stderr):
            assert stream is not None
            stream.close()


@pytest.mark.req("F5")
@pytest.mark.parametrize(
    ("reason", "code"), [("no attempt left for x", 1), ("over budget: the run has used 9 of 8 tokens", 5)]
)
def test_a_run_that_ended_is_told_with_its_end(tmp_path: Path, reason: str, code: int) -> None:
    failed(tmp_path, reason=reason).close()
    done = fairwitness("watch", "run-failed", cwd=tmp_path)
    assert done.returncode == code
    lines = done.stdout.splitlines()
    assert lines[0] == "14:30:01Z  run       requested: do it"
    assert ("FAILED: do it" if code == 1 else "OUT OF BUDGET: do it") in lines
    assert f"because   {reason}" in lines
    assert "done      0 of 2 tasks merged; 1 failed" in lines
    assert done.stderr == "next:  fairwitness dag show run-failed\n"
    events, _, block = done.stdout.partition("\n\n")
    assert all(re.match(r"\d\d:\d\d:\d\dZ  [a-z]+ {2,}\S", line) for line in events.splitlines())
    assert fits(block)


def test_a_run_that_completed_leaves_zero_and_one_that_waits_for_you_four(tmp_path: Path) -> None:
    completed(tmp_path).close()
    assert fairwitness("watch", "last", cwd=tmp_path).returncode == 0
    walk = Walk(tmp_path, dag_of("run-paused", {"a": ()}))
    walk.tell(happened.ForgeRunStarted(), happened.RunPaused(reason="lunch"))
    walk.close()
    done = fairwitness("watch", cwd=tmp_path)
    assert done.returncode == 4
    assert "PAUSED: do it\nbecause   lunch\n" in done.stdout
    assert done.stderr == "next:  fairwitness resume run-paused\n"


def test_without_a_name_the_only_unfinished_run_is_meant(tmp_path: Path) -> None:
    completed(tmp_path).close()
    done = fairwitness("watch", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fairwitness: there is no unfinished run")
    for name in ("run-a", "run-b"):
        Walk(tmp_path, dag_of(name, {"a": ()})).close()
    done = fairwitness("watch", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "2 runs are unfinished: " in done.stderr
    assert {"run-a", "run-b"} <= set(re.findall(r"run-\w+", done.stderr))


@pytest.mark.req("F5")
def test_an_event_is_shown_within_half_a_second(tmp_path: Path) -> None:
    walk = going(tmp_path)
    with following(tmp_path, "run-going") as process:
        while "no process is working on this run" not in process.line():
            pass
        late = []

        def merge() -> None:
            walk.begin_merge()
            walk.end_merge(landed=["cli"], culprit="ledger")

        moves: tuple[tuple[Callable[[], None], str], ...] = (
            (lambda: walk.verify("ledger"), "task      ledger         proven   its checks passed; to be merged"),
            (merge, "task      cli            merged"),
        )
        for move, words in moves:
            move()
            written = time.monotonic()
            assert process.line().split("  ", 1)[1] == words
            late.append(time.monotonic() - written)
        assert sorted(late)[0] < 0.5, late  # of several, since others work on this machine too
        assert "ledger         failed   attempt 2, no retry left: red on the merged tree" in process.line()
        assert "batch 2        blocked  ledger makes the checks of the merged tree fail" in process.line()
        walk.tell(happened.RunFailed(reason="no more"))
        assert process.ended()[0] == 1
    walk.close()


def test_json_lines_are_the_events_from_the_first_to_the_last(tmp_path: Path) -> None:
    walk = going(tmp_path)
    with following(tmp_path, "run-going", "--jsonl") as process:
        seen = [json.loads(process.line()) for _ in range(walk.run.seq)]
        assert [event["seq"] for event in seen] == list(range(1, walk.run.seq + 1))
        walk.tell(happened.RunFailed(reason=HOSTILE))
        last = process.line()
        assert "\x1b" not in last
        assert json.loads(last)["data"]["reason"] == HOSTILE
        assert process.ended()[0] == 1
    walk.close()
    listed = fairwitness("events", "run-going", "--jsonl", cwd=tmp_path).stdout.splitlines()
    assert [json.loads(line) for line in listed[:-1]] == seen
    assert len(fairwitness("watch", "run-going", "--jsonl", "--after", "5", cwd=tmp_path).stdout.splitlines()) == (
        walk.run.seq - 5
    )


def test_json_is_one_object_at_the_end(tmp_path: Path) -> None:
    failed(tmp_path).close()
    done = fairwitness("watch", "run-failed", "--json", cwd=tmp_path)
    shown = json.loads(done.stdout)
    assert (done.returncode, shown["status"], shown["exhausted"][0]["node"]) == (1, "failed", "x")
    assert fairwitness("watch", "run-failed", "--json", "--jsonl", cwd=tmp_path).returncode == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_whoever_stops_watching_is_told_how_to_go_on(tmp_path: Path, number: signal.Signals, code: int) -> None:
    going(tmp_path).close()
    with following(tmp_path, "run-going") as process:
        process.line()
        process.process.send_signal(number)
        assert process.ended() == (code, "next:  fairwitness watch run-going\n")


def test_a_late_joiner_gets_the_last_of_the_past_and_is_told_of_the_rest(tmp_path: Path) -> None:
    walk = Walk(tmp_path, dag_of("run-1", {f"t{number}": () for number in range(12)}))
    walk.tell(happened.ForgeRunStarted())
    for number in range(12):
        walk.finish(f"t{number}")
    walk.tell(happened.ForgeRunCompleted())
    walk.close()
    first, *lines = fairwitness("watch", "run-1", cwd=tmp_path).stdout.splitlines()
    assert first == f"{walk.run.seq - 20} earlier events: fairwitness events run-1"
    assert lines[lines.index("") - 1].endswith("run       completed")
    assert len(fairwitness("watch", "run-1", "--after", "0", cwd=tmp_path).stdout.splitlines()) > 36


def test_a_silent_run_gives_a_sign_of_life(tmp_path: Path) -> None:
    going(tmp_path).close()
    stream = io.StringIO()
    with (
        follow_run(tmp_path, None) as followed,
        PlainLines(GraphLines(), stream, is_ours=True, heartbeat_s=0.0) as screen,
    ):
        screen.show(followed, [])
        stream.truncate(0)
        screen.show(followed, [])
    assert "still executing: 1/5 merged, 1 at work, 1 queued; ledger " in stream.getvalue()


@pytest.mark.req("F5")
def test_a_terminal_shows_a_small_living_part_below_lines_that_stay(tmp_path: Path) -> None:
    walk = going(tmp_path)
    with Terminal("watch", cwd=tmp_path) as terminal:
        lines = terminal.wait_for(lambda lines: any("no process is working" in line for line in lines))
        rule = next(place for place, line in enumerate(lines) if line.startswith("────"))
        living = [line for line in lines[rule:] if line]
        assert len(living) <= LINES
        assert living[1].startswith("run-going  EXECUTING  1/5 merged, 1 at work, 1 queued")
        assert living[2].split()[:4] == ["ledger", "working", "attempt", "2/2"]
        walk.fail("ledger", HOSTILE)
        lines = terminal.wait_for(lambda lines: any("no retry left" in line for line in lines))
        assert sum(line.startswith("────") for line in lines) == 1
        walk.tell(happened.RunFailed(reason="no more"))
        assert terminal.ended() == 1
        lines = [line for line in terminal.screen() if line]
    walk.close()
    assert not any(line.startswith("────") for line in lines)
    assert any(line.startswith("done      1 of 5 tasks merged; 1 failed") for line in lines)
    assert fits("\n".join(lines))
    codes = set(re.findall(r"\x1b(?:\[[0-9;?]*[A-Za-z]|.)", terminal.said))
    assert all(re.fullmatch(r"\x1b\[(\?25[lh]|[0-9;]*m|\d*[AK])", code) for code in codes), codes
    assert "\x1b[?25h" in terminal.said  # the cursor is back


def test_ctrl_c_in_a_terminal_takes_the_living_part_away(tmp_path: Path) -> None:
    going(tmp_path).close()
    with Terminal("watch", "run-going", cwd=tmp_path) as terminal:
        terminal.wait_for(lambda lines: any("no process is working" in line for line in lines))
        terminal.type("\x03")
        assert terminal.ended() == 130
        lines = [line for line in terminal.screen() if line]
        assert lines[-1] == "next:  fairwitness watch run-going"
        assert "\x1b[?25h" in terminal.said


def test_the_living_part_is_never_larger_than_promised(tmp_path: Path) -> None:
    from rich.console import Console

    walk = Walk(tmp_path, dag_of("run-1", {f"t{number}": () for number in range(40)}))
    walk.tell(happened.ForgeRunStarted())
    for number in range(40):
        walk.start(f"t{number}")
    walk.close()
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80, height=50, highlight=False, markup=False)
    with follow_run(tmp_path, None) as followed:
        screen = LiveScreen(GraphLines(), "hint", console=console)
        lines = screen.region(followed).plain.split("\n")
        assert len(lines) <= LINES
        assert lines[-2:] == ["  and 32 more", "no process is working on this run: fairwitness resume run-1"]


def test_a_dumb_terminal_and_plain_get_lines(tmp_path: Path) -> None:
    failed(tmp_path).close()
    with Terminal("watch", "run-failed", "--plain", cwd=tmp_path) as terminal:
        assert terminal.ended() == 1
        assert "\x1b[1A" not in terminal.said
        assert "\x1b[?25" not in terminal.said


def test_nothing_is_written_by_looking(tmp_path: Path) -> None:
    failed(tmp_path).close()
    database = tmp_path / ".fairwitness" / "evidence.db"
    before = database.read_bytes(), _names(database.parent)
    fairwitness("watch", "run-failed", cwd=tmp_path)
    fairwitness("status", "run-failed", cwd=tmp_path)
    fairwitness("dag", "show", "run-failed", cwd=tmp_path)
    assert (database.read_bytes(), _names(database.parent)) == before


def _names(folder: Path) -> set[str]:
    """Without what SQLite keeps beside a database while somebody reads it."""
    return {path.name for path in folder.iterdir() if not path.name.endswith(("-shm", "-wal"))}
