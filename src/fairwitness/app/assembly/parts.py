"""The parts that every run has, whatever its workflow: repository, worktrees, agents and checks."""

import threading
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from fairwitness.agents.roles import ROLES
from fairwitness.app.assembly.agent_choice import Prober, chosen, settings_of
from fairwitness.app.assembly.backends import backend, runner
from fairwitness.app.assembly.models import GatewayModels, NoModels, route_of
from fairwitness.app.settings.agents import CASSETTE
from fairwitness.app.settings.trust import refuse_revoked
from fairwitness.app.state import scratch_root, state_of
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.agents.settings import AgentsSettings, ModelChoice
from fairwitness.contracts.common.budgets import NO_CAP, NO_CAPS, BudgetCaps, BudgetTable, Caps
from fairwitness.contracts.common.policy import RetryPolicy
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.graph.orders import PREFIX, Proof
from fairwitness.contracts.verify.report import Side, VerifySubject
from fairwitness.contracts.verify.run_settings import RunSettings
from fairwitness.errors import NotReady
from fairwitness.git.candidates import Candidates
from fairwitness.git.identity import read_identity
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.git.worktrees import Worktrees
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.disk_watch import DiskWatch
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.dispatch import DispatchContext, DispatchDeps
from fairwitness.runs.dispatch.budget_account import ENDED, budget_of, of_dispatches
from fairwitness.runs.dispatch.events import NoEvents
from fairwitness.runs.dispatch.git_reader import git_reader
from fairwitness.runs.dispatch.meter import RunMeter
from fairwitness.runs.dispatch.model import Models, Recorder
from fairwitness.runs.graph.repo_context import Prove, RepoContext
from fairwitness.runs.shared.agent_calls import AgentCaller
from fairwitness.runs.shared.agent_checks import AgentChecks, with_checks
from fairwitness.runs.shared.read_only_worktrees import ReadOnlyWorktrees
from fairwitness.store.artifacts import Store
from fairwitness.verify.failed_checks import reasons_of
from fairwitness.verify.subject import VerifyDeps, prove

_TO_ITS_END = frozenset({"ok", "invalid_answer", "refused"})


class DispatchDepsFactory:
    """Creates the dependencies of dispatches from the settings that the run began with."""

    def __init__(
        self,
        deps: VerifyDeps,
        run_id: str,
        settings: RunSettings,
        retry: RetryPolicy,
        *,
        caps: BudgetCaps,
        recorder: Recorder | None = None,
        lines: Mapping[str, str] | None = None,
    ) -> None:
        """`lines` are commands of the settings that agents may run by name, beside the checks of the project."""
        self._verify, self._lines = deps, lines
        self._repository, self._shadow, self._ledger, self._runner = (
            deps.repository,
            deps.shadow,
            deps.ledger,
            deps.runner,
        )
        self._run_id, self._agents, self._cassettes = run_id, settings.agents, settings.cassettes
        self._retry = retry
        self.context = DispatchContext(
            ledger=deps.ledger,
            store=Store(deps.state, private=True),
            shadow=deps.shadow,
            caps=caps,
            recorder=recorder or NoEvents(),
            clock=deps.clock,
            disk=DiskWatch((deps.state, deps.scratch, deps.repository.common_dir)),
        )

    @cached_property
    def _settings(self) -> AgentsSettings:
        return settings_of(self._repository.top or self._repository.common_dir).settings

    @cached_property
    def _prober(self) -> Prober:
        return Prober(self._settings)

    def deps(self, role: Role, instance: str, folder: Path, base: str) -> DispatchDeps:
        """Return the dependencies of one dispatch; raise `NotReady` if its agent lacks something."""
        choice = self._choice(role, instance)
        place = None if self._cassettes is None else Path(self._cassettes)
        played = backend(
            choice.agent,
            self._settings,
            cassette=place,
            done=self._played() if place else None,
            retry=self._retry,
        )
        probe = played.probe()
        if probe.missing:
            raise NotReady(f"{probe.name} lacks {' and '.join(probe.missing)}", next_step=probe.next_step)
        base_tree = self._repository.tree_of(base)
        deps = DispatchDeps(
            backend=played,
            probe=probe,
            models=self._models(choice, probe.kind),
            runner=self._runner,
            worktree=folder,
            base_tree=base_tree,
            git=git_reader(self._repository, self._shadow, folder, base),
        )
        return with_checks(deps, role, AgentChecks(self._verify, self._run_id, folder, base_tree, self._lines))

    def _played(self) -> Counter[tuple[Role, str]]:
        """Count the finished sessions by role and instance: the next session plays the next recording."""
        rows = self._ledger.observations(self._run_id, ENDED)
        own = (row.detail for row in rows if row.detail["outcome"]["status"] in _TO_ITS_END)
        return Counter((Role(detail["role"]), str(detail["instance"])) for detail in own)

    def _choice(self, role: Role, instance: str) -> ModelChoice:
        if self._agents == CASSETTE:
            return ModelChoice(agent=CASSETTE, model=None)
        return chosen(ROLES[role], instance, self._settings, self._agents, self._prober)

    def _models(self, choice: ModelChoice, kind: str) -> Models:
        if kind == "cassette":
            return NoModels()
        meter = RunMeter(
            lambda: budget_of(
                self.context.caps, of_dispatches(lambda what: self._ledger.observations(self._run_id, what))
            )
        )
        return GatewayModels(
            route_of(choice.agent, choice.model, self._settings),
            meter,
            tcp=kind == "api",
            limits=self._settings.gateway,
            prices=self._settings.prices,
        )


def prover(deps: VerifyDeps, run_id: str) -> Prove:
    """Return the function with which the steps of a graph verify a change."""

    def proven(
        task: str, round_: int, *, base: str, head: str, declared: tuple[str, ...] | None, stop: threading.Event
    ) -> Proof:
        sides = [Side(ref=commit[:12], commit=commit, tree=deps.repository.tree_of(commit)) for commit in (base, head)]
        subject = VerifySubject(task_id=task, round=round_)
        found = prove(
            deps,
            run_id,
            subject,
            base=sides[0],
            head=sides[1],
            declared=declared,
            stop=stop,
        )
        kept = Store(deps.state, private=True)
        return Proof(holds=found.holds, reasons=reasons_of(deps.ledger, kept, run_id, subject, found.reasons))

    return proven


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
        lines: Mapping[str, str] | None = None,
        clock: Clock = system_clock,
    ) -> None:
        """`recorder` writes the workflow's own events about dispatches; `lines` are its commands by name."""
        place = repository.top or repository.common_dir
        settings_of(place).refuse_held(settings.agents)
        if settings.trusted_file is not None:
            refuse_revoked(place, settings.trusted_file.removeprefix("sha256:"))
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
        maker = DispatchDepsFactory(self.verify, run_id, settings, retry, caps=caps, recorder=recorder, lines=lines)
        readers = ReadOnlyWorktrees(worktrees, run_id, identity)
        self.caller = AgentCaller(maker.context, maker.deps, readers, retry, roles=roles)
