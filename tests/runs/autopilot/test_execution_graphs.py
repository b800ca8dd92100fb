"""Graphs of a phase: waves wait, tasks that share a file take turns, one that fails leaves the others alone."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairwitness.contracts.autopilot.phase_record import TaskStatus
from fairwitness.contracts.autopilot.vocabulary import FailureCategory
from fairwitness.contracts.common.budgets import NO_CAP, BudgetCaps, Caps
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.graph.orders import AttemptStart, Proof
from fairwitness.runs.autopilot.graph_runner import OTHERS
from fairwitness.runs.autopilot.revert import take_back
from fairwitness.runs.autopilot.task_checks import failures
from fairwitness.runs.autopilot.task_graphs import TaskNode, deviations, logged
from runs.autopilot.site import TARGET
from runs.autopilot.workyard import SECRET, Yard, checked, executed, made, node, opened, task

FIRST, CHECK = "p5-a-1", "p5-a-1-check-0"
BAD = "bad = 1\n"


@pytest.fixture
def yard(tmp_path: Path, own_home: None) -> Iterator[Yard]:
    yard = made(tmp_path)
    yield yard
    yard.ledger.close()


@pytest.mark.req("A3", "A5")
def test_tasks_of_a_wave_run_side_by_side_and_the_next_wave_waits(yard: Yard) -> None:
    for name in "abc":
        yard.plays(name)
    number = yard.begin(node("a"), node("b"), node("c", wave=2))
    end = yard.carry(number)
    assert (end.completed, end.merged) == (True, 3)
    moves = [(data["nodeId"], data["newStatus"]) for _, data in yard.told("node.changed")]
    assert set(moves[:2]) == {("p5-a", "RUNNING"), ("p5-b", "RUNNING")}
    begins = moves.index(("p5-c", "RUNNING"))
    assert all(moves.index((name, "MERGED")) < begins for name in ("p5-a", "p5-b"))
    tip = yard.repository.commit(end.tip)
    assert all(yard.shows(tip, f"src/{name}.py") == "good = 1" for name in "abc")
    execute = yard.log.state().state.phases["5"].steps.execute
    assert execute is not None
    tasks_log = {each.id: each for each in logged(yard.log, number)}
    for name in "abc":
        record = execute.tasks[name]
        assert (record.status, record.retries) == (TaskStatus.COMPLETED, 0)
        assert record.commit == tasks_log[name].commit
        assert yard.person.git("log", "-1", "--format=%s", str(record.commit)).startswith(
            f"fairwitness(p5-{name}): {name}"
        )
    assert deviations(yard.log, number) == tuple(f"{name}: {SECRET}" for name in "abc")
    assert failures(yard.log, number) == ()


@pytest.mark.req("A3")
def test_two_tasks_that_write_the_same_file_take_turns(yard: Yard) -> None:
    for name in "ab":
        yard.plays(name)
    files = ["src/a.py", "src/b.py"]
    assert yard.carry(yard.begin(node("a", files=files), node("b", files=files))).completed
    moves = [(data["nodeId"], data["newStatus"]) for _, data in yard.told("node.changed")]
    first, second = [name for name, status in moves if status == "RUNNING"]
    assert moves.index((first, "MERGED")) < moves.index((second, "RUNNING"))


@pytest.mark.req("A3", "A5", "A7")
def test_a_task_that_fails_is_failed_and_all_others_go_on(yard: Yard) -> None:
    yard.plays("a", BAD, BAD + "# 1\n", BAD + "# 2\n")
    yard.plays("b")
    yard.plays("c", attempt=2)
    number = yard.begin(node("a"), node("b"), node("c", wave=2))
    end = yard.carry(number)
    assert (end.completed, end.exhausted, end.stranded, end.reason) == (False, ("p5-a",), ("p5-c",), None)
    rest = yard.rest(number)
    assert [each.id for each in rest] == ["p5-c"]
    following = yard.begin(*rest, purpose="execute-1-on")
    assert yard.carry(following).completed
    execute = yard.log.state().state.phases["5"].steps.execute
    assert execute is not None
    assert {name: (each.status.value, each.retries) for name, each in execute.tasks.items()} == {
        "a": ("failed", 2),
        "b": ("completed", 0),
        "c": ("completed", 0),
    }
    tasks_log = logged(yard.log, number, following)
    assert [(each.id, each.status.value, each.debug_attempts) for each in tasks_log] == [
        ("a", "failed", 2),
        ("b", "completed", 0),
        ("c", "completed", 0),
    ]
    assert tasks_log[0].reason is not None
    assert tasks_log[0].reason.startswith("the script of the task passes: it ended with fail (exit code 1)")
    assert [each.reason for each in tasks_log[1:]] == [None, None]
    (failed,) = failures(yard.log, number, following)
    assert failed.category is FailureCategory.ACCEPTANCE_CRITERIA_UNMET
    ((_, data),) = yard.told("task_failed")
    assert (data["task"], data["category"]) == ("a", "acceptance_criteria_unmet")
    assert {each.category.value: each.count for each in yard.log.state().failures} == {"acceptance_criteria_unmet": 1}


@pytest.mark.req("A3")
def test_a_task_whose_work_is_there_already_is_completed_without_a_commit(yard: Yard) -> None:
    yard.script(Role.EXECUTOR, FIRST, executed())
    yard.script(Role.MINI_VERIFIER, CHECK, checked(ran=False))
    about = task(files=["src/token.py"], criteria=[{"criterion": "it is", "command": "true"}], script=None)
    number = yard.begin(TaskNode(id="p5-a", role=Role.EXECUTOR, task=about))
    end = yard.carry(number)
    assert (end.completed, end.tip) == (True, yard.base)
    ((_, data),) = yard.told("task_completed")
    assert "commit" not in data
    assert [(each.status.value, each.commit) for each in logged(yard.log, number)] == [("completed", None)]


@pytest.mark.req("A3")
def test_what_is_committed_must_be_what_was_checked(yard: Yard) -> None:
    yard.plays()
    number = yard.begin(node())
    worked, runner, order = yard.work(), yard.graph_runner(number), yard.order("p5-a")
    prepared = AttemptStart(base=yard.base, start=yard.base, conflicts=())
    (yard.folder("p5-a") / "src/a.py").write_text("good = 'by another hand'\n")
    made = asyncio.run(runner.commit(order, prepared, worked))
    assert made is not None
    assert asyncio.run(runner.prove(order, prepared, made)) == Proof(holds=False, reasons=(OTHERS,))


@pytest.mark.req("A7")
@pytest.mark.parametrize(
    ("reason", "category"),
    [
        ("lint: 1 new finding", FailureCategory.LINT_FAILURE),
        ("tests: 1 failed", FailureCategory.ACCEPTANCE_CRITERIA_UNMET),
    ],
)
def test_a_task_that_breaks_the_project_fails_for_that_reason(
    yard: Yard, reason: str, category: FailureCategory
) -> None:
    yard.proof = Proof(holds=False, reasons=(reason,))
    yard.plays()
    number = yard.begin(node())
    assert yard.carry(number).exhausted == ("p5-a",)
    assert [(each.category, each.first_line) for each in failures(yard.log, number)] == [(category, reason)]
    ((_, data),) = yard.told("task_failed")
    assert (data["category"], data["error"]) == (category.value, reason)
    assert logged(yard.log, number)[0].commit is None


@pytest.mark.req("A4")
def test_what_a_budget_halted_is_begun_again_when_the_run_goes_on(yard: Yard) -> None:
    yard.caps = BudgetCaps(dispatch=NO_CAP, phase=NO_CAP, run=Caps(tokens=10, money_micros=None, milliseconds=None))
    number = yard.begin(node("a"), node("b", wave=2))
    end = yard.carry(number)
    assert (end.reason or "").startswith("the budget is used up: ")
    assert yard.told("task_failed") == [], "it was not made, so it did not fail"
    assert yard.begin(node("a"), node("b", wave=2)) == number, "in the same life it is the same graph"
    yard.resume()
    yard.ledger.close()
    again = opened(yard.root)
    for name in "ab":
        again.plays(name, attempt=2)
    following = again.begin(node("a"), node("b", wave=2))
    assert following == number + 1
    assert again.carry(following).completed
    assert again.begin(node("a"), node("b", wave=2)) == following
    again.resume()
    assert again.begin(node("a"), node("b", wave=2)) == following, "nothing is left to be done"
    again.ledger.close()


@pytest.mark.req("A3")
def test_where_somebody_else_moved_the_target_nothing_is_merged(yard: Yard) -> None:
    yard.plays()
    tree = yard.person.git("rev-parse", "HEAD^{tree}")
    number = yard.begin(node())
    yard.person.git("branch", TARGET, yard.person.git("commit-tree", "-p", yard.base, "-m", "mine", tree))
    end = yard.carry(number)
    assert not end.completed
    assert (end.reason or "").startswith(f"{TARGET} was moved from ")


@pytest.mark.req("A3")
def test_a_graph_goes_on_from_where_something_was_taken_back(yard: Yard) -> None:
    yard.plays()
    number = yard.begin(node())
    merged = yard.carry(number).tip
    taken = take_back(yard.log, yard.world, "5", to=yard.base, why="it is worse", key="reverted:5:1")
    assert taken.from_ == merged
    yard.plays("b", attempt=2)
    following = yard.begin(node("b"), purpose="execute-2")
    assert yard.graph_runner(following).last_tip() == taken.commit
    end = yard.carry(following)
    assert end.completed
    assert yard.person.git("ls-tree", "--name-only", end.tip, "src/").split() == ["src/b.py", "src/token.py"]
