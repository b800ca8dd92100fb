"""How the sessions of the demo's team are written down: who is asked what, and what each of them gives back."""

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from fairwitness.app.demo_autopilot.roadmap import COMMANDS, Held
from fairwitness.app.demo_feature.scripts import Call, Document, Said, Session, read
from fairwitness.contracts.autopilot.plan import TaskKind
from fairwitness.contracts.autopilot.score import band_of
from fairwitness.contracts.autopilot.words import Complexity, Recommendation, StepName
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.words import Assessment
from fairwitness.rules.scoring import mean_score

OK = "OK"
"""What unittest prints last if nothing failed."""
FIRST_CHECK = 0
"""The number of the check that follows an executor at once; those after a debugger have its number."""
_ROLES = {
    StepName.RESEARCH: Role.PHASE_RESEARCHER,
    StepName.PLAN: Role.PHASE_PLANNER,
    StepName.PLAN_CHECK: Role.PLAN_CHECKER,
    StepName.VERIFY: Role.PHASE_VERIFIER,
    StepName.JUDGE: Role.JUDGE,
    StepName.RATE: Role.RATER,
}


class Task(NamedTuple):
    """One task of a plan, with what its executor does and where the criteria can be seen to be met."""

    phase: int
    id: str
    action: str
    done: str
    held: tuple[Held, ...]
    requirements: tuple[str, ...]
    changes: tuple[Call, ...]
    evidence: tuple[str, ...]
    """For each criterion the place that meets it."""
    reads: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def writes(self) -> tuple[str, ...]:
        """The files that it changes."""
        return self.files or tuple(dict.fromkeys(str(call.args["path"]) for call in self.changes))


def shown(path: str, content: str, text: str) -> str:
    """A piece of evidence: the line of a file in which a text stands, and the line."""
    number, line = next((at, line) for at, line in enumerate(content.splitlines(), start=1) if text in line)
    return f"{path}:{number} -- {line.strip()}"


def _step(step: StepName, phase: int, pass_: int, answer: Document, words: str, *turns: Said) -> Session:
    return Session(_ROLES[step], f"{step.value}-{phase}-{pass_}-1", 1, answer, words, turns)


def _looked(*paths: str) -> tuple[Said, ...]:
    return (Said("First what is there.", read(*paths)),) if paths else ()


def researched(
    phase: int, findings: tuple[str, ...], approach: str, risks: tuple[str, ...], reads: tuple[str, ...]
) -> Session:
    """What the plan of a phase has to know."""
    answer = {
        "key_findings": list(findings),
        "recommended_approach": approach,
        "risks": list(risks),
        "open_questions": [],
    }
    return _step(StepName.RESEARCH, phase, 1, answer, approach, *_looked(*reads))


def planned(phase: int, tasks: Sequence[Task], *others: Document, concerns: tuple[str, ...] = ()) -> Session:
    """The plan of a phase: tasks of one wave, and others that stand there as they are."""
    documents = [*(_task(task) for task in tasks), *others]
    answer: Document = {
        "plans_created": 1,
        "waves": len({document["wave"] for document in documents}),
        "total_tasks": len(documents),
        "complexity": Complexity.SIMPLE.value,
        "dependencies": [],
        "concerns": list(concerns),
        "tasks": documents,
    }
    return _step(StepName.PLAN, phase, 1, answer, f"{len(documents)} tasks, with commands behind every criterion.")


def _task(task: Task) -> Document:
    return {
        "id": task.id,
        "kind": TaskKind.AUTO.value,
        "complexity": Complexity.SIMPLE.value,
        "wave": 1,
        "files": list(task.writes),
        "action": task.action,
        "criteria": [{"criterion": held.criterion, "command": held.command} for held in task.held],
        "done": task.done,
        "requirements": list(task.requirements),
        "script": _script(task.held),
    }


def _script(held: Sequence[Held]) -> str:
    tries = "".join(f"try {shlex.quote(each.criterion)} {shlex.quote(each.command or 'false')}\n" for each in held)
    return (
        "failed=0\n"
        "try() {\n"
        '    if sh -c "$2" >/dev/null 2>&1; then echo "PASS: $1"; else echo "FAIL: $1"; failed=1; fi\n'
        "}\n"
        f"{tries}"
        "exit $failed\n"
    )


def plan_checked(phase: int, confidence: float, remark: str) -> Session:
    """A plan that may be carried out, with a remark that keeps nobody."""
    answer: Document = {
        "pass": True,
        "issues": [{"severity": "info", "description": remark}],
        "confidence": confidence,
        "blocker_count": 0,
        "warning_count": 0,
    }
    return _step(StepName.PLAN_CHECK, phase, 1, answer, "It would reach the goal of the phase.")


def carried_out(task: Task, *, deviations: tuple[str, ...] = (), concerns: tuple[str, ...] = ()) -> tuple[Session, ...]:
    """What the executor of a task does and claims, and what the check of the task finds."""
    node = f"p{task.phase}-{task.id}-1"
    met = [f"{held.criterion} -- {where}" for held, where in zip(task.held, task.evidence, strict=True)]
    built = worked(node, task.id, met, _passed(task.held), task.changes, task.reads, deviations)
    return built, checked(node, tuple(zip(task.held, task.evidence, strict=True)), task.writes, concerns)


def worked(
    node: str,
    name: str,
    met: Sequence[str],
    ran: Sequence[str],
    changes: tuple[Call, ...],
    reads: tuple[str, ...],
    deviations: tuple[str, ...] = (),
) -> Session:
    """An executor that does all it was given; which commits that makes only the harness knows."""
    answer: Document = {
        "tasks_completed": "1/1",
        "tasks_failed": "0/1",
        "evidence": [{"task_id": name, "criteria_met": list(met), "commands_run": list(ran)}],
        "deviations": list(deviations),
    }
    turns = (*_looked(*reads), Said("Tests, then code.", changes))
    return Session(Role.EXECUTOR, node, 1, answer, f"{name}: done.", turns)


def checked(
    node: str, results: Sequence[tuple[Held, str]], reads: Sequence[str], concerns: tuple[str, ...] = ()
) -> Session:
    """The check of a task that passes: each criterion with its command and the place that meets it."""
    answer: Document = {
        "pass": True,
        "criteria_results": [
            {
                "criterion": held.criterion,
                "status": "pass",
                "evidence": where,
                "command": held.command,
                "command_output": _printed(held.command or ""),
            }
            for held, where in results
        ],
        "concerns": list(concerns),
        "commands_run": _passed([held for held, _ in results]),
    }
    name = f"{node}-check-{FIRST_CHECK}"
    return Session(Role.MINI_VERIFIER, name, 1, answer, "It holds.", _looked(*reads))


def _passed(held: Sequence[Held]) -> list[str]:
    """Commands of which somebody says that they pass."""
    return [f"{each.command} -> {_printed(each.command) or 'exit code 0'}" for each in held if each.command is not None]


def _printed(command: str) -> str:
    """What a command prints that passes, as far as it is worth a word."""
    return OK if "unittest" in command else ""


def verified(
    phase: int,
    pass_: int,
    evidence: Sequence[tuple[Held, str]],
    reads: Sequence[str],
    *,
    more: Document | None = None,
) -> Session:
    """A verification that passes everything: criteria with the commands that were run for them, and what was seen."""
    answer: Document = {
        "pass": True,
        "automated_checks": {
            "compile": {"status": True, "detail": f"{COMMANDS['compile']} -> exit code 0"},
            "lint": {"status": True, "detail": f"{COMMANDS['lint']} -> exit code 0"},
            "build": {"status": "n/a", "detail": "the project has nothing to build"},
            "tests": {"status": True, "detail": f"{COMMANDS['test']} -> {OK}"},
        },
        "criteria_results": [
            {"criterion": held.criterion, "status": "verified", "evidence": seen} for held, seen in evidence
        ],
        "execution_results": [
            {
                "criterion": held.criterion,
                "command": held.command,
                "exit_code": 0,
                "output": _printed(held.command),
                "assessment": Assessment.PASS.value,
            }
            for held, _ in evidence
            if held.command is not None
        ],
        "commands_run": [f"{COMMANDS['test']} -> {OK}", *_passed([held for held, _ in evidence])],
        "failures": [],
        "failure_categories": [],
        "scope_creep": [],
        **(more or {}),
    }
    return _step(StepName.VERIFY, phase, pass_, answer, "Nothing failed.", *_looked(*reads))


def judged(
    phase: int,
    pass_: int,
    concerns: tuple[str, ...],
    evidence: tuple[str, ...],
    notes: str,
    reads: tuple[str, ...],
    *,
    wants: Recommendation = Recommendation.PROCEED,
    missed: tuple[str, ...] = (),
    missing: tuple[str, ...] = (),
) -> Session:
    """A second opinion; who misses nothing agrees with the verifier."""
    answer: Document = {
        "recommendation": wants.value,
        "concerns": list(concerns),
        "independent_evidence": list(evidence),
        "verifier_agreement": not missed,
        "verifier_missed": list(missed),
        "scope_creep": [],
        "missing_requirements": list(missing),
        "notes": notes,
    }
    return _step(StepName.JUDGE, phase, pass_, answer, notes, *_looked(*reads))


class Scored(NamedTuple):
    """A criterion with its score, the line that shows it, and what earned and cost points."""

    held: Held
    score: float
    evidence: str
    why: str


def rated(phase: int, pass_: int, card: Sequence[Scored], why: str, *side_effects: str) -> Session:
    """A scorecard; its score is the mean, rounded down."""
    score = mean_score([item.score for item in card])
    commands = [item.held.command or "false" for item in card]
    answer: Document = {
        "alignment_score": score,
        "scorecard": [
            {
                "criterion": item.held.criterion,
                "score": item.score,
                "max_score": 10.0,
                "verification_command": command,
                "command_output": "",
                "evidence": item.evidence,
                "justification": item.why,
            }
            for item, command in zip(card, commands, strict=True)
        ],
        "aggregate_justification": why,
        "side_effects": list(side_effects),
        "commands_run": commands,
        "score_band": band_of(score).value,
    }
    return _step(StepName.RATE, phase, pass_, answer, f"{score} of 10.")
