"""Named points at which a process can be told to die, for tests and crash drills.

Start a process with the variable `ASSAY_KILL_AT` set to the name of a point, and there it is gone as if the power had
failed: no cleanup, no flush, no exit handler.
"""

import os
import signal

_KILL_AT = os.environ.get("ASSAY_KILL_AT")  # asked once: a point passed in normal work costs one comparison


def reach(name: str) -> None:
    """Pass a named point, or die there."""
    if name == _KILL_AT:
        os.kill(os.getpid(), signal.SIGKILL)
