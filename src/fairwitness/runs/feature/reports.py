"""The verification report in the feature folder, and the comparison of an implementer's report with the observations.

Opinions are the verifier's, everything else comes from the ledger. The report exists even if the verifier failed or
said nothing. Where its words differ from the ledger, the ledger counts and the report names the difference. Numbers of
tests are never compared: skipped tests, parameters and other merged work make them differ. What is compared is whether
something passed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fairwitness.contracts.agents.dispatch import ChangedPath, PathChangeKind
from fairwitness.contracts.common.completion import FeatureAgent
from fairwitness.contracts.common.evidence import CheckRow, Observation, Phase, Tally
from fairwitness.contracts.common.gates import Blocked, GateAnswer
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.vocabulary import CompletionStatus, Severity
from fairwitness.contracts.feature.facts import TaskFacts
from fairwitness.contracts.feature.implementation import Baseline, ChangeAction, ImplementationReport, SelfCheck
from fairwitness.contracts.feature.verification import CheckPhase, GateStatus, VerificationPayload, VerificationReport
from fairwitness.contracts.verify.results import Evidence
from fairwitness.errors import RowRefused
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.rules.evidence_worth import SHUTS, RowWorth, ValuedRow, baseline_results, kind_of, latest, proof_of
from fairwitness.rules.gates import task_gates, task_rows
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.verify.shown_command import shown_command

KIND = "discrepancy"
"""The kind of observation that records the comparison of a report."""
BASELINE = "baseline-discrepancy"
"""The check that blocks a gate because the reported baseline was not true."""
_SAID = {
    ChangeAction.CREATED: PathChangeKind.ADDED,
    ChangeAction.MODIFIED: PathChangeKind.MODIFIED,
    ChangeAction.DELETED: PathChangeKind.DELETED,
}


def compare(
    report: ImplementationReport, changed: Sequence[ChangedPath], baseline: Tally, after: Tally
) -> tuple[str, ...]:
    """Return all differences between a report and the observations, in words; the tallies are those of one round."""
    return (*_files(report, changed), *_self_check(report, after), *untrue_baseline(report, baseline))


def untrue_baseline(report: ImplementationReport, baseline: Tally) -> tuple[str, ...]:
    """Return how the reported baseline differs from what the harness saw; what the report did not run is not
    compared."""
    seen: dict[str, bool] = {}
    for (name, _), passed in baseline_results(baseline).items():
        seen[name] = passed and seen.get(name, True)  # checks of one name passed if all of them did
    payload = report.agent_output.payload
    said = list(_claimed(payload.baseline).items())
    said += [(each.check_name.removeprefix("baseline-"), each.passed) for each in payload.verification_entries or ()]
    return tuple(
        f"the report says that {name} {_word(claimed)} before the change; "
        f"it {_word(seen[name])} when Fair Witness ran it"
        for name, claimed in dict.fromkeys(said)
        if name in seen and seen[name] != claimed
    )


def _word(passed: bool) -> str:
    return "passed" if passed else "failed"


def _claimed(said: Baseline | SelfCheck) -> dict[str, bool]:
    """Return what was said about each check that was run."""
    claims: dict[str, bool] = {}
    if said.build_exit_code is not None:
        claims["build"] = said.build_exit_code == 0
    tests = said.test_summary
    if tests is not None and tests.total:
        claims["tests"] = tests.failed == 0
    return claims


def _self_check(report: ImplementationReport, after: Tally) -> Iterator[str]:
    """Yield the claimed passes that are untrue; a reported failure needs no comparison."""
    last = max((row.round for row in after.rows), default=0)
    red = {
        row.check_name
        for row in latest(after.rows)
        if row.phase is Phase.AFTER and row.round == last and proof_of(row) is Evidence.FAILED
    }
    check = report.agent_output.payload.self_check
    green = {name for name, passed in _claimed(check).items() if passed}
    if check.ide_diagnostics is not None and check.ide_diagnostics.errors == 0:
        green |= {"ide-diagnostics", "syntax-check"}
    for name in sorted(green & red):
        yield f"the report says that {name} passed after the change; it failed when Fair Witness ran it"


def _files(report: ImplementationReport, changed: Sequence[ChangedPath]) -> Iterator[str]:
    seen = {each.path: each.change for each in changed}
    said: dict[str, set[PathChangeKind]] = {}
    for each in report.agent_output.payload.changes:
        said.setdefault(each.path.removeprefix("./"), set()).add(_SAID[each.action])
    for path in sorted(said.keys() | seen.keys()):
        if path not in seen:
            yield f"the report names {path}, which is as it was"
        elif path not in said:
            yield f"{path} was {seen[path].value}, and the report does not name it"
        elif seen[path] not in said[path]:
            words = " and ".join(sorted(change.value for change in said[path]))
            yield f"the report says that {path} was {words}; it was {seen[path].value}"


def record(
    context: FeatureContext,
    task: str,
    round_: int,
    found: Sequence[str],
    *,
    baseline: Sequence[str],
    tree: str | None = None,
) -> None:
    """Record once what a comparison found, even if that is nothing.

    `baseline` is the result of `untrue_baseline`: if it is not empty, a check of its own blocks the task's gate.
    """
    key = f"{KIND}:{task}:{round_}"
    if context.ledger.observation(context.run_id, key) is not None:
        return
    now = context.now()

    def observation(of: str, kind: str, *, holds: bool, said: Sequence[str]) -> Observation:
        found = {"found": list(said)}
        return context.observation(of, kind, task, found, now, holds=holds, task_id=task, tree=tree)

    def write(record: Record) -> None:
        record.observation(observation(key, KIND, holds=not found, said=found))
        if baseline:
            untrue = observation(f"{BASELINE}:{task}:{round_}", BASELINE, holds=False, said=baseline)
            record.observed(untrue, phase=Phase.AFTER, check_name=BASELINE, round_=round_, output="\n".join(baseline))

    try:
        context.write(write)
    except RowRefused:
        if context.ledger.observation(context.run_id, key) is None:
            raise
        return  # another process recorded the same comparison
    killpoint("feature.discrepancy")


NO_ROWS = "verification"
"""The finding of a task for which nothing was run."""
UNTIERED = 3
"""The tier of checks without one: inspections and criteria, which look at what the change does."""
_SCHEMA = "1.0"
_SUMMARY = 200
_SECRETS = frozenset({"secrets", "readiness-secrets"})
_ROWS = """
SELECT id, tool, command, exit_code, output_snippet FROM anvil_checks
WHERE run_id = ? AND task_id = ? AND phase IN ('baseline', 'after')
"""


class CheckDetail(NamedTuple):
    """The details of a row that a gate does not read."""

    tool: str | None
    command: str | None
    exit_code: int | None
    snippet: str | None


class ReportTimes(NamedTuple):
    """When a verification began and ended, for a report without a verifier."""

    started_at: str
    completed_at: str


def shown(ledger: Ledger, run_id: str, task: str) -> Mapping[int, CheckDetail]:
    """Return the tools, commands and outputs of a task's rows, by row number."""
    return {row[0]: CheckDetail(*row[1:]) for row in ledger.database.read(_ROWS, (run_id, task))}


def filled(
    report: VerificationReport | None,
    task: TaskFacts,
    run_id: str,
    rows: Mapping[int, CheckDetail],
    *,
    policy: Policy,
    path: str,
    when: ReportTimes,
    unmet: Sequence[str] = (),
) -> VerificationReport:
    """Return the report of one task. `path` is its future path, `unmet` is the result of `judge`."""
    gates = task_gates(task, policy)
    judged = task_rows(task)
    after = [each for each in judged if each.is_finding]
    findings = [_finding(each, rows) for each in after]
    if not after:
        findings = [_nothing_was_run()]
    failed = sum(not finding["passed"] for finding in findings)
    shut = [answer for answer in gates if isinstance(answer, Blocked)]
    passes = not shut and not failed and not unmet
    gate = {
        "total_checks": len(findings),
        "passed": len(findings) - failed,
        "failed": failed,
        "gate_status": (GateStatus.PASSED if passes else GateStatus.FAILED).value,
    }
    said = report.agent_output.payload if report is not None else None
    payload: dict[str, Any] = {
        "task_id": task.task,
        "run_id": run_id,
        "evidence_gate": gate,
        "findings": [*(_before(row, rows) for row in _baseline(task)), *findings],
        **_optional("regressions", _regressions(judged, rows)),
        **_opinions(said, judged),
        **_optional("unmet_criteria", list(unmet)),
        **_optional("not_counted", [_told(each) for each in judged if not each.is_finding]),
        **_optional("open_questions", [line for answer in shut for line in answer.missing]),
        **_optional("differences", list(_differences(report, task, run_id, gate, judged, passes=passes))),
    }
    return VerificationReport.model_validate(
        {
            "agent_output": {**_header(report, task, when), "payload": payload},
            "completion": _completion(report, gates, gate, judged, unmet, path, passes=passes),
        }
    )


def _optional(name: str, value: list[Any]) -> dict[str, Any]:
    return {name: value} if value else {}


def _told(judged: ValuedRow) -> str:
    return f"{judged.row.check_name} ({judged.worth.value})"


def _tier(check_name: str, phase: Phase) -> int:
    name = check_name.removeprefix("baseline-") if phase is Phase.BASELINE else check_name
    kind = kind_of(name, Phase.AFTER)
    return kind.tier if kind is not None and kind.tier is not None else UNTIERED


def _as_shown(row_id: int, provenance: str, rows: Mapping[int, CheckDetail]) -> dict[str, Any]:
    told = rows.get(row_id, CheckDetail(None, None, None, None))
    return {
        "tool": told.tool if told.tool and told.tool.strip() else provenance,
        **({} if told.command is None else {"command": shown_command(told.command)}),
        **({} if told.exit_code is None else {"exit_code": told.exit_code}),
        **({} if told.snippet is None else {"output_snippet": told.snippet}),
    }


def _finding(judged: ValuedRow, rows: Mapping[int, CheckDetail]) -> dict[str, Any]:
    """Return a row as a finding; a row without evidence, or with evidence of another tree, has not passed."""
    row = judged.row
    return {
        "check_name": row.check_name,
        "tier": _tier(row.check_name, Phase.AFTER),
        "phase": CheckPhase.AFTER.value,
        "passed": judged.passes,
        "provenance": row.provenance.value,
        "standing": judged.worth.value,
        **({} if row.instance is None else {"instance": row.instance}),
        **_as_shown(row.id, row.provenance.value, rows),
    }


def _nothing_was_run() -> dict[str, Any]:
    return {
        "check_name": NO_ROWS,
        "tier": 1,
        "phase": CheckPhase.AFTER.value,
        "tool": "fairwitness",
        "passed": False,
        "output_snippet": "no check says anything about the change",
    }


def _baseline(task: TaskFacts) -> tuple[CheckRow, ...]:
    return tuple(row for row in latest(task.baseline.rows) if row.phase is Phase.BASELINE)


def _before(row: CheckRow, rows: Mapping[int, CheckDetail]) -> dict[str, Any]:
    return {
        "check_name": row.check_name,
        "tier": _tier(row.check_name, Phase.BASELINE),
        "phase": CheckPhase.BASELINE.value,
        "passed": proof_of(row) is Evidence.PASSED,
        "provenance": row.provenance.value,
        **({} if row.instance is None else {"instance": row.instance}),
        **_as_shown(row.id, row.provenance.value, rows),
    }


def _regressions(judged: Sequence[ValuedRow], rows: Mapping[int, CheckDetail]) -> list[dict[str, Any]]:
    """Yield checks that passed before and fail now, and what got worse in checks that failed before."""
    found: dict[str, dict[str, Any]] = {}
    for row, worth in judged:
        got_worse = row.check_name == "regressions" and worth is RowWorth.FAILED
        name = (row.instance or row.check_name) if got_worse else row.check_name
        if worth is RowWorth.REGRESSED or got_worse:
            told = rows.get(row.id)
            detail = (told.snippet or "").strip() if told else ""
            detail = detail or "it passed before the change and fails now"
            # the inspection's text is shorter than the check's output, and names the tests
            if name not in found or got_worse:
                found[name] = {"check_name": name, "baseline_result": True, "after_result": False, "detail": detail}
    return list(found.values())


def _opinions(said: VerificationPayload | None, judged: Sequence[ValuedRow]) -> dict[str, Any]:
    """Return what only the verifier can say, verbatim."""
    if said is None:
        return {}
    plain = said.plain()
    opinions: dict[str, Any] = {name: plain[name] for name in ("criteria", "artifact_evaluations") if name in plain}
    if said.baseline_cross_check is not None:
        untrue = _is_untrue(judged)
        opinions["baseline_cross_check"] = {**plain["baseline_cross_check"], "discrepancies_found": untrue}
    return opinions


def _is_untrue(judged: Sequence[ValuedRow]) -> bool:
    return any(row.check_name == BASELINE and worth in SHUTS for row, worth in judged)


def _header(report: VerificationReport | None, task: TaskFacts, when: ReportTimes) -> dict[str, Any]:
    own = {"agent": FeatureAgent.VERIFIER.value, "step": "step-6", "schema_version": _SCHEMA}
    if report is None:
        return {**own, "instance": task.task, "started_at": when.started_at, "completed_at": when.completed_at}
    said = report.agent_output
    return {
        **own,
        "instance": said.instance,
        "started_at": said.started_at,
        "completed_at": said.completed_at,
    }


def _completion(
    report: VerificationReport | None,
    gates: Sequence[GateAnswer],
    gate: Mapping[str, Any],
    judged: Sequence[ValuedRow],
    unmet: Sequence[str],
    path: str,
    *,
    passes: bool,
) -> dict[str, Any]:
    """Return the completion by the ledger; the severity is the verifier's opinion where that fits."""
    reasons = [answer.because for answer in gates if isinstance(answer, Blocked)]
    reasons += [f"{len(unmet)} criteria are unmet or unjudged"] if unmet else []
    opinion = report.completion.severity if report is not None else None
    words = f"{gate['passed']} of {gate['total_checks']} checks passed"
    summary = " ".join("; ".join([words, *reasons]).split())
    return {
        "status": (CompletionStatus.DONE if passes else CompletionStatus.NEEDS_REVISION).value,
        "summary": summary if len(summary) <= _SUMMARY else f"{summary[: _SUMMARY - 1]}…",
        "severity": opinion.value if opinion is not None else None if passes else Severity.MAJOR.value,
        "findings_count": gate["failed"],
        "risk_level": None,
        "output_paths": [path],
        "evidence_summary": {
            **{name: gate[name] for name in ("total_checks", "passed", "failed")},
            "security_blockers": sum(row.check_name in _SECRETS and worth in SHUTS for row, worth in judged),
        },
    }


def _differences(
    report: VerificationReport | None,
    task: TaskFacts,
    run_id: str,
    gate: Mapping[str, Any],
    judged: Sequence[ValuedRow],
    *,
    passes: bool,
) -> Iterator[str]:
    """Yield where the verifier's words differ from the ledger."""
    if report is None:
        yield "the verifier left no report: everything here is from the ledger"
        return
    said = report.agent_output.payload
    for name, theirs, ours in (
        ("task_id", said.task_id, task.task),
        ("run_id", said.run_id, run_id),
        ("gate_status", said.evidence_gate.gate_status.value, gate["gate_status"]),
        ("total_checks", said.evidence_gate.total_checks, gate["total_checks"]),
        ("passed", said.evidence_gate.passed, gate["passed"]),
        ("failed", said.evidence_gate.failed, gate["failed"]),
        (
            "status",
            report.completion.status.value,
            (CompletionStatus.DONE if passes else CompletionStatus.NEEDS_REVISION).value,
        ),
    ):
        if theirs != ours:
            yield f"{name}: the verifier says {theirs}, the ledger {ours}"
    yield from _about_checks(said, task, judged)
    crossed = said.baseline_cross_check
    if crossed is not None and crossed.discrepancies_found != _is_untrue(judged):
        theirs, ours = ("some", "none") if crossed.discrepancies_found else ("none", "some")
        yield f"discrepancies_found: the verifier says {theirs}, the ledger {ours}"
    regressed = {row.check_name for row, worth in judged if worth is RowWorth.REGRESSED}
    for regression in said.regressions or ():
        if regression.check_name not in regressed:
            yield f"{regression.check_name}: the verifier calls it a regression, the ledger does not"


def _about_checks(said: VerificationPayload, task: TaskFacts, judged: Sequence[ValuedRow]) -> Iterator[str]:
    """Compare each finding with the rows of the same name; they passed if all did."""
    ours: dict[tuple[str, str], bool] = {}
    rows = [(each.row, each.passes) for each in judged]
    rows += [(row, proof_of(row) is Evidence.PASSED) for row in _baseline(task)]
    for row, passes in rows:
        key = (row.phase.value, row.check_name)
        ours[key] = passes and ours.get(key, True)
    for finding in said.findings:
        held = ours.get((finding.phase.value, finding.check_name))
        word = "passed" if finding.passed else "failed"
        where = f"{finding.check_name} ({finding.phase.value})"
        if held is None:
            yield f"{where}: the verifier says {word}, the ledger holds no such check"
        elif held != finding.passed:
            yield f"{where}: the verifier says {word}, the ledger {'passed' if held else 'failed'}"
