"""One dispatch on a small repository that comes along: real git, real sandbox, real agent, nothing of the person's."""

import asyncio
import shutil
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from fairwitness.agents.base import Tell
from fairwitness.agents.recording import recording
from fairwitness.agents.roles import ROLES
from fairwitness.app import toy
from fairwitness.app.agents import Prober, chosen, instance_of, settings_of
from fairwitness.app.agents_settings import CASSETTE, role_named
from fairwitness.app.models import GatewayModels, NoModels, route_of
from fairwitness.app.wiring import backend as backend_named
from fairwitness.app.wiring import runner
from fairwitness.contracts.agents.dispatch import ChangedPath, Outcome, Probe
from fairwitness.contracts.agents.settings import AgentsSettings, Choice
from fairwitness.contracts.common.budgets import BudgetCaps, Caps
from fairwitness.contracts.common.tools import Role
from fairwitness.errors import NotReady, UsageError
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.git.worktrees import Worktrees
from fairwitness.kit.clock import Clock, spell, system_clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.dispatch import Context, DispatchDeps, Dispatched, DispatchPosition, dispatch
from fairwitness.runs.dispatch.account import budget_of, of_dispatches
from fairwitness.runs.dispatch.events import NoEvents
from fairwitness.runs.dispatch.looking import git_reader
from fairwitness.runs.dispatch.meter import RunMeter
from fairwitness.runs.dispatch.model import Models
from fairwitness.sandbox import held
from fairwitness.store.artifacts import Store

DISPATCH = "try-1"
RECORDINGS = Path(__file__).parent / "recordings"
"""Sessions of some roles on the small repository, so that there is something to see without any agent."""
_NO_CAP = Caps(tokens=None, money_micros=None, milliseconds=None)
_CAPS = BudgetCaps(dispatch=_NO_CAP, phase=_NO_CAP, run=_NO_CAP)
"""The role's own budget is the only limit."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a person wants to try."""

    role: str
    where: Path
    """Whose settings hold."""
    instance: str | None = None
    agents: str | None = None
    cassette: Path | None = None
    record: Path | None = None
    """A file that the session is recorded in."""
    keep: bool = False
    """Whether the folder it is played in stays."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of it."""

    role: str
    instance: str
    agent: Probe
    model: str | None
    sandbox: str
    outcome: Outcome
    changed: tuple[ChangedPath, ...]
    byproducts: int
    kept: str | None
    """Where everything is, if it was to stay."""
    recorded: str | None


def try_role(request: Request, *, watcher: Tell | None = None, clock: Clock = system_clock) -> Tried:
    """Plays one dispatch; the watcher is told what happens."""
    if request.cassette is not None and request.agents != CASSETTE:
        raise UsageError("only recordings are played from a file", next_step="give --agents cassette, too")
    if request.record is not None and request.record.exists():
        raise UsageError(f"{request.record} is there already", next_step="record into a new file")
    if request.keep:
        return _tried(request, Path(tempfile.mkdtemp(prefix="fairwitness-kept-")).resolve(), watcher, clock)
    own = held.make("try")  # whoever is killed leaves it, and the next one sweeps
    try:
        return _tried(request, own.path, watcher, clock)
    finally:
        own.remove()


def _tried(request: Request, folder: Path, watcher: Tell | None, clock: Clock) -> Tried:
    spec = ROLES[role_named(request.role)]
    if not spec.is_dispatched:
        raise UsageError(f"{spec.role.value} is never dispatched: it is this program", next_step="try another role")
    instance = instance_of(spec, request.instance)
    settings, _ = settings_of(request.where)
    choice = chosen(spec, instance, settings, request.agents, Prober(settings))
    cassette = request.cassette or _bundled(spec.role) if choice.agent == CASSETTE else None
    backend = backend_named(choice.agent, settings, cassette=cassette)
    probe = backend.probe()
    if probe.missing:
        raise NotReady(f"{probe.name} lacks {' and '.join(probe.missing)}", next_step=probe.next_step)
    records = folder / "recorded"
    if request.record is not None:
        backend = recording(backend, records)
    sandbox = runner()
    run_id = f"try-{clock():%Y%m%dT%H%M%S-%f}"
    repository = Repository.open(toy.lay_out(folder))
    shadow = Shadow.open(folder / "state" / "git", repository)
    commit = repository.commit("HEAD")
    worktree = Worktrees(repository, shadow, folder / "worktrees").create(run_id, spec.role.value, 1, commit)
    with closing(Ledger.open_file(folder / "state" / "evidence.db", clock=clock)) as ledger:
        context = Context(
            ledger=ledger,
            store=Store(folder / "state"),
            shadow=shadow,
            caps=_CAPS,
            recorder=NoEvents(),
            clock=clock,
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
        brief = toy.brief_of(spec, instance, run_id=run_id, dispatch_id=DISPATCH, moment=spell(clock()))
        done: Dispatched = asyncio.run(dispatch(context, spec, brief, DispatchPosition("try"), deps))
    return Tried(
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
    """The recording that comes along for a role."""
    found = RECORDINGS / f"{role.value}.jsonl"
    if not found.is_file():
        known = " or ".join(sorted(path.stem for path in RECORDINGS.glob("*.jsonl")))
        raise UsageError(
            f"no recording of {role.value} comes along", next_step=f"name one with --cassette FILE, or try {known}"
        )
    return found


def _models(choice: Choice, settings: AgentsSettings, probe: Probe, ledger: Ledger, run_id: str) -> Models:
    if probe.kind == "cassette":
        return NoModels()
    meter = RunMeter(lambda: budget_of(_CAPS, of_dispatches(lambda kind: ledger.observations(run_id, kind))))
    return GatewayModels(route_of(choice.agent, choice.model, settings), meter, tcp=probe.kind == "api")


def _recorded(records: Path, wanted: Path | None) -> str | None:
    """The one recording, where the person wants it; None if there is none, which the transcript explains."""
    found = sorted(records.glob("*.jsonl")) if wanted is not None else []
    if wanted is None or not found:
        return None
    wanted.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(found[0], wanted)
    return str(wanted)
