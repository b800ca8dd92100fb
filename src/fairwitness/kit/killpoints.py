"""Named points at which a process can be made to die, for tests and crash drills.

Set the variable `FAIRWITNESS_KILL_AT` to the name of a point, and the process dies there as in a power failure: no
cleanup, no flush, no exit handler. `name#3` means the third time that the point is passed, and `#40` the fortieth point
of any name; all threads share the count. With `FAIRWITNESS_KILL_LOG` set, the name of every point that is passed is
written to that file, so that a drill knows which points there are.
"""

import os
import signal
import threading
from collections import Counter

_KILL_AT = (
    os.environ.get("FAIRWITNESS_KILL_AT") or None
)  # read once, so that a kill point costs only one comparison in normal operation
_LOG = os.environ.get("FAIRWITNESS_KILL_LOG") or None
_WATCHED = _KILL_AT is not None or _LOG is not None

_name, _, _times = (_KILL_AT or "").partition("#")
_number = int(_times) if _times.isdecimal() else 1
_passed: Counter[str] = Counter()
_lock = threading.Lock()


def killpoint(name: str) -> None:
    """Mark a named point; the process dies here if it was asked to."""
    if _WATCHED:
        _look(name)


def _look(name: str) -> None:
    with _lock:
        if _LOG is not None:
            with open(_LOG, "a", encoding="utf-8") as log:
                log.write(f"{name}\n")
        if _name in ("", name) and _KILL_AT is not None:
            _passed[_name] += 1
            if _passed[_name] == _number:
                os.kill(os.getpid(), signal.SIGKILL)
