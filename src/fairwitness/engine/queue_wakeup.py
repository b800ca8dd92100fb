"""Wake-ups that make a worker poll a queue at once; the library itself polls only every tenth of a second."""

import threading
import time
from collections.abc import Callable
from typing import TypeAlias

_BREATH_S = 0.01
"""The minimum time between two polls: what the first took must have started, or the second counts it as room."""

Look: TypeAlias = Callable[["QueueWakeup", int], None]
"""Polls the queue of a generation whenever the wake-up's `wait` returns, until the wake-up is set."""


class QueueWakeup(threading.Event):
    """An event for the library's polling thread: `wait` returns when it is woken instead of after a time."""

    def __init__(self) -> None:
        super().__init__()
        self._woken = threading.Event()
        self._waited = 0.0

    def wake(self) -> None:
        """Request a poll."""
        self._woken.set()

    def set(self) -> None:
        """End the polling."""
        super().set()
        self._woken.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is woken; return True if the polling ends."""
        self._woken.wait()
        if not self.is_set():
            time.sleep(max(0.0, self._waited + _BREATH_S - time.monotonic()))
        self._woken.clear()
        self._waited = time.monotonic()
        return self.is_set()


class QueueWakeups:
    """The wake-ups of all generations of children that needed one so far."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._wakeups: dict[int, tuple[QueueWakeup, threading.Thread]] = {}

    def wake(self, generation: int) -> None:
        """Request a poll of the queue of a generation, in another thread."""
        wakeup, thread = self._wakeups.get(generation, (None, None))
        if wakeup is None or thread is None or not thread.is_alive():
            wakeup = QueueWakeup()
            thread = threading.Thread(
                target=self._look, args=(wakeup, generation), name="fairwitness-engine-wakeup", daemon=True
            )
            self._wakeups[generation] = wakeup, thread
            thread.start()
        wakeup.wake()

    def end(self) -> None:
        """End the polling, and wait for polls that are running."""
        for wakeup, _ in self._wakeups.values():
            wakeup.set()
        for _, thread in self._wakeups.values():
            thread.join()
