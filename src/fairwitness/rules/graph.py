"""Cycles in a graph of dependencies: the one piece that plans and task graphs share."""

from collections.abc import Mapping, Sequence


def find_cycle(dependencies: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """One ring of nodes that wait for each other, or nothing; edges to unknown nodes are passed over.

    >>> find_cycle({"a": ["b"], "b": ["c"], "c": ["a"]})
    ('a', 'b', 'c')
    >>> find_cycle({"a": ["b"], "b": []})
    ()
    """
    finished: set[str] = set()
    for start in dependencies:
        # Depth first with an explicit trail, so that a long chain cannot exhaust the stack.
        trail: list[str] = []
        on_trail: set[str] = set()
        waiting: list[tuple[str, bool]] = [(start, False)]
        while waiting:
            node, leaving = waiting.pop()
            if leaving:
                on_trail.discard(trail.pop())
                finished.add(node)
            elif node in on_trail:
                return tuple(trail[trail.index(node) :])
            elif node in dependencies and node not in finished:
                trail.append(node)
                on_trail.add(node)
                waiting.append((node, True))
                waiting.extend((other, False) for other in reversed(dependencies[node]))
    return ()
