"""An execution cannot say two things at once about how it ended."""

from typing import Any

import pytest
from pydantic import ValidationError

from ledger.samples import execution


@pytest.mark.req("A15")
@pytest.mark.parametrize(
    ("end", "field"),
    [
        ({"exit_code": 0, "signal": 9}, "signal"),
        ({"exit_code": None, "assessment": "pass"}, "exit_code"),
        ({"exit_code": 0, "assessment": "lost"}, "exit_code"),
        ({"exit_code": 0, "assessment": "skipped"}, "assessment"),
        ({"argv": []}, "argv"),
        ({"tree": "abc"}, "tree"),
        ({"sandbox": "docker"}, "sandbox"),
        ({"duration_ms": -1}, "duration_ms"),
    ],
)
def test_an_execution_that_contradicts_itself_is_refused(end: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        execution(**end)
    assert [error["loc"][0] for error in refused.value.errors()] == [field]


@pytest.mark.req("A15")
@pytest.mark.parametrize(
    "end",
    [
        {"exit_code": 1, "assessment": "fail"},
        {"exit_code": None, "signal": 9, "assessment": "timeout"},
        {"exit_code": 0, "assessment": "violation"},
        {"exit_code": None, "assessment": "lost"},
    ],
)
def test_every_way_a_command_can_end_has_its_record(end: dict[str, Any]) -> None:
    assert execution(**end).assessment == end["assessment"]
