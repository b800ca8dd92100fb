"""Scripted cycles over phases of the small catalogue, and what each of our runs shows of autopilot's events."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from autopilot.grounds import USAGE, Grounds
from autopilot.runs import Run
from autopilot.sessions import Document
from autopilot.team import part, role_of
from fairwitness.agents.cassette_file import NO_PROMPT, Cassette, name_of, spell
from fairwitness.agents.roles import ROLES
from fairwitness.contracts.agents.cassette import CassetteHeader, CassetteTurn
from fairwitness.contracts.autopilot.rating import band_of
from fairwitness.rules.cost import standing_score
from fairwitness.rules.scores import mean_score
from feature.grounds import git

MANY = 50
PATIENT = {"no_progress_threshold": MANY, "same_error_threshold": MANY, "max_total_retries_per_run": MANY}
"""Settings with which the breaker keeps out of what is not about it."""

EMITS: Mapping[str, frozenset[str]] = {
    "remediation": frozenset(
        {
            "run_started",
            "run_completed",
            "checkpoint_written",
            "phase_started",
            "phase_completed",
            "step_started",
            "step_completed",
            "task_completed",
            "remediation_started",
            "remediation_completed",
            "confidence_diagnostic_written",
            "force_incomplete_marked",
            "batch_completion_report",
        }
    ),
    "quality": frozenset({"quality_remediation_started", "quality_remediation_completed", "quality_exhausted"}),
    "gaps": frozenset({"gaps_iteration_started", "gaps_iteration_completed", "gaps_exhausted"}),
    "force": frozenset({"force_reexecution_started"}),
    "conflict": frozenset({"flag_mutual_exclusivity_error"}),
    "retries": frozenset({"task_retried", "task_failed", "debug_attempt", "replan_attempt", "step_failed"}),
    "rollback": frozenset({"phase_failed", "phase_skipped", "rollback_initiated", "rollback_completed"}),
    "halt": frozenset({"run_halted", "run_resumed"}),
    "breaker": frozenset({"circuit_breaker_opened", "circuit_breaker_closed"}),
    "stamps": frozenset({"rubber_stamp_warning", "rubber_stamp_enhanced", "rubber_stamp_critical"}),
    "audit": frozenset({"self_audit_started", "self_audit_gap_found", "self_audit_gap_fixed", "self_audit_completed"}),
    "person": frozenset(
        {
            "human_verdict_recorded",
            "unnecessary_deferral_warning",
            "high_defer_rate_warning",
            "deferral_threshold_adjusted",
            "autonomous_resolution_success",
        }
    ),
}
"""By a name that a test asserts, the types of events that its runs bring about."""


def assert_emits(row: str, *runs: Run) -> None:
    """What is said of these runs in `EMITS` is so."""
    assert EMITS[row] - {kind for run in runs for kind in run.types()} == frozenset()


def scored(*scores: float, why: str | None = None, **more: Any) -> Callable[[Document], Document]:
    """A rating that gives the criteria these scores, and says of each what is missing; the score is their mean."""

    def said(good: Document) -> Document:
        score = mean_score(scores)
        for item, given in zip(good["scorecard"], scores, strict=True):
            path = item["evidence"].partition(":")[0]
            item |= {"score": given, "justification": why or f"{path}:1 names no maker, which cost {10 - given:.1f}"}
        return good | {"alignment_score": score, "score_band": band_of(score).value} | more

    return said


def cycle(
    grounds: Grounds, phase: int, number: int, graph: int, *scores: float, why: str | None = None, **judge: Any
) -> None:
    """A cycle as pass `number` of a phase, whose work is its `graph`-th: one more part, rated like this."""
    node, name = f"p{phase}-cycle-{graph}", f"{phase}-more-{number}-{graph}"
    worked, checked = grounds.good(f"p{phase}-cycle-1"), grounds.good(f"p{phase}-cycle-1-check-0")
    grounds.plays(node, whole=worked, calls=[part(name)])
    grounds.plays(f"{node}-check-0", whole=checked, calls=())
    grounds.plays(f"verify-{phase}-{number}-1", whole=grounds.good(f"verify-{phase}-1-1"), calls=())
    grounds.plays(f"judge-{phase}-{number}-1", whole=grounds.good(f"judge-{phase}-1-1") | judge, calls=())
    rated = scored(*scores, why=why)(grounds.good(f"rate-{phase}-1-1"))
    grounds.plays(f"rate-{phase}-{number}-1", whole=rated, calls=())


def refused(why: str) -> Document:
    """What a plan checker says who refuses a plan."""
    issue = {"severity": "blocker", "description": why}
    return {"pass": False, "issues": [issue], "confidence": 9.0, "blocker_count": 1, "warning_count": 0}


def only(*names: str) -> Callable[[Document], Document]:
    """A plan with these of its tasks."""

    def said(good: Document) -> Document:
        tasks = [task for task in good["tasks"] if task["id"] in names]
        return good | {"tasks": tasks, "total_tasks": len(tasks)}

    return said


def with_files(count: int) -> Callable[[Document], Document]:
    """A plan whose tasks may each write so many files."""

    def said(good: Document) -> Document:
        for task in good["tasks"]:
            task["files"] += [f"{task['files'][0]}-{number}" for number in range(2, count + 1)]
        return good

    return said


def split(grounds: Grounds, phase: int, letter: str, task: str, score: float, *, number: int = 1) -> None:
    """The sessions of a part that carries out one task of a phase; `number` counts its passes."""
    whole, first, wanted = f"{phase}{letter}", f"p{phase}-{task}-1", f"The part {phase}-{task} is a good one"
    done = [part(f"{phase}-{task}")]
    grounds.plays(f"p{whole}-{task}-1", whole=grounds.good(first), calls=done)
    grounds.plays(f"p{whole}-{task}-1-check-0", whole=grounds.good(f"{first}-check-0"))
    for step in ("verify", "judge"):
        grounds.plays(f"{step}-{whole}-{number}-1", whole=grounds.good(f"{step}-{phase}-1-1"))
    rated = grounds.good(f"rate-{phase}-1-1")
    rated["scorecard"] = [item for item in rated["scorecard"] if item["criterion"] == wanted]
    rated["commands_run"] = [rated["scorecard"][0]["verification_command"]]
    grounds.plays(f"rate-{whole}-{number}-1", whole=scored(score)(rated))


LOOK = "look"
"""The task that only a person can decide."""
UNSURE: Document = {
    "autonomous_resolution_attempted": True,
    "autonomous_confidence": 4.0,
    "deferral_evidence": [
        {
            "criterion": "The label can be read in the dark cellar",
            "methods_attempted": ["looked for a picture of the label: there is none"],
            "why_insufficient": "How dark the cellar is no file says.",
        }
    ],
}
"""What a verifier says besides who needs a person."""
SURE: Document = UNSURE | {"autonomous_confidence": 8.0, "deferral_evidence": []}


def by_a_person(phase: int) -> Callable[[Document], Document]:
    """A plan with a task for a person behind the others."""
    task: Document = {
        "id": LOOK,
        "kind": "checkpoint:human-verify",
        "complexity": "simple",
        "wave": 2,
        "files": [],
        "action": "Carry the labelled box down to the cellar, switch off the lamp, and read its number aloud",
        "criteria": [{"criterion": "The number of box 7 can be read in the cellar", "command": "sh check.sh"}],
        "done": "Somebody has read it.",
        "requirements": [f"CAT-{phase}"],
    }

    def said(good: Document) -> Document:
        tasks = [*good["tasks"], task]
        return good | {"tasks": tasks, "total_tasks": len(tasks), "waves": 2}

    return said


def insists(grounds: Grounds, name: str, answer: Document, *, times: int, sessions: int) -> None:
    """Somebody who answers the same, however often they are asked, in so many sessions."""
    role = role_of(name)
    header = CassetteHeader(
        cassette=1, role=role, instance=name, model="scripted", prompt=NO_PROMPT, answer=ROLES[role].answer
    )
    turns = tuple(
        CassetteTurn(turn=turn, text="Done.", calls=(), submitted=answer, usage=USAGE, ms=0, seen=None)
        for turn in range(times)
    )
    for number in range(1, sessions + 1):
        (grounds.cassettes / name_of(role, name, number)).write_bytes(spell(Cassette(header, turns)))


def merge(run: Run) -> None:
    """What somebody does who likes what a run did."""
    git(run.top, "merge", "-q", "--ff-only", run.target)


def add(grounds: Grounds, *names: str, content: str = "good\n") -> None:
    """Parts that a person wrote before a run begins."""
    for name in names:
        grounds.commit(f"parts/{name}", content)


def history(run: Run, phase: str) -> list[tuple[float, str, int]]:
    """The scores of a phase, as its state keeps them."""
    entries = run.state().phases[phase].score_history or ()
    return [(entry.score, entry.flag.value, entry.cycle) for entry in entries]


def standing(run: Run, phase: str) -> float | None:
    """The score that a phase has now."""
    return standing_score(run.state().phases[phase])


def loops(run: Run, phase: str) -> list[str | None]:
    """What the passes of a phase were for: a loop, or none."""
    return [None if each.loop is None else each.loop.value for each in run.passes() if each.phase == phase]


def tree_of(top: Path, name: str) -> str:
    """The files of a commit, as one name."""
    return git(top, "rev-parse", f"{name}^{{tree}}").strip()
