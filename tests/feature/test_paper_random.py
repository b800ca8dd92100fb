"""Whatever happens in a run: it ends, it asks for nothing more often than the rules allow, and it replays alike."""

import pytest
from hypothesis import HealthCheck, given, settings

from fairwitness.app.runs.replay import replay
from fairwitness.contracts.common.decisions import Finish, Halt
from feature.paper_bounds import beyond_bounds
from feature.paper_grounds import played
from feature.paper_random import scripts
from support.paper.run import MOST
from support.paper.script import Script

_RUNS = settings(
    max_examples=12,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def _ends_well(script: Script) -> None:
    with played(script) as (steps, context):
        assert isinstance(steps[-1].decision, Finish | Halt)
        assert len(steps) <= MOST
        assert beyond_bounds(context) == []
        assert [each for each in replay(context.ledger, context.run_id) if each.flips] == []


@pytest.mark.req("P12")
@pytest.mark.req("P14")
@_RUNS
@given(scripts(resumes=0))
def test_a_run_that_nobody_resumes_ends_within_its_bounds_and_replays_alike(script: Script) -> None:
    _ends_well(script)


@pytest.mark.req("P12")
@pytest.mark.req("P14")
@_RUNS
@given(scripts(without=("step-6",)))
def test_a_run_that_is_resumed_ends_within_its_bounds_and_replays_alike(script: Script) -> None:
    """Without verifiers that fail: what comes of them after a resume stands in `test_paper_open`."""
    _ends_well(script)
