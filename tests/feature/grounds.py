"""A small repository, a recorded team of which some members are faulty, and runs that are carried to their end.

The team carries out one task of the demo, so that a whole run is short: everything before and after it is there.
"""

import asyncio
import copy
import hashlib
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairwitness.agents.base import Backend
from fairwitness.agents.cassette_file import Cassette, name_of, spell
from fairwitness.agents.roles import ROLES
from fairwitness.app.assembly.engine import CAP, ENGINE, FEATURE_FLOW, RunnerFactory
from fairwitness.app.assembly.feature_runner import feature_parts, feature_runner
from fairwitness.app.run_records.feature import feature_context, order_of
from fairwitness.app.runs.begin_feature import RunRequest, begin_feature
from fairwitness.app.runs.drive import drive, record_resumed
from fairwitness.app.state import state_of
from fairwitness.app.views.followed_run import follow_run
from fairwitness.app.views.run import WatchEnd
from fairwitness.contracts.agents.cassette import CassetteCall, CassetteHeader, CassetteTurn
from fairwitness.contracts.agents.dispatch import DispatchOutcome
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.decisions import Decision
from fairwitness.contracts.common.tools import Role, Tool
from fairwitness.contracts.common.vocabulary import Risk
from fairwitness.contracts.feature.review import Category, Perspective, ReviewScope
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.demo.sessions import RecordedCall, RecordedSession, RecordedTurn
from fairwitness.engine.dbos_engine import DbosEngine
from fairwitness.kit.documents import Format, render
from fairwitness.runs.dispatch import DispatchDeps
from fairwitness.runs.dispatch.budget_account import ENDED
from fairwitness.runs.dispatch.records import ended
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.decisions import DECISION, read
from fairwitness.runs.feature.runner import FeatureRunner
from fairwitness.runs.shared.agent_calls import AgentCaller
from fairwitness.runs.shared.read_only_worktrees import ReadOnlyWorktrees
from support import demo_feature as demo
from support.trust import trust

MARK = "quince-marmalade"
"""Stands in everything that a faulty agent says, so that it can be looked for."""
TASK = "task-01"
_NOTHING = "sha256:" + "0" * 64


def _plan() -> RecordedSession:
    answer = copy.deepcopy(demo.PLANNED.answer)
    payload = answer["agent_output"]["payload"]
    payload["tasks"] = [task for task in payload["tasks"] if task["id"] == TASK]
    payload["total_tasks"] = 1
    payload["waves"] = [{"id": "wave-1", "tasks": [TASK], "max_concurrent": 4}]
    payload["dependency_graph"] = {TASK: []}
    payload["overall_risk_summary"] = Risk.GREEN.value
    payload["pre_mortem"] = []
    answer["completion"] |= {"summary": "one task", "risk_level": Risk.GREEN.value}
    document = next(task for task in demo.TASKS if task.id == TASK).document()
    written = RecordedCall(Tool.CREATE_FILE, {"path": demo.LAYOUT.task(TASK), "content": render(document, Format.YAML)})
    return RecordedSession(
        Role.PLANNER, "planner", 1, answer, "One task.", (RecordedTurn("It gets its document.", (written,)),)
    )


def reviewed(perspective: Perspective, scope: ReviewScope, number: int, round_: int = 1) -> RecordedSession:
    """A reviewer who finds nothing."""
    answer: demo.Document = {
        "schema_version": "1.0",
        "reviewer_perspective": perspective.value,
        "scope": scope.value,
        "round": round_,
        "findings": [],
        "clean_categories": [category.value for category in Category],
        "summary": "Nothing is wrong with it.",
    }
    look = RecordedTurn("I open what I judge.", (RecordedCall(Tool.READ_FILE, {"path": "till/payment.py"}),))
    return RecordedSession(Role.REVIEWER, perspective.value, number, answer, "Nothing.", (look,))


PLAN = _plan()
TEAM: tuple[RecordedSession, ...] = (
    *demo.GROUNDWORK,
    demo.SPEC,
    RecordedSession(Role.DESIGNER, "designer", 1, demo.DESIGN.answer, "Values in, values out."),
    *(reviewed(perspective, ReviewScope.DESIGN, 1) for perspective in Perspective),
    PLAN,
    *(session for session in demo.FIRST_ITERATION if session.instance == TASK),
    *(reviewed(perspective, ReviewScope.CODE, 2) for perspective in Perspective),
    demo.KNOWLEDGE,
)
"""One dispatch of each, in the order of the run."""


def of(role: Role, instance: str | None = None, number: int = 1) -> RecordedSession:
    """A good session of the team."""
    return next(
        session
        for session in TEAM
        if session.role is role and session.instance == (instance or session.instance) and session.number == number
    )


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a faulty agent: words, calls, and what it hands in."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    submitted: demo.Document | None = None


def call(tool: str, **args: Any) -> tuple[str, dict[str, Any]]:
    """One use of a tool."""
    return tool, args


def as_turns(session: RecordedSession, *first: Turn) -> tuple[Turn, ...]:
    """A good session, with something done before it."""
    told = tuple(Turn(said.text, tuple(_plain(each) for each in said.calls)) for said in session.turns)
    return (*first, *told, Turn(session.closing_text, submitted=session.answer))


def _plain(made: RecordedCall) -> tuple[str, dict[str, Any]]:
    return made.tool.value, dict(made.args)


def cassette(role: Role, instance: str, turns: Sequence[Turn]) -> bytes:
    """A recording of whatever somebody may say and do."""
    header = CassetteHeader(
        cassette=1, role=role, instance=instance, model="scripted", prompt=_NOTHING, answer=ROLES[role].answer
    )
    rows = tuple(
        CassetteTurn(
            turn=number,
            text=turn.text,
            calls=tuple(CassetteCall(tool=tool, args=args, ok=None) for tool, args in turn.calls),
            submitted=turn.submitted,
            usage=(900, 40),
            ms=0,
            seen=None,
        )
        for number, turn in enumerate(turns)
    )
    return spell(Cassette(header, rows))


@dataclass(frozen=True, slots=True)
class Grounds:
    """A repository and the recordings of its team."""

    top: Path
    cassettes: Path

    @staticmethod
    def lay_out(root: Path, *, settings: str = "") -> "Grounds":
        """The repository of the demo with a branch of somebody else's, and every recording as it should be."""
        top = demo.DEMO.lay_out(root / "till")
        if settings:
            with (top / "fairwitness.toml").open("a") as file:
                file.write(settings)
            git(top, "commit", "-qam", "settings")
            trust(top)
        git(top, "branch", "somebody-elses")
        git(top, "tag", "v1")
        grounds = Grounds(top, root / "cassettes")
        grounds.cassettes.mkdir()
        for session in TEAM:
            grounds.record(session.role, session.instance, session.number, as_turns(session))
        return grounds

    def record(self, role: Role, instance: str, number: int, turns: Sequence[Turn]) -> None:
        """Puts a recording in place."""
        (self.cassettes / name_of(role, instance, number)).write_bytes(cassette(role, instance, turns))

    def fail_first(self, session: RecordedSession, *tries: Sequence[Turn]) -> None:
        """Lets the first sessions of somebody be faulty; the good one comes after them."""
        for number, turns in enumerate(tries, start=session.number):
            self.record(session.role, session.instance, number, turns)
        self.record(session.role, session.instance, session.number + len(tries), as_turns(session))

    def begin(self) -> "Run":
        """A run that is written down and not yet carried."""
        wanted = RunRequest(
            request=demo.DEMO.request,
            slug=demo.DEMO.slug,
            is_autonomous=True,
            agents="cassette",
            cassettes=self.cassettes,
        )
        return Run(self, begin_feature(self.top, wanted).run_id)

    def refs(self) -> dict[str, str]:
        """Every ref that is not a run's own, and where the checkout stands."""
        told = git(self.top, "for-each-ref", "--format=%(refname) %(objectname)")
        rows = (line.split(" ") for line in told.splitlines())
        own = ("fairwitness", "/feature/", "pipeline-baseline")
        found = {name: value for name, value in rows if not any(part in name for part in own)}
        return found | {"HEAD": git(self.top, "symbolic-ref", "HEAD").strip()}

    def all_refs(self) -> dict[str, str]:
        """Every ref there is."""
        told = git(self.top, "for-each-ref", "--format=%(refname) %(objectname)")
        return dict(line.split(" ", 1) for line in told.splitlines())

    def files(self) -> dict[str, str]:
        """The person's own files by their hash: everything but git's folder, the state and the feature's."""
        skipped = {".git", ".fairwitness"}
        found = {}
        for path in sorted(self.top.rglob("*")):
            inside = path.relative_to(self.top)
            if path.is_file() and inside.parts[0] not in skipped and not str(inside).startswith("docs/feature"):
                found[str(inside)] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found

    def feature_files(self) -> dict[str, bytes]:
        """What stands in the feature's folder; the copy of the ledger, which holds every claim, is no document."""
        folder = self.top / demo.LAYOUT.folder
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.startswith("verification-ledger.db")
        }

    def marked(self) -> list[str]:
        """Files of the feature's folder in which a faulty agent's words stand."""
        return [name for name, content in self.feature_files().items() if MARK.encode() in content or MARK in name]


@dataclass(frozen=True, slots=True)
class Run:
    """One run, carried by the real engine in this process."""

    grounds: Grounds
    run_id: str

    def carry(self) -> WatchEnd:
        """To its end; one that had ended goes on first, as `fairwitness resume` has it."""
        top = self.grounds.top
        with follow_run(top, self.run_id) as followed:
            if followed.view.is_over:
                record_resumed(top, followed.view)
            end = drive(top, followed, lambda *_: None)
        assert isinstance(end, WatchEnd), f"a signal ended it: {end}"
        return end

    @contextmanager
    def _context(self) -> Iterator[FeatureContext]:
        factory = RunnerFactory(self.grounds.top)
        ledger = factory.ledger
        try:
            order, _ = order_of(ledger, self.run_id)
            yield feature_context(factory.repository, ledger, self.run_id, order)
        finally:
            ledger.close()

    def state(self) -> FeatureState:
        """As its events tell it."""
        with self._context() as context:
            return context.state()

    def decisions(self) -> list[Decision]:
        """Every decision, in order."""
        with self._context() as context:
            rows = context.ledger.observations(self.run_id, DECISION)
            return [read(row) for row in sorted(rows, key=lambda row: int(row.key.rpartition(":")[2]))]

    def events(self, kind: str | None = None) -> list[Any]:
        """Events in their order."""
        with self._context() as context:
            return [event for event in context.ledger.events(self.run_id) if kind is None or event.type == kind]

    def outcomes(self) -> dict[str, DispatchOutcome]:
        """What came of each dispatch that ended."""
        with self._context() as context:
            ids = [row.subject for row in context.ledger.observations(self.run_id, ENDED)]
            found = {id_: ended(context.ledger, self.run_id, id_) for id_ in ids}
            return {id_: done.outcome for id_, done in found.items() if done is not None}

    def transcript(self, dispatch_id: str) -> str:
        """Everything that was said and done in a dispatch."""
        with self._context() as context:
            done = ended(context.ledger, self.run_id, dispatch_id)
            assert done is not None
            assert done.transcript is not None
            return context.kept_bytes(done.transcript).decode()

    def observations(self, kind: str) -> list[Any]:
        """Rows of a kind."""
        with self._context() as context:
            return list(context.ledger.observations(self.run_id, kind))


@dataclass(frozen=True, slots=True)
class Otherwise:
    """Agents that are no recordings, or that have less time than they should."""

    roles: dict[Role, RoleSpec]
    backends: dict[Role, Callable[[Path], Backend]]
    """Given the folder of the recordings."""


class OwnFactory(RunnerFactory):
    """The world of a feature run, with some of its agents exchanged."""

    def __init__(self, root: Path, otherwise: Otherwise) -> None:
        super().__init__(root)
        self._otherwise = otherwise
        self._runner: FeatureRunner | None = None

    def feature_runner(self, run_id: str) -> FeatureRunner:
        """As the app makes it, but for the caller."""
        if self._runner is None:
            self._runner = self._own(run_id)
        return self._runner

    def _own(self, run_id: str) -> FeatureRunner:
        roles = {**ROLES, **self._otherwise.roles}
        parts = feature_parts(self.repository, self.ledger, run_id, roles=roles)
        order = order_of(self.ledger, run_id)[0]
        caller, worktrees = parts.caller, parts.repo.worktrees

        def deps(role: Role, instance: str, folder: Path, base: str) -> DispatchDeps:
            made = caller.deps_for(role, instance, folder, base)
            other = self._otherwise.backends.get(role)
            return made if other is None else replace(made, backend=other(Path(order.cassettes or "")))

        readers = ReadOnlyWorktrees(worktrees, run_id, parts.repo.identity)
        parts.caller = AgentCaller(caller.context, deps, readers, order.policy.retry, roles=roles)
        return feature_runner(feature_context(self.repository, self.ledger, run_id, order), parts)


def carry_otherwise(run: Run, otherwise: Otherwise) -> str:
    """Carries a run that was never carried with other agents; what its engine says in the end."""

    async def carried() -> str:
        factory = OwnFactory(run.grounds.top, otherwise)
        engine = DbosEngine(state_of(factory.repository) / ENGINE, factory.flows(), cap=CAP)
        await engine.open(worker=True)
        try:
            await engine.submit(run.run_id, FEATURE_FLOW, {"run_id": run.run_id})
            while True:
                outcome = await engine.outcome(run.run_id)
                if outcome is not None:
                    return outcome.error or outcome.status.value
                await asyncio.sleep(0.1)
        finally:
            await engine.close()
            factory.ledger.close()

    return asyncio.run(carried())


def git(folder: Path, *arguments: str, given: str | None = None) -> str:
    """Git as the person at the keyboard."""
    person = {f"GIT_{who}_{what}": "ada" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    told = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        input=given,
        env={**os.environ, **person},
    )
    return told.stdout
