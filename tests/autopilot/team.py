"""The recorded team of the small catalogue: for every dispatch of a run a session in which somebody does well."""

import re
from collections.abc import Iterator, Mapping, Sequence

from autopilot import sessions
from autopilot.sessions import Criterion, Document, create
from fairwitness.contracts.common.tools import Role
from fairwitness.demo.sessions import RecordedSession, RecordedTurn
from feature.grounds import call

TRIES = 3
"""For so many passes of a phase, steps of a pass and attempts of a task there is a good session."""
_STEPS = {
    "research": Role.PHASE_RESEARCHER,
    "plan": Role.PHASE_PLANNER,
    "plan_check": Role.PLAN_CHECKER,
    "verify": Role.PHASE_VERIFIER,
    "judge": Role.JUDGE,
    "rate": Role.RATER,
    "self": Role.SELF_AUDIT,
}


def role_of(name: str) -> Role:
    """Whose dispatch that is."""
    if re.search(r"-check-\d+$", name):
        return Role.MINI_VERIFIER
    if re.search(r"-debug-\d+$", name):
        return Role.DEBUGGER
    return _STEPS.get(name.partition("-")[0], Role.EXECUTOR)


def part(name: str, content: str = "good\n") -> tuple[str, Document]:
    """Writes a part."""
    return call("create_file", path=f"parts/{name}", content=content)


def path_of(phase: int, task: str) -> str:
    """The part that a task adds."""
    return f"parts/{phase}-{task}"


def criterion_of(phase: int, task: str) -> Criterion:
    """What must hold when a task is done."""
    return Criterion(f"The part {phase}-{task} is a good one", f"sh check.sh {path_of(phase, task)}")


def _task(phase: int, name: str) -> sessions.Task:
    path, wanted = path_of(phase, name), criterion_of(phase, name)
    return sessions.Task(
        phase,
        name,
        f"Add the part {path}, whose only line is: good.",
        f"{path} is there.",
        (wanted,),
        (f"CAT-{phase}", wanted.text),
        (create(path, "good\n"),),
        (f"{path}:1 -- good",),
    )


class Team:
    """The good sessions of a roadmap, by the instance of their dispatch."""

    def __init__(self, tasks: Mapping[int, tuple[str, ...]]) -> None:
        self._tasks = {phase: tuple(_task(phase, name) for name in names) for phase, names in tasks.items()}
        self.sessions = {session.instance: session for session in self._all()}

    def _all(self) -> Iterator[RecordedSession]:
        for phase, tasks in self._tasks.items():
            for number in range(1, TRIES + 1):
                for session in self._steps(phase, tasks, number):
                    *_, step = re.split(r"-\d+-\d+-\d+$", session.instance)[:1]
                    for try_ in range(1, TRIES + 1):
                        yield _called(session, f"{step}-{phase}-{number}-{try_}")
                yield from self._work(phase, tasks, number)
        yield self._audit()

    def _steps(self, phase: int, tasks: Sequence[sessions.Task], number: int) -> Iterator[RecordedSession]:
        seen = [(each.criteria[0], each.evidence[0]) for each in tasks]
        paths = tuple(path for task in tasks for path in task.writes)
        yield sessions.researched(phase, ("A part is one line.",), "Write the parts.", ("None.",), ("check.sh",))
        yield sessions.planned(phase, tasks)
        yield sessions.plan_checked(phase, 9.0, "One part for each task.")
        nothing: Document = {"status": "n/a", "detail": "the project has no such command"}
        checks = {
            "compile": nothing,
            "lint": nothing,
            "build": nothing,
            "tests": {"status": True, "detail": "sh check.sh -> OK"},
        }
        commands = ["sh check.sh -> OK", *(f"{each.command} -> OK" for each, _ in seen)]
        yield sessions.verified(phase, number, seen, paths, checks=checks, commands=commands)
        yield sessions.judged(
            phase,
            number,
            (f"Nothing holds that {paths[0]} has no further line.",),
            (f"{paths[0]}:1 -- good", "sh check.sh -> OK"),
            f"I looked at {paths[0]} before I read what the verifier says, and found one line. We differ in nothing.",
            paths,
        )
        card = [
            sessions.Scored(each, 9.3 + at % 3 / 10, where, f"{where.partition(':')[0]} is good; no test of its own.")
            for at, (each, where) in enumerate(seen)
        ]
        yield sessions.rated(phase, number, card, "Every part is there, and each is good.", "None: only new files.")

    def _work(self, phase: int, tasks: Sequence[sessions.Task], attempt: int) -> Iterator[RecordedSession]:
        for task in tasks:
            for session in sessions.carried_out(task):
                yield _called(session, session.instance.replace(f"-{task.id}-1", f"-{task.id}-{attempt}"))
            node = f"p{phase}-{task.id}-{attempt}"
            for number in range(1, TRIES + 1):
                yield _called(
                    sessions.checked(node, ((task.criteria[0], task.evidence[0]),), task.writes),
                    f"{node}-check-{number}",
                )
                yield _mended(f"{node}-debug-{number}", task)
        first, met = tasks[0], f"it stays as it was -- {tasks[0].evidence[0]}"
        cycle = f"p{phase}-cycle-{attempt}"
        notes = (create(f"notes/{phase}-{attempt}", "looked at\n"),)
        yield sessions.worked(cycle, f"p{phase}-cycle", (met,), (f"{first.criteria[0].command} -> OK",), notes)
        yield sessions.checked(cycle, ((first.criteria[0], first.evidence[0]),), ())
        yield _mended(f"p{phase}-debug-{attempt}-debug-1", first)

    def _audit(self) -> RecordedSession:
        results = [
            {
                "phase_id": str(phase),
                "requirements_checked": [
                    {
                        "requirement_id": f"CAT-{phase}",
                        "expected": "The catalogue has its parts.",
                        "actual_found": "They are there.",
                        "file_line_evidence": tasks[0].evidence[0],
                        "status": "pass",
                        "gap_description": None,
                        "fix_complexity": None,
                    }
                ],
            }
            for phase, tasks in self._tasks.items()
        ]
        count = len(results)
        aggregate = {
            "total_requirements_checked": count,
            "passed_on_first_check": count,
            "gaps_found": 0,
            "gap_details": [],
        }
        answer = {"audit_results": results, "aggregate": aggregate}
        return RecordedSession(Role.SELF_AUDIT, "self-audit-1", 1, answer, "All of it is there.")


def _called(session: RecordedSession, name: str) -> RecordedSession:
    return RecordedSession(session.role, name, 1, session.answer, session.closing_text, session.turns)


def _mended(name: str, task: sessions.Task) -> RecordedSession:
    answer: Document = {
        "fixed": True,
        "changes": [f"{path} is good now" for path in task.writes],
        "remaining_issues": [],
        "failure_categories": [],
    }
    return RecordedSession(
        Role.DEBUGGER, name, 1, answer, "Mended.", (RecordedTurn("It is written anew.", task.changes),)
    )
