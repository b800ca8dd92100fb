"""The tasks of a run's plan, and the graphs that execute them.

Each try at the plan's open tasks is a graph with a number that counts through the whole run. The attempts of its nodes,
their branches and their ledger rows have that number.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from fairwitness.contracts.common.vocabulary import Size
from fairwitness.contracts.feature.facts import ChangedFile, GateChoice, HumanGate
from fairwitness.contracts.feature.plan import PlanOutput, TaskDocument
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.contracts.forge.dag import Dag, DagMetadata, DagNode, NodeState, NodeType
from fairwitness.contracts.graph.orders import GraphOptions
from fairwitness.kit.killpoints import killpoint
from fairwitness.rules.feature_plan import is_test_file
from fairwitness.rules.risk import is_configuration, is_documentation
from fairwitness.rules.tool_policy import path_problem
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.graph.log import GRAPH, plain_graph
from fairwitness.runs.shared.criteria import changed_files

TASKS, FIX = "tasks", "fix"
FIX_NODE = "task-00"
"""The single node of a graph that repairs what a code review found; planners count from 1."""
ATTEMPT = "attempt"


class TaskGraph(NamedTuple):
    """One graph of a run, as planned."""

    number: int
    kind: str
    iteration: int
    """The iteration of the plan; for a fix, the round of the review it follows."""
    nodes: tuple[str, ...]
    findings: tuple[str, ...]
    """For a fix, the ids of the findings that it has to answer."""
    writes: tuple[str, ...]
    """What its nodes may write, if they say so."""
    life: int
    """How often the run had been resumed by then."""


class RecordedAttempt(NamedTuple):
    """The result of an attempt, and the commit it is compared with."""

    base: str
    head: str
    tree: str
    files: tuple[ChangedFile, ...]


def plan_of(context: FeatureContext) -> PlanOutput | None:
    """Return the current plan, or None before there is one."""
    if context.layout.plan not in context.state().artifacts:
        return None
    return context.document(context.layout.plan, PlanOutput)


def task_of(context: FeatureContext, task: str) -> TaskDocument:
    """Return the document of one task of the plan."""
    return context.document(context.layout.task(task), TaskDocument)


def iteration_of(state: FeatureState) -> int:
    """Return the current iteration of implementing and verifying."""
    return state.replans[-1].iteration if state.replans else 1


def graphs_of(context: FeatureContext) -> tuple[TaskGraph, ...]:
    """Return every graph that was started, in order."""
    rows = context.ledger.observations(context.run_id, GRAPH)
    return tuple(sorted((_graph(row.detail) for row in rows), key=lambda graph: graph.number))


def _graph(detail: Mapping[str, Any]) -> TaskGraph:
    about = detail["settings"]
    return TaskGraph(
        int(detail["options"]["phase"]),
        str(about["kind"]),
        int(about["iteration"]),
        tuple(node["id"] for node in detail["dag"]["nodes"]),
        tuple(about["findings"]),
        tuple(path for node in detail["dag"]["nodes"] for path in (node.get("metadata") or {}).get("writes", ())),
        int(about["life"]),
    )


def open_tasks(context: FeatureContext, plan: PlanOutput) -> tuple[str, ...]:
    """Return the tasks that still have to be implemented in the current iteration."""
    state = context.state()
    merged = {name for name, task in state.tasks.items() if task.merged is not None}
    return tuple(task.id for task in plan.agent_output.payload.tasks if task.id not in merged)


def begin_graph(
    context: FeatureContext, kind: str, nodes: Sequence[DagNode], iteration: int, findings: tuple[str, ...] = ()
) -> int:
    """Record a graph and return its number; a repeated call for the same purpose since the last resume finds it."""
    life, known = context.state().resumed, graphs_of(context)
    for graph in known:
        if (graph.kind, graph.iteration, graph.life) == (kind, iteration, life):
            return graph.number
    number = len(known) + 1
    order = context.order
    options = GraphOptions(
        target=order.target,
        cap=order.policy.max_concurrent,
        first_attempt=number,
        max_attempts=number,
        phase=str(number),
        look_s=0.5,
    )
    dag = Dag(
        version=1,
        runId=context.run_id,
        nodes=tuple(nodes),
        metadata=DagMetadata(createdAt=context.now(), createdBy="captain", totalTasks=len(nodes), totalRefineries=0),
    )
    about = {"kind": kind, "iteration": iteration, "life": life, "findings": list(findings)}
    detail = plain_graph(dag, options, order.base_commit, {}, about)
    context.write(
        lambda record: record.observation(context.observation(f"{GRAPH}:{number}", GRAPH, context.run_id, detail))
    )
    killpoint("feature.graph")
    return number


def nodes_of(context: FeatureContext, plan: PlanOutput) -> tuple[DagNode, ...]:
    """Return the open tasks as nodes; their dependencies are the open ones."""
    names = open_tasks(context, plan)
    planned = {task.id: task for task in plan.agent_output.payload.tasks}
    found = []
    for name in names:
        writes = writes_of(task_of(context, name))
        about: dict[str, Any] = {"estimate": 2 if planned[name].size is Size.LARGE else 1}
        if writes:
            about["writes"] = list(writes)
        found.append(
            DagNode(
                id=name,
                type=NodeType.TASK,
                agentType=2,
                dependencies=tuple(other for other in planned[name].depends_on if other in names),
                status=NodeState.PENDING,
                metadata=about,
            )
        )
    return tuple(found)


def fix_node(files: Sequence[str]) -> DagNode:
    """Return the node of a fix."""
    about = {"writes": sorted(files)} if files else None
    return DagNode(
        id=FIX_NODE, type=NodeType.TASK, agentType=2, dependencies=(), status=NodeState.PENDING, metadata=about
    )


def waiver_of(document: TaskDocument) -> str | None:
    """Return why the planner says that a task needs no new test; None if it does not say so."""
    said = (document.task.model_extra or {}).get("test_waiver")
    return said.strip() or None if isinstance(said, str) else None


def is_waived(context: FeatureContext, document: TaskDocument) -> bool:
    """Return whether a person approved this document with its waiver; an automatic approval waives nothing.

    What a planner wrote after the approval is not covered.
    """
    if waiver_of(document) is None:
        return False
    path = context.layout.task(document.task.id)
    stands = approved = None
    for event in context.ledger.events(context.run_id):
        data = event.data
        if event.type == "artifact_written" and data["path"] == path:
            stands = data["sha256"]
        elif event.type == "approval_answered" and data["gate_id"] == HumanGate.PLAN.value:
            is_given = data["selected_option"] == GateChoice.APPROVE.value and not data["auto_selected"]
            approved = stands if is_given else None
    return approved is not None and approved == stands


def recorded_attempt(context: FeatureContext, task: str, number: int) -> RecordedAttempt | None:
    """Return the result of an attempt; None if it left nothing to prove."""
    row = context.ledger.observation(context.run_id, f"{ATTEMPT}:{task}:{number}")
    if row is None:
        return None
    detail = row.detail
    files = tuple(ChangedFile.model_validate(file) for file in detail["files"])
    return RecordedAttempt(str(detail["base"]), str(detail["head"]), str(detail["tree"]), files)


def note_attempt(context: FeatureContext, task: str, number: int, base: str, head: str) -> RecordedAttempt:
    """Record the result of an attempt before anything is proven about it."""
    known = recorded_attempt(context, task, number)
    if known is not None:
        return known
    repository = context.repository
    tree = repository.tree_of(head)
    files = changed_files(context.shadow.diff(repository.tree_of(base), tree))
    detail: dict[str, Any] = {"base": base, "head": head, "tree": tree, "files": [file.plain() for file in files]}
    seen = context.observation(f"{ATTEMPT}:{task}:{number}", ATTEMPT, task, detail, task_id=task, tree=tree)
    context.write(lambda record: record.observation(seen))
    killpoint("feature.attempt")
    return RecordedAttempt(base, head, tree, files)


_WILD: Final = "*?"


_TEST_NAMES: Final = ("test_{stem}*.{ending}", "{stem}_test.{ending}", "{stem}.test.{ending}", "{stem}.spec.{ending}")


def writes_of(document: TaskDocument) -> tuple[str, ...]:
    """Return what the task's implementer may write: the files it names, and tests named after them if it names no test.

    A name with a wildcard is not a file: its risk colour would say nothing about the files it allows.
    """
    files = files_of(document)
    if any(is_test_file(path) for path in files):
        return files
    tests = (f"**/{name}" for path in files for name in _test_names(path))
    return tuple(dict.fromkeys((*files, *tests)))


def files_of(document: TaskDocument) -> tuple[str, ...]:
    """Return the files that a task names."""
    named = (file.path for file in document.task.relevant_context.files_to_modify or ())
    return tuple(dict.fromkeys(path for path in named if _is_file(path)))


def _is_file(path: str) -> bool:
    return not any(sign in path for sign in _WILD) and path_problem(path) is None


def _test_names(path: str) -> tuple[str, ...]:
    if is_documentation(path) or is_configuration(path):
        return ()
    stem, _, ending = path.rpartition("/")[2].rpartition(".")
    return tuple(name.format(stem=stem, ending=ending) for name in _TEST_NAMES) if stem else ()
