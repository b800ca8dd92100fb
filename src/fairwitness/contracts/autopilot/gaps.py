"""The deficiencies that `--gaps` works through, one by one."""

from typing import Self

from pydantic import model_validator

from fairwitness.contracts.autopilot.checks import expect
from fairwitness.contracts.common.base import Contract, Score, Text
from fairwitness.contracts.common.ids import RelPath


class Deficiency(Contract):
    """One criterion below its target, and the file where to raise it."""

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
