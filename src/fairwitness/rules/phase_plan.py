"""Problems of a phase's plan that need no agent to find, and the splitting of plans that are too large."""

import re
from collections.abc import Collection, Iterator

from fairwitness.contracts.autopilot.plan import PhasePlan, PlanTask, TaskKind
from fairwitness.contracts.autopilot.returns import PlanIssue, PlanIssueSeverity
from fairwitness.contracts.autopilot.roadmap import DetailedPhase
from fairwitness.contracts.autopilot.vocabulary import Complexity
from fairwitness.rules.diagnostics import VAGUE_PHRASES

VAGUE_CRITERIA: tuple[str, ...] = (
    *("as expected", "correctly", "looks good", "looks right", "nice", "seamless", "user-friendly", "works", "working"),
    *VAGUE_PHRASES,
)
"""Words of a criterion that no command can verify."""
LOOKING: tuple[str, ...] = ("grep", "rg", "ls", "find", "test", "[", "cat", "head", "wc", "stat")
"""Commands that only look at files and run nothing of the project."""
LONGEST = 100_000
"""The maximum size of a command or script in bytes; operating systems refuse longer shell arguments."""
WILD = ("*", "?")
"""Characters that make a path a pattern."""
COMPLEX_TASKS, FILES = 5, 10
"""The maximum numbers of complex tasks and of files in one phase."""

_VAGUE = re.compile(rf"\b({'|'.join(re.escape(phrase) for phrase in VAGUE_CRITERIA)})\b", re.IGNORECASE)
_ANCHOR = re.compile(r"\d|[`'\"“‘][^`'\"”’]{2,}[`'\"”’]|\w[_./]\w|\w\(\)|[a-z][A-Z]")


def plan_problems(phase: DetailedPhase, plan: PhasePlan) -> tuple[PlanIssue, ...]:
    """Return every blocker that can be found without judgement."""
    return tuple(_problems(phase, plan))


def _problems(phase: DetailedPhase, plan: PhasePlan) -> Iterator[PlanIssue]:
    covered = {named for task in plan.tasks for named in task.requirements}
    for requirement in phase.requirements:
        if requirement.id not in covered:
            yield _blocker("coverage", f"no task serves the requirement {requirement.id}")
    if all(task.kind is not TaskKind.AUTO for task in plan.tasks):
        yield _blocker("tasks", "every task waits for a person, so there is nothing to carry out")
    for task in plan.tasks:
        yield from _of_task(task)


def _of_task(task: PlanTask) -> Iterator[PlanIssue]:
    for each in task.criteria:
        vague = _VAGUE.search(each.criterion)
        if vague is not None and _ANCHOR.search(each.criterion) is None:
            yield _blocker(
                "criteria", f"{task.id}: “{each.criterion}” says “{vague.group().lower()}” and not what holds"
            )
    only_looks = all(_looks(each.command) for each in task.criteria)
    if task.kind is TaskKind.AUTO and only_looks and not (task.script or "").strip():
        yield _blocker("tests", f"{task.id}: its commands only look at files, and it has no script that runs anything")
    if any(len(text.encode()) > LONGEST for text in (task.script or "", *(each.command for each in task.criteria))):
        yield _blocker("tests", f"{task.id}: a command or a script of more than {LONGEST} bytes cannot be run")
    if task.kind is TaskKind.AUTO and not task.files:
        yield _blocker("files", f"{task.id}: it names no file")


def scope_problems(plan: PhasePlan, shut: Collection[str]) -> tuple[PlanIssue, ...]:
    """Return a blocker for every task that would write protected files, or names a pattern instead of files.

    `shut` are the protected files and folders.
    """
    closed = [path.casefold() for path in shut]
    found = []
    for task in plan.tasks:
        for path in task.files:
            folded = path.casefold()
            if any(folded == each or folded.startswith(f"{each}/") for each in closed):
                found.append(_blocker("files", f"{task.id}: {path} binds the run and must not be written"))
            if any(sign in path for sign in WILD):
                found.append(_blocker("files", f"{task.id}: {path} is a pattern and names no file"))
    return tuple(found)


def _looks(command: str) -> bool:
    """Return True if a command only looks at files.

    >>> [_looks(command) for command in ("grep -q x a.py", "! test -e a", "python -m pytest", "cat a | python -")]
    [True, True, False, False]
    """
    parts = re.split(r"&&|\|\||[|;]", command)
    words = [part.replace("!", " ").split() for part in parts]
    return all(word[0] in LOOKING for word in words if word)


def _blocker(dimension: str, description: str) -> PlanIssue:
    return PlanIssue(severity=PlanIssueSeverity.BLOCKER, description=description, dimension=dimension)


def is_too_large(plan: PhasePlan) -> bool:
    """Return True if a plan must be split before it is executed."""
    complex_tasks = sum(task.complexity is Complexity.COMPLEX for task in plan.tasks)
    files = {path for task in plan.tasks for path in task.files}
    return (complex_tasks > COMPLEX_TASKS or len(files) > FILES) and len(carried(plan)) > 1


def carried(plan: PhasePlan) -> tuple[PlanTask, ...]:
    """Return the tasks that agents execute, in the order of their waves."""
    auto = [task for task in plan.tasks if task.kind is TaskKind.AUTO]
    return tuple(sorted(auto, key=lambda task: task.wave))


def parts_of(plan: PhasePlan) -> tuple[tuple[PlanTask, ...], ...]:
    """Return a plan split into two or more parts that are small enough, in the order of its waves.

    A part is closed when one more task would make it too large; a single task is never split.
    """
    parts: list[list[PlanTask]] = []
    for task in carried(plan):
        if not parts or _is_full([*parts[-1], task]):
            parts.append([])
        parts[-1].append(task)
    if len(parts) == 1:
        middle = (len(parts[0]) + 1) // 2
        parts = [parts[0][:middle], parts[0][middle:]]
    return tuple(tuple(part) for part in parts)


def _is_full(tasks: list[PlanTask]) -> bool:
    complex_tasks = sum(task.complexity is Complexity.COMPLEX for task in tasks)
    files = {path for task in tasks for path in task.files}
    return len(tasks) > 1 and (complex_tasks > COMPLEX_TASKS or len(files) > FILES)
