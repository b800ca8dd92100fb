"""Words made to mislead a command, and the program that gives each of them to every parameter of every command.

Run as a program, it reads command lines as JSON from standard input, runs each in a process forked for it, and prints
what came of it: exit code, output, files that were touched, programs that were started. An audit hook of the
interpreter sees every file that Python opens, so a read outside the repository is noticed as well as a write.
"""

import importlib
import json
import os
import pkgutil
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

import fairwitness.app
import fairwitness.cli
import fairwitness.runs
from fairwitness.cli.command_list import COMMANDS
from fairwitness.cli.group import command_named, run

CANARY = "canary"
"""Part of the name of every file that lies outside of the repository."""
SECONDS = 120
FILE_SIZE = 256 << 20
"""Bytes that a command may write to one file: one that copies an endless device fails instead of filling the disk."""

WORDS: dict[str, str] = {
    "empty": "",
    "blank": " \t ",
    "dot": ".",
    "parent": "..",
    "above": f"../{CANARY}",
    "far above": f"../../../../{CANARY}",
    "above, encoded": f"..%2f{CANARY}",
    "above, in the middle": f"x/../../../{CANARY}",
    "above, with backslashes": f"..\\..\\{CANARY}",
    "absolute": f"{{outside}}/{CANARY}",
    "absolute, doubled": f"//{{outside}}/{CANARY}",
    "a device": "/dev/zero",
    "home": f"~/{CANARY}",
    "an address": f"file://{{outside}}/{CANARY}",
    "NUL": "last\0x",
    "new line": "last\nx",
    "carriage return": "last\rfairwitness: all is well",
    "option": "-rf",
    "long option": f"--output={{outside}}/{CANARY}",
    "option of git": f"--upload-pack=touch {{outside}}/{CANARY}",
    "two dashes": "--",
    "very long": "x" * 100_000,
    "a long path": "x/" * 5_000,
    "longer than a name may be": "n" * 256,
    "look-alike": "l\u0430st",
    "full width": "\uff0e\uff0e\uff0f" + CANARY,
    "turned": "\u202etsal",
    "zero width": "la\u200bst",
    "combining": "e\u0301" * 50,
    "half a pair": "\udcff\udc80",
    "emoji": "\U0001f4a3" * 20,
    "a ref": "refs/heads/main",
    "a reflog": "main@{1}",
    "a range": "main..main",
    "a path of a commit": f"main:{CANARY}",
    "a search": ":/begin",
    "pathspec magic": f":(top,exclude){CANARY}",
    "SQL": "x' OR '1'='1",
    "SQL, stacked": "x'; DROP TABLE events; --",
    "SQL pattern": "%",
    "shell": f"$(touch {{outside}}/{CANARY})",
    "back-ticks": f"`touch {{outside}}/{CANARY}`",
    "semicolon": f"x; touch {{outside}}/{CANARY}",
    "pipe": f"x | tee {{outside}}/{CANARY}",
    "a file to read": f"@{{outside}}/{CANARY}",
    "title of the terminal": "\x1b]0;pwned\x07",
    "colours": "\x1b[2J\x1b[31mred",
    "one-byte escape": "\x9b31m",
    "back space": "good\b\b\b\bevil",
    "format": "{0.__class__} %s %n {x!r}",
    "markup": "[bold]x[/bold] <script>alert(1)</script>",
    "expression": "(a+)+$",
    "glob": "*",
    "brackets": "[" * 5_000,
    "number": "9" * 5_000,
    "negative": "-1",
    "not a number": "nan",
    "beyond 64 bits": str(2**64),
    "digits of another script": "\u0663\u0664",
    "true": "True",
    "null": "null",
}
FEW = ("above", "NUL", "new line", "option", "very long", "half a pair", "title of the terminal", "beyond 64 bits")
"""The words that a sample takes."""
_IN_TURN = {"phase": "1", "number": "1", "role": "implementer", "task": "x", "names": "last"}
ALWAYS: dict[tuple[str, ...], tuple[str, ...]] = {("worker",): ("--once",)}


class Attack(NamedTuple):
    """One command line with one hostile word."""

    command: str
    parameter: str
    word: str
    arguments: list[str]
    is_path: bool


def leaves() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command that can be called, with the names that lead to it."""
    for entry in COMMANDS:
        yield from _below((entry.name,), command_named(entry.name))


def _below(way: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield way, command
        return
    for name, inner in command.commands.items():
        yield from _below((*way, name), inner)
    if command.invoke_without_command:
        yield way, command


def attacks(outside: Path) -> Iterator[Attack]:
    """Yield every hostile word at every parameter of every command, and after every command as one too many."""
    for way, command in leaves():
        for parameter in command.params:
            if not getattr(parameter, "is_flag", False):
                for name, word in WORDS.items():
                    yield _attack(way, command, parameter, name, word.replace("{outside}", str(outside)))
        for name, word in WORDS.items():
            line = [*way, *usual(command, None), "--", word.replace("{outside}", str(outside))]
            yield Attack(" ".join(way), "(one too many)", name, [*line, "one", "more", "too"], False)


def _attack(way: tuple[str, ...], command: click.Command, parameter: click.Parameter, name: str, word: str) -> Attack:
    if isinstance(parameter, click.Option):
        line = [*way, *ALWAYS.get(way, ()), f"{parameter.opts[0]}={word}", *usual(command, None)]
    else:
        line = [*way, *ALWAYS.get(way, ()), "--", *usual(command, parameter, word)]
    return Attack(" ".join(way), str(parameter.name), name, line, isinstance(parameter.type, click.Path))


def usual(command: click.Command, attacked: click.Parameter | None, word: str = "") -> list[str]:
    """Return the arguments of a command, as a person gives them, except for the one under attack."""
    given: list[str] = []
    for argument in command.params:
        if argument is attacked:
            given.append(word)
        elif isinstance(argument, click.Argument) and (argument.required or argument.name == "run" or attacked):
            if isinstance(argument.type, click.Choice):
                given.append(str(argument.type.choices[0]))
            else:
                given.append(_IN_TURN.get(str(argument.name), "last"))
    return given


def tried(arguments: list[str], root: Path) -> dict[str, Any]:
    """Run one command line in a process of its own and return what came of it."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as seen:
        child = os.fork()
        if child == 0:
            _child(arguments, root, out.fileno(), err.fileno(), seen.fileno())
        _, status = os.waitpid(child, 0)
        texts = []
        for file in (out, err, seen):
            file.seek(0)
            texts.append(file.read().decode(errors="surrogateescape"))
        events = [json.loads(line) for line in texts[2].splitlines()]
        return {
            "code": os.waitstatus_to_exitcode(status),
            "out": texts[0][:20_000],
            "err": texts[1][:20_000],
            "files": [where for kind, where in events if kind == "file"],
            "programs": [argv for kind, argv in events if kind == "program"],
        }


def _child(arguments: list[str], root: Path, out: int, err: int, seen: int) -> None:
    code = 99
    try:
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, FILE_SIZE))
        os.chdir(root)
        for number, handle in ((1, out), (2, err)):
            os.dup2(handle, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115  # this process ends with it
        sys.stdout = open(1, "w", encoding="utf-8")  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8")  # noqa: SIM115
        _watch(root, seen)
        sys.argv = ["fairwitness", *arguments]
        code = run(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001  # the parent tells
        import traceback

        os.write(err, traceback.format_exc().encode(errors="backslashreplace"))
    finally:
        os._exit(code & 0xFF)


def _watch(root: Path, handle: int) -> None:
    inside = f"{root}/"

    def note(kind: str, value: Any) -> None:
        os.write(handle, json.dumps([kind, value]).encode() + b"\n")

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            note("program", [os.fsdecode(word) for word in args[1]])
        elif event in (
            "open",
            "os.listdir",
            "os.scandir",
            "os.mkdir",
            "os.remove",
            "os.rename",
            "os.symlink",
            "sqlite3.connect",
        ):
            for where in args[:2]:
                if isinstance(where, str | bytes) and CANARY in os.fsdecode(where):
                    path = os.path.normpath(root / os.fsdecode(where))
                    if not path.startswith(inside):
                        note("file", [event, path])

    sys.addaudithook(hook)


def import_all() -> None:
    """Import what commands import when they are called, so that each fork begins with it."""
    for package in (fairwitness.app, fairwitness.runs, fairwitness.cli):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)


def main() -> None:
    """Print one line of JSON for each command line that is read."""
    root = Path(sys.argv[1])
    import_all()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(tried(json.loads(line), root)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
