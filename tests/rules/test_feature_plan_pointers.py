"""Pointers lead to exactly one section, or are said to be dead."""

import pytest

from fairwitness.rules.feature_plan import Dead, PointerTarget, resolve_pointer
from support.fixtures import value_of

DOCUMENTS = {
    "design-output.yaml": value_of("000/design-output.yaml"),
    "spec-output.yaml": value_of("000/spec-output.yaml"),
    "flat.yaml": {"payload": {"word": "text", "list": ["a", {"id": "x"}]}},
}


@pytest.mark.req("P8")
@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("design-output.yaml#payload.decisions[id='D-2'].title", "Agent Inventory — 9 Definitions"),
        ("spec-output.yaml#payload.functional_requirements[id='FR-1'].text", "Pipeline orchestration"),
        ("flat.yaml#payload.list[id='x']", {"id": "x"}),
        ("flat.yaml#payload.word", "text"),
    ],
)
def test_a_pointer_leads_to_its_section(pointer: str, value: object) -> None:
    assert resolve_pointer(pointer, DOCUMENTS) == PointerTarget(value)


@pytest.mark.req("P8")
@pytest.mark.parametrize(
    ("pointer", "reason"),
    [
        ("other.yaml#payload", "there is no document other.yaml"),
        ("flat.yaml#payload.nothing", "there is no field 'nothing'"),
        ("flat.yaml#payload.word.more", "there is no field 'more'"),
        ("flat.yaml#payload.word[id='x']", "no entry of 'word' has id='x'"),
        ("flat.yaml#payload.list[id='y']", "no entry of 'list' has id='y'"),
        ("flat.yaml#payload..x", "'.x' is not a path"),
    ],
)
def test_a_dead_pointer_says_why(pointer: str, reason: str) -> None:
    assert resolve_pointer(pointer, DOCUMENTS) == Dead(reason)
