"""Cycles are found, and only cycles."""

from graphlib import CycleError, TopologicalSorter

from hypothesis import given, settings
from hypothesis import strategies as st

from fairwitness.rules.graph import find_cycle

NODES = st.sampled_from("abcdefgh")
GRAPHS = st.dictionaries(NODES, st.lists(NODES, max_size=4), max_size=8)


@settings(max_examples=400)
@given(GRAPHS)
def test_a_ring_is_named_exactly_when_there_is_one(graph: dict[str, list[str]]) -> None:
    ring = find_cycle(graph)
    try:
        TopologicalSorter(graph).prepare()
        has_ring = False
    except CycleError:
        has_ring = True
    assert bool(ring) == has_ring
    for here, there in zip(ring, (*ring[1:], *ring[:1]), strict=True):
        assert there in graph[here]


def test_a_chain_of_any_length_is_walked() -> None:
    chain = {str(number): [str(number + 1)] for number in range(20_000)}
    assert find_cycle(chain) == ()
    assert len(find_cycle(chain | {"20000": ["0"]})) == 20_001
