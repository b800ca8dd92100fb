"""Find the lines that differ between two texts, in bounded time for any text.

Lines that stand once in each text are matched first, in the longest order that both keep; only what lies between two of
them is compared line by line, and where that is too much, all of it counts as changed.
"""

from bisect import bisect_left
from collections import Counter
from difflib import SequenceMatcher

GAP = 1_500
"""Lines between two anchors that are still compared one by one."""

Span = tuple[int, int]


def line_changes(before: str, after: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the numbers of the lines that are only in the first text, and of those that are only in the second.

    >>> line_changes("a\\nb\\nc\\n", "a\\nx\\nc\\n")
    ((2,), (2,))
    """
    old, new = lines_of(before), lines_of(after)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    removed: list[int] = []
    added: list[int] = []
    here = (start, start)
    last = (len(old) - end, len(new) - end)
    for there in [*_anchors(old, new, here, last), last]:
        _between(old[here[0] : there[0]], new[here[1] : there[1]], here, removed, added)
        here = (there[0] + 1, there[1] + 1)
    return tuple(removed), tuple(added)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text as git counts them."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _anchors(old: list[str], new: list[str], start: Span, end: Span) -> list[Span]:
    once_old = Counter(old[start[0] : end[0]])
    once_new = Counter(new[start[1] : end[1]])
    place = {line: at for at, line in enumerate(new[start[1] : end[1]], start[1]) if once_new[line] == 1}
    pairs = [
        (at, place[line])
        for at, line in enumerate(old[start[0] : end[0]], start[0])
        if once_old[line] == 1 and line in place
    ]
    return _longest_rising(pairs)


def _longest_rising(pairs: list[Span]) -> list[Span]:
    # patience sorting: each pile's top is the smallest end of a rising run of that length
    tops: list[int] = []
    piles: list[int] = []
    behind: list[int] = []
    for index, (_, place) in enumerate(pairs):
        pile = bisect_left(tops, place)
        behind.append(piles[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(place)
            piles.append(index)
        else:
            tops[pile] = place
            piles[pile] = index
    rising: list[Span] = []
    index = piles[-1] if piles else -1
    while index >= 0:
        rising.append(pairs[index])
        index = behind[index]
    return rising[::-1]


def _between(old: list[str], new: list[str], at: Span, removed: list[int], added: list[int]) -> None:
    if old and new and max(len(old), len(new)) <= GAP:
        for tag, low, high, new_low, new_high in SequenceMatcher(None, old, new).get_opcodes():
            if tag != "equal":
                removed.extend(range(at[0] + low + 1, at[0] + high + 1))
                added.extend(range(at[1] + new_low + 1, at[1] + new_high + 1))
    else:
        removed.extend(range(at[0] + 1, at[0] + len(old) + 1))
        added.extend(range(at[1] + 1, at[1] + len(new) + 1))
