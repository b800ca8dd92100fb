"""A command's result cannot say that it is well when it is not."""

import pytest
from pydantic import ValidationError

from fairwitness.contracts.common.sandbox import ASSESSED, End
from fairwitness.contracts.common.vocabulary import Assessment
from rules.test_check_outcome import confined


@pytest.mark.req("A15")
def test_only_a_command_that_ended_well_is_a_pass() -> None:
    assert set(ASSESSED) == set(End)
    assert [end for end, assessment in ASSESSED.items() if assessment is Assessment.PASS] == [End.OK]
    assert confined(End.OK).assessment is Assessment.PASS


@pytest.mark.req("A15")
def test_a_good_end_needs_exit_code_0_and_a_lost_sandbox_a_reason() -> None:
    for code in (1, None):
        with pytest.raises(ValidationError, match="exit_code"):
            confined(End.OK, exit_code=code)
    with pytest.raises(ValidationError, match="sandbox_error"):
        confined(End.SANDBOX_ERROR, sandbox_error=None)
