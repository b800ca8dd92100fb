"""A process that stands for the orchestrator: it keeps a secret in each place a process has, and notes each signal.

Started as `python decoy.py <argument with a secret> <folder>`, with a secret in its environment and one on stdin.
"""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

LIFE_S = 60


def main() -> None:
    """Say where the secrets lie, then wait for signals and write each of them down."""
    folder = Path(sys.argv[2])
    secret = sys.stdin.buffer.readline().strip()
    memory = ctypes.create_string_buffer(secret)
    kept = folder / "kept"
    kept.write_bytes(secret)
    handle = os.open(kept, os.O_RDONLY)
    kept.unlink()
    numbers = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    log = os.open(folder / "signals", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(1, f"{ctypes.addressof(memory)} {len(secret)} {handle}\n".encode())
    for _ in range(LIFE_S):
        with suppress(InterruptedError):
            came = signal.sigtimedwait(numbers, 1.0)
            if came is not None:
                os.write(log, f"{came.si_signo}\n".encode())


if __name__ == "__main__":
    main()
