"""A forge run with a plan that was sealed, real worktrees for its attempts, and recorded agents that work in them."""

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agents.toolset.kit import real_runner
from fairwitness.agents.base import Backend
from fairwitness.agents.cassette_file import name_of
from fairwitness.app.assembly.parts import DispatchDepsFactory, prover
from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.budgets import NO_CAPS, BudgetCaps
from fairwitness.contracts.common.criteria import CriterionJudgement
from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.policy import RetryPolicy
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.forge.dag import AgentType, Dag, DagMetadata, DagNode, NodeState, NodeType
from fairwitness.contracts.forge.documents import ForgeTask, TaskComplexity
from fairwitness.contracts.forge.events import NodeChanged
from fairwitness.contracts.forge.returns import SpecFile
from fairwitness.contracts.graph.forge_order import ForgeOrder, ForgePlan, ForgeTable
from fairwitness.contracts.graph.orders import (
    AttemptOrder,
    AttemptStart,
    Collision,
    GraphOptions,
    MergeMember,
    Proof,
    Worked,
)
from fairwitness.contracts.verify.checks import DeclaredCheck, VerifySettings
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.git.worktrees import Worktrees
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.dispatch import DispatchDeps, Dispatched
from fairwitness.runs.dispatch.budget_account import ENDED, STARTED
from fairwitness.runs.dispatch.records import ended
from fairwitness.runs.forge.criteria import TaskCriteria
from fairwitness.runs.forge.joins import Joins
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.runs.forge.walkthroughs import SeenAttempts
from fairwitness.runs.forge.worker import ForgeWorker
from fairwitness.runs.shared.agent_calls import AgentCaller
from fairwitness.sandbox.runner import Runner
from fairwitness.sandbox.scripted import Reply, ScriptedAnswer, ScriptedRunner
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout
from fairwitness.verify.subject import VerifyDeps
from git.person import Person
from runs.dispatch.world import Ticking
from support.agent_calls import caller_of, maker_of, verify_deps_of

RUN = "run-2026-02-26-143000"
MOMENT = "2026-02-26T14:30:00Z"
TARGET = f"fairwitness/{RUN}/target"
SECTIONS = ("Summary", "Approach", "Issues Encountered", "Testing")
PARTS: Mapping[str, tuple[AgentType, tuple[str, ...]]] = {
    "task-001": (2, ()),
    "task-002": (3, ("task-001",)),
    "task-003": (1, ()),
    "refinery-001": ("refinery", ("task-001", "task-002")),
}
"""The nodes of the plan: their type, and what they wait for."""

Calls = Sequence[tuple[str, dict[str, Any]]]


def create(path: str, content: str = "x = 1\n") -> tuple[str, dict[str, Any]]:
    """A call that writes a file."""
    return "create_file", {"path": path, "content": content}


def agent(role: str, task: str) -> tuple[str, dict[str, Any]]:
    """A call that starts a helper."""
    return "agent", {"agent": role, "task": task}


def part(name: str, *, type_: int = 1, after: Sequence[str] = (), title: str = "A part") -> tuple[str, dict[str, Any]]:
    """A call that writes a subtask."""
    body = f"## Description\n\nDo {name}.\n"
    return "write_subtask", {"id": name, "title": title, "type": type_, "body": body, "depends_on": list(after)}


def walkthrough(*files: str, **more: Any) -> dict[str, Any]:
    """What an agent tells, without what the harness fills in."""
    return {
        "status": "completed",
        "confidence": 0.9,
        "time_spent_minutes": 1,
        "files_changed": [{"path": path, "reason": "the task asks for it"} for path in files],
        "body": "".join(f"## {title}\n\n{title} of it.\n\n" for title in SECTIONS),
        **more,
    }


def refined(*requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What a refinery returns."""
    empty: dict[str, Any] = {name: [] for name in ("merged_branches", "unmerged", "failing_tests", "fixes")}
    return {**empty, "change_requests": list(requests), "walkthrough": walkthrough(), **more}


def request(title: str, number: str = "cr-001") -> dict[str, Any]:
    """A change request as a refinery returns it."""
    return {
        "id": number,
        "title": title,
        "emitted_by": "refinery-001",
        "emitted_at": MOMENT,
        "status": "pending",
        "reason": "it was forgotten",
        "affected_tasks": ["task-001"],
        "suggested_changes": "one more task",
        "body": "## Description\n\nIt.\n\n## Impact Assessment\n\nSmall.\n\n## Proposed Resolution\n\nA task.\n",
    }


def plan() -> ForgePlan:
    """A plan with a task of each type, a refinery and a spec."""
    nodes = tuple(
        DagNode(
            id=name,
            type=NodeType.REFINERY if kind == "refinery" else NodeType.TASK,
            agentType=kind,
            dependencies=after,
            status=NodeState.PENDING,
            metadata={"writes": ["src/**"]} if name == "task-001" else None,
        )
        for name, (kind, after) in PARTS.items()
    )
    tasks = tuple(
        ForgeTask(
            id=node.id,
            title=f"Do {node.id}",
            type=node.agentType,
            dependencies=node.dependencies,
            acceptance_criteria=("it is done",),
            evidence=(CriterionJudgement(criterion="it is done", command="sh check.sh"),),
            estimated_complexity=TaskComplexity.SMALL,
            status=NodeState.PENDING,
            branch=None,
            attemptId=None,
            body="## Description\n\nIt.\n\n## Context\n\nNone.\n\n## Instructions\n\nNone.\n",
        )
        for node in nodes
    )
    metadata = DagMetadata(createdAt=MOMENT, createdBy="captain", totalTasks=3, totalRefineries=1)
    dag = Dag(version=1, runId=RUN, nodes=nodes, metadata=metadata)
    return ForgePlan(specs=(SpecFile(name="style", body="Keep to the style.\n"),), tasks=tasks, dag=dag)


@dataclass
class Workshop:
    """Everything that the attempts of a run need, in one folder."""

    root: Path
    person: Person
    repository: Repository
    worktrees: Worktrees
    ledger: Ledger
    log: ForgeLog
    store: Store
    runner: ScriptedRunner
    caps: BudgetCaps = NO_CAPS
    others: dict[str, Backend] = field(default_factory=dict)
    """Agents that are asked instead of recordings, by instance."""
    layout: ForgeLayout = field(default_factory=lambda: ForgeLayout(RUN))

    @classmethod
    def make(
        cls,
        root: Path,
        *,
        limits: ForgeTable | None = None,
        retry: RetryPolicy | None = None,
        sealed: ForgePlan | None = None,
        by: str = "Ada",
    ) -> "Workshop":
        """A repository with some files, and a run whose plan was sealed."""
        person = Person.in_folder(root)
        person.write("src/shop.py", "price = 1\n")
        person.write("README.md", "a shop\n")
        person.write(".gitignore", "*.log\n")
        person.commit()
        made = cls.open(root)
        order = ForgeOrder(
            request="Open a shop.",
            slug="shop",
            mode=ApprovalMode.AUTONOMOUS,
            base_commit=person.git("rev-parse", "HEAD"),
            options=GraphOptions(target=TARGET),
            limits=limits or ForgeTable(),
            retry=retry or RetryPolicy(),
            verify=VerifySettings(check=(DeclaredCheck(name="check", argv=("sh", "check.sh")),)),
            settings_hash=f"sha256:{'0' * 64}",
            agents="cassette",
            cassettes=str(root / "cassettes"),
            started_by="Ada",
        )
        (root / "cassettes").mkdir()
        made.log.create(order, repo_url="file:///shop", model="cassette")
        made.log.propose(sealed or plan())
        made.log.seal(sealed or plan(), by)
        return made

    @classmethod
    def open(cls, root: Path) -> "Workshop":
        """The same again, as another process finds it."""
        person, state = Person(root / "repo", root / "home"), root / "state"
        repository = Repository.open(person.folder)
        shadow = Shadow.open(state / "git", repository)
        ledger = Ledger.open_file(state / "evidence.db", clock=Ticking())
        return cls(
            root=root,
            person=person,
            repository=repository,
            worktrees=Worktrees(repository, shadow, state / "worktrees"),
            ledger=ledger,
            log=ForgeLog(ledger, RUN, clock=Ticking()),
            store=Store(person.folder),
            runner=ScriptedRunner([ScriptedAnswer("*", Reply(stdout=b"all is well\n"))], tier=SandboxTier.NAMESPACES),
        )

    def order(
        self,
        node: str,
        attempt: int = 1,
        *,
        includes: tuple[MergeMember, ...] = (),
        conflict: Collision | None = None,
    ) -> AttemptOrder:
        branch = f"fairwitness/{RUN}/{node}/attempt-{attempt}"
        return AttemptOrder(
            run_id=RUN,
            node=node,
            attempt=attempt,
            branch=branch,
            target=TARGET,
            includes=includes,
            conflict=conflict,
        )

    def prepared(self, *conflicts: str) -> AttemptStart:
        base = self.repository.commit("HEAD")
        return AttemptStart(base=base, start=base, conflicts=conflicts)

    def folder(self, node: str, attempt: int = 1) -> Path:
        return self.worktrees.create(RUN, node, attempt, "HEAD").folder

    @property
    def maker(self) -> DispatchDepsFactory:
        state, settings = self.root / "state", self.log.settings()
        return maker_of(self.worktrees, self.ledger, state, self.runner, RUN, settings, Ticking(), caps=self.caps)

    @property
    def caller(self) -> AgentCaller:
        maker = self.maker

        def deps(role: Role, instance: str, folder: Path, base: str) -> DispatchDeps:
            made, other = maker.deps(role, instance, folder, base), self.others.get(instance)
            return made if other is None else replace(made, backend=other, probe=other.probe())

        order = self.log.order()
        assert order is not None
        return caller_of(maker, self.worktrees, RUN, deps=deps, retry=order.retry)

    def prove(self, node: str, attempt: int, *, base: str, head: str) -> Proof:
        """Verifies an attempt as a run does, in a real sandbox."""
        return prover(self._verify_deps(real_runner()), RUN)(
            node, attempt, base=base, head=head, declared=None, stop=threading.Event()
        )

    def _verify_deps(self, runner: Runner) -> VerifyDeps:
        return verify_deps_of(self.worktrees, self.ledger, self.root / "state", runner, self.log.settings(), Ticking())

    def criteria(self) -> TaskCriteria:
        return TaskCriteria(self._verify_deps(self.runner), self.log)

    def joins(self) -> Joins:
        return Joins(self.repository, self.worktrees.shadow, self.log)

    def worker(self) -> ForgeWorker:
        criteria, joins = self.criteria(), self.joins()
        seen = SeenAttempts(self.repository, self.worktrees.shadow)
        return ForgeWorker(self.caller, self.log, self.store, self.repository, criteria, joins, seen)

    def work(self, node: str, attempt: int = 1, *conflicts: str, **more: Any) -> Worked:
        """One attempt of a node by its recorded agent."""
        order = self.order(node, attempt, **more)
        return asyncio.run(self.worker()(order, self.prepared(*conflicts), self.folder(node, attempt)))

    def script(
        self,
        role: Role,
        instance: str,
        calls: Calls = (),
        answer: dict[str, Any] | None = None,
        *,
        number: int = 1,
        fails: Sequence[str] = (),
    ) -> None:
        """What a recorded agent does; the tools in `fails` are those that were refused."""
        files = [args["path"] for tool, args in calls if tool == "create_file" and tool not in fails]
        given = answer if answer is not None else {"walkthrough": walkthrough(*files)}
        rows: list[dict[str, Any]] = [
            {
                "cassette": 1,
                "role": role.value,
                "instance": instance,
                "model": "scripted",
                "prompt": f"sha256:{'0' * 64}",
            }
        ]
        turns = [[{"tool": tool, "args": args, "ok": tool not in fails}] for tool, args in calls]
        for turn, made in enumerate(turns):
            row = {"turn": turn, "text": "I do it.", "calls": made, "usage": [900, 60], "ms": 0, "seen": None}
            rows.append(row)
        last = {"turn": len(turns), "text": "Done.", "calls": [], "usage": [1000, 60], "ms": 0, "seen": None}
        rows.append({**last, "submitted": given})
        place = self.root / "cassettes" / name_of(role, instance, number)
        place.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def begin(self, *nodes: str, attempt: int = 1) -> None:
        """Nodes start."""
        self.tell(
            *(
                NodeChanged(
                    nodeId=node,
                    previousStatus=NodeState.PENDING,
                    newStatus=NodeState.RUNNING,
                    timestamp=MOMENT,
                    attemptId=attempt,
                )
                for node in nodes
            )
        )

    def tell(self, *events: EventData) -> None:
        self.log.write(lambda _now: events)

    def events(self, prefix: str = "") -> list[tuple[str, dict[str, Any]]]:
        """What happened since the plan was sealed."""
        told = [(event.type, event.data) for event in self.ledger.events(RUN)]
        return [each for each in told if each[0].startswith(prefix)][0 if prefix else 3 :]

    def tries(self) -> dict[str, int]:
        """By dispatch, how often it was begun."""
        found: dict[str, int] = {}
        for row in self.ledger.observations(RUN, STARTED):
            found[row.subject] = found.get(row.subject, 0) + 1
        return found

    def ended(self) -> list[str]:
        """The dispatches that have ended, in their order."""
        return [row.subject for row in self.ledger.observations(RUN, ENDED)]

    def result(self, dispatch_id: str) -> Dispatched:
        found = ended(self.ledger, RUN, dispatch_id)
        assert found is not None
        return found

    def transcript(self, dispatch_id: str) -> list[dict[str, Any]]:
        """Everything that happened in a dispatch."""
        digest = self.result(dispatch_id).transcript
        assert digest is not None
        content = Store(self.root / "state").get(f"outputs/{digest.removeprefix('sha256:')}", sha256=digest)
        return [json.loads(line) for line in content.decode().splitlines()]

    def results(self, dispatch_id: str, tool: str) -> list[str]:
        """What an agent was told by a tool."""
        return [
            row["text"] for row in self.transcript(dispatch_id) if row["kind"] == "result" and row.get("tool") == tool
        ]

    def prompt(self, dispatch_id: str) -> str:
        return str(next(row["text"] for row in self.transcript(dispatch_id) if row["kind"] == "prompt"))
