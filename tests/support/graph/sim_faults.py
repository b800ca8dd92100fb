"""What goes wrong in a simulated world: how often, to whom, and at which await a process dies.

Verdicts on nodes and attempts follow from the seed and their names alone, so that they are the same whatever happens
before them; crashes and the outside world follow from time.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from random import Random
from typing import Protocol

from support.graph.sim_time import Gone, rest


class Fault(StrEnum):
    """What can be said against an attempt, a merge or a pair of nodes."""

    AGENT = "agent"
    """The agent did not finish. By node, attempt, helper."""
    RAISES = "raises"
    """A step of the attempt raises. By node, attempt, helper, step."""
    IDLE = "idle"
    """The agent changed nothing. By node, attempt, helper."""
    RED = "red"
    """The proof of the attempt fails. By node, attempt, helper."""
    HANGS = "hangs"
    """The worker gives no sign of life any more. By node, attempt, helper."""
    CLASH = "clash"
    """It does not fit the target. By node, attempt."""
    CLASH_AGAIN = "clash_again"
    """Nor does what the helper made of it. By node, attempt."""
    RED_MERGED = "red_merged"
    """The merged tree is red through it. By node, attempt."""
    PAIR_CLASH = "pair_clash"
    """Two nodes do not fit each other unless one knew the other. By node."""
    PAIR_RED = "pair_red"
    """Two nodes are red together unless one knew the other. By node."""
    MERGE_RAISES = "merge_raises"
    """A step of the merge raises. By batch."""
    MERGE_HANGS = "merge_hangs"
    """The worker of the merge gives no sign of life any more. By batch."""
    LATE = "late"
    """A worker that was given up wakes up again, and goes on until it is told. By child."""


class Verdicts(Protocol):
    """Who decides whether something goes wrong; the same question has the same answer."""

    def says(self, fault: Fault, *about: object) -> bool:
        """Whether it happens."""
        ...


@dataclass(frozen=True, slots=True)
class Drawn:
    """Verdicts drawn by lot from a seed."""

    seed: int
    chances: Mapping[Fault, float]

    def says(self, fault: Fault, *about: object) -> bool:
        """By the hash of the question."""
        chance = self.chances.get(fault, 0.0)
        if chance == 0.0:
            return False
        text = f"{self.seed}/{fault}/" + "/".join(map(str, about))
        return int.from_bytes(blake2b(text.encode(), digest_size=7).digest()) < chance * 2**56


@dataclass(frozen=True, slots=True)
class Told:
    """Verdicts that a test wrote down: `(Fault.RED, "t1", 1, False)` and so on."""

    happens: Collection[tuple[object, ...]] = ()

    def says(self, fault: Fault, *about: object) -> bool:
        """If it stands there."""
        return (fault, *about) in self.happens


class Blow(StrEnum):
    """What a crash takes with it."""

    PROCESS = "process"
    """Everything."""
    WORKER = "worker"
    """The one flow that ran there: the executor, or one of its children."""
    FREEZE = "freeze"
    """Everything is taken for dead and begun anew elsewhere, and then wakes up again."""


class Crash(Gone):
    """A process dies here."""

    def __init__(self, blow: Blow) -> None:
        super().__init__(blow.value)
        self.blow = blow


@dataclass(frozen=True, slots=True)
class Climate:
    """How the course of the world is disturbed."""

    crash: float = 0.0
    """The chance of a crash at each await."""
    blows: tuple[Blow, ...] = (Blow.PROCESS,)
    jitter: float = 0.0
    """The chance that others come first at an await."""
    pauses: int = 0
    people: int = 0
    """How often somebody moves the target forward."""
    rewinds: int = 0
    """How often somebody takes merged work out of the target, and puts it back later."""
    overlays: int = 0
    unfit: int = 0
    """Overlays that break a rule."""
    requests: int = 0
    """How often an agent at work asks for a larger plan, which holds the graph until it has an answer."""
    reopens: int = 0
    """How often somebody gives a node without attempts another one."""
    refineries: bool = True
    """Whether overlays may change which tasks are collected by a refinery."""
    within: float = 60.0
    """The first so many seconds, in which all that comes from outside comes."""
    budget: int | None = None
    """How many agents may be paid before somebody gives more."""
    resumes: int = 0
    """How often a run that stopped with a reason is resumed."""


class Weather:
    """At every await of the desk and the flow: whether the process dies here."""

    def __init__(self, rng: Random, climate: Climate, crashes: Mapping[int, Blow] | None = None) -> None:
        self._rng, self._climate = rng, climate
        self._told = dict(crashes or {})
        self.freeze: Callable[[float], None] = _nothing
        self.awaits = 0
        self.crashes = 0
        self._next = self._draw()

    async def breath(self) -> None:
        """One moment in which anything may happen."""
        self.awaits += 1
        blow = self._told.get(self.awaits) if self._told else None
        if self.awaits == self._next:
            blow = self._rng.choice(self._climate.blows)
            self._next = self._draw()
        if blow is Blow.FREEZE:
            self.crashes += 1
            delay = self._rng.uniform(1.0, 10.0)
            self.freeze(delay)
            await rest(delay)
        elif blow is not None:
            self.crashes += 1
            raise Crash(blow)
        if self._climate.jitter and self._rng.random() < self._climate.jitter:
            await rest(self._rng.random() * 0.1)

    def _draw(self) -> int:
        if self._climate.crash == 0.0:
            return -1
        return self.awaits + 1 + int(self._rng.expovariate(self._climate.crash))


def _nothing(_delay: float) -> None:
    return
