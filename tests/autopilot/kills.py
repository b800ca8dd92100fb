"""A small roadmap as a run that is killed and resumed: how it is laid out, and how what it leaves is read.

It passes as much of autopilot as a run can that comes to a good end. Phase 1 has two tasks: the first is done badly,
and a debugger mends it; the executor of the second leaves something where it may not, so that its work is put back and
the phase has to be debugged. Phase 2 is rated below nine; its first cycle makes that worse and is taken back, its
second reaches nine. The self-audit then finds a gap that is closed, and looks again.
"""

import json
from collections.abc import Callable
from pathlib import Path

from autopilot.grounds import Grounds, part
from autopilot.remains import assert_clean, content_of
from autopilot.sessions import Document
from fairwitness.contracts.autopilot.plan import TaskKind
from fairwitness.contracts.autopilot.rating import band_of
from fairwitness.contracts.autopilot.vocabulary import Complexity
from feature.grounds import call
from feature.kills import Play

REPOSITORY = "catalogue"
TASKS = {1: ("one", "two"), 2: ("part",)}
LINT = "touch linted"
"""The project's linter, which leaves something where it is run."""
PAGES = ".autopilot/\n.planning/phases/\n"
ORIGINS = "notes/origins.md"
MISSING = f"{ORIGINS}:1 says of no part where it is from, and `parts/2-part` is one"
ALONE, TOGETHER = 1, 2
"""How many tasks are worked on at a time. With one, and a wave for each, nothing is merged while an attempt is made:
the order of everything is settled, and all of it can be compared."""


def lay_grounds(root: Path, cap: int) -> Grounds:
    """The repository with its roadmap, and the team that carries it out."""
    table = {"audit": True, "cap": cap}
    breaker = {"no_progress_threshold": 20}  # a cycle that is taken back is none
    grounds = Grounds.lay_out(root, phases=len(TASKS), tasks=TASKS, breaker=breaker, autopilot=table)
    config = grounds.top / ".planning" / "config.json"
    said = json.loads(config.read_text())
    said["project"]["commands"]["lint"] = LINT
    grounds.commit(".planning/config.json", json.dumps(said), "chore: a linter")
    grounds.commit(ORIGINS, "# Origins\n")
    ignored = (grounds.top / ".gitignore").read_text()
    grounds.commit(".gitignore", f"{ignored}{PAGES}", "chore: pages of a run are nobody's change")
    for number in ("1-1-1", "1-1-2", "2-1-1", "2-2-1", "2-3-1"):
        grounds.plays(f"verify-{number}", _linted)
    if cap == ALONE:
        grounds.plays("plan-1-1-1", _one_behind_the_other)
    _done_badly_once(grounds)
    _rated_low(grounds)
    _with_a_gap(grounds)
    return grounds


def _linted(said: Document) -> Document:
    said["automated_checks"]["lint"] = {"status": True, "detail": f"{LINT} -> exit code 0"}
    return said


def _one_behind_the_other(said: Document) -> Document:
    for wave, task in enumerate(said["tasks"], start=1):
        task["wave"] = wave
    return said | {"waves": len(said["tasks"])}


def _done_badly_once(grounds: Grounds) -> None:
    grounds.plays("p1-one-1", calls=[part("1-one", "bad\n")])
    grounds.plays("p1-two-1", calls=[part("1-two"), call("run_in_terminal", command=LINT)])
    grounds.plays("p1-debug-2-debug-1", calls=[part("1-two")])


def _rated_low(grounds: Grounds) -> None:
    for number, score in ((1, 8.6), (2, 8.1), (3, 9.3)):
        grounds.plays(f"rate-2-{number}-1", _scored(score))
    for number in (2, 3):
        told = f"# Origins\n\nparts/2-part: made here, said {number - 1} times.\n"
        grounds.plays(f"p2-cycle-{number}", calls=[call("create_file", path=ORIGINS, content=told)])


def _scored(score: float) -> Callable[[Document], Document]:
    def scored(said: Document) -> Document:
        for item in said["scorecard"]:
            item |= {"score": score, "justification": MISSING}
        return said | {"alignment_score": score, "score_band": band_of(score).value}

    return scored


def _with_a_gap(grounds: Grounds) -> None:
    good = grounds.good("self-audit-1")
    gap: Document = {
        "requirement_id": "CAT-1",
        "phase_id": "1",
        "gap_description": "parts/1-three is not in the catalogue",
        "fix_complexity": "small",
        "suggested_fix": "add parts/1-three with the line: good",
    }

    def found(said: Document) -> Document:
        said["audit_results"][0]["requirements_checked"][0] |= {
            "actual_found": "one part of three is missing",
            "status": "gap",
            "gap_description": gap["gap_description"],
            "fix_complexity": gap["fix_complexity"],
        }
        said["aggregate"] |= {"passed_on_first_check": 1, "gaps_found": 1, "gap_details": [gap]}
        return said

    grounds.plays("self-audit-1", found)
    grounds.plays("self-audit-2", whole=good)
    closed: Document = {
        "tasks_completed": "1/1",
        "tasks_failed": "0/1",
        "evidence": [{"task_id": "audit-1", "criteria_met": ["it is there -- parts/1-three:1"], "commands_run": []}],
        "deviations": [],
    }
    grounds.plays("audit-1-1", whole=closed, calls=[part("1-three")])


def put_to_a_person(grounds: Grounds, phase: int, task: str) -> None:
    """Lets a phase need a person's word: the plan has a task for one, and the verifier is unsure after it tried."""
    wanted = f"The part {phase}-{task} feels good in the hand"
    by_a_person: Document = {
        "id": "feel",
        "kind": TaskKind.HUMAN_VERIFY.value,
        "complexity": Complexity.SIMPLE.value,
        "wave": 2,
        "files": [],
        "action": "Take the part into your hand and say how it feels",
        "criteria": [{"criterion": wanted, "command": f"sh check.sh parts/{phase}-{task}"}],
        "done": "Somebody had it in their hand.",
        "requirements": [f"CAT-{phase}"],
    }
    unsure: Document = {
        "autonomous_resolution_attempted": True,
        "autonomous_confidence": 4.0,
        "deferral_evidence": [
            {
                "criterion": wanted,
                "methods_attempted": ["read parts, which is one line", "looked for a picture of it: there is none"],
                "why_insufficient": "How a part feels no file says.",
            }
        ],
    }

    def planned(said: Document) -> Document:
        return said | {"tasks": [*said["tasks"], by_a_person], "total_tasks": said["total_tasks"] + 1, "waves": 2}

    grounds.plays(f"plan-{phase}-1-1", planned)
    grounds.plays(f"verify-{phase}-1-1", unsure)


def _lay(root: Path, alone: bool) -> str:
    root.mkdir(parents=True)
    return lay_grounds(root, ALONE if alone else TOGETHER).begin("all", "--complete").run_id


AUTOPILOT = Play(REPOSITORY, _lay, "COMPLETED", content_of, assert_clean)
