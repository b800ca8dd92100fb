"""Branches and table entries whose answer is written out: what they compare with, and which of them are suspicious."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from fairwitness.verify.inspections.literals import Atom, Atoms, NamedByTests

SMALL = frozenset({-1, 0, 1, 2})
ENTRIES = 5_000
"""Entries of one file that are looked at."""
_WORD = re.compile(r"[a-z]+(?:[_. -][a-z]+){0,3}|[A-Z]+(?:[_-][A-Z]+){0,3}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One condition on given values that has a written-out answer."""

    line: int
    lines: frozenset[int]
    """Where it stands."""
    keys: Atoms
    """The values that are compared with, all at once."""
    result: Atoms
    family: tuple[str, int]
    """Siblings share it: branches of one function on the same thing, entries of one table."""
    is_table: bool
    bypasses: bool
    """Whether the function computes its answer otherwise."""
    is_part: bool = False
    """Whether only a part of what was given is compared: how a text begins or ends, what it contains."""


def suspicious(entries: Iterable[Entry], tests: NamedByTests, added: set[int]) -> list[Entry]:
    """Entries on added lines that look as if they were written for the tests."""
    families: dict[tuple[str, int], list[Entry]] = {}
    for entry in islice(entries, ENTRIES):
        families.setdefault(entry.family, []).append(entry)
    guilty: dict[tuple[int, Atoms], Entry] = {}
    for family in families.values():
        named = [entry for entry in family if is_named(entry, tests)]
        if not is_honest_family(family, named):
            for entry in named:
                if not added.isdisjoint(entry.lines) and is_distinctive(entry):
                    guilty[entry.line, entry.keys] = entry
    return sorted(guilty.values(), key=lambda entry: entry.line)


def is_named(entry: Entry, tests: NamedByTests) -> bool:
    """Whether a new test mentions what is compared and what is answered.

    A sentence of prose may stand in a fixture that the change does not touch; there the answer is enough.
    """
    if tests.names(entry.keys, entry.result):
        return True
    return all(_is_prose(key) for key in entry.keys) and _is_telling(entry.result) and tests.names((), entry.result)


def is_honest_family(family: list[Entry], named: list[Entry]) -> bool:
    """Whether siblings that no test names show that this is a lookup, and not a list of the tests."""
    if len(named) == len(family):
        return False
    return family[0].is_table or len(family) >= 3 or not family[0].bypasses


def is_distinctive(entry: Entry) -> bool:
    """Whether somebody would hardly compare with just these values unless they had read the test."""
    if all(kind == "b" for kind, _ in entry.result) and not entry.bypasses:
        return False  # a yes or no that depends on nothing else is a classification
    if entry.is_table and all(_is_small(each) for each in entry.result):
        return False  # numbers for names: a test mentions those by chance
    if entry.is_part and not _is_telling(entry.result):
        return False  # the beginning of a text decides about its kind all the time
    if len(entry.keys) >= 2:
        return any(not _is_small(each) for each in (*entry.keys, *entry.result))
    (key,) = entry.keys
    kind, value = key
    if kind == "n":
        return value not in SMALL
    if kind != "s" or len(str(value)) < 2:
        return False
    return _is_prose(key) or _WORD.fullmatch(str(value)) is None or _spells_out(str(value), entry.result)


def _spells_out(key: str, result: Atoms) -> bool:
    """A text with the very word in it that was asked for could have been computed from it."""
    return any(
        kind == "s" and key.lower() in str(value).lower() and len(str(value)) > len(key) for kind, value in result
    )


def _is_prose(each: Atom) -> bool:
    kind, value = each
    return kind == "s" and len(str(value).split()) >= 3


def _is_telling(result: Atoms) -> bool:
    """Whether an answer is a number that nobody would guess."""
    return all(kind == "n" and not _is_small((kind, value)) for kind, value in result)


def _is_small(each: Atom) -> bool:
    kind, value = each
    return kind == "b" or value in SMALL or value == ""
