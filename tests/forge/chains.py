"""Chains: one run is killed at point after point, one life after the other, so that few runs are killed everywhere.

A run passes thousands of points, and to be killed at one of them costs a life but no run of its own. So the points of a
sweep are dealt out, every so-many-th to a chain, and a chain takes its cases as a run that nobody killed comes to them.
A case that it can not meet any more, since its run passed the point before or came to its end, is left to another run.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from feature.kills import Drill, Grounds
from feature.remains import Content


class Case(NamedTuple):
    """A point, and at which of its passages a run is killed."""

    point: str
    passage: int

    def __str__(self) -> str:
        return f"{self.point}#{self.passage}"

    @classmethod
    def named(cls, name: str) -> "Case":
        """As a drill names it."""
        point, _, passage = name.partition("#")
        return cls(point, int(passage))


def firsts(points: Iterable[str]) -> list[Case]:
    """Each point when it is passed for the first time."""
    return [Case(point, 1) for point in points]


def middles(points: Iterable[str], passed: Sequence[str]) -> list[Case]:
    """Each point at a passage in the middle of the run; none where the first passage is the only one."""
    times = Counter(passed)
    return [Case(point, times[point] // 2 + 1) for point in points if times[point] > 1]


def share(names: Sequence[str], chain: int, *, of: int) -> Sequence[str]:
    """What one of so many chains takes of some names.

    Nothing that a run does decides it: processes that test have references of their own, in which moments differ, and
    still nothing is left out between them.
    """
    return names[chain % of :: of]


def in_order(cases: Iterable[Case], passed: Sequence[str]) -> list[Case]:
    """Cases in the order in which a run comes to them; one that it does not come to is an error."""
    moments: dict[Case, int] = {}
    times: Counter[str] = Counter()
    for moment, point in enumerate(passed):
        times[point] += 1
        moments[Case(point, times[point])] = moment
    every = set(cases)
    never = sorted(str(case) for case in every if case not in moments)
    assert not never, f"no run passes {never}"
    return sorted(every, key=moments.__getitem__)


@dataclass
class Chain:
    """One run, killed at case after case."""

    drill: Drill
    log: Path
    killed: list[str] = field(default_factory=list)
    """What it was killed at, each as counted from the start of its life, and by whose case."""
    _passed: Counter[str] = field(default_factory=Counter)

    def kill(self, cases: Sequence[Case]) -> list[Case]:
        """Kills the run at each of the cases; gives those that it could not be killed at."""
        left: list[Case] = []
        for place, case in enumerate(cases):
            if case.passage == 1 and self._passed[case.point]:
                left.append(case)  # it has had its first time
                continue
            if not self._live(case):
                return [*left, *cases[place:]]  # the run is at its end
        return left

    def _live(self, case: Case) -> bool:
        """One life; whether it was killed.

        What earlier lives passed counts. Those do so again that begin anew what was not done, or at every start: so the
        moment can come earlier than in the run that nobody killed, and never too late.
        """
        kill_at = f"{case.point}#{max(1, case.passage - self._passed[case.point])}"
        self.log.unlink(missing_ok=True)
        life = self.drill.live(kill_at, log=self.log)
        self._passed.update(self.log.read_text().split())
        if life.is_killed:
            self.killed.append(f"{kill_at} ({case})")
        return life.is_killed


def sweep(grounds: Grounds, cases: Sequence[Case], log: Path, *, alone: bool, check: Callable[[Content], None]) -> None:
    """Kills runs at every case, in as few as it takes, and holds what each of them leaves to a check.

    Says which ones (`pytest -rP` shows it); it is a failure if no run can be killed at a case.
    """
    left = list(cases)
    while left:
        chain = Chain(grounds.drill(alone=alone), log)
        try:
            rest = chain.kill(left)
        finally:
            print(f"killed {len(chain.killed)} times, at", *chain.killed, sep="\n  ")  # noqa: T201
        check(chain.drill.end())
        assert len(rest) < len(left), f"never killed at {[str(case) for case in rest]}"
        left = rest
