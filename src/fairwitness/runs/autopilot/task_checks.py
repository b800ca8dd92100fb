"""The commands of a task, the problems that speak against it, and the category of its failure."""

from collections.abc import Iterator, Sequence

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.facts import StepFailureCause
from fairwitness.contracts.autopilot.plan import PlanTask
from fairwitness.contracts.autopilot.returns import ExecutorReturn
from fairwitness.contracts.autopilot.verification import MiniVerifierReturn, TaskCriterionStatus
from fairwitness.contracts.autopilot.vocabulary import FailureCategory, tally
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import visible_lines
from fairwitness.rules.claims import claim_differences, ended
from fairwitness.rules.graph_events import RED_MERGE
from fairwitness.runs.autopilot.commands import CriterionCommand
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.runs.autopilot.task_graphs import attempted, graph_of, statuses_of

SCRIPT = "the script of the task passes"
"""The criterion of a task's script."""
DISCREPANCY = "discrepancy"
_SHOWN = 300
_BY_ASSESSMENT = {
    Assessment.VIOLATION: FailureCategory.SCOPE_CREEP,
    Assessment.TIMEOUT: FailureCategory.TOOL_FAILURE,
    Assessment.LOST: FailureCategory.TOOL_FAILURE,
}
_BY_CHECK = (
    (("lint", "format"), FailureCategory.LINT_FAILURE),
    (("build",), FailureCategory.BUILD_FAILURE),
    (("compile", "syntax", "type", "ide-diagnostics"), FailureCategory.COMPILATION_FAILURE),
    (("scope",), FailureCategory.SCOPE_CREEP),
    (("it conflicts",), FailureCategory.COORDINATION_FAILURE),
)
"""How reasons of project checks and merges start, and their failure category."""


def task_commands(task: PlanTask) -> tuple[CriterionCommand, ...]:
    """Return everything that runs for a task: its script and the command of each criterion."""
    script = (CriterionCommand(SCRIPT, task.script),) if task.script else ()
    return (*script, *(CriterionCommand(each.criterion, each.command) for each in task.criteria))


def red(runs: Sequence[ExecutionResult]) -> tuple[ExecutionResult, ...]:
    """Return the commands that did not pass."""
    return tuple(run for run in runs if not run.passed)


def problems_of(runs: Sequence[ExecutionResult], check: MiniVerifierReturn | None) -> tuple[str, ...]:
    """Return what speaks against a task: commands that did not pass, and what its mini-verifier refused."""
    return tuple(dict.fromkeys((*(_of_run(run) for run in red(runs)), *_of_check(check))))


def _of_run(run: ExecutionResult) -> str:
    # the end of the output shows where a script failed
    said = visible_lines(run.stderr_truncated.strip() or run.stdout_truncated.strip())[-_SHOWN:]
    command = "" if run.criterion == SCRIPT else f" (`{run.command}`)"
    return f"{run.criterion}{command}: it {ended(run)}" + (f" and printed: {said}" if said else "")


def _of_check(check: MiniVerifierReturn | None) -> Iterator[str]:
    if check is None or check.pass_:
        return
    failed = [each for each in check.criteria_results if each.status is TaskCriterionStatus.FAIL]
    yield from (f"{each.criterion}: the check of the task says: {each.evidence}" for each in failed)
    if not failed:
        yield f"the check of the task refuses it: {'; '.join(check.concerns) or 'no reason is given'}"


def unfinished(said: ExecutorReturn) -> str | None:
    """Return why an executor says that it is not done, or None if it says it is."""
    (completed, total), (failed, _) = tally(said.tasks_completed), tally(said.tasks_failed)
    if total and completed == total and not failed:
        return None
    why = f": {'; '.join(said.deviations)}" if said.deviations else ""
    return f"its executor says that {said.tasks_completed} is completed{why}"


def category_of_runs(runs: Sequence[ExecutionResult]) -> FailureCategory:
    """Return the failure category of a task by its commands; the first known one counts."""
    known = (_BY_ASSESSMENT.get(run.assessment) for run in runs)
    return next((each for each in known if each is not None), FailureCategory.ACCEPTANCE_CRITERIA_UNMET)


def category_of(reason: str, *, is_done: bool) -> FailureCategory:
    """Return the failure category of an attempt that passed its own checks, or did not get that far.

    >>> category_of("lint: 2 new findings", is_done=True).value, category_of("prepare: no space", is_done=False).value
    ('lint_failure', 'tool_failure')
    """
    if not is_done:
        return FailureCategory.TOOL_FAILURE
    said = reason.removeprefix(RED_MERGE)
    found = (category for starts, category in _BY_CHECK if said.startswith(starts))
    return next(found, FailureCategory.ACCEPTANCE_CRITERIA_UNMET)


def failure_of(log: AutopilotLog, node: str, attempt: int, reason: str | None) -> StepFailureCause:
    """Return why a node failed: by its own checks, or by what came after them."""
    done, said = attempted(log, node, attempt), (reason or "").strip() or "it failed"
    known = None if done is None else done.category
    return StepFailureCause(category=known or category_of(said, is_done=done is not None), first_line=said)


def failures(log: AutopilotLog, *numbers: int) -> tuple[StepFailureCause, ...]:
    """Return why nodes of these graphs failed, in order."""
    return tuple(
        failure_of(log, name, graph_of(log, number).attempt, status.lastError)
        for number in numbers
        for name, status in statuses_of(log, number).items()
        if status.status in (NodeState.FAILED, NodeState.STALE)
    )


def executor_differences(said: ExecutorReturn, runs: Sequence[ExecutionResult]) -> tuple[str, ...]:
    """Return where an executor's account differs from what the harness saw."""
    claims = [claim for each in said.evidence for claim in each.commands_run]
    found = claim_differences(claims, runs)
    failed = red(runs)
    if failed and unfinished(said) is None:
        first = failed[0]
        return (*found, f"the task is said to be completed; the command of “{first.criterion}” {ended(first)}")
    return found


def note_differences(
    log: AutopilotLog, node: str, attempt: int, number: int, by: str, found: Sequence[str], *, tree: str
) -> None:
    """Record once where an agent's account differs from what was seen, even if it does not."""
    key = f"{DISCREPANCY}:{node}:{attempt}:{number}:{by}"
    if log.ledger.observation(log.run_id, key) is not None:
        return
    detail: dict[str, object] = {"by": by, "attempt": attempt, "number": number, "found": list(found)}
    row = log.observation(key, DISCREPANCY, node, detail, log.now(), holds=not found, task_id=node, tree=tree)
    log.ledger.record(log.run_id, lambda record: record.observation(row))
    killpoint("autopilot.discrepancy")
