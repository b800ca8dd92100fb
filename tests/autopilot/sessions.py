"""Sessions of an autopilot run in which every agent does well, built from the tasks of a phase."""

import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

from fairwitness.contracts.autopilot.plan import TaskKind
from fairwitness.contracts.autopilot.rating import band_of
from fairwitness.contracts.autopilot.vocabulary import Complexity, Recommendation, StepName
from fairwitness.contracts.common.tools import Role, Tool
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.demo.sessions import RecordedCall, RecordedSession, RecordedTurn
from fairwitness.rules.scores import mean_score

Document = dict[str, Any]
FIRST_CHECK = 0
"""The number of the check that follows an executor at once; a check after a debugger has the debugger's number."""
_ROLES = {
    StepName.RESEARCH: Role.PHASE_RESEARCHER,
    StepName.PLAN: Role.PHASE_PLANNER,
    StepName.PLAN_CHECK: Role.PLAN_CHECKER,
    StepName.VERIFY: Role.PHASE_VERIFIER,
    StepName.JUDGE: Role.JUDGE,
    StepName.RATE: Role.RATER,
}


class Criterion(NamedTuple):
    """What must be true when a task is done, and the command that decides it."""

    text: str
    command: str


class Task(NamedTuple):
    """One task of a plan, with what its executor writes and the lines that meet its criteria."""

    phase: int
    id: str
    action: str
    done: str
    criteria: tuple[Criterion, ...]
    requirements: tuple[str, ...]
    changes: tuple[RecordedCall, ...]
    evidence: tuple[str, ...]
    """For each criterion the line that meets it."""

    @property
    def writes(self) -> tuple[str, ...]:
        """The files that it changes."""
        return tuple(dict.fromkeys(str(call.args["path"]) for call in self.changes))


class Scored(NamedTuple):
    """A criterion with its score, the line that shows it, and a justification."""

    criterion: Criterion
    score: float
    evidence: str
    why: str


def create(path: str, content: str) -> RecordedCall:
    """Return a call that writes a whole file."""
    return RecordedCall(Tool.CREATE_FILE, {"path": path, "content": content})


def _step(step: StepName, phase: int, pass_: int, answer: Document, text: str, *turns: RecordedTurn) -> RecordedSession:
    return RecordedSession(_ROLES[step], f"{step.value}-{phase}-{pass_}-1", 1, answer, text, turns)


def _reading(*paths: str) -> tuple[RecordedTurn, ...]:
    calls = tuple(RecordedCall(Tool.READ_FILE, {"path": path}) for path in paths)
    return (RecordedTurn("First what is there.", calls),) if paths else ()


def researched(
    phase: int, findings: tuple[str, ...], approach: str, risks: tuple[str, ...], reads: tuple[str, ...]
) -> RecordedSession:
    """Return the research of a phase."""
    answer = {
        "key_findings": list(findings),
        "recommended_approach": approach,
        "risks": list(risks),
        "open_questions": [],
    }
    return _step(StepName.RESEARCH, phase, 1, answer, approach, *_reading(*reads))


def planned(phase: int, tasks: Sequence[Task]) -> RecordedSession:
    """Return the plan of a phase: tasks of one wave."""
    answer: Document = {
        "plans_created": 1,
        "waves": 1,
        "total_tasks": len(tasks),
        "complexity": Complexity.SIMPLE.value,
        "dependencies": [],
        "concerns": [],
        "tasks": [_task(task) for task in tasks],
    }
    return _step(StepName.PLAN, phase, 1, answer, f"{len(tasks)} tasks, with commands behind every criterion.")


def _task(task: Task) -> Document:
    return {
        "id": task.id,
        "kind": TaskKind.AUTO.value,
        "complexity": Complexity.SIMPLE.value,
        "wave": 1,
        "files": list(task.writes),
        "action": task.action,
        "criteria": [{"criterion": each.text, "command": each.command} for each in task.criteria],
        "done": task.done,
        "requirements": list(task.requirements),
        "script": _script(task.criteria),
    }


def _script(criteria: Sequence[Criterion]) -> str:
    tries = "".join(f"try {shlex.quote(each.text)} {shlex.quote(each.command)}\n" for each in criteria)
    return (
        "failed=0\n"
        "try() {\n"
        '    if sh -c "$2" >/dev/null 2>&1; then echo "PASS: $1"; else echo "FAIL: $1"; failed=1; fi\n'
        "}\n"
        f"{tries}"
        "exit $failed\n"
    )


def plan_checked(phase: int, confidence: float, remark: str) -> RecordedSession:
    """Return the check of a plan that may be carried out, with a remark that does not stop it."""
    answer: Document = {
        "pass": True,
        "issues": [{"severity": "info", "description": remark}],
        "confidence": confidence,
        "blocker_count": 0,
        "warning_count": 0,
    }
    return _step(StepName.PLAN_CHECK, phase, 1, answer, "It would reach the goal of the phase.")


def carried_out(task: Task) -> tuple[RecordedSession, RecordedSession]:
    """Return what the executor of a task does and claims, and the check of the task."""
    node = f"p{task.phase}-{task.id}-1"
    results = tuple(zip(task.criteria, task.evidence, strict=True))
    met = [f"{criterion.text} -- {where}" for criterion, where in results]
    return worked(node, task.id, met, _passed(task.criteria), task.changes), checked(node, results, task.writes)


def worked(
    node: str, name: str, met: Sequence[str], ran: Sequence[str], changes: tuple[RecordedCall, ...]
) -> RecordedSession:
    """Return an executor's session; the harness fills in its commits."""
    answer: Document = {
        "tasks_completed": "1/1",
        "tasks_failed": "0/1",
        "evidence": [{"task_id": name, "criteria_met": list(met), "commands_run": list(ran)}],
        "deviations": [],
    }
    return RecordedSession(
        Role.EXECUTOR, node, 1, answer, f"{name}: done.", (RecordedTurn("Tests, then code.", changes),)
    )


def checked(node: str, results: Sequence[tuple[Criterion, str]], reads: Sequence[str]) -> RecordedSession:
    """Return the check of a task that passes: each criterion with its command and the line that meets it."""
    answer: Document = {
        "pass": True,
        "criteria_results": [
            {
                "criterion": criterion.text,
                "status": "pass",
                "evidence": where,
                "command": criterion.command,
                "command_output": "",
            }
            for criterion, where in results
        ],
        "concerns": [],
        "commands_run": _passed([criterion for criterion, _ in results]),
    }
    name = f"{node}-check-{FIRST_CHECK}"
    return RecordedSession(Role.MINI_VERIFIER, name, 1, answer, "It holds.", _reading(*reads))


def _passed(criteria: Sequence[Criterion]) -> list[str]:
    """Return the commands of some criteria as somebody reports them who saw them pass."""
    return [f"{each.command} -> exit code 0" for each in criteria]


def verified(
    phase: int,
    pass_: int,
    evidence: Sequence[tuple[Criterion, str]],
    reads: Sequence[str],
    *,
    checks: Document,
    commands: Sequence[str],
) -> RecordedSession:
    """Return a verification that passes everything."""
    answer: Document = {
        "pass": True,
        "automated_checks": checks,
        "criteria_results": [
            {"criterion": criterion.text, "status": "verified", "evidence": seen} for criterion, seen in evidence
        ],
        "execution_results": [
            {
                "criterion": criterion.text,
                "command": criterion.command,
                "exit_code": 0,
                "output": "",
                "assessment": Assessment.PASS.value,
            }
            for criterion, _ in evidence
        ],
        "commands_run": list(commands),
        "failures": [],
        "failure_categories": [],
        "scope_creep": [],
    }
    return _step(StepName.VERIFY, phase, pass_, answer, "Nothing failed.", *_reading(*reads))


def judged(
    phase: int, pass_: int, concerns: tuple[str, ...], evidence: tuple[str, ...], notes: str, reads: tuple[str, ...]
) -> RecordedSession:
    """Return the session of a judge who agrees with the verifier."""
    answer: Document = {
        "recommendation": Recommendation.PROCEED.value,
        "concerns": list(concerns),
        "independent_evidence": list(evidence),
        "verifier_agreement": True,
        "verifier_missed": [],
        "scope_creep": [],
        "missing_requirements": [],
        "notes": notes,
    }
    return _step(StepName.JUDGE, phase, pass_, answer, notes, *_reading(*reads))


def rated(phase: int, pass_: int, card: Sequence[Scored], why: str, *side_effects: str) -> RecordedSession:
    """Return a scorecard; its score is the mean, rounded down."""
    score = mean_score([item.score for item in card])
    answer: Document = {
        "alignment_score": score,
        "scorecard": [
            {
                "criterion": item.criterion.text,
                "score": item.score,
                "max_score": 10.0,
                "verification_command": item.criterion.command,
                "command_output": "",
                "evidence": item.evidence,
                "justification": item.why,
            }
            for item in card
        ],
        "aggregate_justification": why,
        "side_effects": list(side_effects),
        "commands_run": [item.criterion.command for item in card],
        "score_band": band_of(score).value,
    }
    return _step(StepName.RATE, phase, pass_, answer, f"{score} of 10.")
