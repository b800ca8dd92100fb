"""The engine of a repository, and the runners that its flows need."""

import asyncio
import math
import os
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from fairwitness.app.repository import URL, database_wait_s
from fairwitness.app.state import ledger_in, scratch_root, state_of, worker_ledger_in
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.errors import FairWitnessError, UsageError, is_machine_fault
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.disk_watch import PATIENCE_S, DiskWatch
from fairwitness.ledger.ledger import Ledger

if TYPE_CHECKING:  # imported late: beginning or reading a run needs no engine
    from fairwitness.contracts.graph.orders import AttemptOrder, MergeOrder
    from fairwitness.dag.ports import GraphPorts
    from fairwitness.engine.base import Body, Flow, Json
    from fairwitness.engine.dbos_engine import DbosEngine
    from fairwitness.git.worktrees import Worktrees
    from fairwitness.runs.autopilot.runner import AutopilotRunner
    from fairwitness.runs.feature.runner import FeatureRunner
    from fairwitness.runs.forge.runner import ForgeRunner

FORGE_FLOW, FEATURE_FLOW, AUTOPILOT_FLOW = "forge", "feature", "autopilot"
FLOWS = {
    Workflow.FORGE.value: FORGE_FLOW,
    Workflow.FEATURE.value: FEATURE_FLOW,
    Workflow.AUTOPILOT.value: AUTOPILOT_FLOW,
}
"""The flow that executes a run, by workflow."""
ENGINE = "engine.db"
DISK_WAIT = "FAIRWITNESS_DISK_WAIT"
"""The variable that says how many minutes a run waits for a full disk before it is interrupted."""
CAP = 5
"""The maximum number of concurrent children of one worker: four attempts and a merge."""

EngineCallback = Callable[[str, str], None]
"""Called when this process takes or releases a run or child: with a verb and its id."""
RemarkCallback = Callable[[str], None]
"""Called with a sentence that a person should read once."""


def build_engine(
    root: Path, *, on_event: EngineCallback | None = None, on_remark: RemarkCallback | None = None
) -> "DbosEngine":
    """Return the engine of a repository, on its file or on the server that `FAIRWITNESS_DATABASE_URL` names."""
    from fairwitness.db.postgres import Outage
    from fairwitness.engine.dbos_engine import DbosEngine
    from fairwitness.engine.leases import FenceHolder

    outage, fences = Outage(database_wait_s()), FenceHolder()
    factory = RunnerFactory(
        root, open_ledger=partial(worker_ledger_in, outage=outage, fences=fences), on_remark=on_remark
    )
    flows = factory.flows()
    if on_event is not None:
        flows = {name: _reporting(body, on_event) for name, body in flows.items()}
    place = os.environ.get(URL) or factory.state / ENGINE
    return DbosEngine(place, flows, cap=CAP, disk=factory.disk, outage=outage, fences=fences)


def _disk_wait_s() -> float:
    """Return how long runs wait for a full disk before they are interrupted."""
    said = os.environ.get(DISK_WAIT, "").strip()
    try:
        minutes = float(said) if said else PATIENCE_S / 60
    except ValueError:
        minutes = math.nan
    if not 0 <= minutes < math.inf:
        raise UsageError(f"{DISK_WAIT} is {said!r}", next_step="set it to a number of minutes, such as 15")
    return minutes * 60


def _reporting(body: "Body", on_event: EngineCallback) -> "Body":
    async def reporting(flow: "Flow", args: "Json") -> "Json":
        on_event("took", flow.run_id)
        try:
            value = await body(flow, args)
        except asyncio.CancelledError:
            on_event("let go of", flow.run_id)
            raise
        except Exception as error:
            on_event("interrupted at" if is_machine_fault(error) else "failed at", flow.run_id)
            raise
        on_event("finished", flow.run_id)
        return value

    return reporting


class RunnerFactory:
    """Creates the runners of one repository's runs when they are first needed."""

    def __init__(
        self,
        root: Path,
        *,
        clock: Clock = system_clock,
        open_ledger: Callable[..., Ledger] = ledger_in,
        on_remark: RemarkCallback | None = None,
    ) -> None:
        self.repository = Repository.open(root)
        self._open_ledger = open_ledger
        self._clock = clock
        self._on_remark = on_remark
        self._forge_runners: dict[str, ForgeRunner] = {}
        self._feature_runners: dict[str, FeatureRunner] = {}
        self._autopilot_runners: dict[str, AutopilotRunner] = {}

    def flows(self) -> "dict[str, Body]":
        """Return the flow bodies of the engine by name."""
        from fairwitness.dag.executor import graph_flows
        from fairwitness.workflows.autopilot import PASS_FLOW, autopilot, autopilot_pass
        from fairwitness.workflows.feature import feature
        from fairwitness.workflows.forge import forge

        return {
            FORGE_FLOW: forge(self.forge_runner),
            FEATURE_FLOW: feature(self.feature_runner),
            AUTOPILOT_FLOW: autopilot(self.autopilot_runner),
            PASS_FLOW: autopilot_pass(self.autopilot_runner),
            **graph_flows(self._ports_for),
        }

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger of the repository; open until the process ends."""
        return self._open_ledger(self.state, self.repository, clock=self._clock)

    @cached_property
    def state(self) -> Path:
        """The state folder of the repository."""
        return state_of(self.repository)

    @cached_property
    def disk(self) -> DiskWatch:
        """The disks that runs of this repository write to."""
        return DiskWatch((self.state, self.repository.common_dir), limit_s=_disk_wait_s())

    def forge_runner(self, run_id: str) -> "ForgeRunner":
        """Return the runner of a forge run."""
        if run_id not in self._forge_runners:
            from fairwitness.app.assembly.forge_runner import forge_runner_of

            self._forge_runners[run_id] = forge_runner_of(
                self.repository, self._taken_up(run_id), run_id, clock=self._clock
            )
        return self._forge_runners[run_id]

    def feature_runner(self, run_id: str) -> "FeatureRunner":
        """Return the runner of a feature run."""
        if run_id not in self._feature_runners:
            from fairwitness.app.assembly.feature_runner import feature_runner_of

            self._feature_runners[run_id] = feature_runner_of(
                self.repository, self._taken_up(run_id), run_id, clock=self._clock
            )
        return self._feature_runners[run_id]

    def autopilot_runner(self, run_id: str) -> "AutopilotRunner":
        """Return the runner of an autopilot run."""
        if run_id not in self._autopilot_runners:
            from fairwitness.app.assembly.autopilot_runner import autopilot_runner_of

            self._autopilot_runners[run_id] = autopilot_runner_of(
                self.repository, self._taken_up(run_id), run_id, clock=self._clock
            )
        return self._autopilot_runners[run_id]

    def _taken_up(self, run_id: str) -> Ledger:
        """Return the ledger; the head of the run is anchored, because a killed process may not have come to that.

        If that fails the run goes on, because the next anchor covers this one, and a remark says what failed.
        """
        try:
            failed = self.ledger.anchor(run_id).not_in_git
        except FairWitnessError as error:
            failed = error.what
        if failed is not None and self._on_remark is not None:
            self._on_remark(f"the head of run {run_id} could not be anchored ({failed}); the next anchor covers it")
        return self.ledger

    def _ports_for(self, order: "AttemptOrder | MergeOrder") -> "GraphPorts":
        """Return the ports of a graph. A run with one graph is a forge run; else the order names the graph."""
        if order.phase is None:
            return self.forge_runner(order.run_id)
        if order.run_id in self._autopilot_runners or self._is_autopilot(order.run_id):
            return self.autopilot_runner(order.run_id).graph(int(order.phase))
        return self.feature_runner(order.run_id).graph(int(order.phase))

    def _is_autopilot(self, run_id: str) -> bool:
        first = next(iter(self.ledger.events(run_id)), None)
        return first is not None and first.workflow is Workflow.AUTOPILOT

    def worktrees(self, prefix: str) -> "Worktrees":
        """Return the worktrees of attempts whose branches begin with a prefix."""
        from fairwitness.app.assembly.backends import runner as sandbox_runner
        from fairwitness.git.shadow import Shadow
        from fairwitness.git.worktrees import Worktrees

        shadow = Shadow.open(self.state / "git", self.repository)
        context = scratch_root(self.state, sandbox_runner().tier)
        return Worktrees(self.repository, shadow, context / "worktrees", prefix=prefix)
