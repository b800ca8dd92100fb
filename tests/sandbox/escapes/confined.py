"""One attempt in the sandbox, through the same door that the product uses."""

import functools
import time
from collections.abc import Mapping
from pathlib import Path

from fairwitness.app.assembly.backends import runner
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command, Confinement, Network, SandboxLimits
from fairwitness.sandbox.runner import Runner
from sandbox.escapes.judge import Ran


@functools.cache
def _runner(tier: str) -> Runner:
    return runner(SandboxTier(tier))


def run_confined(
    tier: str,
    argv: list[str],
    worktree: Path,
    read: list[str],
    env: Mapping[str, str],
    limits: Mapping[str, int | float],
) -> Ran:
    """Run it in a tier, and that tier only."""
    confinement = Confinement(
        worktree=str(worktree),
        writable=True,
        read=tuple(read),
        network=Network.LOOPBACK,
        env=dict(env),
        min_tier=SandboxTier(tier),
    )
    command = Command(
        argv=tuple(argv),
        confinement=confinement,
        limits=SandboxLimits.model_validate(dict(limits)),
        purpose="an attempt to get out",
    )
    started = time.monotonic()
    finished = _runner(tier).run(command)
    elapsed = time.monotonic() - started
    result = finished.result
    assert result.tier is SandboxTier(tier), f"it ran in {result.tier}"
    facts = result.model_dump(
        mode="json",
        include={"end", "exit_code", "signal", "limit_hit", "violations", "dotgit_ok", "guards_ok", "sandbox_error",
                 "observation", "survivors_killed", "peak_processes", "warnings"},
    )  # fmt: skip
    return Ran(
        finished.stdout,
        finished.stderr,
        result.end.value,
        result.exit_code,
        result.limit_hit,
        elapsed,
        result.stdout.total,
        facts,
    )
