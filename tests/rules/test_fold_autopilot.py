"""The fold of an autopilot run: its state file, score history, breaker and metrics."""

from typing import Any

import pytest
from inline_snapshot import snapshot
from pydantic import TypeAdapter

from fairwitness.contracts.autopilot.breaker import BreakerPosition
from fairwitness.contracts.autopilot.events import AUTOPILOT_EVENT_TYPES, AutopilotEvent
from fairwitness.contracts.autopilot.facts import AutopilotState, RunSetup
from fairwitness.contracts.autopilot.state import State
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, FailureCategory, PhaseStatus, StepName
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.rules.cost import run_metrics, standing_score
from fairwitness.rules.fold_autopilot import fold_autopilot
from fairwitness.rules.fold_phase import BEGUN, FAILED, autopilot_event, event_data
from rules.fold_streams import ALL, JUSTIFIED, PILOT, PILOT_RUN, SETUP, Said, stream, time_of


def _pilot(said: list[Said], setup: RunSetup = SETUP) -> AutopilotState | Problem:
    return fold_autopilot(stream(Workflow.AUTOPILOT, PILOT_RUN, said), setup)


def _pilot_state(said: list[Said], setup: RunSetup = SETUP) -> AutopilotState:
    state = _pilot(said, setup)
    assert isinstance(state, AutopilotState)
    return state


def _before(kind: str, nth: int = 1) -> list[Said]:
    """The events up to and with the nth of a kind."""
    places = [index for index, (name, _) in enumerate(PILOT) if name == kind]
    return PILOT[: places[nth - 1] + 1]


@pytest.mark.req("A1", "A5")
def test_every_event_of_an_autopilot_run_has_its_place_in_the_state() -> None:
    assert {kind for kind, _ in PILOT} == set(AUTOPILOT_EVENT_TYPES)
    folded = _pilot_state(PILOT)
    assert State.model_validate(folded.state.plain()) == folded.state
    assert AutopilotState.model_validate(folded.plain()) == folded
    assert folded.state.plain() | {"event_log": []} == snapshot(
        {
            "_meta": {
                "version": "1.1",
                "run_id": "run-2026-02-26-140000",
                "started_at": "2026-02-26T14:01:00Z",
                "last_checkpoint": "2026-02-26T14:59:00Z",
                "status": "completed",
                "total_phases": 3,
                "current_phase": None,
                "current_step": None,
                "orchestrator_context_pct": 12,
                "human_deferred_count": 1,
                "total_phases_processed": 3,
                "pass_threshold": 9.5,
                "autonomous_resolution_rate": 0.6667,
                "deferral_threshold": 0.05,
                "deferral_confidence": 6.5,
                "deferral_history": [
                    {
                        "phase_id": "7",
                        "reason": "card",
                        "autonomous_confidence": 4.0,
                        "human_verdict": "issues_found",
                        "timestamp": "2026-02-26T14:34:00Z",
                    }
                ],
            },
            "spec": {
                "path": "SPEC.md",
                "hash": "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                "locked_at": "2026-02-26T14:00:00Z",
            },
            "specs": [
                {
                    "path": "SPEC.md",
                    "hash": "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                    "locked_at": "2026-02-26T14:00:00Z",
                }
            ],
            "roadmap_path": ".planning/ROADMAP.md",
            "phases": {
                "6": {
                    "phase_type": "mixed",
                    "status": "completed",
                    "started_at": "2026-02-26T14:26:00Z",
                    "completed_at": "2026-02-26T14:27:00Z",
                    "steps": {"rate": {"status": "pass", "alignment_score": 9.6, "score_band": "excellence"}},
                    "debug_attempts": 0,
                    "replan_attempts": 0,
                    "tokens_used": 0,
                    "estimated_tokens": 100000,
                    "human_verify_justification": None,
                    "human_verdict": None,
                    "force_incomplete": False,
                    "diagnostic_path": None,
                    "remediation_cycles": 0,
                    "score_history": [
                        {"score": 8.0, "timestamp": "2026-02-26T14:14:00Z", "flag": "initial", "cycle": 0},
                        {"score": 7.8, "timestamp": "2026-02-26T14:15:00Z", "flag": "remediation", "cycle": 1},
                        {"score": 9.1, "timestamp": "2026-02-26T14:20:00Z", "flag": "quality", "cycle": 1},
                        {"score": 8.7, "timestamp": "2026-02-26T14:23:00Z", "flag": "gaps", "cycle": 1},
                        {"score": 9.6, "timestamp": "2026-02-26T14:27:00Z", "flag": "force", "cycle": 0},
                    ],
                    "quality_exhausted": False,
                    "gaps_exhausted": False,
                    "rubber_stamp_suspect": True,
                },
                "6.1": {
                    "phase_type": "data",
                    "status": "failed",
                    "started_at": "2026-02-26T14:28:00Z",
                    "completed_at": "2026-02-26T14:31:00Z",
                    "steps": {},
                    "debug_attempts": 0,
                    "replan_attempts": 0,
                    "tokens_used": 0,
                    "human_verify_justification": None,
                    "human_verdict": None,
                    "force_incomplete": False,
                    "diagnostic_path": None,
                    "remediation_cycles": 0,
                    "score_history": [],
                    "quality_exhausted": False,
                    "gaps_exhausted": False,
                },
                "7": {
                    "phase_type": "mixed",
                    "status": "failed",
                    "started_at": "2026-02-26T14:32:00Z",
                    "completed_at": "2026-02-26T14:40:00Z",
                    "steps": {},
                    "debug_attempts": 0,
                    "replan_attempts": 0,
                    "tokens_used": 0,
                    "human_verify_justification": {
                        "checkpoint_task_id": "07-02",
                        "task_description": "pay with a real card",
                        "auto_tasks_passed": 1,
                        "auto_tasks_total": 2,
                    },
                    "human_verdict": {
                        "verdict": "issues_found",
                        "timestamp": "2026-02-26T14:40:00Z",
                        "issues": ["no receipt"],
                    },
                    "force_incomplete": False,
                    "diagnostic_path": None,
                    "remediation_cycles": 0,
                    "score_history": [],
                    "quality_exhausted": False,
                    "gaps_exhausted": False,
                },
            },
            "circuit_breaker": {
                "state": "closed",
                "consecutive_no_progress": 0,
                "consecutive_same_error": 0,
                "last_error": None,
                "cooldown_until": None,
            },
            "event_log": [],
            "metrics": {
                "total_tokens_used": 90000,
                "total_duration_minutes": 58.0,
                "phases_completed": 1,
                "phases_failed": 2,
                "debug_loops_total": 1,
                "replan_count": 1,
            },
        }
    )
    assert [one.plain() for one in folded.failures] == snapshot(
        [{"category": "build_failure", "count": 2}, {"category": "scope_creep", "count": 1}]
    )


@pytest.mark.req("A1", "A5")
@pytest.mark.parametrize("length", range(1, len(PILOT) + 1))
def test_after_every_event_the_state_file_is_whole(length: int) -> None:
    folded = _pilot_state(PILOT[:length])
    assert State.model_validate(folded.state.plain()) == folded.state
    assert folded.state.meta.last_checkpoint == time_of(length)


@pytest.mark.req("A1", "A5")
def test_the_file_holds_the_last_events_and_the_archive_all() -> None:
    kept, archived = _pilot_state(PILOT).state, _pilot_state(PILOT, ALL).state
    assert [event.event for event in archived.event_log] == [kind for kind, _ in PILOT]
    assert kept.event_log == archived.event_log[-5:]
    assert kept.phases == archived.phases
    assert len(_pilot_state(PILOT[:3]).state.event_log) == 3


@pytest.mark.req("A5")
@pytest.mark.parametrize("envelope", stream(Workflow.AUTOPILOT, PILOT_RUN, PILOT), ids=lambda envelope: envelope.type)
def test_an_event_travels_in_an_envelope_and_comes_out_the_same(envelope: Envelope) -> None:
    opened = autopilot_event(envelope)
    assert not isinstance(opened, Problem)
    event, facts = opened
    packed = event_data(event, facts if "facts" in envelope.data else None)
    again = autopilot_event(envelope.model_copy(update={"data": packed, "phase": event.phase}))
    assert again == (event, facts)
    adapter: TypeAdapter[AutopilotEvent] = TypeAdapter(AutopilotEvent)
    assert adapter.validate_python(event.plain()) == event


@pytest.mark.req("A14", "A13")
def test_every_score_of_a_phase_stands_in_its_history_with_its_flag_and_cycle() -> None:
    history = _pilot_state(PILOT).state.phases["6"].score_history
    assert [(one.score, one.flag.value, one.cycle) for one in history] == [
        (8.0, "initial", 0),
        (7.8, "remediation", 1),
        (9.1, "quality", 1),
        (8.7, "gaps", 1),
        (9.6, "force", 0),
    ]


@pytest.mark.req("A14")
def test_the_better_score_stands_after_a_cycle_that_made_it_worse() -> None:
    scores = [
        standing_score(_pilot_state(_before(kind)).state.phases["6"])
        for kind in (
            "step_started",
            "remediation_completed",
            "quality_remediation_completed",
            "gaps_iteration_completed",
        )
    ]
    assert scores == [None, 8.0, 9.1, 9.1]


@pytest.mark.req("A13", "A14")
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            "remediation_completed",
            {"phase_id": "6", "cycle": 1, "improved": False, "reached_threshold": False},
        ),
        ("quality_remediation_completed", {"cycle": 1, "target": 9.5}),
        ("gaps_iteration_completed", {"iteration": 1, "deficiency_addressed": "x", "remaining_deficiencies": 0}),
    ],
)
def test_a_cycle_that_was_not_rated_adds_no_score_and_leaves_the_one_before_it(kind: str, said: dict[str, Any]) -> None:
    events = [*_before("remediation_started"), (kind, {"phase": "6", "old_score": 8.0, **said})]
    phase = _pilot_state(events).state.phases["6"]
    assert [(one.score, one.flag.value, one.cycle) for one in phase.score_history] == [(8.0, "initial", 0)]
    assert standing_score(phase) == 8.0


@pytest.mark.req("A14")
def test_a_phase_that_is_run_again_begins_afresh_but_keeps_its_history() -> None:
    before = _pilot_state(_before("force_reexecution_started")).state.phases["6"]
    after = _pilot_state(_before("phase_started", 2)).state.phases["6"]
    assert (before.force_incomplete, before.quality_exhausted, before.gaps_exhausted) == (True, True, True)
    assert (after.force_incomplete, after.quality_exhausted, after.gaps_exhausted) == (False, False, False)
    assert (after.status, after.debug_attempts, after.completed_at) == (PhaseStatus.IN_PROGRESS, 0, None)
    assert after.score_history == before.score_history
    assert (after.phase_type.value, after.tokens_used) == ("mixed", 0)
    twice = _pilot_state(_before("phase_started", 5)).state.phases["7"]
    assert twice == _pilot_state(_before("phase_started", 4)).state.phases["7"]


@pytest.mark.req("A14")
@pytest.mark.parametrize(("score", "kept"), [(8.4, [(8.4, "initial", 0)]), (None, [])])
def test_the_score_of_an_earlier_run_is_the_first_of_a_phase_that_is_forced(
    score: float | None, kept: list[tuple[float, str, int]]
) -> None:
    again = ("force_reexecution_started", {"phase": "6", "previous_score": score, "previous_status": "completed"})
    phase = _pilot_state([*_before("run_started"), again]).state.phases["6"]
    assert [(entry.score, entry.flag.value, entry.cycle) for entry in phase.score_history or ()] == kept


@pytest.mark.req("A4", "A1")
def test_the_breaker_of_the_state_counts_as_the_rule_does_and_moves_by_events() -> None:
    def breaker(kind: str, nth: int = 1) -> tuple[str, int, int]:
        state = _pilot_state(_before(kind, nth)).state.circuit_breaker
        return state.state.value, state.consecutive_no_progress, state.consecutive_same_error

    assert breaker("step_completed") == ("closed", 0, 0)
    assert breaker("step_failed") == ("closed", 1, 1)
    assert breaker("circuit_breaker_opened") == ("open", 1, 1)
    assert breaker("run_resumed") == ("half_open", 0, 0)
    assert breaker("circuit_breaker_closed") == ("closed", 0, 0)
    opened = _pilot_state(_before("circuit_breaker_opened")).state.circuit_breaker
    assert (opened.last_error, opened.cooldown_until) == ("build_failure: a.c:<line>: no", "2026-02-26T14:37:00Z")
    told = [*PILOT[:1], ("circuit_breaker_opened", {"last_error": "told"})]
    assert _pilot_state(told).state.circuit_breaker.last_error == "told"
    early = [*PILOT[:1], ("circuit_breaker_opened", {"cooldown_until": "2026-02-26T20:00:00Z"}), ("run_resumed", {})]
    assert _pilot_state(early).state.circuit_breaker.state is BreakerPosition.OPEN


@pytest.mark.req("A19")
def test_a_deferral_is_counted_remembered_and_settled_by_the_person() -> None:
    waiting = _pilot_state(_before("unnecessary_deferral_warning")).state
    assert waiting.phases["7"].status is PhaseStatus.NEEDS_HUMAN_VERIFICATION
    assert (waiting.meta.human_deferred_count, waiting.meta.total_phases_processed) == (1, 3)
    assert waiting.meta.autonomous_resolution_rate == 0.6667
    settled = _pilot_state(_before("human_verdict_recorded")).state
    assert settled.phases["7"].status is PhaseStatus.FAILED
    assert [one.human_verdict for one in settled.meta.deferral_history] == ["issues_found"]
    passed = _pilot_state(
        [*_before("unnecessary_deferral_warning"), ("human_verdict_recorded", {"phase": "7", "verdict": "pass"})]
    )
    assert passed.state.phases["7"].status is PhaseStatus.COMPLETED
    silent = _pilot_state([*_before("unnecessary_deferral_warning"), ("human_verdict_recorded", {"phase": "7"})])
    assert silent.state.phases["7"].status is PhaseStatus.NEEDS_HUMAN_VERIFICATION
    again = [*_before("human_verdict_recorded"), ("human_verdict_recorded", {"phase": "7", "verdict": "pass"})]
    told = _pilot(again)
    assert isinstance(told, Problem)
    assert told.expected == "a phase that waits for a person"
    refused = _pilot([*_before("unnecessary_deferral_warning"), ("run_completed", {})])
    assert isinstance(refused, Problem)
    assert refused.expected == "no phase that waits for a person"


HALTS: list[dict[str, Any]] = [{}, {"status": "paused"}, {"status": "failed"}]


@pytest.mark.req("A1")
def test_a_halt_without_a_word_is_a_failure() -> None:
    halted = [_pilot_state([*PILOT[:1], ("run_halted", data)]).state.meta.status for data in HALTS]
    assert halted == [AutopilotRunStatus.FAILED, AutopilotRunStatus.PAUSED, AutopilotRunStatus.FAILED]
    assert _pilot_state(_before("run_resumed")).state.meta.status is AutopilotRunStatus.RUNNING


@pytest.mark.req("A1")
def test_where_a_run_stands_follows_its_steps() -> None:
    def stands(kind: str, nth: int = 1) -> tuple[str | None, str | None]:
        meta = _pilot_state(_before(kind, nth)).state.meta
        return meta.current_phase, meta.current_step

    assert [stands("run_started"), stands("phase_started"), stands("step_started", 2)] == [
        (None, None),
        ("6", None),
        ("6", "execute"),
    ]
    assert [stands("phase_completed"), stands("phase_failed"), stands("run_completed")] == [(None, None)] * 3


@pytest.mark.req("A3")
def test_every_step_has_its_word_for_begun_and_failed_or_none() -> None:
    assert set(BEGUN) == set(FAILED) == set(StepName)
    for step in StepName:
        begun = [*PILOT[:2], ("step_started", {"phase": "6", "step": step.value})]
        failed = [*begun, ("step_failed", {"phase": "6", "step": step.value})]
        for said, words in ((begun, BEGUN), (failed, FAILED)):
            record = _pilot_state(said).state.phases["6"].steps.plain().get(step.value, {})
            kept = BEGUN[step] if words[step] is None else words[step]
            assert record.get("status") == kept


@pytest.mark.req("A1")
def test_only_the_wanted_phases_are_in_the_state_and_parts_of_a_split_one_are_added() -> None:
    some: list[Said] = [
        ("run_started", {"phases": ["7", "6"]}),
        ("phase_started", {"phase": "7a"}),
        ("phase_started", {"phase": "7b"}),
    ]
    state = _pilot_state(some).state
    assert list(state.phases) == ["7", "6", "7a", "7b"]
    assert (state.phases["7a"].phase_type.value, state.meta.total_phases) == ("mixed", 4)
    assert state.meta.pass_threshold == 9.0


@pytest.mark.req("A9")
def test_the_metrics_of_a_run_come_from_its_fold() -> None:
    folded = _pilot_state(PILOT)
    assert run_metrics(folded, now=time_of(60)).plain() == snapshot(
        {
            "run_id": "run-2026-02-26-140000",
            "timestamp": "2026-02-26T15:00:00Z",
            "phases_attempted": 3,
            "phases_succeeded": 1,
            "phases_failed": 2,
            "phases_human_deferred": 0,
            "failure_taxonomy_histogram": {"build_failure": 2, "scope_creep": 1},
            "avg_alignment_score": 9.6,
            "total_duration_minutes": 59.0,
            "total_estimated_tokens": 100000,
            "total_debug_loops": 1,
            "total_replan_attempts": 1,
            "success_rate": 0.3333,
            "per_phase_summary": [
                {
                    "phase_id": "6",
                    "status": "completed",
                    "alignment_score": 9.6,
                    "estimated_tokens": 100000,
                    "duration_minutes": 1.0,
                },
                {
                    "phase_id": "6.1",
                    "status": "failed",
                    "alignment_score": None,
                    "estimated_tokens": 0,
                    "duration_minutes": 3.0,
                },
                {
                    "phase_id": "7",
                    "status": "failed",
                    "alignment_score": None,
                    "estimated_tokens": 0,
                    "duration_minutes": 8.0,
                },
            ],
        }
    )
    fresh = run_metrics(_pilot_state(PILOT[:1]), now=time_of(3))
    assert (fresh.phases_attempted, fresh.success_rate, fresh.avg_alignment_score) == (0, 0.0, None)
    assert fresh.total_duration_minutes == 2
    running = run_metrics(_pilot_state(PILOT[:2]), now=time_of(4))
    assert (running.phases_succeeded, running.per_phase_summary[0].duration_minutes) == (0, 2)


@pytest.mark.req("A9")
def test_a_phase_succeeds_by_its_score_or_by_a_persons_word() -> None:
    def succeeded(*said: Said) -> int:
        return run_metrics(_pilot_state([*PILOT[:1], *said]), now=time_of(9)).phases_succeeded

    start: Said = ("phase_started", {"phase": "7"})
    assert succeeded(start, ("phase_completed", {"phase": "7", "alignment_score": 7.0})) == 1
    assert succeeded(start, ("phase_completed", {"phase": "7", "alignment_score": 6.9})) == 0
    assert succeeded(start, ("phase_completed", {"phase": "7"})) == 0
    deferral = {"deferral": {"reason": "card", "autonomous_confidence": None, "justification": JUSTIFIED}}
    assert (
        succeeded(
            start,
            ("step_completed", {"phase": "7", "step": "rate", "facts": deferral}),
            ("human_verdict_recorded", {"phase": "7", "verdict": "pass"}),
        )
        == 1
    )


@pytest.mark.req("A7")
def test_failures_are_counted_by_their_category() -> None:
    counts = {one.category: one.count for one in _pilot_state(PILOT).failures}
    assert counts == {FailureCategory.BUILD_FAILURE: 2, FailureCategory.SCOPE_CREEP: 1}
    silent = _pilot_state([*PILOT[:2], ("phase_failed", {"phase": "6"})])
    assert silent.failures == ()


@pytest.mark.req("A1", "A5")
@pytest.mark.parametrize(
    ("said", "where", "expected"),
    [
        (PILOT[1:2], "events[1].type", "run_started as the first event"),
        ([PILOT[0], PILOT[0]], "events[2].type", "run_started once"),
        ([("run_started", {"phases": ["6", "9"]})], "events[1].data.phases", "phases of the roadmap"),
        ([PILOT[0], ("phase_started", {})], "events[2].phase", "the phase it happened in"),
        ([PILOT[0], ("quality_exhausted", {})], "events[2].phase", "the phase it happened in"),
        ([PILOT[0], ("phase_started", {"phase": "99"})], "events[2].phase", "a phase of the run"),
        ([PILOT[0], ("phase_started", {"phase": "99a"})], "events[2].phase", "a phase of the run"),
        ([PILOT[0], ("step_started", {"phase": "6"})], "events[2].data.step", "the step it happened to"),
        ([PILOT[0], ("step_started", {"phase": "6", "step": "x"})], "events[2].data.step", None),
        ([PILOT[0], ("run_halted", {"status": "completed"})], "events[2].data.status", "paused or failed"),
        ([PILOT[0], ("run_halted", {"status": "running"})], "events[2].data.status", "paused or failed"),
        ([PILOT[0], ("phase_completed", {"phase": "6"})], "events[2].data.started_at", None),
        (
            [PILOT[0], ("checkpoint_written", {"facts": {"tokens": 1}})],
            "events[2].phase",
            "the phase its facts are about",
        ),
        (
            [PILOT[0], ("checkpoint_written", {"facts": {"steps": {}}})],
            "events[2].phase",
            "the phase its facts are about",
        ),
        (
            [PILOT[0], ("checkpoint_written", {"facts": PILOT[33][1]["facts"]})],
            "events[2].phase",
            "the phase its facts are about",
        ),
        ([PILOT[0], ("checkpoint_written", {"facts": {"x": 1}})], "events[2].data.x", None),
        (
            [PILOT[0], ("deferral_threshold_adjusted", {"new_confidence": 9.0})],
            "events[2].data.deferral_confidence",
            None,
        ),
    ],
)
def test_an_autopilot_stream_that_cannot_be_is_told_where(said: list[Said], where: str, expected: str | None) -> None:
    problem = _pilot(said)
    assert isinstance(problem, Problem)
    assert spell_path(problem.where) == where
    assert expected in (None, problem.expected)


@pytest.mark.req("A1")
def test_a_setup_with_two_locks_for_one_file_is_told_at_the_first_event() -> None:
    other = SETUP.spec.model_copy(update={"hash": "sha256:" + "b" * 64})
    problem = _pilot(PILOT[:1], SETUP.model_copy(update={"specs": (other,)}))
    assert isinstance(problem, Problem)


@pytest.mark.req("A4", "A9")
def test_a_phase_that_is_run_again_does_not_give_the_run_its_tokens_back() -> None:
    assert _pilot_state(_before("phase_completed")).state.metrics.total_tokens_used == 90_000
    assert _pilot_state(_before("phase_completed", 2)).state.metrics.total_tokens_used == 90_000
    more: Said = ("step_completed", {"phase": "6", "step": "rate", "facts": {"tokens": 70}})
    again = _pilot_state([*_before("phase_started", 2), more]).state
    assert (again.metrics.total_tokens_used, again.phases["6"].tokens_used) == (90_070, 70)


@pytest.mark.req("A11")
def test_only_a_phase_that_was_not_started_is_skipped() -> None:
    skip: Said = ("phase_skipped", {"phase": "7", "phase_id": "7", "reason": "already_completed"})
    assert _pilot_state([PILOT[0], skip]).state.phases["7"].status is PhaseStatus.SKIPPED
    assert _pilot_state(PILOT).state.phases["6.1"].status is PhaseStatus.FAILED


@pytest.mark.req("A14")
def test_a_second_cycle_does_not_write_the_first_score_again() -> None:
    cycle = dict(next(data for kind, data in PILOT if kind == "remediation_started"))
    state = _pilot_state([*_before("remediation_completed"), ("remediation_started", cycle | {"cycle": 2})]).state
    assert [one.score for one in state.phases["6"].score_history] == [8.0, 7.8]


@pytest.mark.req("A19")
def test_a_verdict_settles_the_open_deferral_of_its_phase_and_no_other() -> None:
    deferral = PILOT[33]
    verdict: Said = ("human_verdict_recorded", {"phase": "7", "verdict": "pass"})
    other: Said = (deferral[0], {**deferral[1], "phase": "6"})
    settled = _pilot_state([*_before("human_verdict_recorded"), deferral, other, verdict])
    history = settled.state.meta.deferral_history
    assert [(one.phase_id, one.human_verdict) for one in history] == [("7", "issues_found"), ("7", "pass"), ("6", None)]


@pytest.mark.req("A1")
def test_a_run_begins_with_nothing_done_and_nothing_used() -> None:
    state = _pilot_state(PILOT[:1]).state
    assert state.metrics.plain() == {
        "total_tokens_used": 0,
        "total_duration_minutes": 0.0,
        "phases_completed": 0,
        "phases_failed": 0,
        "debug_loops_total": 0,
        "replan_count": 0,
    }
    meta = state.meta
    assert (meta.total_phases, meta.total_phases_processed, meta.human_deferred_count) == (3, 0, 0)
    assert (meta.orchestrator_context_pct, meta.autonomous_resolution_rate, meta.deferral_confidence) == (0, 0.0, 6.0)
    assert {record.status for record in state.phases.values()} == {PhaseStatus.NOT_STARTED}
    assert {record.tokens_used for record in state.phases.values()} == {0}


@pytest.mark.req("A1")
def test_a_part_of_a_split_phase_has_a_letter_its_parents_type_and_a_record_of_its_own() -> None:
    begun: list[Said] = [PILOT[0], ("phase_started", {"phase": "6.1a"})]
    later: list[Said] = [*begun, ("step_started", {"phase": "6.1a", "step": "plan"})]
    assert _pilot_state(later).state.phases["6.1a"].phase_type.value == "data"
    assert _pilot_state(later).state.phases["6.1a"].status is PhaseStatus.IN_PROGRESS
    assert isinstance(_pilot([PILOT[0], ("phase_started", {"phase": "70"})]), Problem)


@pytest.mark.req("A1")
@pytest.mark.parametrize(
    ("later", "minutes"),
    [("2026-02-26T14:01:20Z", 0.33), ("2026-02-26T14:00:00Z", 0.0), ("2026-02-26T14:01:30Z", 0.5)],
)
def test_time_is_counted_to_the_hundredth_of_a_minute_and_never_backwards(later: str, minutes: float) -> None:
    first, second = stream(Workflow.AUTOPILOT, PILOT_RUN, [PILOT[0], ("checkpoint_written", {})])
    folded = fold_autopilot([first, second.model_copy(update={"timestamp": later})], SETUP)
    assert isinstance(folded, AutopilotState)
    assert folded.state.metrics.total_duration_minutes == minutes
    assert run_metrics(folded, now=later).total_duration_minutes == minutes


@pytest.mark.req("A5")
def test_an_old_event_of_autopilot_is_brought_up_to_date() -> None:
    said: list[Said] = [PILOT[0], ("step_started", {"phase": "6", "name": "plan"})]
    upcasters = {("step_started", 1): lambda data: {"step": data["name"]}}
    envelopes = stream(Workflow.AUTOPILOT, PILOT_RUN, said)
    folded = fold_autopilot(envelopes, SETUP, upcasters=upcasters)
    assert isinstance(folded, AutopilotState)
    assert folded.state.meta.current_step is StepName.PLAN


@pytest.mark.req("A9", "A19")
def test_a_deferred_phase_is_counted_as_deferred() -> None:
    metrics = run_metrics(_pilot_state(_before("unnecessary_deferral_warning")), now=time_of(50))
    assert (metrics.phases_human_deferred, metrics.phases_failed, metrics.phases_succeeded) == (1, 1, 1)
