"""What each of many processes does to one file; a module of its own so that a fresh process can import it quickly."""

from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path

from fairwitness.errors import AlreadyWritten, Immutable
from fairwitness.store.artifacts import Store

WRITERS = 16
SIZE = 100_000
ROUNDS = 25
LINES = 20
LOST_THE_RACE = 7


def run_together(gate: Barrier, job: Callable[[Path, int], None], root: Path, writer: int) -> None:
    """Start the job when every process has come up, so that they do meet."""
    gate.wait(60)
    job(root, writer)


def value(writer: int) -> bytes:
    """A value that tells its writer in each byte."""
    return bytes([65 + writer]) * SIZE


def line(writer: int, number: int) -> str:
    """A line longer than a page, told from all others."""
    return f"{writer}:{number}:" + "x" * 10_000


def put_again_and_again(root: Path, writer: int) -> None:
    for _ in range(ROUNDS):
        Store(root).put("folder/shared", value(writer))


def create_own(root: Path, writer: int) -> None:
    try:
        Store(root).create("folder/once", value(writer))
    except AlreadyWritten:
        raise SystemExit(LOST_THE_RACE) from None


def append_lines(root: Path, writer: int) -> None:
    for number in range(LINES):
        assert Store(root).append("log.jsonl", line(writer, number)).dropped == 0


def grow_until_done(root: Path, writer: int) -> None:
    store = Store(root)
    while True:
        old = store.get("decisions.yaml") if store.exists("decisions.yaml") else b""
        try:
            store.grow("decisions.yaml", old + f"- {writer}\n".encode())
        except Immutable:
            continue
        return
