"""What the rules between fields ask of autopilot's documents; see `fitting`."""

from fairwitness.contracts.autopilot import (
    audit,
    completion,
    context_map,
    events_audit,
    events_phase,
    events_quality,
    execution,
    metrics,
    phase_record,
    phase_return,
    plan,
    rating,
    repomap,
    returns,
    state,
    triage,
    verification,
    visual,
)
from fairwitness.contracts.autopilot import context_map as discuss
from fairwitness.contracts.autopilot import rating as gaps
from fairwitness.contracts.autopilot import returns as debug
from fairwitness.contracts.autopilot.event_base import AutopilotEventBase
from fairwitness.contracts.autopilot.rating import band_of
from fairwitness.contracts.autopilot.vocabulary import blocked_by
from fairwitness.contracts.common.base import instant
from support.fitting import SOME_TIME, Fitting, Plain, distinct, ordered, together

_SOME_HASH = "sha256:" + "0a" * 32


def _audited(document: Plain) -> None:
    gap = document["gap_description"] is not None and document["fix_complexity"] is not None
    document["status"] = "gap" if gap else "pass"
    if not gap:
        document["gap_description"] = document["fix_complexity"] = None


def _audit_total(document: Plain) -> None:
    document["gaps_found"] = max(document["gaps_found"], len(document.get("gap_details", ()))) % 10**9
    document["passed_on_first_check"] %= 10**9
    document["total_requirements_checked"] = document["passed_on_first_check"] + document["gaps_found"]


def _audit_outcome(document: Plain) -> None:
    if "remaining_gap_details" in document:
        document["gaps_remaining"] = len(document["remaining_gap_details"])
    document["gaps_fixed"] %= 10**9
    document["gaps_remaining"] %= 10**9
    document["gaps_found"] = document["gaps_fixed"] + document["gaps_remaining"]
    _audit_total(document)


def _skipped(document: Plain) -> None:
    document["blocking_phase"] = blocked_by(document["reason"])


def _attempted(document: Plain, *ended: str) -> None:
    for field in ended:
        document[field] %= 10**9
    document["phases_attempted"] = sum(document[field] for field in ended) + document["phases_attempted"] % 10**9


def _completion_report(document: Plain) -> None:
    _attempted(document, "phases_succeeded", "phases_failed", "phases_deferred")
    ordered("completed_phases_total", "total_phases_in_roadmap")(document)
    done, total = document["completed_phases_total"], document["total_phases_in_roadmap"]
    document["completion_percentage"] = 100 * done / total if total else 0


def _run_metrics(document: Plain) -> None:
    _attempted(document, "phases_succeeded", "phases_failed", "phases_human_deferred")
    attempted = document["phases_attempted"]
    document["success_rate"] = document["phases_succeeded"] / attempted if attempted else 0.0


def _weights(document: Plain) -> None:
    others = ("requirement_detail", "documentation_coverage", "dependency_status")
    for field in others:
        document[field] = (document.get(field) or 0.0) / 3
    document["criteria_specificity"] = 1.0 - sum(document[field] for field in others)


def _debug_session(document: Plain) -> None:
    document["created"], document["updated"] = sorted((document["created"], document["updated"]), key=instant)
    if not document.get("failure_category"):
        document["status"] = "gathering"


def _discussed(document: Plain) -> None:
    document["gray_areas_discussed"] += [question["area"] for question in document["questions"]]


def _event(document: Plain) -> None:
    named = document["details"].get("phase_id")
    if named is not None and document.get("phase") is not None:
        document["phase"] = named


def _remediation(document: Plain) -> None:
    document["improved"] = document.get("new_score", 0.0) > document["old_score"]


def _execution(document: Plain) -> None:
    if document["assessment"] == "pass":
        document["exit_code"] = 0
    if document["assessment"] == "fail" and document["exit_code"] is None:
        document["exit_code"] = 1
    document["sandbox_violation"] = document["assessment"] == "violation"


def _deficiency(document: Plain) -> None:
    if document["current_score"] == document["target_score"]:
        document["current_score"], document["target_score"] = 4.0, 9.0
    ordered("current_score", "target_score")(document)


def _spread(document: Plain) -> None:
    document["min"], document["avg"], document["max"] = sorted(document[name] for name in ("min", "avg", "max"))


def _document_step(document: Plain) -> None:
    if document["status"] == "completed":
        document["output"] = document.get("output") or "docs/plan.md"
        document["hash"] = document.get("hash") or _SOME_HASH


def _verify_step(document: Plain) -> None:
    if document.get("automated") is None or document.get("scope_creep") is None:
        document["status"] = "in_progress"


def _band(document: Plain) -> None:
    score = document.get("alignment_score")
    document["score_band"] = None if score is None else band_of(score).value


def _rate_step(document: Plain) -> None:
    _band(document)
    if document["score_band"] is None:
        document["status"] = "skipped"


def _human_verdict(document: Plain) -> None:
    document["issues"] = document["issues"] or ["it blinks"]


def _phase_record(document: Plain) -> None:
    for field in ("started_at", "completed_at"):
        document[field] = document.get(field) or SOME_TIME
    if document["human_verify_justification"] is None:
        document["human_verdict"] = None
        if document["status"] == "needs_human_verification":
            document["status"] = "failed"
    document["force_incomplete"] &= document["diagnostic_path"] is not None and document["remediation_cycles"] > 0


def _tallies(document: Plain) -> None:
    done = [int(document[field].partition("/")[0]) % 1000 for field in ("tasks_completed", "tasks_failed")]
    document["tasks_completed"], document["tasks_failed"] = (f"{count}/{sum(done)}" for count in done)


def _phase_return(document: Plain) -> None:
    _tallies(document)
    if document["status"] == "needs_human_verification" and not document.get("human_verify_justification"):
        document["status"] = "failed"
    if document["status"] == "split_request" and not document.get("split_details"):
        document["status"] = "completed"
    if not document.get("rollback_from") or not document.get("rollback_to"):
        document["rollback_performed"] = False


def _split(document: Plain) -> None:
    document["total_sub_phases"] = len(document["recommended_sub_phases"])


def _coverage(document: Plain) -> None:
    ordered("tasks_with_tests", "tasks_total")(document)
    ordered("assertions_passed", "assertions_total")(document)


def _summary(document: Plain) -> None:
    document["languages"] = {name: count % 10**9 + 1 for name, count in document["languages"].items()}
    document["total_files"] = sum(document["languages"].values())


def _repo_map(document: Plain) -> None:
    document["files"] = distinct(document["files"], "path")
    parts = ("language", "exports", "imports", "functions", "classes", "call_graph")
    whole = all(file.get(part) is not None for file in document["files"] for part in parts)
    summary = document["summary"]
    document["size_cap_applied"] = not whole
    if whole or summary["total_files"] < len(document["files"]):
        summary["total_files"] = len(document["files"])
        summary["languages"] = {"other": len(document["files"])} if document["files"] else {}


def _preflight(document: Plain) -> None:
    checks = ("spec_hash_match", "working_tree_clean", "dependencies_met")
    document["all_clear"] &= all(document[name] for name in checks)


def _plan_checker(document: Plain) -> None:
    severities = [issue["severity"] for issue in document["issues"]]
    document["blocker_count"] = severities.count("blocker")
    document["warning_count"] = severities.count("warning")
    document["pass"] &= document["blocker_count"] == 0


def _phase_plan(document: Plain) -> None:
    for number, task in enumerate(document["tasks"], start=1):
        task |= {"id": f"t{number}", "wave": number}
    document["total_tasks"] = document["waves"] = len(document["tasks"])


def _state(document: Plain) -> None:
    locks = {lock["path"]: lock for lock in document.get("specs") or ()}
    document["specs"] = list(locks.values())
    document["spec"] = locks.get(document["spec"]["path"], document["spec"])


def _triage(document: Plain) -> None:
    passed = sum(checked["result"] == "pass" for checked in document["criteria_checked"])
    document["passed_criteria"] = passed
    document["total_criteria"] = max(len(document["criteria_checked"]), document["total_criteria"] % 20)
    document["pass_ratio"] = passed / document["total_criteria"] if document["total_criteria"] else 0.0
    if document["pass_ratio"] <= triage.VERIFY_ONLY_ABOVE:
        document["routing_decision"] = "full_pipeline"
    verify_only = document["routing_decision"] == "verify_only"
    document["skipped_steps"] = [step.value for step in triage.SKIPPED_BY_VERIFY_ONLY] if verify_only else []


def _mini_verifier(document: Plain) -> None:
    document["pass"] &= all(result["status"] == "pass" for result in document["criteria_results"])


def _verifier(document: Plain) -> None:
    reports = [report for report in document["automated_checks"].values() if isinstance(report, dict)]
    document["pass"] &= (
        not document["failures"]
        and all(result["status"] == "verified" for result in document["criteria_results"])
        and all(report.get("status") is not False for report in reports)
    )


def _visual_testing(document: Plain) -> None:
    document["routes"] = distinct(document["routes"], "name")


def _analysis(document: Plain) -> None:
    document["issues_found"] = len(document["issues"])
    if document["overall_assessment"] != "error":
        document["overall_assessment"] = "issues_found" if document["issues"] else "pass"


def _bug_report(document: Plain) -> None:
    parts = ("routes_passed", "routes_with_issues")
    for field in parts:
        document[field] %= 10**9
    document["total_routes_tested"] = sum(document[field] for field in parts) + document["total_routes_tested"] % 10**9


AUTOPILOT_FITTINGS: dict[type, Fitting] = {
    plan.PhasePlan: _phase_plan,
    audit.AuditedRequirement: _audited,
    audit.AuditAggregate: _audit_total,
    audit.AuditOutcome: _audit_outcome,
    events_audit.SelfAuditCompleted.Details: _audit_outcome,
    completion.SkippedPhase: _skipped,
    completion.CompletionReport: _completion_report,
    context_map.MappedQuestion: together("answer", "answered_at"),
    context_map.SufficiencyWeights: _weights,
    debug.DebugSession: _debug_session,
    discuss.DiscussedQuestion: together("answer", "answered_at"),
    discuss.DiscussedPhase: _discussed,
    AutopilotEventBase: _event,
    events_phase.PhaseSkipped.Details: _skipped,
    events_quality.RemediationCompleted.Details: _remediation,
    events_quality.DiscussAnswersRecorded.Details: ordered("questions_answered", "questions_asked"),
    execution.ExecutionResult: _execution,
    gaps.Deficiency: _deficiency,
    metrics.RunMetrics: _run_metrics,
    metrics.Spread: _spread,
    phase_record.DocumentStep: _document_step,
    phase_record.VerifyStep: _verify_step,
    phase_record.RateStep: _rate_step,
    phase_record.HumanVerifyJustification: ordered("auto_tasks_passed", "auto_tasks_total"),
    phase_record.HumanVerdict: _human_verdict,
    phase_record.PhaseRecord: _phase_record,
    phase_return.HumanVerifyClaim: ordered("auto_tasks_passed", "auto_tasks_total"),
    phase_return.SplitDetails: _split,
    phase_return.RatedStep: _band,
    phase_return.PhaseReturn: _phase_return,
    rating.TestCoverage: _coverage,
    rating.RatingReturn: _band,
    repomap.MapSummary: _summary,
    repomap.RepoMap: _repo_map,
    returns.ExecutorReturn: _tallies,
    returns.PreflightReturn: _preflight,
    returns.PlanCheckerReturn: _plan_checker,
    state.Meta: ordered("human_deferred_count", "total_phases_processed"),
    state.State: _state,
    triage.Triage: _triage,
    verification.MiniVerifierReturn: _mini_verifier,
    verification.VisualTestResults: ordered("routes_passed", "routes_tested"),
    verification.VerifierReturn: _verifier,
    visual.VisualTesting: _visual_testing,
    visual.ScreenshotAnalysis: _analysis,
    visual.VisualBugReport: _bug_report,
}
