"""Ledgers with runs of graphs for the commands that only look."""

from pathlib import Path

from app.graph_walk import Walk, dag_of
from fairwitness.contracts.forge import events as happened

HOSTILE = "\x1b]0;pwned\x07\x1b[2J\u202e進捗 [bold]x[/bold] \x9b31m" + "long " * 60
WAITS: dict[str, tuple[str, ...]] = {
    "schema": (),
    "ledger": (),
    "cli": ("schema",),
    "auth": ("schema", "ledger"),
    "a-name-that-is-much-too-long-for-its-column-in-any-table-" + "x" * 70: ("auth", "cli"),
}


def going(root: Path, run_id: str = "run-going", *, step_s: int = 1) -> Walk:
    """A run in the middle: one merged, one at work for the second time, one to be merged, two that wait."""
    walk = Walk(root, dag_of(run_id, WAITS), request=HOSTILE, actor=HOSTILE, step_s=step_s)
    walk.tell(happened.ForgeRunStarted())
    walk.finish("schema")
    walk.start("ledger")
    walk.start("cli")
    walk.fail("ledger", HOSTILE)
    walk.start("ledger")
    walk.verify("cli")
    return walk


def failed(root: Path, run_id: str = "run-failed", *, reason: str = "no attempt left for x") -> Walk:
    """A run that came to nothing."""
    walk = Walk(root, dag_of(run_id, {"x": (), "y": ("x",)}), max_attempts=1)
    walk.tell(happened.ForgeRunStarted())
    walk.start("x")
    walk.fail("x", HOSTILE)
    walk.tell(happened.RunFailed(reason=reason))
    return walk


def completed(root: Path, run_id: str = "run-completed", *, step_s: int = 1) -> Walk:
    """A run that reached its goal."""
    walk = Walk(root, dag_of(run_id, {"x": ()}), step_s=step_s)
    walk.tell(happened.ForgeRunStarted())
    walk.finish("x")
    walk.tell(happened.ForgeRunCompleted())
    return walk


def fits(text: str, columns: int = 80, *, is_plain: bool = False) -> bool:
    """Whether every line fits, and nothing in it would be acted upon by a terminal.

    On a plain screen an event is one line, whatever its length, and begins with its time.
    """
    from fairwitness.cli.screens.columns import cells

    lines = text.split("\n")
    wide = [line for line in lines if cells(line) > columns]
    return all(line.isprintable() for line in lines) and all(is_plain and line[8:11] == "Z  " for line in wide)
