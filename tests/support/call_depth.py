"""How deep the calls of a piece of work are nested."""

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class CallDepth:
    """The deepest nesting of Python calls in any thread while it is watched."""

    def __init__(self) -> None:
        self.deepest = 0
        self._now: Counter[int] = Counter()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Count the calls of this thread and of threads that start meanwhile."""
        before = sys.getprofile()
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(None)

    def _note(self, _frame: FrameType, event: str, _value: object) -> None:
        thread = threading.get_ident()
        if event == "call":
            self._now[thread] += 1
            self.deepest = max(self.deepest, self._now[thread])
        elif event == "return":
            self._now[thread] -= 1
