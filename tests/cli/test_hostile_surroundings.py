"""Hostile surroundings of a command: closed or full streams, a folder that is gone, endless input, odd variables."""

import os
import subprocess
from pathlib import Path

import pytest

from cli.graph_grounds import git
from cli.runner import FAIRWITNESS, fairwitness
from support.ladder import widened


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "-c", "user.name=Ada", "-c", "user.email=ada@work", "commit", "-q", "--allow-empty", "-m", "begin")
    return folder


def shell(line: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What a line of a shell does, in which $FW is the command."""
    return subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment, "FW": str(FAIRWITNESS)},
    )


STREAMS: list[tuple[str, int, str]] = [
    ("$FW status >&-", 0, "next:"),
    ("$FW status nope 2>&-", 3, ""),
    ("$FW status <&- >&- 2>&-", 0, ""),
    ("$FW --help >&-", 0, ""),
    ("$FW status > /dev/full", 3, "fairwitness: "),
    ("$FW --help > /dev/full", 3, "fairwitness: the output cannot be written: No space left on device"),
    ("$FW --version > /dev/full", 3, "fairwitness: the output cannot be written"),
    ("$FW status nope 2> /dev/full", 3, ""),
    ("$FW status > /dev/full 2> /dev/full", 3, ""),
    ("$FW feature - <&-", 2, "fairwitness: the request is empty"),
    ("$FW feature @/dev/zero", 2, "fairwitness: cannot read /dev/zero"),
    ("$FW feature - < /dev/zero", 2, "fairwitness: the request has more than 100,000 characters"),
    ("printf '\\377\\376' | $FW feature -", 2, "fairwitness: the request"),
    ("printf 'a\\033[2J' | $FW feature -", 2, "fairwitness: the request contains U+001B"),
    ("$FW feature x --agents ../x", 2, "fairwitness: there is no agent '../x'"),
    ("mkdir gone; cd gone; rmdir ../gone; $FW status", 3, "fairwitness: the current folder cannot be used"),
]


@pytest.mark.parametrize(("line", "code", "said"), widened(STREAMS, STREAMS[:10]))
def test_a_stream_that_cannot_be_used_ends_in_a_code_and_never_in_a_traceback(
    root: Path, line: str, code: int, said: str
) -> None:
    (root / ".fairwitness").mkdir()
    done = shell(line, root)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert done.stderr.startswith(said)
    assert list((root / ".fairwitness").iterdir()) == []


@pytest.mark.parametrize("entry", [".", "", "bin", "./bin/../bin"])
def test_a_program_of_the_repository_never_stands_in_for_ours(root: Path, tmp_path: Path, entry: str) -> None:
    mark = tmp_path / "was-run"
    for folder in (root, root / "bin"):
        folder.mkdir(exist_ok=True)
        for name in ("git", "bwrap", "strace", "node", "npm", "claude"):
            (folder / name).write_text(f"#!/bin/sh\necho {name} >> {mark}\n")
            (folder / name).chmod(0o755)
    fairwitness("doctor", cwd=root, PATH=f"{entry}{os.pathsep}{os.environ['PATH']}")
    assert not mark.exists()


def test_a_module_of_the_repository_never_stands_in_for_a_library(root: Path, tmp_path: Path) -> None:
    mark = tmp_path / "was-imported"
    for name in ("click", "pydantic", "yaml"):
        (root / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\n")
    done = fairwitness("schema", "list", cwd=root, PYTHONPATH=".")
    assert (done.returncode, mark.exists()) == (0, False), done.stderr


ODD = [
    {"COLUMNS": "0"}, {"COLUMNS": "-5"}, {"COLUMNS": "abc"}, {"COLUMNS": "9" * 30}, {"TERM": "dumb"}, {"TERM": ""},
    {"LC_ALL": "xx_YY.bad"}, {"LANG": "\udcff"}, {"HOME": "/nonexistent"}, {"HOME": ""}, {"TMPDIR": "/nonexistent"},
    {"XDG_STATE_HOME": "relative"}, {"XDG_CONFIG_HOME": "/dev/null"}, {"LC_ALL": "C", "PYTHONUTF8": "0"},
    {"GIT_DIR": "/nonexistent"}, {"GIT_WORK_TREE": "/"}, {"GIT_CONFIG_COUNT": "x"}, {"GIT_TRACE": "2"},
    {"FAIRWITNESS_DATABASE_URL": "x\x1b[31m"}, {"NO_COLOR": "\n"}, {"EDITOR": "$(false)"},
]  # fmt: skip


@pytest.mark.parametrize("variables", widened(ODD, ODD[::4]), ids=lambda one: "-".join(one))
def test_no_variable_makes_a_command_fail_without_a_sentence(root: Path, variables: dict[str, str]) -> None:
    for arguments in (("status",), ("status", "nope"), ("inbox",), ("verify", "--base", "HEAD")):
        done = fairwitness(*arguments, cwd=root, **variables)
        said = done.stdout + done.stderr
        assert done.returncode in range(6), said
        assert "Traceback" not in said
        assert "internal error" not in said
        assert all(sign.isprintable() or sign == "\n" for sign in said)
