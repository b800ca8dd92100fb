"""Wrong forms of the changed Python code, whole files each, which good tests notice and vacuous ones do not.

Mutants are spread over the changed lines: each line gets one before any line gets a second, and the seed decides which
lines come first. The same change and seed always give the same mutants.
"""

import ast
import hashlib
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from fairwitness.kit.text import visible
from fairwitness.verify.inspections.model import ChangedFile
from fairwitness.verify.inspections.mutations import LAST_RESORT, Mutation, mutations
from fairwitness.verify.inspections.places import Lang, is_production, language_of
from fairwitness.verify.inspections.python_source import Unreadable, parse, shape

SOURCE_LENGTH = 250_000
"""Characters of a file that is mutated."""
TRIES = 5
"""Mutations that are tried for each mutant that is wanted."""
ENOUGH = 5
"""Mutations of better kinds that make the last resort unnecessary."""
PER_LINE = 8
"""Mutations of one line that are tried."""
_LINE_END = re.compile(rb"\r\n|\n")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One file with one thing wrong in it."""

    id: str
    path: str
    line: int
    description: str
    content: str
    """The whole text of the file."""


@dataclass(frozen=True, slots=True)
class _Source:
    path: str
    text: str
    shape: str
    line_starts: tuple[int, ...]
    """Where each line starts, in bytes: that is how Python counts columns."""


def mutants(changed: Sequence[ChangedFile], *, limit: int, seed: int) -> tuple[Mutant, ...]:
    """At most `limit` mutants of the added lines of production code."""
    texts = {change.path: change.after for change in changed if change.after is not None and is_production(change.path)}
    lines = {change.path: change.added for change in changed}
    return mutants_of_covered(texts, lines, limit=limit, seed=seed)


def mutants_of_covered(
    texts: Mapping[str, str], lines: Mapping[str, Collection[int]], *, limit: int, seed: int
) -> tuple[Mutant, ...]:
    """At most `limit` mutants of the given lines: for a change of tests alone, the lines that they run."""
    by_line: dict[tuple[str, int], list[Mutation]] = {}
    sources: dict[str, _Source] = {}
    for path in sorted(texts):
        if language_of(path) is Lang.PYTHON and lines.get(path):
            _collect(path, texts[path], set(lines[path]), sources, by_line)
    if sum(each.rank < LAST_RESORT for found in by_line.values() for each in found) >= ENOUGH:
        by_line = {place: [each for each in found if each.rank < LAST_RESORT] for place, found in by_line.items()}
    chosen: list[Mutant] = []
    seen: set[str] = set()
    for (path, line), mutation in islice(_spread(by_line, seed), limit * TRIES):
        if len(chosen) >= limit:
            break
        content = _mutated(sources[path], mutation)
        if content is not None and content not in seen:
            seen.add(content)
            says = visible(mutation.says)
            number = sum(1 for mutant in chosen if (mutant.path, mutant.line) == (path, line)) + 1
            chosen.append(Mutant(f"{path}:{line}:{number}", path, line, says, content))
    return tuple(chosen)


def _collect(
    path: str,
    text: str,
    wanted: set[int],
    sources: dict[str, _Source],
    by_line: dict[tuple[str, int], list[Mutation]],
) -> None:
    if text.startswith("\ufeff") or len(text) > SOURCE_LENGTH:
        return  # a byte order mark would shift every column; and every mutant is parsed anew
    try:
        tree = _compiled(text)
        found = [each for each in mutations(tree) if each.node.lineno in wanted]
    except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
        return  # a file that cannot be read has no mutants; other inspections say so
    starts = (0, *(end.end() for end in _LINE_END.finditer(text.encode())))
    sources[path] = _Source(path, text, shape(tree), starts)
    for each in found:
        by_line.setdefault((path, each.node.lineno), []).append(each)


def _spread(by_line: Mapping[tuple[str, int], list[Mutation]], seed: int) -> Iterator[tuple[tuple[str, int], Mutation]]:
    """The best mutation of each line, then the second best of each, and so on; the seed orders the lines."""
    places = sorted(by_line, key=lambda place: _drawn(seed, *place))
    ranked = {
        place: sorted(by_line[place], key=lambda each: (each.rank, _drawn(seed, each.node.col_offset, each.says)))
        for place in places
    }
    for turn in range(PER_LINE):
        for place in places:
            if turn < len(ranked[place]):
                yield place, ranked[place][turn]


def _drawn(*parts: object) -> bytes:
    return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).digest()


def _compiled(text: str) -> ast.Module:
    """The tree of a text that Python would run."""
    tree = parse(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(tree, "<mutant>", "exec", dont_inherit=True)
    return tree


def _mutated(source: _Source, mutation: Mutation) -> str | None:
    """The file with one mutation; None if that is no program, or the same one."""
    node = mutation.node
    data = source.text.encode()
    start = source.line_starts[node.lineno - 1] + node.col_offset
    end = source.line_starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
    content = (data[:start] + mutation.text.encode() + data[end:]).decode(errors="replace")
    try:
        tree = _compiled(content)
    except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return None if shape(tree) == source.shape else content
