"""A command's input and output: given bytes with captured output, or pipes to a caller that talks with the command."""

import fcntl
import os
import stat
import sys
import tempfile
from types import TracebackType
from typing import Self

from fairwitness.errors import UsageError
from fairwitness.sandbox.runner import Attached

_ABOVE_STANDARD = 3
"""Lower descriptors are the standard streams, which are replaced when the command starts."""
_SEALS = 0x1 | 0x2 | 0x4 | 0x8  # forbid further seals, shrinking, growing and writing


class Streams:
    """The runner's side of one command's streams; closes the attached pipes exactly once."""

    def __init__(self, stdin: bytes = b"", attached: Attached | None = None) -> None:
        self.stdin = stdin
        self.pipes: tuple[int, int] | None = None
        """The attached pipes until the command has them: the end to read from, the end to write to."""
        if attached is None:
            return
        self.pipes = _taken(attached)
        try:
            if stdin:
                raise UsageError(
                    "a command reads either bytes or what comes through a pipe", next_step="leave one of them out"
                )
            _check(attached.stdin, self.pipes[0], os.O_RDONLY)
            _check(attached.stdout, self.pipes[1], os.O_WRONLY)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the attached pipes; the command has its copies, or will never run."""
        pipes, self.pipes = self.pipes, None
        for handle in pipes or ():
            os.close(handle)


def sealed(content: bytes) -> int:
    """Return a descriptor to read `content` from; on Linux no process can change it."""
    if sys.platform == "linux":
        handle = os.memfd_create("given", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        with tempfile.TemporaryFile() as file:
            handle = os.dup(file.fileno())
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]
    os.lseek(handle, 0, os.SEEK_SET)
    if sys.platform == "linux":
        fcntl.fcntl(handle, fcntl.F_ADD_SEALS, _SEALS)
    return handle


def _taken(attached: Attached) -> tuple[int, int]:
    """Move the pipes to descriptors that only the runner knows, and close the given ones."""
    moved: list[int] = []
    unknown: list[int] = []
    for handle in dict.fromkeys((attached.stdin, attached.stdout)):
        try:
            moved.append(fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, _ABOVE_STANDARD))
            os.close(handle)
        except OSError:
            unknown.append(handle)
    if len(moved) == len(("stdin", "stdout")):
        return moved[0], moved[1]
    for handle in moved:
        os.close(handle)
    what = f"handle {unknown[0]} is not open" if unknown else f"handle {attached.stdin} cannot be both streams"
    raise UsageError(what, next_step="attach one end of two pipes")


def _check(given: int, handle: int, way: int) -> None:
    """Check that a descriptor is a pipe of the right direction; a file or socket would extend the command's reach."""
    is_pipe = stat.S_ISFIFO(os.fstat(handle).st_mode)
    if not is_pipe or fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE != way:
        end = "read from" if way == os.O_RDONLY else "written to"
        raise UsageError(f"handle {given} is no end of a pipe that is {end}", next_step="attach one end of two pipes")
    os.set_blocking(handle, True)  # programs expect their standard streams to be blocking
