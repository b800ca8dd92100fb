"""`fairwitness dag show`: the graph as a table, for Graphviz and as JSON; whatever stands in it, it fits and is quick."""  # noqa: E501

import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from app.graph_walk import Walk, dag_of
from cli.graph_ledgers import completed, failed, fits, going
from cli.runner import fairwitness
from fairwitness.app.views.graph import critical_path
from fairwitness.cli.commands.dag import _quoted
from fairwitness.contracts.forge import events as happened
from fairwitness.contracts.forge.dag import Dag
from fairwitness.contracts.forge.documents import WalkthroughStatus
from fairwitness.contracts.forge.status import DagStatus, RunState
from fairwitness.rules.dag import COUNTED, run_counts
from support.state import own_state


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for made in (completed, failed, going):
        made(tmp_path).close()
    return tmp_path


@pytest.mark.req("F3")
def test_the_table_has_each_node_with_its_state_attempt_and_what_it_waits_for(repository: Path) -> None:
    done = fairwitness("dag", "show", "run-going", cwd=repository)
    assert done.returncode == 0
    rows = [line[2:].split() for line in done.stdout.splitlines()]
    assert ["schema", "task", "MERGED", "1/2"] in rows
    assert ["cli", "task", "RUNNING", "1/2", "to", "be", "merged"] in rows
    assert ["auth", "task", "PENDING", "1/2", "ledger"] in rows
    assert any(row[:6] == ["ledger", "task", "RUNNING", "2/2", "at", "work"] for row in rows)
    assert "executing: 1 of 5 merged, 2 running" in done.stdout
    marked = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("* ")]
    assert marked[:2] == ["ledger", "auth"]
    assert len(marked) == 4  # the long name, and the way itself
    assert fits(done.stdout)


def test_a_failed_node_says_why(repository: Path) -> None:
    done = fairwitness("dag", "show", "run-failed", cwd=repository)
    row = next(line for line in done.stdout.splitlines() if line[2:].startswith("x "))
    assert "FAILED" in row
    assert "\\x1b]0;pwned" in row
    assert "failed: 0 of 2 merged, 1 failed for good" in done.stdout
    assert fits(done.stdout)
    assert fits(fairwitness("dag", "show", "run-failed", cwd=repository, COLUMNS="60").stdout, 60)


def test_a_refinery_and_what_it_takes_in(tmp_path: Path) -> None:
    walk = Walk(tmp_path, dag_of("run-1", {"a": (), "b": (), "join": ("a", "b")}, refineries=["join"]))
    walk.tell(happened.ForgeRunStarted())
    walk.start("a")
    walk.verify("a")
    walk.close()
    rows = [line[2:].split() for line in fairwitness("dag", "show", "run-1", cwd=tmp_path).stdout.splitlines()]
    assert ["a", "task", "MERGE_READY", "1/2", "what", "takes", "it", "in"] in rows
    assert ["join", "refinery", "PENDING", "1/2", "b"] in rows


@pytest.mark.req("F2")
def test_a_worker_that_is_unsure_asks_for_a_review_until_another_attempt_is_sure(tmp_path: Path) -> None:
    walk = Walk(tmp_path, dag_of("run-1", {"a": (), "b": (), "c": ()}))
    walk.tell(happened.ForgeRunStarted())
    for name, sure in (("a", 0.4), ("b", 0.4), ("b", 0.9), ("c", 0.6)):
        said = WalkthroughStatus.COMPLETED
        walk.tell(
            happened.WalkthroughWritten(nodeId=name, attemptId=1, status=said, confidence=sure, path="walkthrough.md")
        )
        if sure < 0.6:
            walk.tell(happened.LowConfidence(nodeId=name, confidence=sure))
    walk.close()
    shown = fairwitness("dag", "show", "run-1", cwd=tmp_path).stdout
    rows = [line[2:].split() for line in shown.splitlines()]
    assert ["a", "task", "PENDING", "1/2", "confidence", "0.40,", "review", "it,", "ready"] in rows
    assert shown.count("review it") == 1
    assert json.loads(fairwitness("dag", "show", "run-1", "--json", cwd=tmp_path).stdout)["reviews"] == {"a": 0.4}
    status = fairwitness("status", "run-1", cwd=tmp_path).stdout
    assert "review    fairwitness task show a (confidence 0.40)" in status
    assert json.loads(fairwitness("status", "run-1", "--json", cwd=tmp_path).stdout)["reviews"] == {"a": 0.4}
    ended = Walk(tmp_path, dag_of("run-2", {"a": ()}))
    ended.tell(happened.ForgeRunStarted(), happened.LowConfidence(nodeId="a", confidence=0.5))
    ended.tell(happened.RunFailed(reason="nothing can run any more"))
    ended.close()
    status = fairwitness("status", "run-2", cwd=tmp_path).stdout
    assert "review    fairwitness task show a (confidence 0.50)" in status


def test_an_overlay_is_part_of_the_graph(tmp_path: Path) -> None:
    walk = Walk(tmp_path, dag_of("run-1", {"a": ()}))
    walk.tell(happened.ForgeRunStarted())
    walk.grow(1, "added")
    walk.close()
    done = fairwitness("dag", "show", "run-1", cwd=tmp_path)
    assert ["added", "task", "PENDING", "1/2", "ready"] in [line[2:].split() for line in done.stdout.splitlines()]
    assert "0 of 2 merged" in done.stdout


@pytest.mark.req("F3")
def test_json_holds_the_documents_of_forge(repository: Path) -> None:
    for run in ("run-going", "run-failed", "run-completed"):
        shown = json.loads(fairwitness("dag", "show", run, "--json", cwd=repository).stdout)
        assert set(shown) == {"dag", "status", "run", "reviews"}
        dag, status = Dag.model_validate(shown["dag"]), DagStatus.model_validate(shown["status"])
        state = RunState.model_validate(shown["run"])
        assert {node.id for node in dag.nodes} == set(status.nodes)
        assert state.model_dump(include=set(COUNTED)) == run_counts(status)


DOT_LINE = re.compile(r'  ("(?:[^"\\]|\\.)*")(?: -> ("(?:[^"\\]|\\.)*"))?(?: \[[^\]]*\])?;')


def test_dot_is_a_graph_with_every_node_and_edge(repository: Path) -> None:
    done = fairwitness("dag", "show", "run-going", "--dot", cwd=repository)
    first, settings, *lines, last = done.stdout.splitlines()
    assert (first, last) == ('digraph "run-going" {', "}")
    assert settings.startswith("  rankdir=LR")
    assert all(DOT_LINE.fullmatch(line) for line in lines)
    assert sum(" -> " in line for line in lines) == 5
    assert '  "schema" [label="schema\\nMERGED 1/2", fillcolor=palegreen];' in lines
    assert '  "ledger" -> "auth" [penwidth=3];' in lines
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg"], input=done.stdout, text=True, capture_output=True, check=True)


@pytest.mark.parametrize(
    ("text", "quoted"), [('a"b', r'"a\"b"'), ("a\\", r'"a\\"'), ('\\"', r'"\\\""'), ("a\\nb", r'"a\\nb"')]
)
def test_nothing_leaves_the_string_that_it_is_written_in(text: str, quoted: str) -> None:
    assert _quoted(text) == quoted


def test_the_longest_way_goes_by_estimates_and_leaves_out_what_is_not_asked_for() -> None:
    dag = dag_of("run-1", {"a": (), "b": ("a",), "c": ("b",), "long": ("a",)})
    nodes = {node.id: node for node in dag.nodes}
    assert critical_path(nodes) == ("a", "b", "c")
    nodes["long"] = nodes["long"].model_copy(update={"metadata": {"estimate": 9}})
    assert critical_path(nodes) == ("a", "long")
    del nodes["a"]
    assert critical_path(nodes) == ("long",)
    assert critical_path({}) == ()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("run-goin",), 2, "there is no run 'run-goin'"),
        (("run-going", "--dot", "--json"), 2, "choose one"),
    ],
)
def test_what_cannot_be_shown_is_said(repository: Path, arguments: tuple[str, ...], code: int, words: str) -> None:
    done = fairwitness("dag", "show", *arguments, cwd=repository)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr


def test_a_run_without_a_graph_and_a_graph_that_was_tampered_with(repository: Path) -> None:
    import sqlite3

    from fairwitness.contracts.common.vocabulary import Workflow
    from fairwitness.ledger.ledger import Ledger

    ledger = Ledger.open_file(own_state(repository) / "evidence.db")
    ledger.record("other", lambda record: record.event(Workflow.FEATURE, "x", {}, timestamp="2026-02-26T14:30:00Z"))
    ledger.close()
    done = fairwitness("dag", "show", "other", cwd=repository)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "fairwitness: other is no run of a graph")
    with sqlite3.connect(repository / ".fairwitness" / "evidence.db") as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute('UPDATE observations SET detail = replace(detail, \'"id":"x"\', \'"id":"\x1b[2J"\')')
    connection.close()
    done = fairwitness("dag", "show", "run-failed", cwd=repository)
    assert (done.returncode, done.stdout) == (6, "")
    assert "run run-failed: observation graph does not fit this version" in done.stderr


@pytest.mark.req("F3")
def test_ten_thousand_nodes_are_shown_while_one_waits(tmp_path: Path) -> None:
    size = 10_000
    waits = {f"task-{number:05d}": (f"task-{number - 7:05d}",) if number >= 7 else () for number in range(size)}
    walk = Walk(tmp_path, dag_of("run-big", waits))
    walk.tell(happened.ForgeRunStarted())
    walk.close()
    began = time.monotonic()
    done = fairwitness("dag", "show", "run-big", cwd=tmp_path)
    assert len(done.stdout.splitlines()) == size + 3
    assert time.monotonic() - began < 10  # about one second where nobody else works
