"""What a retry is told: a table over every cause, and the causes from the evidence of an attempt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.common.evidence import CheckRow, Phase, Provenance
from fairwitness.rules.evidence_worth import LACKS, SHUTS, RowWorth, ValuedRow
from fairwitness.rules.retry_material import MATERIAL, FailureCause, Material, causes_of, material_for, work_causes

CAUSES = st.lists(st.sampled_from(FailureCause), max_size=len(FailureCause), unique=True)


def _row(name: str, worth: RowWorth) -> ValuedRow:
    row = CheckRow(
        id=1,
        check_name=name,
        phase=Phase.AFTER,
        round=1,
        passed=False,
        verdict=None,
        severity=None,
        instance=None,
        provenance=Provenance.OBSERVED,
        assessment=None,
        tree=None,
        sandbox=None,
    )
    return ValuedRow(row, worth)


@pytest.mark.req("P9")
def test_the_table() -> None:
    assert {cause.name: " ".join(each.name for each in material_for([cause])) for cause in FailureCause} == snapshot(
        {
            "CHECK": "CHECKS VERIFIER DIFF HISTORY SINCE",
            "NO_EVIDENCE": "CHECKS VERIFIER DIFF HISTORY SINCE",
            "CRITERION": "CHECKS CRITERIA VERIFIER DIFF HISTORY SINCE",
            "UNJUDGED": "CRITERIA VERIFIER HISTORY",
            "SCOPE": "CHECKS DIFF HISTORY",
            "AGENT": "HISTORY SINCE",
            "CONFLICT": "HISTORY SINCE CONFLICT",
            "MERGE": "CHECKS DIFF HISTORY SINCE",
            "REVIEW": "VERIFIER DIFF HISTORY SINCE",
            "PLAN": "VERIFIER HISTORY",
        }
    )


@pytest.mark.req("P9")
def test_every_cause_has_material_and_every_material_a_cause() -> None:
    assert set(MATERIAL) == set(FailureCause)
    assert {each for told in MATERIAL.values() for each in told} == set(Material)
    assert all(Material.HISTORY in told for told in MATERIAL.values())


@given(CAUSES, CAUSES)
def test_more_causes_never_tell_less(some: list[FailureCause], others: list[FailureCause]) -> None:
    assert set(material_for(some)) <= set(material_for([*some, *others]))
    assert material_for([*some, *others]) == material_for([*others, *some])


@pytest.mark.parametrize("worth", RowWorth)
@pytest.mark.parametrize("name", ["tests", "ac-1", "scope", "regressions"])
def test_a_row_is_a_cause_exactly_if_it_blocks_the_gate(name: str, worth: RowWorth) -> None:
    causes = causes_of([_row(name, worth)], unmet=False, unjudged=False)
    blocks = worth in SHUTS or worth in LACKS - {RowWorth.STALE}
    assert (causes != (FailureCause.AGENT,)) == blocks
    if worth in SHUTS:
        wanted = {"ac-1": FailureCause.CRITERION, "scope": FailureCause.SCOPE}
        assert causes == (wanted.get(name, FailureCause.CHECK),)


def test_without_evidence_it_was_the_agent() -> None:
    assert causes_of([], unmet=False, unjudged=False) == (FailureCause.AGENT,)
    assert causes_of([], unmet=True, unjudged=True) == (FailureCause.CRITERION, FailureCause.UNJUDGED)


@pytest.mark.req("P9")
@given(st.booleans(), st.booleans(), st.booleans())
def test_work_that_no_gate_counts_failed_for_what_was_seen_and_always_for_something(
    red: bool, refused: bool, conflict: bool
) -> None:
    causes = work_causes(red=red, refused=refused, conflict=conflict)
    assert (FailureCause.CHECK in causes, FailureCause.REVIEW in causes) == (red, refused)
    assert (FailureCause.CONFLICT in causes, FailureCause.AGENT in causes) == (conflict, not red and not refused)
