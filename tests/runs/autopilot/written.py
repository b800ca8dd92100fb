"""Documents of autopilot as agents and the harness would leave them, small and typed."""

from typing import Any

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.autopilot.phase_record import AutomatedChecks
from fairwitness.contracts.autopilot.plan import PlanCriterion, PlanTask, TaskKind
from fairwitness.contracts.autopilot.rating import RatingReturn
from fairwitness.contracts.autopilot.returns import JudgeReturn, PlannerReturn, ResearcherReturn
from fairwitness.contracts.autopilot.verification import MiniVerifierReturn, VerifierReturn
from fairwitness.contracts.autopilot.vocabulary import Complexity, PhaseType
from support.fixtures import value_of

RUN = "run-2026-02-09-143052"
NOW = "2026-02-09T16:45:00Z"
COMMIT = "abc1234"
PHASE = RoadmapPhase(id="5", name="Line numbers", type=PhaseType.DATA, depends_on=())


def phase(name: str = "Line numbers") -> RoadmapPhase:
    """Phase 5, under any name."""
    return RoadmapPhase.model_construct(id="5", name=name, type=PhaseType.DATA, depends_on=())


def researcher() -> ResearcherReturn:
    return ResearcherReturn.model_validate(value_of("003/filled-researcher-return.json"))


def planner(**changes: object) -> PlannerReturn:
    return PlannerReturn.model_validate(value_of("003/filled-planner-return.json") | changes)


def plan_task(number: int = 1, **changes: Any) -> PlanTask:
    """A task of the plan: `05-01`."""
    said: dict[str, Any] = {
        "id": f"05-0{number}",
        "script": "python3 -m pytest -q",
        "kind": TaskKind.AUTO,
        "complexity": Complexity.SIMPLE,
        "wave": number,
        "files": ("src/token.py",),
        "action": "Carry the line in the token.\nLeave the order alone.",
        "criteria": (
            PlanCriterion(criterion="Tokens carry lines", command="grep -n 'line: int' src/token.py 2>&1 && true"),
        ),
        "done": "A token knows its line.",
        "requirements": ("REQ-01",),
    }
    return PlanTask(**said | changes)


def mini_verifier(**changes: object) -> MiniVerifierReturn:
    return MiniVerifierReturn.model_validate(value_of("003/filled-mini-verifier-return.json") | changes)


def verifier(**changes: object) -> VerifierReturn:
    """A verifier that found the build broken."""
    return VerifierReturn.model_validate(value_of("003/filled-verifier-return.json") | changes)


def content_verifier() -> VerifierReturn:
    """A verifier that found nothing wrong."""
    check = {"status": True, "detail": "0 errors"}
    return VerifierReturn.model_validate(
        {
            "pass": True,
            "automated_checks": {"compile": check, "lint": check, "build": {"status": "n/a", "detail": ""}},
            "criteria_results": [
                {"criterion": "Tokens carry lines", "status": "verified", "evidence": "src/token.py:12"}
            ],
            "verification_duration_seconds": 184.5,
            "commands_run": ["pytest -q -> 14 passed"],
            "failures": [],
            "failure_categories": [],
            "scope_creep": [],
        }
    )


def judge(**changes: object) -> JudgeReturn:
    return JudgeReturn.model_validate(value_of("003/filled-judge-return.json") | changes)


def rating(**changes: object) -> RatingReturn:
    return RatingReturn.model_validate(value_of("003/filled-rating-return.json") | changes)


def executed(**changes: object) -> ExecutionResult:
    """A command that the harness ran and that passed."""
    said: dict[str, object] = {
        "criterion": "Tokens carry lines",
        "command": "pytest -q 2>&1",
        "exit_code": 0,
        "stdout_truncated": "14 passed",
        "stderr_truncated": "",
        "duration_ms": 61_000,
        "sandbox_violation": False,
        "assessment": "pass",
    }
    return ExecutionResult.model_validate(said | changes)


SEEN = AutomatedChecks(compile=True, tests=True, lint=False, build="n/a")
"""The project's own commands, as the harness saw them."""
