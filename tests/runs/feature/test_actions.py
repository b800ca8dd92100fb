"""What a decision is followed by can be begun again at any time: it finds what it did, and does the rest."""

import asyncio
from pathlib import Path

import pytest

from fairwitness.contracts.common.decisions import Finish, Halt, Wait, WaitsFor
from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.common.vocabulary import Confidence, Severity
from fairwitness.contracts.feature.events import Degradation, DispatchStatus, FeatureRunResumed
from fairwitness.contracts.feature.facts import Step
from fairwitness.contracts.feature.review import Category, Perspective
from fairwitness.contracts.graph.orders import GraphEnd
from fairwitness.errors import InternalError, NotReady
from fairwitness.ledger.verify import verify
from fairwitness.runs.feature.actions import RunGraph
from fairwitness.runs.feature.decisions import TakenDecision
from fairwitness.runs.feature.tasks import FIX, FIX_NODE, TASKS, begin_graph, fix_node, graphs_of
from support.paper.run import Ground, PaperActions, PaperRun
from support.paper.script import Rows, Script, error, fails, finds

_WRONG = finds((Category.CORRECTNESS, Severity.MAJOR))
_FAILING = {f"step-7-2-{Perspective.SECURITY.value}-{number}": error() for number in (1, 2)}
_OBJECTING = {f"step-7-1-{each.value}-1": _WRONG for each in (Perspective.ARCHITECTURE, Perspective.PRAGMATIC)}


class Twice(PaperActions):
    """Does everything once more, as whoever is killed before it could say that it was done."""

    def __init__(self, run: PaperRun) -> None:
        super().__init__(run.context, run._caller, run._briefs, run._verify_deps, run.script)
        self.acted = 0

    async def act(self, taken: TakenDecision, carry: RunGraph) -> None:
        await super().act(taken, carry)
        before = self._context.ledger.head(self._context.run_id)
        await super().act(taken, carry)
        assert self._context.ledger.head(self._context.run_id) == before, taken.decision
        self.acted += 1


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground.lay(tmp_path_factory.mktemp("ground"))


SCRIPTS = {
    "everything goes well": Script(),
    "a task is planned anew": Script(rows={"task-01:1": fails()}),
    "a task fails for good and is reverted": Script(rows={f"task-01:{number}": fails() for number in (1, 2, 3)}),
    "a task cannot be merged": Script(rows={"task-01:1": Rows(merges=False)}),
    "the code is fixed": Script(calls=_OBJECTING),
    "calls are made again": Script(calls={"step-2-1-spec-1": error(), "step-5-1-task-01-1": error()}),
    "the bundle fails": Script(calls={f"step-8b-1-evidence-bundle-{number}": error() for number in (1, 2)}),
    "a run is resumed": Script(calls={f"step-3-1-designer-{number}": error() for number in (1, 2)}, resumes=1),
}


@pytest.mark.req("P16")
@pytest.mark.parametrize("name", SCRIPTS)
def test_whatever_is_done_twice_is_written_once(ground: Ground, tmp_path: Path, name: str) -> None:
    run = PaperRun(ground, tmp_path / "run", SCRIPTS[name])
    run._actions = Twice(run)
    taken = run.play()
    assert isinstance(taken[-1].decision, Halt | Finish)
    assert run._actions.acted == sum(not isinstance(each.decision, Halt | Finish | Wait) for each in taken)
    assert verify(run.context.ledger.database, run.context.run_id) == []
    run.close()


@pytest.mark.req("P9")
def test_an_attempt_that_the_merged_tree_speaks_against_has_a_row_that_says_so(ground: Ground, tmp_path: Path) -> None:
    run = PaperRun(ground, tmp_path / "run", SCRIPTS["a task cannot be merged"])
    taken = run.play()
    context = run.context
    rows = context.ledger.tally(context.run_id, "task-01", Phase.AFTER, 1).rows
    (refused,) = [row for row in rows if row.check_name == "regressions"]
    assert (refused.passed, refused.instance) == (False, "merged")
    assert [step.decision.kind for step in taken].count("replan") == 1
    assert [graph.iteration for graph in graphs_of(context)] == [1, 2]
    run.close()


@pytest.mark.req("P9")
def test_a_task_that_is_reverted_has_its_row_and_its_event_once(ground: Ground, tmp_path: Path) -> None:
    run = PaperRun(ground, tmp_path / "run", SCRIPTS["a task fails for good and is reverted"])
    run._actions = Twice(run)
    run.play()
    context = run.context
    told = [event for event in context.ledger.events(context.run_id) if event.type == "task_reverted"]
    rows = [
        row
        for number in (1, 2, 3)
        for row in context.ledger.tally(context.run_id, "task-01", Phase.AFTER, number).rows
        if row.check_name == "revert-task-01"
    ]
    assert len(rows) == len(told)
    assert {row.passed for row in rows} == {False}
    assert context.state().tasks["task-01"].merged is None
    run.close()


@pytest.mark.req("P7")
def test_a_fix_is_a_graph_of_its_own_with_what_was_found(ground: Ground, tmp_path: Path) -> None:
    run = PaperRun(ground, tmp_path / "run", SCRIPTS["the code is fixed"])
    run.play()
    graphs = graphs_of(run.context)
    assert [(graph.number, graph.kind, graph.iteration) for graph in graphs] == [(1, TASKS, 1), (2, FIX, 1)]
    assert graphs[1].findings == ("architecture-guardian/F-1", "pragmatic-verifier/F-1")
    run.close()


@pytest.mark.req("P7", "P17")
def test_reviews_of_which_no_look_was_seen_are_a_degradation_that_names_them(ground: Ground, tmp_path: Path) -> None:
    run = PaperRun(ground, tmp_path / "run", Script(is_unseen=True))
    taken = run.play()
    (told,) = [each for each in run.context.state().degradations if each.kind is Degradation.UNSEEN_REVIEW]
    assert all(perspective.value in told.detail for perspective in Perspective)
    assert "their program may read files by itself" in told.detail
    last = taken[-1].decision
    assert isinstance(last, Finish)
    assert last.confidence is Confidence.MEDIUM
    run.close()


@pytest.mark.req("P9")
def test_a_fix_that_cannot_be_merged_has_its_row_also_after_one_that_was(ground: Ground, tmp_path: Path) -> None:
    still = {f"step-7-2-{Perspective.PRAGMATIC.value}-1": _WRONG}
    again = Script(calls={**_OBJECTING, **_FAILING, **still}, rows={f"{FIX_NODE}:3": Rows(merges=False)})
    run = PaperRun(ground, tmp_path / "run", again)
    run.play()
    context = run.context
    assert context.state().tasks[FIX_NODE].merged_attempt == 2
    context.write_event(FeatureRunResumed(from_step=Step.CODE_REVIEW.value))
    assert begin_graph(context, FIX, [fix_node(["till/vouchers.py"])], 2, ("pragmatic-verifier/F-1",)) == 3
    asyncio.run(run._carry(3))
    for _ in range(2):
        run._actions._note_red_merges(2)
        run._actions._note_red_merges(3)
    for number, told in ((2, []), (3, ["merged"])):
        rows = context.ledger.tally(context.run_id, FIX_NODE, Phase.AFTER, number).rows
        assert [row.instance for row in rows if row.check_name == "regressions" and not row.passed] == told
    run.close()


def test_what_the_program_answers_itself_is_told_like_any_call(ground: Ground, tmp_path: Path) -> None:
    run = PaperRun(ground, tmp_path / "run", SCRIPTS["the bundle fails"])
    run.play()
    calls = {id_: call for id_, call in run.context.state().dispatches.items() if call.step == "step-8b"}
    assert [(call.instance, call.status) for call in calls.values()] == [
        ("evidence-bundle", DispatchStatus.ERROR),
        ("evidence-bundle", DispatchStatus.ERROR),
    ]
    assert all(call.reason for call in calls.values())
    run.close()


async def _never(_number: int) -> GraphEnd:
    raise AssertionError("no graph is carried out")


async def _held_up(_number: int) -> GraphEnd:
    return GraphEnd(completed=False, tip="abc1234", merged=0, exhausted=(), stranded=(), reason="the disk is full")


def test_nothing_can_be_done_about_a_wait(ground: Ground, tmp_path: Path) -> None:
    run = PaperRun(ground, tmp_path / "run", Script())
    wait = Wait(reason="...", waits_for=WaitsFor.PERSON, what=("x",))
    with pytest.raises(InternalError, match="nothing can be done about wait"):
        asyncio.run(run._actions.act(TakenDecision(1, wait, ()), _never))
    run.close()


def test_a_graph_that_the_machine_held_up_has_not_failed(ground: Ground, tmp_path: Path) -> None:
    class HeldUp(PaperActions):
        async def act(self, taken: TakenDecision, carry: RunGraph) -> None:
            await super().act(taken, _held_up)

    run = PaperRun(ground, tmp_path / "run", Script())
    run._actions = HeldUp(run.context, run._caller, run._briefs, run._verify_deps, run.script)
    with pytest.raises(Exception, match="the disk is full") as caught:
        run.play()
    assert isinstance(caught.value.__cause__, NotReady)
    assert run.context.state().ending is None
    run.close()
