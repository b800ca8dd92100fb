"""What an implementer says is held against what the harness saw: files, its own checks, the baseline."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.agents.dispatch import ChangedPath, PathChangeKind
from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.evidence import Phase, SandboxTier
from fairwitness.contracts.common.vocabulary import Assessment, Size
from fairwitness.contracts.feature.implementation import ImplementationReport
from fairwitness.contracts.feature.order import FeatureOrder
from fairwitness.contracts.verify.checks import VerifySettings
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.gates import verification_sufficient
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.reports import compare, record, untrue_baseline
from fairwitness.store.artifacts import Store
from git.person import Person
from rules.build import baseline, claimed, failed, nothing, row, tally

RUN = "2026-02-26T14:30:00Z"
TREE = "a" * 40
GREEN = {"total": 5, "passed": 5, "failed": 0}
RED = {"total": 5, "passed": 4, "failed": 1}


def report(
    changes: dict[str, str] | None = None,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    entries: dict[str, bool] | None = None,
) -> ImplementationReport:
    """A report of one modified file; nothing is said of builds and tests unless it is said here."""
    checks = {"ide_diagnostics": {"errors": 1, "warnings": 0}, "build_exit_code": None, "test_summary": None}
    payload: dict[str, Any] = {
        "task_id": "task-01",
        "task_type": "code",
        "baseline": checks | (before or {}),
        "changes": [
            {"path": path, "action": action, "description": "x"}
            for path, action in (changes or {"src/a.py": "modified"}).items()
        ],
        "self_check": checks | {"self_fix_attempts": 0, "git_staged": False} | (after or {}),
    }
    if entries is not None:
        payload["verification_entries"] = [
            {"check_name": name, "phase": "baseline", "tool": "x", "passed": passed} for name, passed in entries.items()
        ]
    header = {
        "agent": "implementer",
        "instance": "task-01",
        "step": "step-5",
        "schema_version": "1.0",
        "started_at": RUN,
        "completed_at": RUN,
    }
    completion = {
        "status": "DONE",
        "summary": "Done.",
        "severity": None,
        "findings_count": 0,
        "risk_level": None,
        "output_paths": ["x.yaml"],
    }
    return ImplementationReport.model_validate(
        {"agent_output": {**header, "payload": payload}, "completion": completion}
    )


CHANGED = (ChangedPath(path="src/a.py", change=PathChangeKind.MODIFIED, allowed=True),)
NOTHING = tally()


@pytest.mark.req("P9")
def test_a_true_report_has_no_discrepancy() -> None:
    said = report(
        before={"build_exit_code": 0, "test_summary": GREEN},
        after={"build_exit_code": 0, "test_summary": {"total": 900, "passed": 900, "failed": 0}},
        entries={"baseline-lint": False, "tests": True, "type-check": True},
    )
    before = tally(baseline("tests"), baseline("build"), baseline("lint", passed=False))
    assert compare(said, CHANGED, before, tally(row("tests"), row("build"))) == ()


@pytest.mark.req("P9")
def test_files_are_compared_with_those_really_changed() -> None:
    said = report({"src/a.py": "created", "./src/b.py": "deleted", "src/c.py": "created"})
    changed = (
        *CHANGED,
        ChangedPath(path="src/b.py", change=PathChangeKind.DELETED, allowed=True),
        ChangedPath(path="tests/test_a.py", change=PathChangeKind.MODIFIED, allowed=False),
    )
    assert compare(said, changed, NOTHING, NOTHING) == (
        "the report says that src/a.py was added; it was modified",
        "the report names src/c.py, which is as it was",
        "tests/test_a.py was modified, and the report does not name it",
    )


@pytest.mark.req("P9", "X1")
def test_a_claimed_green_is_compared_with_what_the_harness_saw_red() -> None:
    said = report(
        after={
            "build_exit_code": 0,
            "test_summary": GREEN,
            "ide_diagnostics": {"errors": 0, "warnings": 3},
        }
    )
    rows = tally(failed("tests"), failed("build"), failed("syntax-check"), failed("lint"))
    assert compare(said, CHANGED, NOTHING, rows) == tuple(
        f"the report says that {name} passed after the change; it failed when Fair Witness ran it"
        for name in ("build", "syntax-check", "tests")
    )
    honest = report(after={"build_exit_code": 1, "test_summary": RED})
    assert compare(honest, CHANGED, NOTHING, rows) == ()
    silent = report(after={"test_summary": {"total": 0, "passed": 0, "failed": 0}})
    assert compare(silent, CHANGED, NOTHING, rows) == ()


@pytest.mark.req("P9")
def test_only_evidence_of_the_last_round_contradicts() -> None:
    said = report(after={"test_summary": GREEN})
    for rows in (
        tally(nothing("tests", Assessment.TIMEOUT)),
        tally(claimed("tests", False)),
        tally(failed("tests", round=1), row("tests", round=2)),
        tally(failed("tests"), row("tests")),
    ):
        assert compare(said, CHANGED, NOTHING, rows) == ()
    # a failure blocks the gate wherever it ran, so it contradicts the report as well
    assert compare(said, CHANGED, NOTHING, tally(failed("tests", sandbox=SandboxTier.NONE))) != ()


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize(
    ("said", "rows", "named"),
    [
        (report(before={"test_summary": GREEN}), [baseline("tests", passed=False)], ["tests passed"]),
        (report(before={"build_exit_code": 0}), [baseline("build", passed=False)], ["build passed"]),
        (report(before={"build_exit_code": 2}), [baseline("build")], ["build failed"]),
        (report(entries={"baseline-lint": True}), [baseline("lint", passed=False)], ["lint passed"]),
        (
            report(before={"test_summary": GREEN}),
            [baseline("tests", instance="a"), baseline("tests", passed=False, instance="b")],
            ["tests passed"],
        ),
        (
            report(before={"test_summary": GREEN}, entries={"tests": True, "baseline-tests": False}),
            [baseline("tests", passed=False)],
            ["tests passed"],
        ),
        (report(before={"test_summary": GREEN}), [], []),
        (report(), [baseline("tests", passed=False)], []),
        (
            report(before={"test_summary": GREEN}),
            [baseline("tests", passed=False, assessment=Assessment.TIMEOUT)],
            [],
        ),
    ],
)
def test_a_reported_baseline_is_compared_with_what_was_run_there(
    said: ImplementationReport, rows: list[Any], named: list[str]
) -> None:
    found = untrue_baseline(said, tally(*rows))
    assert [text.removeprefix("the report says that ").partition(" before")[0] for text in found] == named
    assert compare(said, CHANGED, tally(*rows), NOTHING) == found


@pytest.fixture
def context(tmp_path: Path) -> Iterator[FeatureContext]:
    """A run in a repository with one commit."""
    person = Person.in_folder(tmp_path)
    commit = person.commit("begin", a="1\n")
    ledger = Ledger.open_file(tmp_path / "state" / "evidence.db")
    order = FeatureOrder(
        request="x",
        slug="x",
        mode=ApprovalMode.AUTONOMOUS,
        base_commit=commit,
        baseline_tag="pipeline-baseline-2026-02-26T14-30-00Z",
        target="fairwitness/x",
        verify=VerifySettings(),
        settings_hash="sha256:" + "0" * 64,
        started_by="Ada",
    )
    yield FeatureContext(
        run_id=RUN,
        order=order,
        repository=person.open(),
        shadow=person.shadow(),
        ledger=ledger,
        files=Store(person.folder),
        kept=Store(tmp_path / "state"),
    )
    ledger.close()


@pytest.mark.req("P9")
def test_that_a_report_was_compared_is_on_record_also_if_nothing_was_found(context: FeatureContext) -> None:
    record(context, "task-01", 1, (), baseline=(), tree=TREE)
    seen = context.ledger.observation(RUN, "discrepancy:task-01:1")
    assert seen is not None
    assert (seen.holds, seen.detail, seen.task_id, seen.tree) == (True, {"found": []}, "task-01", TREE)
    assert context.ledger.tally(RUN, "task-01", Phase.AFTER).rows == ()


@pytest.mark.req("P9", "X1")
def test_only_an_untrue_baseline_shuts_the_gate(context: FeatureContext) -> None:
    record(context, "task-01", 1, ("the report names b, which is as it was",), baseline=())
    record(context, "task-01", 2, ("tests passed, it says",), baseline=("tests passed, it says",))
    seen = context.ledger.observation(RUN, "discrepancy:task-01:1")
    assert seen is not None
    assert not seen.holds
    (only,) = context.ledger.tally(RUN, "task-01", Phase.AFTER).rows
    assert (only.check_name, only.round, only.passed, only.provenance) == ("baseline-discrepancy", 2, False, "observed")
    answer = verification_sufficient(
        context.ledger.tally(RUN, "task-01", Phase.AFTER), size=Size.STANDARD, iteration=2, tree="b" * 40
    )
    assert answer.answer == "blocked"
    assert "baseline-discrepancy (failed)" in answer.missing


@pytest.mark.req("P16")
def test_a_second_time_writes_nothing(context: FeatureContext) -> None:
    record(context, "task-01", 1, ("a",), baseline=("a",))
    head = context.ledger.head(RUN)
    record(context, "task-01", 1, ("b",), baseline=())
    assert context.ledger.head(RUN) == head
