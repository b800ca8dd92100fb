"""Hostile words at every parameter of every command: one sentence and the right exit code, nothing outside is touched.

The commands come from the command list, so a new command is attacked as soon as it is on it.
"""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest

from app import report_ledgers
from cli import graph_ledgers
from cli.graph_grounds import git
from cli.hostile_words import ALWAYS, CANARY, FEW, WORDS, Attack, attacks, leaves, usual
from fairwitness.cli.command_list import COMMANDS
from fairwitness.kit.user_state import user_state
from support.ladder import SWEEP

Try = Callable[[list[str]], dict[str, Any]]
PROGRAM = Path(__file__).with_name("hostile_words.py")
SLOW = ("feature", "forge", "verify", "agents try", "autopilot run")
"""Commands that look for a sandbox before they read their other arguments: a second or more each."""
LISTS = ("schema check",)
"""Commands that print a line for each thing they were given."""
CODES = range(7)
LONGEST = 5_000


class Fence:
    """A repository with runs, in folders that hold canaries."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.root = top / "a" / "b" / "c" / "repository"
        self.outside = top / "outside"
        for folder in (self.root, self.outside, top / "home"):
            folder.mkdir(parents=True)
        for folder in (self.outside, *self.root.parents[:4]):
            (folder / CANARY).write_text("untouched")
        git(self.root, "init", "-q", "-b", "main")
        git(
            self.root,
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@work",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "begin",
        )
        for make in (graph_ledgers.going, graph_ledgers.failed, graph_ledgers.completed, report_ledgers.finished):
            make(self.root)

    def runs(self) -> list[str]:
        """Return the ids of the runs in its ledger."""
        with closing(sqlite3.connect(self.root / ".fairwitness" / "evidence.db")) as connection:
            return [run for (run,) in connection.execute("SELECT DISTINCT run_id FROM events ORDER BY run_id")]

    def canaries(self) -> dict[str, str]:
        """Return every file outside of the repository and of the home, with its content."""
        kept = (self.root, self.top / "home")
        files = (path for path in self.top.rglob("*") if path.is_file())
        return {str(path): path.read_text() for path in files if not any(path.is_relative_to(one) for one in kept)}


@pytest.fixture(scope="module")
def fence(tmp_path_factory: pytest.TempPathFactory) -> Fence:
    return Fence(tmp_path_factory.mktemp("fence"))


@pytest.fixture(scope="module")
def attempt(fence: Fence) -> Iterator[Try]:
    """Runs a command line in a fork of one process that has imported everything."""
    # the ledgers are ours, so every command reads them
    home = {"HOME": str(fence.top / "home"), "XDG_STATE_HOME": str(user_state().parent), "GIT_CONFIG_NOSYSTEM": "1"}
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "XDG_"))}
    with subprocess.Popen(
        [sys.executable, PROGRAM, fence.root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**environment, **home, "COLUMNS": "80"},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run(arguments: list[str]) -> dict[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(arguments) + "\n")
            process.stdin.flush()
            result: dict[str, Any] = json.loads(process.stdout.readline())
            return result

        yield run
        process.stdin.close()


def _chosen(outside: Path) -> list[Attack]:
    """All attacks of a sweep; otherwise one word at each parameter, a different one at the next.

    The folder of a demo is left out: a demo takes a minute in a folder of any name.
    """
    every = [each for each in attacks(outside) if (each.command, each.parameter) != ("demo", "folder")]
    if SWEEP:
        return [each for each in every if each.command not in SLOW or each.word in FEW]
    places = list(dict.fromkeys((each.command, each.parameter) for each in every))
    turn = {place: FEW[number % len(FEW)] for number, place in enumerate(places)}
    return [
        each
        for each in every
        if each.word == turn[each.command, each.parameter]
        and (each.command not in SLOW or each.parameter in ("agents", "base", "phases", "(one too many)"))
    ]


def _fault(attack: Attack, result: dict[str, Any], outside: Path) -> str | None:
    """Return what is wrong with how a command took an attack."""
    said = result["out"] + result["err"]
    word = WORDS[attack.word].replace("{outside}", str(outside))
    if result["code"] not in CODES or "Traceback" in said or "internal error" in said:
        return f"exit code {result['code']}: {result['err'][:500]}"
    if any(not (sign.isprintable() or sign == "\n") for sign in said):
        return f"a terminal would act upon {said[:500]!r}"
    if result["code"] in (2, 3) and attack.command not in LISTS:
        lines = result["err"].splitlines()
        if not lines or not lines[0].startswith("fairwitness: ") or len(lines) > 2 or len(result["err"]) > LONGEST:
            return f"not one sentence and one next step: {result['err'][:500]!r}"
    if result["files"] and not attack.is_path:
        return f"it touched {result['files']}"
    for argv in result["programs"]:
        before = argv[: argv.index(word)] if word.startswith("-") and word != "--" and word in argv else ["--"]
        if not {"--", "--end-of-options"}.intersection(before):
            return f"the word is an option of {argv}"
    return None


@pytest.mark.timeout(3600 if SWEEP else 300)
@pytest.mark.parametrize("name", [entry.name for entry in COMMANDS])
def test_no_word_makes_a_command_fail_or_reach_outside(name: str, fence: Fence, attempt: Try) -> None:
    before = fence.canaries()
    mine = [attack for attack in _chosen(fence.outside) if attack.command.split()[0] == name]
    assert mine
    results = ((attack, attempt(attack.arguments)) for attack in mine)
    faults = {
        f"{attack.command} {attack.parameter} = {attack.word}": fault
        for attack, result in results
        if (fault := _fault(attack, result, fence.outside)) is not None
    }
    assert faults == {}
    written = {path: text for path, text in fence.canaries().items() if before.get(path) != text}
    assert [path for path in written if CANARY in path and path in before] == []


def _on_hand_made_runs(name: str, runs: Iterable[str]) -> Iterator[list[str]]:
    """Every way to call a command about each run, with usual values at its other parameters."""
    for way, command in leaves():
        if way[0] != name or " ".join(way) in (*SLOW, "demo", "watch"):
            continue
        parameters = {str(each.name): each for each in command.params}
        about = parameters.get("run") or parameters.get("names")
        for run in runs if about is not None else ("",):
            if isinstance(about, click.Option):
                yield [*way, f"{about.opts[0]}={run}", *usual(command, None)]
            else:
                yield [*way, *ALWAYS.get(way, ()), *usual(command, about, run)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [entry.name for entry in COMMANDS])
def test_no_hand_made_run_makes_a_command_fail(name: str, fence: Fence, attempt: Try) -> None:
    """Its ledgers hold no more than a view needs: orders without most fields, events without rows."""
    faults = {}
    for arguments in _on_hand_made_runs(name, fence.runs()):
        result = attempt(arguments)
        if result["code"] not in CODES or "Traceback" in result["err"] or "internal error" in result["err"]:
            faults[" ".join(arguments)] = f"{result['code']}: {result['err'][:300]}"
    assert faults == {}


def test_every_command_of_the_list_is_attacked(fence: Fence) -> None:
    attacked = {(attack.command, attack.parameter) for attack in attacks(fence.outside)}
    assert {command for command, _ in attacked} == {" ".join(way) for way, _ in leaves()}
    assert len(attacked) > 100
    assert set(FEW) <= set(WORDS)


def test_the_audit_sees_a_file_outside_that_is_read(fence: Fence, attempt: Try) -> None:
    """The check can fail: a path that a person names is read, and the audit hook reports it."""
    result = attempt(["feature", f"@../{CANARY}"])
    assert result["files"] != []
    assert Path(result["files"][0][1]).name == CANARY
