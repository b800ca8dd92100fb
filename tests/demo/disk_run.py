"""A demo on a small disk that fills up or turns read-only: `python -m demo.disk_run NAME DISK FAULT LINE HOLD_S`.

The fault comes when the demo has printed so many lines. A full disk has room again after HOLD_S seconds. What was seen
is printed as one JSON object.
"""

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from cli.runner import FAIRWITNESS
from support.small_disk import fill, free, mend, turn_read_only

FLAGS = {"feature": (), "forge": ("--forge",), "autopilot": ("--autopilot",)}


def main(name: str, disk: Path, fault: str, line: int, hold_s: float) -> dict[str, object]:
    """Runs the demo, lets the fault happen, and resumes what was interrupted."""
    environment = {**os.environ, "TMPDIR": str(disk), "HOME": str(disk), "XDG_STATE_HOME": str(disk / "user")}
    demo = subprocess.Popen(
        [FAIRWITNESS, "demo", *FLAGS[name], "--plain", "--dir", disk / "demo"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert demo.stdout is not None
    told: list[str] = []
    began = reported_s = None
    for text in demo.stdout:
        told.append(text.rstrip())
        if began is not None and reported_s is None and text.startswith("waiting: "):
            reported_s = time.monotonic() - began
        if len(told) == line:
            began = time.monotonic()
            (turn_read_only if fault == "read-only" else fill)(disk)
            if fault == "full":
                threading.Timer(hold_s, free, (disk,)).start()
    code = demo.wait()
    ended_s = time.monotonic() - (began or 0.0)
    (root,) = {path.parent for path in (disk / "demo").glob("*/.git")} if fault == "full" else (None,)
    resumed: subprocess.CompletedProcess[str] | None = None
    if fault != "full":
        if fault == "read-only":
            mend(disk)
        else:
            free(disk)
        (root,) = {path.parent for path in (disk / "demo").glob("*/.git")}
        again = {name: value for name, value in environment.items() if name != "FAIRWITNESS_DISK_WAIT"}
        resumed = subprocess.run(
            [FAIRWITNESS, "resume", "--plain"], cwd=root, env=again, capture_output=True, text=True, check=False
        )
    assert root is not None
    checked = subprocess.run(
        [FAIRWITNESS, "ledger", "verify"], cwd=root, env=environment, capture_output=True, check=False
    )
    with closing(sqlite3.connect(root / ".fairwitness" / "evidence.db")) as ledger:
        begun = ledger.execute("SELECT subject FROM observations WHERE kind = 'dispatch-started'").fetchall()
    return {
        "reported_s": reported_s,
        "ended_s": ended_s,
        "code": code,
        "told": told[-12:],
        "failed": [text for text in told if "no retry left: work" in text or "cannot write" in text],
        "resumed": None if resumed is None else resumed.returncode,
        "resumed_told": None if resumed is None else (resumed.stdout + resumed.stderr)[-2000:],
        "ledger": checked.returncode,
        "called_twice": sorted(name for (name,), times in Counter(begun).items() if times > 1),
        "answers": len(list((root / ".fairwitness" / "answers").iterdir())),
    }


if __name__ == "__main__":
    sys.stdout.write(
        json.dumps(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))) + "\n"
    )
