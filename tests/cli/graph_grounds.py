"""Repositories with a run that a recorded team carries out, and `fairwitness` at work on it in processes of its own."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.runner import FAIRWITNESS
from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.graph.orders import GraphOptions
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.graph.log import GraphLog
from fairwitness.sandbox.probe import probe
from support.graph.begin import begin_graph
from support.graph.team import RUN, Task, dag_of, documents_of, lay_out, record
from support.state import own_state

TARGET = f"fairwitness/{RUN}/target"
NEEDS_SANDBOX = pytest.mark.skipif(not probe().tiers, reason="nothing here can keep a command in")
SLOW = (Task("task-01", slow=True), Task("task-02", ("task-01",)))


def begun(root: Path, *tasks: Task, run_id: str = RUN, slow_s: int | None = None) -> Path:
    """A repository with a run that nobody has taken yet; slow agents may take longer than the usual two seconds."""
    folder = lay_out(root / "repo")
    if slow_s is not None:
        script = folder / "check.sh"
        script.write_text(script.read_text().replace("sleep 2", f"sleep {slow_s}"))
        git(folder, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-qam", "slower")
    begin_graph(
        folder,
        dag_of(tasks, run_id),
        documents_of(tasks),
        request="Fill the catalogue.",
        options=GraphOptions(target=f"fairwitness/{run_id}/target", look_s=0.1),
        agents="cassette",
        cassettes=record(root / "recordings", tasks),
    )
    return folder


def tell(repository: Path, *events: EventData, run_id: str = RUN) -> None:
    """Something happens in a run that nobody carries."""
    ledger = Ledger.open_file(own_state(repository) / "evidence.db")
    try:
        GraphLog(ledger, run_id).write(lambda _now: events)
    finally:
        ledger.close()


def types_of(repository: Path, run_id: str = RUN) -> list[str]:
    """What happened, by its kind."""
    ledger = Ledger.read_only(repository / ".fairwitness" / "evidence.db")
    try:
        return [event.type for event in ledger.events(run_id)]
    finally:
        ledger.close()


@contextmanager
def at_work(repository: Path, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """`fairwitness …` in a process of its own, ended in any case."""
    with subprocess.Popen(
        [FAIRWITNESS, *arguments], cwd=repository, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(repository: Path, type_: str, run_id: str = RUN) -> None:
    """Until an event of a kind stands in the run."""
    until = time.monotonic() + 60
    while type_ not in types_of(repository, run_id):
        assert time.monotonic() < until, type_
        time.sleep(0.05)


def git(repository: Path, *arguments: str) -> str:
    """What git says."""
    done = subprocess.run(["git", *arguments], cwd=repository, capture_output=True, text=True, check=True)
    return done.stdout.strip()
