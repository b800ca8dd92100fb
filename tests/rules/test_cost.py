"""Estimates and their warning, and what finished runs came to and how they compare."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.agents.roles import ROLES
from fairwitness.contracts.autopilot.metrics import CostConstants, CostEstimation, MetricsFile, RunMetrics
from fairwitness.contracts.autopilot.vocabulary import Complexity, FailureCategory, PhaseType
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.rules.cost import (
    LIGHT_CALLS,
    USUAL_CALLS,
    CostWarning,
    TokenRange,
    cost_warning,
    estimated_run,
    estimated_tokens,
    trend,
)
from support.fixtures import value_of

CONSTANTS = CostEstimation()
TASKS = st.lists(st.sampled_from(Complexity), max_size=12)


@pytest.mark.req("A9")
def test_the_seeds_constants_are_ours() -> None:
    assert CostConstants.model_validate(value_of("003/cost-constants.json")).cost_estimation == CONSTANTS


@pytest.mark.req("A9")
def test_the_whole_table_of_estimates() -> None:
    table = [f"no plan, {kind.value}: {estimated_tokens(CONSTANTS, kind)}" for kind in PhaseType]
    table += [f"one {task.value} task: {estimated_tokens(CONSTANTS, PhaseType.UI, [task])}" for task in Complexity]
    table += [f"an empty plan: {estimated_tokens(CONSTANTS, PhaseType.UI, [])}"]
    assert table == snapshot(
        [
            "no plan, ui: 300000",
            "no plan, protocol: 180000",
            "no plan, data: 120000",
            "no plan, mixed: 240000",
            "one simple task: 78000",
            "one medium task: 96000",
            "one complex task: 132000",
            "an empty plan: 60000",
        ]
    )


@pytest.mark.req("A9")
@settings(max_examples=200)
@given(TASKS, st.sampled_from(Complexity), st.sampled_from(PhaseType))
def test_one_more_task_never_makes_a_phase_cheaper_and_order_does_not_matter(
    tasks: list[Complexity], more: Complexity, kind: PhaseType
) -> None:
    before = estimated_tokens(CONSTANTS, kind, tasks)
    assert estimated_tokens(CONSTANTS, kind, [*tasks, more]) > before
    assert estimated_tokens(CONSTANTS, kind, tasks[::-1]) == before


@pytest.mark.req("A9")
def test_an_estimate_is_never_rounded_down() -> None:
    odd = CONSTANTS.model_copy(update={"buffer_multiplier": 1.1, "pipeline_overhead": 3})
    assert estimated_tokens(odd, PhaseType.UI, []) == 4
    assert Fraction("1.1") * 3 > 3


@pytest.mark.req("A9")
@pytest.mark.parametrize(
    ("estimated", "warning"),
    [
        (0, None),
        (400_000, None),
        (400_001, CostWarning(estimated=400_001, cap=500_000, percent=80.0)),
        (450_000, CostWarning(estimated=450_000, cap=500_000, percent=90.0)),
        (501_249, CostWarning(estimated=501_249, cap=500_000, percent=100.2)),
    ],
)
def test_a_warning_comes_above_eighty_percent_of_the_cap(estimated: int, warning: CostWarning | None) -> None:
    assert cost_warning(CONSTANTS, estimated, 500_000) == warning


def _run(number: int, **changes: object) -> RunMetrics:
    value = value_of("003/metrics.json")[0]
    return RunMetrics.model_validate(value | {"run_id": f"run-2026-02-{number:02}-143052"} | changes)


@pytest.mark.req("A9")
def test_a_trend_needs_two_runs() -> None:
    assert trend(MetricsFile(())) is None
    assert trend(MetricsFile((_run(1),))) is None


@pytest.mark.req("A9")
def test_a_trend_compares_the_last_two_runs_and_spans_all() -> None:
    runs = (
        _run(1, avg_alignment_score=None, phases_succeeded=2, success_rate=0.4, total_estimated_tokens=100_000),
        _run(2, avg_alignment_score=7.2, phases_succeeded=3, success_rate=0.6, total_estimated_tokens=400_000),
        _run(
            3,
            avg_alignment_score=8.1,
            total_estimated_tokens=300_000,
            failure_taxonomy_histogram={"tool_failure": 2, "executor_incomplete": 1},
        ),
    )
    summary = trend(MetricsFile(runs))
    assert summary is not None
    assert summary.plain() == snapshot(
        {
            "success_rate_delta": 0.2,
            "avg_alignment_delta": 0.9,
            "estimated_cost_delta": -100000,
            "recurring_failures": ["executor_incomplete"],
            "historical": {
                "total_runs": 3,
                "success_rate": {"min": 0.4, "max": 0.8, "avg": 0.6},
                "avg_alignment": {"min": 7.2, "max": 8.1, "avg": 7.65},
                "total_cost": {"min": 100000.0, "max": 400000.0, "avg": 266666.6667},
            },
        }
    )
    assert summary.recurring_failures == (FailureCategory.EXECUTOR_INCOMPLETE,)


@pytest.mark.req("A9")
def test_runs_without_a_score_have_no_trend_in_it() -> None:
    without = trend(MetricsFile((_run(1, avg_alignment_score=None), _run(2, avg_alignment_score=None))))
    one = trend(MetricsFile((_run(1, avg_alignment_score=7.0), _run(2, avg_alignment_score=None))))
    assert without is not None
    assert one is not None
    assert (without.avg_alignment_delta, without.historical.avg_alignment) == (None, None)
    assert one.avg_alignment_delta is None
    assert one.historical.avg_alignment is not None


@pytest.mark.req("A9")
@settings(max_examples=200)
@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=8))
def test_a_mean_lies_between_the_extremes_whatever_the_rounding(tokens: list[int]) -> None:
    runs = tuple(_run(number + 1, total_estimated_tokens=count) for number, count in enumerate(tokens))
    summary = trend(MetricsFile(runs))
    assert summary is not None
    cost = summary.historical.total_cost
    assert cost.min == min(tokens) <= cost.avg <= cost.max == max(tokens)
    assert summary.estimated_cost_delta == tokens[-1] - tokens[-2]


@pytest.mark.req("A9")
def test_what_is_compared_is_rounded_to_what_it_can_say() -> None:
    before = _run(1, phases_attempted=3, phases_succeeded=1, success_rate=0.333333, avg_alignment_score=7.1234)
    last = _run(2, phases_attempted=3, phases_succeeded=2, success_rate=0.666688, avg_alignment_score=8.0)
    summary = trend(MetricsFile((before, last)))
    assert summary is not None
    assert (summary.success_rate_delta, summary.avg_alignment_delta) == (0.3334, 0.88)


@pytest.mark.req("P12")
def test_every_workflow_has_usual_calls_of_its_own_roles() -> None:
    assert set(USUAL_CALLS) == {spec.workflow for spec in ROLES.values()}
    for workflow, calls in USUAL_CALLS.items():
        assert all(ROLES[one.role].workflow is workflow and 0 <= one.least <= one.most for one in calls)
    usual = {one.role: one for one in USUAL_CALLS[Workflow.FEATURE]}
    assert all(1 <= one.least <= one.most <= usual[one.role].most for one in LIGHT_CALLS)
    assert sum(one.least for one in LIGHT_CALLS) == 5


def _estimated(workflow: Workflow, size: int = 0, external: bool = False, earlier: tuple[int, ...] = ()) -> TokenRange:
    calls = USUAL_CALLS[workflow]
    roles = [one.role for one in calls] if external else []
    return estimated_run(calls, ROLES, external=roles, repository_bytes=size, earlier=earlier)


@pytest.mark.req("P12")
@given(st.sampled_from(Workflow), st.integers(0, 10**9), st.booleans())
def test_an_estimate_is_a_range_that_grows_with_the_repository_and_with_external_agents(
    workflow: Workflow, size: int, external: bool
) -> None:
    found = _estimated(workflow, size, external)
    assert 0 < found.tokens[0] < found.tokens[1]
    assert found.tokens[1] >= _estimated(workflow, 0, external).tokens[1]
    assert found.tokens[1] >= _estimated(workflow, size).tokens[1]
    assert found.runs == 0


@given(st.lists(st.integers(1, 10**8), min_size=1, max_size=5))
def test_earlier_runs_lie_within_the_estimate_that_they_give(earlier: list[int]) -> None:
    found = _estimated(Workflow.FEATURE, earlier=tuple(earlier))
    assert found.tokens[0] <= min(earlier)
    assert found.tokens[1] >= max(earlier) or max(earlier) == 1
    assert found.runs == len(earlier)


def test_what_was_measured_with_a_real_model_lies_within_the_estimate() -> None:
    measured_calls, measured_tokens, size = 20, 222_000, 200_000  # issue 18: a feature on PyPI's inflection
    found = _estimated(Workflow.FEATURE, size)
    assert found.calls[0] <= measured_calls <= found.calls[1]
    assert found.tokens[0] <= measured_tokens <= found.tokens[1]
