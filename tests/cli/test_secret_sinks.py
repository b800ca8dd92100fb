"""A key that tests print, or an agent says, is readable nowhere afterwards, except in the repository's own files."""

import hashlib
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from cli.every_command import calls, leaves
from cli.graph_grounds import git
from cli.runner import fairwitness, fairwitness_many
from fairwitness.contracts.common.tools import Tool
from fairwitness.demo.sessions import RecordedCall, RecordedTurn
from support import demo_feature as demo
from support.secret_sweep import KNOWN, PLANTED, found_in, keys_below, printing_module, said_by_an_agent, too_open

pytestmark = [pytest.mark.req("X3"), pytest.mark.timeout(900)]

ENVIRONMENT = {"PLANTED_API_TOKEN": KNOWN}
MARK = "[redacted: "
ELSEWHERE = frozenset({"verify", "doctor", "demo", "agents", "schema"})
"""Commands that are called here with other words, or that do not look at runs."""
TESTS = """import sys
import unittest

from noise import planted


class Noise(unittest.TestCase):
    def test_prints(self) -> None:
        print(planted())
        print(planted(), file=sys.stderr)
"""
FAILS = """import unittest

from noise import pieces, planted


class Fails(unittest.TestCase):
    def test_fails(self) -> None:
        self.fail(planted())

    def test_one_by_one(self) -> None:
        for piece in pieces():
            with self.subTest(piece):
                self.fail(piece)
"""


def _commit(root: Path, message: str) -> None:
    git(root, "add", "-A")
    git(root, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "-m", message)


def _printed(root: Path, run: str) -> list[subprocess.CompletedProcess[str]]:
    """What every command prints that looks at runs."""
    words = [
        each
        for command in leaves()
        if command.split()[0] not in ELSEWHERE
        for each in calls(command, run=run, task="task-01")
    ]
    words += [("evidence", "show", str(number), *how) for number in range(1, 12) for how in ((), ("--json",))]
    return fairwitness_many(words, root)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose tests print keys, and a change with a test that fails with them."""
    root = tmp_path_factory.mktemp("sinks") / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "noise.py").write_text(printing_module())
    (root / "tests").mkdir()
    (root / "tests" / "__init__.py").touch()
    (root / "tests" / "test_noise.py").write_text(TESTS)
    _commit(root, "begin")
    git(root, "checkout", "-q", "-b", "work")
    (root / "tests" / "test_fails.py").write_text(FAILS)
    _commit(root, "more")
    return root


def test_the_sweep_finds_a_key_wherever_it_is(tmp_path: Path) -> None:
    import sqlite3
    import zlib

    key = PLANTED["github"]
    (tmp_path / "plain").write_text(f"x {key} y")
    (tmp_path / "packed").write_bytes(zlib.compress(key.encode()))
    database = sqlite3.connect(tmp_path / "a.db")
    database.execute("CREATE TABLE t (x)")
    database.execute("INSERT INTO t VALUES (?)", ("y" * 5000 + key,))
    database.commit()
    database.close()
    places = {Path(place).name for place in keys_below(tmp_path)}
    assert {"plain", "packed (zlib)", "a.db t"} <= places
    assert not any(key in printing_module() for key in PLANTED.values())


def test_no_key_that_a_test_prints_is_left_after_a_verification(planted: Path) -> None:
    beside = planted.parent
    files = ("--junit", beside / "v.xml", "--sarif", beside / "v.sarif")
    summary = {"GITHUB_STEP_SUMMARY": str(beside / "v.md")}
    done = [
        fairwitness("verify", "--base", "main", *how, *files, cwd=planted, **ENVIRONMENT, **summary)
        for how in (("--no-cache",), ("--json",), ("--github",))
    ]
    assert [each.returncode for each in done] == [1, 1, 1], done[0].stderr
    assert "Traceback" not in done[0].stderr, done[0].stderr
    run = json.loads(done[1].stdout)["run_id"]
    done += _printed(planted, run)
    for each in done:
        assert found_in((each.stdout + each.stderr).encode()) == set(), each.args
    own = (planted / ".git", planted / "noise.py")
    assert keys_below(beside, except_for=own) == {}
    assert too_open(planted / ".fairwitness") == {}
    outputs = [path.read_text(errors="replace") for path in (planted / ".fairwitness" / "outputs").iterdir()]
    assert any(MARK in output for output in outputs)
    assert any("ordinary text" in output for output in outputs)
    checked = fairwitness("ledger", "verify", cwd=planted)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_ledger_holds_the_hash_of_what_was_printed_and_of_what_is_stored(planted: Path) -> None:
    assert fairwitness("verify", "--base", "main", cwd=planted, **ENVIRONMENT).returncode == 1
    differing = []
    for number in range(1, 7):
        shown = json.loads(fairwitness("evidence", "show", str(number), "--json", cwd=planted).stdout)
        execution, kept = shown["execution"], shown["detail"]["kept"]
        for stream in ("stdout", "stderr"):
            seen = shown["detail"]["confined"][stream]
            assert (seen["sha256"], seen["stored_sha256"]) == (execution[stream], kept[stream])
            stored = planted / ".fairwitness" / "outputs" / kept[stream].removeprefix("sha256:")
            assert f"sha256:{hashlib.sha256(stored.read_bytes()).hexdigest()}" == kept[stream]
            if execution[stream] != kept[stream]:
                differing.append((number, stream))
    assert differing, "what is stored is what was printed"


@pytest.mark.width("full")
def test_no_key_that_a_test_prints_or_an_agent_says_is_left_after_a_feature_run(tmp_path: Path) -> None:
    """The demo's team, whose agents look at the output of the tests and repeat what they saw."""
    said = said_by_an_agent()
    looks = RecordedTurn(said, (RecordedCall(Tool.RUN_IN_TERMINAL, {"command": "python3 -m unittest -v"}),))
    world = replace(
        demo.DEMO,
        files={**demo.DEMO.files, "noise.py": printing_module(), "tests/test_noise.py": TESTS},
        sessions={
            name: replace(
                session,
                closing_text=f"{said}. {session.closing_text}",
                turns=(looks, *session.turns) if session.role.value == "implementer" else session.turns,
                answer=_saying(session.answer, said),
            )
            for name, session in demo.DEMO.sessions.items()
        },
    )
    recordings = world.write_cassettes(tmp_path / "recordings")
    root = world.lay_out(tmp_path / "till")
    done = fairwitness(
        "feature", world.request, "--slug", world.slug, "--autonomous", "--agents", "cassette",
        "--cassette", recordings, cwd=root, **ENVIRONMENT,
    )  # fmt: skip
    run = json.loads(fairwitness("status", "--json", cwd=root).stdout)["runs"][0]["run_id"]
    every = [done, *_printed(root, run)]
    for each in every:
        assert found_in((each.stdout + each.stderr).encode()) == set(), (each.args, each.stdout[-2000:])
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert keys_below(tmp_path, except_for=(recordings, root / "noise.py")) == {}
    assert too_open(root / ".fairwitness") == {}
    transcripts = [path.read_text(errors="replace") for path in (root / ".fairwitness" / "outputs").iterdir()]
    assert sum(MARK in text for text in transcripts) > 10


def _saying(answer: dict[str, object], said: str) -> dict[str, object]:
    """The document with what the agent says in its summary."""
    completion = answer.get("completion")
    if isinstance(completion, dict) and isinstance(completion.get("summary"), str):
        return {**answer, "completion": {**completion, "summary": said.partition("-----")[0].strip()}}
    return answer
