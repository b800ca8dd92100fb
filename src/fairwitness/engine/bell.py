"""A bell that makes a worker look into a queue at once: the library's own look is a tenth of a second away at worst."""

import threading
import time
from collections.abc import Callable
from typing import TypeAlias

_BREATH_S = 0.01
"""Between two looks: what the first one took must have begun, or the second would count it as room."""

Look: TypeAlias = Callable[["Bell", int], None]
"""Looks into the queue of a generation each time the bell has been waited for, until the bell is set."""


class Bell(threading.Event):
    """Given to the library as the event that ends a look-out. It waits to be rung instead of for a time."""

    def __init__(self) -> None:
        super().__init__()
        self._rung = threading.Event()
        self._waited = 0.0

    def ring(self) -> None:
        """There is reason to look."""
        self._rung.set()

    def set(self) -> None:
        """There is nothing to look for any more."""
        super().set()
        self._rung.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is rung; True if it was for the last time."""
        self._rung.wait()
        if not self.is_set():
            time.sleep(max(0.0, self._waited + _BREATH_S - time.monotonic()))
        self._rung.clear()
        self._waited = time.monotonic()
        return self.is_set()


class Bells:
    """One for each generation of children that ever had reason to ring."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._bells: dict[int, tuple[Bell, threading.Thread]] = {}

    def ring(self, generation: int) -> None:
        """Has the queue of a generation looked into, soon and elsewhere."""
        bell, thread = self._bells.get(generation, (None, None))
        if bell is None or thread is None or not thread.is_alive():
            bell = Bell()
            thread = threading.Thread(
                target=self._look, args=(bell, generation), name="fairwitness-engine-bell", daemon=True
            )
            self._bells[generation] = bell, thread
            thread.start()
        bell.ring()

    def end(self) -> None:
        """Looks no more; what is being looked at is waited for."""
        for bell, _ in self._bells.values():
            bell.set()
        for _, thread in self._bells.values():
            thread.join()
