"""EXECUTION-LOG.md: what became of each task, what its executor claims, and what the check right after it found."""

from collections.abc import Iterator, Sequence

from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.autopilot.phase_record import TaskStatus
from fairwitness.contracts.autopilot.returns import TaskEvidence
from fairwitness.contracts.autopilot.verifying import MiniVerifierReturn, TaskCriterionStatus
from fairwitness.contracts.autopilot.words import Grade
from fairwitness.contracts.common.base import Amount, Contract, Count, Maybe, Text, Texts
from fairwitness.contracts.common.ids import Commit, RelPath, SafeName
from fairwitness.kit.markdown import (
    ROWS,
    Markdown,
    cell,
    code,
    counted,
    line,
    listed,
    page,
    table,
    texts,
)
from fairwitness.runs.autopilot.wording import length, of_ten, title


class LoggedTask(Contract):
    """One task as it was carried out; a task that was never checked has no `check`."""

    id: SafeName
    description: Text
    status: TaskStatus
    commit: Commit | None
    files: tuple[RelPath, ...]
    evidence: TaskEvidence | None
    confidence: Grade | None
    check: MiniVerifierReturn | None
    debug_attempts: Count
    duration_seconds: Maybe[Amount] = None


def execution_page(phase: RoadmapPhase, tasks: Sequence[LoggedTask], deviations: Texts) -> str:
    """`EXECUTION-LOG.md`."""
    return page(_log(phase, tasks, deviations), whole="the run's events")


def _log(phase: RoadmapPhase, tasks: Sequence[LoggedTask], deviations: Texts) -> Iterator[Markdown]:
    completed = sum(task.status is TaskStatus.COMPLETED for task in tasks)
    yield title("Execution log", phase)
    yield Markdown("Written by Fair Witness. Status, commit and files are what it saw itself.")
    yield Markdown(
        "Evidence and confidence are claims of the executor; the mini-verification is another agent's claim."
    )
    yield Markdown(f"{completed} of {counted(len(tasks), 'task')} completed.")
    yield table(
        ("Task", "Status", "Commit", "Mini-verification", "Debug attempts", "Took"),
        [
            (
                code(task.id),
                _status(task.status),
                code(task.commit) if task.commit is not None else "none",
                _result(task.check),
                str(task.debug_attempts),
                "not known" if task.duration_seconds is None else length(task.duration_seconds),
            )
            for task in tasks
        ],
        "No task was carried out.",
    )
    yield Markdown("## Tasks")
    for task in tasks[:ROWS]:
        yield Markdown(f"### Task {task.id}: {line(task.description)}")
        yield Markdown("\n".join(_task(task)))
    yield Markdown("## Deviations from the plan")
    yield texts(deviations, "None were reported.")


def _status(status: TaskStatus) -> Markdown:
    word = status.value.upper()
    return Markdown(word if status is TaskStatus.COMPLETED else f"**{word}**")


def _result(check: MiniVerifierReturn | None) -> Markdown:
    if check is None:
        return Markdown("**NOT RUN**")
    return Markdown("PASS" if check.pass_ else "**FAIL**")


def _task(task: LoggedTask) -> Iterator[str]:
    yield f"- **Status:** {task.status.value.upper()}"
    yield f"- **Commit SHA:** {'none' if task.commit is None else code(task.commit)}"
    yield f"- **Files modified:** {listed(task.files, 'none')}"
    if task.evidence is None:
        yield "- **Evidence:** none was given"
    else:
        yield "- **Evidence:** (claims of the executor)"
        yield from _entries(task.evidence.criteria_met, "met: ", "no criterion is claimed to be met")
        yield from _entries(task.evidence.commands_run, "ran: ", "no command is claimed to have been run")
    yield f"- **Confidence:** {'not said' if task.confidence is None else of_ten(task.confidence)}"
    yield "- **Mini-Verification:**"
    yield f"  - **Result:** {_result(task.check)}"
    if task.check is not None:
        yield from _check(task.check)
    yield f"  - **Debug attempts:** {task.debug_attempts}"


def _check(check: MiniVerifierReturn) -> Iterator[str]:
    results = check.criteria_results
    failed = [result for result in results if result.status is TaskCriterionStatus.FAIL]
    yield f"  - **Criteria checked:** {len(results)}"
    yield f"  - **Criteria passed:** {len(results) - len(failed)}"
    if failed:
        yield "  - **Failures:**"
        for result in failed[:ROWS]:
            yield f"    - {line(result.criterion)}"
            yield f"      ({code(result.command)} said: {cell(result.command_output)}; seen: {cell(result.evidence)})"
    else:
        yield "  - **Failures:** None"
    if check.concerns:
        yield "  - **Concerns:**"
        yield from (f"  {entry}" for entry in _entries(check.concerns, "", ""))


def _entries(values: Sequence[str], label: str, otherwise: str) -> Iterator[str]:
    if not values:
        yield f"  - {otherwise}"
    yield from (f"  - {label}{line(value)}" for value in values[:ROWS])
    if len(values) > ROWS:
        yield f"  - … and {len(values) - ROWS} more"
