"""Progress on stderr: one live line in a terminal, one line per finished step elsewhere."""

import shutil
import sys
import threading
import time
from typing import TextIO

from fairwitness.app.text import took

HEARTBEAT_S = 30.0
TICK_S = 0.5
NO_PROCESS = "no process is working on this run"

spell_seconds = took


class ProgressLine:
    """Shows steps reported from any thread; a context manager."""

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_live = self._stream.isatty() and not quiet
        self._quiet = quiet
        self._began = time.monotonic()
        self._running: dict[str, float] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._beat: threading.Thread | None = None

    def __enter__(self) -> "ProgressLine":
        if not self._quiet:
            self._beat = threading.Thread(target=self._keep_beating, daemon=True, name="progress")
            self._beat.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        if self._beat is not None:
            self._beat.join()
        if self._is_live:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def __call__(self, what: str, check: str, text: str) -> None:
        """Report that a step began or ended, or any other line."""
        if self._quiet:
            return
        with self._lock:
            match what:
                case "begin":
                    self._running[f"{check} {text}"] = time.monotonic()
                case "end":
                    self._running.pop(f"{check} {text.split(':', 1)[0]}", None)
                    self._line(f"  {check} {text}")
                case _:
                    self._line(f"  {text}")
            self._draw()

    def _line(self, text: str) -> None:
        if self._is_live:
            return  # the table at the end repeats it; the live line shows what is running
        self._stream.write(f"{spell_seconds(time.monotonic() - self._began):>7}{text}\n")
        self._stream.flush()

    def _draw(self) -> None:
        if not self._is_live or not self._running:
            return
        running = ", ".join(f"{name}" for name in list(self._running)[:3])
        text = f"{spell_seconds(time.monotonic() - self._began):>7}  running {running}"
        self._stream.write(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}")
        self._stream.flush()

    def _keep_beating(self) -> None:
        last = time.monotonic()
        while not self._over.wait(TICK_S):
            with self._lock:
                self._draw()
                now = time.monotonic()
                if not self._is_live and self._running and now - last > HEARTBEAT_S:
                    self._line(f"  still running: {', '.join(self._running)}")
                    last = now
