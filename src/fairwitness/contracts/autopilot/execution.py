"""The result of a command that Fair Witness ran for a criterion."""

from typing import Self

from pydantic import model_validator

from fairwitness.contracts.autopilot.vocabulary import Capture
from fairwitness.contracts.common.base import Contract, Count, Flag, Integer, Text
from fairwitness.contracts.common.problems import expect
from fairwitness.contracts.common.vocabulary import Assessment


class ExecutionResult(Contract):
    """The result of one command; it has no exit code if the command did not end by itself."""

    criterion: Text
    command: Text
    exit_code: Integer | None
    stdout_truncated: Capture
    stderr_truncated: Capture
    duration_ms: Count
    sandbox_violation: Flag
    assessment: Assessment

    @property
    def passed(self) -> bool:
        """Return whether the command proves its criterion; no other word of the assessment does."""
        return self.assessment is Assessment.PASS

    @model_validator(mode="after")
    def _assessment_follows_the_facts(self) -> Self:
        expect(self, self.exit_code == 0 or not self.passed, "exit_code 0 with the assessment pass", "exit_code")
        ended = self.assessment in (Assessment.PASS, Assessment.FAIL)
        expect(self, self.exit_code is not None or not ended, "an exit_code of a command that ended", "exit_code")
        violation = self.assessment is Assessment.VIOLATION
        expect(
            self, self.sandbox_violation is violation, "sandbox_violation exactly for a violation", "sandbox_violation"
        )
        return self
