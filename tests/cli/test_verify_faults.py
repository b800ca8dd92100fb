"""`fairwitness verify` when things go wrong around it: killed in the middle, run twice at once, a ledger that was edited."""  # noqa: E501

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from cli.runner import FAIRWITNESS, fairwitness
from cli.test_verify import GIT, HONEST, commit, shop, verify
from verify.belongings import belongings

__all__ = ["shop"]
SLOW = "import time\n\n\ndef test_slow():\n    time.sleep(20)\n"


def _running(marker: str) -> list[int]:
    """Processes whose command line or working folder names a path."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                words = (process / "cmdline").read_bytes().decode(errors="replace")
                place = str((process / "cwd").readlink())
            except OSError:
                continue
            if (marker in words or marker in place) and int(process.name) != os.getpid():
                found.append(int(process.name))
    return found


def _start(repository: Path) -> "subprocess.Popen[bytes]":
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.Popen(
        [FAIRWITNESS, "verify"],
        cwd=repository,
        env={**os.environ, **GIT, "PATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.req("P16")
def test_a_verification_that_was_killed_leaves_nobody_behind_and_is_done_again(shop: Path) -> None:
    commit(shop, {**HONEST, "test_slow.py": SLOW})
    before = belongings(shop)
    killed = _start(shop)
    deadline = time.monotonic() + 90
    marker = str(shop / ".fairwitness" / "work")
    while not any("pytest" in _words(number) for number in _running(marker)):
        assert time.monotonic() < deadline, "the slow test never began"
        assert killed.poll() is None, "it ended before it could be killed"
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    deadline = time.monotonic() + 10
    while _running(marker):
        assert time.monotonic() < deadline, "a check outlived the one who ran it"
        time.sleep(0.05)
    assert belongings(shop) == before
    commit(shop, {"test_slow.py": SLOW.replace("20", "0")})
    done = verify(shop, "--base", "HEAD~2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert fairwitness("ledger", "verify", cwd=shop).returncode == 0


def _words(number: int) -> str:
    try:
        return (Path("/proc") / str(number) / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


@pytest.mark.req("X5")
def test_two_verifications_at_once_do_not_disturb_each_other(shop: Path) -> None:
    commit(shop, HONEST)
    both = [_start(shop), _start(shop)]
    assert [one.wait(timeout=110) for one in both] == [0, 0]
    assert fairwitness("ledger", "verify", cwd=shop).returncode == 0


@pytest.mark.req("X5")
def test_an_answer_that_was_edited_is_not_believed_but_asked_again(shop: Path) -> None:
    """A result that does not have the hash the ledger names is no result."""
    commit(shop, {"shop.py": "def price(total, rate=0):\n    return -1\n"})
    first = json.loads(verify(shop, "--json").stdout)
    assert first["answer"]["answer"] == "blocked"
    for output in (shop / ".fairwitness" / "outputs").iterdir():
        content = output.read_bytes()
        if b'"evidence":"failed"' in content:
            output.write_bytes(content.replace(b'"evidence":"failed"', b'"evidence":"passed"'))
    again = json.loads(verify(shop, "--json").stdout)
    assert again["answer"]["answer"] == "blocked"
    assert [check["after"] for check in again["checks"]] == [check["after"] for check in first["checks"]]


@pytest.mark.req("X2")
def test_a_ledger_that_was_edited_is_noticed(shop: Path) -> None:
    commit(shop, {"shop.py": "def price(total, rate=0):\n    return -1\n"})
    assert verify(shop).returncode == 1
    with closing(sqlite3.connect(shop / ".fairwitness" / "evidence.db")) as connection:
        connection.execute("DROP TRIGGER anvil_checks_no_update")
        connection.execute("UPDATE anvil_checks SET passed = 1")
        connection.commit()
    assert fairwitness("ledger", "verify", cwd=shop).returncode == 6
    again = verify(shop)
    assert again.returncode == 6
    assert "not as it was written" in again.stderr
    assert verify(shop, "--no-cache").returncode == 1, "what is run anew rests on nothing that was edited"
