"""The parts that every run has, whatever its workflow: repository, worktrees, agents and checks."""

from collections.abc import Mapping

from fairwitness.agents.roles import ROLES
from fairwitness.app.assembly.backends import runner
from fairwitness.app.assembly.dispatch import DispatchDepsFactory, prover
from fairwitness.app.state import scratch_root, state_of
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.budgets import NO_CAP, NO_CAPS, BudgetCaps, BudgetTable, Caps
from fairwitness.contracts.common.policy import RetryPolicy
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.graph.orders import PREFIX
from fairwitness.contracts.verify.run_settings import RunSettings
from fairwitness.git.candidates import Candidates
from fairwitness.git.identity import read_identity
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.git.worktrees import Worktrees
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.dispatch.model import Recorder
from fairwitness.runs.graph.repo_context import RepoContext
from fairwitness.runs.shared.agent_calls import AgentCaller
from fairwitness.runs.shared.read_only_worktrees import ReadOnlyWorktrees
from fairwitness.store.artifacts import Store
from fairwitness.verify.discovery.repository_checks import discover
from fairwitness.verify.environment.preparation import TreeView
from fairwitness.verify.subject import VerifyDeps

_PYTHON = "python3"


def caps_of(budget: BudgetTable, phase: Caps = NO_CAP) -> BudgetCaps:
    """Return the limits of a run, of its phases and of its dispatches."""
    money = None if budget.dollars is None else round(budget.dollars * 1_000_000)
    time = None if budget.minutes is None else budget.minutes * 60_000
    run = Caps(tokens=budget.tokens, money_micros=money, milliseconds=time)
    return BudgetCaps(dispatch=NO_CAP, phase=phase, run=run)


class RunParts:
    """The parts of one run, made from the settings that it began with."""

    def __init__(
        self,
        repository: Repository,
        ledger: Ledger,
        run_id: str,
        settings: RunSettings,
        retry: RetryPolicy,
        *,
        caps: BudgetCaps = NO_CAPS,
        prefix: str = PREFIX,
        recorder: Recorder | None = None,
        roles: Mapping[Role, RoleSpec] = ROLES,
        clock: Clock = system_clock,
    ) -> None:
        """`recorder` writes the workflow's own events about dispatches."""
        state, sandbox = state_of(repository), runner()
        scratch, identity = scratch_root(state, sandbox.tier), read_identity(repository)
        self.shadow = Shadow.open(state / "git", repository)
        worktrees = Worktrees(repository, self.shadow, scratch / "worktrees", prefix=prefix)
        candidates = Candidates(repository, self.shadow)
        self.repo = RepoContext(repository, worktrees, candidates, state / "locks", identity)
        self.files = Store(repository.top or state)
        self.verify = VerifyDeps(
            repository=repository,
            runner=sandbox,
            shadow=self.shadow,
            ledger=ledger,
            state=state,
            scratch=scratch,
            settings=settings.verify,
            digest=settings.settings_hash.removeprefix("sha256:"),
            clock=clock,
        )
        self.prove = prover(self.verify, run_id)
        maker = DispatchDepsFactory(self.verify, run_id, settings, retry, caps=caps, recorder=recorder)
        readers = ReadOnlyWorktrees(worktrees, run_id, identity)
        self.caller = AgentCaller(maker.context, maker.deps, readers, retry, roles=roles)

    def commands(self, base: str) -> tuple[tuple[str, ...], ...]:
        """Return the beginnings of the check commands that an agent may run, up to the first internal argument."""
        deps = self.verify
        found: dict[tuple[str, ...], None] = {}
        for check in discover(TreeView(deps.shadow, deps.repository.tree_of(base)), deps.settings).checks:
            words = [_PYTHON if word == "{python}" else word for word in check.argv]
            known = tuple(words[: next((at for at, word in enumerate(words) if "{" in word), len(words))])
            if known and known[-1].startswith("-"):
                continue  # a shorter prefix would let the agent choose the program
            if len(known) > 1 or (known and known[0] != _PYTHON):
                found[known] = None
        return tuple(found)
