"""The facts of a feature run after each kind of thing that can happen: looked up, and the same for whoever looks."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.vocabulary import Risk, Severity, Size
from fairwitness.contracts.feature.events import (
    BudgetExhausted,
    Degradation,
    Degraded,
    DispatchStatus,
    ReplanStarted,
    StepOutcome,
    TaskReverted,
)
from fairwitness.contracts.feature.facts import CallFacts, CanStart, FeatureFacts, GateChoice, HumanGate, Step
from fairwitness.contracts.feature.review import ReviewScope
from fairwitness.rules.feature_events import Raised
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.facts import WHOLE, facts_of, raised_here, review_subject
from fairwitness.runs.feature.tasks import (
    FIX,
    FIX_NODE,
    TASKS,
    begin_graph,
    fix_node,
    nodes_of,
    note_attempt,
    plan_of,
)
from fairwitness.runs.shared.call_facts import call_facts
from runs.feature.contexts import context as made
from runs.feature.run_events import ask, attempt, call, enter, leave, played, reopened, resume, tree_with
from support import demo_feature as demo

NAMES = ("task-01", "task-02", "task-03", "task-04")
D = DispatchStatus


@pytest.fixture
def context(tmp_path: Path) -> Iterator[FeatureContext]:
    made_ = made(tmp_path)
    yield made_
    made_.ledger.close()


def _calls(context: FeatureContext) -> dict[str, tuple[int, str | None, str | None]]:
    return {
        each.instance: (each.attempts, each.status and each.status.value, each.cause and each.cause.value)
        for each in facts_of(context).calls
    }


def raised(context: FeatureContext) -> Raised | None:
    """What the run is worried about now."""
    return raised_here(context.ledger, context.run_id, context.state())


def _spec(context: FeatureContext, number: int, **differs: Any) -> None:
    call(context, f"step-2-1-spec-{number}", Step.SPEC, Role.SPEC, "spec", **differs)


@pytest.mark.req("P14")
def test_nothing_is_known_of_a_run_that_has_just_begun(context: FeatureContext) -> None:
    assert facts_of(context) == FeatureFacts(
        mode=context.order.mode,
        step=None,
        calls=(),
        concerns=None,
        approval=None,
        iteration=1,
        tasks=(),
        whole=None,
        design_review=None,
        code_review=None,
        fix=None,
        degradations=(),
        can_start=CanStart.YES,
        held_by=None,
    )


@pytest.mark.req("P14", "P16")
def test_two_processes_that_look_see_the_same(context: FeatureContext, tmp_path: Path) -> None:
    enter(context, Step.PLAN)
    played(context, demo.PLANNED)
    begin_graph(context, TASKS, _nodes(context), 1)
    enter(context, Step.IMPLEMENT)
    attempt(context, "task-01", 1, merged=True)
    other = reopened(tmp_path)
    assert facts_of(other) == facts_of(context) == facts_of(context)
    other.ledger.close()


@pytest.mark.req("P12")
def test_tries_are_counted_anew_in_each_life_and_what_was_done_stays_done(context: FeatureContext) -> None:
    enter(context, Step.RESEARCH)
    call(context, "step-1-1-researcher-impact-1", Step.RESEARCH, Role.RESEARCHER, "researcher-impact")
    for number in (1, 2):
        call(
            context,
            f"step-1-1-researcher-patterns-{number}",
            Step.RESEARCH,
            Role.RESEARCHER,
            "researcher-patterns",
            status=D.ERROR,
            cause=ErrorCause.NETWORK,
        )
    assert _calls(context) == {"impact": (1, "DONE", None), "patterns": (2, "ERROR", "network")}
    resume(context, Step.RESEARCH)
    assert _calls(context) == {"impact": (1, "DONE", None)}
    id_ = "step-1-1-researcher-patterns-3"
    call(context, id_, Step.RESEARCH, Role.RESEARCHER, "researcher-patterns", status=D.TIMEOUT)
    assert _calls(context) == {"impact": (1, "DONE", None), "patterns": (1, "TIMEOUT", "timeout")}


def test_a_call_that_is_under_way_has_no_status(context: FeatureContext) -> None:
    enter(context, Step.SPEC)
    _spec(context, 1, status=None)
    assert _calls(context) == {"spec": (1, None, None)}
    _spec(context, 1, status=None)  # as after a kill
    assert _calls(context) == {"spec": (1, None, None)}


def test_calls_of_an_earlier_visit_are_over(context: FeatureContext) -> None:
    enter(context, Step.SPEC)
    _spec(context, 1)
    leave(context, StepOutcome.REVISED)
    enter(context, Step.SPEC)
    assert _calls(context) == {}
    enter(context, Step.DESIGN)
    assert _calls(context) == {}


CAUSES = [
    (None, None, None),
    (None, ErrorCause.NETWORK, None),
    (D.DONE, ErrorCause.NETWORK, None),
    (D.NEEDS_REVISION, None, None),
    (D.TIMEOUT, None, ErrorCause.TIMEOUT),
    (D.TIMEOUT, ErrorCause.NETWORK, ErrorCause.TIMEOUT),
    (D.ERROR, None, ErrorCause.AGENT_ERROR),
    (D.ERROR, ErrorCause.TIMEOUT, ErrorCause.AGENT_ERROR),
    (D.ERROR, ErrorCause.OUT_OF_SCOPE, ErrorCause.OUT_OF_SCOPE),
]


@pytest.mark.req("P12")
@pytest.mark.parametrize(("status", "cause", "expected"), CAUSES)
def test_a_call_that_failed_has_a_cause_and_no_other(
    status: DispatchStatus | None, cause: ErrorCause | None, expected: ErrorCause | None
) -> None:
    assert call_facts("spec", 1, status, cause) == CallFacts(instance="spec", attempts=1, status=status, cause=expected)


@pytest.mark.req("P8", "P12")
def test_a_plan_that_was_refused_counts_as_a_broken_contract(context: FeatureContext) -> None:
    enter(context, Step.PLAN)
    call(context, "step-4-1-planner-1", Step.PLAN, Role.PLANNER, "planner", answer=demo.PLANNED.answer)
    assert _calls(context) == {"planner": (1, "DONE", None)}
    played(context, replace(demo.PLANNED, turns=()), "step-4-1-planner-1")  # it wrote no task
    assert _calls(context) == {"planner": (1, "ERROR", "schema_violation")}
    call(context, "step-4-1-planner-2", Step.PLAN, Role.PLANNER, "planner", answer=demo.PLANNED.answer)
    played(context, replace(demo.PLANNED, turns=()), "step-4-1-planner-2")
    assert _calls(context) == {"planner": (2, "ERROR", "schema_violation")}
    resume(context, Step.PLAN)
    assert _calls(context) == {}, "what was refused is not done"
    call(context, "step-4-1-planner-3", Step.PLAN, Role.PLANNER, "planner", answer=demo.PLANNED.answer)
    played(context, demo.PLANNED, "step-4-1-planner-3")
    assert _calls(context) == {"planner": (1, "DONE", None)}


def _concern(severity: str) -> dict[str, str]:
    return {"severity": severity, "title": "x", "description": "y", "recommendation": "z"}


def _weighed(context: FeatureContext, id_: str, *severities: str) -> None:
    answer = {**demo.INTAKE.answer, "concerns": [_concern(each) for each in severities]}
    call(context, id_, Step.SETUP, Role.ORCHESTRATOR, "intake", answer=answer)


@pytest.mark.req("P3", "P6")
def test_the_worst_concern_of_this_visit_counts(context: FeatureContext) -> None:
    assert raised(context) is None
    enter(context, Step.SETUP)
    assert raised(context) is None
    _weighed(context, "step-0-1-intake-1", "Minor", "Major", "Minor")
    assert raised(context) == Raised(3, Severity.MAJOR)
    assert facts_of(context).concerns is Severity.MAJOR
    enter(context, Step.SETUP)
    assert raised(context) is None, "what was said before the request was changed is over"
    _weighed(context, "step-0-2-intake-1")
    assert raised(context) == Raised(0, None)
    enter(context, Step.RESEARCH)
    assert raised(context) is None


@pytest.mark.req("P3", "P6")
def test_a_specification_raises_what_stands_in_its_log(context: FeatureContext) -> None:
    enter(context, Step.SPEC)
    answer = dict(demo.SPEC.answer)
    payload = {**answer["agent_output"]["payload"]}
    log = {
        "concerns_identified": 1,
        "mode": "autonomous",
        "auto_selected": True,
        "selected_option": "proceed",
        "concerns": [_concern("Blocker")],
    }
    answer["agent_output"] = {**answer["agent_output"], "payload": {**payload, "pushback_log": log}}
    _spec(context, 1, status=D.ERROR, cause=ErrorCause.AGENT_ERROR)
    assert raised(context) is None
    _spec(context, 2, answer=answer)
    assert raised(context) == Raised(1, Severity.BLOCKER)


def test_an_answer_without_a_log_raises_nothing(context: FeatureContext) -> None:
    enter(context, Step.SPEC)
    answer = dict(demo.SPEC.answer)
    payload = {key: value for key, value in answer["agent_output"]["payload"].items() if key != "pushback_log"}
    _spec(context, 1, answer={**answer, "agent_output": {**answer["agent_output"], "payload": payload}})
    assert raised(context) == Raised(0, None)


def test_a_call_whose_answer_is_gone_raises_nothing(context: FeatureContext) -> None:
    enter(context, Step.SPEC)
    _spec(context, 1)
    assert raised(context) == Raised(0, None)


@pytest.mark.req("P5")
def test_a_question_belongs_to_its_visit_and_what_was_chosen_before_is_spent(context: FeatureContext) -> None:
    gate = HumanGate.RESEARCH
    enter(context, Step.RESEARCH_GATE)
    assert facts_of(context).approval is None
    ask(context, gate)
    first = facts_of(context).approval
    assert first is not None
    assert (first.gate, first.asked, first.selected, first.spent) == (gate, True, None, ())
    enter(context, Step.RESEARCH)
    assert facts_of(context).approval is None, "nobody is asked there"


@pytest.mark.req("P5")
def test_each_answer_is_spent_once_it_has_sent_work_back(context: FeatureContext) -> None:
    gate = HumanGate.RESEARCH
    for number, choice in enumerate((GateChoice.EXPAND, GateChoice.OTHER), start=1):
        enter(context, Step.RESEARCH_GATE)
        ask(context, gate, choice)
        here = facts_of(context).approval
        assert here is not None
        assert (here.asked, here.selected, len(here.spent)) == (True, choice, number - 1)
        leave(context, StepOutcome.REVISED)
    enter(context, Step.RESEARCH_GATE)
    again = facts_of(context).approval
    assert again is not None
    assert (again.asked, again.selected, again.spent) == (False, None, (GateChoice.EXPAND, GateChoice.OTHER))


@pytest.mark.req("P7")
@pytest.mark.parametrize(
    ("scope", "step"), [(ReviewScope.DESIGN, Step.DESIGN_REVIEW), (ReviewScope.CODE, Step.CODE_REVIEW)]
)
def test_a_review_is_told_by_the_round_that_its_step_is_in(
    context: FeatureContext, scope: ReviewScope, step: Step
) -> None:
    def look() -> Any:
        facts = facts_of(context)
        return facts.design_review if scope is ReviewScope.DESIGN else facts.code_review

    def reviewer(number: int, **differs: Any) -> None:
        call(
            context,
            f"{step.value}-{number}-pragmatic-verifier-1",
            step,
            Role.REVIEWER,
            "pragmatic-verifier",
            **differs,
        )

    assert look() is None
    enter(context, step)
    assert (look().round, look().reviewers, look().tally.rows) == (1, (), ())
    reviewer(1)
    for session in demo.DESIGN_REVIEWS:
        played(context, replace(session, answer={**session.answer, "scope": scope.value}))
    assert [each.instance for each in look().reviewers] == ["pragmatic-verifier"]
    assert len(look().tally.rows) == 9
    assert review_subject(context, scope) == f"{context.order.slug}-{scope.value}-review"
    enter(context, Step.DESIGN)
    assert (look().round, len(look().reviewers)) == (1, 1)
    enter(context, step)
    assert (look().round, look().reviewers) == (2, ())
    reviewer(2, status=D.ERROR, cause=ErrorCause.AGENT_ERROR)
    assert [each.status for each in look().reviewers] == [D.ERROR]


def test_the_budget_holds_a_run_until_somebody_lets_it_go_on(context: FeatureContext) -> None:
    context.write_event(BudgetExhausted(what="tokens of the run", cap=5, used=6))
    facts = facts_of(context)
    assert (facts.can_start, facts.held_by) == (CanStart.NEVER, "the budget: tokens of the run")
    resume(context, Step.SETUP)
    assert (facts_of(context).can_start, facts_of(context).held_by) == (CanStart.YES, None)
    context.write_event(BudgetExhausted(what="money of the run", cap=5, used=6))
    assert facts_of(context).held_by == "the budget: money of the run"


def test_what_a_run_goes_on_without_is_named_once(context: FeatureContext) -> None:
    for detail in ("one", "two"):
        context.write_event(Degraded(kind=Degradation.SINGLE_MODEL, detail=detail))
    assert facts_of(context).degradations == (Degradation.SINGLE_MODEL,)


def _nodes(context: FeatureContext) -> Any:
    plan = plan_of(context)
    assert plan is not None
    return nodes_of(context, plan)


def _tasks(context: FeatureContext) -> dict[str, tuple[int, int, bool, int]]:
    return {each.task: (each.iteration, each.round, each.ready, each.check_runs) for each in facts_of(context).tasks}


def _implementer(context: FeatureContext, number: int, task: str, tries: str = "1", **differs: Any) -> None:
    id_ = f"step-5-{number}-{task}-{tries}"
    call(context, id_, Step.IMPLEMENT, Role.IMPLEMENTER, task, attempt=number, **differs)


@pytest.fixture
def planned(context: FeatureContext) -> FeatureContext:
    enter(context, Step.PLAN)
    played(context, demo.PLANNED)
    enter(context, Step.IMPLEMENT)
    return context


@pytest.mark.req("P9")
def test_a_task_is_ready_when_what_it_waits_for_is_merged(planned: FeatureContext) -> None:
    assert _tasks(planned) == {
        "task-01": (1, 1, True, 0),
        "task-02": (1, 1, True, 0),
        "task-03": (1, 1, False, 0),
        "task-04": (1, 1, False, 0),
    }
    begin_graph(planned, TASKS, _nodes(planned), 1)
    attempt(planned, "task-01", 1, merged=True)
    assert not facts_of(planned).tasks[2].ready
    attempt(planned, "task-02", 1, merged=True)
    assert _tasks(planned) == {
        "task-01": (1, 1, True, 2),
        "task-02": (1, 1, True, 2),
        "task-03": (1, 1, True, 0),
        "task-04": (1, 1, False, 0),
    }
    red = facts_of(planned).tasks[2]
    assert (red.size, red.risk) == (Size.LARGE, Risk.RED)
    assert {"ac-1", "ac-2"} <= set(red.required)


@pytest.mark.req("P9")
def test_what_is_still_open_is_tried_again_in_the_next_iteration_under_the_next_number(planned: FeatureContext) -> None:
    begin_graph(planned, TASKS, _nodes(planned), 1)
    attempt(planned, "task-01", 1, merged=True)
    attempt(planned, "task-02", 1, merged=False)
    assert _tasks(planned)["task-02"] == (1, 1, True, 2)
    planned.write_event(ReplanStarted(iteration=2, failing=("task-02",)))
    assert facts_of(planned).iteration == 2
    assert _tasks(planned) == {
        "task-01": (1, 1, True, 2),
        "task-02": (2, 2, True, 0),
        "task-03": (2, 2, False, 0),
        "task-04": (2, 2, False, 0),
    }
    assert begin_graph(planned, TASKS, _nodes(planned), 2) == 2
    attempt(planned, "task-02", 2, merged=True)
    assert _tasks(planned)["task-02"] == (2, 2, True, 2)
    planned.write_event(TaskReverted(task="task-01", files=()))
    assert _tasks(planned)["task-01"] == (2, 3, True, 0)


def test_what_an_attempt_changed_is_told_with_its_tree(planned: FeatureContext) -> None:
    number = begin_graph(planned, TASKS, _nodes(planned), 1)
    assert facts_of(planned).tasks[0].tree is None
    head = planned.order.base_commit
    done = note_attempt(planned, "task-01", number, head, head)
    assert (facts_of(planned).tasks[0].tree, facts_of(planned).tasks[0].files) == (done.tree, ())


@pytest.mark.req("P9")
def test_implementers_and_verifiers_are_those_of_the_iteration_at_hand(planned: FeatureContext) -> None:
    assert _calls(planned) == {}
    begin_graph(planned, TASKS, _nodes(planned), 1)
    _implementer(planned, 1, "task-01")
    _implementer(planned, 1, "task-02", status=D.ERROR, cause=ErrorCause.NETWORK)
    _implementer(planned, 1, "task-02", "2", status=D.ERROR, cause=ErrorCause.NETWORK)
    assert _calls(planned) == {"task-01": (1, "DONE", None), "task-02": (2, "ERROR", "network")}
    head = planned.order.base_commit
    note_attempt(planned, "task-01", 1, head, head)
    enter(planned, Step.VERIFY)
    assert set(_calls(planned)) == {"task-02", "task-03", "task-04"}, "of nothing there is nothing to look at"
    call(planned, "step-6-1-task-01-1", Step.VERIFY, Role.VERIFIER, "task-01", attempt=1)
    assert _calls(planned) == dict.fromkeys(NAMES, (1, "DONE", None))
    planned.write_event(ReplanStarted(iteration=2, failing=("task-02",)))
    assert _calls(planned) == {}
    enter(planned, Step.IMPLEMENT)
    assert _calls(planned) == {}


@pytest.mark.req("P9")
def test_whoever_settled_a_conflict_says_nothing_of_the_work_itself(planned: FeatureContext) -> None:
    begin_graph(planned, TASKS, _nodes(planned), 1)
    _implementer(planned, 1, "task-01")
    _implementer(planned, 1, "task-01", "help-1", status=D.ERROR, cause=ErrorCause.NETWORK)
    _implementer(planned, 1, "task-01", "help-2", status=D.ERROR, cause=ErrorCause.NETWORK)
    assert _calls(planned) == {"task-01": (1, "DONE", None)}


@pytest.mark.req("P7")
def test_a_fix_is_told_by_the_graph_that_follows_its_round(planned: FeatureContext) -> None:
    begin_graph(planned, TASKS, _nodes(planned), 1)
    enter(planned, Step.CODE_REVIEW)
    assert facts_of(planned).fix is None
    number = begin_graph(planned, FIX, [fix_node(["till/money.py"])], 1, ("x",))
    assert number == 2
    assert facts_of(planned).fix is None, "nobody was called yet"
    enter(planned, Step.IMPLEMENT)
    _implementer(planned, number, FIX_NODE)
    fix = facts_of(planned).fix
    assert fix is not None
    assert (fix.call.status, fix.checks and fix.checks.tree) == (D.DONE, None)
    head = planned.order.base_commit
    note_attempt(planned, FIX_NODE, number, head, head)
    fix = facts_of(planned).fix
    assert fix is not None
    assert fix.checks is not None
    assert (fix.checks.task, fix.checks.round, fix.checks.tree) == (
        FIX_NODE,
        number,
        planned.repository.tree_of(head),
    )
    enter(planned, Step.CODE_REVIEW)
    assert facts_of(planned).fix is None, "the second round has none of its own"


def test_a_fix_that_failed_is_asked_for_again_in_the_next_life(planned: FeatureContext) -> None:
    enter(planned, Step.CODE_REVIEW)
    number = begin_graph(planned, FIX, [fix_node([])], 1)
    enter(planned, Step.IMPLEMENT)
    _implementer(planned, number, FIX_NODE, status=D.ERROR, cause=ErrorCause.AGENT_ERROR)
    assert facts_of(planned).fix is not None
    resume(planned, Step.IMPLEMENT)
    assert facts_of(planned).fix is None
    assert begin_graph(planned, FIX, [fix_node([])], 1) == number + 1


@pytest.mark.req("P9")
def test_the_whole_change_is_what_was_proven_last(context: FeatureContext) -> None:
    assert facts_of(context).whole is None
    for life in (0, 1):
        tree = tree_with(context, {f"{life}.txt": "a"})
        files = [{"path": f"{life}.txt", "change": "added"}]
        detail: dict[str, object] = {
            "round": life + 1,
            "tree": tree,
            "commit": context.order.base_commit,
            "files": files,
        }
        seen = context.observation(f"{WHOLE}:{life}", WHOLE, WHOLE, detail, tree=tree)
        context.write(lambda record, seen=seen: record.observation(seen))  # type: ignore[misc]  # a default binds the loop's value
        whole = facts_of(context).whole
        assert whole is not None
        assert (whole.task, whole.tree, whole.round, whole.baseline.rows) == (WHOLE, tree, life + 1, ())
        assert [file.path for file in whole.files] == [f"{life}.txt"]
        resume(context, Step.EVIDENCE)
        assert facts_of(context).whole == whole


@pytest.mark.req("P9", "P16")
def test_what_came_to_nothing_is_tried_again_in_the_next_life_and_what_was_merged_stays(
    planned: FeatureContext,
) -> None:
    begin_graph(planned, TASKS, _nodes(planned), 1)
    _implementer(planned, 1, "task-01")
    _implementer(planned, 1, "task-02", status=D.ERROR, cause=ErrorCause.AGENT_ERROR)
    attempt(planned, "task-01", 1, merged=True)
    attempt(planned, "task-02", 1, merged=False)
    resume(planned, Step.IMPLEMENT)
    assert _calls(planned) == {"task-01": (1, "DONE", None)}
    assert _tasks(planned)["task-01"] == (1, 1, True, 2)
    assert _tasks(planned)["task-02"] == (1, 2, True, 0)
    assert begin_graph(planned, TASKS, _nodes(planned), 1) == 2
    _implementer(planned, 2, "task-02")
    assert _calls(planned) == {"task-01": (1, "DONE", None), "task-02": (1, "DONE", None)}
