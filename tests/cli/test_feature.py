"""`fairwitness feature` where nobody sits at a terminal: it waits, exit code 4, and goes on with what was answered."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from cli.graph_grounds import NEEDS_SANDBOX, git
from cli.graph_ledgers import fits
from cli.runner import FAIRWITNESS, fairwitness
from feature.grounds import Grounds
from support import demo_feature as demo

pytestmark = [pytest.mark.timeout(300), NEEDS_SANDBOX]

BEGIN = ("feature", demo.DEMO.request, "--slug", demo.DEMO.slug, "--cassette", "../cassettes")


@pytest.fixture
def till(tmp_path: Path) -> Path:
    """The demo's repository, with a small recorded team beside it."""
    return Grounds.lay_out(tmp_path).top


def answered(till: Path, option: str) -> subprocess.CompletedProcess[str]:
    """Answers a question; what the next `resume` says."""
    assert fairwitness("answer", option, cwd=till).returncode == 0
    return fairwitness("resume", cwd=till)


@pytest.mark.req("P3", "P5", "P16")
def test_a_run_asks_at_every_gate_waits_and_goes_on_in_another_process_with_what_was_answered(till: Path) -> None:
    begun = fairwitness(*BEGIN, cwd=till)
    assert begun.returncode == 4
    assert "There are concerns about the request. How do we go on?" in begun.stdout
    for option, text in (("proceed", ""), ("modify", ' --text "…"'), ("abandon", ""), ("other", ' --text "…"')):
        assert re.search(rf"^{option} +fairwitness answer \S+ {option}{text}$", begun.stdout, re.MULTILINE)
    assert begun.stderr.splitlines()[-1] == "next:  fairwitness inbox"
    assert fits(begun.stdout)

    shown = fairwitness("inbox", cwd=till)
    assert (shown.returncode, fits(shown.stdout)) == (4, True)
    (waiting,) = json.loads(fairwitness("inbox", "--json", cwd=till).stdout)["waiting"]
    assert waiting["gate_id"] == "gate-pushback-request"
    assert (
        fairwitness("inbox", "--json", cwd=till).stdout == fairwitness("inbox", "--json", cwd=till).stdout
    )  # the same again

    again = fairwitness("resume", cwd=till)  # nobody has answered
    assert again.returncode == 4
    research = answered(till, "proceed")
    assert research.returncode == 4
    assert "The research is done. How do we go on?" in research.stdout
    plan = answered(till, "proceed")
    assert plan.returncode == 4
    assert "The plan is done. Shall it be carried out?" in plan.stdout
    done = answered(till, "approve")
    assert done.returncode == 0, done.stdout + done.stderr
    assert git(till, "rev-parse", "--abbrev-ref", "HEAD") == f"feature/{demo.DEMO.slug}"
    bundle = fairwitness("evidence", "bundle", cwd=till).stdout
    assert "gate-post-planning" in bundle
    assert fairwitness("replay", "last", cwd=till).returncode == 0
    assert fairwitness("inbox", cwd=till).returncode == 0


@pytest.mark.req("P5")
def test_a_wrong_answer_changes_nothing_and_says_what_could_be_answered(till: Path) -> None:
    assert fairwitness(*BEGIN, cwd=till).returncode == 4
    for wrong, told in ((("approve",), "choose proceed or modify"), (("modify",), "add --text"), (("a", "b", "c"), "")):
        done = fairwitness("answer", *wrong, cwd=till)
        assert done.returncode == 2
        assert told in done.stderr
    assert len(json.loads(fairwitness("inbox", "--json", cwd=till).stdout)["waiting"]) == 1


@pytest.mark.req("P3", "P5")
def test_a_run_that_a_person_abandons_ends_and_keeps_what_it_wrote(till: Path) -> None:
    assert fairwitness(*BEGIN, cwd=till).returncode == 4
    done = answered(till, "abandon")
    assert done.returncode == 1
    assert "ENDED BY YOU" in done.stdout
    assert (till / "docs" / "feature" / demo.DEMO.slug / "initial-request.md").exists()
    assert git(till, "status", "--porcelain") == ""
    assert fairwitness("answer", "proceed", cwd=till).returncode == 2


@pytest.mark.req("P16")
def test_a_cancelled_run_leaves_no_worktree_and_says_how_it_could_go_on(till: Path) -> None:
    assert fairwitness(*BEGIN, cwd=till).returncode == 4
    half = till / "docs" / "feature" / demo.DEMO.slug / ".feature.md.0123456789abcdef.tmp"  # its writer was killed
    half.write_bytes(b"#")
    done = fairwitness("cancel", "last", "--yes", cwd=till)
    assert done.returncode == 0, done.stderr
    assert not half.exists()
    assert "fairwitness resume" in done.stderr
    assert git(till, "worktree", "list").count("\n") == 0
    assert fairwitness("resume", "last", cwd=till).returncode == 4  # it asks the same again


def test_bad_beginnings_are_refused_in_a_sentence_and_begin_nothing(till: Path) -> None:
    for arguments, code in (
        (("feature", "  "), 2),
        (("feature", "x", "--slug", "Not A Slug", "--cassette", "../cassettes"), 2),
        (("feature", "@nowhere.md"), 2),
        (("feature", "x", "--agents", "nobody"), 2),
    ):
        done = fairwitness(*arguments, cwd=till)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
    assert json.loads(fairwitness("status", "--json", cwd=till).stdout)["runs"] == []


def test_events_can_be_had_as_lines_and_the_end_as_an_object(till: Path) -> None:
    lines = fairwitness(*BEGIN, "--jsonl", cwd=till)
    assert lines.returncode == 4
    events = [json.loads(line) for line in lines.stdout.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    shown = json.loads(fairwitness("resume", "--json", cwd=till).stdout)
    assert (shown["workflow"], shown["status"]) == ("feature", "waiting")


@pytest.mark.req("P5")
def test_somebody_at_a_terminal_is_asked_there(till: Path) -> None:
    with Terminal([FAIRWITNESS, *BEGIN], till) as terminal:
        terminal.wait_for("Your answer")
        assert "There are concerns about the request" in terminal.said
        terminal.type("abandon\n")
        assert terminal.end() == 1
    assert "ENDED BY YOU" in terminal.said


def test_ctrl_c_saves_and_says_how_to_go_on(till: Path) -> None:
    with subprocess.Popen(
        [FAIRWITNESS, *BEGIN, "--autonomous"], cwd=till, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "  task-01        started" in line:
                process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told.splitlines()[-1].startswith("next:  fairwitness resume ")
    done = fairwitness("resume", cwd=till)
    assert done.returncode == 0, done.stderr


class Terminal:
    """A command at a terminal of eighty columns."""

    def __init__(self, command: list[str | Path], folder: Path) -> None:
        self._command, self._folder = [str(word) for word in command], folder
        self.said = ""

    def __enter__(self) -> "Terminal":
        ours, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "30"}
        self._process = subprocess.Popen(
            self._command, cwd=self._folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
        )
        os.close(theirs)
        self._ours = ours
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def wait_for(self, text: str) -> None:
        """Until it has said this."""
        until = time.monotonic() + 60
        while text not in self.said:
            assert time.monotonic() < until, self.said[-2000:]
            self._hear()

    def _hear(self) -> bool:
        ready, _, _ = select.select([self._ours], [], [], 0.2)
        if not ready:
            return True
        try:
            heard = os.read(self._ours, 65536)
        except OSError:
            return False
        self.said += heard.decode(errors="replace")
        return bool(heard)

    def type(self, text: str) -> None:
        """As a person would."""
        os.write(self._ours, text.encode())

    def end(self) -> int:
        """How it leaves."""
        until = time.monotonic() + 60
        while self._process.poll() is None:
            assert time.monotonic() < until, self.said[-2000:]
            self._hear()
        while self._hear() and select.select([self._ours], [], [], 0)[0]:
            pass
        return self._process.returncode
