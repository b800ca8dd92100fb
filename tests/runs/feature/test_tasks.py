"""Graphs of a run's tasks: numbers that count on, nodes that wait only for what is open, attempts noted once."""

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fairwitness.contracts.feature.events import ApprovalAnswered, ApprovalRequested, ReplanStarted, TaskReverted
from fairwitness.contracts.feature.facts import OPTIONS, ChangeKind, GateChoice, HumanGate, Step
from fairwitness.contracts.feature.plan import TaskDocument
from fairwitness.contracts.forge.dag import DagNode
from fairwitness.contracts.graph.orders import GraphOptions
from fairwitness.git.changes import FileChange, Status
from fairwitness.rules.graph_run import GraphRun
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.tasks import (
    FIX,
    FIX_NODE,
    TASKS,
    begin_graph,
    fix_node,
    graphs_of,
    is_waived,
    iteration_of,
    nodes_of,
    note_attempt,
    open_tasks,
    plan_of,
    recorded_attempt,
    task_of,
    waiver_of,
)
from fairwitness.runs.graph.log import GRAPH, GraphLog
from fairwitness.runs.shared.criteria import changed_files
from runs.feature.contexts import context as made
from runs.feature.git_runs import dies
from runs.feature.run_events import ask, attempt, enter, played, reopened, resume
from support import demo_feature as demo

NAMES = ("task-01", "task-02", "task-03", "task-04")


@pytest.fixture
def context(tmp_path: Path) -> Iterator[FeatureContext]:
    made_ = made(tmp_path)
    played(made_, demo.PLANNED)
    enter(made_, Step.IMPLEMENT)
    yield made_
    made_.ledger.close()


def _nodes(context: FeatureContext) -> Sequence[DagNode]:
    plan = plan_of(context)
    assert plan is not None
    return nodes_of(context, plan)


def _open(context: FeatureContext) -> tuple[str, ...]:
    plan = plan_of(context)
    assert plan is not None
    return open_tasks(context, plan)


def test_there_is_no_plan_before_one_was_taken(tmp_path: Path) -> None:
    context = made(tmp_path)
    assert plan_of(context) is None
    assert graphs_of(context) == ()
    context.ledger.close()


@pytest.mark.req("P8")
def test_every_task_is_a_node_that_waits_for_what_the_plan_says(context: FeatureContext) -> None:
    nodes = {node.id: node for node in _nodes(context)}
    assert {name: node.dependencies for name, node in nodes.items()} == {
        "task-01": (),
        "task-02": (),
        "task-03": ("task-01", "task-02"),
        "task-04": ("task-03",),
    }
    about = {name: node.metadata or {} for name, node in nodes.items()}
    assert {name: each["estimate"] for name, each in about.items()} == dict(zip(NAMES, (1, 1, 2, 1), strict=True))
    assert "till/money.py" in about["task-02"]["writes"]
    assert task_of(context, "task-02").task.id == "task-02"


@pytest.mark.req("P9")
def test_what_is_merged_is_no_node_any_more_and_nobody_waits_for_it(context: FeatureContext) -> None:
    begin_graph(context, TASKS, _nodes(context), 1)
    attempt(context, "task-01", 1, merged=True)
    attempt(context, "task-02", 1, merged=False)
    assert _open(context) == ("task-02", "task-03", "task-04")
    assert [(node.id, node.dependencies) for node in _nodes(context)] == [
        ("task-02", ()),
        ("task-03", ("task-02",)),
        ("task-04", ("task-03",)),
    ]
    context.write_event(TaskReverted(task="task-01", files=()))
    assert _open(context) == NAMES


@pytest.mark.req("P9", "P16")
def test_graphs_of_a_run_are_numbered_on_and_found_again(context: FeatureContext) -> None:
    assert begin_graph(context, TASKS, _nodes(context), 1) == 1
    assert begin_graph(context, TASKS, _nodes(context), 1) == 1, "asked again it is the same"
    context.write_event(ReplanStarted(iteration=2, failing=("task-01",)))
    assert iteration_of(context.state()) == 2
    assert begin_graph(context, TASKS, _nodes(context)[1:], 2) == 2
    assert begin_graph(context, FIX, [fix_node(["b.py", "a.py"])], 1, ("a finding",)) == 3
    assert begin_graph(context, FIX, [fix_node(["b.py", "a.py"])], 1, ("a finding",)) == 3
    assert begin_graph(context, FIX, [fix_node([])], 2) == 4
    resume(context, Step.IMPLEMENT)
    assert begin_graph(context, TASKS, _nodes(context), 2) == 5, "another life begins another graph"
    graphs = graphs_of(context)
    assert [(graph.number, graph.kind, graph.iteration) for graph in graphs] == [
        (1, TASKS, 1),
        (2, TASKS, 2),
        (3, FIX, 1),
        (4, FIX, 2),
        (5, TASKS, 2),
    ]
    assert (graphs[0].nodes, graphs[1].nodes) == (NAMES, NAMES[1:])
    assert (graphs[2].nodes, graphs[2].findings, graphs[2].writes) == ((FIX_NODE,), ("a finding",), ("a.py", "b.py"))
    assert (graphs[3].findings, graphs[3].writes) == ((), ())


@pytest.mark.req("P9")
def test_a_graph_has_one_attempt_of_its_own_number_and_its_own_phase(context: FeatureContext) -> None:
    for iteration in (1, 2):
        number = begin_graph(context, TASKS, _nodes(context), iteration)
        row = context.ledger.observation(context.run_id, f"{GRAPH}:{number}")
        assert row is not None
        options = GraphOptions.model_validate(row.detail["options"])
        assert (options.first_attempt, options.max_attempts, options.phase) == (number, number, str(number))
        assert (options.target, options.cap) == (context.order.target, context.order.policy.max_concurrent)
        log = GraphLog(context.ledger, context.run_id, phase=str(number))
        run = GraphRun(context.run_id, log.begun().dag, first_attempt=number, max_attempts=number, phase=str(number))
        assert {(node.currentAttempt, node.maxAttempts) for node in run.nodes.values()} == {(number, number)}


def test_a_graph_that_was_killed_as_it_began_is_begun_once(context: FeatureContext, tmp_path: Path) -> None:
    def begin() -> None:
        there = reopened(tmp_path)
        begin_graph(there, TASKS, _nodes(there), 1)

    assert dies(begin, at="feature.graph")
    assert begin_graph(context, TASKS, _nodes(context), 1) == 1
    assert len(graphs_of(context)) == 1


@pytest.mark.req("P9")
def test_an_attempt_is_noted_once_and_with_what_it_changed(context: FeatureContext) -> None:
    base = context.order.base_commit
    top = context.repository.top
    assert top is not None
    assert recorded_attempt(context, "task-01", 1) is None
    (top / "new.txt").write_text("new\n")
    (top / "README.md").unlink()
    _git(context, "add", "-A", "--", "new.txt", "README.md")
    _git(context, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "-m", "work")
    head = context.repository.git.run("rev-parse", "HEAD").decode().strip()
    done = note_attempt(context, "task-01", 1, base, head)
    assert [(file.path, file.change) for file in done.files] == [
        ("README.md", ChangeKind.DELETED),
        ("new.txt", ChangeKind.ADDED),
    ]
    assert done.tree == context.repository.tree_of(head)
    assert note_attempt(context, "task-01", 1, base, base) == done, "what was noted first stands"
    assert recorded_attempt(context, "task-01", 1) == done
    assert recorded_attempt(context, "task-01", 2) is None


def _git(context: FeatureContext, *arguments: str) -> None:
    assert context.repository.top is not None
    subprocess.run(["git", *arguments], cwd=context.repository.top, check=True)


def test_what_became_of_a_file_is_one_of_three_words() -> None:
    def change(path: str, status: Status) -> FileChange:
        return FileChange(status=status, path=path, old_entry=None, new_entry=None, is_binary=False)

    said = changed_files([change("a", "A"), change("b", "D"), change("c", "M"), change("d", "T")])
    assert [file.change for file in said] == [
        ChangeKind.ADDED,
        ChangeKind.DELETED,
        ChangeKind.MODIFIED,
        ChangeKind.MODIFIED,
    ]


WAIVER = "No new test: nothing that runs is changed."


def _replaced(context: FeatureContext, description: str) -> TaskDocument:
    """The second task, planned anew."""
    document = task_of(context, "task-02")
    plain = document.plain()
    plain["task"]["test_waiver"] = description
    context.put_document(context.layout.task("task-02"), TaskDocument.model_validate(plain))
    return task_of(context, "task-02")


@pytest.mark.req("P8", "X1")
def test_a_test_is_waived_only_where_a_person_approved_the_very_document_that_says_so(context: FeatureContext) -> None:
    document = _replaced(context, WAIVER)
    assert waiver_of(document) is not None
    assert not is_waived(context, document), "nobody was asked"
    enter(context, Step.PLAN_GATE)
    ask(context, HumanGate.PLAN, GateChoice.REVISE)
    assert not is_waived(context, document)
    enter(context, Step.PLAN_GATE)
    ask(context, HumanGate.PLAN, GateChoice.APPROVE)
    assert is_waived(context, document)
    assert not is_waived(context, task_of(context, "task-01")), "it says nothing of the kind"
    again = _replaced(context, f"{WAIVER} Again.")
    assert not is_waived(context, again), "what was planned after the approval was seen by nobody"


@pytest.mark.req("P8", "X1")
def test_nothing_is_waived_by_a_run_that_answers_itself(context: FeatureContext) -> None:
    document = _replaced(context, WAIVER)
    gate = HumanGate.PLAN
    context.write_event(ApprovalRequested(gate_id=gate.value, options=tuple(option.value for option in OPTIONS[gate])))
    context.write_event(
        ApprovalAnswered(
            gate_id=gate.value, selected_option=GateChoice.APPROVE.value, auto_selected=True, actor="pipeline"
        )
    )
    assert not is_waived(context, document)
