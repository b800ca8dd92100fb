"""What a step of a phase costs beside its agent and its commands: asked, written down, shown in the files."""

import json
import statistics
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

GOAL_MS = 400
ASKING = frozenset({"research", "plan", "plan_check", "judge"})
"""Steps that only ask an agent, who answers at once here: what they take is our own."""


def run() -> bool:
    """Plays the demo of autopilot and tells what its steps took."""
    with tempfile.TemporaryDirectory(prefix="fairwitness-bench-") as folder:
        place = Path(folder) / "demo"
        command = [
            str(Path(sys.executable).with_name("fairwitness")),
            "demo",
            "--autopilot",
            "--dir",
            str(place),
            "--jsonl",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"bench: the demo ended with {done.returncode}: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return False
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return _told({event["seq"]: event for event in events})


def _told(events: dict[int, dict[str, Any]]) -> bool:
    """Each step lasts until the next begins, or until its phase is decided about."""
    steps: list[tuple[str, float]] = []
    began: tuple[str, float] | None = None
    for _, event in sorted(events.items()):
        ends = event["type"] in ("step_started", "phase_completed", "phase_failed", "remediation_started", "run_halted")
        if began is not None and ends:
            steps.append((began[0], (_at(event) - began[1]) * 1000))
            began = None
        if event["type"] == "step_started":
            began = (str(event["data"]["step"]), _at(event))
    own = [took for step, took in steps if step in ASKING]
    others = [took for step, took in steps if step not in ASKING and step != "preflight"]
    median, baseline = statistics.median(own), statistics.median(others)
    met = median <= GOAL_MS
    print(f"\na step of a phase with an instant agent  (baseline: a step that runs commands, {baseline / 1000:.1f} s)")
    print(f"  {median / baseline:6.2f}x  {median:.0f} ms, the slowest of {len(own)} {max(own):.0f} ms")
    print(f"          goal <= {GOAL_MS} ms: {'met' if met else 'MISSED'}")
    return met


def _at(event: dict[str, Any]) -> float:
    return datetime.fromisoformat(event["timestamp"]).timestamp()
