"""The field tables of seed 000, row by row: for each field, values that its row refuses.

`DELETE` stands for a required field that is missing. A field that is wrong is named by its own path, so the table
needs no third column.
"""

from collections.abc import Iterator
from typing import Any

from support.fixtures import DELETE

LONG = "x" * 201
PARAGRAPH = "x" * 501
NOT_TEXT = (DELETE, "", "   ", 7, None, ["x"])
NOT_COUNT = (DELETE, -1, "3", 1.5, True, None)
NOT_FLAG = (DELETE, "true", 1, None)
NOT_RISK = (DELETE, "green", "", 1, None)
NOT_TIME = (DELETE, "yesterday", "2026-02-30T00:00:00Z", "2026-02-26 14:31:00Z", "2026-02-26T14:31:00", 7)
NOT_PATH = ("/etc/passwd", "../up", "a/../../b", "C:\\x", "a\\b", "", "~/x", "a\tb", 7)
NOT_SOME: tuple[Any, ...] = (DELETE, [], "x", None)

HEADER = {
    "agent_output": (DELETE, None, [], "x"),
    "agent_output.agent": (DELETE, "somebody", "", 1, None),
    "agent_output.instance": NOT_TEXT,
    "agent_output.step": (DELETE, "1", "step", "Step-1", 1),
    "agent_output.started_at": NOT_TIME,
    "agent_output.completed_at": NOT_TIME,
    "agent_output.schema_version": (DELETE, 1.0, "one", "1", ""),
    "agent_output.payload": (DELETE, None, [], "x"),
}

COMPLETION = {
    "completion": (DELETE, None, []),
    "completion.status": (DELETE, "done", "OK", 1, None),
    "completion.summary": (*NOT_TEXT, LONG, "two\nlines"),
    "completion.severity": (DELETE, "blocker", "High", 1),
    "completion.findings_count": NOT_COUNT,
    "completion.risk_level": (DELETE, "green", 1),
    "completion.output_paths": NOT_SOME,
    "completion.output_paths[0]": NOT_PATH,
    "completion.evidence_summary": ("8 of 8", 8, []),
}

EVIDENCE_SUMMARY = {
    "completion.evidence_summary.total_checks": NOT_COUNT,
    "completion.evidence_summary.passed": NOT_COUNT,
    "completion.evidence_summary.failed": NOT_COUNT,
    "completion.evidence_summary.security_blockers": NOT_COUNT,
}

PAYLOADS: dict[str, dict[str, tuple[Any, ...]]] = {
    "research-output": {
        "focus": (DELETE, "everything", "", 1, None),
        "findings": NOT_SOME,
        "findings[0].id": (*NOT_TEXT,),
        "findings[1].id": ("F-1",),
        "findings[0].title": NOT_TEXT,
        "findings[0].category": NOT_TEXT,
        "findings[0].detail": NOT_TEXT,
        "findings[0].evidence": NOT_SOME,
        "findings[0].relevance": NOT_TEXT,
        "summary": NOT_TEXT,
        "source_files_examined": NOT_SOME,
    },
    "spec-output": {
        "feature_name": NOT_TEXT,
        "directions": NOT_SOME,
        "directions[0].id": NOT_TEXT,
        "directions[0].name": NOT_TEXT,
        "directions[0].summary": NOT_TEXT,
        "common_requirements": NOT_SOME,
        "common_requirements[0].id": NOT_TEXT,
        "common_requirements[1].id": ("CR-1",),
        "common_requirements[0].text": NOT_TEXT,
        "common_requirements[0].priority": (DELETE, "MUST", "shall", None),
        "functional_requirements": NOT_SOME,
        "functional_requirements[0].id": NOT_TEXT,
        "functional_requirements[0].text": NOT_TEXT,
        "functional_requirements[0].sub_requirements": ("x", 3),
        "acceptance_criteria": NOT_SOME,
        "acceptance_criteria[0].id": NOT_TEXT,
        "acceptance_criteria[1].id": ("AC-1",),
        "acceptance_criteria[0].text": NOT_TEXT,
        "acceptance_criteria[0].test_method": (DELETE, "guess", "", None),
        "edge_cases": ("x", 1, {}),
        "constraints": ("x", 1, {}),
        "constraints[0]": ("", 1),
        "pushback_log": ("none", 1, []),
    },
    "design-output": {
        "architecture": NOT_TEXT,
        "decisions": NOT_SOME,
        "decisions[0].id": NOT_TEXT,
        "decisions[1].id": ("D-1",),
        "decisions[0].title": NOT_TEXT,
        "decisions[0].risk": NOT_RISK,
        "decisions[0].rationale": NOT_TEXT,
        "decisions[0].alternatives_rejected": NOT_SOME,
        "decisions[0].alternatives_rejected[0].name": NOT_TEXT,
        "decisions[0].alternatives_rejected[0].reason": NOT_TEXT,
        "decisions[0].alternatives_rejected[0].confidence": (DELETE, "high", "Certain", None),
        "agent_inventory": ("x", 1, {}),
        "agent_inventory[0].name": (DELETE, "", 1),
        "pipeline_steps": ("x", 1, {}),
        "deviation_records": ("x", 1, {}),
        "deviation_records[0].id": NOT_TEXT,
        "deviation_records[0].spec_requirement": NOT_TEXT,
        "deviation_records[0].deviation": NOT_TEXT,
        "deviation_records[0].rationale": NOT_TEXT,
    },
    "plan-output": {
        "overall_risk_summary": NOT_RISK,
        "total_tasks": (DELETE, 0, -1, "6", None),
        "waves": NOT_SOME,
        "waves[0].id": NOT_TEXT,
        "waves[1].id": ("wave-1",),
        "waves[0].tasks": NOT_SOME,
        "waves[0].tasks[0]": ("TASK-01", "task-1", "", 1),
        "waves[0].max_concurrent": (DELETE, 5, 0, "3", None),
        "tasks": NOT_SOME,
        "tasks[0].id": (DELETE, "TASK-01", "task-1", "../task-01", 1),
        "tasks[1].id": ("task-01",),
        "tasks[0].title": NOT_TEXT,
        "tasks[0].size": (DELETE, "Small", "large", None),
        "tasks[0].risk": NOT_RISK,
        "tasks[0].depends_on": ("task-02", 1, None),
        "tasks[2].depends_on[0]": ("first", 1),
        "tasks[0].agent": (DELETE, "coder", "", None),
        "dependency_graph": ("x", 1, []),
    },
    "implementation-report": {
        "task_id": (DELETE, "3", "TASK-03", None),
        "task_type": (DELETE, "docs", "", None),
        "baseline": (DELETE, None, []),
        "baseline.ide_diagnostics": (None, 0),
        "baseline.ide_diagnostics.errors": NOT_COUNT,
        "baseline.ide_diagnostics.warnings": NOT_COUNT,
        "baseline.build_exit_code": (DELETE, "0", 0.0, True),
        "baseline.test_summary": (DELETE, 45, []),
        "baseline.test_summary.total": NOT_COUNT,
        "baseline.test_summary.passed": NOT_COUNT,
        "baseline.test_summary.failed": NOT_COUNT,
        "changes": NOT_SOME,
        "changes[0].path": (DELETE, *NOT_PATH),
        "changes[0].action": (DELETE, "renamed", "", None),
        "changes[0].description": NOT_TEXT,
        "self_check": (DELETE, None, []),
        "self_check.ide_diagnostics": (None,),
        "self_check.ide_diagnostics.errors": NOT_COUNT,
        "self_check.ide_diagnostics.warnings": NOT_COUNT,
        "self_check.build_exit_code": (DELETE, "0", True),
        "self_check.test_summary": (DELETE, 52),
        "self_check.self_fix_attempts": (DELETE, 3, -1, "0", None),
        "self_check.git_staged": NOT_FLAG,
        "verification_entries": ("x", 1, {}),
        "verification_entries[0].check_name": NOT_TEXT,
        "verification_entries[0].phase": (DELETE, "after", "", None),
        "verification_entries[0].tool": NOT_TEXT,
        "verification_entries[0].passed": NOT_FLAG,
        "artifact_evaluations": ("x", 1, {}),
    },
    "verification-report": {
        "task_id": (DELETE, "3", None),
        "run_id": (DELETE, "run-1", "2026-02-26", None),
        "evidence_gate": (DELETE, None, []),
        "evidence_gate.total_checks": (DELETE, 0, -1, "8", None),
        "evidence_gate.passed": NOT_COUNT,
        "evidence_gate.failed": NOT_COUNT,
        "evidence_gate.gate_status": (DELETE, "ok", "PASSED", None),
        "findings": NOT_SOME,
        "findings[0].check_name": NOT_TEXT,
        "findings[0].tier": (DELETE, 0, 5, "1", None),
        "findings[0].phase": (DELETE, "review", "", None),
        "findings[0].tool": NOT_TEXT,
        "findings[0].command": (1, []),
        "findings[0].exit_code": ("0", 0.5, True),
        "findings[0].passed": NOT_FLAG,
        "findings[0].output_snippet": (PARAGRAPH, 1),
        "regressions": ("x", 1, {}),
        "baseline_cross_check": ("x", 1, []),
        "baseline_cross_check.method": (DELETE, "git diff", "git show main:src/a.ts", 1),
        "baseline_cross_check.discrepancies_found": NOT_FLAG,
    },
    "knowledge-output": {
        "knowledge_updates": (DELETE, "x", None, {}),
        "knowledge_updates[0].type": (DELETE, "rumour", None),
        "knowledge_updates[0].key": NOT_TEXT,
        "knowledge_updates[0].value": NOT_TEXT,
        "knowledge_updates[0].stored_via": (DELETE, "memory", None),
        "decision_log_entries": ("x", 1, {}),
        "decision_log_entries[0].id": (DELETE, "1", "DL-1", None),
        "decision_log_entries[0].title": NOT_TEXT,
        "decision_log_entries[0].rationale": NOT_TEXT,
        "decision_log_entries[0].confidence": (DELETE, "high", None),
        "evidence_bundle": ("x", 1, []),
        "evidence_bundle.overall_confidence": (DELETE, "Sure", None),
        "evidence_bundle.verification_summary": (DELETE, None, []),
        "evidence_bundle.verification_summary.passed": NOT_COUNT,
        "evidence_bundle.review_summary": (DELETE, None, []),
        "evidence_bundle.review_summary.code_review.round": NOT_COUNT,
        "evidence_bundle.rollback_command": NOT_TEXT,
        "evidence_bundle.blast_radius": (DELETE, None, []),
        "evidence_bundle.blast_radius.risk_red_files": NOT_COUNT,
        "evidence_bundle.known_issues": (DELETE, None, "x"),
        "evidence_bundle.known_issues[0].severity": (DELETE, "minor", None),
        "pipeline_telemetry_summary": ("x", 1, []),
        "pipeline_telemetry_summary.total_dispatches": NOT_COUNT,
        "pipeline_telemetry_summary.total_duration_seconds": (DELETE, -1, "1842", None),
        "pipeline_telemetry_summary.error_count": NOT_COUNT,
    },
}

UNSIGNED: dict[str, dict[str, tuple[Any, ...]]] = {
    "intake-return": {
        "understanding": NOT_TEXT,
        "concerns": (DELETE, "none", None, 1),
        "concerns[0].severity": (DELETE, "major", "High", None),
        "concerns[0].title": NOT_TEXT,
        "concerns[0].description": NOT_TEXT,
        "concerns[0].recommendation": NOT_TEXT,
        "infeasible": NOT_FLAG,
        "infeasible_because": (DELETE, "", "it is feasible after all", 1),
    },
    "task-schema": {
        "task": (DELETE, None, []),
        "task.id": (DELETE, "3", "TASK-03", None),
        "task.title": NOT_TEXT,
        "task.description": NOT_TEXT,
        "task.agent": (DELETE, "coder", None),
        "task.size": (DELETE, "Small", None),
        "task.risk": NOT_RISK,
        "task.depends_on": ("task-01", 1, None),
        "task.acceptance_criteria": NOT_SOME,
        "task.acceptance_criteria[0]": ("", 1, None),
        "task.relevant_context": (DELETE, None, []),
        "task.relevant_context.design_sections": NOT_SOME,
        "task.relevant_context.design_sections[0]": ("design-output.yaml", "#payload", "a#b[c=d]", "", 1),
        "task.relevant_context.spec_requirements": NOT_SOME,
        "task.relevant_context.spec_requirements[0]": ("spec-output.yaml", 1),
        "task.relevant_context.files_to_modify": ("x", 1, {}),
        "task.relevant_context.files_to_modify[0].path": (DELETE, *NOT_PATH),
        "task.relevant_context.files_to_modify[0].risk": NOT_RISK,
    },
    "review-findings": {
        "reviewer_perspective": (DELETE, "gpt-5", None),
        "scope": (DELETE, "plan", None),
        "verdicts": (DELETE, None, "approve"),
        "verdicts.security": (DELETE, "approved", None),
        "verdicts.architecture": (DELETE, "ok", None),
        "verdicts.correctness": (DELETE, "", None),
        "overall": (DELETE, "APPROVE", None),
        "findings_count": (DELETE, 11, None),
        "findings_count.blocker": NOT_COUNT,
        "findings_count.critical": NOT_COUNT,
        "findings_count.major": NOT_COUNT,
        "findings_count.minor": NOT_COUNT,
        "summary": (*NOT_TEXT, PARAGRAPH),
    },
    "review-return": {
        "schema_version": (DELETE, 1.0),
        "reviewer_perspective": (DELETE, "me"),
        "scope": (DELETE, "plan"),
        "round": (DELETE, 0, 3, "1"),
        "findings": (DELETE, "x", None),
        "findings[0].id": NOT_TEXT,
        "findings[0].category": (DELETE, "style", None),
        "findings[0].severity": (DELETE, "critical", None),
        "findings[0].title": NOT_TEXT,
        "findings[0].description": NOT_TEXT,
        "findings[0].artifacts": NOT_SOME,
        "findings[0].recommendation": NOT_TEXT,
        "findings[0].evidence": NOT_SOME,
        "clean_categories": (DELETE, "all", None),
        "clean_categories[0]": ("style", 1),
        "summary": (*NOT_TEXT, PARAGRAPH),
        "artifact_evaluations[0].artifact_path": (DELETE, *NOT_PATH),
        "artifact_evaluations[0].usefulness_score": (DELETE, 0, 11, "8", 7.5, None),
        "artifact_evaluations[0].clarity_score": (DELETE, 0, 11, "8", None),
        "artifact_evaluations[0].missing_information": ("x" * 2001, 1),
    },
    "decision-log": {
        "decisions": (DELETE, None, "x"),
        "decisions[0].id": (DELETE, "1", "DL-1"),
        "decisions[1].id": ("DL-001",),
        "decisions[0].title": NOT_TEXT,
        "decisions[0].rationale": NOT_TEXT,
        "decisions[0].confidence": (DELETE, "high"),
    },
}

FILES = {"decision-log": "decisions"}


def rows() -> Iterator[tuple[str, str, str, Any]]:
    """Every violation: fixture, contract, field, bad value."""
    for contract, fields in PAYLOADS.items():
        file = f"000/{contract}.yaml"
        signed = {**HEADER, **COMPLETION, **{f"agent_output.payload.{field}": bad for field, bad in fields.items()}}
        if contract == "verification-report":
            signed |= EVIDENCE_SUMMARY
        for field, bad in signed.items():
            for value in bad:
                yield file, contract, field, value
    for field, bad in (COMPLETION | EVIDENCE_SUMMARY).items():
        for value in bad:
            yield "000/completion-contract.yaml", "completion-contract", field, value
    for contract, fields in UNSIGNED.items():
        for field, bad in fields.items():
            for value in bad:
                yield f"000/{FILES.get(contract, contract)}.yaml", contract, field, value
