"""How a run of a graph ends: as it really is, and not before it has."""

import asyncio
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairwitness.app.assembly.engine import RunnerFactory
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.feature.events import FeatureRunStarted
from fairwitness.contracts.forge.dag import DagOverlay, NodeState
from fairwitness.contracts.forge.events import BranchMerged, MergeFinished, MergeStarted, NodeChanged, TaskVerified
from fairwitness.contracts.graph.orders import GraphEnd, GraphOptions
from fairwitness.errors import UsageError
from fairwitness.git import quarantine
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.next_forge_move import ForgeMove, ForgeMoveKind
from fairwitness.runs.forge.runner import ForgeRunner
from fairwitness.runs.graph.log import GRAPH, GraphLog, plain_graph
from fairwitness.sandbox.probe import probe
from fairwitness.store.layout.forge import ForgeLayout
from git.person import Person
from support.graph.begin import begin_graph
from support.graph.team import MOMENT, RUN, Task, dag_of, documents_of, lay_out, record

TARGET = "fairwitness/target"
TASKS = (Task("task-01"),)

pytestmark = pytest.mark.skipif(not probe().tiers, reason="nothing here can keep a command in")


@pytest.fixture
def person(tmp_path: Path) -> Person:
    (tmp_path / "home").mkdir()
    begin(lay_out(tmp_path / "repo"), tmp_path)
    return Person(tmp_path / "repo", tmp_path / "home")


def begin(repository: Path, root: Path) -> None:
    begin_graph(
        repository,
        dag_of(TASKS),
        documents_of(TASKS),
        request="Fill the catalogue.",
        options=GraphOptions(target=TARGET),
        agents="cassette",
        cassettes=record(root / "recordings", TASKS),
    )


@pytest.fixture
def runner(person: Person) -> Iterator[ForgeRunner]:
    factory = RunnerFactory(person.folder)
    runner = factory.forge_runner(RUN)
    asyncio.run(runner.act(ForgeMove(ForgeMoveKind.START)))
    yield runner
    factory.ledger.close()


def merged(runner: ForgeRunner, tip: str) -> None:
    """The one task came into the target."""

    def change(before: NodeState, after: NodeState) -> NodeChanged:
        return NodeChanged(nodeId="task-01", previousStatus=before, newStatus=after, timestamp=MOMENT, attemptId=1)

    states = [NodeState.PENDING, NodeState.RUNNING, NodeState.DONE, NodeState.MERGE_READY, NodeState.MERGED]
    changes = [change(before, after) for before, after in itertools.pairwise(states)]
    runner.write(
        lambda _now: [
            changes[0],
            TaskVerified(nodeId="task-01", attemptId=1, commit=tip, tree=tip),
            MergeStarted(batch=1, nodes=("task-01",)),
            BranchMerged(nodeId="task-01", commit=tip),
            *changes[1:],
            MergeFinished(batch=1, tip=tip, landed=("task-01",), conflicting=(), left=(), checks=1),
        ]
    )


def types(runner: ForgeRunner) -> list[str]:
    return [event.type for event in runner.ledger.events(RUN)]


def end(tip: str) -> GraphEnd:
    return GraphEnd(completed=True, tip=tip, merged=1, exhausted=(), stranded=())


def child_of(person: Person, parent: str) -> str:
    tree = person.git("rev-parse", f"{parent}^{{tree}}")
    return person.git("commit-tree", "-p", parent, "-m", "merged", tree)


@pytest.mark.req("F6")
def test_a_run_id_is_given_once(person: Person, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"run {RUN} exists already"):
        begin(person.folder, tmp_path)


@pytest.mark.req("F10")
def test_a_run_that_is_completed_says_so_once(person: Person, runner: ForgeRunner) -> None:
    tip = child_of(person, "main")
    person.git("update-ref", f"refs/heads/{TARGET}", tip)
    merged(runner, tip)
    assert asyncio.run(runner.finish(end(tip)))
    assert asyncio.run(runner.finish(end(tip)))  # as after a kill
    assert types(runner).count("run.completed") == 1


@pytest.mark.req("P16")
def test_a_run_that_has_ended_leaves_no_half_of_a_file_that_a_killed_process_was_writing(
    person: Person, runner: ForgeRunner
) -> None:
    folder = person.folder / ForgeLayout(RUN).folder
    half = folder / ".run-state.json.0123456789abcdef.tmp"
    half.write_bytes(b"{")
    os.utime(half, (1, 1))
    tip = child_of(person, "main")
    person.git("update-ref", f"refs/heads/{TARGET}", tip)
    merged(runner, tip)
    assert asyncio.run(runner.finish(end(tip)))
    assert not half.exists()
    assert (folder / "run-state.json").exists()


@pytest.mark.req("F5", "F10")
def test_a_graph_that_has_grown_since_is_not_over(person: Person, runner: ForgeRunner) -> None:
    before = types(runner)
    assert not asyncio.run(runner.finish(end(person.git("rev-parse", "main"))))
    assert types(runner) == before


@pytest.mark.req("F10")
def test_a_target_without_what_was_merged_is_no_good_end_and_the_work_is_kept(
    person: Person, runner: ForgeRunner
) -> None:
    tip, rewound = child_of(person, "main"), person.git("rev-parse", "main")
    merged(runner, tip)
    assert asyncio.run(runner.finish(end(rewound)))
    (last,) = [event for event in runner.ledger.events(RUN) if event.type == "run.failed"]
    assert "merged work was removed from the target" in last.data["reason"]
    assert [kept.commit for kept in quarantine.kept(RunnerFactory(person.folder).repository, RUN)] == [tip]


@pytest.mark.req("F5")
def test_nothing_is_added_to_a_run_that_has_ended(person: Person, runner: ForgeRunner) -> None:
    tip = child_of(person, "main")
    person.git("update-ref", f"refs/heads/{TARGET}", tip)
    merged(runner, tip)
    assert asyncio.run(runner.finish(end(tip)))
    overlay = DagOverlay(crId="cr-001", appliedAt=MOMENT, addedNodes=dag_of([Task("task-02")]).nodes, addedEdges=())
    assert [problem.expected for problem in runner.grow(overlay)] == ["a run that is under way"]
    assert types(runner)[-1] == "overlay.refused"


FEATURE = "2026-02-26T14:30:00Z"


def log_of(ledger: Ledger, number: int) -> GraphLog:
    """The book of one of a feature run's graphs, which is written down."""
    phase = str(number)
    log = GraphLog(ledger, FEATURE, workflow=Workflow.FEATURE, phase=phase)
    options = GraphOptions(target=TARGET, first_attempt=number, max_attempts=number, phase=phase)
    dag = dag_of(TASKS).model_copy(update={"runId": FEATURE})
    detail = plain_graph(dag, options, "abc1234", {}, {})
    seen = log.observation(f"{GRAPH}:{phase}", GRAPH, FEATURE, detail, MOMENT)
    ledger.record(FEATURE, lambda record: record.observation(seen))
    return log


@pytest.mark.req("P9")
def test_graphs_of_one_run_have_books_of_their_own(tmp_path: Path) -> None:
    ledger = Ledger.open_file(tmp_path / "evidence.db")
    first, second = log_of(ledger, 1), log_of(ledger, 2)
    assert [log.begun().options.phase for log in (first, second)] == ["1", "2"]
    assert asyncio.run(first.plan()).workflow is Workflow.FEATURE
    running = NodeChanged(
        nodeId="task-01",
        previousStatus=NodeState.PENDING,
        newStatus=NodeState.RUNNING,
        timestamp=MOMENT,
        attemptId=2,
    )
    second.write(lambda _now: [running])
    assert [log.run().nodes["task-01"].status for log in (first, second)] == [NodeState.PENDING, NodeState.RUNNING]
    (event,) = ledger.events(FEATURE)
    assert (event.workflow, event.phase, event.attempt) == (Workflow.FEATURE, "2", 2)
    ledger.close()


@pytest.mark.req("P9")
def test_a_run_of_graphs_has_no_graph_that_was_never_begun(tmp_path: Path) -> None:
    ledger = Ledger.open_file(tmp_path / "evidence.db")
    log_of(ledger, 1)
    for phase in (None, "2"):
        with pytest.raises(UsageError, match="is no run of a graph"):
            GraphLog(ledger, FEATURE, workflow=Workflow.FEATURE, phase=phase).begun()
    ledger.close()


@pytest.mark.req("P9")
def test_what_the_run_itself_tells_is_let_pass_by_its_graphs(tmp_path: Path) -> None:
    ledger = Ledger.open_file(tmp_path / "evidence.db")
    log = log_of(ledger, 1)
    began = FeatureRunStarted.model_validate(
        {
            "slug": "x",
            "mode": "autonomous",
            "base_commit": "abc1234",
            "baseline_tag": "pipeline-baseline-x",
            "settings_hash": f"sha256:{'0' * 64}",
        }
    )
    GraphLog(ledger, FEATURE, workflow=Workflow.FEATURE).write(lambda _now: [began])
    assert (log.run().seq, log.run().nodes["task-01"].currentAttempt) == (1, 1)
    ledger.close()
