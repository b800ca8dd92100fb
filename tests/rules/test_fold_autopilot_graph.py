"""The fold of an autopilot run passes over what the graphs of its phases tell, and over nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.contracts.autopilot.events import AUTOPILOT_EVENT_TYPES
from fairwitness.contracts.autopilot.facts import AutopilotState
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.events import FORGE_EVENT_TYPES
from fairwitness.rules.fold_autopilot import fold_autopilot
from fairwitness.rules.graph_run import MOVING
from rules.fold_streams import PILOT, PILOT_RUN, SETUP, stream

TOLD_OF_TASKS = {"task.started", "task.stale", "task.retried", "task.exhausted", "branch.merged", "target.moved"}
"""What `graph_moves` tells beside the events that an executor goes by."""
EVERY = sorted({*MOVING, *TOLD_OF_TASKS})
WHOLE = stream(Workflow.AUTOPILOT, PILOT_RUN, PILOT)


def folded(envelopes: list[Envelope], onto: AutopilotState | None = None) -> AutopilotState:
    state = fold_autopilot(envelopes, SETUP, onto=onto)
    assert isinstance(state, AutopilotState), state
    return state


def of_graph(kind: str, after: Envelope) -> Envelope:
    """An event of the first graph, told right after another one."""
    changes = {"seq": after.seq + 1, "event_id": f"evt-{after.seq + 1:04}", "type": kind, "phase": "1", "data": {}}
    return after.model_copy(update=changes)


def test_what_a_graph_tells_is_never_taken_for_an_event_of_autopilot() -> None:
    assert set(FORGE_EVENT_TYPES).isdisjoint(AUTOPILOT_EVENT_TYPES)
    assert set(EVERY) <= set(FORGE_EVENT_TYPES)


@pytest.mark.req("A1", "A5")
@pytest.mark.parametrize("kind", EVERY)
def test_an_event_of_a_graph_changes_nothing_but_where_the_fold_is(kind: str) -> None:
    for length in (1, len(PILOT) // 2, len(PILOT)):
        before = folded(WHOLE[:length])
        event = of_graph(kind, WHOLE[length - 1])
        after = folded([event], onto=before)
        assert after == before.model_copy(update={"seq": event.seq, "last_event_id": event.event_id})


@pytest.mark.req("A1", "A5")
@given(
    st.dictionaries(st.integers(1, len(PILOT)), st.lists(st.sampled_from(EVERY), min_size=1, max_size=3), max_size=4)
)
def test_a_run_is_the_same_wherever_its_graphs_tell_something(told: dict[int, list[str]]) -> None:
    envelopes: list[Envelope] = []
    for place, envelope in enumerate(WHOLE, 1):
        number = len(envelopes) + 1
        envelopes.append(envelope.model_copy(update={"seq": number, "event_id": f"evt-{number:04}"}))
        for kind in told.get(place, ()):
            envelopes.append(of_graph(kind, envelopes[-1]))
    assert folded(envelopes).state == folded(WHOLE).state


@pytest.mark.req("A5")
@pytest.mark.parametrize("kind", EVERY)
def test_an_event_of_a_graph_has_its_place_all_the_same(kind: str) -> None:
    before, event = folded(WHOLE[:3]), of_graph(kind, WHOLE[2])
    for wrong in ({"seq": 5}, {"seq": 3}, {"run_id": "run-2026-02-26-150000"}, {"workflow": Workflow.FORGE}):
        assert isinstance(fold_autopilot([event.model_copy(update=wrong)], SETUP, onto=before), Problem), wrong
    first = event.model_copy(update={"seq": 1})
    assert isinstance(fold_autopilot([first], SETUP), Problem), "no run begins with it"


@pytest.mark.req("A5")
@pytest.mark.parametrize("kind", ["node.moved", "merge", "run.finished", "task_verified", "task.verified "])
def test_what_nobody_tells_is_not_passed_over(kind: str) -> None:
    assert isinstance(fold_autopilot([of_graph(kind, WHOLE[2])], SETUP, onto=folded(WHOLE[:3])), Problem)
