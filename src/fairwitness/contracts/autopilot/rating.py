"""Ratings of a phase: score bands and history, the rating agent's return, and the deficiencies for `--gaps`."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, Strict, model_validator

from fairwitness.contracts.autopilot.vocabulary import CommandsRun, Snippet
from fairwitness.contracts.common.base import (
    AgentDocument,
    AlignmentScore,
    Contract,
    Count,
    Flag,
    Integer,
    Maybe,
    Score,
    Text,
    Texts,
    Timestamp,
)
from fairwitness.contracts.common.ids import RelPath
from fairwitness.contracts.common.problems import expect


class ScoreBand(StrEnum):
    """The six bands of the alignment scale, best first."""

    EXCELLENCE = "excellence"
    GOOD = "good"
    ACCEPTABLE = "acceptable"
    SIGNIFICANT_GAPS = "significant_gaps"
    MAJOR_FAILURES = "major_failures"
    NOT_IMPLEMENTED = "not_implemented"


_FLOORS = (
    (9.5, ScoreBand.EXCELLENCE),
    (8.0, ScoreBand.GOOD),
    (7.0, ScoreBand.ACCEPTABLE),
    (5.0, ScoreBand.SIGNIFICANT_GAPS),
    (3.0, ScoreBand.MAJOR_FAILURES),
    (0.0, ScoreBand.NOT_IMPLEMENTED),
)


def band_of(score: float) -> ScoreBand:
    """Return the band of a score between 0.0 and 10.0.

    >>> [band_of(score).value for score in (9.5, 9.4, 7.0, 6.9, 2.9)]
    ['excellence', 'good', 'acceptable', 'significant_gaps', 'not_implemented']
    """
    return next(band for floor, band in _FLOORS if score >= floor)


class ScoreFlag(StrEnum):
    """Why a phase was scored."""

    INITIAL = "initial"
    REMEDIATION = "remediation"
    FORCE = "force"
    QUALITY = "quality"
    GAPS = "gaps"


class ScoreEntry(Contract):
    """One scoring of a phase."""

    score: AlignmentScore
    timestamp: Timestamp
    flag: ScoreFlag
    cycle: Annotated[int, Strict(), Field(ge=0, le=5)]  # 0 at first; --quality runs up to 3, --gaps up to 5


class ScoreHistory(Contract):
    """The quality flags' part of a phase record."""

    score_history: tuple[ScoreEntry, ...]
    quality_exhausted: Flag
    gaps_exhausted: Flag


class RatedExecution(AgentDocument):
    """The run of a command behind one criterion's score; it has no exit code if the command did not end by itself."""

    command: Text
    exit_code: Integer | None
    output: Snippet


class ScorecardItem(AgentDocument):
    """One criterion with its score; `execution_result` is null if no command other than a search was run."""

    criterion: Text
    score: Score
    """Written with a decimal point: 8.0, not 8."""
    max_score: Annotated[Score, Field(ge=10)]  # the scale is always ten
    verification_command: Text
    command_output: Snippet
    evidence: Text
    justification: Text
    execution_result: Maybe[RatedExecution] = None


class TestCoverage(AgentDocument):
    """The number of tasks that have tests, and of assertions that held."""

    __test__ = False  # a contract, not a test class

    tasks_with_tests: Count
    tasks_total: Count
    assertions_passed: Count
    assertions_total: Count

    @model_validator(mode="after")
    def _parts_of_totals(self) -> Self:
        expect(
            self, self.tasks_with_tests <= self.tasks_total, "tasks_with_tests up to tasks_total", "tasks_with_tests"
        )
        held = self.assertions_passed <= self.assertions_total
        expect(self, held, "assertions_passed up to assertions_total", "assertions_passed")
        return self


class RatingReturn(AgentDocument):
    """The alignment score of a phase, by an agent that sees only the criteria and the diff."""

    alignment_score: AlignmentScore
    """With exactly one decimal: 8.0, not 8."""
    scorecard: Annotated[tuple[ScorecardItem, ...], Field(min_length=1)]
    aggregate_justification: Text
    side_effects: Texts
    commands_run: CommandsRun
    score_band: ScoreBand
    test_coverage: Maybe[TestCoverage] = None

    @model_validator(mode="after")
    def _band_of_the_score(self) -> Self:
        expect(self, self.score_band is band_of(self.alignment_score), "the score_band of the score", "score_band")
        return self


class Deficiency(Contract):
    """One criterion below its target, and the file to change."""

    criterion: Text
    current_score: Score
    target_score: Score
    deficiency: Text
    target_file: RelPath
    expected_impact: Text

    @model_validator(mode="after")
    def _below_the_target(self) -> Self:
        expect(self, self.current_score < self.target_score, "a target_score above the current_score", "target_score")
        return self


class GapList(Contract):
    """All deficiencies of a phase."""

    deficiencies: tuple[Deficiency, ...]
