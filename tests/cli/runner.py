"""Runs the installed `fairwitness` as a person would."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

FAIRWITNESS = Path(sys.executable).with_name("fairwitness")


def fairwitness(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What a command prints and how it leaves."""
    return subprocess.run(
        [FAIRWITNESS, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


_MANY = """
import importlib, json, os, pkgutil, sys, tempfile
import fairwitness.app
from fairwitness.cli import group
from fairwitness.cli.command_list import COMMANDS
for entry in COMMANDS:
    group.command_named(entry.name)
for module in pkgutil.walk_packages(fairwitness.app.__path__, "fairwitness.app."):
    importlib.import_module(module.name)
for line in sys.stdin:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            code = 99
            try:
                for handle, stream in enumerate((open(os.devnull), out, err)):
                    os.dup2(stream.fileno(), handle)
                sys.argv = ["fairwitness", *json.loads(line)]
                sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
                sys.stderr = open(2, "w", encoding="utf-8", closefd=False)
                code = group.run(sys.argv[1:])
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode("utf-8", "surrogateescape"))
        print(json.dumps([code, *said]), flush=True)
"""


def fairwitness_many(
    calls: Iterable[tuple[str, ...]], cwd: Path, **environment: str
) -> list[subprocess.CompletedProcess[str]]:
    """What many commands print and how each leaves: forks of one process, which has loaded them all."""
    asked = list(calls)
    done = subprocess.run(
        [sys.executable, "-c", _MANY],
        input="".join(f"{json.dumps(each)}\n" for each in asked),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "80", **environment},
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(asked), done.stderr
    return [
        subprocess.CompletedProcess(["fairwitness", *words], code, out, err)
        for words, (code, out, err) in zip(asked, answers, strict=True)
    ]
