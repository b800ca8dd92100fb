"""Feature runs in a repository: how one is begun, and the desk that carries it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from assay.app.database import ledger_in
from assay.app.feature_settings import feature_settings
from assay.app.settings import verify_settings
from assay.app.state import state_of, workroom
from assay.contracts.common.approvals import ApprovalMode
from assay.contracts.common.budgets import BudgetCaps, Caps
from assay.contracts.common.evidence import Observation
from assay.contracts.common.ids import Slug, baseline_tag, run_ref
from assay.contracts.common.words import Workflow
from assay.contracts.feature.events import RunResumed, RunStarted
from assay.contracts.feature.facts import Step
from assay.contracts.feature.order import FeatureOrder
from assay.contracts.feature.settings import BudgetTable, Dirty
from assay.errors import NotReady, UsageError
from assay.git.identity import read_identity
from assay.git.repository import Repository
from assay.git.shadow import Shadow
from assay.kit.clock import Clock, spell, system_clock
from assay.kit.killpoints import reach
from assay.kit.text import visible
from assay.ledger.ledger import Ledger
from assay.ledger.record import Record
from assay.steps.feature.questions import key_of
from assay.steps.feature.room import ORDER, Room, write_events
from assay.steps.feature.setup import free_run_id, keep_dirty, ready
from assay.steps.feature.slugs import slug_of
from assay.store.artifacts import Store

if TYPE_CHECKING:  # whoever only begins a run does not wait for what carries it
    from assay.steps.feature.desk import FeatureRunDesk
    from assay.steps.verify.subject import Parts

FLOW = "feature"
ANSWERED = "answered"
"""What an engine is told of an answer; what it was stands in the ledger."""
PREFIX, BUDGET = "assay", "budget"
"""What the branches of a run's attempts begin with."""
_PYTHON = "python3"
_SLUG: TypeAdapter[str] = TypeAdapter(Slug)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asks for."""

    request: str
    slug: str | None = None
    is_autonomous: bool = False
    agents: str | None = None
    cassettes: Path | None = None


@dataclass(frozen=True, slots=True)
class BegunFeature:
    """A run that was written down and not yet carried."""

    run_id: str
    order: FeatureOrder


def begin_feature(where: Path, wanted: Wanted, *, clock: Clock = system_clock) -> BegunFeature:
    """Writes the beginning of a run; an engine carries it out from there.

    The person's settings are read here, once; what they said holds for the whole run.
    """
    if not wanted.request.strip():
        raise UsageError("the request is empty", next_step='say what you want: assay feature "..."')
    slug = _slug(wanted)
    repository = Repository.open(where)
    hygiene = ready(repository)
    settings = feature_settings(repository.top)
    if hygiene.is_dirty and settings.feature.dirty is Dirty.REFUSE:
        raise UsageError(
            "there are changes that are not committed, and feature.dirty is refuse",
            next_step="commit or stash them, or set feature.dirty to snapshot",
        )
    refuse_unready(repository, wanted)
    verify, digest = verify_settings(repository.top)
    state, identity = state_of(repository), read_identity(repository)
    ledger = ledger_in(state, clock=clock)
    try:
        run_id = free_run_id(lambda run: bool(ledger.head(run).links), clock)
        shadow = Shadow.open(state / "git", repository)
        snapshot = keep_dirty(repository, shadow, run_id, identity) if hygiene.is_dirty else None
        order = FeatureOrder(
            request=wanted.request,
            slug=slug,
            mode=ApprovalMode.AUTONOMOUS if wanted.is_autonomous else ApprovalMode.INTERACTIVE,
            base_commit=hygiene.base,
            base_branch=hygiene.branch,
            snapshot=snapshot,
            baseline_tag=baseline_tag(run_id),
            target=f"assay/{run_ref(run_id)}/target",
            policy=settings.policy,
            finish=settings.ends,
            verify=verify.plain(),
            settings_hash=f"sha256:{digest}",
            agents=wanted.agents,
            cassettes=None if wanted.cassettes is None else str(wanted.cassettes.absolute()),
            started_by=f"{identity.author_name} <{identity.author_email}>",
        )
        _write_beginning(ledger, run_id, order, settings.budget, spell(clock()))
    finally:
        ledger.close()
    return BegunFeature(run_id, order)


def _slug(wanted: Wanted) -> str:
    if wanted.slug is None:
        return slug_of(wanted.request)
    try:
        return _SLUG.validate_python(wanted.slug)
    except ValidationError:
        raise UsageError(
            f"{visible(wanted.slug)!r} cannot be the short name of a feature",
            next_step="use small letters, digits and '-', as in gift-vouchers",
        ) from None


def refuse_unready(repository: Repository, wanted: Wanted) -> None:
    """What `assay doctor` would find, before anything is begun: a sandbox, and an agent for every role."""
    from assay.agents.roles import ROLES
    from assay.app.agents import Prober, chosen, settings_of
    from assay.app.agents_settings import CASSETTE
    from assay.app.wiring import backend, runner

    runner()
    settings, _ = settings_of(repository.top or repository.common_dir)
    if wanted.agents == CASSETTE:
        probes = [backend(CASSETTE, settings, cassette=wanted.cassettes).probe()]
    else:
        prober = Prober(settings)
        called = [spec for spec in ROLES.values() if spec.workflow is Workflow.FEATURE and spec.is_dispatched]
        names = {
            chosen(spec, instance, settings, wanted.agents, prober).agent
            for spec in called
            for instance in spec.instances or (spec.role.value,)
        }
        probes = [prober(name) for name in sorted(names)]
    for probe in probes:
        if probe.missing:
            raise NotReady(f"{probe.name} lacks {' and '.join(probe.missing)}", next_step=probe.next_step)


def _write_beginning(ledger: Ledger, run_id: str, order: FeatureOrder, budget: BudgetTable, now: str) -> None:
    started = RunStarted(
        slug=order.slug,
        mode=order.mode,
        base_commit=order.base_commit,
        baseline_tag=order.baseline_tag,
        settings_hash=order.settings_hash,
    )
    detail: dict[str, Any] = {"order": order.plain(), "budget": budget.plain()}

    def write(record: Record) -> None:
        record.observation(
            Observation(
                run_id=run_id,
                task_id=None,
                key=ORDER,
                kind=ORDER,
                subject=run_id,
                holds=True,
                detail=detail,
                tree=None,
                observed_at=now,
            )
        )
        write_events(record, (started,), now)

    ledger.record(run_id, write)
    reach("feature.begun")


def order_of(ledger: Ledger, run_id: str) -> tuple[FeatureOrder, BudgetTable]:
    """What a run was begun with."""
    row = ledger.observation(run_id, ORDER)
    if row is None:
        raise UsageError(f"{visible(run_id)} is no feature run", next_step="assay status lists the runs")
    raised = ledger.observations(run_id, BUDGET)
    budget = raised[-1].detail if raised else row.detail["budget"]
    return FeatureOrder.model_validate(row.detail["order"]), BudgetTable.model_validate(budget)


def room_of(
    repository: Repository, ledger: Ledger, run_id: str, order: FeatureOrder, *, clock: Clock = system_clock
) -> Room:
    """The room of a run."""
    state = state_of(repository)
    return Room(
        run_id=run_id,
        order=order,
        repository=repository,
        shadow=Shadow.open(state / "git", repository),
        ledger=ledger,
        files=Store(repository.top or state),
        kept=Store(state),
        state_folder=state,
        clock=clock,
    )


def caps_of(budget: BudgetTable) -> BudgetCaps:
    """The caps of a run."""
    none = Caps(tokens=None, money_micros=None, milliseconds=None)
    money = None if budget.dollars is None else round(budget.dollars * 1_000_000)
    time = None if budget.minutes is None else budget.minutes * 60_000
    return BudgetCaps(dispatch=none, phase=none, run=Caps(tokens=budget.tokens, money_micros=money, milliseconds=time))


def desk_of(repository: Repository, ledger: Ledger, run_id: str, *, clock: Clock = system_clock) -> "FeatureRunDesk":
    """Everything that carrying a run needs."""
    from assay.app.graph_means import MeansMaker, prover
    from assay.app.wiring import runner
    from assay.contracts.verify.checks import VerifySettings
    from assay.git.candidates import Candidates
    from assay.git.worktrees import Worktrees
    from assay.steps.dispatch.events import FeatureEvents
    from assay.steps.feature.briefs import Briefs
    from assay.steps.feature.calls import Caller
    from assay.steps.feature.desk import FeatureRunDesk
    from assay.steps.feature.memory import Memory
    from assay.steps.graph.world import World
    from assay.steps.verify.subject import Parts

    order, budget = order_of(ledger, run_id)
    room = room_of(repository, ledger, run_id, order, clock=clock)
    settings = VerifySettings.model_validate(order.verify)
    sandbox = runner()
    place = workroom(room.state_folder, sandbox.tier)
    worktrees = Worktrees(repository, room.shadow, place / "worktrees", prefix=PREFIX)
    identity = read_identity(repository)
    world = World(repository, worktrees, Candidates(repository, room.shadow), room.state_folder / "locks", identity)
    maker = MeansMaker(
        repository,
        room.shadow,
        ledger,
        room.state_folder,
        sandbox,
        run_id,
        {"agents": order.agents, "cassettes": order.cassettes},
        clock,
        recorder=FeatureEvents(),
        caps=caps_of(budget),
    )
    parts = Parts(
        repository=repository,
        runner=sandbox,
        shadow=room.shadow,
        ledger=ledger,
        state=room.state_folder,
        room=place,
        settings=settings,
        digest=order.settings_hash.removeprefix("sha256:"),
        clock=clock,
    )
    briefs = Briefs(room, commands_of(parts, order.base_commit), Memory(room.kept).boxed())
    caller = Caller(room, maker.context, maker.means, worktrees, identity)
    return FeatureRunDesk(room, world, caller, briefs, parts, prover(parts, run_id))


def commands_of(parts: "Parts", base: str) -> tuple[tuple[str, ...], ...]:
    """How the project's checks begin, as an agent may type them; from the first word on that only we know, nothing."""
    from assay.steps.discovery.discover import discover
    from assay.steps.verify.environments import TreeView

    found: dict[tuple[str, ...], None] = {}
    for check in discover(TreeView(parts.shadow, parts.repository.tree_of(base)), parts.settings).checks:
        words = [_PYTHON if word == "{python}" else word for word in check.argv]
        known = tuple(words[: next((at for at, word in enumerate(words) if "{" in word), len(words))])
        if known and known[-1].startswith("-"):
            continue  # what follows would be a program that the agent types itself
        if len(known) > 1 or (known and known[0] != _PYTHON):
            found[known] = None
    return tuple(found)


def resume_feature(repository: Repository, ledger: Ledger, run_id: str) -> None:
    """Writes down that a run that had ended goes on; one that has not is left as it is."""
    order, _ = order_of(ledger, run_id)
    room = room_of(repository, ledger, run_id, order)
    state = room.state()
    if state.ending is not None:
        last = ledger.last_event(run_id, "step_started")
        resumed = RunResumed(from_step=Step.SETUP.value if last is None else str(last.data["step"]))
        # the one setting that may change: whoever goes on with a run that stopped there may have raised it
        budget = feature_settings(repository.top).budget
        seen = room.seen(f"{BUDGET}:{state.resumed + 1}", BUDGET, run_id, budget.plain())

        def write(record: Record) -> None:
            record.observation(seen)
            write_events(record, (resumed,), seen.observed_at)

        room.write(write)
        reach("feature.resumed")


def answered_keys(root: Path, run_id: str) -> tuple[str, ...]:
    """The names of all questions that were answered, for an engine that may not have heard of it."""
    repository = Repository.open(root)
    ledger = ledger_in(state_of(repository))
    try:
        order, _ = order_of(ledger, run_id)
        state = room_of(repository, ledger, run_id, order).state()
        return tuple(
            key_of(gate, asked.visit) for gate, asked in state.approvals.items() if asked.selected_option is not None
        )
    finally:
        ledger.close()
