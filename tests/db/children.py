"""Starting the ledger's writer process, also under strace, which kills it or refuses it a system call."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pydantic

import fairwitness
from support.fixtures import ROOT

MARKER = "/the-next-part-starts-here"
"""The writer looks for this file, which is nowhere, between its parts."""

_WRITER = Path(__file__).with_name("ledger_writer.py")
_SRC = Path(fairwitness.__file__).parents[1]
_SITE = Path(pydantic.__file__).parents[1]
_CALLS = "open,openat,pwrite64,write,fdatasync,fsync,ftruncate,unlink"
_WRITES = ("pwrite64", "write", "fdatasync", "fsync", "ftruncate", "unlink")

Call = tuple[str, int]
"""A system call and its number among all calls of that name."""


def run_writer(
    database: Path, key: str, *, before: Sequence[str] = (), **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Run the writer; `before` is the command that runs it in turn."""
    python = [sys.executable, "-S", "-s", "-P"]
    arguments = [str(_WRITER), str(_SRC), str(_SITE), str(ROOT / "tests"), str(database), key]
    # a fixed hash seed: the number of calls made while importing must be the same in each run
    env = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"], **environment}
    return subprocess.run(
        [*before, *python, *arguments], env=env, capture_output=True, text=True, timeout=60, check=False
    )


def told(result: "subprocess.CompletedProcess[str]") -> list[str]:
    """What the writer said became of its two records."""
    assert result.returncode == 0, result.stderr
    answer: list[str] = json.loads(result.stdout)
    return answer


class WritingCalls(NamedTuple):
    """Every call with which the writer changes a file."""

    opening: list[Call]
    first: list[Call]
    """Those of its first record."""
    rest: list[Call]
    """Those of the second record, and of moving the log into the database."""


def writing_calls(database: Path, key: str) -> WritingCalls:
    """What the writer calls when nothing goes wrong."""
    log = database.with_name("strace.log")
    result = run_writer(database, key, before=["strace", "-f", "-o", str(log), "-e", f"trace={_CALLS}"])
    assert told(result) == ["written", "written"]
    counts: Counter[str] = Counter()
    parts: list[list[Call]] = [[]]
    for line in log.read_text(errors="replace").splitlines():
        match = re.match(r"\d+ +(\w+)\(", line)
        if match is None:
            continue
        counts[match.group(1)] += 1
        if match.group(1) in _WRITES:
            parts[-1].append((match.group(1), counts[match.group(1)]))
        elif MARKER in line:
            parts.append([])
    opening, first, rest = parts
    assert rest.pop()[0] == "write"  # the writer's own answer
    return WritingCalls(opening, first, rest)


def run_with_fault(database: Path, key: str, fault: str, call: str, when: str) -> "subprocess.CompletedProcess[str]":
    """Run the writer with a fault put into one of its system calls, or (`3+`) into that one and all that follow."""
    strace = ["strace", "-f", "-o", os.devnull, "-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={when}"]
    return run_writer(database, key, before=strace)
