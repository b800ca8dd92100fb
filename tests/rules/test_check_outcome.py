"""What one run of a check is worth: only a regular end with a good report of this tree's code is a pass."""

from typing import Any

import pytest

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Confined, End, OutputStream, SandboxLimits, Violation
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.contracts.verify.results import Evidence, ItemOutcome, Report, ReportItem
from fairwitness.rules.check_outcome import judge

SHA = "sha256:" + "0" * 64
GOOD = Report(items=(ReportItem(id="a", outcome=ItemOutcome.PASSED),))
BAD = Report(items=(ReportItem(id="a", outcome=ItemOutcome.FAILED),))


def confined(end: End, **differs: Any) -> Confined:
    ordinary: dict[str, Any] = {
        "argv": ("/bin/true",),
        "exe": "/bin/true",
        "exe_sha256": SHA,
        "cwd": ".",
        "env_keys": (),
        "env_sha256": SHA,
        "policy_sha256": SHA,
        "limits": SandboxLimits(),
        "purpose": "test",
        "tier": SandboxTier.NAMESPACES,
        "tier_wanted": SandboxTier.NAMESPACES,
        "degraded": False,
        "warnings": (),
        "end": end,
        "exit_code": 0 if end is End.OK else None,
        "signal": None,
        "started_at": "2026-02-26T14:30:00Z",
        "wall_ms": 1,
        "setup_ms": 1,
        "cpu_ms": 1,
        "peak_memory": 1,
        "peak_processes": 1,
        "stdout": OutputStream(total=0, sha256=SHA, stored_sha256=SHA, truncated=False),
        "stderr": OutputStream(total=0, sha256=SHA, stored_sha256=SHA, truncated=False),
        "violations": (),
        "observation": "full",
        "dotgit_ok": True,
        "guards_ok": True,
        "survivors_killed": 0,
        "sandbox_error": "bwrap said no" if end is End.SANDBOX_ERROR else None,
    }
    if end is End.VIOLATION:
        seen = Violation(kind="write", call="openat", path="/etc/passwd", blocked=True, source="observer")
        ordinary["violations"] = (seen, seen)
    return Confined(**(ordinary | differs))


@pytest.mark.req("X1")
@pytest.mark.parametrize("end", End)
def test_only_an_end_of_its_own_with_a_good_report_is_a_pass(end: End) -> None:
    differs = {"exit_code": 1} if end is End.FAILED else {"limit_hit": "memory"} if end is End.LIMIT else {}
    judged = judge(confined(end, **differs), GOOD, None)
    assert (judged.evidence is Evidence.NONE) is (end not in (End.OK, End.FAILED))
    assert (judged.reason is not None) is (judged.evidence is Evidence.NONE)
    assert judged.environmental is (end is End.SANDBOX_ERROR)


@pytest.mark.req("X1")
def test_a_report_that_is_missing_or_doubtful_or_of_other_code_is_no_evidence() -> None:
    ended = confined(End.OK)
    doubtful = Report(items=GOOD.items, problems=("exit code 0 although 1 test failed",))
    assert judge(ended, None, None).evidence is Evidence.NONE
    assert judge(ended, doubtful, None).reason == "exit code 0 although 1 test failed"
    assert judge(ended, GOOD, "`shop` was loaded from elsewhere").assessment is Assessment.VIOLATION
    assert judge(ended, BAD, None).evidence is Evidence.FAILED
    assert judge(ended, GOOD, None).evidence is Evidence.PASSED
    assert "openat /etc/passwd and 1 more" in (judge(confined(End.VIOLATION), GOOD, None).reason or "")


@pytest.mark.req("A15")
def test_a_line_for_a_shell_fails_by_its_exit_code_where_a_check_gives_no_evidence() -> None:
    ended = confined(End.FAILED)
    no_report = Report(items=(), problems=("exit code 127: a program it needs could not be started",))
    assert judge(ended, no_report, None).evidence is Evidence.NONE
    assert judge(ended, no_report, None, is_line=True).evidence is Evidence.FAILED
    assert judge(confined(End.OK), no_report, None, is_line=True).evidence is Evidence.NONE
