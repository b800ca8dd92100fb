"""Rules for a feature plan and its tasks that a schema cannot express, and the pointers of tasks into documents.

Every check returns all problems, not only the first. A pointer looks like
`design-output.yaml#payload.decisions[id='D-8']`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fairwitness.contracts.common.problems import Problem, ProblemLevel
from fairwitness.contracts.common.vocabulary import Risk, Size, highest_risk
from fairwitness.contracts.feature.plan import PlannedTask, PlanOutput, PlanPayload, TaskDocument
from fairwitness.rules.graph import find_cycle

MAX_DEPENDENCIES = 2
MAX_PRODUCTION_FILES = 3
MAX_PRODUCTION_LINES = 500
"""Measured on the written code, because plans do not state it."""

_FEW_DEPENDENCIES = f"at most {MAX_DEPENDENCIES} dependencies"
_FEW_FILES = f"at most {MAX_PRODUCTION_FILES} files besides tests"

_PAYLOAD = ("agent_output", "payload")


def plan_problems(plan: PlanOutput) -> tuple[Problem, ...]:
    """Return all problems of one plan."""
    payload = plan.agent_output.payload
    return (
        *_totals(payload),
        *_dependencies(payload),
        *_waves(payload),
        *_sizes(payload.tasks),
    )


def binds(problem: Problem) -> bool:
    """Return True if a plan with this problem is sent back, including the planner's limits, which are only warnings to
    readers.

    Waves are hints, so their problems stay warnings.
    """
    return problem.level is ProblemLevel.ERROR or problem.expected in (_FEW_DEPENDENCIES, _FEW_FILES)


def _totals(payload: PlanPayload) -> Iterator[Problem]:
    if payload.total_tasks != len(payload.tasks):
        yield Problem(
            where=(*_PAYLOAD, "total_tasks"),
            expected=f"the number of tasks, {len(payload.tasks)}",
            found=str(payload.total_tasks),
        )
    highest = highest_risk(tuple(task.risk for task in payload.tasks))
    if payload.overall_risk_summary is not highest:
        yield Problem(
            where=(*_PAYLOAD, "overall_risk_summary"),
            expected=f"the highest risk of any task, {highest.value}",
            found=payload.overall_risk_summary.value,
        )


def _dependencies(payload: PlanPayload) -> Iterator[Problem]:
    known = {task.id: task for task in payload.tasks}
    for index, task in enumerate(payload.tasks):
        for position, other in enumerate(task.depends_on):
            if other not in known:
                yield Problem(
                    where=(*_PAYLOAD, "tasks", index, "depends_on", position),
                    expected="a task of this plan",
                    found=other,
                )
        if len(task.depends_on) > MAX_DEPENDENCIES:
            yield Problem(
                where=(*_PAYLOAD, "tasks", index, "depends_on"),
                expected=_FEW_DEPENDENCIES,
                found=str(len(task.depends_on)),
                level=ProblemLevel.WARNING,
            )
    ring = find_cycle({task.id: task.depends_on for task in payload.tasks})
    if ring:
        yield Problem(
            where=(*_PAYLOAD, "tasks"),
            expected="tasks that do not wait for each other in a ring",
            found=" → ".join((*ring, ring[0])),
        )
    if payload.dependency_graph is not None:
        yield from _drawn_graph(payload.dependency_graph, known)


def _drawn_graph(drawn: Mapping[str, tuple[str, ...]], known: Mapping[str, PlannedTask]) -> Iterator[Problem]:
    for task_id, drawn_for in drawn.items():
        task = known.get(task_id)
        if task is None or set(task.depends_on) != set(drawn_for):
            yield Problem(
                where=(*_PAYLOAD, "dependency_graph", task_id),
                expected="the same as depends_on of the task" if task else "a task of this plan",
                found=", ".join(drawn_for) or "nothing",
            )


def _waves(payload: PlanPayload) -> Iterator[Problem]:
    wave_of: dict[str, int] = {}
    known = {task.id for task in payload.tasks}
    for index, wave in enumerate(payload.waves):
        for position, task_id in enumerate(wave.tasks):
            where = (*_PAYLOAD, "waves", index, "tasks", position)
            if task_id not in known:
                yield Problem(where=where, expected="a task of this plan", found=task_id)
            elif task_id in wave_of:
                yield Problem(where=where, expected="each task in one wave only", found=task_id)
            wave_of.setdefault(task_id, index)
    for index, task in enumerate(payload.tasks):
        if task.id not in wave_of:
            yield Problem(
                where=(*_PAYLOAD, "tasks", index, "id"), expected="a task that stands in a wave", found=task.id
            )
            continue
        late = [other for other in task.depends_on if wave_of.get(other, -1) >= wave_of[task.id]]
        if late:
            # depends_on is binding and the scheduler follows it; the wave is only a hint
            yield Problem(
                where=(*_PAYLOAD, "tasks", index, "depends_on"),
                expected="dependencies in earlier waves (depends_on binds)",
                found=", ".join(late),
                level=ProblemLevel.WARNING,
            )


def _sizes(tasks: Iterable[PlannedTask]) -> Iterator[Problem]:
    for index, task in enumerate(tasks):
        if task.risk is Risk.RED and task.size is not Size.LARGE:
            yield Problem(
                where=(*_PAYLOAD, "tasks", index, "size"),
                expected="Large, since the task is 🔴",
                found=task.size.value,
            )


def task_problems(document: TaskDocument) -> tuple[Problem, ...]:
    """Return all problems of one task document."""
    return tuple(_task_problems(document))


def _task_problems(document: TaskDocument) -> Iterator[Problem]:
    task = document.task
    files = task.relevant_context.files_to_modify or ()
    highest = highest_risk((Risk.GREEN, *(file.risk for file in files)))
    if highest_risk((highest, task.risk)) is not task.risk:
        yield Problem(
            where=("task", "risk"), expected=f"at least the risk of its files, {highest.value}", found=task.risk.value
        )
    if Risk.RED in (highest, task.risk) and task.size is not Size.LARGE:
        yield Problem(where=("task", "size"), expected="Large, since a file is 🔴", found=task.size.value)
    if task.id in task.depends_on:
        yield Problem(where=("task", "depends_on"), expected="other tasks than itself", found=task.id)
    production = [file.path for file in files if not is_test_file(file.path)]
    if len(production) > MAX_PRODUCTION_FILES:
        yield Problem(
            where=("task", "relevant_context", "files_to_modify"),
            expected=_FEW_FILES,
            found=str(len(production)),
            level=ProblemLevel.WARNING,
        )


def is_test_file(path: str) -> bool:
    """Return True for test files, which do not count towards a task's size.

    >>> [is_test_file(path) for path in ("tests/test_a.py", "src/a.test.ts", "pkg/a_test.go", "src/attest.py")]
    [True, True, True, False]
    """
    *folders, name = path.split("/")
    if any(folder in ("test", "tests", "__tests__", "spec") for folder in folders):
        return True
    stem = name.split(".", 1)[0]
    return stem.startswith("test_") or stem.endswith("_test") or ".test." in name or ".spec." in name


def plan_against_tasks(plan: PlanOutput, tasks: Mapping[str, TaskDocument]) -> tuple[Problem, ...]:
    """Return every point in which the plan's overview and the task documents disagree."""
    problems = []
    planned = {task.id: task for task in plan.agent_output.payload.tasks}
    for index, summary in enumerate(plan.agent_output.payload.tasks):
        document = tasks.get(summary.id)
        if document is None:
            problems.append(
                Problem(
                    where=(*_PAYLOAD, "tasks", index, "id"), expected="a task document of this id", found=summary.id
                )
            )
            continue
        task = document.task
        for field, said, stands in (
            ("size", summary.size.value, task.size.value),
            ("risk", summary.risk.value, task.risk.value),
            ("depends_on", sorted(summary.depends_on), sorted(task.depends_on)),
        ):
            if said != stands:
                problems.append(
                    Problem(
                        where=(*_PAYLOAD, "tasks", index, field),
                        expected=f"the same as in the task document, {stands}",
                        found=str(said),
                    )
                )
    problems += [
        Problem(where=(*_PAYLOAD, "tasks"), expected=f"an entry for the task document {task_id}", found="none")
        for task_id in tasks
        if task_id not in planned
    ]
    return tuple(problems)


_STEP = re.compile(r"(?P<name>[A-Za-z0-9_]+)(?:\[(?P<key>[A-Za-z0-9_]+)='(?P<value>[^']+)'\])?(?:\.|$)")


class PointerTarget(NamedTuple):
    """The section a pointer names."""

    value: object


class Dead(NamedTuple):
    """A pointer that cannot be resolved, with the reason."""

    reason: str


def resolve_pointer(pointer: str, documents: Mapping[str, object]) -> PointerTarget | Dead:
    """Return the section that a pointer names; `documents` are given by file name.

    >>> design = {"agent_output": {"payload": {"decisions": [{"id": "D-8", "title": "Risk"}]}}}
    >>> resolve_pointer("design-output.yaml#payload.decisions[id='D-8'].title", {"design-output.yaml": design})
    PointerTarget(value='Risk')
    """
    file, _, path = pointer.partition("#")
    if file not in documents:
        return Dead(f"there is no document {file}")
    value = documents[file]
    # Pointers begin at the payload; in signed documents that stands under the header.
    if isinstance(value, Mapping) and "payload" not in value and "agent_output" in value:
        value = value["agent_output"]
    offset = 0
    while offset < len(path):
        step = _STEP.match(path, offset)
        if step is None:
            return Dead(f"'{path[offset:]}' is not a path")
        offset = step.end()
        name, key, wanted = step.group("name", "key", "value")
        if not isinstance(value, Mapping) or name not in value:
            return Dead(f"there is no field '{name}'")
        value = value[name]
        if key is not None:
            entry = _entry(value, key, wanted)
            if entry is None:
                return Dead(f"no entry of '{name}' has {key}='{wanted}'")
            value = entry
    return PointerTarget(value)


def _entry(value: object, key: str, wanted: str) -> object | None:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    for entry in value:
        if isinstance(entry, Mapping) and entry.get(key) == wanted:
            return entry
    return None
