"""Begins feature runs: reads the settings once, checks what is needed, and records the run."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fairwitness.app.run_records.feature import feature_context
from fairwitness.app.settings.tables import feature_settings
from fairwitness.app.settings.verify import verify_settings
from fairwitness.app.state import ledger_in, state_of
from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.ids import Slug, baseline_tag, run_ref
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.feature.order import Dirty, FeatureOrder
from fairwitness.errors import NotReady, UsageError
from fairwitness.git.identity import read_identity
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.text import visible
from fairwitness.runs.feature.context import write_beginning
from fairwitness.runs.feature.setup import free_run_id, keep_dirty, ready, slug_of

_SLUG: TypeAdapter[str] = TypeAdapter(Slug)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A request of a person, with its options."""

    request: str
    slug: str | None = None
    is_autonomous: bool = False
    agents: str | None = None
    cassettes: Path | None = None


@dataclass(frozen=True, slots=True)
class BegunFeature:
    """A run that was recorded and not started yet."""

    run_id: str
    order: FeatureOrder


def begin_feature(where: Path, wanted: RunRequest, *, clock: Clock = system_clock) -> BegunFeature:
    """Record a new run, which an engine can then execute.

    The settings are read here once and apply to the whole run.
    """
    if not wanted.request.strip():
        raise UsageError("the request is empty", next_step='add a request: fairwitness feature "..."')
    slug = slug_for(wanted)
    repository = Repository.open(where)
    hygiene = ready(repository)
    settings = feature_settings(repository.top)
    if hygiene.is_dirty and settings.feature.dirty is Dirty.REFUSE:
        raise UsageError(
            "there are uncommitted changes, and feature.dirty is refuse",
            next_step="commit or stash them, or set feature.dirty to snapshot",
        )
    require_agents(repository, wanted)
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
            target=f"fairwitness/{run_ref(run_id)}/target",
            policy=settings.policy,
            finish=settings.ends,
            verify=verify,
            settings_hash=f"sha256:{digest}",
            agents=wanted.agents,
            cassettes=None if wanted.cassettes is None else str(wanted.cassettes.absolute()),
            started_by=identity.author,
        )
        write_beginning(feature_context(repository, ledger, run_id, order, clock=clock), settings.budget)
    finally:
        ledger.close()
    return BegunFeature(run_id, order)


def slug_for(wanted: RunRequest) -> str:
    """Return the short name of a feature: the given one, or one made from the request."""
    if wanted.slug is None:
        return slug_of(wanted.request)
    try:
        return _SLUG.validate_python(wanted.slug)
    except ValidationError:
        raise UsageError(
            f"{visible(wanted.slug)!r} is not a valid short name",
            next_step="use lower-case letters, digits and '-', as in gift-vouchers",
        ) from None


def require_agents(repository: Repository, wanted: RunRequest, workflow: Workflow = Workflow.FEATURE) -> None:
    """Raise `NotReady` unless there is a sandbox and an agent for every role, before anything is recorded."""
    from fairwitness.agents.roles import ROLES
    from fairwitness.app.assembly.agent_choice import Prober, chosen, settings_of
    from fairwitness.app.assembly.backends import backend, runner
    from fairwitness.app.settings.agents import CASSETTE

    runner()
    settings, _ = settings_of(repository.top or repository.common_dir)
    if wanted.agents == CASSETTE:
        probes = [backend(CASSETTE, settings, cassette=wanted.cassettes).probe()]
    else:
        prober = Prober(settings)
        called = [spec for spec in ROLES.values() if spec.workflow is workflow and spec.is_dispatched]
        names = {
            chosen(spec, instance, settings, wanted.agents, prober).agent
            for spec in called
            for instance in spec.instances or (spec.role.value,)
        }
        probes = [prober(name) for name in sorted(names)]
    for probe in probes:
        if probe.missing:
            raise NotReady(f"{probe.name} lacks {' and '.join(probe.missing)}", next_step=probe.next_step)
