"""An autopilot run that has just begun, in a real repository, with recorded agents that are asked in real worktrees."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fairwitness.agents.cassette_file import name_of
from fairwitness.contracts.autopilot.order import AutopilotOrder
from fairwitness.contracts.autopilot.passes import PhasePass
from fairwitness.contracts.autopilot.plan import PhasePlan
from fairwitness.contracts.common.budgets import NO_CAPS, BudgetCaps
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.policy import RetryPolicy
from fairwitness.contracts.common.tools import Role
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.git.worktrees import Worktrees
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.autopilot.briefs import AutopilotBriefs
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.runs.dispatch import DispatchDeps
from fairwitness.runs.dispatch.budget_account import ENDED
from fairwitness.runs.dispatch.records import ended
from fairwitness.runs.shared.agent_calls import AgentCaller
from fairwitness.sandbox.scripted import Reply, ScriptedAnswer, ScriptedRunner
from fairwitness.store.artifacts import Store
from git.person import Person
from runs.dispatch.world import Scripted, Ticking
from support.agent_calls import caller_of, maker_of
from support.fixtures import value_of

RUN = "run-2026-02-09-143052"
TARGET = f"fairwitness/{RUN}/target"
NOW = "2026-02-09T14:30:52Z"
NO_HASH = "sha256:" + "0" * 64
SPEC = ".planning/REQUIREMENTS.md"
LESSON = "LESSON-4711: look before you leap"
ANSWER = "ANSWER-4711: lines begin with one"
GOAL = "GOAL-4711: whoever reads a token finds its line"

Calls = Sequence[tuple[str, dict[str, Any]]]


def order_of(base: str, cassettes: Path) -> AutopilotOrder:
    """A run of two phases."""
    phase: dict[str, Any] = {
        "id": "5",
        "name": "Line numbers",
        "type": "data",
        "depends_on": [],
        "goal": GOAL,
        "requirements": [{"id": "REQ-01", "text": "tokens carry lines"}, {"id": "REQ-02"}],
        "criteria": [
            {"text": "A token knows its line", "command": "pytest -q tests/test_token.py"},
            {"text": "The manual says so", "command": None},
        ],
        "done": False,
    }
    other = phase | {"id": "6", "name": "Columns", "goal": "columns, too", "criteria": [], "depends_on": ["5"]}
    return AutopilotOrder.model_validate(
        {
            "roadmap": {"phases": [phase, other]},
            "phases": ["5", "6"],
            "earlier": {},
            "flags": [],
            "base_commit": base,
            "target": TARGET,
            "commands": {"test": "sh check.sh", "lint": "ruff check 'src", "compile": None, "build": "make -s all"},
            "specs": [{"path": path, "hash": NO_HASH, "locked_at": NOW} for path in (SPEC, "docs/frozen/interface.md")],
            "requirements": {"REQ-02": "the manual is read by people"},
            "verify": {},
            "settings_hash": NO_HASH,
            "agents": "cassette",
            "cassettes": str(cassettes),
            "started_by": "Ada <ada@localhost>",
        }
    )


def pass_of(base: str, **more: Any) -> PhasePass:
    """The first pass of phase 5."""
    said = {"phase": "5", "number": 1, "kind": "whole", "start": base, "checkpoint": base}
    return PhasePass.model_validate(said | more)


def plan() -> PhasePlan:
    """A plan of two tasks."""
    return PhasePlan.model_validate(value_of("003/filled-phase-plan.json"))


@dataclass
class Site:
    """Everything that agents of a run need, in one folder."""

    root: Path
    person: Person
    repository: Repository
    worktrees: Worktrees
    ledger: Ledger
    log: AutopilotLog
    runner: ScriptedRunner
    caps: BudgetCaps = NO_CAPS
    said: Mapping[str, str] = field(default_factory=lambda: {"5": ANSWER})
    others: dict[str, Scripted] = field(default_factory=dict)
    """Agents that are no recordings and keep to nothing, by instance."""

    @classmethod
    def make(cls, root: Path, *, retry: RetryPolicy | None = None) -> "Site":
        """A repository with some files, and a run that has begun."""
        person = Person.in_folder(root)
        person.write("src/token.py", "line = 0\n")
        person.write("README.md", "a lexer\n")
        person.write(SPEC, "REQ-01: tokens carry lines\n")
        person.write("docs/frozen/interface.md", "frozen\n")
        person.write("tests/test_token.py", "def test() -> None: ...\n")
        person.commit()
        (root / "cassettes").mkdir()
        made = cls.open(root)
        order = order_of(person.git("rev-parse", "HEAD"), root / "cassettes")
        made.log.create(order.model_copy(update={"retry": retry or RetryPolicy()}))
        return made

    @classmethod
    def open(cls, root: Path, *answers: ScriptedAnswer) -> "Site":
        """The same again, as another process finds it."""
        person, state = Person(root / "repo", root / "home"), root / "state"
        repository = Repository.open(person.folder)
        ledger = Ledger.open_file(state / "evidence.db", clock=Ticking())
        return cls(
            root=root,
            person=person,
            repository=repository,
            worktrees=Worktrees(repository, Shadow.open(state / "git", repository), state / "worktrees"),
            ledger=ledger,
            log=AutopilotLog(ledger, RUN, clock=Ticking()),
            runner=ScriptedRunner([*answers, ScriptedAnswer("*", Reply(stdout=b"ok\n"))], tier=SandboxTier.NAMESPACES),
        )

    @property
    def base(self) -> str:
        return self.log.order().base_commit

    @property
    def shadow(self) -> Shadow:
        return self.worktrees.shadow

    @cached_property
    def agent_caller(self) -> AgentCaller:
        order = self.log.order()
        state = self.root / "state"
        maker = maker_of(self.worktrees, self.ledger, state, self.runner, RUN, order, Ticking(), caps=self.caps)

        def deps(role: Role, instance: str, folder: Path, base: str) -> DispatchDeps:
            made, other = maker.deps(role, instance, folder, base), self.others.get(instance)
            return made if other is None else replace(made, backend=other, probe=other.probe())

        return caller_of(maker, self.worktrees, RUN, deps=deps, retry=order.retry)

    @cached_property
    def briefs(self) -> AutopilotBriefs:
        return AutopilotBriefs(
            self.log,
            self.repository,
            self.shadow,
            lambda: LESSON,
            answers=lambda phase: self.said.get(phase, ""),
        )

    def folder(self, node: str, attempt: int = 1) -> Path:
        return self.worktrees.create(RUN, node, attempt, self.base).folder

    def script(
        self,
        role: Role,
        instance: str,
        answer: dict[str, Any],
        calls: Calls = (),
        *,
        number: int = 1,
        asked: int = 1,
    ) -> None:
        """What a recorded agent does and returns; one whose answer is no good is asked twice."""
        head = {"cassette": 1, "role": role.value, "instance": instance, "model": "scripted", "prompt": NO_HASH}
        rows: list[dict[str, Any]] = [head]
        for turn, (tool, args) in enumerate(calls):
            made = [{"tool": tool, "args": args, "ok": True}]
            rows.append({"turn": turn, "text": "I do it.", "calls": made, "usage": [900, 60], "ms": 0, "seen": None})
        for turn in range(len(calls), len(calls) + asked):
            last = {"turn": turn, "text": "Done.", "calls": [], "usage": [900, 60], "ms": 0, "seen": None}
            rows.append({**last, "submitted": answer})
        place = self.root / "cassettes" / name_of(role, instance, number)
        place.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def ended(self) -> list[str]:
        """The dispatches that have ended, in their order."""
        return [row.subject for row in self.ledger.observations(RUN, ENDED)]

    def prompt(self, dispatch_id: str) -> str:
        """What an agent was really told."""
        found = ended(self.ledger, RUN, dispatch_id)
        assert found is not None
        assert found.transcript is not None
        digest = found.transcript
        content = Store(self.root / "state").get(f"outputs/{digest.removeprefix('sha256:')}", sha256=digest)
        rows = [json.loads(line) for line in content.decode().splitlines()]
        return str(next(row["text"] for row in rows if row["kind"] == "prompt"))
