"""The roadmap: total over statuses, an order that is one, failures that block, and the whole table in sentences."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.autopilot.phase_return import PhaseReturn
from fairwitness.contracts.autopilot.vocabulary import PhaseStatus, PhaseType
from fairwitness.contracts.common.problems import spell_path
from fairwitness.rules.phases import (
    PhasePlace,
    RoadmapEnd,
    gate_of,
    has_dependents,
    next_phases,
    phase_order,
    roadmap_end,
    roadmap_plan,
    roadmap_problems,
)
from fairwitness.rules.scores import PhaseGateMove
from support.fixtures import value_of


def _roadmap(**dependencies: str) -> tuple[RoadmapPhase, ...]:
    return tuple(
        RoadmapPhase(
            id=name.removeprefix("p"),
            name=f"phase {name}",
            type=PhaseType.MIXED,
            depends_on=tuple(others.split()),
        )
        for name, others in dependencies.items()
    )


DIAMOND = _roadmap(p1="", p2="1", p3="1", p4="2 3", p5="")
STATUSES = st.dictionaries(st.sampled_from(["1", "2", "3", "4", "5"]), st.sampled_from(PhaseStatus))
GENERATED = settings(max_examples=300)


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    ("roadmap", "said"),
    [
        (DIAMOND, []),
        (_roadmap(p1="7"), ["phases[0].depends_on[0]"]),
        (_roadmap(p1="2", p2="1"), ["phases"]),
        (_roadmap(p1="1"), ["phases"]),
        ((*_roadmap(p1=""), *_roadmap(p1="", p2="1 9")), ["phases[1].id", "phases[2].depends_on[1]"]),
    ],
)
def test_a_roadmap_without_an_order_is_refused_with_every_reason(
    roadmap: tuple[RoadmapPhase, ...], said: list[str]
) -> None:
    assert [spell_path(problem.where) for problem in roadmap_problems(roadmap)] == said


@pytest.mark.req("A2")
def test_a_ring_is_shown_as_it_closes() -> None:
    assert [problem.found for problem in roadmap_problems(_roadmap(p1="2", p2="1"))] == ["1 → 2 → 1"]
    roadmap = (*_roadmap(p1="9"), *_roadmap(p1="", p2="3", p3="2"))
    assert [(problem.expected, problem.found) for problem in roadmap_problems(roadmap)] == [
        ("an id of its own", "1"),
        ("a phase of the roadmap", "9"),
        ("phases that do not wait for each other in a ring", "2 → 3 → 2"),
    ]


@pytest.mark.req("A11")
def test_phases_run_after_their_dependencies_and_otherwise_as_the_roadmap_lists_them() -> None:
    assert phase_order(DIAMOND) == ("1", "2", "3", "4", "5")
    assert phase_order(_roadmap(p4="2 2", p3="", p2="1", p1="")) == ("3", "1", "2", "4")
    assert phase_order(_roadmap(p3="", p2="3", p1="3")) == ("3", "2", "1")


@pytest.mark.req("A11")
@GENERATED
@given(st.lists(st.sets(st.integers(0, 7)), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_any_roadmap_holds_each_phase_once_after_all_it_depends_on(edges, shuffle) -> None:  # type: ignore[no-untyped-def]  # hypothesis' random has no public type
    phases = [
        RoadmapPhase(
            id=str(index),
            name="x",
            type=PhaseType.UI,
            depends_on=tuple(str(one) for one in sorted(others) if one < index),
        )
        for index, others in enumerate(edges)
    ]
    shuffle.shuffle(phases)
    order = phase_order(phases)
    assert sorted(order) == sorted(phase.id for phase in phases)
    assert all(order.index(other) < order.index(phase.id) for phase in phases for other in phase.depends_on)


@pytest.mark.req("A11")
@GENERATED
@given(STATUSES)
def test_a_phase_runs_only_when_all_it_rests_on_is_completed(statuses: dict[str, PhaseStatus]) -> None:
    depends_on = {phase.id: phase.depends_on for phase in DIAMOND}
    for phase in next_phases(roadmap_plan(DIAMOND, statuses)):
        assert statuses.get(phase, PhaseStatus.NOT_STARTED) in (PhaseStatus.NOT_STARTED, PhaseStatus.SKIPPED)
        assert all(statuses.get(other) is PhaseStatus.COMPLETED for other in depends_on[phase])


@pytest.mark.req("A11")
@GENERATED
@given(STATUSES)
def test_a_failure_blocks_all_that_rests_on_it_and_nothing_else(statuses: dict[str, PhaseStatus]) -> None:
    plans = {plan.id: plan for plan in roadmap_plan(DIAMOND, statuses)}
    assert len(plans) == len(DIAMOND)
    for phase in DIAMOND:
        plan = plans[phase.id]
        if plan.place is PhasePlace.BLOCKED:
            assert plan.reason is not None
            assert statuses[plan.reason.removeprefix("blocked_by_phase_")] is PhaseStatus.FAILED
        open_ = statuses.get(phase.id, PhaseStatus.NOT_STARTED) in (PhaseStatus.NOT_STARTED, PhaseStatus.SKIPPED)
        behind = any(plans[other].place in (PhasePlace.FAILED, PhasePlace.BLOCKED) for other in phase.depends_on)
        assert (plan.place is PhasePlace.BLOCKED) == (open_ and behind)


@pytest.mark.req("A11")
def test_the_nearest_listed_failure_is_named_through_any_distance() -> None:
    chain = _roadmap(p1="", p2="1", p3="2", p4="")
    failed = roadmap_plan(chain, {"1": PhaseStatus.FAILED, "4": PhaseStatus.COMPLETED})
    assert [(plan.id, plan.place.value, plan.reason) for plan in failed] == [
        ("1", "failed", None),
        ("2", "blocked", "blocked_by_phase_1"),
        ("3", "blocked", "blocked_by_phase_1"),
        ("4", "done", "already_completed"),
    ]


@pytest.mark.req("A11", "A19")
def test_the_whole_table_of_a_phase_behind_another() -> None:
    pair = _roadmap(p1="", p2="1")
    table = []
    for first, second in product(PhaseStatus, PhaseStatus):
        plans = roadmap_plan(pair, {"1": first, "2": second})
        plan, end = plans[1], roadmap_end(plans)
        table.append(f"{second.value} behind {first.value}: {plan.place.value} ({plan.reason}), run {end.value}")
    assert table == snapshot(
        [
            "not_started behind not_started: wait (None), run going",
            "in_progress behind not_started: running (None), run going",
            "completed behind not_started: done (already_completed), run going",
            "failed behind not_started: failed (None), run going",
            "needs_human_verification behind not_started: deferred (None), run going",
            "skipped behind not_started: wait (None), run going",
            "not_started behind in_progress: wait (None), run going",
            "in_progress behind in_progress: running (None), run going",
            "completed behind in_progress: done (already_completed), run going",
            "failed behind in_progress: failed (None), run going",
            "needs_human_verification behind in_progress: deferred (None), run going",
            "skipped behind in_progress: wait (None), run going",
            "not_started behind completed: run (None), run going",
            "in_progress behind completed: running (None), run going",
            "completed behind completed: done (already_completed), run completed",
            "failed behind completed: failed (None), run failed",
            "needs_human_verification behind completed: deferred (None), run waits_for_a_person",
            "skipped behind completed: run (None), run going",
            "not_started behind failed: blocked (blocked_by_phase_1), run failed",
            "in_progress behind failed: running (None), run going",
            "completed behind failed: done (already_completed), run failed",
            "failed behind failed: failed (None), run failed",
            "needs_human_verification behind failed: deferred (None), run waits_for_a_person",
            "skipped behind failed: blocked (blocked_by_phase_1), run failed",
            "not_started behind needs_human_verification: wait (None), run waits_for_a_person",
            "in_progress behind needs_human_verification: running (None), run going",
            "completed behind needs_human_verification: done (already_completed), run waits_for_a_person",
            "failed behind needs_human_verification: failed (None), run waits_for_a_person",
            "needs_human_verification behind needs_human_verification: deferred (None), run waits_for_a_person",
            "skipped behind needs_human_verification: wait (None), run waits_for_a_person",
            "not_started behind skipped: wait (None), run going",
            "in_progress behind skipped: running (None), run going",
            "completed behind skipped: done (already_completed), run going",
            "failed behind skipped: failed (None), run going",
            "needs_human_verification behind skipped: deferred (None), run going",
            "skipped behind skipped: wait (None), run going",
        ]
    )


@pytest.mark.req("A19")
def test_what_rests_on_an_open_verdict_waits_and_the_run_with_it() -> None:
    statuses = {"1": PhaseStatus.NEEDS_HUMAN_VERIFICATION, "5": PhaseStatus.COMPLETED}
    assert next_phases(roadmap_plan(DIAMOND, statuses)) == ()
    assert roadmap_end(roadmap_plan(DIAMOND, statuses)) is RoadmapEnd.WAITS_FOR_A_PERSON


@pytest.mark.req("A11")
def test_an_empty_roadmap_is_not_completed() -> None:
    assert roadmap_end(()) is RoadmapEnd.FAILED


@pytest.mark.req("A13", "A11")
@pytest.mark.parametrize(
    ("phase", "status", "score", "complete", "move"),
    [
        ("1", "completed", 9.0, False, PhaseGateMove.PASS),
        ("1", "completed", 8.9, False, PhaseGateMove.REMEDIATE),
        ("1", "completed", None, False, PhaseGateMove.FAIL_AND_HALT),
        ("1", "failed", 9.9, False, PhaseGateMove.FAIL_AND_HALT),
        ("1", "failed", 9.9, True, PhaseGateMove.FAIL_AND_GO_ON),
        ("4", "failed", 9.9, False, PhaseGateMove.FAIL_AND_GO_ON),
    ],
)
def test_the_gate_of_a_return_knows_the_roadmap(
    phase: str, status: str, score: float | None, complete: bool, move: PhaseGateMove
) -> None:
    value = value_of("003/filled-phase-return.json") | {"phase": phase, "status": status, "alignment_score": score}
    value |= {"recommendation": "proceed"}
    answer = gate_of(
        DIAMOND,
        PhaseReturn.model_validate(value),
        threshold_tenths=90,
        cycles=0,
        gained=True,
        quality=False,
        complete=complete,
    )
    assert answer.move is move


@pytest.mark.req("A11")
def test_a_phase_has_dependents_when_another_names_it() -> None:
    assert [phase.id for phase in DIAMOND if has_dependents(DIAMOND, phase.id)] == ["1", "2", "3"]


@pytest.mark.req("A13")
def test_cycles_gain_and_quality_reach_the_gate() -> None:
    value = value_of("003/filled-phase-return.json") | {
        "phase": "5",
        "alignment_score": 9.1,
        "recommendation": "proceed",
    }
    returned = PhaseReturn.model_validate(value)
    moves = [
        gate_of(
            DIAMOND, returned, threshold_tenths=95, cycles=cycles, gained=gained, quality=quality, complete=False
        ).move
        for cycles, gained, quality in ((1, False, True), (1, True, True), (2, True, False))
    ]
    assert moves == [PhaseGateMove.PASS_EXHAUSTED, PhaseGateMove.REMEDIATE, PhaseGateMove.PASS_INCOMPLETE]


@pytest.mark.req("A11")
def test_what_an_earlier_run_finished_is_skipped_but_does_not_outrank_this_run() -> None:
    statuses = {"1": PhaseStatus.SKIPPED, "3": PhaseStatus.FAILED}
    plans = roadmap_plan(DIAMOND, statuses, done_before=frozenset({"1", "3", "5"}))
    assert [(plan.id, plan.place.value, plan.reason) for plan in plans] == [
        ("1", "done", "already_completed"),
        ("2", "run", None),
        ("3", "failed", None),
        ("4", "blocked", "blocked_by_phase_3"),
        ("5", "done", "already_completed"),
    ]
