"""Autopilot runs of the tests: carried by the real engine in this process, and what stands on record of them after."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autopilot.sessions import Document
from fairwitness.agents.roles import ROLES
from fairwitness.app.assembly.autopilot_runner import autopilot_caps, autopilot_runner
from fairwitness.app.assembly.engine import AUTOPILOT_FLOW, CAP, ENGINE, RunnerFactory
from fairwitness.app.assembly.parts import RunParts
from fairwitness.app.run_records.autopilot import AutopilotRunRecord, open_autopilot_run, resume_autopilot
from fairwitness.app.runs.drive import drive, record_resumed
from fairwitness.app.state import state_of
from fairwitness.app.views.followed_run import follow_run
from fairwitness.app.views.run import WatchEnd
from fairwitness.contracts.agents.dispatch import DispatchOutcome
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.autopilot.passes import PassDecision, PhasePass
from fairwitness.contracts.autopilot.state import State
from fairwitness.contracts.common.tools import Role
from fairwitness.engine.dbos_engine import DbosEngine
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.runs.autopilot.runner import AutopilotRunner
from fairwitness.runs.dispatch.budget_account import ENDED
from fairwitness.runs.dispatch.records import ended
from fairwitness.store.artifacts import Store
from feature.grounds import git


@dataclass(frozen=True, slots=True)
class Run:
    """One run, carried by the real engine in this process."""

    top: Path
    run_id: str

    def carry(self) -> WatchEnd:
        """To its end, or until it waits; one that had ended goes on first, as `fairwitness resume` has it."""
        with follow_run(self.top, self.run_id) as followed:
            if followed.view.is_over or followed.view.status == "paused":
                record_resumed(self.top, followed.view)
            end = drive(self.top, followed, lambda *_: None)
        assert isinstance(end, WatchEnd), f"a signal ended it: {end}"
        return end

    def resume(self, *, clock: Clock = system_clock) -> bool:
        """Writes down that it goes on; `NotReady` while its breaker cools down."""
        return resume_autopilot(self.top, self.run_id, clock=clock)

    @contextmanager
    def context(self) -> Iterator[AutopilotRunRecord]:
        """The run's book and files."""
        with open_autopilot_run(self.top, self.run_id) as context:
            yield context

    def rows(self, kind: str | None = None) -> list[Any]:
        """Events with everything that stands around them, in their order."""
        with self.context() as context:
            return [event for event in context.log.ledger.events(self.run_id) if kind in (None, event.type)]

    def events(self, kind: str | None = None, **data: Any) -> list[Document]:
        """What the events of a kind say, in their order; only those that say this, too."""
        found = [event.data for event in self.rows(kind)]
        return [each for each in found if all(each.get(name) == value for name, value in data.items())]

    def types(self) -> list[str]:
        """What happened, by its kind."""
        return [event.type for event in self.rows()]

    def state(self) -> State:
        """As its events tell it."""
        with self.context() as context:
            return context.log.state().state

    def statuses(self) -> dict[str, str]:
        """How the phases stand."""
        return {phase: record.status.value for phase, record in self.state().phases.items()}

    def passes(self) -> tuple[PhasePass, ...]:
        """Every pass that was begun."""
        with self.context() as context:
            return context.log.passes()

    def verdicts(self) -> tuple[PassDecision, ...]:
        """What followed from the passes."""
        with self.context() as context:
            return context.log.verdicts()

    def observations(self, kind: str) -> list[Any]:
        """Rows of a kind."""
        with self.context() as context:
            return list(context.log.ledger.observations(self.run_id, kind))

    def steps(self) -> list[tuple[str, str, bool]]:
        """The steps that ended: their pass, what they were, and whether they were good."""
        found = [(row.subject, row.detail["document"]) for row in self.observations("step")]
        return [(name, plain["step"], plain["good"]) for name, plain in found]

    def outcomes(self) -> dict[str, DispatchOutcome]:
        """What came of each dispatch that ended, in their order."""
        with self.context() as context:
            ledger = context.log.ledger
            names = [row.subject for row in ledger.observations(self.run_id, ENDED)]
            found = {name: ended(ledger, self.run_id, name) for name in names}
            return {name: done.outcome for name, done in found.items() if done is not None}

    def transcript(self, dispatch_id: str) -> str:
        """Everything that was said and done in a dispatch, prompts included."""
        with self.context() as context:
            done = ended(context.log.ledger, self.run_id, dispatch_id)
            assert done is not None
            assert done.transcript is not None
            kept = Store(state_of(context.repository))
            return kept.get(f"outputs/{done.transcript.removeprefix('sha256:')}", sha256=done.transcript).decode()

    def file(self, path: str) -> str:
        """A file of the checkout, in which the run's own folders are."""
        return (self.top / path).read_text()

    @property
    def target(self) -> str:
        """The run's own branch."""
        return f"fairwitness/{self.run_id}/target"

    def parts(self) -> set[str]:
        """The parts on the branch of the run."""
        listed = git(self.top, "ls-tree", "-r", "--name-only", self.target, "parts/")
        return {line.removeprefix("parts/") for line in listed.splitlines()} - {"first"}

    def carry_with(self, *, clock: Clock = system_clock, roles: Mapping[Role, RoleSpec] | None = None) -> str:
        """The same for a run that was never carried, by another clock or with other roles; what its engine says."""

        async def carried() -> str:
            factory = _Other(self.top, clock, {**ROLES, **(roles or {})})
            engine = DbosEngine(state_of(factory.repository) / ENGINE, factory.flows(), cap=CAP)
            await engine.open(worker=True)
            try:
                await engine.submit(self.run_id, AUTOPILOT_FLOW, {"run_id": self.run_id})
                while True:
                    outcome = await engine.outcome(self.run_id)
                    if outcome is not None:
                        return outcome.error or outcome.status.value
                    await asyncio.sleep(0.1)
            finally:
                await engine.close()
                factory.ledger.close()

        return asyncio.run(carried())


class _Other(RunnerFactory):
    """The world of an autopilot run, with its clock and its roles exchanged."""

    def __init__(self, root: Path, clock: Clock, roles: Mapping[Role, RoleSpec]) -> None:
        super().__init__(root, clock=clock)
        self._own_clock, self._roles = clock, roles
        self._runner: AutopilotRunner | None = None

    def autopilot_runner(self, run_id: str) -> AutopilotRunner:
        """As the app makes it, but for the roles."""
        if self._runner is None:
            self._runner = self._own(run_id)
        return self._runner

    def _own(self, run_id: str) -> AutopilotRunner:
        log = AutopilotLog(self.ledger, run_id, clock=self._own_clock)
        order = log.order()
        parts = RunParts(
            self.repository,
            self.ledger,
            run_id,
            order,
            order.retry,
            caps=autopilot_caps(order, log.budget()),
            roles=self._roles,
            clock=self._own_clock,
        )
        return autopilot_runner(log, parts)
