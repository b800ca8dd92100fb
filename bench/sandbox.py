"""What keeping a command in costs beside running it bare: the start of it, and a test run of two seconds."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.measure import report
from fairwitness.app.assembly import backends
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command, Confinement, End
from fairwitness.sandbox.probe import probe

BARE = "bare subprocess"
SECONDS = 2.0
_TRIAL = 20_000
_TESTS = """
import unittest


class Work(unittest.TestCase):
    def test_numbers(self):
        for turn in range({turns}):
            self.assertEqual(sum(number * number for number in range(1000)), 332833500)
            if turn % 1000 == 0:
                with open(f"out-{{turn % 7}}.txt", "w") as file:
                    file.write(str(turn))


unittest.main()
"""


def run() -> bool:
    """Prints the ratios for each tier that works here."""
    folder = Path(tempfile.mkdtemp(prefix="fairwitness-bench-"))
    folder.chmod(0o755)
    try:
        return all([_start(folder), _test_run(folder)])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _candidates(folder: Path, argv: tuple[str, ...]) -> dict[str, Callable[[], object]]:
    """The command bare, and in every tier."""

    def bare() -> None:
        subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=True, env={})

    def confined(tier: SandboxTier) -> Callable[[], object]:
        runner = backends.runner(tier, allow_unconfined=True)
        confinement = Confinement(worktree=str(folder), writable=True, env={}, min_tier=SandboxTier.NONE)
        command = Command(argv=argv, confinement=confinement, purpose="bench")

        def go() -> None:
            result = runner.run(command).result
            assert result.end is End.OK, result

        return go

    return {BARE: bare} | {f"tier {tier}": confined(tier) for tier in probe().tiers}


def _best(candidates: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The quickest of several interleaved rounds: what else this machine does only ever adds to it."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, go in candidates.items():
            began = time.perf_counter()
            go()
            times[name].append(time.perf_counter() - began)
    return {name: min(taken) for name, taken in times.items()}


def _start(folder: Path) -> bool:
    measured = _best(_candidates(folder, ("/bin/true",)), rounds=40)
    met = report("start and end of /bin/true", measured, BARE, {})
    for name, seconds in measured.items():
        print(f"  {seconds * 1000:6.1f} ms {name}")
    return met


def _test_run(folder: Path) -> bool:
    """A run that computes for two seconds and writes a file now and then."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin:/bin")
    if python is None:
        print("\na test run: there is no Python that every tier can see")
        return True
    program = folder / "tests.py"
    argv = (python, "-I", str(program))
    program.write_text(_TESTS.format(turns=_TRIAL))
    one = _best({BARE: _candidates(folder, argv)[BARE]}, rounds=3)[BARE]
    program.write_text(_TESTS.format(turns=round(_TRIAL * SECONDS / one)))
    measured = _best(_candidates(folder, argv), rounds=6)
    return report("a test run of two seconds", measured, BARE, {"tier ns": 1.05, "tier ll": 1.05})
