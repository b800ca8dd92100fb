"""Evidence to write into ledgers."""

from typing import Any

from fairwitness.contracts.common.approvals import ApprovalRecord
from fairwitness.contracts.common.evidence import Claim, Dispatch, Execution, Observation, Phase
from fairwitness.contracts.feature.evaluation import ArtifactEvaluation
from fairwitness.contracts.feature.knowledge import InstructionUpdate
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record

RUN = "2026-02-26T14:30:00Z"
TASK = "task-03"
TREE = "a" * 40
HASH = "sha256:" + "0" * 64


def execution(key: str = "step-6/1", **changes: Any) -> Execution:
    """A command that passed."""
    plain: dict[str, Any] = {
        "run_id": RUN,
        "task_id": TASK,
        "key": key,
        "argv": ["pytest", "-q", "tests/it's here.py"],
        "cwd": ".",
        "env_digest": HASH,
        "tool": "pytest",
        "tool_version": "9.2.0",
        "tree": TREE,
        "sandbox": "ns",
        "started_at": "2026-02-26T14:30:00Z",
        "duration_ms": 1200,
        "exit_code": 0,
        "signal": None,
        "stdout": HASH,
        "stderr": HASH,
        "assessment": "pass",
    }
    return Execution.model_validate(plain | changes)


def observation(key: str = "step-6/scope", **changes: Any) -> Observation:
    """Something that holds."""
    plain: dict[str, Any] = {
        "run_id": RUN,
        "task_id": TASK,
        "key": key,
        "kind": "scope",
        "subject": "diff against the plan",
        "holds": True,
        "detail": {"outside": []},
        "tree": TREE,
        "observed_at": "2026-02-26T14:30:00Z",
    }
    return Observation.model_validate(plain | changes)


def claim(key: str = "step-7/security", **changes: Any) -> Claim:
    """A reviewer's opinion."""
    plain: dict[str, Any] = {
        "run_id": RUN,
        "task_id": "login-code-review",
        "key": key,
        "agent": "adversarial-reviewer",
        "instance": "security-sentinel",
        "kind": "review",
        "body": {"summary": "fine"},
        "claimed_at": "2026-02-26T14:30:00Z",
    }
    return Claim.model_validate(plain | changes)


def fill_all(ledger: Ledger) -> None:
    """At least one row in every table that telemetry, evaluation and audit queries ask."""

    def write(record: Record) -> None:
        record.executed(execution(), phase=Phase.AFTER, check_name="tests", round_=1)
        for step, agent, started, ended, status, retries, notes in (
            ("step-1", "researcher", "14:31:00", "14:31:20", "DONE", 0, None),
            ("step-3", "designer", "14:32:00", "14:34:20", "TIMEOUT", 1, "slow"),
        ):
            plain = {
                "run_id": RUN,
                "step": step,
                "agent": agent,
                "instance": None,
                "started_at": f"2026-02-26T{started}Z",
                "completed_at": f"2026-02-26T{ended}Z",
                "status": status,
                "dispatch_count": 1,
                "retry_count": retries,
            }
            record.dispatch(Dispatch.model_validate(plain | ({"notes": notes} if notes else {})))
        rating = {"artifact_path": "tasks/task-03.yaml", "usefulness_score": 4, "clarity_score": 5}
        remarks = {"missing_information": "no criteria", "inaccuracies": ""}
        record.evaluation(ArtifactEvaluation.model_validate(rating | remarks), agent="implementer", instance=None)
        for path, applied in (("tests", False), ("other", False), ("tests", True)):
            change = {
                "file_path": f".github/instructions/{path}.md",
                "change_type": "append",
                "change_summary": "one more rule",
                "patch": "+ x",
            }
            record.instruction_update(
                InstructionUpdate.model_validate(change), agent="knowledge-agent", applied=applied
            )
        approval = {
            "gate_id": "gate-post-research",
            "run_id": RUN,
            "timestamp": "2026-02-26T14:34:00Z",
            "mode": "autonomous",
            "selected_option": "proceed",
            "auto_selected": True,
            "actor": "fairwitness",
        }
        record.approval(ApprovalRecord.model_validate(approval))

    ledger.record(RUN, write)
