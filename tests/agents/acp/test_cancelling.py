"""An agent that has to stop: politely if it hears, at once if it does not, and with everything it started."""

import asyncio
import time
from typing import Any

import pytest

from agents.acp.kit import Ground
from fairwitness.agents.base import AgentTurn, Session
from fairwitness.agents.driver import drive
from fairwitness.contracts.agents.dispatch import OutcomeStatus, Stop
from fairwitness.contracts.agents.profile import Quirks

pytestmark = pytest.mark.req("X3")


async def started(ground: Ground) -> None:
    """Waits until the agent has started something of its own."""
    for _ in range(500):
        if await asyncio.to_thread(ground.orphans):
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it started nothing")


def cancelled(ground: Ground, variant: str, **changes: Any) -> tuple[AgentTurn, float]:
    """The turn that was under way, and how long the cancelling took."""
    took: list[float] = []

    async def talk(session: Session) -> AgentTurn:
        asking = asyncio.ensure_future(session.ask("go"))
        await started(ground)
        began = time.monotonic()
        await session.cancel()
        took.append(time.monotonic() - began)
        assert await asyncio.to_thread(ground.orphans) == []
        turn = await asyncio.wait_for(asking, 1)
        assert (await session.ask("again")).stop is Stop.CANCELLED
        await session.cancel()
        return turn

    turn = ground.within(ground.backend(variant, **changes), talk)
    return turn, took[0]


def test_an_agent_that_hears_stops_at_once(ground: Ground) -> None:
    turn, took = cancelled(ground, "hang")
    assert turn.stop is Stop.CANCELLED
    assert took < 2.5


def test_an_agent_that_does_not_hear_is_killed_with_everything_it_started(ground: Ground) -> None:
    turn, took = cancelled(ground, "deaf")
    assert turn.stop is Stop.CANCELLED
    assert 3 <= took < 5


def test_an_agent_that_is_known_not_to_hear_is_not_waited_for(ground: Ground) -> None:
    turn, took = cancelled(ground, "deaf", quirks=Quirks(ignores_cancel=True))
    assert turn.stop is Stop.CANCELLED
    assert took < 2.5


def test_a_session_that_was_never_asked_can_be_cancelled(ground: Ground) -> None:
    async def talk(session: Session) -> AgentTurn:
        await session.cancel()
        return await session.ask("go")

    assert ground.within(ground.backend("answers"), talk).stop is Stop.CANCELLED


def test_an_agent_that_is_still_starting_can_be_cancelled(ground: Ground) -> None:
    async def talk(session: Session) -> AgentTurn:
        asking = asyncio.ensure_future(session.ask("go"))
        await asyncio.sleep(0.5)
        await session.cancel()
        return await asking

    assert ground.within(ground.backend("stuck-start"), talk).stop is Stop.CANCELLED


@pytest.mark.parametrize("variant", ["hang", "deaf"])
def test_leaving_a_session_that_hangs_leaves_nothing(ground: Ground, variant: str) -> None:
    async def talk(session: Session) -> None:
        asking = asyncio.ensure_future(session.ask("go"))
        await started(ground)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    ground.within(ground.backend(variant), talk)
    assert ground.orphans() == []
    assert not ground.home.parent.exists()


@pytest.mark.parametrize("variant", ["hang", "deaf"])
def test_when_time_is_up_the_driver_ends_it_all(ground: Ground, variant: str) -> None:
    outcome = asyncio.run(drive(ground.backend(variant), ground.job(wall_s=2)))
    assert outcome.status is OutcomeStatus.TIMED_OUT
    assert ground.orphans() == []
    assert not ground.home.parent.exists()


def test_who_started_a_dispatch_can_stop_it(ground: Ground) -> None:
    async def whole() -> OutcomeStatus:
        stop = asyncio.Event()
        driving = asyncio.ensure_future(drive(ground.backend("deaf"), ground.job(), stop=stop))
        await started(ground)
        stop.set()
        return (await driving).status

    assert asyncio.run(whole()) is OutcomeStatus.CANCELLED
    assert ground.orphans() == []
