"""A small repository, a graph of tasks and a recorded team that carries it out: no model, no key, no network.

Every task adds a part to a catalogue and its line to the list; a quick check holds the two against each other. Tasks
may be told to fail at first, to collide with another over the same line, or to be joined by a refinery.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairwitness.agents.cassette_file import name_of
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.forge.dag import Dag, DagMetadata, DagNode, NodeState, NodeType
from support.trust import trust

RUN = "run-2026-02-26-143000"
MOMENT = "2026-02-26T14:30:00Z"
CHECK = """\
if test -e slow; then sleep 2; fi
# every part that stands in the catalogue is good, and the newest is one of them
for part in ${*:-parts/*}; do
  grep -qx good "$part" || { echo "$part is no good"; exit 1; }
done
newest=$(cat newest)
test -e "parts/$newest" || { echo "the newest, $newest, is not there"; exit 1; }
"""
SETTINGS = """\
[verify]
mutants = 0

[[verify.check]]
name = "tests"
argv = ["sh", "check.sh"]
"""
FILES = {"check.sh": CHECK, "fairwitness.toml": SETTINGS, "parts/first": "good\n", "newest": "first\n"}
_SECTIONS = ("Summary", "Approach", "Issues Encountered", "Testing")
_NOTHING = "sha256:" + "0" * 64
_PERSON = {"NAME": "Ada", "EMAIL": "ada@example.org"}


@dataclass(frozen=True, slots=True)
class Task:
    """One node, and how its recorded agents behave."""

    id: str
    after: tuple[str, ...] = ()
    is_refinery: bool = False
    bad_attempts: int = 0
    """How many attempts leave a part that is no good."""
    newest: bool = False
    """Whether it also writes the one line that others write too; the helper of such a task settles it."""
    writes: tuple[str, ...] | None = None
    """What it declares to write."""
    slow: bool = False
    """Whether its agent takes two seconds, for which it runs the check in its worktree."""


Calls = Sequence[tuple[str, dict[str, str]]]

_SLOWLY: Calls = (
    ("create_file", {"path": "slow", "content": "yes\n"}),
    ("run_in_terminal", {"command": "sh check.sh"}),
    ("run_in_terminal", {"command": "rm slow"}),
)

TWELVE = (
    Task("task-01"),
    Task("task-02"),
    Task("task-03", bad_attempts=1),
    Task("task-04", ("task-01", "task-02")),
    Task("task-05", ("task-02",), newest=True),
    Task("task-06", ("task-02",), newest=True),
    Task("task-07", ("task-04",)),
    Task("task-08", ("task-04",)),
    Task("refinery-01", ("task-07", "task-08"), is_refinery=True),
    Task("task-09", ("refinery-01",)),
    Task("task-10", ("task-03", "task-06")),
    Task("task-11", ("task-09", "task-10")),
)
"""Twelve nodes with a failed attempt, a conflict and a refinery."""


def dag_of(tasks: Sequence[Task], run_id: str = RUN) -> Dag:
    """The graph of some tasks."""
    refineries = sum(task.is_refinery for task in tasks)
    return Dag(
        version=1,
        runId=run_id,
        nodes=tuple(
            DagNode(
                id=task.id,
                type=NodeType.REFINERY if task.is_refinery else NodeType.TASK,
                agentType="refinery" if task.is_refinery else 2,
                dependencies=task.after,
                status=NodeState.PENDING,
                metadata=None if task.writes is None else {"writes": list(task.writes)},
            )
            for task in tasks
        ),
        metadata=DagMetadata(
            createdAt=MOMENT, createdBy="captain", totalTasks=len(tasks) - refineries, totalRefineries=refineries
        ),
    )


def documents_of(tasks: Sequence[Task]) -> dict[str, str]:
    """What each agent is told."""
    return {task.id: f"Add the part {task.id} to the catalogue.\n" for task in tasks}


def lay_out(folder: Path) -> Path:
    """The repository, with one commit."""
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    for arguments in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "a catalogue")):
        _git(folder, *arguments)
    trust(folder)
    return folder


def record(folder: Path, tasks: Sequence[Task], *, attempts: int = 3) -> Path:
    """The recordings of every attempt that can be made, and of every helper that can be asked."""
    folder.mkdir(parents=True, exist_ok=True)
    for task in tasks:
        for attempt in range(1, attempts + 1):
            content = "no good\n" if attempt <= task.bad_attempts else "good\n"
            part = ("create_file", {"path": f"parts/{task.id}", "content": content})
            calls: list[tuple[str, dict[str, str]]] = [] if task.is_refinery else [part]
            if task.slow:
                calls = [*_SLOWLY, *calls]
            if task.newest:
                calls.append(("create_file", {"path": "newest", "content": f"{task.id}\n"}))
            role = Role.REFINERY if task.is_refinery else Role.WORKER
            _session(folder, role, f"{task.id}-{attempt}", calls, _answer(role, calls))
            # whoever comes second is helped: what the helper leaves must not tell who that was
            settled = [("create_file", {"path": "newest", "content": "first\n"})]
            helper = f"{task.id}-{attempt}-help"
            _session(folder, Role.THROWAWAY, helper, settled, _answer(Role.THROWAWAY, settled))
    return folder


def _answer(role: Role, calls: Calls) -> dict[str, Any]:
    walkthrough = {
        "status": "completed",
        "confidence": 0.9,
        "time_spent_minutes": 1,
        "files_changed": [
            {"path": args["path"], "reason": "the task asks for it"}
            for call, args in calls
            if "path" in args and (call, args) not in _SLOWLY  # that file is removed again
        ],
        "body": "".join(f"## {title}\n\nNothing more to say.\n\n" for title in _SECTIONS),
    }
    if role is not Role.REFINERY:
        return {"walkthrough": walkthrough}
    empty: dict[str, Any] = {
        name: [] for name in ("merged_branches", "unmerged", "failing_tests", "fixes", "change_requests")
    }
    return {**empty, "walkthrough": walkthrough}


def _session(folder: Path, role: Role, instance: str, calls: Calls, answer: Mapping[str, Any]) -> None:
    made = [{"tool": tool, "args": args, "ok": True} for tool, args in calls]
    rows: list[dict[str, Any]] = [
        {"cassette": 1, "role": role.value, "instance": instance, "model": "scripted", "prompt": _NOTHING},
        {"turn": 0, "text": "I do it.", "calls": made, "usage": [900, 60], "ms": 0, "seen": None},
        {"turn": 1, "text": "Done.", "calls": [], "submitted": answer, "usage": [1000, 60], "ms": 0, "seen": None},
    ]
    if not made:
        rows = [rows[0], {**rows[2], "turn": 0}]
    (folder / name_of(role, instance, 1)).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def _git(folder: Path, *arguments: str) -> None:
    """Git as the repository's own person, at a fixed time, whatever the real one has configured."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in _PERSON.items()},
        **{f"GIT_{who}_DATE": MOMENT for who in ("AUTHOR", "COMMITTER")},
    }
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, stdout=sys.stderr)
