"""Begins and carries out a graph with a recorded team, in a process of its own.

`python -m dag.program run ROOT` works on the run that `begin` laid out until it ends, and may be killed and called
again as often as one likes.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from fairwitness.app.assembly.engine import FORGE_FLOW, build_engine
from fairwitness.contracts.graph.orders import GraphOptions
from support.graph.begin import begin_graph
from support.graph.team import RUN, TWELVE, Task, dag_of, documents_of, lay_out, record

TARGET = "fairwitness/target"

_WRITES = ("parts/task-01",)
"""Once one task says what it writes, each of the others may write anything: they run one after the other."""

TWELVE_ALONE = (Task("task-01", writes=_WRITES), *TWELVE[1:])
"""The same twelve one after the other: everything that happens is settled beforehand."""

FIVE = (
    Task("task-01"),
    Task("task-02", newest=True),
    Task("task-03", newest=True),
    Task("task-04", ("task-01",), bad_attempts=1),
    Task("refinery-01", ("task-04",), is_refinery=True),
)
"""A failed attempt, a conflict and a refinery, as short as it can be."""

FIVE_ALONE = (Task("task-01", writes=_WRITES), *FIVE[1:])

ONE = (Task("task-01"),)

GRAPHS = {"twelve": TWELVE, "twelve-alone": TWELVE_ALONE, "five": FIVE, "five-alone": FIVE_ALONE, "one": ONE}


def lay(root: Path, tasks: tuple[Task, ...], *, check: str | None = None, runs: str | None = None) -> None:
    """The repository and the recordings; `check` is put before the usual one, and agents run a last command."""
    repository, recordings = lay_out(root / "repo"), record(root / "recordings", tasks)
    for recording in recordings.iterdir() if runs is not None else ():
        header, first, *rest = map(json.loads, recording.read_text().splitlines())
        first["calls"].append({"tool": "run_in_terminal", "args": {"command": runs}, "ok": True})
        recording.write_text("".join(f"{json.dumps(row)}\n" for row in (header, first, *rest)))
    if check is not None:
        script = repository / "check.sh"
        script.write_text(f"{check}\n{script.read_text()}")
        person = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgSign=false")
        subprocess.run(["git", *person, "commit", "-qam", "another check"], cwd=repository, check=True)


def begin(root: Path, tasks: tuple[Task, ...]) -> None:
    """The first record of the run."""
    begin_graph(
        root / "repo",
        dag_of(tasks),
        documents_of(tasks),
        request="Fill the catalogue.",
        options=GraphOptions(target=TARGET, look_s=0.2),
        agents="cassette",
        cassettes=root / "recordings",
    )


async def run(root: Path) -> None:
    """Works on the run until it ends, and prints how."""
    engine = build_engine(root / "repo")
    await engine.open(worker=True)
    try:
        await engine.submit(RUN, FORGE_FLOW, {"run_id": RUN})
        while (outcome := await engine.outcome(RUN)) is None:  # noqa: ASYNC110 -- it is looked up
            await asyncio.sleep(0.05)
        print(json.dumps({"status": outcome.status, "value": outcome.value, "error": outcome.error}))  # noqa: T201
    finally:
        await engine.close()


def main(what: str, root: Path, graph: str = "twelve") -> None:
    """What the arguments say."""
    if what == "run":
        asyncio.run(run(root))
        return
    if what == "lay":
        lay(root, GRAPHS[graph])
    begin(root, GRAPHS[graph])


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
