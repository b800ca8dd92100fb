"""Assembles the runner of a forge run from its recorded order."""

from fairwitness.app.assembly.parts import RunParts, caps_of
from fairwitness.app.state import artifact_root
from fairwitness.contracts.common.budgets import NO_CAPS
from fairwitness.contracts.common.policy import RetryPolicy
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.forge.captain import ForgeCaptain
from fairwitness.runs.forge.criteria import TaskCriteria
from fairwitness.runs.forge.joins import Joins
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.runs.forge.runner import ForgeRunner
from fairwitness.runs.forge.walkthroughs import SeenAttempts
from fairwitness.runs.forge.worker import ForgeWorker
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout


def forge_runner_of(repository: Repository, ledger: Ledger, run_id: str, *, clock: Clock = system_clock) -> ForgeRunner:
    """Return the runner of a forge run, planned by its captain or begun with a plan."""
    log = ForgeLog(ledger, run_id, clock=clock)
    order = log.order()
    parts = RunParts(
        repository,
        ledger,
        run_id,
        log.settings(),
        RetryPolicy() if order is None else order.retry,
        caps=NO_CAPS if order is None else caps_of(log.budget()),
        prefix=(log.begun().options if order is None else order.options).prefix,
        clock=clock,
    )
    files = Store(artifact_root(repository, parts.verify.state))
    criteria = TaskCriteria(parts.verify, log)
    joins = Joins(repository, parts.shadow, log)
    seen = SeenAttempts(repository, parts.shadow)
    worker = ForgeWorker(parts.caller, log, files, repository, criteria, joins, seen)
    captain = None if order is None else ForgeCaptain(parts.caller, log, files, ForgeLayout(run_id), criteria)
    return ForgeRunner(
        parts.repo, ledger, files, run_id, worker, parts.prove, criteria, joins, seen, captain=captain, clock=clock
    )
