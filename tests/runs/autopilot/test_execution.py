"""A task is done when commands and its check say so; a debugger is sent twice at most; nobody is asked twice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.agents.dispatch import EnforcementTier
from fairwitness.contracts.autopilot.facts import PathItem
from fairwitness.contracts.autopilot.phase_record import TaskStatus
from fairwitness.contracts.autopilot.vocabulary import FailureCategory
from fairwitness.contracts.common.budgets import NO_CAP, BudgetCaps, BudgetLevel, Caps
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.graph.orders import Collision
from fairwitness.ledger.verify import verify
from fairwitness.runs.autopilot.task_checks import DISCREPANCY
from fairwitness.runs.autopilot.task_graphs import TaskNode, attempted
from runs.autopilot.site import RUN
from runs.autopilot.workyard import MENDED, SECRET, Yard, checked, copied, create, executed, made, node, opened
from runs.dispatch.world import Scripted, says, writes
from runs.feature.git_runs import dies, points

FIRST, CHECK = "p5-a-1", "p5-a-1-check-0"
BAD = "bad = 1\n"
WRONG: dict[str, Any] = {"mood": "hopeful"}


@pytest.fixture
def yard(tmp_path: Path, own_home: None) -> Iterator[Yard]:
    yard = made(tmp_path)
    yield yard
    yard.ledger.close()


def _differences(yard: Yard) -> dict[str, list[str]]:
    rows = yard.ledger.observations(RUN, DISCREPANCY)
    return {f"{row.detail['by']} {row.detail['number']}": row.detail["found"] for row in rows if not row.holds}


@pytest.mark.req("A3")
def test_a_task_is_done_when_its_commands_pass_and_its_check_agrees(yard: Yard) -> None:
    yard.plays()
    yard.begin(node())
    worked = yard.work()
    assert (worked.done, worked.changed, worked.summary) == (True, ("src/a.py",), "a - Write src/a.py.")
    assert yard.ended() == [FIRST, CHECK]
    assert [row.key for row in yard.ledger.observations(RUN, "execution")] == [
        "execution:p5-a-1-0:1",
        "execution:p5-a-1-0:2",
    ]
    assert _differences(yard) == {}
    head = yard.ledger.head(RUN)
    assert yard.work() == worked, "after a kill what ended is taken over"
    assert yard.ledger.head(RUN) == head
    assert verify(yard.ledger.database, RUN) == []


@pytest.mark.req("A3", "A5")
def test_a_task_whose_script_fails_is_mended_twice_at_most_and_then_failed(yard: Yard) -> None:
    yard.plays("a", BAD, BAD + "# 1\n", BAD + "# 2\n")
    yard.begin(node())
    worked = yard.work()
    assert not worked.done
    assert worked.halt is None
    assert "src/a.py is no good" in (worked.reason or "")
    asked = [FIRST, CHECK]
    for number in (1, 2):
        asked += [f"p5-a-1-debug-{number}", f"p5-a-1-check-{number}"]
    assert yard.ended() == asked
    assert "src/a.py is no good" in yard.prompt("p5-a-1-debug-1"), "it is told what failed"
    done = attempted(yard.log, "p5-a", 1)
    assert done is not None
    assert (done.done, done.debug_attempts, done.category) == (False, 2, FailureCategory.ACCEPTANCE_CRITERIA_UNMET)
    assert [data["attempt"] for _, data in yard.told("task_retried")] == [1, 2]
    execute = yard.log.state().state.phases["5"].steps.execute
    assert execute is not None
    assert (execute.tasks["a"].status, execute.tasks["a"].retries) == (TaskStatus.IN_PROGRESS, 2)
    head = yard.ledger.head(RUN)
    assert yard.work() == worked
    assert yard.ledger.head(RUN) == head


@pytest.mark.req("A3")
def test_what_a_debugger_mends_is_done(yard: Yard) -> None:
    yard.plays("a", BAD, "good = 2\n")
    yard.begin(node())
    worked = yard.work()
    assert worked.done
    done = attempted(yard.log, "p5-a", 1)
    assert done is not None
    assert done.tree is not None
    assert (done.debug_attempts, done.files) == (1, ("src/a.py",))
    assert yard.shadow.git.run("show", f"{done.tree}:src/a.py") == b"good = 2\n"


@pytest.mark.req("A3")
def test_a_debugger_that_puts_everything_back_leaves_nothing_to_commit(yard: Yard) -> None:
    yard.script(Role.EXECUTOR, FIRST, executed(), [create("src/token.py", "line = 1\n")])
    yard.script(Role.MINI_VERIFIER, CHECK, checked(passes=False))
    yard.script(Role.DEBUGGER, "p5-a-1-debug-1", MENDED, [create("src/token.py", "line = 0\n")])
    yard.script(Role.MINI_VERIFIER, "p5-a-1-check-1", checked(ran=False))
    yard.begin(node(files=["src/token.py"], script=None, criteria=[{"criterion": "it is", "command": "true"}]))
    assert (yard.work().done, yard.work().changed) == (True, ())


@pytest.mark.req("A3", "A20")
def test_whoever_checks_a_task_sees_the_task_and_the_change_and_no_word_of_its_executor(yard: Yard) -> None:
    yard.plays("a", BAD, "good = 2\n")
    yard.begin(node())
    yard.work()
    first = yard.result(FIRST)
    assert SECRET in str(first.outcome.answer), "it was said"
    for check in (CHECK, "p5-a-1-check-1"):
        told = yard.prompt(check)
        assert SECRET not in told
        assert "mended" not in told.lower()
        assert "Write src/a.py." in told
        assert "+bad = 1" in told or "+good = 2" in told


@pytest.mark.req("A3")
def test_a_check_that_refuses_is_heard_although_all_commands_pass(yard: Yard) -> None:
    yard.plays("a", "good = 1\n", "good = 2\n", passes=(False, True))
    yard.begin(node())
    assert yard.work().done
    assert yard.ended() == [FIRST, CHECK, "p5-a-1-debug-1", "p5-a-1-check-1"]
    assert "it stands there" in yard.prompt("p5-a-1-debug-1")


@pytest.mark.req("A3")
def test_without_a_check_a_task_is_not_done_and_nobody_is_sent_to_mend_it(yard: Yard) -> None:
    yard.plays()
    for number in (1, 2):
        yard.script(Role.MINI_VERIFIER, CHECK, WRONG, number=number)
    yard.begin(node())
    worked = yard.work()
    assert not worked.done
    assert (worked.reason or "").startswith("its check came to nothing")
    assert not any("debug" in name for name in yard.ended())


@pytest.mark.req("A3")
def test_an_executor_that_says_itself_that_it_is_not_done_is_not(yard: Yard) -> None:
    yard.plays("a", "good = 1\n", "good = 2\n")
    yard.script(Role.EXECUTOR, FIRST, executed(done=False), [create("src/a.py")])
    yard.begin(node())
    assert yard.work().done
    assert "its executor says that 0/1 is completed" in yard.prompt("p5-a-1-debug-1")


@pytest.mark.req("A3", "A7")
def test_what_is_written_beside_the_files_of_a_task_voids_it(yard: Yard) -> None:
    acts = (writes("src/a.py", "good = 1\n"), writes("src/token.py"))
    yard.others[FIRST] = Scripted(says(executed()), acts, tier=EnforcementTier.D)
    yard.begin(node())
    worked = yard.work()
    assert (worked.done, worked.changed) == (False, ())
    done = attempted(yard.log, "p5-a", 1)
    assert done is not None
    assert done.category is FailureCategory.SCOPE_CREEP


@pytest.mark.req("A4")
def test_a_budget_that_is_used_up_stops_the_graph_and_leaves_the_task_open(yard: Yard) -> None:
    yard.caps = BudgetCaps(dispatch=NO_CAP, phase=NO_CAP, run=Caps(tokens=10, money_micros=None, milliseconds=None))
    yard.plays()
    yard.begin(node())
    worked = yard.work()
    assert not worked.done
    assert worked.halt is not None
    assert worked.halt.reason.startswith("the budget is used up: the run may use 10 tokens")
    assert worked.halt.refused is not None
    assert (worked.halt.refused.level, worked.halt.refused.cap) == (BudgetLevel.RUN, 10)
    assert attempted(yard.log, "p5-a", 1) is None


@pytest.mark.req("A4")
def test_where_the_retries_of_a_run_are_used_up_no_debugger_is_sent(yard: Yard) -> None:
    limit = yard.log.order().limits.breaker.max_total_retries_per_run
    for number in range(limit):
        yard.tell_retry(number)
    yard.plays("a", BAD)
    yard.begin(node())
    worked = yard.work()
    assert worked.reason == "the retries of the run are used up"
    assert yard.ended() == [FIRST, CHECK]


@pytest.mark.req("A3")
def test_what_is_claimed_and_was_not_seen_is_on_record(yard: Yard) -> None:
    claims = ("test -e src/b.py -> passed", "test -e src/a.py -> exit code 0")
    yard.script(Role.EXECUTOR, FIRST, executed("a", *claims), [create("src/a.py")])
    said = checked() | {"commands_run": ["test -e src/b.py -> passed"]}
    yard.script(Role.MINI_VERIFIER, CHECK, said)
    yard.script(Role.DEBUGGER, "p5-a-1-debug-1", MENDED, [create("src/b.py")])
    yard.script(Role.MINI_VERIFIER, "p5-a-1-check-1", checked())
    criteria = [{"criterion": f"{name} is there", "command": f"test -e src/{name}.py"} for name in ("a", "b")]
    yard.begin(node(criteria=criteria, files=["src/a.py", "src/b.py"]))
    assert yard.work().done
    found = _differences(yard)
    assert {"executor 0", "mini-verifier 0"} <= set(found)
    assert any("test -e src/b.py" in each and "exit code 1" in each for each in found["executor 0"])
    assert any("said to be completed" in each for each in found["executor 0"])
    assert not any("src/a.py” is said" in each for each in found["executor 0"]), "what is true is no difference"
    assert any("test -e src/b.py" in each for each in found["mini-verifier 0"])


@pytest.mark.req("A13")
def test_what_a_cycle_mends_is_checked_too_and_may_be_anywhere_but_in_what_the_run_rests_on(yard: Yard) -> None:
    item = PathItem(file="src/token.py", deficiency="the line is always 0", impact="+0.5")
    name = "p5-cycle"
    yard.script(Role.EXECUTOR, f"{name}-1", executed(name), [create("tests/test_token.py", "x = 1\n")])
    yard.script(Role.MINI_VERIFIER, f"{name}-1-check-0", checked("token", ran=False))
    yard.begin(TaskNode(id=name, role=Role.EXECUTOR, items=(item,)))
    worked = yard.work(name)
    assert (worked.done, worked.changed) == (True, ("tests/test_token.py",))
    assert "the line is always 0" in yard.prompt(f"{name}-1-check-0")
    assert yard.ledger.observations(RUN, "execution") == ()


@pytest.mark.req("A3")
def test_the_work_of_the_debug_loop_is_left_to_the_next_verification(yard: Yard) -> None:
    name = "p5-debug"
    yard.script(Role.DEBUGGER, f"{name}-1-debug-1", MENDED | {"fixed": False}, [create("src/token.py", "line = 1\n")])
    yard.begin(TaskNode(id=name, role=Role.DEBUGGER, problems=("lines are lost",)), purpose="debug-1")
    worked = yard.work(name)
    assert (worked.done, worked.changed) == (True, ("src/token.py",))
    assert yard.ended() == [f"{name}-1-debug-1"]


@pytest.mark.req("A3")
def test_who_settles_a_conflict_is_another_call_and_its_result_is_run_again(yard: Yard) -> None:
    yard.plays()
    yard.begin(node())
    assert yard.work().done
    conflict = Collision(commit=yard.base, onto=yard.base, paths=("src/a.py",))
    yard.script(Role.EXECUTOR, "p5-a-1-help", executed(), [create("src/a.py", BAD)])
    worked = yard.work("p5-a", 1, "src/a.py", conflict=conflict)
    assert yard.ended()[2:] == ["p5-a-1-help"]
    assert "### Conflicts to resolve" in yard.prompt("p5-a-1-help")
    assert not worked.done, "the script fails on what it left"


@pytest.mark.req("A3")
def test_a_killed_attempt_adopts_what_had_ended(yard: Yard, tmp_path: Path) -> None:
    yard.plays("a", BAD, "good = 2\n")
    yard.begin(node())
    yard.ledger.close()
    copied(tmp_path, tmp_path / "log")
    found = points(lambda: _worked(tmp_path / "log"), tmp_path / "points", of=("autopilot.", "dispatch.finished"))
    assert {name.partition("#")[0] for name in found} >= {"autopilot.execution", "autopilot.kept"}
    for number, point in enumerate(found):
        if point.startswith("ledger."):
            continue
        root = copied(tmp_path, tmp_path / f"killed-{number}")
        assert dies(lambda root=root: _worked(root), at=point), point  # type: ignore[misc]  # a default binds it
        again = opened(root)
        assert again.work().done, point
        assert set(again.tries().values()) == {1}, f"{point}: nobody is asked twice"
        assert [data["attempt"] for _, data in again.told("task_retried")] == [1]
        assert len(again.ledger.observations(RUN, DISCREPANCY)) == 3
        assert verify(again.ledger.database, RUN) == []
        again.ledger.close()


def _worked(root: Path) -> None:
    yard = opened(root)
    assert yard.work().done
