"""Named points at which a process can be told to die, for tests and crash drills.

Start a process with the variable `FAIRWITNESS_KILL_AT` set to the name of a point, and there it is gone as if the power had
failed: no cleanup, no flush, no exit handler. `name#3` means the third time that it is passed, and `#40` the fortieth
point of any name; threads count together. With `FAIRWITNESS_KILL_LOG` set, every point that is passed is written to that file
by name, so that a drill knows what there is.
"""

import os
import signal
import threading
from collections import Counter

_KILL_AT = (
    os.environ.get("FAIRWITNESS_KILL_AT") or None
)  # asked once: a point passed in normal work costs one comparison
_LOG = os.environ.get("FAIRWITNESS_KILL_LOG") or None
_WATCHED = _KILL_AT is not None or _LOG is not None

_name, _, _times = (_KILL_AT or "").partition("#")
_number = int(_times) if _times.isdecimal() else 1
_passed: Counter[str] = Counter()
_lock = threading.Lock()


def killpoint(name: str) -> None:
    """Pass a named point, or die there."""
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
