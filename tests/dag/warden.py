"""Starts the lives of a run one after the other, kills them, and sees what outlives them.

A process of its own, told what to do by lines of JSON. It has loaded everything that a life needs and forks, so that a
life begins at once; every orphan of a life becomes its own child, so that none can hide.
"""

import asyncio
import atexit
import ctypes
import importlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import Any

PRELOADED = (
    "fairwitness.agents.backends.cassette",
    "fairwitness.app.assembly.parts",
    "fairwitness.app.assembly.backends",
    "fairwitness.dag.executor",
    "fairwitness.engine.dbos_engine",
    "fairwitness.runs.graph.runner",
    "fairwitness.workflows.forge",
    "dag.program",
    "dbos",
    "sqlalchemy.dialects.sqlite",
)
GRACE_S = 10.0
"""How long what a killed process had started may take to end; it is told how long it took."""
_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """One order a line, one answer a line."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("this system does not let a process take in orphans")
    for name in PRELOADED:
        importlib.import_module(name)
    assert threading.active_count() == 1, "a process with threads cannot be forked"
    for line in sys.stdin:
        print(json.dumps(_life(json.loads(line))), flush=True)  # noqa: T201


def _life(order: dict[str, Any]) -> dict[str, Any]:
    began = time.monotonic()
    life = os.fork()
    if life == 0:
        _live(order)
    code, is_seen = _watch(life, order.get("kill_when"), began + float(order["timeout_s"]))
    ended = time.monotonic()
    left = _orphans()
    while left and time.monotonic() - ended < GRACE_S:
        time.sleep(0.01)
        left = _orphans()
    lingered = time.monotonic() - ended
    unborn = {pid for pid in left if _is_unborn(pid)}
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return {
        "code": code,
        "said": (Path(order["root"]) / "said").read_text(errors="replace"),
        "seconds": round(ended - began, 3),
        "lingered_s": round(lingered, 3),
        "left": sorted(words for pid, words in left.items() if pid not in unborn),
        "unborn": len(unborn),
        "is_seen": is_seen,
    }


def _live(order: dict[str, Any]) -> None:
    """Never returns."""
    code = 1
    try:
        said = os.open(Path(order["root"]) / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.environ.update(order["environment"])
        tempfile.tempdir = None  # it is asked for anew
        # what was loaded before asks once whether to die, and has to ask again
        importlib.reload(sys.modules["fairwitness.kit.killpoints"])
        asyncio.run(sys.modules["dag.program"].run(Path(order["root"])))
        code = 0
    except BaseException:  # noqa: BLE001  # this is the last place where it can be told
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()  # as an interpreter does that comes to its end
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _watch(life: int, wanted: str | None, deadline: float) -> tuple[int, bool]:
    """Waits for the end, and brings it about once a command is seen that holds the wanted words."""
    is_seen = False
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == life:
            return os.waitstatus_to_exitcode(status), is_seen
        if pid:
            continue
        if wanted is not None and not is_seen and any(wanted in words for words in _commands().values()):
            is_seen = True
            os.kill(life, signal.SIGKILL)
        if time.monotonic() > deadline:
            os.kill(life, signal.SIGKILL)
            os.waitpid(life, 0)
            return 124, is_seen
        time.sleep(0.002)


def _orphans() -> dict[int, str]:
    """Everything that is still there of a life that ended, buried where it is dead."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return {}
        if not pid:
            return _commands()


def _is_unborn(pid: int) -> bool:
    """Whether this is a sandbox that has not begun and never will.

    Bubblewrap's inner process waits for a word of its outer one, without end and also when that one is dead: so it is
    with whoever is killed within two milliseconds after it has started a sandbox. Nothing was run in there.
    """
    try:
        program, children = (Path(f"/proc/{pid}/{name}").read_bytes() for name in ("comm", f"task/{pid}/children"))
    except OSError:
        return False
    return program == b"bwrap\n" and not children


def _commands() -> dict[int, str]:
    """Everything that comes of this process, by its command."""
    parents: dict[int, int] = {}
    words: dict[int, str] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            try:
                fields = (place / "stat").read_text().rpartition(")")[2].split()
                words[int(place.name)] = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                parents[int(place.name)] = int(fields[1])
            except OSError:
                continue  # it has just ended
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return {pid: words[pid] for pid in ours - {os.getpid()}}


if __name__ == "__main__":
    main()
