"""The checks of a run with their sources, as the rules judge them."""

from collections.abc import Sequence
from typing import NamedTuple

from fairwitness.contracts.common.evidence import CheckRow, EvidenceQuery, Phase, Provenance, SandboxTier, Tally
from fairwitness.contracts.common.vocabulary import Assessment, CategoryVerdict, Severity
from fairwitness.contracts.verify.results import Evidence
from fairwitness.db.base import ReadQuery
from fairwitness.rules.evidence_worth import RowWorth, ValuedRow, baseline_results, baseline_worth, proof_of, row_worth
from fairwitness.runs.feature.facts import WHOLE

MOST = 3000
"""The maximum number of rows that are read of a table: the newest."""


class Check(NamedTuple):
    """A check of the ledger with its source."""

    id: int
    task: str | None
    phase: str
    round: int
    name: str
    instance: str | None
    passed: int
    verdict: str | None
    severity: str | None
    command: str | None
    exit_code: int | None
    snippet: str | None
    provenance: str | None
    execution: int | None
    assessment: str | None
    tree: str | None
    sandbox: str | None
    duration_ms: int | None
    worth: RowWorth | None = None
    """What the row is worth to a gate; None for a review."""


_CHECKS = """
SELECT c.id, c.task_id, c.phase, c.round, c.check_name, c.instance, c.passed, c.verdict, c.severity, c.command,
       c.exit_code, c.output_snippet, s.provenance, e.id, e.assessment, COALESCE(e.tree, o.tree), e.sandbox,
       e.duration_ms
FROM anvil_checks c
LEFT JOIN check_sources s ON s.check_id = c.id
LEFT JOIN executions e ON e.id = s.execution_id
LEFT JOIN observations o ON o.id = s.observation_id
WHERE c.run_id = ? ORDER BY c.id DESC LIMIT ?"""


def read_checks(read: ReadQuery, run_id: str) -> list[Check]:
    """Return the newest checks of a run, as the rules judge them, oldest first."""
    return judged_checks([Check(*row) for row in reversed(read(_CHECKS, (run_id, MOST)))])


def checks_of_whole(checks: Sequence[Check]) -> list[Check]:
    """Return the checks of the whole result: the last round of the last subject that is the whole change or a merge."""
    after = [check for check in checks if check.phase == Phase.AFTER and check.task]
    subject = next((one.task for one in reversed(after) if str(one.task).startswith((WHOLE, "merge-"))), None)
    rows = [check for check in after if subject is not None and check.task == subject]
    return [check for check in rows if check.round == rows[-1].round]


def judged_checks(checks: Sequence[Check]) -> list[Check]:
    """Return the checks with what the rules say of them; a check passes only if its row proves that."""
    rows = {check.id: row for check in checks if (row := _row_of(check)) is not None}
    before: dict[tuple[str | None, int], list[CheckRow]] = {}
    for check in checks:
        if check.phase == Phase.BASELINE and check.id in rows:
            before.setdefault((check.task, check.round), []).append(rows[check.id])
    return [_judged(check, rows.get(check.id), before.get((check.task, check.round - 1), ())) for check in checks]


def _row_of(check: Check) -> CheckRow | None:
    if check.provenance is None:
        return None  # a check without a source proves nothing
    return CheckRow(
        id=check.id,
        check_name=check.name,
        phase=Phase(check.phase),
        round=check.round,
        passed=bool(check.passed),
        verdict=None if check.verdict is None else CategoryVerdict(check.verdict),
        severity=None if check.severity is None else Severity(check.severity),
        instance=check.instance,
        provenance=Provenance(check.provenance),
        assessment=None if check.assessment is None else Assessment(check.assessment),
        tree=check.tree,
        sandbox=None if check.sandbox is None else SandboxTier(check.sandbox),
    )


def _judged(check: Check, row: CheckRow | None, before: Sequence[CheckRow]) -> Check:
    if row is None:
        return check._replace(passed=0, worth=RowWorth.NO_EVIDENCE)
    match row.phase:
        case Phase.REVIEW:
            return check
        case Phase.BASELINE:
            return check._replace(passed=int(proof_of(row) is Evidence.PASSED), worth=baseline_worth(row, tree=None))
        case Phase.AFTER:
            baseline = Tally(query=EvidenceQuery(sql="anvil_checks", values=()), rows=tuple(before))
            valued = ValuedRow(row, row_worth(row, tree=None, before=baseline_results(baseline)))
            return check._replace(passed=int(valued.passes), worth=valued.worth)
