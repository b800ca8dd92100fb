"""Builds the HTML report of a run: reads the ledger, verifies its chain, and writes one file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from fairwitness.app.report.model import (
    ApprovalAnswer,
    Check,
    Decision,
    GateEvaluation,
    ReportedCall,
    ReportFacts,
    ReviewAnswer,
    TaskAttempt,
    Used,
    Visit,
)
from fairwitness.app.report.page import MARK, LedgerFindings, outcome_of, page
from fairwitness.app.report.sections import GateFact, gate_fact, gates_in_decisions
from fairwitness.app.repository import state_in
from fairwitness.app.views.feature import FeatureView
from fairwitness.app.views.gates import run_gates
from fairwitness.app.views.ledger import known_run, open_ledger
from fairwitness.app.views.run import RunView
from fairwitness.contracts.common.decisions import Graded
from fairwitness.contracts.common.ids import run_ref
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.feature.facts import FeatureFacts
from fairwitness.db.base import ReadQuery
from fairwitness.errors import EventsBroken, NotStored, StoreError, UsageError
from fairwitness.git.ledger_heads import kept_heads
from fairwitness.kit import files
from fairwitness.ledger.chain import Head
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.run_summary import SummaryEvent
from fairwitness.ledger.verify import verify
from fairwitness.rules.confidence import confidence_facts, grade
from fairwitness.runs.dispatch.budget_account import CANCELLED, ENDED

MOST = 3000
"""The maximum number of rows that are read of a table: the newest."""
_PAGE = 5000
_LARGEST_TEXT = 50_000_000

_EVENTS = (
    "SELECT event_id, seq, timestamp, workflow, run_id, phase, task, attempt, type, version, data FROM events "
    "WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?"
)
_CHECKS = """
SELECT c.id, c.task_id, c.phase, c.round, c.check_name, c.instance, c.passed, c.verdict, c.severity, c.command,
       c.exit_code, c.output_snippet, s.provenance, e.id, e.assessment, COALESCE(e.tree, o.tree), e.sandbox,
       e.duration_ms
FROM anvil_checks c
LEFT JOIN check_sources s ON s.check_id = c.id
LEFT JOIN executions e ON e.id = s.execution_id
LEFT JOIN observations o ON o.id = s.observation_id
WHERE c.run_id = ? ORDER BY c.id DESC LIMIT ?"""
_SAID = """
SELECT DISTINCT k.id, k.task_id, k.agent, k.instance, c.round, k.body FROM claims k
JOIN check_sources s ON s.claim_id = k.id JOIN anvil_checks c ON c.id = s.check_id
WHERE k.run_id = ? AND c.phase = 'review' ORDER BY k.id"""
_CALLS = """
SELECT step, agent, instance, started_at, completed_at, status, dispatch_count, retry_count, notes
FROM pipeline_telemetry WHERE run_id = ? ORDER BY id DESC LIMIT ?"""
_ANSWERS = """
SELECT gate_id, timestamp, mode, selected_option, auto_selected, actor, user_response_raw
FROM approvals WHERE run_id = ? ORDER BY id"""
_SEEN = "SELECT key, detail, observed_at FROM observations WHERE run_id = ? AND kind = ? ORDER BY id"
_ORDER = "SELECT detail FROM observations WHERE run_id = ? AND key = 'order'"
_HEAD = "SELECT seq, hash FROM chain WHERE run_id = ? ORDER BY seq DESC LIMIT 1"


def read_facts(read: ReadQuery, run_id: str) -> ReportFacts:
    """Return the facts of a run from the ledger."""
    facts = ReportFacts(run_id)
    for event in _events(read, run_id):
        _apply(facts, event)
    for (detail,) in read(_ORDER, (run_id,)):
        order = _parsed(detail).get("order")
        facts.order = order if isinstance(order, dict) else {}
    facts.checks = [Check(*row) for row in reversed(read(_CHECKS, (run_id, MOST)))]
    ((every,),) = read("SELECT COUNT(*) FROM anvil_checks WHERE run_id = ?", (run_id,))
    facts.left_out = every - len(facts.checks)
    for _, task, agent, instance, round_, body in read(_SAID, (run_id,)):
        facts.said.append(ReviewAnswer(task, agent, instance, round_, _review_in(_parsed(body))))
    facts.calls = [ReportedCall(*row) for row in reversed(read(_CALLS, (run_id, MOST)))]
    facts.answers = [ApprovalAnswer(*row) for row in read(_ANSWERS, (run_id,))]
    facts.used = _used(read, run_id)
    recorded = [_decision(*row) for row in read(_SEEN, (run_id, "decision"))]
    facts.decisions = recorded or facts.decisions
    for links, head in read(_HEAD, (run_id,)):
        facts.links, facts.head = links, head
    return facts


def _events(read: ReadQuery, run_id: str) -> Iterator[SummaryEvent]:
    after = 0
    while rows := read(_EVENTS, (run_id, after, _PAGE)):
        for row in rows:
            yield SummaryEvent._make((*row[:-1], _parsed(row[-1])))
        after = rows[-1][1]


def _apply(facts: ReportFacts, event: SummaryEvent) -> None:
    facts.workflow, facts.events = event.workflow, event.seq
    if event.workflow == "feature":
        facts.feature = facts.feature or FeatureView(facts.run_id, clock=lambda: facts.last_moment)
        facts.feature.apply_event(event)
    else:
        facts.graph = facts.graph or RunView(facts.run_id)
        facts.graph.apply_event(event)
    try:
        _keep(facts, event, event.data)
    except (KeyError, TypeError, ValueError):
        raise EventsBroken(
            f"run {facts.run_id}: event {event.seq} is malformed", next_step="fairwitness ledger verify"
        ) from None


def _keep(facts: ReportFacts, event: SummaryEvent, data: dict[str, Any]) -> None:
    match event.type:
        case "step_started":
            facts.visits.append(Visit(str(data["step"]), event.timestamp))
        case "step_finished":
            visit = _visit(facts, str(data["step"]))
            visit.finished, visit.outcome, visit.reason = event.timestamp, str(data["outcome"]), data.get("reason")
        case "task.started":
            name, number = str(data["nodeId"]), int(data["attemptId"])
            facts.attempts[name, number] = TaskAttempt(
                name, number, str(data["branch"]), str(data["agent"]), event.timestamp
            )
        case "task.verified":
            _attempt_is(facts, data, "verified", tree=str(data["tree"]))
        case "node.changed" if data["newStatus"] in ("MERGED", "FAILED", "STALE"):
            word = {"MERGED": "merged", "STALE": "lost"}.get(data["newStatus"], "failed")
            _attempt_is(facts, data, word, reason=data.get("reason"))
        case "gate_evaluated":
            facts.asked.append(
                GateEvaluation(
                    event.timestamp,
                    str(data["gate"]),
                    event.task,
                    data["open"] is True,
                    int(data["count"]),
                    int(data["threshold"]),
                    ", ".join(map(str, data["missing"])),
                )
            )
        case "artifact_written":
            facts.documents[str(data["path"])] = str(data["sha256"])
        case "decided":
            facts.decisions.append(
                Decision(int(data["number"]), str(data["kind"]), str(data["reason"]), event.timestamp, {}, {})
            )
        case _:
            pass


def _visit(facts: ReportFacts, step: str) -> Visit:
    for visit in reversed(facts.visits):
        if visit.step == step:
            return visit
    raise ValueError("a step ended that was never begun")


def _attempt_is(
    facts: ReportFacts, data: dict[str, Any], word: str, *, tree: str | None = None, reason: str | None = None
) -> None:
    name = str(data["nodeId"])
    number = int(data.get("attemptId") or max((n for task, n in facts.attempts if task == name), default=0))
    attempt = facts.attempts.get((name, number))
    if attempt is not None:
        attempt.word, attempt.tree, attempt.reason = word, tree or attempt.tree, reason or attempt.reason


def _decision(key: str, detail: str, at: str) -> Decision:
    parsed = _parsed(detail)
    decision, facts = _mapping(parsed.get("decision")), _mapping(parsed.get("facts"))
    number = key.rpartition(":")[2]
    return Decision(
        int(number) if number.isdecimal() else 0,
        str(decision.get("kind", "unknown")),
        str(decision.get("reason", "no reason is on record")),
        at,
        decision,
        facts,
    )


def _used(read: ReadQuery, run_id: str) -> Used:
    outcomes = [
        _mapping(_parsed(detail).get("outcome"))
        for kind in (ENDED, CANCELLED)
        for _, detail, _ in read(_SEEN, (run_id, kind))
    ]
    usages = [_mapping(outcome.get("usage")) for outcome in outcomes]
    counted = [one for one in usages if one.get("tokens_in") is not None and one.get("tokens_out") is not None]
    costs = [int(one["cost_micros"]) for one in usages if one.get("cost_micros") is not None]
    return Used(
        len(outcomes),
        len(counted),
        sum(int(one["tokens_in"]) for one in counted),
        sum(int(one["tokens_out"]) for one in counted),
        len(costs),
        sum(costs),
        tuple(sorted({str(outcome["model"]) for outcome in outcomes if outcome.get("model")})),
    )


def _review_in(body: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a reviewer in a claim: the claim itself, or the answer of a dispatch."""
    for candidate in (body, *body.values()):
        if isinstance(candidate, dict) and isinstance(candidate.get("findings"), list):
            return candidate
    return body


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _parsed(text: str) -> dict[str, Any]:
    """Return the mapping in a JSON column; empty if it is none, or larger than Fair Witness writes."""
    if len(text) > _LARGEST_TEXT:
        return {}
    try:
        return _mapping(json.loads(text))
    except ValueError:
        return {}


FOLDER = "reports"
_LOOK = 1024
_LARGEST_PAGE = 256 << 20


class WrittenReport(NamedTuple):
    """A report that was written."""

    path: Path
    run_id: str
    outcome: str
    is_sound: bool
    """Whether the ledger is intact; if not, the report begins with that."""
    bytes: int


def write_report(root: Path, wanted: str, *, out: Path | None = None, force: bool = False) -> WrittenReport:
    """Write the report of a run; a file that is not a report is replaced only with `force`."""
    ledger = open_ledger(root)
    try:
        run_id = known_run(ledger, wanted)
        facts, checked = read_run(ledger, root, run_id)
    finally:
        ledger.close()
    content = page(facts, checked).encode()
    folder, name = _place(root, run_id, out)
    if not force:
        _refuse_other(folder, name)
    files.replace_file(folder, name, content)
    return WrittenReport(folder / name, run_id, outcome_of(facts), not checked.tampering, len(content))


def read_run(ledger: Ledger, root: Path, run_id: str) -> tuple[ReportFacts, LedgerFindings]:
    """Return the facts of a run, and what verifying the ledger found."""
    facts = ledger.database.look(lambda read: read_facts(read, run_id))
    kept = {run: Head(*head) for run, head in kept_heads(root).items()}.get(run_ref(run_id))
    heads = [Head(facts.links, facts.head), *([kept] if kept is not None else [])]
    tampering = tuple(str(finding) for finding in verify(ledger.database, run_id, heads))
    gates = gates_in_decisions(facts) or _gates_now(ledger, run_id)
    return facts, LedgerFindings(gates, tampering, _graded(facts))


def _gates_now(ledger: Ledger, run_id: str) -> list[GateFact]:
    """Return the current results of the gates, for a run without recorded decisions."""
    return [gate_fact(view.answer.plain()) for view in run_gates(ledger, run_id)]


def _graded(facts: ReportFacts) -> Graded | None:
    """Return the confidence that the facts of the last decision allow, with reasons."""
    if not facts.decisions or not facts.decisions[-1].facts:
        return None
    try:
        last = FeatureFacts.model_validate_json(json.dumps(facts.decisions[-1].facts))
        policy = Policy.model_validate_json(json.dumps(facts.order.get("policy") or {}))
    except ValidationError:
        return None
    return grade(confidence_facts(last, policy))


def _place(root: Path, run_id: str, out: Path | None) -> tuple[Path, str]:
    """Return the folder and the file name of the report."""
    if out is None:
        return state_in(root), f"{FOLDER}/{run_ref(run_id)}.html"
    given = out if out.is_absolute() else Path.cwd() / out
    if given.is_dir():
        raise UsageError(f"{given} is a folder", next_step="name the file to write")
    if not given.parent.is_dir():
        raise UsageError(f"there is no folder {given.parent}", next_step="create it first")
    return given.parent, given.name


def _refuse_other(folder: Path, name: str) -> None:
    try:
        present = files.read_plain(folder, name, limit=_LARGEST_PAGE)
    except NotStored:
        return
    except StoreError as error:
        raise UsageError(f"{folder / name} is not a report: {error.what}", next_step="choose another name") from error
    if MARK.encode() not in present[:_LOOK]:
        raise UsageError(
            f"{folder / name} is not a report and was not replaced", next_step="choose another name, or --force"
        )
