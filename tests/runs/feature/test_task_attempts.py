"""Steps 5 and 6 for one task: what an implementer's end means for its attempt, and that rows decide, not agents."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.policy import Policy, RetryPolicy
from fairwitness.contracts.feature.facts import Step
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart, Candidate, Worked
from fairwitness.ledger.verify import verify
from fairwitness.runs.feature.task_attempts import FeatureGraphRunner, TaskImplementer
from fairwitness.runs.feature.tasks import FIX, FIX_NODE, TASKS, begin_graph, fix_node, graphs_of, nodes_of, plan_of
from runs.feature.run_events import enter, played
from support import demo_feature as demo
from support.paper.graph import PaperEvidence, hash_of
from support.paper.run import Ground, PaperRun, _no_proof
from support.paper.script import Ending, How, Rows, Script, error, fails

TASK = "task-01"


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground.lay(tmp_path_factory.mktemp("ground"))


class Bench:
    """A run that is about to implement its plan."""

    def __init__(self, ground: Ground, folder: Path, script: Script) -> None:
        self.run = PaperRun(ground, folder / "run", script)
        self.context = self.run.context
        for session in (demo.SPEC, demo.FIRST_DESIGN, demo.PLANNED):
            played(self.context, session)
        plan = plan_of(self.context)
        assert plan is not None
        enter(self.context, Step.IMPLEMENT)
        begin_graph(self.context, TASKS, nodes_of(self.context, plan), 1)
        for review in demo.CODE_REVIEWS["honest"]:
            played(self.context, review)
        begin_graph(self.context, FIX, [fix_node(["till/money.py"])], 1, ("architecture-guardian/ARC-1",))

    def order(self, node: str = TASK, **differs: Any) -> AttemptOrder:
        number = 2 if node == FIX_NODE else 1
        plain = {
            "run_id": self.context.run_id,
            "node": node,
            "attempt": number,
            "branch": f"fairwitness/{node}/attempt-{number}",
            "target": self.context.order.target,
            "phase": str(number),
        }
        return AttemptOrder.model_validate(plain | differs)

    def prepared(self, *conflicts: str) -> AttemptStart:
        base = self.context.order.base_commit
        return AttemptStart(base=base, start=base, conflicts=conflicts)

    def work(self, order: AttemptOrder, *conflicts: str) -> Worked:
        graph = graphs_of(self.context)[1 if order.node == FIX_NODE else 0]
        work = TaskImplementer(self.context, graph, self.run._caller, self.run._briefs)
        return asyncio.run(work(order, self.prepared(*conflicts), Path()))

    def runner(self, node: str = TASK) -> FeatureGraphRunner:
        graph, run = graphs_of(self.context)[1 if node == FIX_NODE else 0], self.run
        evidence = PaperEvidence(self.context, run._verify_deps, run.script)
        return FeatureGraphRunner(run._world, self.context, graph, run._caller, run._briefs, _no_proof, evidence)


@pytest.fixture
def bench(ground: Ground, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    made = Bench(ground, tmp_path, request.param)
    yield made
    made.run.close()


def _asked(bench: Bench, step: Step = Step.IMPLEMENT) -> list[str]:
    return [id_ for id_, call in bench.context.state().dispatches.items() if call.step == step.value]


_FIRST = f"step-5-1-{TASK}-1"
_BOTH = {f"step-5-1-{TASK}-{number}": error() for number in (1, 2)}
_POLICY = Policy(retry=RetryPolicy(dispatch=0))


@pytest.mark.req("P9", "P12")
@pytest.mark.parametrize(
    ("bench", "tries", "said"),
    [
        (Script(), 1, None),
        (Script(calls={_FIRST: error()}), 2, None),
        (Script(calls={_FIRST: Ending(How.TIMEOUT)}), 2, None),
        (Script(calls=_BOTH), 2, "agent_error: the script says error"),
        (Script(calls=_BOTH, policy=_POLICY), 1, "agent_error: the script says error"),
        (Script(calls={_FIRST: error(ErrorCause.MISSING_INPUT)}), 1, "agent_error: the script says error"),
        (Script(calls={_FIRST: error(ErrorCause.SECURITY_BLOCKER)}), 1, "agent_error: the script says error"),
    ],
    indirect=["bench"],
    ids=["done", "done then", "late", "twice", "no retry", "deterministic", "security"],
)
def test_an_implementer_is_asked_again_only_where_that_may_help(bench: Bench, tries: int, said: str | None) -> None:
    worked = bench.work(bench.order())
    assert (worked.done, worked.reason, worked.halt) == (said is None, said, None)
    assert _asked(bench) == [f"step-5-1-{TASK}-{number}" for number in range(1, tries + 1)]
    before = bench.context.ledger.head(bench.context.run_id)
    assert bench.work(bench.order()) == worked, "after a kill what ended is taken over"
    assert bench.context.ledger.head(bench.context.run_id) == before


@pytest.mark.parametrize("bench", [Script(calls={_FIRST: Ending(How.OVER_BUDGET)})], indirect=True)
def test_a_budget_that_is_used_up_stops_the_graph_and_not_only_the_task(bench: Bench) -> None:
    worked = bench.work(bench.order())
    assert not worked.done
    assert worked.halt is not None
    assert worked.halt.reason.startswith("the budget")


@pytest.mark.req("P9")
@pytest.mark.parametrize("bench", [Script()], indirect=True)
def test_who_settles_a_conflict_is_another_call_and_leaves_the_report_alone(bench: Bench) -> None:
    first = bench.work(bench.order())
    assert first.done
    report = bench.context.get(bench.context.layout.implementation_report(TASK))
    assert report is not None
    here = bench.context.order.base_commit
    conflict = {"onto": here, "commit": here, "paths": ["till/money.py"]}
    order = bench.order(conflict=conflict)
    assert bench.work(order, "till/money.py").done
    assert _asked(bench) == [_FIRST, f"step-5-1-{TASK}-help-1"]
    assert bench.context.get(bench.context.layout.implementation_report(TASK)) == report


@pytest.mark.req("P7")
@pytest.mark.parametrize("bench", [Script()], indirect=True)
def test_a_fix_is_told_what_was_found_and_may_write_what_was_changed(bench: Bench) -> None:
    worked = bench.work(bench.order(FIX_NODE))
    assert worked.done
    assert _asked(bench) == [f"step-5-2-{FIX_NODE}-1"]


def _prove(bench: Bench, node: str = TASK) -> Any:
    order = bench.order(node)
    tree = hash_of("tree", node)
    detail: dict[str, object] = {
        "base": bench.context.order.base_commit,
        "head": hash_of(node),
        "tree": tree,
        "files": [],
    }
    key = f"attempt:{node}:{order.attempt}"
    if bench.context.ledger.observation(bench.context.run_id, key) is None:
        seen = bench.context.observation(key, "attempt", node, detail, task_id=node, tree=tree)
        bench.context.write(lambda record: record.observation(seen))
    candidate = Candidate(node=node, commit=hash_of(node), tree=tree)
    return asyncio.run(bench.runner(node).prove(order, bench.prepared(), candidate))


@pytest.mark.req("P9")
@pytest.mark.parametrize(
    ("bench", "holds"),
    [
        (Script(), True),
        (Script(rows={f"{TASK}:1": fails("tests")}), False),
        (Script(rows={f"{TASK}:1": Rows(has_baseline=False)}), False),
        (Script(calls={f"step-6-1-{TASK}-1": Ending(How.REVISION)}), True),
        (Script(calls={f"step-6-1-{TASK}-{number}": error() for number in (1, 2)}), False),
    ],
    indirect=["bench"],
    ids=["good", "red", "no baseline", "the verifier objects", "no verifier"],
)
def test_rows_say_whether_an_attempt_holds_and_no_agent_does(bench: Bench, holds: bool) -> None:
    proof = _prove(bench)
    assert proof.holds is holds
    assert bool(proof.reasons) is not holds
    before = bench.context.ledger.head(bench.context.run_id)
    assert _prove(bench) == proof
    assert bench.context.ledger.head(bench.context.run_id) == before
    assert verify(bench.context.ledger.database, bench.context.run_id) == []


@pytest.mark.req("P7")
@pytest.mark.parametrize("bench", [Script(), Script(rows={f"{FIX_NODE}:2": fails()})], indirect=True)
def test_a_fix_is_proven_without_a_verifier(bench: Bench) -> None:
    proof = _prove(bench, FIX_NODE)
    assert proof.holds is not bool(bench.run.script.rows)
    assert _asked(bench, Step.VERIFY) == []
