"""Wake-ups that make a worker poll a queue at once; the library itself polls every tenth of a second at most."""

import threading
import time
from collections.abc import Callable
from typing import TypeAlias

_BREATH_S = 0.01
"""Between two looks: what the first one took must have begun, or the second would count it as room."""

Look: TypeAlias = Callable[["QueueWakeup", int], None]
"""Looks into the queue of a generation each time the wake-up has been waited for, until it is set."""


class QueueWakeup(threading.Event):
    """Given to the library as the event that ends a look-out. It waits to be rung instead of for a time."""

    def __init__(self) -> None:
        super().__init__()
        self._woken = threading.Event()
        self._waited = 0.0

    def wake(self) -> None:
        """There is reason to look."""
        self._woken.set()

    def set(self) -> None:
        """There is nothing to look for any more."""
        super().set()
        self._woken.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is rung; True if it was for the last time."""
        self._woken.wait()
        if not self.is_set():
            time.sleep(max(0.0, self._waited + _BREATH_S - time.monotonic()))
        self._woken.clear()
        self._waited = time.monotonic()
        return self.is_set()


class QueueWakeups:
    """One for each generation of children that ever had reason to ring."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._wakeups: dict[int, tuple[QueueWakeup, threading.Thread]] = {}

    def wake(self, generation: int) -> None:
        """Has the queue of a generation looked into, soon and elsewhere."""
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
        """Looks no more; what is being looked at is waited for."""
        for wakeup, _ in self._wakeups.values():
            wakeup.set()
        for _, thread in self._wakeups.values():
            thread.join()
