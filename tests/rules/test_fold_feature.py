"""The fold of a feature run: every event has its place, and a stream that cannot be is told where."""

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.feature.events import FEATURE_EVENT_TYPES
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.rules.fold_feature import fold_feature
from rules.fold_streams import FEATURE, FEATURE_BESIDE, FEATURE_RUN, Said, stream, time_of


def _feature(said: list[Said]) -> FeatureState | Problem:
    return fold_feature(stream(Workflow.FEATURE, FEATURE_RUN, said))


def _feature_state(said: list[Said]) -> FeatureState:
    state = _feature(said)
    assert isinstance(state, FeatureState)
    return state


@pytest.mark.req("P16", "P14", "P17")
def test_every_event_of_a_feature_run_has_its_place_in_the_state() -> None:
    elsewhere = {"path_changed"}  # see test_feature_paths
    assert {kind for kind, _ in (*FEATURE, *FEATURE_BESIDE)} == set(FEATURE_EVENT_TYPES) - elsewhere
    state = _feature_state(FEATURE)
    assert FeatureState.model_validate(state.plain()) == state
    assert state.plain() == snapshot(
        {
            "run_id": "2026-02-26T14:00:00Z",
            "seq": 32,
            "last_event_id": "evt-0032",
            "started_at": "2026-02-26T14:01:00Z",
            "updated_at": "2026-02-26T14:32:00Z",
            "slug": "login",
            "mode": "interactive",
            "base_commit": "abc1234",
            "baseline_tag": "pipeline-baseline-2026-02-26T14-00-00Z",
            "settings_hash": "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "path": "full",
            "resumed": 1,
            "current_step": None,
            "steps": {
                "step-0": {
                    "runs": 1,
                    "started_at": "2026-02-26T14:02:00Z",
                    "finished_at": "2026-02-26T14:04:00Z",
                    "outcome": "advanced",
                },
                "step-1": {
                    "runs": 1,
                    "started_at": "2026-02-26T14:05:00Z",
                    "finished_at": "2026-02-26T14:13:00Z",
                    "outcome": "advanced",
                    "reason": "enough",
                },
            },
            "dispatches": {
                "d-1": {
                    "step": "step-1",
                    "agent": "researcher",
                    "instance": "patterns",
                    "started_at": "2026-02-26T14:06:00Z",
                    "status": "DONE",
                    "duration_ms": 1200,
                    "tokens": 900,
                    "refused_calls": 1,
                    "visit": 1,
                    "life": 0,
                }
            },
            "tasks": {
                "task-01": {
                    "attempts": [
                        {
                            "attempt": 1,
                            "branch": "fairwitness/task-01/attempt-1",
                            "started_at": "2026-02-26T14:14:00Z",
                            "verified": False,
                            "reason": "tests failed",
                        },
                        {
                            "attempt": 2,
                            "branch": "fairwitness/task-01/attempt-2",
                            "started_at": "2026-02-26T14:18:00Z",
                            "verified": True,
                            "tree": "def5678",
                        },
                    ],
                    "merged": "fed9876",
                    "merged_attempt": 2,
                    "reverts": 1,
                }
            },
            "approvals": {
                "gate-1a": {
                    "options": ["proceed", "abort"],
                    "asked_at": "2026-02-26T14:11:00Z",
                    "answered_at": "2026-02-26T14:12:00Z",
                    "selected_option": "proceed",
                    "auto_selected": False,
                    "actor": "ada",
                    "visit": 1,
                    "spent": [],
                }
            },
            "gates": {
                "EG-2": {"open": True, "count": 2, "threshold": 2, "missing": [], "asked_at": "2026-02-26T14:22:00Z"}
            },
            "reviews": [
                {
                    "scope": "code",
                    "round": 1,
                    "perspective": "pragmatic-verifier",
                    "verdicts": {"security": "approve", "architecture": "approve", "correctness": "approve"},
                },
                {
                    "scope": "code",
                    "round": 1,
                    "perspective": "security-sentinel",
                    "verdicts": {"security": "approve", "architecture": "approve", "correctness": "approve"},
                },
            ],
            "pushbacks": [
                {
                    "step": "step-0",
                    "concerns": 1,
                    "worst": "Minor",
                    "selected_option": "proceed",
                    "auto_selected": False,
                }
            ],
            "replans": [{"iteration": 1, "failing": ["task-01"]}],
            "artifacts": {
                "research/patterns.yaml": "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
            },
            "degradations": [{"kind": "fewer_researchers", "detail": "1 of 4"}],
            "exhausted": [{"what": "tokens", "cap": 100, "used": 120}],
            "decisions": 7,
            "ledger_head": {
                "head": "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                "rows": 12,
            },
            "commit": "fed9876",
            "rollback_command": "git revert fed9876",
            "ending": {
                "outcome": "committed",
                "confidence": "High",
                "commit": "fed9876",
                "reason": "",
                "finished_at": "2026-02-26T14:32:00Z",
            },
        }
    )


@pytest.mark.req("P16")
def test_what_a_graph_tells_beside_changes_nothing_of_the_run() -> None:
    said = FEATURE[:20]
    before = _feature_state(said).plain()
    for beside in FEATURE_BESIDE:
        after = _feature_state([*said, beside]).plain()
        assert {key for key in after if after[key] != before.get(key)} == {"seq", "last_event_id", "updated_at"}


@pytest.mark.req("P16")
def test_a_way_of_a_node_that_is_no_failure_changes_no_task() -> None:
    moved = (FEATURE[14][0], FEATURE[14][1] | {"newStatus": "RUNNING", "previousStatus": "PENDING"})
    assert _feature_state([*FEATURE[:14], moved]).tasks == _feature_state(FEATURE[:14]).tasks
    assert _feature_state([FEATURE[0], FEATURE[14]]).tasks["task-01"].attempts == ()


@pytest.mark.req("P5")
def test_a_question_that_is_asked_again_remembers_what_was_answered() -> None:
    again = [*FEATURE[:12], FEATURE[10], FEATURE[11], FEATURE[10]]
    asked = _feature_state(again).approvals["gate-1a"]
    assert (asked.selected_option, asked.spent, asked.visit) == (None, ("proceed", "proceed"), 1)
    assert _feature_state([*FEATURE[:11], FEATURE[10]]).approvals["gate-1a"].spent == ()
    assert _feature_state([FEATURE[0], FEATURE[10]]).approvals["gate-1a"].visit == 0


@pytest.mark.req("P16")
def test_a_step_begun_again_is_counted_and_forgets_how_it_ended() -> None:
    again = [*FEATURE[:4], ("step_started", {"step": "step-0"})]
    step = _feature_state(again).steps["step-0"]
    assert (step.runs, step.outcome, step.finished_at, step.started_at) == (2, None, None, time_of(5))
    assert _feature_state(again).current_step == "step-0"


@pytest.mark.req("P16")
def test_a_step_that_ends_beside_the_current_one_does_not_end_it() -> None:
    said = [*FEATURE[:2], FEATURE[4], FEATURE[3]]
    assert _feature_state(said).current_step == "step-1"


@pytest.mark.req("P16")
def test_a_dispatch_that_is_repeated_after_a_crash_is_the_same_dispatch() -> None:
    said = [*FEATURE[:7], FEATURE[5], FEATURE[7]]
    state = _feature_state(said)
    assert list(state.dispatches) == ["d-1"]
    assert state.dispatches["d-1"].refused_calls == 0


@pytest.mark.req("P16")
def test_what_is_put_back_to_the_baseline_is_merged_no_longer() -> None:
    task = _feature_state([*FEATURE[:20], FEATURE[15]]).tasks["task-01"]
    assert (task.merged, task.merged_attempt, task.reverts) == (None, None, 2)


@pytest.mark.req("P16")
@pytest.mark.parametrize(
    ("said", "where", "expected"),
    [
        ([], "(document)", "at least one event"),
        (FEATURE[1:2], "events[1].type", "run_started as the first event"),
        ([FEATURE[0], FEATURE[0]], "events[2].type", "run_started once"),
        ([FEATURE[0], FEATURE[3]], "events[2].data.step", "a step that is under way"),
        ([*FEATURE[:4], FEATURE[3]], "events[5].data.step", "a step that is under way"),
        ([FEATURE[0], FEATURE[7]], "events[2].data.dispatch_id", "a dispatch that is under way"),
        ([FEATURE[0], FEATURE[6]], "events[2].data.dispatch_id", "a dispatch that is under way"),
        ([*FEATURE[:8], FEATURE[7]], "events[9].data.dispatch_id", "a dispatch that is under way"),
        ([*FEATURE[:8], FEATURE[5]], "events[9].data.dispatch_id", "a dispatch that has not ended"),
        ([FEATURE[0], FEATURE[18]], "events[2].data.attempt", "an attempt that is under way"),
        ([*FEATURE[:15], FEATURE[18]], "events[16].data.attempt", "an attempt that is under way"),
        (
            [*FEATURE[:15], ("task.verified", FEATURE[18][1] | {"attemptId": 1})],
            "events[16].data.attempt",
            "an attempt that is under way",
        ),
        ([*FEATURE[:14], FEATURE[13]], "events[15].data.attempt", "a new attempt"),
        ([FEATURE[0], FEATURE[19]], "events[2].data.attempt", "a verified attempt"),
        ([*FEATURE[:15], FEATURE[19]], "events[16].data.attempt", "a verified attempt"),
        ([FEATURE[0], FEATURE[11]], "events[2].data.gate_id", "a question that waits"),
        ([*FEATURE[:12], FEATURE[11]], "events[13].data.gate_id", "a question that waits"),
        (
            [*FEATURE[:11], ("approval_answered", FEATURE[11][1] | {"selected_option": "expand"})],
            "events[12].data.selected_option",
            "proceed or abort",
        ),
        ([FEATURE[0], ("step_started", {})], "events[2].data.step", "Field required"),
    ],
)
def test_a_feature_stream_that_cannot_be_is_told_where(said: list[Said], where: str, expected: str) -> None:
    problem = _feature(said)
    assert isinstance(problem, Problem)
    assert (spell_path(problem.where), problem.expected) == (where, expected)


@pytest.mark.req("P16")
def test_a_feature_run_is_named_by_the_second_it_began() -> None:
    problem = fold_feature(stream(Workflow.FEATURE, "run-7", FEATURE[:1]))
    assert isinstance(problem, Problem)
    assert spell_path(problem.where) == "events[1].data.run_id"


@pytest.mark.req("P16")
def test_what_is_under_way_claims_nothing_yet() -> None:
    state = _feature_state(FEATURE[:6])
    dispatch = state.dispatches["d-1"]
    assert (dispatch.status, dispatch.duration_ms, dispatch.tokens, dispatch.refused_calls) == (None, 0, 0, 0)
    assert (_feature_state(FEATURE[:4]).current_step, state.current_step) == (None, "step-1")
    question = _feature_state(FEATURE[:11]).approvals["gate-1a"]
    assert (question.selected_option, question.auto_selected, question.answered_at) == (None, False, None)
