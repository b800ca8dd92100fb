"""The agent caller of a simulated run: recorded agents, a scripted sandbox, a clock that ticks."""

from pathlib import Path

from fairwitness.app.assembly.parts import DispatchDepsFactory
from fairwitness.contracts.common.budgets import NO_CAPS, BudgetCaps
from fairwitness.contracts.common.policy import RetryPolicy
from fairwitness.contracts.verify.run_settings import RunSettings
from fairwitness.git.identity import FALLBACK
from fairwitness.git.worktrees import Worktrees
from fairwitness.kit.clock import Clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.shared.agent_calls import AgentCaller, DepsFor
from fairwitness.runs.shared.read_only_worktrees import ReadOnlyWorktrees
from fairwitness.sandbox.runner import Runner
from fairwitness.verify.subject import VerifyDeps


def maker_of(
    worktrees: Worktrees,
    ledger: Ledger,
    state: Path,
    runner: Runner,
    run_id: str,
    settings: RunSettings,
    clock: Clock,
    *,
    caps: BudgetCaps = NO_CAPS,
    retry: RetryPolicy | None = None,
) -> DispatchDepsFactory:
    """The dependencies of dispatches, as the app makes them, but for the sandbox and the state folder."""
    deps = verify_deps_of(worktrees, ledger, state, runner, settings, clock)
    return DispatchDepsFactory(deps, run_id, settings, retry or RetryPolicy(), caps=caps)


def verify_deps_of(
    worktrees: Worktrees, ledger: Ledger, state: Path, runner: Runner, settings: RunSettings, clock: Clock
) -> VerifyDeps:
    """What the verifications of a run share."""
    return VerifyDeps(
        repository=worktrees.repository,
        runner=runner,
        shadow=worktrees.shadow,
        ledger=ledger,
        state=state,
        scratch=state,
        settings=settings.verify,
        digest=settings.settings_hash.removeprefix("sha256:"),
        clock=clock,
    )


def caller_of(
    maker: DispatchDepsFactory,
    worktrees: Worktrees,
    run_id: str,
    *,
    deps: DepsFor | None = None,
    retry: RetryPolicy | None = None,
) -> AgentCaller:
    """The caller of that run; `deps` exchanges the dependencies of some agents."""
    readers = ReadOnlyWorktrees(worktrees, run_id, FALLBACK)
    return AgentCaller(maker.context, deps or maker.deps, readers, retry or RetryPolicy())
