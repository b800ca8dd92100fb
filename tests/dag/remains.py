"""What a run leaves behind: what of it is the same at every run with the same decisions, and what must not be there."""

import contextlib
import fcntl
import json
import os
import re
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dag.program import TARGET
from fairwitness.app.views.ledger import verify_ledgers
from fairwitness.git.ledger_heads import PREFIX as HEADS
from fairwitness.git.quarantine import PREFIX
from fairwitness.git.reachability import lost
from fairwitness.git.repository import Repository
from fairwitness.runs.dispatch.budget_account import ENDED, STARTED
from support.graph.team import RUN

TABLES = ("anvil_checks", "executions", "observations", "claims", "pipeline_telemetry", "approvals", "check_sources")
PASSING = frozenset(
    {
        *("id", "ts", "started_at", "completed_at", "observed_at", "claimed_at", "timestamp", "event_id"),
        *("check_id", "execution_id", "observation_id", "claim_id", "execution", "dotgit"),
        *("duration_ms", "wall_ms", "cpu_ms", "setup_ms", "peak_memory", "peak_processes"),
        *("tries", "spending", "result", "transcript"),
    }
)
"""Columns and fields that differ from run to run: numbers, times, how long and how much, and digests over these."""
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?")
_ID = re.compile(r"\b(?:[0-9a-f]{40}|[0-9a-f]{12})\b")


class Content(NamedTuple):
    """What a run left that is the same at every run with the same decisions."""

    tree: Mapping[str, str]
    """The target's files."""
    decisions: Sequence[str]
    """Its events in their order."""
    courses: Mapping[str, Sequence[str]]
    """By node, the states it went through."""
    rows: Counter[str]
    """Of the ledger's tables."""
    tries: Mapping[str, int]
    """By dispatch, how often it was begun."""
    left: Mapping[str, str]
    """By dispatch, the tree that a killed try left behind last."""
    quarantined: Sequence[str]
    """The trees that are kept though nobody wanted them."""


def content_of(root: Path) -> Content:
    """Reads all of it; every dispatch that was begun must have ended, once."""
    repository = root / "repo"
    commits = _commits(repository)
    with contextlib.closing(sqlite3.connect(repository / ".fairwitness" / "evidence.db")) as connection:
        connection.row_factory = sqlite3.Row
        events = [dict(row) for row in connection.execute("SELECT * FROM events ORDER BY seq")]
        rows = {name: [dict(row) for row in connection.execute(f"SELECT * FROM {name}")] for name in TABLES}
    begun = [row for row in rows["observations"] if row["kind"] == STARTED]
    tries = Counter(row["subject"] for row in begun)
    assert Counter(row["subject"] for row in rows["observations"] if row["kind"] == ENDED) == dict.fromkeys(tries, 1)
    courses: dict[str, list[str]] = {}
    for event in events:
        if event["type"] == "node.changed":
            data = json.loads(event["data"])
            courses.setdefault(data["nodeId"], []).append(f"{data['attemptId']} {data['newStatus']}")
    details = {row["subject"]: json.loads(row["detail"]) for row in begun}
    return Content(
        tree=_files(repository),
        decisions=[_plain(event, commits) for event in events],
        courses=courses,
        rows=Counter(
            f"{name} {_plain(row, commits)}"
            for name, found in rows.items()
            for row in found
            if not _is_another_try(name, row)
        ),
        tries=tries,
        left={name: detail["left_by_killed_try"] for name, detail in details.items() if tries[name] > 1},
        quarantined=sorted(
            git(repository, "rev-parse", f"{commit}^{{tree}}")
            for commit in git(repository, "for-each-ref", "--format=%(objectname)", PREFIX).split()
        ),
    )


def _is_another_try(table: str, row: Mapping[str, Any]) -> bool:
    """The one kind of row that a kill adds: a dispatch that is begun again says so, and what its last try had left."""
    return table == "observations" and row["kind"] == STARTED and not row["key"].endswith(":try-1")


def _plain(row: Mapping[str, Any], commits: frozenset[str]) -> str:
    """A row as text, without what passes."""

    def walk(value: Any, name: str) -> Any:
        if name in PASSING:
            return "*"
        if isinstance(value, dict):
            return {key: walk(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [walk(inner, "") for inner in value]
        if not isinstance(value, str):
            return value
        if value[:1] in ("{", "["):
            with contextlib.suppress(ValueError):
                return walk(json.loads(value), "")
        return _ID.sub(lambda found: "commit" if found[0] in commits else found[0], _TIME.sub("time", value))

    return json.dumps(walk(dict(row), ""), sort_keys=True)


def assert_same(found: Content, reference: Content) -> None:
    """The same decisions and the same evidence; only how often dispatches were begun may differ."""
    assert found.tree == reference.tree
    assert found.decisions == reference.decisions
    assert found.rows - reference.rows == Counter()
    assert reference.rows - found.rows == Counter()
    assert found.quarantined == reference.quarantined
    assert found.tries.keys() == reference.tries.keys()


def assert_alike(found: Content, reference: Content, *, contested: frozenset[str]) -> None:
    """The same as far as it does not depend on who was quicker: uncontested files, and each node's course."""
    assert _but(found.tree, contested) == _but(reference.tree, contested)
    assert found.courses == reference.courses
    helped = {name for name in found.tries.keys() | reference.tries.keys() if name.endswith("-help")}
    assert found.tries.keys() - helped == reference.tries.keys() - helped


def _but(files: Mapping[str, str], contested: frozenset[str]) -> dict[str, str]:
    return {path: file for path, file in files.items() if path not in contested}


def assert_clean(root: Path) -> None:
    """Nothing is left of a run that ended but its target, its ledger and what is kept on purpose; nothing is lost.

    The head of its ledger is kept on purpose, as a ref.
    """
    repository = root / "repo"
    state = repository / ".fairwitness"
    refs = git(repository, "for-each-ref", "--format=%(refname)").split()
    left = [f"{HEADS}{RUN}", f"refs/heads/{TARGET}", "refs/heads/main"]
    assert [ref for ref in refs if not ref.startswith(PREFIX)] == left
    assert git(repository, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert not _names(repository / ".git" / "worktrees")
    assert not list((repository / ".git").glob("fairwitness*"))
    assert git(repository, "status", "--porcelain") == ""
    assert _names(state / "worktrees") <= {"pool", "aside"}
    assert not _names(state / "worktrees" / "aside")
    assert all(name.isdecimal() for name in _names(state / "worktrees" / "pool"))
    assert not _names(state / "work")
    assert not [lock for lock in repository.rglob("*") if _is_held(lock)]
    assert {status for (status,) in _rows(state / "engine.db", "SELECT status FROM workflow_status")} == {"SUCCESS"}
    assert not _rows(state / "engine.db", "SELECT executor FROM engine_lease UNION SELECT run_id FROM engine_body")
    assert {(report.findings, report.rebuilt) for report in verify_ledgers(repository)} == {((), False)}
    last, told = _rows(state / "evidence.db", "SELECT MAX(seq), GROUP_CONCAT(data) FROM events")[0]
    shown = json.loads((state / "artifacts" / RUN / "run-state.json").read_text())
    assert (shown["status"], shown["lastEventSeq"]) == ("completed", last)
    named = sorted(name for name in _commits(repository).intersection(_ID.findall(told)) if len(name) == 40)
    assert named
    assert lost(Repository.open(repository), RUN, named) == ()


def _rows(file: Path, query: str) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*")}


def _is_held(path: Path) -> bool:
    """Whether a path is a lock that somebody holds; git's own are held by being there."""
    if path.suffix not in (".lock", ".turn") and not path.name.startswith("engine.db-re"):
        return False
    if ".git" in path.parts:
        return True
    handle = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _commits(repository: Path) -> frozenset[str]:
    """Every commit there is, by its whole name and by a short one."""
    listed = git(repository, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
    return frozenset(
        name for line in listed.splitlines() if line.endswith(" commit") for name in (line[:40], line[:12])
    )


def _files(repository: Path) -> dict[str, str]:
    listed = git(repository, "ls-tree", "-r", TARGET)
    return {line.split("\t")[1]: line.split()[2] for line in listed.splitlines()}


def git(repository: Path, *arguments: str) -> str:
    """What git prints in a repository."""
    done = subprocess.run(["git", *arguments], cwd=repository, check=True, capture_output=True, text=True)
    return done.stdout.strip()
