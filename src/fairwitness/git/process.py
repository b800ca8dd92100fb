"""One git process: written to and read from at once, up to a deadline and a limit, and never outliving the call."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from fairwitness.errors import NotReady
from fairwitness.kit.text import visible

_ERROR_LIMIT = 64 << 10
_CHUNK = 1 << 16
LOOK = "look at the repository with `git fsck`"


class GitFailed(NotReady):
    """Git said no; its own words are in the sentence."""


class Answer(NamedTuple):
    """What git answered, whatever its exit code."""

    code: int
    out: bytes
    err: str

    @property
    def words(self) -> str:
        """The last thing it complained about."""
        lines = [line for line in self.err.strip().splitlines() if line.strip()]
        return visible(lines[-1]) if lines else f"exit code {self.code}"


def converse(
    command: list[str],
    *,
    name: str,
    folder: Path,
    environment: Mapping[str, str],
    stdin: bytes,
    timeout_s: float,
    limit: int,
) -> Answer:
    """Starts a command, talks with it until it ends, and tells how it ended; `name` is what errors call it."""
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise GitFailed(
            f"{visible(str(folder))} cannot be entered: {error.strerror}", next_step="check the path"
        ) from None
    try:
        out, err = _talk(process, stdin, timeout_s, limit)
        return Answer(process.wait(), out, err.decode(errors="replace"))
    except TimeoutError:
        raise GitFailed(f"git {name} did not end within {timeout_s:g} s", next_step=LOOK) from None
    except OverflowError:
        raise GitFailed(
            f"git {name} printed more than the {limit} bytes allowed", next_step="ask about fewer files at once"
        ) from None
    finally:
        _end(process)


def _talk(process: "subprocess.Popen[bytes]", stdin: bytes, timeout_s: float, limit: int) -> tuple[bytes, bytes]:
    """Writes and reads at once, up to the deadline and the limit."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    give_up = time.monotonic() + timeout_s
    pieces: dict[int, list[bytes]] = {process.stdout.fileno(): [], process.stderr.fileno(): []}
    sizes = dict.fromkeys(pieces, 0)
    waiting = memoryview(stdin)
    with selectors.DefaultSelector() as selector:
        for number in pieces:
            selector.register(number, selectors.EVENT_READ)
        if waiting:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin.fileno(), selectors.EVENT_WRITE)
        else:
            process.stdin.close()
        while selector.get_map():
            ready = selector.select(max(give_up - time.monotonic(), 0))
            if not ready and time.monotonic() >= give_up:
                raise TimeoutError
            for key, _ in ready:
                number = key.fd
                if number not in pieces:
                    try:
                        waiting = waiting[os.write(number, waiting[:_CHUNK]) :]
                    except BrokenPipeError:  # git has heard enough; its exit code tells why
                        waiting = waiting[:0]
                    if not waiting:
                        selector.unregister(number)
                        process.stdin.close()
                    continue
                piece = os.read(number, _CHUNK)
                if not piece:
                    selector.unregister(number)
                    continue
                sizes[number] += len(piece)
                if number == process.stdout.fileno() and sizes[number] > limit:
                    raise OverflowError
                if number == process.stdout.fileno() or sizes[number] <= _ERROR_LIMIT:
                    pieces[number].append(piece)
    while process.poll() is None:
        if time.monotonic() >= give_up:
            raise TimeoutError
        time.sleep(0.0001)  # both pipes are closed, so it is about to end
    return b"".join(pieces[process.stdout.fileno()]), b"".join(pieces[process.stderr.fileno()])


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None and not stream.closed:
            stream.close()
