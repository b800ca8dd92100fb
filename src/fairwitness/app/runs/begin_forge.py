"""Begins forge runs: reads the settings once, checks what is needed, and records the run."""

from dataclasses import dataclass
from pathlib import Path

from fairwitness.app.runs.begin_feature import RunRequest, require_agents, slug_for
from fairwitness.app.settings.review import review_settings
from fairwitness.app.settings.tables import read_tables
from fairwitness.app.settings.verify import verify_settings
from fairwitness.app.state import ledger_in, state_of
from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.ids import run_ref
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.graph.forge_order import ForgeOrder, ForgeSettings
from fairwitness.contracts.graph.orders import GraphOptions
from fairwitness.errors import UsageError
from fairwitness.git.identity import read_identity
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.rules.change_requests import usual_decider
from fairwitness.runs.feature.setup import free_run_id, ready
from fairwitness.runs.forge.log import ForgeLog

AS_CONFIGURED = "as configured"


@dataclass(frozen=True, slots=True)
class BegunForge:
    """A run that was recorded and not started yet."""

    run_id: str
    order: ForgeOrder
    is_dirty: bool
    """Whether the checkout has uncommitted changes, which are not part of the run."""
    warnings: tuple[str, ...] = ()
    """Sentences for the person who began it."""


def begin_forge(where: Path, wanted: RunRequest, *, clock: Clock = system_clock) -> BegunForge:
    """Record a new run, which an engine can then execute, starting with the captain.

    The settings are read here once and apply to the whole run.
    """
    if not wanted.request.strip():
        raise UsageError("the request is empty", next_step='add a request: fairwitness forge "..."')
    slug = slug_for(wanted)
    repository = Repository.open(where)
    hygiene = ready(repository)
    settings = read_tables(ForgeSettings, repository.top)
    require_agents(repository, wanted, settings.budget, Workflow.FORGE)
    verify, digest = verify_settings(repository.top)
    review = review_settings(repository.top, ForgeSettings)
    identity = read_identity(repository)
    ledger = ledger_in(state_of(repository), repository, clock=clock)
    try:
        run_id = free_run_id(lambda run: bool(ledger.head(run).links), clock)
        options = GraphOptions(
            target=f"fairwitness/{run_ref(run_id)}/target",
            cap=settings.forge.cap,
            max_attempts=settings.forge.max_attempts,
        )
        mode = ApprovalMode.AUTONOMOUS if wanted.is_autonomous else ApprovalMode.INTERACTIVE
        limits = settings.forge
        if "change_requests" not in limits.model_fields_set:
            limits = limits.model_copy(update={"change_requests": usual_decider(mode)})
        order = ForgeOrder(
            request=wanted.request,
            slug=slug,
            mode=mode,
            base_commit=hygiene.base,
            options=options,
            limits=limits,
            retry=settings.policy.retry,
            budget=settings.budget,
            verify=verify,
            settings_hash=f"sha256:{digest}",
            trusted_file=review.trusted_hash,
            agents=wanted.agents,
            cassettes=None if wanted.cassettes is None else str(wanted.cassettes.absolute()),
            started_by=identity.author,
        )
        url = (repository.top or repository.common_dir).as_uri()
        ForgeLog(ledger, run_id, clock=clock).create(order, repo_url=url, model=wanted.agents or AS_CONFIGURED)
    finally:
        ledger.close()
    return BegunForge(run_id, order, hygiene.is_dirty, review.notes)
