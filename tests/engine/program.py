"""A worker of its own: opens the engine, submits a run if it was given one, and leaves when that run has ended."""

import asyncio
import json
import socket
import sys
from pathlib import Path

from engine.flows import Scene, flows
from engine.grounds import Ground, Kind


async def main() -> None:
    """What the one argument says."""
    spec = json.loads(sys.argv[1])
    if spec["host"]:
        socket.sethostname(spec["host"])
    scene = Scene(Path(spec["log"]), spec["kill"])
    ground = Ground(Kind(spec["kind"]), spec["address"], Path(spec["log"]).parent)
    engine = ground.make(flows(scene), cap=spec["cap"])
    await engine.open(worker=True)
    scene.tells("open", "-", "-")
    if spec["flow"]:
        await engine.submit(spec["run"], spec["flow"], spec["args"])
    while not spec["run"] or await engine.outcome(spec["run"]) is None:  # noqa: ASYNC110 -- it is looked up
        await asyncio.sleep(0.01)
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main())
