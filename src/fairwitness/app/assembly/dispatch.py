"""Dependencies of dispatches: the agents that the run chose, and the verification of their work."""

import threading
from collections import Counter
from functools import cached_property
from pathlib import Path

from fairwitness.agents.roles import ROLES
from fairwitness.app.assembly.agent_choice import Prober, chosen, settings_of
from fairwitness.app.assembly.backends import backend
from fairwitness.app.assembly.models import GatewayModels, NoModels, route_of
from fairwitness.app.settings.agents import CASSETTE
from fairwitness.contracts.agents.settings import AgentsSettings, ModelChoice
from fairwitness.contracts.common.budgets import BudgetCaps
from fairwitness.contracts.common.policy import RetryPolicy
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.graph.orders import Proof
from fairwitness.contracts.verify.report import Side, VerifySubject
from fairwitness.contracts.verify.run_settings import RunSettings
from fairwitness.errors import NotReady
from fairwitness.runs.dispatch import DispatchContext, DispatchDeps
from fairwitness.runs.dispatch.budget_account import ENDED, budget_of, of_dispatches
from fairwitness.runs.dispatch.events import NoEvents
from fairwitness.runs.dispatch.git_reader import git_reader
from fairwitness.runs.dispatch.meter import RunMeter
from fairwitness.runs.dispatch.model import Models, Recorder
from fairwitness.runs.graph.repo_context import Prove
from fairwitness.store.artifacts import Store
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
    ) -> None:
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
            store=Store(deps.state),
            shadow=deps.shadow,
            caps=caps,
            recorder=recorder or NoEvents(),
            clock=deps.clock,
        )

    @cached_property
    def _settings(self) -> AgentsSettings:
        settings, _ = settings_of(self._repository.top or self._repository.common_dir)
        return settings

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
        return DispatchDeps(
            backend=played,
            probe=probe,
            models=self._models(choice, probe.kind),
            runner=self._runner,
            worktree=folder,
            base_tree=self._repository.tree_of(base),
            git=git_reader(self._repository, self._shadow, folder, base),
        )

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
        return GatewayModels(route_of(choice.agent, choice.model, self._settings), meter, tcp=kind == "api")


def prover(deps: VerifyDeps, run_id: str) -> Prove:
    """Return the function with which the steps of a graph verify a change."""

    def proven(
        task: str, round_: int, *, base: str, head: str, declared: tuple[str, ...] | None, stop: threading.Event
    ) -> Proof:
        sides = [Side(ref=commit[:12], commit=commit, tree=deps.repository.tree_of(commit)) for commit in (base, head)]
        found = prove(
            deps,
            run_id,
            VerifySubject(task_id=task, round=round_),
            base=sides[0],
            head=sides[1],
            declared=declared,
            stop=stop,
        )
        return Proof(holds=found.holds, reasons=found.reasons)

    return proven
