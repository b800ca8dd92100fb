"""Small documents as agents return them, each with words for what differs."""

from typing import Any

from fairwitness.contracts.feature.design import DesignOutput
from fairwitness.contracts.feature.plan import PlanOutput, TaskDocument
from fairwitness.contracts.feature.review import ReviewReturn
from fairwitness.contracts.feature.spec import SpecOutput

_COMPLETION = {
    "status": "DONE",
    "summary": "It is done",
    "severity": None,
    "findings_count": 0,
    "risk_level": None,
    "output_paths": ["x.yaml"],
}


def _signed(agent: str, step: str, payload: dict[str, Any], **completion: Any) -> dict[str, Any]:
    header = {
        "agent": agent,
        "instance": f"{agent}-1",
        "step": step,
        "schema_version": "1.0",
        "started_at": "2026-02-26T14:30:00Z",
        "completed_at": "2026-02-26T14:31:00Z",
    }
    return {"agent_output": {**header, "payload": payload}, "completion": {**_COMPLETION, **completion}}


def spec(**differs: Any) -> SpecOutput:
    """A specification with one of everything that must be there."""
    payload = {
        "feature_name": "Token expiry",
        "directions": [{"id": "A", "name": "Clock", "summary": "Compare times."}],
        "common_requirements": [{"id": "CR-1", "text": "No new dependency.", "priority": "must"}],
        "functional_requirements": [{"id": "FR-1", "text": "A token expires."}],
        "acceptance_criteria": [{"id": "AC-1", "text": "An old token is refused.", "test_method": "test"}],
    }
    return SpecOutput.model_validate(_signed("spec", "step-2", payload | differs))


def design(**differs: Any) -> DesignOutput:
    """A design with one decision."""
    payload = {
        "architecture": "One function, one caller.",
        "decisions": [
            {
                "id": "D-1",
                "title": "Compare in UTC",
                "risk": "🟡",
                "rationale": "Zones lie.",
                "alternatives_rejected": [{"name": "Local time", "reason": "It jumps.", "confidence": "High"}],
            }
        ],
    }
    return DesignOutput.model_validate(_signed("designer", "step-3", payload | differs))


def planned(task_id: str, *waits_for: str, **differs: Any) -> dict[str, Any]:
    """A task of a plan."""
    ordinary = {"id": task_id, "title": f"Do {task_id}", "size": "Standard", "risk": "🟢", "agent": "implementer"}
    return ordinary | {"depends_on": list(waits_for)} | differs


def plan(*tasks: dict[str, Any], **differs: Any) -> PlanOutput:
    """A plan whose waves hold one task each."""
    listed = tasks or (planned("task-01"), planned("task-02", "task-01"))
    payload = {
        "overall_risk_summary": "🟢",
        "total_tasks": len(listed),
        "waves": [{"id": f"wave-{n}", "tasks": [t["id"]], "max_concurrent": 4} for n, t in enumerate(listed, start=1)],
        "tasks": list(listed),
    }
    return PlanOutput.model_validate(_signed("planner", "step-4", payload | differs, risk_level="🟢"))


def task(task_id: str, *waits_for: str, **differs: Any) -> TaskDocument:
    """The document of a task."""
    ordinary = planned(task_id, *waits_for) | {
        "description": "Write it.",
        "acceptance_criteria": ["It works."],
        "relevant_context": {
            "design_sections": ["design-output.yaml#payload.decisions[id='D-1']"],
            "spec_requirements": ["spec-output.yaml#payload.functional_requirements[id='FR-1']"],
            "files_to_modify": [{"path": "src/a.py", "risk": "🟢"}],
        },
    }
    return TaskDocument.model_validate({"task": ordinary | differs})


def finding(category: str, severity: str, **differs: Any) -> dict[str, Any]:
    """Something a reviewer found."""
    ordinary = {
        "id": "F-1",
        "category": category,
        "severity": severity,
        "title": "Tokens never rotate",
        "description": "A leaked one stays valid.",
        "artifacts": ["src/a.py"],
        "recommendation": "Rotate them.",
        "evidence": ["src/a.py:41"],
    }
    return ordinary | differs


def review(*findings: dict[str, Any], **differs: Any) -> ReviewReturn:
    """A reviewer's return; categories without findings are called clean."""
    with_findings = {each["category"] for each in findings}
    ordinary = {
        "schema_version": "1.0",
        "reviewer_perspective": "security-sentinel",
        "scope": "code",
        "round": 1,
        "findings": list(findings),
        "clean_categories": [each for each in ("security", "architecture", "correctness") if each not in with_findings],
        "summary": "Looked at all of it.",
    }
    return ReviewReturn.model_validate(ordinary | differs)
