"""What all folds share: folding on is folding at once, and a fault in a stream is told where it is."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairwitness.contracts.autopilot.facts import EventFacts
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.rules.fold import UPCASTERS, current_version
from fairwitness.rules.fold_autopilot import fold_autopilot
from fairwitness.rules.fold_feature import fold_feature
from fairwitness.rules.fold_forge import fold_forge
from fairwitness.rules.fold_phase import autopilot_event
from rules.fold_streams import DAG, FEATURE, FEATURE_RUN, FORGE, FORGE_RUN, PILOT, PILOT_RUN, SETUP, stream

GENERATED = settings(max_examples=100)

Fold = Callable[[list[Envelope], Any], Any]
STREAMS: dict[str, tuple[list[Envelope], Fold]] = {
    "feature": (
        stream(Workflow.FEATURE, FEATURE_RUN, FEATURE),
        lambda envelopes, onto: fold_feature(envelopes, onto=onto),
    ),
    "autopilot": (
        stream(Workflow.AUTOPILOT, PILOT_RUN, PILOT),
        lambda envelopes, onto: fold_autopilot(envelopes, SETUP, onto=onto),
    ),
    "forge": (
        stream(Workflow.FORGE, FORGE_RUN, FORGE),
        lambda envelopes, onto: fold_forge(envelopes, DAG, onto=onto),
    ),
}
WORKFLOWS = st.sampled_from(sorted(STREAMS))


@pytest.mark.req("P14", "P16", "A1", "F6")
@GENERATED
@given(WORKFLOWS, st.data())
def test_folding_on_from_any_point_is_folding_everything_at_once(workflow: str, data: st.DataObject) -> None:
    envelopes, fold = STREAMS[workflow]
    end = data.draw(st.integers(1, len(envelopes)))
    middle = data.draw(st.integers(1, end))
    whole = fold(envelopes[:end], None)
    assert not isinstance(whole, Problem)
    assert fold(envelopes[middle:end], fold(envelopes[:middle], None)) == whole == fold(envelopes[:end], None)
    assert fold([], whole) == whole


@pytest.mark.req("A5", "F6")
@GENERATED
@given(WORKFLOWS, st.data())
def test_a_gap_a_repetition_or_a_swap_is_told_at_its_place(workflow: str, data: st.DataObject) -> None:
    envelopes, fold = STREAMS[workflow]
    place = data.draw(st.integers(0, len(envelopes) - 2))
    for broken in (
        [*envelopes[:place], *envelopes[place + 1 :]],
        [*envelopes[: place + 1], *envelopes[place:]],
        [*envelopes[:place], envelopes[place + 1], envelopes[place], *envelopes[place + 2 :]],
    ):
        problem = fold(broken, None)
        assert isinstance(problem, Problem)
        assert problem.where[-1] == "seq"


@pytest.mark.req("A5", "F6")
@pytest.mark.parametrize("workflow", sorted(STREAMS))
@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"run_id": "run-2026-02-26-999999"}, "run_id"),
        ({"workflow": Workflow.FEATURE}, "workflow"),
        ({"workflow": Workflow.FORGE}, "workflow"),
        ({"version": 2}, "version"),
        ({"type": "made.up"}, "data"),
    ],
)
def test_an_event_of_another_run_workflow_version_or_kind_is_told(
    workflow: str, change: dict[str, Any], where: str
) -> None:
    envelopes, fold = STREAMS[workflow]
    if change.get("workflow") == workflow:
        return
    problem = fold([envelopes[0], envelopes[1].model_copy(update=change)], None)
    assert isinstance(problem, Problem)
    assert where in problem.where


@pytest.mark.req("A5", "F6")
@GENERATED
@given(WORKFLOWS, st.data())
def test_no_data_makes_a_fold_raise(workflow: str, data: st.DataObject) -> None:
    envelopes, fold = STREAMS[workflow]
    place = data.draw(st.integers(0, len(envelopes) - 1))
    keys = st.sampled_from(["step", "task", "facts", "type", "phase_id", "nodeId", *envelopes[place].data])
    values: st.SearchStrategy[Any] = (
        st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.none()) | st.just({})
    )
    wrong = envelopes[place].data | data.draw(st.dictionaries(keys, values, max_size=3))
    fold([*envelopes[:place], envelopes[place].model_copy(update={"data": wrong})], None)


@pytest.mark.req("A5", "P16")
def test_an_old_event_is_brought_up_to_date_step_by_step() -> None:
    assert all(UPCASTERS[workflow] == {} for workflow in Workflow)
    upcasters = {
        ("step_started", 1): lambda data: {"name": data["nr"]},
        ("step_started", 2): lambda data: {"step": f"step-{data['name']}"},
    }
    assert (current_version("step_started", upcasters), current_version("run_started", upcasters)) == (3, 1)
    start = stream(Workflow.FEATURE, FEATURE_RUN, FEATURE[:1])
    for version, data in ((1, {"nr": "4a"}), (2, {"name": "4a"}), (3, {"step": "step-4a"})):
        old = stream(Workflow.FEATURE, FEATURE_RUN, [("step_started", data)], first=2)[0]
        state = fold_feature([*start, old.model_copy(update={"version": version})], upcasters=upcasters)
        assert isinstance(state, FeatureState)
        assert state.current_step == "step-4a"
    newer = stream(Workflow.FEATURE, FEATURE_RUN, FEATURE[1:2], first=2)[0].model_copy(update={"version": 4})
    problem = fold_feature([*start, newer], upcasters=upcasters)
    assert isinstance(problem, Problem)
    assert problem.expected == "at most 3, which this program knows"


@pytest.mark.req("A5")
def test_what_was_found_is_shown_short() -> None:
    problem = fold_feature(stream(Workflow.FEATURE, FEATURE_RUN, [FEATURE[0], ("step_started", {"step": "x" * 500})]))
    assert isinstance(problem, Problem)
    assert len(problem.found) == 81


@pytest.mark.req("A5")
def test_facts_are_optional_and_closed() -> None:
    opened = autopilot_event(stream(Workflow.AUTOPILOT, PILOT_RUN, PILOT[:1])[0])
    assert not isinstance(opened, Problem)
    assert opened[1] == EventFacts()
