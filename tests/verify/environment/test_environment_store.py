"""An environment is used whole or not at all, is made once, and stays as it was made."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairwitness.contracts.common.sandbox import Confined, End
from fairwitness.verify.environment.environment_store import (
    MARKER,
    BuiltEnvironment,
    EnvironmentStore,
    failure,
    meaningful,
)
from fairwitness.verify.environment.model import NoEnvironment
from verify.environment import builders
from verify.environment.shops import Bench, shop

DIGEST = "d" * 64


def start(*arguments: str, kill_at: str | None = None) -> "subprocess.Popen[str]":
    """A builder in a process of its own."""
    tests = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(tests), **({"FAIRWITNESS_KILL_AT": kill_at} if kill_at else {})}
    return subprocess.Popen(
        [sys.executable, str(builders.__file__), *arguments], env=env, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.req("P9")
def test_two_processes_that_want_the_same_environment_build_it_once(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "log"
    racing = [start("slow", str(bench.state), DIGEST, str(log)) for _ in range(3)]
    answers = {one.communicate(timeout=60)[0] for one in racing}
    assert [one.returncode for one in racing] == [0, 0, 0]
    assert len(answers) == 1
    assert len(log.read_text().splitlines()) == 1


@pytest.mark.req("P9")
@pytest.mark.parametrize("point", ["environment.build.begun", "environment.build.unmarked"])
def test_a_build_that_is_killed_leaves_nothing_that_is_used(bench: Bench, tmp_path: Path, point: str) -> None:
    tree = shop(tmp_path / "tree", price=1)
    killed = start("shop", str(bench.state), str(tree), kill_at=point)
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    (left,) = (bench.state / "env").glob("*/try-*")
    assert not (left.parent / MARKER).exists()
    environment = bench.ready(tree)
    assert environment.python is not None
    assert not left.exists()
    assert bench.run(environment, tree).passed


def test_a_build_that_fails_is_tried_again(bench: Bench) -> None:
    store = EnvironmentStore(bench.state / "env", bench.runner, 60.0)
    assert store.kept(DIGEST, lambda _: NoEnvironment("no", environmental=True)) == NoEnvironment(
        "no", environmental=True
    )
    assert list((bench.state / "env" / DIGEST).glob("try-*")) == []
    built = store.kept(DIGEST, lambda _: {"made": 1})
    assert isinstance(built, BuiltEnvironment)
    assert store.kept(DIGEST, lambda _: {"made": 2}) == built


def test_a_marker_that_names_a_folder_elsewhere_is_not_believed(bench: Bench, tmp_path: Path) -> None:
    place = bench.state / "env" / DIGEST
    place.mkdir(parents=True)
    (place / MARKER).write_text('{"folder": "../../..", "notes": {}}')
    built = EnvironmentStore(bench.state / "env", bench.runner, 60.0).kept(DIGEST, lambda _: {"made": 1})
    assert isinstance(built, BuiltEnvironment)
    assert built.folder.parent == place


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (
            b"Collecting x\nERROR: No matching distribution found for x\n[notice] new pip\n",
            "ERROR: No matching distribution found for x",
        ),
        (b"npm error code EUSAGE\nnpm error\nnpm error Not in sync\nnpm error Invalid: x\n", "code EUSAGE Invalid: x"),
        (b"npm warn y\nnpm error code E1\nnpm error no such thing\nnpm error Usage:\n", "code E1 no such thing"),
        (b"npm error code E1\n", "code E1"),
        (b"all is lost\n\n", "all is lost"),
        (b"\x1b[31merror: red\x1b[0m\n", "\\x1b[31merror: red\\x1b[0m"),
        (b"", ""),
    ],
)
def test_the_last_line_that_means_something_is_shown(output: bytes, said: str) -> None:
    assert meaningful(output) == said


def test_a_failure_without_network_is_the_machines(bench: Bench) -> None:
    finished = EnvironmentStore(bench.state / "env", bench.runner, 60.0).ask(
        ["/bin/sh", "-c", "echo error: bad >&2; exit 3"], read=()
    )
    assert finished.result.end is End.FAILED
    assert isinstance(finished.result, Confined)
    assert failure("it", finished, network=False) == NoEnvironment("it failed: error: bad", environmental=True)
    assert failure("it", finished, network=True) == NoEnvironment("it failed: error: bad", environmental=False)


def test_a_preparation_that_takes_too_long_is_stopped_and_says_so(bench: Bench) -> None:
    finished = EnvironmentStore(bench.state / "env", bench.runner, 0.3).run(
        ["/bin/sleep", "60"], worktree=bench.folder, read=(), env={}
    )
    assert failure("it", finished, network=True) == NoEnvironment(
        "it was stopped at its wall limit", environmental=True
    )
