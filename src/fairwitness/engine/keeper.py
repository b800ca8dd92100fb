"""Keeps a worker's lease alive and takes over what dead workers had, in a thread that no busy loop can hold up."""

import threading
import time
from collections.abc import Callable

from fairwitness.engine.leases import DEAD_AFTER_S, HEARTBEAT_S, Leases
from fairwitness.engine.locks import FileLock, this_process
from fairwitness.kit.killpoints import killpoint

_LOOK_S = 0.5
_GIVE_UP_S = DEAD_AFTER_S - HEARTBEAT_S
"""Without a heartbeat for so long, others are about to take over: what runs here is stopped first."""


class Keeper:
    """The lease of one worker."""

    def __init__(
        self, leases: Leases, executor: str, cap: int, lock: FileLock | None, lost: Callable[[], None]
    ) -> None:
        self._leases = leases
        self._executor = executor
        self._process = this_process()
        self._cap = cap
        self._lock = lock
        self._lost = lost
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="fairwitness-engine-lease", daemon=True)

    def join(self) -> int:
        """Takes over what the dead had, and becomes a worker; gives the largest cap of all there are."""
        self.take_over()
        self._leases.join(self._executor, self._process, self._cap)
        killpoint("engine.lease.joined")
        self._thread.start()
        return max(lease.cap for lease in self._leases.all())

    def leave(self, *, hand_over: bool) -> None:
        """Is no worker any more. What is not handed over stays this process's until it ends."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()
        if hand_over:
            self._leases.leave(self._executor)
            killpoint("engine.lease.left")
        if self._lock is not None:
            self._lock.release()

    def take_over(self) -> None:
        """Whatever dead workers had is queued again. On one file, one worker at a time does this."""
        if self._lock is None or self._lock.try_acquire():
            for lease in self._leases.all():
                if lease.is_dead:
                    self._leases.take_over(lease)
                    killpoint("engine.lease.taken-over")

    def _keep(self) -> None:
        heard = time.monotonic()
        while not self._end.wait(_LOOK_S):
            try:
                if time.monotonic() - heard >= HEARTBEAT_S:
                    if not self._leases.beat(self._executor):
                        # Taken for dead: its bodies find their places gone and stop; it goes on as if it had just come.
                        self._leases.join(self._executor, self._process, self._cap)
                    killpoint("engine.lease.beat")
                    heard = time.monotonic()
                self.take_over()
            except Exception:  # noqa: BLE001  # a database or disk that is busy or away; the next look may find it
                if self._lock is None and time.monotonic() - heard > _GIVE_UP_S:
                    self._lost()
