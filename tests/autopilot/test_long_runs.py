"""A long run nests its calls no deeper than a short one.

`python -m autopilot.test_long_runs TOP RUN` resumes a paused run in a process of its own and prints how deep its calls
were nested.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from autopilot.grounds import Grounds, Run
from autopilot.test_breaker import later
from fairwitness.app.views.run import WatchEnd
from support.call_depth import CallDepth

ROUNDS = 16
NOISE = 8
"""By how many calls two processes may differ: less than one call for each round."""


@pytest.mark.req("A4", "A7")
@pytest.mark.timeout(600)
@pytest.mark.width("sweep")
def test_a_run_that_is_paused_and_resumed_many_times_nests_its_calls_no_deeper(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, breaker={"cost_cap_tokens_per_phase": 60_000})
    grounds.plays("research-1-1-1", usage=(20_000, 0))
    run = grounds.begin()
    assert run.carry() is WatchEnd.PERSON
    first = _depth_of_resuming(run)
    for _ in range(ROUNDS):
        _resume(run)
    assert _depth_of_resuming(run) <= first + NOISE
    assert len(run.events("run_resumed")) == ROUNDS + 2


def _depth_of_resuming(run: Run) -> int:
    done = subprocess.run(
        [sys.executable, "-m", "autopilot.test_long_runs", run.top, run.run_id],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.splitlines()[-1])


def _resume(run: Run) -> None:
    """Until its breaker opens again."""
    assert run.resume(clock=later)
    assert run.carry() is WatchEnd.PERSON


if __name__ == "__main__":
    depth = CallDepth()
    with depth.watch():
        _resume(Run(Path(sys.argv[1]), sys.argv[2]))
    sys.stdout.write(f"{depth.deepest}\n")
