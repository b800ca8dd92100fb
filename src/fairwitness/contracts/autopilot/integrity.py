"""The input of the integrity checks when a phase returns, and their possible answers.

Unless a field says otherwise, these are observations of Fair Witness and not claims of an agent: which steps ran, how
long they took, which commits exist, and how commands ended.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, Strict

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.facts import PathItem
from fairwitness.contracts.autopilot.phase_record import AutomatedChecks
from fairwitness.contracts.autopilot.phase_return import PhaseReturn
from fairwitness.contracts.autopilot.returns import JudgeReturn
from fairwitness.contracts.autopilot.verification import VerifierReturn
from fairwitness.contracts.autopilot.vocabulary import FailureCategory, Grade, PhaseType, StepName
from fairwitness.contracts.common.base import Amount, Contract, Count, Flag, Prose, Text
from fairwitness.contracts.common.ids import Commit, RelPath, SafeName


class IntegrityAnswer(StrEnum):
    """The answer of an integrity check, mildest first; an enforcement repeats steps once."""

    NOTHING = "nothing"
    WARNING = "warning"
    ENFORCEMENT = "enforcement"
    FAILURE = "failure"


class Remark(Contract):
    """One remark of a check: its answer, one sentence, and the steps that an enforcement repeats."""

    answer: IntegrityAnswer
    because: Text
    again: tuple[StepName, ...] = ()


class IntegrityFinding(Remark):
    """A remark with the number and the name of the check that made it."""

    number: Annotated[int, Strict(), Field(ge=1, le=16)]
    name: Text


class IntegritySettings(Contract):
    """Minimum durations in seconds; they do not apply to verification by Fair Witness itself."""

    quick_phase_seconds: Count = 300
    minimum_verification_seconds: Count = 120


class StepRun(Contract):
    """One execution of a step, by the agent of this session or by Fair Witness itself."""

    step: StepName
    session: Text | None


class HarnessFacts(Contract):
    """What Fair Witness did and measured itself."""

    ran: tuple[StepRun, ...]
    phase_seconds: Amount
    verification_seconds: Amount | None
    """The measured duration of the verification; None if there was none."""
    commits: tuple[Commit, ...]
    """The existing commits of the phase, as full hashes."""
    checks: AutomatedChecks
    """The results of the project's own commands; false means that the phase broke it."""
    executions: tuple[ExecutionResult, ...]
    """The last run of the command of each criterion that the plan or the roadmap names."""


class Opinions(Contract):
    """The returns of the agents that judge, and the text in which the rating agent wrote its score."""

    verification: VerifierReturn | None
    judgement: JudgeReturn | None
    judge_report: Prose | None
    written_score: Text | None


class PlannedTasks(Contract):
    """The tasks of the plan: those that require a person, and the results of the others."""

    checkpoints: tuple[SafeName, ...]
    auto_passed: Count
    auto_total: Count


class PhaseStanding(Contract):
    """The context of a phase in its run: earlier scores, the threshold, and what was done to reach it."""

    earlier_tenths: tuple[Count, ...]
    threshold_tenths: Count
    cycles: Count
    cycle_limit: Count
    deferral_limit: Grade
    """The verifier's confidence from which a phase is not deferred to a person."""
    category: FailureCategory | None
    """The category of the failure, if the phase failed."""
    way_up: tuple[PathItem, ...] | None
    """The items of the phase's diagnostic; None if there is no diagnostic."""
    paths: frozenset[RelPath]
    """All files that an item may name: existing files, and files that the plan would create."""
    enforced: Flag
    """Whether steps were already repeated because a check required it."""


class IntegrityFacts(Contract):
    """All facts that the integrity checks of a returned phase use."""

    returned: PhaseReturn
    phase_type: PhaseType
    seen: HarnessFacts
    said: Opinions
    planned: PlannedTasks
    standing: PhaseStanding
    settings: IntegritySettings
