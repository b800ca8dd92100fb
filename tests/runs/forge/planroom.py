"""A forge run that has just begun in a real repository, with a captain who says what was recorded."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairwitness.agents.cassette_file import NO_PROMPT, name_of
from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.forge.documents import ChangeRequest
from fairwitness.contracts.forge.events import ForgeRunStarted
from fairwitness.contracts.forge.returns import CaptainReturn
from fairwitness.contracts.graph.forge_order import ForgeOrder, ForgePlan, ForgeTable
from fairwitness.contracts.graph.orders import GraphOptions
from fairwitness.contracts.verify.checks import DeclaredCheck, VerifySettings
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.git.worktrees import Worktrees
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.dispatch.budget_account import ENDED, STARTED
from fairwitness.runs.dispatch.records import ended
from fairwitness.runs.forge.captain import ForgeCaptain
from fairwitness.runs.forge.change_requests import emit
from fairwitness.runs.forge.criteria import TaskCriteria
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.runs.forge.plan_files import plan_of
from fairwitness.sandbox.scripted import ScriptedRunner
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout
from git.person import Person
from runs.dispatch.world import Ticking
from support.agent_calls import caller_of, maker_of, verify_deps_of

RUN = "2026-02-26T14:30:00Z"
MOMENT = "2026-02-26T14:30:00Z"
ADA = "Ada <ada@example.org>"
BODY = "## Description\n\nIt.\n\n## Context\n\nNone.\n\n## Instructions\n\nNone.\n"
WAITS: Mapping[str, tuple[str, ...]] = {
    "task-001": (),
    "task-002": ("task-001",),
    "refinery-001": ("task-001", "task-002"),
}


def node(name: str, *others: str) -> dict[str, Any]:
    """A node that an agent drew."""
    is_refinery = name.startswith("refinery")
    return {
        "id": name,
        "type": "refinery" if is_refinery else "task",
        "agentType": "refinery" if is_refinery else 2,
        "dependencies": list(others),
        "status": "PENDING",
    }


def task(name: str, *others: str, **more: Any) -> dict[str, Any]:
    """The document of a task, as an agent returns it."""
    return {
        "id": name,
        "title": f"The part {name}",
        "type": 2,
        "dependencies": list(others),
        "acceptance_criteria": ["a test is green"],
        "estimated_complexity": "small",
        "status": "PENDING",
        "branch": None,
        "attemptId": None,
        "body": BODY,
        **more,
    }


def planned(
    waits: Mapping[str, Sequence[str]] = WAITS,
    *,
    specs: Mapping[str, str] | None = None,
    questions: Sequence[str] = (),
    tasks: Sequence[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """A plan as the captain returns it, without what the harness fills in."""
    named = [name for name in waits if not name.startswith("refinery")]
    bodies = {"api": "# The interface\n\nOne call.\n"} if specs is None else specs
    return {
        "specs": [{"name": name, "body": body} for name, body in bodies.items()],
        "tasks": [task(name, *waits[name]) for name in named] if tasks is None else list(tasks),
        "dag": {
            "nodes": [node(name, *others) for name, others in waits.items()],
            "metadata": {"totalTasks": len(named), "totalRefineries": len(waits) - len(named)},
        },
        "assumptions": ["the till stays as it is"],
        "open_questions": list(questions),
    }


def added(*names: str, after: str = "task-001") -> dict[str, Any]:
    """What the captain adds for a change request."""
    overlay = {"crId": "cr-999", "appliedAt": MOMENT, "addedNodes": [node(name, after) for name in names]}
    return {
        "specs": [],
        "tasks": [task(name, after) for name in names],
        "overlay": {**overlay, "addedEdges": []},
        "assumptions": [],
        "open_questions": [],
    }


def rejected(reason: str) -> dict[str, Any]:
    """An answer that turns a request down."""
    return {"specs": [], "tasks": [], "rejected": reason, "assumptions": [], "open_questions": []}


def as_plan(answer: dict[str, Any] | None = None, run_id: str = RUN) -> ForgePlan:
    """A captain's answer as it is stored."""
    plain = planned() if answer is None else answer
    dag = plain["dag"] | {"version": 1, "runId": run_id}
    dag["metadata"] = dag["metadata"] | {"createdAt": MOMENT, "createdBy": "captain"}
    return plan_of(CaptainReturn.model_validate(plain | {"dag": dag}))


@dataclass
class PlanRoom:
    """Everything that planning needs, in one folder."""

    root: Path
    repository: Repository
    worktrees: Worktrees
    ledger: Ledger
    log: ForgeLog
    store: Store
    layout: ForgeLayout = field(default_factory=lambda: ForgeLayout(RUN))

    @classmethod
    def make(
        cls, root: Path, *, mode: ApprovalMode = ApprovalMode.INTERACTIVE, limits: ForgeTable | None = None
    ) -> "PlanRoom":
        """A repository with some files, and a run that was asked for."""
        person = Person.in_folder(root)
        person.write("README.md", "a shop\n")
        person.commit()
        (root / "cassettes").mkdir()
        made = cls.open(root)
        order = ForgeOrder(
            request="Open a shop.",
            slug="shop",
            mode=mode,
            base_commit=person.git("rev-parse", "HEAD"),
            options=GraphOptions(target="fairwitness/target"),
            limits=limits or ForgeTable(),
            verify=VerifySettings(check=(DeclaredCheck(name="tests", argv=("sh", "check.sh")),)),
            settings_hash=NO_PROMPT,
            agents="cassette",
            cassettes=str(root / "cassettes"),
            started_by=ADA,
        )
        made.log.create(order, repo_url="file:///shop", model="cassette")
        return made

    @classmethod
    def open(cls, root: Path) -> "PlanRoom":
        """The same again, as another process finds it."""
        repository = Repository.open(root / "repo")
        shadow = Shadow.open(root / "state" / "git", repository)
        ledger = Ledger.open_file(root / "state" / "evidence.db", clock=Ticking())
        return cls(
            root=root,
            repository=repository,
            worktrees=Worktrees(repository, shadow, root / "state" / "worktrees"),
            ledger=ledger,
            log=ForgeLog(ledger, RUN, clock=Ticking()),
            store=Store(root / "repo"),
        )

    def captain(self) -> ForgeCaptain:
        """The captain, as a new process makes him."""
        runner = ScriptedRunner((), tier=SandboxTier.NAMESPACES)
        state, settings = self.root / "state", self.log.settings()
        maker = maker_of(self.worktrees, self.ledger, state, runner, RUN, settings, Ticking())
        verify = verify_deps_of(self.worktrees, self.ledger, state, runner, settings, Ticking())
        criteria = TaskCriteria(verify, self.log)
        return ForgeCaptain(caller_of(maker, self.worktrees, RUN), self.log, self.store, self.layout, criteria)

    def plan(self) -> None:
        asyncio.run(self.captain().plan())

    def replan(self, cr_id: str = "cr-001") -> None:
        asyncio.run(self.captain().replan(cr_id))

    def script(self, instance: str, *answers: dict[str, Any], number: int = 1) -> None:
        """What the captain says in his n-th session under a name; a second answer is given when he is asked again."""
        header = {"cassette": 1, "role": "captain", "instance": instance, "model": "scripted", "prompt": NO_PROMPT}
        turns = [{"text": "Done.", "calls": [], "submitted": answer} for answer in answers]
        rows = [header, *({"turn": at, "usage": [9, 9], "ms": 0, "seen": None, **row} for at, row in enumerate(turns))]
        file = self.root / "cassettes" / name_of(Role.CAPTAIN, instance, number)
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def start(self, answer: dict[str, Any] | None = None) -> None:
        """A plan is proposed, sealed and begun."""
        plan = as_plan(answer)
        self.log.propose(plan)
        self.log.seal(plan, ADA)
        self.log.write(lambda _now: (ForgeRunStarted(),))

    def request(self) -> str:
        """A refinery asks for more."""
        body = "## Description\n\nIt.\n\n## Impact Assessment\n\nSmall.\n\n## Proposed Resolution\n\nA task.\n"
        request = ChangeRequest.model_validate(
            {
                "id": "cr-001",
                "title": "Clashes",
                "emitted_by": "refinery-001",
                "emitted_at": MOMENT,
                "status": "pending",
                "reason": "it was forgotten",
                "affected_tasks": ["task-001"],
                "suggested_changes": "one more task",
                "body": body,
            }
        )
        return emit(self.log, "refinery-001", 1, (request,))[0]

    def types(self) -> list[str]:
        """What happened, but for the beginning."""
        return [event.type for event in self.ledger.events(RUN)][1:]

    def said(self, type_: str) -> dict[str, Any]:
        """The last event of a type."""
        last = self.ledger.last_event(RUN, type_)
        assert last is not None
        return dict(last.data)

    def tries(self) -> list[str]:
        """Every dispatch that was begun, in order."""
        return [row.subject for row in self.ledger.observations(RUN, STARTED)]

    def ended(self) -> list[str]:
        """Every dispatch that has ended, in order."""
        return [row.subject for row in self.ledger.observations(RUN, ENDED)]

    def prompt(self, dispatch_id: str) -> str:
        """What the captain was told first."""
        return self.prompts(dispatch_id)[0]

    def prompts(self, dispatch_id: str) -> list[str]:
        """All that the captain was told in one conversation."""
        found = ended(self.ledger, RUN, dispatch_id)
        assert found is not None
        assert found.transcript is not None
        digest = found.transcript
        content = Store(self.root / "state").get(f"outputs/{digest.removeprefix('sha256:')}", sha256=digest)
        rows = [json.loads(line) for line in content.decode().splitlines()]
        return [str(row["text"]) for row in rows if row["kind"] == "prompt"]

    def path(self, *parts: str) -> Path:
        """A file of the run's folder."""
        return self.store.root.joinpath(self.layout.folder, *parts)
