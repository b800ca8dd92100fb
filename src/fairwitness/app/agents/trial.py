"""A trial of one role on a bundled repository, with real git, sandbox and agent and none of the person's files."""

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairwitness.agents.base import OnHappening
from fairwitness.agents.recorder import recorded_backend
from fairwitness.agents.roles import ROLES
from fairwitness.app.assembly.agent_choice import Prober, chosen, instance_of, settings_of
from fairwitness.app.assembly.backends import backend as backend_named
from fairwitness.app.assembly.backends import runner
from fairwitness.app.assembly.models import GatewayModels, NoModels, route_of
from fairwitness.app.settings.agents import CASSETTE, role_named
from fairwitness.app.state import scratch_root
from fairwitness.contracts.agents.dispatch import Brief, ChangedPath, DispatchOutcome, Probe, PromptSection
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.agents.settings import AgentsSettings, ModelChoice
from fairwitness.contracts.catalog import entry_of
from fairwitness.contracts.common.budgets import NO_CAPS
from fairwitness.contracts.common.tools import POLICIES, Role, Scope
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.feature.document import SignedDocument
from fairwitness.contracts.verify.checks import VerifySettings
from fairwitness.errors import NotReady, UsageError
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.git.worktrees import Worktrees
from fairwitness.kit.clock import Clock, spell, system_clock
from fairwitness.kit.disk_watch import DiskWatch
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.dispatch import DispatchContext, DispatchDeps, Dispatched, DispatchPosition, dispatch
from fairwitness.runs.dispatch.budget_account import budget_of, of_dispatches
from fairwitness.runs.dispatch.events import NoEvents
from fairwitness.runs.dispatch.git_reader import git_reader
from fairwitness.runs.dispatch.meter import RunMeter
from fairwitness.runs.dispatch.model import Models
from fairwitness.runs.shared.agent_checks import AgentChecks, with_checks
from fairwitness.sandbox import locked_tmp
from fairwitness.store.artifacts import Store
from fairwitness.verify.subject import VerifyDeps

FILES = {
    ".gitignore": "__pycache__/\n",
    "README.md": "# Shop\n\nPrices and what they cost to send. `python3 -m unittest` runs the tests.\n",
    "shop.py": (
        'def price(total, rate=0):\n    """What a customer pays after a rebate in percent."""\n'
        "    return total - total * rate // 100\n"
    ),
    "test_shop.py": (
        "import unittest\n\nfrom shop import price\n\n\nclass Prices(unittest.TestCase):\n"
        "    def test_full_price(self):\n        self.assertEqual(price(100), 100)\n\n"
        "    def test_rebate(self):\n        self.assertEqual(price(200, 10), 180)\n"
    ),
}
REQUEST = "Orders of 50 and more are sent free, smaller ones cost 5. Add `shipping(total)` to shop.py, with tests.\n"
CHANGE = """\
--- a/shop.py
+++ b/shop.py
@@ -1,3 +1,7 @@
 def price(total, rate=0):
     \"\"\"What a customer pays after a rebate in percent.\"\"\"
     return total - total * rate // 100
+
+
+def shipping(total):
+    return 0 if total > 50 else 5
"""
TASKS = {
    Role.INTAKE: "Say what is doubtful about the request.",
    Role.RESEARCHER: "Report what has to be known about this repository before the request is carried out.",
    Role.SPEC: "Write the specification for the request.",
    Role.DESIGNER: "Design how the request is carried out.",
    Role.REVIEWER: "Review the change against the request.",
    Role.PLANNER: "Plan how the request is carried out.",
    Role.VERIFIER: "Find out whether the change does what was asked for.",
    Role.KNOWLEDGE: "Write down what a later run should know.",
    Role.PHASE_RESEARCHER: "Find out what a plan for the request has to know.",
    Role.PHASE_PLANNER: "Plan the phase that carries out the request.",
    Role.CAPTAIN: "Plan how the request is carried out.",
    Role.QUESTIONING: "Ask what is missing.",
    Role.RATER: "Score the change against the request.",
    Role.JUDGE: "Judge the change against the request.",
}
BUILD = "Carry out the request: change shop.py and add tests in test_shop.py."
CHECK = "Find out whether the change does what the request asks for."
CRITERION = "Orders of 50 and more are sent free."
TEXTS = {
    "The change": CHANGE,
    "Files that were changed": "shop.py",
    "The specification": f"FR-1: shipping(total) says what sending an order costs.\nAC-1 (FR-1): {CRITERION}\n",
    "Research: architecture": "F-1: shop.py:1 holds all functions of the shop.\n",
    "Research: impact": "F-1: nothing calls price() but test_shop.py:8.\n",
    "The design": "D-1 🟢: a new function shipping(total) in shop.py.\n",
    "The plan": "task-01: add shipping(total) to shop.py, with tests.\n",
    "Task of the plan": f"task-01, files shop.py and test_shop.py. Criterion: {CRITERION}\n",
    "The task": f"task-01: {REQUEST}Files: shop.py, test_shop.py\nCriterion: {CRITERION}\n",
    "The sections it points to": "D-1 🟢: a new function shipping(total) in shop.py.\n",
    "The implementer's report": "I added shipping(total) to shop.py. No test was added.\n",
    "What the program ran": "unittest: python3 -m unittest, exit code 0 before and after the change\n",
    "How the command of a criterion may begin": "- python3 -m unittest\n",
    "The run": "All steps ended well. task-01: attempt 1 failed (an order of 50 cost 5), attempt 2 verified.\n",
    "The phase": f"Phase 1: shipping\nRequirements:\n- SHIP-01: {REQUEST}Success criteria:\n1. {CRITERION}\n",
    "The research": "Nothing computes the cost of sending yet; shop.py:1 holds the functions.\n",
    "What the program ran, and how it ended": "python3 -m unittest: pass\n",
    "The verifier's return": "pass: true. The tests pass, and shipping(total) is there.\n",
    "The acceptance criteria": f"1. {CRITERION}\n",
    "What went wrong": "shipping(50) is 5 and should be 0.\n",
    "The context score": "4: it is not said whether 50 itself is free.\n",
    "A specification, as it was frozen": f"SHIP-01: {REQUEST}",
    "Branches that were joined, in this order": "1. forge/task-000/attempt-1 (task-000)\n",
    "Walkthrough of task-000": "Added shipping(total) to shop.py.\n",
}
"""What a role works from beside the request, by the title of its section."""
INPUTS = {
    Role.INTAKE: ("The request",),
    Role.RESEARCHER: ("The request",),
    Role.SPEC: ("The request", "Research: architecture", "Research: impact"),
    Role.DESIGNER: ("The specification", "Research: architecture", "Research: impact"),
    Role.REVIEWER: ("The request", "The specification", "The plan", "Task of the plan", "The change"),
    Role.PLANNER: ("The specification", "The design"),
    Role.IMPLEMENTER: ("The task", "The sections it points to"),
    Role.VERIFIER: (
        *("The task", "Files that were changed", "The change", "The implementer's report", "What the program ran"),
        "How the command of a criterion may begin",
    ),
    Role.KNOWLEDGE: ("The run", "The specification", "The design", "The plan"),
    Role.PHASE_RESEARCHER: ("The phase",),
    Role.PHASE_PLANNER: ("The phase", "The research"),
    Role.PLAN_CHECKER: ("The phase", "The plan"),
    Role.EXECUTOR: ("The task",),
    Role.MINI_VERIFIER: ("The task", "The change"),
    Role.PHASE_VERIFIER: ("The phase", "The change", "What the program ran, and how it ended"),
    Role.JUDGE: ("The phase", "The change", "The verifier's return"),
    Role.RATER: ("The acceptance criteria", "The change", "What the program ran, and how it ended"),
    Role.DEBUGGER: ("What went wrong", "The task"),
    Role.QUESTIONING: ("The phase", "The context score"),
    Role.SELF_AUDIT: ("The phase", "A specification, as it was frozen"),
    Role.CAPTAIN: ("The request",),
    Role.THROWAWAY: ("Errand",),
    Role.WORKER: ("Task task-001",),
    Role.SUB_EXECUTOR: ("Task task-001",),
    Role.REFINERY: ("Task task-001", "Branches that were joined, in this order", "Walkthrough of task-000"),
}
_FOLDERS = {Workflow.FEATURE: "docs/feature/shipping", Workflow.AUTOPILOT: ".planning/phases/1", Workflow.FORGE: ""}
_MODES = {Role.SPEC: "autonomous", Role.PLANNER: "initial", Role.CAPTAIN: "plan"}
_PERSON = {"NAME": "Demo", "EMAIL": "demo@localhost"}


def lay_out(folder: Path) -> Path:
    """Create the bundled repository with one commit in an empty folder."""
    repository = folder / "shop"
    repository.mkdir(parents=True)
    for name, content in FILES.items():
        (repository / name).write_text(content)
    for arguments in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "a small shop")):
        _git(repository, *arguments)
    return repository


def _git(repository: Path, *arguments: str) -> None:
    """Run git with a fixed identity and without the person's configuration."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(repository),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in _PERSON.items()},
    }
    subprocess.run(["git", *arguments], cwd=repository, env=environment, check=True, stdout=sys.stderr)


def brief_of(spec: RoleSpec, instance: str, *, run_id: str, dispatch_id: str, moment: str) -> Brief:
    """Return the task of a role in the bundled repository."""
    policy = POLICIES[spec.role]
    task = TASKS.get(spec.role, BUILD if policy.source else CHECK)
    return Brief(
        dispatch_id=dispatch_id,
        run_id=run_id,
        role=spec.role,
        instance=instance,
        task=task,
        parameters={name: _value(name, spec, instance) for name in spec.parameters},
        inputs=tuple(PromptSection(title=title, text=TEXTS.get(title, REQUEST)) for title in INPUTS[spec.role]),
        scope=Scope(
            folder=_FOLDERS[spec.workflow],
            writes=("shop.py", "test_*.py") if policy.source else (),
        ),
        known=_known(spec, instance, moment),
    )


def _value(name: str, spec: RoleSpec, instance: str) -> str:
    match name:
        case "focus":
            return instance.removeprefix("researcher-")
        case "perspective":
            return instance
        case "mode":
            return _MODES[spec.role]
        case "scope":
            return "code"
        case "goal":
            return "find_and_fix"
        case "task_id":
            return "task-001" if spec.workflow is Workflow.FORGE else "task-01"
        case _:
            return "1"


def _known(spec: RoleSpec, instance: str, moment: str) -> dict[str, Any]:
    """Return the fields that an agent cannot know, such as its instance and the time."""
    shape = entry_of(spec.answer).shape if spec.answer is not None else None
    if isinstance(shape, type) and issubclass(shape, SignedDocument):
        header = {
            "agent": spec.role.value,
            "instance": instance,
            "step": "step-1",
            "started_at": moment,
            "completed_at": moment,
            "schema_version": "1.0",
        }
        output = f"{_FOLDERS[spec.workflow]}/{spec.answer}.yaml"
        return {f"agent_output.{name}": value for name, value in header.items()} | {"completion.output_paths": [output]}
    if spec.answer == "forge-worker-return":
        walkthrough = {"task_id": "task-001", "branch": "forge/task-001/attempt-1", "base_ref": "main"}
        return {f"walkthrough.{name}": value for name, value in walkthrough.items()}
    return {}


DISPATCH = "try-1"
RECORDINGS = Path(__file__).parent / "recordings"
"""Bundled recordings of some roles, to try them without an agent."""


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """The role to try, with its options."""

    role: str
    where: Path
    """The folder whose settings apply."""
    instance: str | None = None
    agents: str | None = None
    cassette: Path | None = None
    record: Path | None = None
    """The file to record the session to."""
    keep: bool = False
    """Whether the folder of the trial is kept."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of a trial."""

    role: str
    instance: str
    agent: Probe
    model: str | None
    sandbox: str
    outcome: DispatchOutcome
    changed: tuple[ChangedPath, ...]
    byproducts: int
    kept: str | None
    """The folder of the trial, if it was kept."""
    recorded: str | None


def try_role(request: TrialRequest, *, watcher: OnHappening | None = None, clock: Clock = system_clock) -> TrialResult:
    """Run one dispatch and report its events to the watcher."""
    if request.cassette is not None and request.agents != CASSETTE:
        raise UsageError("--cassette requires --agents cassette", next_step="add --agents cassette")
    if request.record is not None and request.record.exists():
        raise UsageError(f"{request.record} is there already", next_step="record into a new file")
    if request.keep:
        return _tried(request, Path(tempfile.mkdtemp(prefix="fairwitness-kept-")).resolve(), watcher, clock)
    own = locked_tmp.make("try")  # a killed process leaves it, and the next one removes it
    try:
        return _tried(request, own.path, watcher, clock)
    finally:
        own.remove()


def _tried(request: TrialRequest, folder: Path, watcher: OnHappening | None, clock: Clock) -> TrialResult:
    spec = ROLES[role_named(request.role)]
    if not spec.is_dispatched:
        raise UsageError(f"{spec.role.value} is never dispatched: it is this program", next_step="try another role")
    instance = instance_of(spec, request.instance)
    read = settings_of(request.where)
    read.refuse_held(request.agents)
    settings = read.settings
    choice = chosen(spec, instance, settings, request.agents, Prober(settings))
    cassette = request.cassette or _bundled(spec.role) if choice.agent == CASSETTE else None
    backend = backend_named(choice.agent, settings, cassette=cassette)
    probe = backend.probe()
    if probe.missing:
        raise NotReady(f"{probe.name} lacks {' and '.join(probe.missing)}", next_step=probe.next_step)
    records = folder / "recorded"
    if request.record is not None:
        backend = recorded_backend(backend, records)
    sandbox = runner()
    run_id = f"try-{clock():%Y%m%dT%H%M%S-%f}"
    repository = Repository.open(lay_out(folder))
    shadow = Shadow.open(folder / "state" / "git", repository)
    commit = repository.commit("HEAD")
    worktree = Worktrees(repository, shadow, folder / "worktrees").create(run_id, spec.role.value, 1, commit)
    with closing(Ledger.open_file(folder / "state" / "evidence.db", clock=clock, is_anchored=False)) as ledger:
        context = DispatchContext(
            ledger=ledger,
            store=Store(folder / "state", private=True),
            shadow=shadow,
            caps=NO_CAPS,
            recorder=NoEvents(),
            clock=clock,
            disk=DiskWatch((folder / "state",)),
        )
        deps = DispatchDeps(
            backend=backend,
            probe=probe,
            models=_models(choice, settings, probe, ledger, run_id),
            runner=sandbox,
            worktree=worktree.folder,
            base_tree=repository.tree_of(commit),
            git=git_reader(repository, shadow, worktree.folder, commit),
            watcher=watcher,
        )
        verify = VerifyDeps(
            repository=repository,
            runner=sandbox,
            shadow=shadow,
            ledger=ledger,
            state=folder / "state",
            scratch=scratch_root(folder / "state", sandbox.tier),
            settings=VerifySettings(),
            digest=hashlib.sha256(b"").hexdigest(),
            clock=clock,
        )
        base_tree = repository.tree_of(commit)
        deps = with_checks(deps, spec.role, AgentChecks(verify, run_id, worktree.folder, base_tree))
        brief = brief_of(spec, instance, run_id=run_id, dispatch_id=DISPATCH, moment=spell(clock()))
        done: Dispatched = asyncio.run(dispatch(context, spec, brief, DispatchPosition("try"), deps))
    return TrialResult(
        role=spec.role.value,
        instance=instance,
        agent=probe,
        model=done.outcome.model or choice.model,
        sandbox=sandbox.tier.value,
        outcome=done.outcome,
        changed=done.changed,
        byproducts=done.byproducts,
        kept=str(folder) if request.keep else None,
        recorded=_recorded(records, request.record),
    )


def _bundled(role: Role) -> Path:
    """Return the bundled recording of a role."""
    found = RECORDINGS / f"{role.value}.jsonl"
    if not found.is_file():
        known = " or ".join(sorted(path.stem for path in RECORDINGS.glob("*.jsonl")))
        raise UsageError(
            f"there is no bundled recording of {role.value}", next_step=f"name one with --cassette FILE, or try {known}"
        )
    return found


def _models(choice: ModelChoice, settings: AgentsSettings, probe: Probe, ledger: Ledger, run_id: str) -> Models:
    if probe.kind == "cassette":
        return NoModels()
    meter = RunMeter(lambda: budget_of(NO_CAPS, of_dispatches(lambda kind: ledger.observations(run_id, kind))))
    return GatewayModels(
        route_of(choice.agent, choice.model, settings), meter, tcp=probe.kind == "api", limits=settings.gateway
    )


def _recorded(records: Path, wanted: Path | None) -> str | None:
    """Move the recording to the wanted file; return None if there is none, which the transcript explains."""
    found = sorted(records.glob("*.jsonl")) if wanted is not None else []
    if wanted is None or not found:
        return None
    wanted.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(found[0], wanted)
    return str(wanted)
