"""Assembles the runner of a forge run from its recorded order."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from fairwitness.app.assembly.backends import runner
from fairwitness.app.assembly.dispatch import CAPS, DispatchDepsFactory, prover
from fairwitness.app.assembly.feature_runner import caps_of, commands_of
from fairwitness.app.state import scratch_root
from fairwitness.contracts.verify.checks import VerifySettings
from fairwitness.git.candidates import Candidates
from fairwitness.git.identity import read_identity
from fairwitness.runs.forge.captain import ForgeCaptain
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.runs.forge.runner import ForgeRunner
from fairwitness.runs.forge.worker import ForgeWorker
from fairwitness.runs.graph.repo_context import RepoContext
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout
from fairwitness.verify.subject import VerifyDeps

if TYPE_CHECKING:
    from pathlib import Path

    from fairwitness.git.worktrees import Worktrees
    from fairwitness.kit.clock import Clock
    from fairwitness.ledger.ledger import Ledger


def forge_runner_of(
    worktrees_of: Callable[[str], "Worktrees"], ledger: "Ledger", state: "Path", run_id: str, clock: "Clock"
) -> ForgeRunner:
    """Return the runner of a forge run, planned by its captain or begun with a plan.

    `worktrees_of` returns the worktrees whose branches begin with a prefix.
    """
    log = ForgeLog(ledger, run_id, clock=clock)
    order = log.order()
    worktrees = worktrees_of((log.begun().options if order is None else order.options).prefix)
    repository, shadow = worktrees.repository, worktrees.shadow
    settings = log.settings()
    sandbox = runner()
    repo = RepoContext(
        repository, worktrees, Candidates(repository, shadow), state / "locks", read_identity(repository)
    )
    maker = DispatchDepsFactory(
        repository,
        shadow,
        ledger,
        state,
        sandbox,
        run_id,
        settings,
        clock,
        caps=CAPS if order is None else caps_of(log.budget()),
    )
    deps = VerifyDeps(
        repository=repository,
        runner=sandbox,
        shadow=shadow,
        ledger=ledger,
        state=state,
        scratch=scratch_root(state, sandbox.tier),
        settings=VerifySettings.model_validate(settings["verify"]),
        digest=settings["digest"],
        clock=clock,
    )
    files, layout = Store(repository.top or state), ForgeLayout(run_id)
    base = log.begun().base_commit if order is None else order.base_commit
    worker = ForgeWorker(maker.context, log, files, maker.deps, commands_of(deps, base))
    captain = None if order is None else ForgeCaptain(maker.context, log, maker.deps, repo, files, layout)
    return ForgeRunner(repo, ledger, files, run_id, worker, prover(deps, run_id), captain=captain, clock=clock)
