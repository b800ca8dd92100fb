"""A feature run looked at event by event says what a fold of the same events says."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.report_ledgers import COMMIT, MOMENT, RUN, FeatureWalk, finished, going
from fairwitness.app.views.feature import FeatureView
from fairwitness.contracts.common.policy import RunPath
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.feature.facts import Step
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.errors import EventsBroken
from fairwitness.ledger.feature_summary import LIGHT, NOT_ON_LIGHT, STEPS
from fairwitness.ledger.summary import events_after
from fairwitness.ledger.summary_event import SummaryEvent
from fairwitness.rules.feature_paths import STEPS_OF
from fairwitness.rules.fold_feature import fold_feature
from rules.fold_streams import FEATURE, FEATURE_RUN, stream

LATER = MOMENT + timedelta(minutes=10)


def event_of(**differs: object) -> SummaryEvent:
    """An event as it stands in the table."""
    ordinary: dict[str, object] = {
        "event_id": "e",
        "seq": 1,
        "timestamp": "2026-02-26T14:30:00Z",
        "workflow": "feature",
        "run_id": RUN,
        "phase": None,
        "task": None,
        "attempt": None,
        "type": "step_started",
        "version": 1,
        "data": {"step": "step-0"},
    }
    return SummaryEvent(**(ordinary | differs))  # type: ignore[arg-type]  # each under its own name


def events_of(walk: FeatureWalk) -> list[SummaryEvent]:
    """Every event of a run."""
    return events_after(walk.ledger.database, walk.run_id, 0)


def detail(walk: FeatureWalk) -> FeatureView:
    """The look at a run, ten minutes after it began."""
    view = FeatureView(walk.run_id, clock=lambda: LATER)
    for event in events_of(walk):
        view.apply_event(event)
    return view


def folded(walk: FeatureWalk) -> FeatureState:
    """The same run as the rules tell it."""
    state = fold_feature(walk.ledger.events(walk.run_id))
    assert isinstance(state, FeatureState), state
    return state


def test_the_steps_are_those_of_the_rules_in_their_order() -> None:
    assert list(STEPS) == [step.value for step in Step]


def test_the_light_path_lacks_the_steps_that_the_rules_say() -> None:
    assert {step.value for step in Step if step not in STEPS_OF[RunPath.LIGHT]} == NOT_ON_LIGHT
    assert RunPath.LIGHT.value == LIGHT


def test_the_whole_plan_is_there_before_anything_happened() -> None:
    view = FeatureView(RUN)
    assert [step.state for step in view.feature.steps.values()] == ["waiting"] * len(Step)
    assert (view.word, view.started_tasks(), view.running(), view.is_over) == ("running", [], [], False)


@pytest.mark.parametrize("run", [finished, going])
def test_it_says_what_a_fold_of_all_events_says(tmp_path: Path, run: type[FeatureWalk]) -> None:
    walk = run(tmp_path)
    view, state = detail(walk), folded(walk)
    walk.close()
    for name, step in state.steps.items():
        seen = view.feature.steps[name]
        assert (seen.visits, seen.started, seen.finished) == (step.runs, step.started_at, step.finished_at)
        assert seen.outcome == (step.outcome.value if step.outcome else None)
    assert {name for name, step in view.feature.steps.items() if step.visits} == set(state.steps)
    assert {name: call.status for name, call in view.feature.calls.items()} == {
        name: call.status.value if call.status else None for name, call in state.dispatches.items()
    }
    assert view.feature.tokens == sum(call.tokens for call in state.dispatches.values())
    assert {task.name: task.attempt for task in view.started_tasks()} == {
        name: task.attempts[-1].attempt for name, task in state.tasks.items()
    }
    assert [kind for kind, _ in view.feature.degradations] == [each.kind.value for each in state.degradations]
    assert view.feature.commit == state.commit
    assert view.is_over == (state.ending is not None)
    assert view.feature.decisions == state.decisions


def test_a_run_that_ended_says_how(tmp_path: Path) -> None:
    walk = finished(tmp_path)
    view = detail(walk)
    walk.close()
    assert (view.word, view.feature.confidence, view.feature.commit) == ("committed", "Medium", COMMIT)
    assert view.feature.steps["step-3b"].revised == 1
    assert view.feature.steps["step-3b"].state == "done"
    assert [(task.name, task.word, task.attempt) for task in view.started_tasks()] == [("task-01", "merged", 2)]
    gate = view.feature.gates["EG-2", "task-01"]
    assert (gate.is_open, gate.counted, gate.threshold) == (True, 2, 2)
    assert view.feature.question is None


def test_what_runs_now_is_told_with_its_task(tmp_path: Path) -> None:
    walk = going(tmp_path)
    view = detail(walk)
    walk.close()
    assert len(view.running()) == 6
    assert [(task.word, task.is_under_way) for task in view.started_tasks()] == [("working", True)]
    assert view.feature.steps["step-5"].state == "running"
    assert view.feature.steps["step-5"].seconds(LATER) > 500


def test_a_task_goes_through_its_stages_and_back(tmp_path: Path) -> None:
    walk = FeatureWalk(tmp_path)
    walk.begin()
    words = []

    def word() -> str:
        return detail(walk).started_tasks()[0].word

    about: dict[str, Any] = {"task": "t", "phase": "1", "nodeId": "t", "attemptId": 1}
    walk.move("t", "PENDING", "RUNNING", 1)
    words.append(word())
    walk.tell("task.verified", **about, commit=COMMIT, tree=COMMIT)
    words.append(word())
    walk.tell("merge.started", phase="1", batch=1, nodes=["t"])
    words.append(word())
    walk.move("t", "RUNNING", "MERGED", 1)
    words.append(word())
    walk.ledger.record(
        RUN,
        lambda record: record.event(
            Workflow.FEATURE, "task_reverted", {"task": "t", "files": []}, timestamp=walk.now, task="t"
        ),
    )
    words.append(word())
    walk.close()
    assert words == ["working", "to be merged", "merging", "merged", "reverted"]


def test_calls_of_a_life_that_crashed_are_not_shown_as_running(tmp_path: Path) -> None:
    walk = going(tmp_path)
    walk.tell("run_resumed", from_step="step-5")
    view = detail(walk)
    walk.close()
    assert view.running() == []


def test_a_step_under_way_when_the_run_ended_is_stopped(tmp_path: Path) -> None:
    walk = going(tmp_path)
    walk.tell("run_finished", outcome="out_of_budget", confidence=None, reason="tokens")
    view = detail(walk)
    walk.close()
    assert view.state_of(view.feature.steps["step-5"]) == "stopped"
    assert view.word == "out of budget"


def test_a_question_stands_until_it_is_answered(tmp_path: Path) -> None:
    walk = FeatureWalk(tmp_path)
    walk.begin()
    walk.tell("approval_requested", gate_id="gate-post-planning", options=["approve", "abort"])
    view = detail(walk)
    walk.close()
    assert view.feature.question is not None
    assert (view.feature.question.gate, view.feature.question.options, view.word) == (
        "gate-post-planning",
        ("approve", "abort"),
        "waiting for you",
    )


@pytest.mark.parametrize(
    "differs",
    [
        {"data": {}},
        {"version": 2},
        {"type": "dispatch_finished", "data": {"dispatch_id": "nobody", "status": "DONE", "tokens": 1}},
        {"type": "approval_requested", "data": {"gate_id": "g", "options": 3}},
    ],
)
def test_an_event_that_is_not_as_it_should_be_is_refused(differs: dict[str, object]) -> None:
    with pytest.raises(EventsBroken):
        FeatureView(RUN).apply_event(event_of(**differs))


def test_the_stream_of_the_folds_is_taken_in_too() -> None:
    view = FeatureView(FEATURE_RUN)
    for envelope in stream(Workflow.FEATURE, FEATURE_RUN, FEATURE):
        view.apply_event(event_of(**dict(envelope)))
    assert (view.word, view.feature.iteration, view.feature.refused, view.feature.exhausted_budgets) == (
        "committed",
        1,
        1,
        ["tokens: 120 of 100"],
    )


@pytest.mark.req("F5")
def test_looking_loads_no_contract() -> None:
    program = "import sys, fairwitness.app.views.feature, fairwitness.app.views.feature_lines; print('pydantic' in sys.modules)"  # noqa: E501
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
