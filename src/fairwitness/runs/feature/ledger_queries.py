"""Queries of the ledger for a run's calls, evaluations and gate answers."""

import json

from pydantic import ValidationError

from fairwitness.contracts.agents.dispatch import Usage
from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.evidence import Dispatch, Observation
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.db.base import Database
from fairwitness.errors import LedgerTampered
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.queries import BY_NAME
from fairwitness.runs.dispatch.budget_account import CANCELLED, ENDED
from fairwitness.runs.feature.bundle_model import HumanAnswer, Telemetry
from fairwitness.runs.feature.metrics_pages import Evaluations, InstructionProposal, RatingAverage

_DISPATCHES = """
SELECT run_id, step, agent, instance, started_at, completed_at, status, dispatch_count, retry_count, notes
FROM pipeline_telemetry WHERE run_id = ? ORDER BY id
"""
_COLUMNS = tuple(Dispatch.model_fields)
_ANSWERS = """
SELECT gate_id, timestamp, mode, selected_option, auto_selected, actor, user_response_raw
FROM approvals WHERE run_id = ? ORDER BY id
"""
_EVALUATED = "SELECT COUNT(*) FROM artifact_evaluations WHERE run_id = ?"


def dispatches(database: Database, run_id: str) -> tuple[Dispatch, ...]:
    """Return every call of an agent that ended, in that order."""
    try:
        return tuple(
            Dispatch.model_validate(dict(zip(_COLUMNS, row, strict=True)))
            for row in database.read(_DISPATCHES, (run_id,))
        )
    except ValidationError as error:
        raise LedgerTampered(
            f"run {run_id}: a row of pipeline_telemetry is none of ours", next_step="fairwitness ledger verify"
        ) from error


def telemetry(ledger: Ledger, run_id: str, state: FeatureState) -> Telemetry:
    """Return what the calls of a run used, as far as it was counted."""
    ends = [*ledger.observations(run_id, ENDED), *ledger.observations(run_id, CANCELLED)]
    used = [usage for end in ends if (usage := _usage(end)) is not None]
    counted = [usage for usage in used if usage.tokens is not None]
    costs = [usage.cost_micros for usage in used if usage.cost_micros is not None]
    return Telemetry(
        rows=dispatches(ledger.database, run_id),
        counted=len(counted),
        tokens_in=sum(usage.tokens_in or 0 for usage in counted),
        tokens_out=sum(usage.tokens_out or 0 for usage in counted),
        priced=len(costs),
        cost_micros=sum(costs),
        models=tuple(sorted({str(model) for end in ends if (model := _outcome(end).get("model"))})),
        refused=sum(call.refused_calls for call in state.dispatches.values()),
        # the call that writes the bundle is still running
        unfinished=tuple(
            name
            for name, call in state.dispatches.items()
            if call.status is None and call.agent is not Role.ORCHESTRATOR
        ),
    )


def _outcome(end: Observation) -> dict[str, object]:
    outcome = end.detail.get("outcome")
    return outcome if isinstance(outcome, dict) else {}


def _usage(end: Observation) -> Usage | None:
    """Return what one call used; None if the row does not say."""
    try:
        return Usage.model_validate_json(json.dumps(_outcome(end)["usage"]))
    except (KeyError, ValidationError):
        return None


def evaluations(database: Database, run_id: str) -> Evaluations:
    """Return how agents rated documents, and which instruction changes they proposed."""

    def asked(name: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in database.read(BY_NAME[name].sql, (run_id,))]

    return Evaluations(
        count=int(database.read(_EVALUATED, (run_id,))[0][0]),
        by_evaluator=tuple(_rated(agent, useful, clear) for agent, _, useful, clear in asked("evaluations")),
        worst=tuple(_rated(*row) for row in asked("worst-artifacts")),
        missing=tuple((str(path), str(text)) for path, text in asked("missing-information")),
        instructions=tuple(
            InstructionProposal(str(file), str(change), str(summary), bool(applied))
            for _, _, file, change, summary, applied, _ in asked("instruction-updates")
        ),
    )


def _rated(name: object, useful: object, clear: object) -> RatingAverage:
    return RatingAverage(str(name), float(str(useful)), float(str(clear)))


def answers(database: Database, run_id: str) -> tuple[HumanAnswer, ...]:
    """Return the answers at the gates; those that were given automatically are marked."""
    return tuple(
        HumanAnswer(gate, when, ApprovalMode(mode), option, bool(auto), actor, said)
        for gate, when, mode, option, auto, actor, said in database.read(_ANSWERS, (run_id,))
    )
