"""One record: rows that belong together, written in one transaction with one link of the chain.

No method takes the result of a check as an argument. A check is written together with its source, and passes if the
execution passed, if the observation holds, or if the claimed verdict approves (for a criterion: if the claim's body
says that it is met).
"""

import json
import shlex
from collections.abc import Collection, Mapping
from datetime import datetime
from enum import IntEnum
from typing import Any, NamedTuple

from fairwitness.contracts.common.approvals import ApprovalRecord
from fairwitness.contracts.common.evidence import Claim, Dispatch, Execution, Observation, Phase
from fairwitness.contracts.common.vocabulary import Assessment, CategoryVerdict, Severity, Workflow
from fairwitness.contracts.feature.evaluation import ArtifactEvaluation
from fairwitness.contracts.feature.knowledge import InstructionUpdate
from fairwitness.db.base import Transaction, Value
from fairwitness.errors import UsageError
from fairwitness.kit.clock import spell_sql
from fairwitness.ledger import kept
from fairwitness.ledger.chain import ChainMember, row_digest
from fairwitness.ledger.run_summary import RunSummary
from fairwitness.ledger.summary import EVENT_COLUMNS, SummaryWriter
from fairwitness.ledger.summary_event import SummaryEvent
from fairwitness.ledger.tables import CHAINED, Table

SNIPPET = 500


plain_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode
"""Encodes JSON for a column; equal values have equal text."""


def snippet(output: str) -> str:
    """Return the first 500 characters of an output, without characters that a database refuses or truncates at."""
    return output[: 2 * SNIPPET].replace("\0", "").encode(errors="replace").decode()[:SNIPPET]


class Milestone(IntEnum):
    """The points of a run after which its head is anchored."""

    DECISION = 1
    """A decision or a gate: anchored on this machine."""
    REST = 2
    """The run waits, was committed, or ended: anchored as a git ref as well."""


MILESTONES = {
    **dict.fromkeys(("decided", "gate_evaluated", "approval_answered"), Milestone.DECISION),
    **dict.fromkeys(("approval_requested", "committed", "run_finished"), Milestone.REST),
    **dict.fromkeys(("task.verified", "merge.finished", "cr.approved", "cr.rejected"), Milestone.DECISION),
    **dict.fromkeys(("plan.proposed", "plan.approved"), Milestone.DECISION),
    **dict.fromkeys(("run.paused", "run.completed", "run.failed"), Milestone.REST),
    **dict.fromkeys(("step_completed", "step_failed", "human_verdict_recorded"), Milestone.DECISION),
    **dict.fromkeys(("phase_completed", "phase_failed", "run_completed", "run_halted"), Milestone.REST),
}
"""The events of the three workflows after which the head of a run is anchored."""


class Record:
    """The rows of one record, while its transaction is open."""

    def __init__(
        self, transaction: Transaction, run_id: str, moment: datetime, known: RunSummary | None = None
    ) -> None:
        self._transaction = transaction
        self._run_id = run_id
        self._moment = moment
        self.members: list[ChainMember] = []
        self.milestone: Milestone | None = None
        self.summary = SummaryWriter(transaction, run_id, known)
        """The summary of the run, which follows every event of this record."""

    @property
    def _ts(self) -> str:
        return spell_sql(self._moment)

    def executed(
        self,
        execution: Execution,
        *,
        phase: Phase,
        check_name: str,
        round_: int,
        output: str = "",
        instance: str | None = None,
    ) -> int:
        """Record an executed command and the check based on it; `instance` distinguishes several of one name."""
        source = self.execution(execution)
        check = self._check(
            task_id=execution.task_id,
            phase=phase,
            check_name=check_name,
            tool=execution.tool,
            command=shlex.join(execution.argv),
            exit_code=execution.exit_code,
            output_snippet=snippet(output) or None,
            passed=execution.assessment is Assessment.PASS,
            round_=round_,
            instance=instance,
        )
        self._source(check, "executed", execution_id=source)
        return check

    def observed(
        self,
        observation: Observation,
        *,
        phase: Phase,
        check_name: str,
        round_: int,
        output: str = "",
        instance: str | None = None,
    ) -> int:
        """Record an observation and the check based on it."""
        source = self.observation(observation)
        check = self._check(
            task_id=observation.task_id,
            phase=phase,
            check_name=check_name,
            tool=observation.kind,
            output_snippet=snippet(output) or None,
            passed=observation.holds,
            round_=round_,
            instance=instance,
        )
        self._source(check, "observed", observation_id=source)
        return check

    def reviewed(
        self,
        claim: Claim,
        *,
        verdicts: Mapping[str, tuple[CategoryVerdict, Severity | None]],
        round_: int,
        summary: str,
    ) -> tuple[int, ...]:
        """Record a reviewer's claim, and one review row for each check name that it judges."""
        if claim.instance is None:
            raise UsageError("a review needs the reviewer's perspective", next_step="set the claim's instance")
        source = self.claim(claim)
        checks = []
        for check_name, (verdict, severity) in verdicts.items():
            check = self._check(
                task_id=claim.task_id,
                phase=Phase.REVIEW,
                check_name=check_name,
                tool="adversarial-review",
                command="adversarial-review",
                output_snippet=snippet(summary),
                passed=verdict is CategoryVerdict.APPROVE,
                verdict=verdict,
                severity=severity,
                round_=round_,
                instance=claim.instance,
            )
            self._source(check, "claimed", claim_id=source)
            checks.append(check)
        return tuple(checks)

    def inspected(self, claim: Claim, *, check_name: str, round_: int) -> int:
        """Record a claim that a criterion is met at a place (or is not), and the check based on it.

        The claim's body must have `met` (true or false), `place` and `claim`.
        """
        met, place, words = (claim.body.get(name) for name in ("met", "place", "claim"))
        if not isinstance(met, bool) or not all(isinstance(text, str) and text.strip() for text in (place, words)):
            raise UsageError(
                "the claim about a criterion must say whether it is met, where, and what is true there",
                next_step="set met, place and claim in its body",
            )
        source = self.claim(claim)
        check = self._check(
            task_id=claim.task_id,
            phase=Phase.AFTER,
            check_name=check_name,
            tool="inspection",
            output_snippet=snippet(f"{place}: {words}"),
            passed=met,
            round_=round_,
            instance=claim.instance,
        )
        self._source(check, "claimed", claim_id=source)
        return check

    def execution(self, execution: Execution) -> int:
        """Record an executed command without a check."""
        row = execution.plain()
        return self._insert("executions", {**row, "argv": plain_json(row["argv"])})

    def observation(self, observation: Observation) -> int:
        """Record an observation without a check."""
        row = observation.plain()
        return self._insert("observations", {**row, "holds": int(row["holds"]), "detail": plain_json(row["detail"])})

    def observations(self, kind: str) -> tuple[Observation, ...]:
        """Return the run's observations of one kind, including this record's; none can be added meanwhile."""
        return kept.observations(self._transaction.run, self._run_id, kind)

    def has_event(self, *, after: int, types: Collection[str]) -> bool:
        """Return whether the run has an event of these types after a sequence number; none can be added meanwhile."""
        wanted = sorted(types)
        sql = f"SELECT 1 FROM events WHERE run_id = ? AND seq > ? AND type IN ({', '.join('?' * len(wanted))}) LIMIT 1"
        return bool(self._transaction.run(sql, (self._run_id, after, *wanted)))

    def claim(self, claim: Claim) -> int:
        """Record a claim of an agent."""
        row = claim.plain()
        return self._insert("claims", {**row, "body": plain_json(row["body"])})

    def approval(self, approval: ApprovalRecord) -> int:
        """Record the answer to a question that waited for a person."""
        row = approval.plain()
        return self._insert("approvals", {**row, "auto_selected": int(row["auto_selected"])})

    def dispatch(self, dispatch: Dispatch) -> int:
        """Record the telemetry of an agent call that has ended."""
        return self._insert("pipeline_telemetry", {**dispatch.plain(), "ts": self._ts})

    def evaluation(self, evaluation: ArtifactEvaluation, *, agent: str, instance: str | None) -> int:
        """Record an agent's evaluation of a document that it worked from; an empty remark is stored as none."""
        row = {
            "run_id": self._run_id,
            "evaluator_agent": agent,
            "evaluator_instance": instance,
            "artifact_path": evaluation.artifact_path,
            "usefulness_score": evaluation.usefulness_score,
            "clarity_score": evaluation.clarity_score,
            "missing_information": evaluation.missing_information or None,
            "inaccuracies": evaluation.inaccuracies or None,
            "impact_on_work": evaluation.impact_on_work or None,
            "ts": self._ts,
        }
        return self._insert("artifact_evaluations", row)

    def instruction_update(self, update: InstructionUpdate, *, agent: str, applied: bool) -> int:
        """Record that a governed change was proposed, or (in a second row) that it was applied."""
        row = {
            "run_id": self._run_id,
            "agent": agent,
            "file_path": update.file_path,
            "change_type": update.change_type.value,
            "change_summary": update.change_summary,
            "applied": int(applied),
            "ts": self._ts,
        }
        return self._insert("instruction_updates", row)

    def event(
        self,
        workflow: Workflow,
        type_: str,
        data: Mapping[str, Any],
        *,
        timestamp: str,
        version: int = 1,
        phase: str | None = None,
        task: str | None = None,
        attempt: int | None = None,
    ) -> int:
        """Append the next event of the run; return its sequence number."""
        ((last,),) = self._transaction.run("SELECT COALESCE(MAX(seq), 0) FROM events WHERE run_id = ?", (self._run_id,))
        row: dict[str, Any] = {
            "run_id": self._run_id,
            "seq": last + 1,
            "event_id": f"{self._run_id}.{last + 1}".replace(":", "-"),
            "timestamp": timestamp,
            "workflow": workflow.value,
            "phase": phase,
            "task": task,
            "attempt": attempt,
            "type": type_,
            "version": version,
            "data": plain_json(data),
        }
        number = self._insert("events", row)
        if type_ in MILESTONES:
            self.milestone = max(MILESTONES[type_], self.milestone or Milestone.DECISION)
        self.summary.add(SummaryEvent._make((*(row[column] for column in EVENT_COLUMNS[:-1]), json.loads(row["data"]))))
        return number

    def _check(
        self,
        *,
        task_id: str | None,
        phase: Phase,
        check_name: str,
        passed: bool,
        round_: int,
        tool: str | None = None,
        command: str | None = None,
        exit_code: int | None = None,
        output_snippet: str | None = None,
        verdict: CategoryVerdict | None = None,
        severity: Severity | None = None,
        instance: str | None = None,
    ) -> int:
        row: dict[str, Value] = {
            "run_id": self._run_id,
            "task_id": task_id,
            "phase": phase.value,
            "check_name": check_name,
            "tool": tool,
            "command": command,
            "exit_code": exit_code,
            "output_snippet": output_snippet,
            "passed": int(passed),
            "verdict": verdict.value if verdict else None,
            "severity": severity.value if severity else None,
            "round": round_,
            "instance": instance,
            "ts": self._ts,
        }
        return self._insert("anvil_checks", row)

    def _source(self, check: int, provenance: str, **source: int) -> None:
        self._insert("check_sources", {"check_id": check, "run_id": self._run_id, "provenance": provenance, **source})

    def _insert(self, table: str, row: Mapping[str, Value]) -> int:
        if row["run_id"] != self._run_id:
            raise UsageError(f"a row of run {row['run_id']!r} in a record of run {self._run_id!r}")
        shape = _SHAPES[table]
        values = [row.get(column) for column in shape.columns]
        if shape.is_numbered:
            ((number,),) = self._transaction.run(shape.insert, values)
            values.insert(0, number)
        else:
            self._transaction.run(shape.insert, values)
            number = row[shape.key]
        self.members.append(ChainMember(table, number, row_digest(table, values)))
        return int(number)


class _Shape(NamedTuple):
    """How rows of a table are written: a missing value is written as NULL, never left to a default."""

    columns: tuple[str, ...]
    key: str
    is_numbered: bool
    """Whether the database numbers the rows."""
    insert: str


def _shape(table: Table) -> _Shape:
    is_numbered = table.key == "id"
    columns = table.columns[1:] if is_numbered else table.columns
    # Table and column names come from `CHAINED`, never from outside.
    insert = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    return _Shape(columns, table.key, is_numbered, f"{insert} RETURNING id" if is_numbered else insert)


_SHAPES = {name: _shape(table) for name, table in CHAINED.items()}
