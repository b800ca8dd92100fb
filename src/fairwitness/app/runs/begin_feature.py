"""Begins feature runs: reads the settings once, checks what is needed, and records the run."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from pydantic import TypeAdapter, ValidationError

from fairwitness.app.run_records.feature import feature_context
from fairwitness.app.settings.review import review_settings
from fairwitness.app.settings.tables import feature_settings
from fairwitness.app.settings.verify import verify_settings
from fairwitness.app.state import ledger_in, state_of
from fairwitness.contracts.agents.settings import AgentsSettings, ModelChoice
from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.budgets import BudgetTable
from fairwitness.contracts.common.ids import Slug, baseline_tag, run_ref
from fairwitness.contracts.common.policy import PathChoice, Policy
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.feature.order import Dirty, FeatureOrder, FeatureSettings
from fairwitness.errors import NotReady, StoreError, UsageError
from fairwitness.git.identity import read_identity
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.files import read_given
from fairwitness.kit.text import visible
from fairwitness.runs.feature.context import write_beginning
from fairwitness.runs.feature.setup import free_run_id, keep_dirty, ready, slug_of

REQUEST_LIMIT = 100_000
"""Characters of a request; every agent of a run reads it."""
_LAYOUT = "\t\n\v\f\r"
_SLUG: TypeAdapter[str] = TypeAdapter(Slug)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A request of a person, with its options."""

    request: str
    slug: str | None = None
    is_autonomous: bool = False
    agents: str | None = None
    cassettes: Path | None = None
    is_light: bool = False


@dataclass(frozen=True, slots=True)
class BegunFeature:
    """A run that was recorded and not started yet."""

    run_id: str
    order: FeatureOrder
    warnings: tuple[str, ...] = ()
    """Sentences for the person who began it."""


def request_text(given: str, standard_input: TextIO) -> str:
    """Return the text of a request: the word itself, the content of `@FILE`, or standard input for `-`."""
    try:
        if given == "-":
            text = standard_input.read(REQUEST_LIMIT + 1)
        elif given.startswith("@"):
            text = read_given(Path(given[1:]), limit=4 * REQUEST_LIMIT).decode()
        else:
            text = given
    except UnicodeDecodeError:
        source = "standard input" if given == "-" else visible(given[1:])
        raise UsageError(f"the request in {source} is not UTF-8", next_step="save it as UTF-8") from None
    except StoreError as error:
        raise UsageError(error.what, next_step=error.next_step) from None
    if not text.strip():
        raise UsageError("the request is empty", next_step='add a request: fairwitness feature "..."')
    if len(text) > REQUEST_LIMIT:
        raise UsageError(
            f"the request has more than {REQUEST_LIMIT:,} characters",
            next_step="shorten it; agents read the files of the repository themselves",
        )
    odd = next((sign for sign in text if not sign.isprintable() and sign not in _LAYOUT), None)
    if odd is not None and unicodedata.category(odd) in ("Cc", "Cs"):
        raise UsageError(f"the request contains U+{ord(odd):04X}, which is not text", next_step="remove it")
    return text


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
    require_agents(repository, wanted, settings.budget)
    verify, digest = verify_settings(repository.top)
    review = review_settings(repository.top, FeatureSettings)
    state, identity = state_of(repository), read_identity(repository)
    ledger = ledger_in(state, repository, clock=clock)
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
            policy=policy_for(settings.policy, is_light=wanted.is_light),
            finish=settings.ends,
            verify=verify,
            settings_hash=f"sha256:{digest}",
            trusted_file=review.trusted_hash,
            agents=wanted.agents,
            cassettes=None if wanted.cassettes is None else str(wanted.cassettes.absolute()),
            started_by=identity.author,
        )
        write_beginning(feature_context(repository, ledger, run_id, order, clock=clock), settings.budget)
    finally:
        ledger.close()
    return BegunFeature(run_id, order, review.notes)


def policy_for(policy: Policy, *, is_light: bool) -> Policy:
    """Return the policy of a run: that of the settings, on the light path if it was asked for."""
    return policy.model_copy(update={"path": PathChoice.LIGHT}) if is_light else policy


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


def require_agents(
    repository: Repository, wanted: RunRequest, budget: BudgetTable, workflow: Workflow = Workflow.FEATURE
) -> None:
    """Raise an error unless there is a sandbox and an agent for every role, before anything is recorded.

    If the budget is in dollars, the price of every model must be known.
    """
    from fairwitness.agents.roles import ROLES
    from fairwitness.app.assembly.agent_choice import Prober, chosen, settings_of
    from fairwitness.app.assembly.backends import backend, runner
    from fairwitness.app.settings.agents import CASSETTE

    runner()
    read = settings_of(repository.top or repository.common_dir)
    read.refuse_held(wanted.agents)
    settings = read.settings
    if wanted.agents == CASSETTE:
        probes = [backend(CASSETTE, settings, cassette=wanted.cassettes).probe()]
    else:
        prober = Prober(settings)
        called = [spec for spec in ROLES.values() if spec.workflow is workflow and spec.is_dispatched]
        choices = [
            chosen(spec, instance, settings, wanted.agents, prober)
            for spec in called
            for instance in spec.instances or (spec.role.value,)
        ]
        probes = [prober(name) for name in sorted({choice.agent for choice in choices})]
        if budget.dollars is not None:
            _require_prices(choices, settings)
    for probe in probes:
        if probe.missing:
            raise NotReady(f"{probe.name} lacks {' and '.join(probe.missing)}", next_step=probe.next_step)


def _require_prices(choices: Sequence[ModelChoice], settings: AgentsSettings) -> None:
    from fairwitness.app.assembly.models import is_priced, prices_of, route_of

    prices = prices_of(settings.prices)
    for choice in choices:
        route = route_of(choice.agent, choice.model, settings)
        if not is_priced(route, prices):
            model = visible(route.sold_as)
            raise UsageError(
                f"budget.dollars is set, and the price of {model} ({choice.agent}) is unknown",
                next_step=f'set its dollars for a million tokens in [agents.prices."{model}"] (input, output), '
                "or a cap in budget.tokens",
            )
