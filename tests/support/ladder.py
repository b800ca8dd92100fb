"""How much of each test family a run takes: a sample, the full width, or everything (docs/testing.md).

`make test` takes a sample, CI the full width, `make sweep` everything. A slice is what the full width leaves out,
divided by ten: CI runs one slice per landing, chosen by the commit, and each slice holds cases of every family.

What a run leaves out follows from what tests cost. `tests/costs.json`, written by `make costs`, holds the seconds that
a case of each test function takes, if it is not cheap, and those of the fixtures that the tests of a file share, which
are divided among its functions. A sample spends at most `SECONDS[SAMPLE]` on a function, the full width
`SECONDS[FULL]`: cases beyond that are left out, and a function of which not one case fits is left to the next width. A
mark `@pytest.mark.width("sample")`, `("full")` or `("sweep")` on a test or a case decides instead.
"""

import json
import os
import time
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import pytest

SLICES = 10
COSTS_FILE = Path(__file__).parents[1] / "costs.json"


class Width(StrEnum):
    """How much a test run takes, narrowest first."""

    SAMPLE = "sample"
    FULL = "full"
    SWEEP = "sweep"


class Slice(NamedTuple):
    """One tenth of what the full width leaves out, and how long it may take."""

    number: int
    seconds: float


def _asked_slice() -> Slice | None:
    number = os.environ.get("FAIRWITNESS_SLICE")
    return Slice(int(number) % SLICES, float(os.environ.get("FAIRWITNESS_SLICE_SECONDS", "inf"))) if number else None


SLICE = _asked_slice()
WIDTH = Width.SWEEP if SLICE else Width(os.environ.get("FAIRWITNESS_WIDTH", "sample"))
IS_MEASURING = "FAIRWITNESS_COSTS" in os.environ
"""Set by `make costs`: one case of every test function, without a limit."""
SWEEP = WIDTH is Width.SWEEP and SLICE is None
"""True where a test that loops over cases itself should loop over all of them; a slice has no time for that."""
SECONDS = {Width.SAMPLE: 0.5, Width.FULL: 1.5}
"""Seconds that a run spends on one test function at the most."""
CHEAP = 0.02
"""Seconds that a test takes which is not in the file."""
COSTS: dict[str, float] = json.loads(COSTS_FILE.read_text())
_ORDER = list(Width)
_STARTED = time.monotonic()


def write_cost(item: pytest.Item, seconds: float, shared: float) -> None:
    """Append what a case cost, and the fixtures that it shares with its file, to the measurements of this process."""
    folder = COSTS_FILE.parents[1] / ".costs"
    folder.mkdir(exist_ok=True)
    with (folder / f"{os.getpid()}.jsonl").open("a") as log:
        for name, cost in ((item.nodeid.partition("[")[0], seconds), (_file(item.nodeid), shared)):
            log.write(json.dumps([name, round(cost, 3)]) + "\n")


def widened(every: Iterable[Any], few: Collection[Any]) -> list[Any]:
    """Return all cases for `parametrize`, of which runs below the sweep take only the few."""
    return [case if case in few else _in_sweep(case) for case in every]


def _in_sweep(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.width("sweep"))


def choose(
    items: list[pytest.Item], *, width: Width = WIDTH, number: int | None = SLICE.number if SLICE else None
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests that a run takes, in order, and those it leaves out; a number asks for that slice."""
    if IS_MEASURING:
        taken = [family[0] for family in _families(items) if _narrowest(family[0]) is not Width.SWEEP]
        kept = set(map(id, taken))
    elif number is not None:
        taken = _slice(items, number)
        kept = set(map(id, taken))
    else:
        families = _families(items)
        shared = _shared(families)
        kept = {id(item) for family in families for item in _taken(family, width, shared)}
        taken = [item for item in items if id(item) in kept]
    return taken, [item for item in items if id(item) not in kept]


def dearest_first(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the tests with the files that take longest in front, so that no process ends long after the others."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(_file(item.nodeid), []).append(item)
    return [item for tests in sorted(files.values(), key=_seconds, reverse=True) for item in tests]


def _seconds(items: list[pytest.Item]) -> float:
    fixtures = COSTS.get(_file(items[0].nodeid), 0.0)
    return fixtures + sum(COSTS.get(item.nodeid.partition("[")[0], CHEAP) for item in items)


def _file(test: str) -> str:
    return test.partition("::")[0]


def is_out_of_time() -> bool:
    """Return True once a slice has used its time; tests that have not begun are then skipped."""
    return SLICE is not None and time.monotonic() - _STARTED > SLICE.seconds


def _families(items: Iterable[pytest.Item]) -> list[list[pytest.Item]]:
    """Return the cases of each test function, in the order of their ids so that every process sees the same."""
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return [sorted(cases, key=lambda item: item.nodeid) for _, cases in sorted(families.items())]


def _shared(families: list[list[pytest.Item]]) -> dict[str, float]:
    """Return for each file with costly fixtures the part that each of its test functions bears."""
    sizes = Counter(_file(_name(family)) for family in families)
    return {file: COSTS[file] / size for file, size in sizes.items() if file in COSTS}


def _taken(family: list[pytest.Item], width: Width, shared: Mapping[str, float]) -> list[pytest.Item]:
    marked = [(item, _narrowest(item)) for item in family]
    always = [item for item, narrowest in marked if narrowest and _ORDER.index(width) >= _ORDER.index(narrowest)]
    free = [item for item, narrowest in marked if narrowest is None]
    if width is Width.SWEEP:
        return always + free
    cost, fixtures = COSTS.get(_name(family), 0.0), shared.get(_file(_name(family)), 0.0)
    if fixtures > SECONDS[width]:
        return always
    return always + (spread(free, int((SECONDS[width] - fixtures) / cost)) if cost else free)


def _narrowest(item: pytest.Item) -> Width | None:
    mark = item.get_closest_marker("width")
    return None if mark is None else Width(mark.args[0])


def spread(cases: list[pytest.Item], count: int) -> list[pytest.Item]:
    """Return so many of the cases, at even distances, the first and the last among them."""
    if count >= len(cases):
        return cases
    if count <= 1:
        return cases[:count]
    return [cases[round(number * (len(cases) - 1) / (count - 1))] for number in range(count)]


def _slice(items: Iterable[pytest.Item], number: int) -> list[pytest.Item]:
    """Return one slice: a case of each family whose turn it is, then of the other families, then the rest.

    A slice that runs out of time has run its own tenth of the families by then, so ten slices cover them all.
    """
    ranked, families = [], _families(items)
    shared = _shared(families)
    for family in families:
        wide = set(map(id, _taken(family, Width.FULL, shared)))
        left = [item for item in family if id(item) not in wide]
        if not left:
            continue
        mine = [item for place, item in enumerate(left) if place % SLICES == number] or [left[number % len(left)]]
        first = turn(_name(family)) == number
        for rank, item in enumerate(mine):
            ranked.append((rank > 0 or not first, rank, zlib.crc32(f"{number} {item.nodeid}".encode()), item))
    return [ranks[-1] for ranks in sorted(ranked, key=lambda ranks: ranks[:-1])]


def turn(family: str) -> int:
    """Return the slice that begins with a family."""
    return zlib.crc32(family.encode()) % SLICES


def _name(family: list[pytest.Item]) -> str:
    return family[0].nodeid.partition("[")[0]
