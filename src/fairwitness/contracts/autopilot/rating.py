"""What the rating agent returns: the score that counts, criterion by criterion."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from fairwitness.contracts.autopilot.checks import expect
from fairwitness.contracts.autopilot.score import ScoreBand, band_of
from fairwitness.contracts.autopilot.words import CommandsRun, Snippet
from fairwitness.contracts.common.base import AgentDocument, AlignmentScore, Count, Integer, Maybe, Score, Text, Texts


class RatedExecution(AgentDocument):
    """The run of a command behind one criterion's score; a command that did not end has no exit code."""

    command: Text
    exit_code: Integer | None
    output: Snippet


class ScorecardItem(AgentDocument):
    """One criterion with its score; `execution_result` is null when nothing but a search was run."""

    criterion: Text
    score: Score
    max_score: Annotated[Score, Field(ge=10)]  # the scale is always ten
    verification_command: Text
    command_output: Snippet
    evidence: Text
    justification: Text
    execution_result: Maybe[RatedExecution] = None


class TestCoverage(AgentDocument):
    """How many tasks have tests of their own, and how many assertions held."""

    __test__ = False  # a shape, not a test class

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
    """The alignment score of a phase, by an agent that saw only criteria and diff."""

    alignment_score: AlignmentScore
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
