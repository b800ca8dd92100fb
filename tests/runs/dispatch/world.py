"""A small world for dispatches: a real repository, a linked worktree, a ledger, and agents that do as they are told."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fairwitness.agents.base import AgentJob, AgentTurn, Session
from fairwitness.agents.driver import DispatchCut
from fairwitness.agents.roles import ROLES
from fairwitness.contracts.agents.dispatch import (
    Brief,
    DispatchLimits,
    EnforcementTier,
    Probe,
    Stop,
    Usage,
    UsageSource,
)
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.budgets import BudgetCaps, Caps
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.tools import Role, Scope
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.git.worktrees import Worktree, Worktrees
from fairwitness.kit.disk_watch import DiskWatch
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.dispatch import DispatchContext, DispatchDeps, Dispatched, DispatchPosition, dispatch
from fairwitness.runs.dispatch.events import FeatureEvents
from fairwitness.runs.dispatch.model import ModelConnection
from fairwitness.sandbox.scripted import ScriptedRunner
from fairwitness.store.artifacts import Store
from git.person import Person
from support.fixtures import value_of

RUN = "2026-02-26T14:30:00Z"
BEGAN = datetime(2026, 2, 26, 14, 30, tzinfo=UTC)
NO_LIMIT = Caps(tokens=None, money_micros=None, milliseconds=None)
FREE = BudgetCaps(dispatch=NO_LIMIT, phase=NO_LIMIT, run=NO_LIMIT)
SCOPE = Scope(folder="docs/feature/shop", writes=("src/**",))
REPORT = value_of("000/implementation-report.yaml")
INTAKE = value_of("000/intake-return.yaml")
USED = Usage(source=UsageSource.PROVIDER, tokens_in=900, tokens_out=100, cost_micros=4_000, turns=2)

Act = Callable[[AgentJob], None]


def says(answer: dict[str, Any]) -> str:
    """An answer as an agent writes it."""
    return f"Here it is.\n```json\n{json.dumps(answer)}\n```\n"


def writes(path: str, text: str = "x = 1\n") -> Act:
    """Writes a file of the worktree by itself, as an agent of tier D does."""

    def act(job: AgentJob) -> None:
        place = job.worktree / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    return act


@dataclass
class Scripted:
    """An agent that does some things, and then says something."""

    text: str
    acts: tuple[Act, ...] = ()
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    """Of tools that are ours."""
    usage: Usage = USED
    stop: Stop = Stop.DONE
    cause: ErrorCause | None = None
    error: str = ""
    waits: asyncio.Event | None = None
    """Never answers, and sets this when it is asked."""
    tier: EnforcementTier = EnforcementTier.A
    name: str = "scripted"
    asked: list[str] = field(default_factory=list)

    def probe(self) -> Probe:
        return Probe(name=self.name, kind="api", found=True, version="1.2.3", tier=self.tier)

    def open(self, job: AgentJob) -> AbstractAsyncContextManager[Session]:
        return self._opened(job)

    @asynccontextmanager
    async def _opened(self, job: AgentJob) -> AsyncIterator[Session]:
        yield _Scene(self, job)


@dataclass
class _Scene:
    script: Scripted
    job: AgentJob

    async def ask(self, prompt: str) -> AgentTurn:
        self.script.asked.append(prompt)
        for act in self.script.acts:
            act(self.job)
        for tool, args in self.script.calls:
            await self.job.tools.call(tool, args)
        if self.script.waits is not None:
            self.script.waits.set()
            await asyncio.Event().wait()
        return AgentTurn(
            self.script.text,
            self.script.stop,
            self.script.usage,
            model="scripted-1",
            cause=self.script.cause,
            error=self.script.error,
        )

    async def cancel(self) -> None:
        """Nothing is left running."""


@dataclass
class NoModels:
    """Nobody asks a model here; what was counted and refused can be said beforehand."""

    used: Usage | None = None
    refusal: str | None = None
    connected: list[tuple[str, DispatchLimits]] = field(default_factory=list)

    def connect(
        self, dispatch_id: str, limits: DispatchLimits, cut: DispatchCut
    ) -> AbstractAsyncContextManager[ModelConnection]:
        return self._connected(dispatch_id, limits, cut)

    @asynccontextmanager
    async def _connected(
        self, dispatch_id: str, limits: DispatchLimits, cut: DispatchCut
    ) -> AsyncIterator[ModelConnection]:
        self.connected.append((dispatch_id, limits))
        if self.refusal is not None:
            cut.over_budget(self.refusal)
        yield ModelConnection(None, lambda: self.used)


class Ticking:
    """A clock that goes on by a second each time it is looked at."""

    def __init__(self) -> None:
        self._now = BEGAN

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


@dataclass
class World:
    """Everything that a dispatch needs, in one folder."""

    person: Person
    worktree: Worktree
    base_tree: str
    shadow: Shadow
    ledger: Ledger
    store: Store
    caps: BudgetCaps = FREE

    @classmethod
    def make(cls, root: Path) -> "World":
        """A repository with some files, and a run that has begun."""
        person = Person.in_folder(root)
        person.write(".gitignore", "*.log\nbuild/\n")
        person.write("README.md", "a shop\n")
        person.write("src/shop.py", "price = 1\n")
        person.write("build/kept.js")
        person.git("add", "-f", "build/kept.js")
        person.commit()
        world = cls.open(root)
        started = {
            "slug": "shop",
            "mode": "autonomous",
            "base_commit": person.git("rev-parse", "HEAD"),
            "baseline_tag": "pipeline-baseline-2026-02-26T14-30-00Z",
            "settings_hash": f"sha256:{'0' * 64}",
        }
        when = "2026-02-26T14:30:00Z"
        world.ledger.record(RUN, lambda to: to.event(Workflow.FEATURE, "run_started", started, timestamp=when))
        return world

    @classmethod
    def open(cls, root: Path) -> "World":
        """The same world again, as another process finds it."""
        person = Person(root / "repo", root / "home")
        state = root / "state"
        repository = Repository.open(person.folder)
        shadow = Shadow.open(state / "git", repository)
        worktree = Worktrees(repository, shadow, state / "worktrees").create(RUN, "task-01", 1, "HEAD")
        return cls(
            person=person,
            worktree=worktree,
            base_tree=repository.tree_of(repository.commit("HEAD")),
            shadow=shadow,
            ledger=Ledger.open_file(state / "evidence.db", clock=Ticking()),
            store=Store(state),
        )

    @property
    def folder(self) -> Path:
        return self.worktree.folder

    def context(self, **more: Any) -> DispatchContext:
        given: dict[str, Any] = {
            "caps": self.caps,
            "recorder": FeatureEvents(),
            "clock": Ticking(),
            "disk": DiskWatch((self.store.root,)),
            **more,
        }
        return DispatchContext(ledger=self.ledger, store=self.store, shadow=self.shadow, **given)

    def deps(
        self, backend: Scripted, *, models: NoModels | None = None, tier: SandboxTier | None = None
    ) -> DispatchDeps:
        return DispatchDeps(
            backend=backend,
            probe=backend.probe(),
            models=models or NoModels(),
            runner=ScriptedRunner((), tier=tier or SandboxTier.NAMESPACES),
            worktree=self.folder,
            base_tree=self.base_tree,
        )

    def run(
        self,
        backend: Scripted,
        *,
        role: Role = Role.IMPLEMENTER,
        dispatch_id: str = "d-1",
        scope: Scope = SCOPE,
        spec: RoleSpec | None = None,
        models: NoModels | None = None,
        tier: SandboxTier | None = None,
        stop: asyncio.Event | None = None,
        position: DispatchPosition | None = None,
        **more: Any,
    ) -> Dispatched:
        """One dispatch, from beginning to end."""
        return asyncio.run(
            dispatch(
                self.context(**more),
                spec or ROLES[role],
                brief(role, dispatch_id, scope),
                position or DispatchPosition("step-5", task="task-01", attempt=1),
                self.deps(backend, models=models, tier=tier),
                stop=stop,
            )
        )

    def rows(self, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
        return self.ledger.database.read(f"SELECT {columns} FROM {table} WHERE run_id = ?", (RUN,))

    def events(self) -> list[str]:
        return [event.type for event in self.ledger.events(RUN)][1:]


def brief(role: Role = Role.IMPLEMENTER, dispatch_id: str = "d-1", scope: Scope = SCOPE) -> Brief:
    """A brief for a role of the feature pipeline."""
    spec = ROLES[role]
    instance = spec.instances[0] if spec.instances else role.value
    chosen = {} if spec.variants is None else {spec.variants.parameter: instance}
    return Brief(
        dispatch_id=dispatch_id,
        run_id=RUN,
        role=role,
        instance=instance,
        task="Do what is to be done.",
        parameters=dict.fromkeys(spec.parameters, "task-01") | chosen,
        scope=scope,
    )


def builder(*acts: Act, answer: dict[str, Any] | None = None, **more: Any) -> Scripted:
    """An implementer that does these things, and says what an implementer says."""
    return Scripted(says(answer or REPORT), acts, **more)
