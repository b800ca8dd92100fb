"""What all parts of a simulated world stand on: its time, its weather, its verdicts, and how long things take."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

from fairwitness.contracts.graph.orders import Worked
from fairwitness.kit.clock import spell
from support.graph.sim_engine import SimEngine, Takes
from support.graph.sim_faults import Verdicts, Weather
from support.graph.sim_git import SimGit
from support.graph.sim_time import Timeline, rest
from support.graph.sim_watch import Watch

DAWN = datetime(2026, 2, 26, 14, 30, tzinfo=UTC)
_USUAL = {
    "begin": (0.0, 0.05),
    "prepare": (0.0, 0.1),
    "work": (0.5, 2.0),
    "prove": (0.1, 0.6),
    "stack": (0.0, 0.1),
    "check": (0.1, 0.6),
}


def usual_times(step: str, rng: Random) -> float:
    """Agents take longest, checks less, and all else hardly anything."""
    least, most = _USUAL.get(step, (0.0, 0.02))
    return rng.uniform(least, most)


@dataclass(slots=True)
class Ground:
    """One world."""

    timeline: Timeline
    weather: Weather
    verdicts: Verdicts
    engine: SimEngine
    git: SimGit
    watch: Watch
    rng: Random
    takes: Takes
    budget: int | None = None
    """How many agents may still be paid; None for any number."""
    answers: dict[str, Worked] = field(default_factory=dict)
    """By branch, what an agent answered that had finished."""

    async def spend(self, step: str) -> None:
        """A step takes its time, and the process may die before and after it."""
        await self.weather.breath()
        seconds = self.takes(step, self.rng)
        if seconds > 0:
            await rest(seconds)
        await self.weather.breath()

    def moment(self, seconds_ago: float = 0.0) -> str:
        """A moment of virtual time, spelled out."""
        return spell(DAWN + timedelta(seconds=self.timeline.now - seconds_ago))
