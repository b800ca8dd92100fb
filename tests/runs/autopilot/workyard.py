"""A run that is about to carry out a phase: recorded agents, commands in a real sandbox, graphs on an engine."""

import asyncio
import shutil
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from fairwitness.app.assembly.backends import runner
from fairwitness.app.settings.verify import verify_settings
from fairwitness.app.state import scratch_root
from fairwitness.contracts.autopilot.events_phase import PhaseStarted, PhaseStepStarted, TaskRetried
from fairwitness.contracts.autopilot.events_run import AutopilotRunResumed
from fairwitness.contracts.autopilot.passes import PhasePass
from fairwitness.contracts.autopilot.plan import PlanTask
from fairwitness.contracts.autopilot.vocabulary import StepName
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart, Collision, GraphEnd, Proof, Worked
from fairwitness.dag.executor import execute_graph, graph_flows
from fairwitness.engine.base import Flow, Json
from fairwitness.errors import NotReady
from fairwitness.git.candidates import Candidates
from fairwitness.git.identity import FALLBACK
from fairwitness.runs.autopilot.commands import CommandHarness
from fairwitness.runs.autopilot.execution import NodeExecutor
from fairwitness.runs.autopilot.graph_runner import AutopilotGraphRunner
from fairwitness.runs.autopilot.log import LoggedEvent, new_event
from fairwitness.runs.autopilot.task_graphs import TaskNode, begin_graph, graph_of, rest_of
from fairwitness.runs.dispatch import Dispatched
from fairwitness.runs.dispatch.budget_account import STARTED
from fairwitness.runs.dispatch.records import ended
from fairwitness.runs.graph.repo_context import RepoContext
from fairwitness.sandbox.runner import Runner
from fairwitness.verify.subject import VerifyDeps
from runs.autopilot.site import RUN, TARGET, Calls, Site, pass_of
from support.engine.raw_engine import RawEngine

SECRET = "WORD-OF-THE-EXECUTOR-4711"
"""Stands in everything that an executor returns."""


def task(name: str = "a", **more: Any) -> PlanTask:
    """A task that writes one file, which has to say `good`; its script is told by what it prints."""
    path = f"src/{name}.py"
    said: dict[str, Any] = {
        "id": name,
        "kind": "auto",
        "complexity": "simple",
        "wave": 1,
        "files": [path],
        "action": f"Write {path}.",
        "criteria": [{"criterion": f"{path} is there", "command": f"test -e {path}"}],
        "done": "It is there.",
        "requirements": ["REQ-01"],
        "script": f"grep -q good {path} && echo PASS || {{ echo FAIL: {path} is no good >&2; exit 1; }}\n",
    }
    return PlanTask.model_validate(said | more)


def node(name: str = "a", **more: Any) -> TaskNode:
    """The node of such a task."""
    about = task(name, **more)
    return TaskNode(id=f"p5-{name}", role=Role.EXECUTOR, task=about, wave=about.wave)


def create(path: str, content: str = "good = 1\n") -> tuple[str, dict[str, Any]]:
    """A call that writes a file."""
    return "create_file", {"path": path, "content": content}


def executed(name: str = "a", *claims: str, done: bool = True) -> dict[str, Any]:
    """What an executor returns, with a word in each of its texts that nobody else should read."""
    evidence = {"task_id": name, "criteria_met": [f"all -- {SECRET}"], "commands_run": [f"true -> {SECRET}", *claims]}
    completed, failed = ("1/1", "0/1") if done else ("0/1", "1/1")
    return {"tasks_completed": completed, "tasks_failed": failed, "evidence": [evidence], "deviations": [SECRET]}


def checked(name: str = "a", *, passes: bool = True, ran: bool = True) -> dict[str, Any]:
    """What the check of a task returns; it ran the file's command, which its brief has to name, or only looked."""
    result = {
        "criterion": f"src/{name}.py is there",
        "status": "pass" if passes else "fail",
        "evidence": f"src/{name}.py:1 -- it stands there",
        "command": f"test -e src/{name}.py",
        "command_output": "",
    }
    told = (
        f"test -e src/{name}.py -> {'passed' if passes else 'it is hollow'}" if ran else f"cat src/{name}.py -> 1 line"
    )
    return {"pass": passes, "criteria_results": [result], "concerns": [], "commands_run": [told]}


MENDED: dict[str, Any] = {"fixed": True, "changes": ["src/a.py"], "remaining_issues": [], "failure_categories": []}


class Yard(Site):
    """Everything that the tasks of a phase need."""

    proof: Proof = Proof(holds=True, reasons=())
    """What the project's own checks say."""

    @cached_property
    def sandbox(self) -> Runner:
        return runner()

    @cached_property
    def harness(self) -> CommandHarness:
        state = self.root / "state"
        settings, digest = verify_settings(self.repository.top, user=self.root / "home" / "none.toml")
        parts = VerifyDeps(
            repository=self.repository,
            runner=self.sandbox,
            shadow=self.shadow,
            ledger=self.ledger,
            state=state,
            scratch=scratch_root(state, self.sandbox.tier),
            settings=settings,
            digest=digest,
        )
        return CommandHarness(self.log, parts, {}, 20)

    @property
    def asked(self) -> PhasePass:
        return pass_of(self.base)

    def start_phase(self) -> None:
        """The phase is in progress, and at its step."""
        now = self.log.now()
        started = new_event(PhaseStarted, now, phase="5")
        self.log.append(
            LoggedEvent(started), LoggedEvent(new_event(PhaseStepStarted, now, phase="5", step=StepName.EXECUTE))
        )

    def begin(self, *nodes: TaskNode, purpose: str = "execute-1", asked: PhasePass | None = None) -> int:
        return begin_graph(self.log, asked or self.asked, purpose, nodes, self.base)

    @property
    def world(self) -> RepoContext:
        candidates = Candidates(self.repository, self.shadow)
        return RepoContext(self.repository, self.worktrees, candidates, self.root / "state" / "locks", FALLBACK)

    def executing(self, number: int) -> NodeExecutor:
        graph = graph_of(self.log, number)
        return NodeExecutor(self.log, graph, self.repository, self.shadow, self.harness, self.agent_caller, self.briefs)

    def graph_runner(self, number: int) -> AutopilotGraphRunner:
        graph = graph_of(self.log, number)
        return AutopilotGraphRunner(self.world, self.log, graph, self.executing(number), self._prove)

    def _prove(
        self, task: str, round_: int, *, base: str, head: str, declared: tuple[str, ...] | None, stop: threading.Event
    ) -> Proof:
        return self.proof

    def order(self, name: str, number: int = 1, *, conflict: Collision | None = None) -> AttemptOrder:
        attempt = graph_of(self.log, number).attempt
        return AttemptOrder(
            run_id=RUN,
            node=name,
            attempt=attempt,
            branch=f"fairwitness/{RUN}/{name}/attempt-{attempt}",
            target=TARGET,
            phase=str(number),
            conflict=conflict,
        )

    def work(self, name: str = "p5-a", number: int = 1, *conflicts: str, conflict: Collision | None = None) -> Worked:
        """The agents' part of an attempt."""
        order = self.order(name, number, conflict=conflict)
        prepared = AttemptStart(base=self.base, start=self.base, conflicts=conflicts)
        return asyncio.run(self.executing(number)(order, prepared, self.folder(name, order.attempt)))

    def carry(self, number: int) -> GraphEnd:
        """A graph from where it stands to its end."""
        return asyncio.run(self._carry(number))

    async def _carry(self, number: int) -> GraphEnd:
        graph_runner = self.graph_runner(number)

        async def body(flow: Flow, _args: Json) -> Json:
            async def go() -> Json:
                return (await execute_graph(flow, graph_runner, RUN, await graph_runner.options())).plain()

            return await flow.step("graph", go)

        engine = RawEngine(self.root / "journal.db", {"main": body, **graph_flows(lambda _order: graph_runner)})
        await engine.open(worker=True)
        try:
            await engine.submit(f"main-{number}", "main", None)
            while (outcome := await engine.outcome(f"main-{number}")) is None:  # noqa: ASYNC110 -- it is looked up
                await asyncio.sleep(0.02)
        finally:
            await engine.close()
        assert not outcome.error, outcome.error
        return GraphEnd.model_validate(outcome.value)

    def plays(self, name: str = "a", *contents: str, attempt: int = 1, passes: Sequence[bool] = ()) -> None:
        """Records an executor that leaves the first content, its check, and a debugger with a check for each other."""
        node_id = f"p5-{name}"
        for number, content in enumerate(contents or ("good = 1\n",)):
            calls: Calls = [create(f"src/{name}.py", content)] if content else []
            if number:
                self.script(Role.DEBUGGER, f"{node_id}-{attempt}-debug-{number}", MENDED, calls)
            else:
                self.script(Role.EXECUTOR, f"{node_id}-{attempt}", executed(name), calls)
            good = passes[number] if number < len(passes) else True
            self.script(Role.MINI_VERIFIER, f"{node_id}-{attempt}-check-{number}", checked(name, passes=good))

    def tries(self) -> dict[str, int]:
        """By dispatch, how often it was begun."""
        found: dict[str, int] = {}
        for row in self.ledger.observations(RUN, STARTED):
            found[row.subject] = found.get(row.subject, 0) + 1
        return found

    def told(self, *types: str) -> list[tuple[str, dict[str, Any]]]:
        """Events of some types, in order."""
        return [(event.type, dict(event.data)) for event in self.ledger.events(RUN) if event.type in types]

    def tell_retry(self, number: int) -> None:
        """A task of another phase was tried again."""
        event = new_event(TaskRetried, self.log.now(), phase="6", step=StepName.EXECUTE, task="x", attempt=number + 1)
        self.log.append(LoggedEvent(event))

    def resume(self) -> None:
        """Somebody goes on with the run."""
        self.log.append(LoggedEvent(new_event(AutopilotRunResumed, self.log.now())))

    def rest(self, number: int) -> tuple[TaskNode, ...]:
        return rest_of(self.log, number)

    def result(self, dispatch_id: str) -> Dispatched:
        found = ended(self.ledger, RUN, dispatch_id)
        assert found is not None
        return found

    def shows(self, commit: str, path: str) -> str:
        return self.person.git("show", f"{commit}:{path}")


def copied(root: Path, to: Path) -> Path:
    """A yard that nobody has open, once more."""
    for name in ("repo", "home", "state", "cassettes"):
        if (root / name).exists():
            shutil.copytree(root / name, to / name, symlinks=True)
    return to


def opened(root: Path) -> Yard:
    """The yard that stands in a folder, as another process finds it."""
    return Yard.open(root)  # type: ignore[return-value]  # it says that it opens a site, and opens what it is called on


def made(root: Path) -> Yard:
    """A yard whose phase is in progress; whoever asked closes its ledger."""
    Yard.make(root).ledger.close()
    yard = opened(root)
    try:
        assert yard.sandbox.tier
    except NotReady as error:
        yard.ledger.close()
        pytest.skip(f"no sandbox: {error.what}")
    yard.start_phase()
    return yard
