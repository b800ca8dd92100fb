"""A real terminal of eighty columns for a command, and what a person would see on it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path

from cli.runner import FAIRWITNESS

COLUMNS, ROWS = 80, 40
_CODE = re.compile(r"\x1b\[(\?25[lh]|[0-9;]*[A-Za-z])|\x1b[^\[]|[\r\n]|[^\x1b\r\n]+")


class Terminal:
    """A command in a terminal; use it as a context."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color"}
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            environment.pop(name, None)
        self._master = master
        self._said = b""
        self._process = subprocess.Popen(
            [FAIRWITNESS, *arguments],
            cwd=cwd,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that ^C reaches it
        )
        os.close(slave)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_error: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._master)

    @property
    def said(self) -> str:
        """Everything it wrote, as it wrote it."""
        return self._said.decode(errors="replace")

    def read(self, seconds: float) -> None:
        """Hears it for so long, or until it says nothing more."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if not select.select([self._master], [], [], left)[0]:
                return
            try:
                piece = os.read(self._master, 65536)
            except OSError:
                return  # it has ended
            if not piece:
                return
            self._said += piece

    def wait_for(self, seen: Callable[[list[str]], bool], *, seconds: float = 20) -> list[str]:
        """The screen as soon as it shows what is waited for."""
        until = time.monotonic() + seconds
        while not seen(lines := self.screen()):
            assert time.monotonic() < until, "\n".join(lines)
            self.read(0.05)
        return lines

    def type(self, keys: str) -> None:
        """Presses keys."""
        os.write(self._master, keys.encode())

    def kill(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self._process.send_signal(number)

    def ended(self) -> int:
        """Its exit code."""
        until = time.monotonic() + 30
        while self._process.poll() is None and time.monotonic() < until:
            self.read(0.05)
        self.read(0.2)
        return self._process.wait(timeout=1)

    def screen(self) -> list[str]:
        """All lines, also those that have left the screen above, as they stand now."""
        lines: list[list[str]] = [[]]
        row = column = 0
        for found in _CODE.finditer(self.said):
            match found.group():
                case "\r":
                    column = 0
                case "\n":
                    row += 1
                    column = 0
                    while len(lines) <= row:
                        lines.append([])
                case code if code.startswith("\x1b"):
                    number = int(found.group(1)[:-1]) if (found.group(1) or "")[:-1].isdigit() else 1
                    if code.endswith("A"):
                        row = max(0, row - number)
                    elif code.endswith("K"):
                        lines[row] = []
                case text:
                    line = lines[row]
                    line += " " * (column - len(line))
                    line[column : column + len(text)] = list(text)
                    column += len(text)
        return ["".join(line).rstrip() for line in lines]
