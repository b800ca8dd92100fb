"""What a killed run costs from the start of `fairwitness resume` to its first new record, in CPU seconds.

CPU seconds, because the wall time of one process says little on a busy machine. Each life is killed at its first new
record, so the next one resumes a little later in the same run.
"""

import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import report
from bench.startup import FAIRWITNESS

ROUNDS = 5
LIBRARIES = "python -c 'import dbos, pydantic'"
DEMOS = {"feature": (), "forge": ("--forge",), "autopilot": ("--autopilot",)}
PATIENCE_S = 180.0


def run() -> bool:
    """Prints the ratios of the first new record of the three demos."""
    baseline = [_cpu_of_libraries() for _ in range(ROUNDS)]
    measured = {LIBRARIES: statistics.median(baseline)}
    for name, options in DEMOS.items():
        with tempfile.TemporaryDirectory(prefix="fairwitness-bench-", ignore_cleanup_errors=True) as folder:
            place = Path(folder) / "demo"
            _to_next_record([FAIRWITNESS, "demo", *options, "--plain", "--dir", str(place)], Path(folder), place)
            ledger = next(place.glob("*/.fairwitness/evidence.db"))
            lives = [
                _to_next_record([FAIRWITNESS, "resume", "--plain"], ledger.parent.parent, place) for _ in range(ROUNDS)
            ]
            measured[f"first new record of a resumed {name} run"] = statistics.median(lives)
    return report("resume, CPU seconds", measured, LIBRARIES, {})


def _cpu_of_libraries() -> float:
    before = os.times()
    subprocess.run([sys.executable, "-c", "import dbos, pydantic"], check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def _to_next_record(command: list[str], cwd: Path, place: Path) -> float:
    """Run a command until the ledger below `place` has a new record, kill it, and return its CPU seconds."""
    before = _records(place)
    process = subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    until = time.monotonic() + PATIENCE_S
    while _records(place) == before and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    used = _cpu_of(process.pid)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return used


def _records(place: Path) -> int:
    for ledger in place.glob("*/.fairwitness/evidence.db"):
        connection = sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)
        try:
            return int(connection.execute("SELECT count(*) FROM chain").fetchone()[0])
        except sqlite3.OperationalError:
            return 0  # the tables are being made
        finally:
            connection.close()
    return 0


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
