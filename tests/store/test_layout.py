"""Every artifact of every workflow has one path, and no id gets into a path that does not look like one."""

from collections.abc import Callable
from datetime import UTC, date, datetime

import pytest

from fairwitness.errors import UnsafePath
from fairwitness.store.layout import autopilot
from fairwitness.store.layout.autopilot import PhaseLayout
from fairwitness.store.layout.feature import FeatureLayout
from fairwitness.store.layout.forge import ForgeLayout

FEATURE = FeatureLayout("auth-handler")
PHASE = PhaseLayout("6.1")
FORGE = ForgeLayout("2026-02-26T14:30:00Z")
DAY = date(2026, 2, 26)
MOMENT = datetime(2026, 2, 12, 12, 0, 0, tzinfo=UTC)


@pytest.mark.req("P1")
def test_the_paths_of_a_feature() -> None:
    paths = [
        FEATURE.initial_request,
        FEATURE.ledger,
        FEATURE.decisions,
        FEATURE.research("architecture"),
        FEATURE.spec,
        FEATURE.spec_companion,
        FEATURE.design,
        FEATURE.design_companion,
        FEATURE.plan,
        FEATURE.plan_companion,
        FEATURE.task("task-01"),
        FEATURE.implementation_report("task-01"),
        FEATURE.verification_report("task-01"),
        FEATURE.review_findings("design", "security-sentinel"),
        FEATURE.review_verdict("code", "pragmatic-verifier"),
        FEATURE.knowledge,
        FEATURE.evidence_bundle,
        FEATURE.run_log(DAY),
        FEATURE.post_mortem(DAY),
        FEATURE.archive("2026-02-26T14:30:00Z"),
        FEATURE.archived("2026-02-26T14:30:00Z", FEATURE.task("task-01")),
    ]
    assert [path.removeprefix("docs/feature/auth-handler/") for path in paths] == [
        "initial-request.md",
        "verification-ledger.db",
        "decisions.yaml",
        "research/architecture.yaml",
        "spec-output.yaml",
        "feature.md",
        "design-output.yaml",
        "design.md",
        "plan-output.yaml",
        "plan.md",
        "tasks/task-01.yaml",
        "implementation-reports/task-01.yaml",
        "verification-reports/task-01.yaml",
        "review-findings/design-security-sentinel.md",
        "review-verdicts/code-pragmatic-verifier.yaml",
        "knowledge-output.yaml",
        "evidence-bundle.md",
        "agent-metrics/2026-02-26-run-log.md",
        "post-mortems/2026-02-26-auth-handler.md",
        "archive/2026-02-26T14-30-00Z",
        "archive/2026-02-26T14-30-00Z/tasks/task-01.yaml",
    ]
    assert FEATURE.folder == "docs/feature/auth-handler"


@pytest.mark.req("A6")
def test_the_paths_of_an_autopilot_run() -> None:
    assert [
        autopilot.STATE,
        autopilot.STATE_BACKUP,
        autopilot.REPO_MAP,
        autopilot.CODEBASE_ANALYSIS,
        autopilot.CONTEXT_MAP,
        autopilot.DISCUSS_CONTEXT,
        autopilot.LEARNINGS,
        autopilot.COMPLETION_REPORT,
        autopilot.COMPLETION_DATA,
        autopilot.METRICS,
        autopilot.archived_state("run-2026-02-09-143052"),
        autopilot.diagnostic(MOMENT),
        autopilot.phase_post_mortem("6.1"),
        autopilot.phase_confidence("6a"),
        autopilot.ROADMAP,
        autopilot.REQUIREMENTS,
        autopilot.PROJECT,
        autopilot.CONFIG,
        autopilot.debug_session("it-broke"),
        autopilot.resolved_debug_session("it-broke"),
        autopilot.screenshot("dashboard", MOMENT),
        autopilot.screenshot_baseline("dashboard"),
    ] == [
        ".autopilot/state.json",
        ".autopilot/state.json.backup",
        ".autopilot/repo-map.json",
        ".autopilot/codebase-analysis.md",
        ".autopilot/context-map.json",
        ".autopilot/discuss-context.json",
        ".autopilot/learnings.md",
        ".autopilot/completion-report.md",
        ".autopilot/completion-report.json",
        ".autopilot/archive/metrics.json",
        ".autopilot/archive/run-2026-02-09-143052.json",
        ".autopilot/diagnostics/diagnostic-2026-02-12T120000.md",
        ".autopilot/diagnostics/phase-6.1-postmortem.json",
        ".autopilot/diagnostics/phase-6a-confidence.md",
        ".planning/ROADMAP.md",
        ".planning/REQUIREMENTS.md",
        ".planning/PROJECT.md",
        ".planning/config.json",
        ".planning/debug/it-broke.md",
        ".planning/debug/resolved/it-broke.md",
        ".planning/screenshots/dashboard-20260212T120000Z.png",
        ".planning/screenshots/baseline/dashboard.png",
    ]


@pytest.mark.req("A6")
def test_the_paths_of_a_phase() -> None:
    paths = [
        PHASE.research,
        PHASE.plan,
        PHASE.execution_log,
        PHASE.verification,
        PHASE.judge_report,
        PHASE.scorecard,
        PHASE.triage,
        PHASE.context,
        PHASE.visual_bugs,
        PHASE.handoff,
        PHASE.trace,
        *[PHASE.step_trace(step) for step in ("research", "plan", "execute", "verify")],
        PHASE.tests,
        PHASE.test_script("06-01"),
    ]
    assert [path.removeprefix(".planning/phases/6.1/") for path in paths] == [
        "RESEARCH.md",
        "PLAN.md",
        "EXECUTION-LOG.md",
        "VERIFICATION.md",
        "JUDGE-REPORT.md",
        "SCORECARD.md",
        "TRIAGE.json",
        "CONTEXT.md",
        "VISUAL-BUGS.md",
        "HANDOFF.md",
        "TRACE.jsonl",
        "research-trace.jsonl",
        "plan-trace.jsonl",
        "execute-trace.jsonl",
        "verify-trace.jsonl",
        "tests",
        "tests/task-06-01.sh",
    ]


@pytest.mark.req("A6")
def test_git_ignores_what_only_a_running_autopilot_needs() -> None:
    assert autopilot.GITIGNORE == (
        ".autopilot/state.json",
        ".autopilot/state.json.backup",
        ".autopilot/archive/",
        ".autopilot/diagnostics/",
    )


@pytest.mark.req("F1")
def test_the_paths_of_a_forge_run() -> None:
    paths = [
        FORGE.spec("auth-system"),
        FORGE.specs_lock,
        FORGE.task("task-001"),
        FORGE.dag,
        FORGE.dag_status,
        FORGE.change_request("cr-001"),
        FORGE.dag_overlay("cr-001"),
        FORGE.walkthrough("task-001", 2),
        FORGE.subtask("task-010", "subtask-001"),
        FORGE.run_state,
    ]
    assert [path.removeprefix(".fairwitness/artifacts/2026-02-26T14-30-00Z/") for path in paths] == [
        "specs/auth-system.md",
        "specs.lock.json",
        "tasks/task-001.md",
        "dag.json",
        "dag-status.json",
        "change-requests/cr-001/change-request.md",
        "change-requests/cr-001/dag-overlay.json",
        "task-001/attempt-2/walkthrough.md",
        "task-010/subtasks/subtask-001.md",
        "run-state.json",
    ]
    assert ForgeLayout("r1", base="elsewhere").run_state == "elsewhere/r1/run-state.json"


BAD = ["", ".", "..", "../x", "a/b", "a\\b", "a\0b", "/etc", "C:", "a\n", "x" * 300, "-a", "ä", "a..b", "a.lock", "a "]


@pytest.mark.req("F1")
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(
    "spell",
    [
        FeatureLayout,
        lambda bad: FeatureLayout("a", base=f"../{bad}"),
        FEATURE.research,
        FEATURE.task,
        FEATURE.implementation_report,
        FEATURE.verification_report,
        lambda bad: FEATURE.review_findings(bad, "x"),
        lambda bad: FEATURE.review_verdict("x", bad),
        FEATURE.archive,
        lambda bad: FEATURE.archived("run-1", bad),
        autopilot.archived_state,
        autopilot.phase_post_mortem,
        autopilot.phase_confidence,
        autopilot.debug_session,
        autopilot.resolved_debug_session,
        autopilot.screenshot_baseline,
        lambda bad: autopilot.screenshot(bad, MOMENT),
        PhaseLayout,
        PHASE.step_trace,
        PHASE.test_script,
        ForgeLayout,
        lambda bad: ForgeLayout("a", base=f"/{bad}"),
        FORGE.spec,
        FORGE.task,
        FORGE.task_folder,
        FORGE.change_request,
        FORGE.dag_overlay,
        lambda bad: FORGE.walkthrough(bad, 1),
        lambda bad: FORGE.subtask("task-001", bad),
        lambda bad: FORGE.subtask(bad, "subtask-001"),
    ],
)
def test_a_bad_id_never_becomes_a_path(spell: Callable[[str], object], bad: str) -> None:
    with pytest.raises(UnsafePath) as caught:
        spell(bad)
    assert caught.value.next_step


@pytest.mark.parametrize("attempt", [0, -1, True])
def test_attempts_are_counted_from_one(attempt: int) -> None:
    with pytest.raises(UnsafePath, match="attempt"):
        FORGE.walkthrough("task-001", attempt)


@pytest.mark.parametrize("task", ["specs", "Specs", "tasks", "dag.json", "change-requests", "run-state.json"])
def test_a_task_cannot_take_the_place_of_the_runs_own_files(task: str) -> None:
    with pytest.raises(UnsafePath, match="own files"):
        FORGE.walkthrough(task, 1)
