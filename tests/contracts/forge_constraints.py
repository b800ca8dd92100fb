"""The field tables of seed 004 and of our own common documents, row by row: values that each row refuses."""

from collections.abc import Iterator
from typing import Any

from contracts.feature_constraints import NOT_COUNT, NOT_FLAG, NOT_PATH, NOT_TEXT
from support.fixtures import DELETE

NOT_TIME = (DELETE, "yesterday", "2024-01-15", 7, None)
NOT_ID = (DELETE, "../x", "a/b", "", "x.lock", "a..b", 7, None)
NOT_LIST = (DELETE, "x", 1, None)
NOT_STATE = (DELETE, "pending", "RUN", None)

TABLES: dict[str, tuple[str, dict[str, tuple[Any, ...]]]] = {
    "forge-walkthrough": (
        "004/walkthrough.md",
        {
            "task_id": NOT_ID,
            "branch": (DELETE, "a:b", "a..b", "-x", "", 7),
            "base_ref": (DELETE, "a b", 7),
            "status": (DELETE, "done", None),
            "confidence": (DELETE, 1.5, -0.1, "0.9", True, None),
            "time_spent_minutes": NOT_COUNT,
            "files_changed": NOT_LIST,
            "files_changed[0].path": (DELETE, *NOT_PATH),
            "files_changed[0].reason": NOT_TEXT,
            "tests": ("x", 1, {}),
            "tests[0].name": NOT_TEXT,
            "tests[0].result": (DELETE, "passed", None),
            "risks": ("x", {}),
            "risks[0]": ("", 1),
            "followups": ("x", {}),
            "body": (
                "",
                "## Summary\n## Approach\n## Testing\n",
                "## Approach\n## Summary\n## Issues Encountered\n## Testing\n",
                "```\n## Summary\n## Approach\n## Issues Encountered\n## Testing\n```\n",
            ),
        },
    ),
    "forge-change-request": (
        "004/change-request.md",
        {
            "id": (DELETE, "cr-1", "CR-001", 1),
            "title": NOT_TEXT,
            "emitted_by": NOT_TEXT,
            "emitted_at": NOT_TIME,
            "status": (DELETE, "open", None),
            "reason": NOT_TEXT,
            "affected_tasks": NOT_LIST,
            "affected_tasks[0]": ("../x", 1),
            "suggested_changes": NOT_TEXT,
            "body": ("", "## Description\n## Proposed Resolution\n"),
        },
    ),
    "forge-subtask": (
        "004/subtask.md",
        {
            "id": NOT_ID,
            "parent_task": NOT_ID,
            "title": NOT_TEXT,
            "type": (DELETE, 0, 4, "1", True, 1.0, None),
            "status": (DELETE, "PENDING", None),
            "assigned_agent": (DELETE, "", 1),
            "body": ("no heading at all",),
        },
    ),
    "forge-task": (
        "004/task.md",
        {
            "id": NOT_ID,
            "title": NOT_TEXT,
            "type": (DELETE, 4, "worker", True, None),
            "dependencies": NOT_LIST,
            "acceptance_criteria": (DELETE, [], "x"),
            "estimated_complexity": (DELETE, "huge", None),
            "status": NOT_STATE,
            "branch": (DELETE, "a b", 1),
            "attemptId": (DELETE, 0, "1", True),
            "body": ("## Description\n## Instructions\n",),
        },
    ),
    "forge-dag": (
        "004/dag.json",
        {
            "version": (DELETE, 2, "1", True, 1.0),
            "runId": (DELETE, "", "a b", "/x", 7),
            "nodes": NOT_LIST,
            "nodes[0].id": NOT_ID,
            "nodes[1].id": ("task-001",),
            "nodes[0].type": (DELETE, "worker", None),
            "nodes[0].agentType": (DELETE, 4, "2", True, None),
            "nodes[0].dependencies": NOT_LIST,
            "nodes[0].status": NOT_STATE,
            "nodes[0].colour": ("red",),
            "metadata": (DELETE, None, []),
            "metadata.createdAt": NOT_TIME,
            "metadata.createdBy": (DELETE, "user", None),
            "metadata.totalTasks": NOT_COUNT,
            "metadata.totalRefineries": NOT_COUNT,
        },
    ),
    "forge-dag-overlay": (
        "004/dag-overlay.json",
        {
            "crId": (DELETE, "1", None),
            "appliedAt": NOT_TIME,
            "addedNodes": NOT_LIST,
            "addedEdges": NOT_LIST,
            "addedEdges[0].from": NOT_ID,
            "addedEdges[0].to": NOT_ID,
            "removedNodes": ([],),
        },
    ),
    "forge-dag-status": (
        "004/dag-status.json",
        {
            "runId": (DELETE, "", 7),
            "updatedAt": NOT_TIME,
            "nodes": (DELETE, [], None),
            "nodes.task-001.taskId": (DELETE, "task-002", None),
            "nodes.task-001.status": NOT_STATE,
            "nodes.task-001.currentAttempt": (DELETE, 0, 4, "1", True),
            "nodes.task-001.maxAttempts": (DELETE, 0, "3"),
            "nodes.task-001.startedAt": ("now", 7),
            "nodes.task-002.assignedAgent": ("", 7),
            "nodes.task-002.lastError": ("", 7),
        },
    ),
    "forge-run-state": (
        "004/run-state.json",
        {
            "runId": (DELETE, "", 7),
            "repoUrl": NOT_TEXT,
            "status": (DELETE, "running", None),
            "createdAt": NOT_TIME,
            "startedAt": (DELETE, "now"),
            "completedAt": ("2024-01-15T12:00:00Z", "now"),
            "currentPhase": (DELETE, "executing", "failed"),
            "model": NOT_TEXT,
            "totalTasks": NOT_COUNT,
            "completedTasks": NOT_COUNT,
            "failedTasks": NOT_COUNT,
            "runningTasks": NOT_COUNT,
            "activeCRs": NOT_LIST,
            "lastEventId": NOT_TEXT,
            "lastEventSeq": NOT_COUNT,
            "extra": (1,),
        },
    ),
    "forge-captain-return": (
        "004/captain-return.json",
        {
            "specs": NOT_LIST,
            "specs[0].name": NOT_ID,
            "specs[0].body": NOT_TEXT,
            "tasks": NOT_LIST,
            "tasks[0].id": (*NOT_ID, "task-009"),
            "tasks[0].type": (DELETE, 4, "worker", 1, "refinery"),
            "tasks[0].dependencies": (*NOT_LIST, ["refinery-001"]),
            "tasks[0].status": (*NOT_STATE, "RUNNING"),
            "tasks[0].branch": (DELETE, "a b", 1),
            "tasks[0].body": ("## Description\n## Instructions\n",),
            "dag": ([], "x"),
            "dag.nodes[1].status": (*NOT_STATE, "DONE"),
            "dag.nodes[1].agentType": (DELETE, 4),
            "dag.runId": (DELETE, ""),
            "dag.metadata.totalTasks": NOT_COUNT,
            "overlay": ("x", []),
            "rejected": ("", 1),
            "assumptions": NOT_LIST,
            "open_questions": NOT_LIST,
        },
    ),
    "forge-worker-return": (
        "004/worker-return.json",
        {
            "walkthrough": (DELETE, None, "done"),
            "walkthrough.task_id": NOT_ID,
            "walkthrough.status": (DELETE, "done"),
            "walkthrough.confidence": (DELETE, 1.5, "0.9"),
            "walkthrough.files_changed": NOT_LIST,
            "walkthrough.body": ("", "## Summary\n## Approach\n## Testing\n"),
        },
    ),
    "forge-refinery-return": (
        "004/refinery-return.json",
        {
            "merged_branches": NOT_LIST,
            "merged_branches[0]": ("a..b", 1),
            "unmerged": NOT_LIST,
            "failing_tests": NOT_LIST,
            "failing_tests[0].name": NOT_TEXT,
            "failing_tests[0].branches": NOT_LIST,
            "failing_tests[0].detail": NOT_TEXT,
            "fixes": NOT_LIST,
            "fixes[0].path": (DELETE, *NOT_PATH),
            "change_requests": NOT_LIST,
            "change_requests[0].id": (DELETE, "1"),
            "change_requests[0].status": (DELETE, "approved", "open"),
            "change_requests[0].body": ("",),
            "walkthrough": (DELETE, None),
            "walkthrough.status": (DELETE, "completed", "done"),
        },
    ),
    "forge-event": (
        "004/event.json",
        {
            "type": (DELETE, "node.vanished", "run_started"),
            "nodeId": NOT_ID,
            "previousStatus": NOT_STATE,
            "newStatus": NOT_STATE,
            "timestamp": NOT_TIME,
            "attemptId": (0, "1"),
            "extra": (1,),
        },
    ),
    "feature-event": (
        "000/event.json",
        {
            "type": (DELETE, "gate_opened"),
            "gate": NOT_ID,
            "open": NOT_FLAG,
            "count": NOT_COUNT,
            "threshold": NOT_COUNT,
            "missing": NOT_LIST,
            "extra": (1,),
        },
    ),
    "event-envelope": (
        "000/event-envelope.json",
        {
            "event_id": NOT_ID,
            "seq": (DELETE, 0, "1", None),
            "timestamp": NOT_TIME,
            "workflow": (DELETE, "other", None),
            "run_id": (DELETE, "", "/x", 7),
            "phase": ("six", 6),
            "task": ("../x", 7),
            "attempt": (0, "1"),
            "type": (DELETE, "Gate Evaluated", ""),
            "version": (DELETE, 0, "1"),
            "data": (DELETE, [], None),
        },
    ),
    "approval-request": (
        "000/approval-request.json",
        {
            "gate_id": NOT_ID,
            "pipeline_step": NOT_TEXT,
            "question": NOT_TEXT,
            "context": (DELETE, 7, None),
            "options": (DELETE, [], None),
            "options[0].id": NOT_ID,
            "options[0].label": NOT_TEXT,
            "options[0].description": NOT_TEXT,
            "options[0].is_default": NOT_FLAG,
        },
    ),
    "approval-record": (
        "000/approval-record.json",
        {
            "gate_id": NOT_ID,
            "run_id": (DELETE, "", 7),
            "timestamp": NOT_TIME,
            "mode": (DELETE, "auto", None),
            "selected_option": NOT_ID,
            "auto_selected": NOT_FLAG,
            "actor": NOT_TEXT,
            "user_response_raw": (7, []),
        },
    ),
}


def rows() -> Iterator[tuple[str, str, str, Any]]:
    """Every violation: fixture, contract, field, bad value."""
    for contract, (file, fields) in TABLES.items():
        for field, bad in fields.items():
            for value in bad:
                yield file, contract, field, value
