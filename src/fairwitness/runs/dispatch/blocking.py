"""Blocking calls from async code, with cancellation that waits for the thread to end."""

import asyncio
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")


T = TypeVar("T")


async def run_blocking(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a blocking function in a thread. If the caller is cancelled, wait for the function to end first: a step
    that is over must leave nothing running."""
    thread = asyncio.create_task(asyncio.to_thread(function, *args, **kwargs))
    cancelled: asyncio.CancelledError | None = None
    while not thread.done():
        try:
            await asyncio.shield(thread)
        except asyncio.CancelledError as error:
            cancelled = error
        except Exception:  # noqa: BLE001  # raised below, once
            break
    if cancelled is not None:
        thread.exception()
        raise cancelled
    return thread.result()


async def run_blocking_stoppable(function: Callable[[threading.Event], T]) -> T:
    """Call a blocking function in a thread as `run_blocking` does; a cancelled caller sets the function's stop
    event."""
    stop = threading.Event()
    ending = asyncio.create_task(run_blocking(function, stop))
    try:
        return await asyncio.shield(ending)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait({ending})
        if not ending.cancelled():
            ending.exception()
        raise
