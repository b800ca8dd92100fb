"""What implementers and verifiers do and say: four tasks, one of them twice, or three times with a lie."""

from fairwitness.app.demo_feature import changes, receipt_changes
from fairwitness.app.demo_feature.plans import RECEIPT_AGAIN, TASKS, Task
from fairwitness.app.demo_feature.repository import LAYOUT
from fairwitness.app.demo_feature.scripts import (
    RUN_ID,
    Call,
    Document,
    Said,
    Session,
    create,
    rated,
    read,
    replace,
    signed,
)
from fairwitness.contracts.common.completion import Agent
from fairwitness.contracts.common.tools import Role, Tool
from fairwitness.contracts.common.words import Risk, Severity, Status

BASE_TESTS = 11
"""Tests of the repository before the run; what every implementer is told was measured at the baseline."""
OWN_TESTS = {"task-01": 7, "task-02": 4, "task-03": 8, "task-04": 2}
"""Tests that each task adds; the receipt's second attempt adds one more."""
CALLS: dict[str, tuple[Call, ...]] = {
    "task-01": (
        create("tests/test_vouchers.py", changes.TEST_VOUCHERS),
        create("till/vouchers.py", changes.VOUCHERS),
    ),
    "task-02": (
        create("tests/test_split.py", changes.TEST_SPLIT),
        replace("till/money.py", changes.MONEY_HEAD),
        replace("till/money.py", changes.MONEY_SPLIT),
    ),
    "task-03": (
        create("tests/test_voucher_payment.py", changes.TEST_VOUCHER_PAYMENT),
        replace("till/payment.py", changes.PAYMENT_IMPORTS),
        replace("till/payment.py", changes.PAYMENT_VALUES),
        replace("till/payment.py", changes.PAYMENT_PAY),
    ),
    "task-04": (
        create(receipt_changes.TEST, receipt_changes.TEST_RECEIPT),
        *(replace(receipt_changes.RECEIPT, change) for change in receipt_changes.ALWAYS_SHOWN),
        create(receipt_changes.README, receipt_changes.RIGHT_README),
    ),
}
"""The tests first, then the code."""
CALLS_AGAIN: tuple[Call, ...] = (
    create(receipt_changes.TEST, receipt_changes.TEST_RECEIPT_AGAIN),
    create(receipt_changes.RECEIPT, receipt_changes.RIGHT),
    create(receipt_changes.README, receipt_changes.RIGHT_README),
)
LYING_CALLS: tuple[Call, ...] = (
    create(receipt_changes.TEST, receipt_changes.TEST_RECEIPT),
    create(receipt_changes.RECEIPT, receipt_changes.LIE),
)
_READS = {
    "task-01": ("till/money.py", "till/basket.py"),
    "task-02": ("till/money.py", "tests/test_money.py"),
    "task-03": ("till/payment.py", "till/vouchers.py", "tests/test_payment.py"),
    "task-04": ("till/receipt.py", "till/payment.py"),
}
_CLEAN = {"errors": 0, "warnings": 0}
_BEFORE = [
    {"check_name": f"baseline-{name}", "phase": "baseline", "tool": tool, "passed": True}
    for name, tool in (("tests", "unittest"), ("lint", "tools/lint.py"), ("type-check", "tools/check_types.py"))
]


def _counted(passed: int) -> Document:
    return {"total": passed, "passed": passed, "failed": 0}


def _implemented(task: Task, number: int, calls: tuple[Call, ...], *, tests: int, fixes: int, words: str) -> Session:
    """An implementer's session; `tests` is what it says has passed."""
    files = dict.fromkeys(call.args["path"] for call in calls)
    created = {call.args["path"] for call in calls if call.tool is Tool.CREATE_FILE} - {"README.md", "till/receipt.py"}
    payload = {
        "task_id": task.id,
        "task_type": "code",
        "baseline": {"ide_diagnostics": _CLEAN, "build_exit_code": None, "test_summary": _counted(BASE_TESTS)},
        "changes": [
            {"path": path, "action": "created" if path in created else "modified", "description": task.title}
            for path in files
        ],
        "self_check": {
            "ide_diagnostics": _CLEAN,
            "build_exit_code": None,
            "test_summary": _counted(tests),
            "self_fix_attempts": fixes,
            "git_staged": False,
        },
        "verification_entries": _BEFORE,
        "artifact_evaluations": [rated(f"tasks/{task.id}.yaml", 8, 9)],
    }
    output = LAYOUT.implementation_report(task.id)
    answer = signed(Agent.IMPLEMENTER, "step-5", payload, words, output=output, instance=task.id)
    turns = (
        Said("I read what is there first.", read(*_READS[task.id])),
        Said("The tests come first.", calls[:1]),
        Said("They fail, as they should. Now the code.", calls[1:]),
    )
    return Session(Role.IMPLEMENTER, task.id, number, answer, words, turns)


def _verified(task: Task, number: int, *, failed: str = "") -> Session:
    """A verifier's session; `failed` is what it saw fail in the tests, if anything."""
    seen = [
        ("syntax-check", 1, "python", "python3 -m compileall -q till tests"),
        ("lint", 2, "tools/lint.py", "python3 tools/lint.py till tests tools"),
        ("type-check", 2, "tools/check_types.py", "python3 tools/check_types.py till"),
        ("tests", 2, "unittest", "python3 -m unittest"),
    ]
    if task.risk is Risk.RED:
        seen.append(("readiness-secrets", 4, "fairwitness", ""))
    findings = []
    for name, tier, tool, command in seen:
        passed = not (failed and name == "tests")
        row: Document = {"check_name": name, "tier": tier, "phase": "after", "tool": tool, "passed": passed}
        findings.append(row | ({"command": command, "exit_code": 0 if passed else 1} if command else {}))
    wrong = 1 if failed else 0
    counts = {"total_checks": len(seen), "passed": len(seen) - wrong, "failed": wrong}
    payload: Document = {
        "task_id": task.id,
        "run_id": RUN_ID,
        "evidence_gate": {**counts, "gate_status": "failed" if failed else "passed"},
        "findings": findings,
        "criteria": [{"criterion": each.text, "command": each.command} for each in task.criteria],
        "artifact_evaluations": [
            rated(f"implementation-reports/{task.id}.yaml", 4 if failed else 8, 7, impact=failed or "It is what I saw.")
        ],
    }
    if failed:
        regression = {"check_name": "tests", "baseline_result": True, "after_result": False, "detail": failed}
        payload["regressions"] = [regression]
    answer = signed(
        Agent.VERIFIER,
        "step-6",
        payload,
        failed or f"{len(seen)} checks passed, {len(task.criteria)} criteria have a command",
        output=LAYOUT.verification_report(task.id),
        instance=task.id,
        status=Status.NEEDS_REVISION if failed else Status.DONE,
        severity=Severity.MAJOR if failed else None,
        findings=wrong,
        evidence={**counts, "security_blockers": 0},
    )
    looked = (Said("I believe no report.", read(*(path for path, _ in task.files))),)
    return Session(Role.VERIFIER, task.id, number, answer, failed or "It holds, as far as I can see.", looked)


_FIRST_THREE = TASKS[:3]
_SINCE_BASE = {"task-01": 0, "task-02": 0, "task-03": OWN_TESTS["task-01"] + OWN_TESTS["task-02"]}
"""Tests of other tasks that an implementer finds in its worktree."""
_RECEIPT = TASKS[3]
ALL_TESTS = BASE_TESTS + sum(OWN_TESTS.values())
_REGRESSED = "tests/test_receipt.py held before and fails now: a row for vouchers nobody used"
_RED = "tests fail that are reported as passed: old receipts changed, codes are printed in full"

_BUILT: tuple[Session, ...] = tuple(
    session
    for task in _FIRST_THREE
    for session in (
        _implemented(
            task,
            1,
            CALLS[task.id],
            tests=BASE_TESTS + _SINCE_BASE[task.id] + OWN_TESTS[task.id],
            fixes=0,
            words=f"{task.title}: done, all tests pass.",
        ),
        _verified(task, 1),
    )
)
FIRST: tuple[Session, ...] = (
    *_BUILT,
    # it ran its own tests only: the report is true, and not enough
    _implemented(_RECEIPT, 1, CALLS["task-04"], tests=OWN_TESTS["task-04"], fixes=0, words="My two new tests pass."),
    _verified(_RECEIPT, 1, failed=_REGRESSED),
)
SECOND: tuple[Session, ...] = (
    _implemented(RECEIPT_AGAIN, 2, CALLS_AGAIN, tests=ALL_TESTS + 1, fixes=1, words="All tests pass, old ones too."),
    _verified(RECEIPT_AGAIN, 2),
)


def lied(number: int) -> tuple[Session, ...]:
    """The receipt's n-th attempt by somebody who says that everything is green; the first also brings the others."""
    task = _RECEIPT if number == 1 else RECEIPT_AGAIN
    lie = _implemented(task, number, LYING_CALLS, tests=ALL_TESTS, fixes=0, words="All tests pass.")
    return (*(_BUILT if number == 1 else ()), lie, _verified(task, number, failed=_RED))
