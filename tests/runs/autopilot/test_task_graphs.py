"""Graphs of a phase's tasks: numbers that count on through the run, waves that wait, and what stands of each task."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.autopilot.audit import GapDetail
from fairwitness.contracts.autopilot.facts import PathItem
from fairwitness.contracts.autopilot.phase_record import TaskStatus
from fairwitness.contracts.autopilot.vocabulary import FailureCategory
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.contracts.forge.events import NodeChanged
from fairwitness.errors import InternalError
from fairwitness.rules.dag import dag_problems
from fairwitness.runs.autopilot.task_checks import category_of, category_of_runs, failures, problems_of, task_commands
from fairwitness.runs.autopilot.task_graphs import TaskNode, begin_graph, graph_of, graphs_of, logged, rest_of
from fairwitness.runs.graph.log import GRAPH
from runs.autopilot.site import RUN, TARGET, pass_of
from runs.autopilot.workyard import Yard, made, node, opened, task
from runs.autopilot.written import executed, mini_verifier
from runs.feature.git_runs import dies

ITEM = PathItem(file="src/token.py", deficiency="the line is\nalways 0", impact="+0.5")


@pytest.fixture
def yard(tmp_path: Path, own_home: None) -> Iterator[Yard]:
    yard = made(tmp_path)
    yield yard
    yard.ledger.close()


def _detail(yard: Yard, number: int) -> dict[str, Any]:
    row = yard.ledger.observation(RUN, f"{GRAPH}:{number}")
    assert row is not None
    return dict(row.detail)


def _moves(yard: Yard, number: int, name: str, before: NodeState, after: NodeState, reason: str | None = None) -> None:
    attempt = graph_of(yard.log, number).attempt
    event = NodeChanged(
        nodeId=name,
        previousStatus=before,
        newStatus=after,
        timestamp=yard.log.now(),
        attemptId=attempt,
        reason=reason,
    )
    yard.graph_runner(number).write(lambda _now: (event,))


@pytest.mark.req("A3")
def test_each_wave_waits_for_all_of_the_one_before_and_every_task_says_what_it_writes(yard: Yard) -> None:
    nodes = (node("c", wave=2), node("a"), node("b", complexity="complex"), node("d", wave=4))
    number = yard.begin(*nodes)
    dag = yard.graph_runner(number).begun().dag
    assert dag_problems(dag) == ()
    found = {each.id: each for each in dag.nodes}
    assert {name: each.dependencies for name, each in found.items()} == {
        "p5-c": ("p5-a", "p5-b"),
        "p5-a": (),
        "p5-b": (),
        "p5-d": ("p5-c",),
    }
    assert found["p5-b"].metadata == {"writes": ["src/b.py"], "estimate": 3}
    assert graph_of(yard.log, number).nodes == nodes
    options = yard.graph_runner(number).begun().options
    limits = yard.log.order().limits
    assert (options.target, options.cap, options.phase) == (TARGET, limits.cap, "1")


@pytest.mark.req("A3")
def test_a_task_writes_its_files_and_no_others_and_what_has_no_task_is_not_bound(yard: Yard) -> None:
    cycle = TaskNode(id="p5-cycle", role=Role.EXECUTOR, items=(ITEM,))
    assert (node().scope, cycle.scope) == (("src/a.py",), None)
    assert node(files=[]).scope == (), "a task without files writes nothing"
    assert cycle.model_copy(update={"writes": ("src/**",)}).scope == ("src/**",)
    assert _detail(yard, yard.begin(cycle))["dag"]["nodes"][0].get("metadata") == {}


@pytest.mark.req("A3")
def test_what_a_node_is_about_is_one_line(yard: Yard) -> None:
    gap = GapDetail.model_validate(
        {
            "requirement_id": "REQ-01",
            "phase_id": "5",
            "gap_description": "nothing reads it",
            "fix_complexity": "small",
            "suggested_fix": "read it",
        }
    )
    about = [
        node(action="Write it.\n  All of it.").about,
        TaskNode(id="p5-cycle", role=Role.EXECUTOR, items=(ITEM, ITEM)).about,
        TaskNode(id="p5-debug", role=Role.DEBUGGER, problems=("it is red",)).about,
        TaskNode(id="audit-1", role=Role.EXECUTOR, gap=gap).about,
        TaskNode(id="p5-none", role=Role.EXECUTOR).about,
    ]
    line = "the line is always 0"
    assert about == ["Write it. All of it.", f"{line}; {line}", "it is red", "nothing reads it", "p5-none"]


@pytest.mark.req("A3")
def test_graphs_are_numbered_through_the_run_and_attempts_through_the_phase(yard: Yard) -> None:
    assert graphs_of(yard.log) == ()
    assert yard.begin(node()) == 1
    head = yard.ledger.head(RUN)
    assert yard.begin(node()) == 1, "asked again it is the same"
    assert yard.ledger.head(RUN) == head
    assert yard.begin(node(), purpose="execute-2") == 2
    other = pass_of(yard.base, phase="6")
    assert yard.begin(node("x"), asked=other) == 3
    assert yard.begin(node(), asked=pass_of(yard.base, number=2)) == 4
    audit = TaskNode(id="audit-1", role=Role.EXECUTOR, problems=("a gap",))
    assert begin_graph(yard.log, None, "audit-1", (audit,), yard.base) == 5
    assert begin_graph(yard.log, None, "audit-1", (audit,), yard.base) == 5
    graphs = graphs_of(yard.log)
    assert [(each.number, each.phase, each.pass_, each.attempt) for each in graphs] == [
        (1, "5", "5-1", 1),
        (2, "5", "5-1", 2),
        (3, "6", "6-1", 1),
        (4, "5", "5-2", 3),
        (5, None, None, 1),
    ]
    with pytest.raises(InternalError, match="no graph 6"):
        graph_of(yard.log, 6)
    with pytest.raises(InternalError, match="no node p5-z"):
        graphs[0].node("p5-z")


@pytest.mark.req("A3")
def test_a_graph_that_was_begun_by_a_killed_process_is_found(yard: Yard) -> None:
    yard.ledger.close()

    def begins() -> None:
        opened(yard.root).begin(node())

    assert dies(begins, at="autopilot.graph")
    again = opened(yard.root)
    assert again.begin(node()) == 1
    assert len(graphs_of(again.log)) == 1
    again.ledger.close()


@pytest.mark.req("A3")
def test_while_something_is_under_way_a_resumed_run_goes_on_with_the_same_graph(yard: Yard) -> None:
    number = yard.begin(node("a"), node("b", wave=2))
    _moves(yard, number, "p5-a", NodeState.PENDING, NodeState.RUNNING)
    yard.resume()
    assert yard.begin(node("a"), node("b", wave=2)) == number
    _moves(yard, number, "p5-a", NodeState.RUNNING, NodeState.FAILED, "prepare: no space left")
    following = yard.begin(node("a"), node("b", wave=2))
    assert following == number + 1, "it never came to an end of its own"
    assert [each.id for each in graph_of(yard.log, following).nodes] == ["p5-a", "p5-b"]


@pytest.mark.req("A5", "A7")
def test_the_log_tells_where_each_task_stands_and_why_one_failed(yard: Yard) -> None:
    number = yard.begin(node("a"), node("b"), node("c", wave=2))
    assert {each.status for each in logged(yard.log, number)} == {TaskStatus.NOT_STARTED}
    _moves(yard, number, "p5-a", NodeState.PENDING, NodeState.RUNNING)
    _moves(yard, number, "p5-b", NodeState.PENDING, NodeState.RUNNING)
    _moves(yard, number, "p5-b", NodeState.RUNNING, NodeState.STALE, "its worker gave no sign of life")
    tasks_log = {each.id: each for each in logged(yard.log, number)}
    assert {name: each.status.value for name, each in tasks_log.items()} == {
        "a": "in_progress",
        "b": "failed",
        "c": "not_started",
    }
    assert (tasks_log["b"].check, tasks_log["b"].evidence, tasks_log["b"].commit) == (None, None, None)
    assert rest_of(yard.log, number) == (), "something is under way"
    _moves(yard, number, "p5-a", NodeState.RUNNING, NodeState.FAILED, "it failed")
    assert [each.id for each in rest_of(yard.log, number)] == ["p5-c"]
    *_, failed = failures(yard.log, number)
    assert failed.category is FailureCategory.TOOL_FAILURE
    execute = yard.log.state().state.phases["5"].steps.execute
    assert execute is not None
    assert {name: each.status for name, each in execute.tasks.items()} == dict.fromkeys("ab", TaskStatus.FAILED)


@pytest.mark.req("A4")
def test_what_a_halt_kept_from_beginning_is_no_rest_of_a_failure(yard: Yard) -> None:
    number = yard.begin(node("a"), node("b"), node("c", wave=2))
    assert rest_of(yard.log, number) == ()
    _moves(yard, number, "p5-a", NodeState.PENDING, NodeState.RUNNING)
    _moves(yard, number, "p5-a", NodeState.RUNNING, NodeState.FAILED, "it failed")
    assert rest_of(yard.log, number) == (), "nothing stood before b, and it was not begun"


@pytest.mark.req("A5")
def test_what_a_debugger_or_an_audit_does_is_no_task_of_the_phase(yard: Yard) -> None:
    debug = yard.begin(TaskNode(id="p5-debug", role=Role.DEBUGGER, problems=("it is red",)), purpose="debug-1")
    gap = TaskNode(id="audit-1", role=Role.EXECUTOR, problems=("a gap",))
    audit = begin_graph(yard.log, None, "audit-1", (gap,), yard.base)
    for number, name in ((debug, "p5-debug"), (audit, "audit-1")):
        _moves(yard, number, name, NodeState.PENDING, NodeState.RUNNING)
        _moves(yard, number, name, NodeState.RUNNING, NodeState.FAILED, "it failed")
    assert yard.told("task_failed") == []
    assert yard.log.state().state.meta.run_id == RUN, "the events of graphs are passed over"


@pytest.mark.req("A3", "A15")
def test_the_script_of_the_plan_is_run_first_and_then_every_command() -> None:
    first, second = task_commands(task())
    assert (first.command, second.command) == (task().script, "test -e src/a.py")
    assert task_commands(task(script=None)) == (second,)


@pytest.mark.req("A7")
@pytest.mark.parametrize(
    ("assessment", "category"),
    [
        (Assessment.FAIL, FailureCategory.ACCEPTANCE_CRITERIA_UNMET),
        (Assessment.TIMEOUT, FailureCategory.TOOL_FAILURE),
        (Assessment.LOST, FailureCategory.TOOL_FAILURE),
        (Assessment.VIOLATION, FailureCategory.SCOPE_CREEP),
    ],
)
def test_how_a_command_ended_says_why_a_task_failed(assessment: Assessment, category: FailureCategory) -> None:
    code = None if assessment in (Assessment.TIMEOUT, Assessment.LOST) else 1
    violates = assessment is Assessment.VIOLATION
    good = executed(assessment=Assessment.PASS, exit_code=0)
    bad = executed(assessment=assessment, exit_code=code, sandbox_violation=violates)
    assert category_of_runs((good, bad)) is category
    assert category_of_runs((good,)) is FailureCategory.ACCEPTANCE_CRITERIA_UNMET
    assert len(problems_of((good, bad), None)) == 1
    assert problems_of((good,), mini_verifier()) == ()


@pytest.mark.req("A7")
@pytest.mark.parametrize(
    ("reason", "category"),
    [
        ("red on the merged tree: build: it failed", FailureCategory.BUILD_FAILURE),
        ("syntax-check: it failed", FailureCategory.COMPILATION_FAILURE),
        ("it conflicts again with what was merged: a.py", FailureCategory.COORDINATION_FAILURE),
        ("scope: b.py", FailureCategory.SCOPE_CREEP),
        ("tests: 1 failed", FailureCategory.ACCEPTANCE_CRITERIA_UNMET),
    ],
)
def test_what_stands_against_finished_work_says_why_it_failed(reason: str, category: FailureCategory) -> None:
    assert category_of(reason, is_done=True) is category
    assert category_of(reason, is_done=False) is FailureCategory.TOOL_FAILURE


def test_a_check_that_refuses_without_a_criterion_is_a_problem_all_the_same() -> None:
    refused = mini_verifier(**{"pass": False, "concerns": ["it is hollow"]})
    assert problems_of((), refused) == ("the check of the task refuses it: it is hollow",)
