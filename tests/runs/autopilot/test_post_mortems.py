"""A failed phase leaves its story with the earliest cause that was not made good, and a rule for later phases."""

import json
from pathlib import Path

import pytest

from fairwitness.contracts.autopilot.events_phase import (
    DebugAttempt,
    HumanVerdictRecorded,
    PhaseFailed,
    PhaseStarted,
    ReplanAttempt,
    RollbackCompleted,
    RollbackInitiated,
    StepCompleted,
    StepFailed,
    TaskRetried,
)
from fairwitness.contracts.autopilot.phase_return import PhaseReturn
from fairwitness.contracts.autopilot.postmortem import PostMortem, RootCause, TimelineStatus
from fairwitness.contracts.autopilot.vocabulary import FailureCategory, HumanWord, StepName
from fairwitness.kit.markdown import Markdown
from fairwitness.runs.autopilot.learnings import Learnings, fresh_learnings
from fairwitness.runs.autopilot.log import new_event, pass_name
from fairwitness.runs.autopilot.post_mortems import (
    PREVENTION,
    attempted_fixes,
    events_of,
    learn_repairs,
    prevention_rule,
    root_cause,
    timeline,
    write_post_mortem,
)
from fairwitness.store.layout import autopilot
from runs.autopilot.logbook import AT, FAILED, Logbook, a_pass, killed_everywhere

PATH = ".autopilot/diagnostics/phase-5-postmortem.json"


@pytest.fixture
def logbook(tmp_path: Path) -> Logbook:
    return Logbook.create(tmp_path / "run")


@pytest.mark.req("A7")
def test_a_post_mortem_tells_the_story_its_cause_and_what_was_tried(logbook: Logbook) -> None:
    written = write_post_mortem(logbook.log, logbook.files, logbook.goes_wrong("5"), FAILED)
    assert written.path == PATH
    story = PostMortem.model_validate(json.loads(logbook.files.get(PATH)))
    assert story == written.post_mortem
    assert (story.phase_id, story.phase_name) == ("5", "Part 5")
    cause = story.root_cause
    assert (cause.category, cause.step) == (FailureCategory.ACCEPTANCE_CRITERIA_UNMET, StepName.VERIFY)
    assert cause.description == "the total is wrong"
    assert [(each.step.value, each.status.value) for each in story.timeline] == [
        ("phase_runner", "success"),
        ("execute", "failure"),
        ("execute", "success"),
        ("execute", "success"),
        ("verify", "failure"),
        ("debug", "partial"),
        ("execute", "success"),
        ("verify", "failure"),
        ("debug", "partial"),
    ]
    first, second = story.attempted_fixes
    assert (first.commit_sha, first.resolved, first.remaining) == ("def5678", ("no test",), ("the total is wrong",))
    assert (second.commit_sha, second.resolved, second.remaining) == (None, (), ("the total is wrong",))
    assert story.prevention_rule == (
        "See the criterion's command fail first, then work until it passes: verify ended in “the total is wrong”."
    )
    assert story.prevention_rule.removesuffix(".") in Learnings(logbook.log, logbook.files).text()


@pytest.mark.req("A7")
def test_what_was_run_and_looked_at_is_what_the_harness_filled(logbook: Logbook) -> None:
    asked = logbook.goes_wrong("5")
    step = {"status": "skipped", "agent_spawned": False}
    names = ("preflight", "triage", "research", "plan", "plan_check", "execute", "verify", "judge", "rate")
    returned = PhaseReturn.model_validate(
        {
            "phase": "5",
            "status": "failed",
            "alignment_score": None,
            "tasks_completed": "1/2",
            "tasks_failed": "1/2",
            "commit_shas": [],
            "automated_checks": {"compile": True, "build": "n/a", "lint": False},
            "issues": [],
            "debug_attempts": 2,
            "replan_attempts": 0,
            "recommendation": "rollback",
            "summary": "it failed",
            "checkpoint_sha": None,
            "verification_duration_seconds": 1.0,
            "evidence": {"files_checked": ["src/a.py"], "commands_run": ["make -> 2"], "git_diff_summary": ""},
            "pipeline_steps": dict.fromkeys(names, step),
        }
    )
    logbook.log.keep(f"returned:{pass_name(asked)}", "returned", "5", returned)
    story = write_post_mortem(logbook.log, logbook.files, asked, FAILED).post_mortem
    assert (story.evidence.commands_run, story.evidence.files_checked) == (("make -> 2",), ("src/a.py",))
    assert story.attempted_fixes[-1].resolved == ("the total is wrong",)


@pytest.mark.req("A7")
def test_the_earliest_failure_counts_unless_it_was_made_good(logbook: Logbook) -> None:
    logbook.goes_wrong("5")
    events = events_of(logbook.log, "5")
    cause = root_cause(events)
    assert cause is not None
    assert cause.category is FailureCategory.ACCEPTANCE_CRITERIA_UNMET
    mended = new_event(StepCompleted, AT, phase="5", step=StepName.VERIFY)
    assert root_cause((*events, mended)) is None
    task = next(at for at, event in enumerate(events) if event.event == "task_completed")
    still = root_cause(events[:task] + events[task + 1 :])
    assert still is not None
    assert (still.category, still.step) == (FailureCategory.BUILD_FAILURE, StepName.EXECUTE)


@pytest.mark.req("A8", "A17")
def test_a_failure_that_a_debugger_repaired_is_a_lesson_once_and_any_other_is_none(logbook: Logbook) -> None:
    logbook.goes_wrong("5")
    learn_repairs(logbook.log, logbook.files, "5")
    assert not logbook.files.exists(autopilot.LEARNINGS) or "repaired" not in _learned(logbook)
    logbook.tell(StepCompleted, "5", StepName.VERIFY)
    logbook.tell(StepFailed, "5", StepName.VERIFY, error="no docs", category=FailureCategory.SCOPE_CREEP)
    logbook.tell(StepCompleted, "5", StepName.VERIFY)  # without a debugger
    for _ in range(2):
        learn_repairs(logbook.log, logbook.files, "5")
    learned = _learned(logbook)
    assert learned.count("\n### ") == 1
    assert "### Phase 5 repaired -- acceptance_criteria_unmet" in learned
    assert "**Prevention rule:** See the criterion's command fail first, then work until it passes." in learned
    assert "**Cause:** the total is wrong." in learned


def _learned(logbook: Logbook) -> str:
    return logbook.files.get(autopilot.LEARNINGS).decode()


@pytest.mark.req("A7")
def test_where_no_step_left_a_cause_the_phase_itself_is_the_cause(logbook: Logbook) -> None:
    logbook.begins("5")
    story = write_post_mortem(logbook.log, logbook.files, a_pass("5"), FAILED).post_mortem
    assert (story.root_cause.category, story.root_cause.description) == (FAILED.category, FAILED.reason)
    assert story.root_cause.step is StepName.VERIFY


@pytest.mark.req("A7")
@pytest.mark.parametrize("noise", [11, 12, 60])
def test_a_long_story_keeps_its_beginning_its_cause_and_its_end(logbook: Logbook, noise: int) -> None:
    logbook.goes_wrong("5")
    for _ in range(noise):
        logbook.tell(TaskRetried, "5", task="t-2", attempt=1)
    logbook.tell(PhaseFailed, "5", reason="it is given up")
    events = events_of(logbook.log, "5")
    cause = root_cause(events)
    assert cause is not None
    story = timeline(events, cause)
    assert len(story) == 20
    assert [each.timestamp for each in story] == sorted(each.timestamp for each in story)
    assert (story[0].event, story[-1].event) == ("the phase began", "the phase failed: it is given up")
    assert cause.first_observed_at in [each.timestamp for each in story if each.status is TimelineStatus.FAILURE]


@pytest.mark.req("A7")
def test_every_turn_of_a_phase_is_a_moment_of_its_story(logbook: Logbook) -> None:
    logbook.begins("5")
    logbook.tell(ReplanAttempt, "5", attempt=1)
    logbook.tell(RollbackInitiated, "5", reason="a" * 500)
    logbook.tell(RollbackCompleted, "5")
    events = (
        *events_of(logbook.log, "5"),
        new_event(HumanVerdictRecorded, AT, phase="5", verdict=HumanWord.FAIL, issues=("no",)),
        new_event(DebugAttempt, AT, phase="5"),
    )
    cause = RootCause(
        category=FailureCategory.TOOL_FAILURE, description="x", first_observed_at=AT, step=StepName.VERIFY
    )
    story = timeline(events, cause)
    assert [each.event[:30] for each in story] == [
        "the phase began",
        "a new plan is made: its score ",
        "its commits are reverted: aaaa",
        "its commits were reverted",
        "a person said: no",
        "debug attempt : no issue is na",
    ]
    assert max(len(each.event) for each in story) < 210
    (fix,) = attempted_fixes(events, None)
    assert (fix.attempt, fix.description, fix.resolved) == (1, "no issue is named", ())


@pytest.mark.req("A7")
def test_a_phase_that_was_begun_anew_has_only_its_last_story(logbook: Logbook) -> None:
    logbook.goes_wrong("5")
    logbook.fails("7")
    logbook.tell(PhaseStarted, "5")
    logbook.tell(StepFailed, "5", StepName.RESEARCH, error="no answer", category=FailureCategory.TOOL_FAILURE)
    assert [event.event for event in events_of(logbook.log, "5")] == ["phase_started", "step_failed"]


def test_every_category_of_failure_has_a_rule() -> None:
    assert set(PREVENTION) == set(FailureCategory)
    cause = RootCause(category=FailureCategory.SCOPE_CREEP, description="x", first_observed_at=AT, step=StepName.JUDGE)
    assert prevention_rule(cause) == "Touch the files that the task names, and no others: judge ended in “x”."


def test_a_rule_that_somebody_wrote_is_taken(logbook: Logbook) -> None:
    written = write_post_mortem(
        logbook.log, logbook.files, logbook.goes_wrong("5"), FAILED._replace(rule="Add the tax")
    )
    assert written.post_mortem.prevention_rule == "Add the tax"


@pytest.mark.req("A7", "A8")
def test_killed_between_any_two_writes_the_same_call_finishes_it(logbook: Logbook, tmp_path: Path) -> None:
    asked = logbook.goes_wrong("5")
    for found in killed_everywhere(logbook, "post-mortem", tmp_path):
        written = write_post_mortem(found.log, found.files, asked, FAILED)
        before = found.tree()
        assert sorted(before) == [PATH, autopilot.LEARNINGS]
        assert found.files.get(autopilot.LEARNINGS).decode().count("### ") == 1
        assert write_post_mortem(found.log, found.files, asked, FAILED._replace(reason="else")) == written
        assert found.tree() == before


@pytest.mark.req("A8")
def test_learnings_are_emptied_once_at_the_beginning_of_a_run(logbook: Logbook) -> None:
    logbook.files.put(autopilot.LEARNINGS, b"# Learnings (current run)\n\n### of an earlier run\nx\n")
    learnings = Learnings(logbook.log, logbook.files)
    learnings.begin()
    assert logbook.files.get(autopilot.LEARNINGS).decode() == fresh_learnings()
    assert learnings.text() == "", "a heading without a lesson is not shown to agents"
    learnings.add("a", Markdown("### First\nmind the gap"))
    learnings.begin()
    learnings.add("a", Markdown("### First, told otherwise\nno"))
    learnings.add("b", Markdown("### Second\nmind it again"))
    assert learnings.text() == "# Learnings (current run)\n\n### First\nmind the gap\n\n### Second\nmind it again\n"
    found = Logbook.open(logbook.root)
    Learnings(found.log, found.files).begin()
    assert Learnings(found.log, found.files).text() == learnings.text()


@pytest.mark.req("A8")
def test_what_others_added_stays_and_what_is_missing_comes_back(logbook: Logbook) -> None:
    learnings = Learnings(logbook.log, logbook.files)
    learnings.begin()
    learnings.add("a", Markdown("### First\nx"))
    logbook.files.put(autopilot.LEARNINGS, b"# Learnings (current run)\n\n### Debug session\ny\n")
    learnings.add("b", Markdown("### Second\nz"))
    text = learnings.text()
    assert [line for line in text.splitlines() if line.startswith("###")] == [
        "### Debug session",
        "### First",
        "### Second",
    ]


@pytest.mark.req("A8")
@pytest.mark.parametrize("damage", [b"\xff", b"<script>", b""])
def test_a_damaged_file_is_written_anew_from_the_ledger(logbook: Logbook, damage: bytes) -> None:
    learnings = Learnings(logbook.log, logbook.files)
    learnings.begin()
    learnings.add("a", Markdown("### First\nx"))
    before = learnings.text()
    logbook.files.put(autopilot.LEARNINGS, damage)
    assert learnings.text() == before
    learnings.begin()
    assert logbook.files.get(autopilot.LEARNINGS).decode() == before
