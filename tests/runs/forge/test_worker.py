"""One attempt: what its agent is told, what it may ask for, and what is kept of what it says."""

import pytest

from fairwitness.contracts.common.budgets import BudgetCaps, Caps
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.graph.orders import Collision, MergeMember
from fairwitness.rules.graph_events import failed
from fairwitness.runs.forge.walkthroughs import WALKTHROUGH
from runs.forge.workshop import MOMENT, TARGET, Workshop, create, refined, request, walkthrough
from runs.forge.workshop_killed import killed

EMIT = {
    "title": "By tool",
    "reason": "it was forgotten",
    "affected_tasks": ["task-001"],
    "suggested_changes": "one more task",
    "body": request("By tool")["body"],
}


@pytest.mark.req("F2", "F3")
def test_an_agent_gets_its_task_and_the_specs_and_its_walkthrough_is_kept(shop: Workshop) -> None:
    shop.script(Role.WORKER, "task-001-1", [create("src/shop.py", "price = 2\n")])
    worked = shop.work("task-001")
    assert (worked.done, worked.changed) == (True, ("src/shop.py",))
    prompt = shop.prompt("task-001-1")
    assert "### Task task-001" in prompt
    assert "title: Do task-001" in prompt
    assert "### Spec style" in prompt
    assert "Keep to the style." in prompt
    assert "You may write only: `src/**`" in prompt
    assert "any program of the project" in prompt
    assert shop.store.exists(shop.layout.walkthrough("task-001", 1))
    assert [name for name, _ in shop.events()] == ["walkthrough.written"]


@pytest.mark.req("F2")
def test_who_builds_upon_others_reads_their_walkthroughs(shop: Workshop) -> None:
    shop.script(Role.WORKER, "task-001-1", [create("src/a.py")])
    shop.work("task-001")
    shop.script(Role.SUB_EXECUTOR, "task-002-1", [create("src/b.py")])
    shop.work("task-002")
    prompt = shop.prompt("task-002-1")
    assert "### Walkthrough of task-001" in prompt
    assert "Summary of it." in prompt


def test_a_second_attempt_is_told_what_happened_to_the_first(shop: Workshop) -> None:
    shop.begin("task-001")
    shop.tell(*failed(shop.log.run().nodes["task-001"], "tests failed", MOMENT))
    shop.script(Role.WORKER, "task-001-2", [create("src/a.py")])
    shop.work("task-001", 2)
    assert "tests failed" in shop.prompt("task-001-2").split("### Earlier attempts")[1]


@pytest.mark.req("F3")
def test_after_a_failed_check_a_second_attempt_gets_its_output_and_the_change(shop: Workshop) -> None:
    shop.person.write("check.sh", "echo the sum is $(cat sum); test $(cat sum) = 3\n")
    base = shop.person.commit("a check", sum="3\n")
    head = shop.person.commit("another sum", sum="4\n")
    assert not shop.prove("task-001", 1, base=base, head=head).holds
    shop.begin("task-001")
    shop.tell(*failed(shop.log.run().nodes["task-001"], "check (regressed)", MOMENT))
    shop.script(Role.WORKER, "task-001-2", [create("src/a.py")])
    shop.work("task-001", 2)
    _, told = shop.prompt("task-001-2").split("### Checks that failed in the last attempt")
    checks, change = told.split("### The change that failed")
    assert "exit code 1" in checks
    assert "the sum is 4" in checks
    assert "-3\n+4\n" in change


@pytest.mark.req("F3")
def test_what_had_ended_is_adopted_and_nothing_is_told_twice(shop: Workshop) -> None:
    shop.script(
        Role.WORKER, "task-001-1", [create("src/a.py")], {"walkthrough": walkthrough("src/a.py", confidence=0.2)}
    )
    first = shop.work("task-001")
    events = shop.events()
    assert [name for name, _ in events] == ["walkthrough.written", "review.low_confidence"]
    assert shop.work("task-001") == first
    assert shop.events() == events
    assert shop.tries() == {"task-001-1": 1}


def test_an_attempt_that_says_itself_that_it_is_not_done_is_not(shop: Workshop) -> None:
    shop.script(Role.WORKER, "task-001-1", [], {"walkthrough": walkthrough(status="partial")})
    worked = shop.work("task-001")
    assert (worked.done, worked.reason) == (False, "its agent says that it is partial")
    assert len(shop.ledger.observations(shop.log.run_id, WALKTHROUGH)) == 1


@pytest.mark.req("F2")
def test_an_attempt_without_a_walkthrough_has_failed(shop: Workshop) -> None:
    shop.script(Role.WORKER, "task-001-1", [create("src/a.py")], {"nothing": True})
    worked = shop.work("task-001")
    assert not worked.done
    assert shop.ledger.observations(shop.log.run_id, WALKTHROUGH) == ()
    assert not shop.store.exists(shop.layout.walkthrough("task-001", 1))


def test_whoever_settles_a_conflict_is_a_throwaway_worker_without_a_file_of_its_own(shop: Workshop) -> None:
    commit = shop.repository.commit("HEAD")
    collision = Collision(commit=commit, onto=commit, paths=("src/shop.py",))
    shop.script(Role.THROWAWAY, "task-001-1-help", [create("src/shop.py", "price = 3\n")])
    worked = shop.work("task-001", 1, "src/shop.py", conflict=collision)
    assert worked.done
    prompt = shop.prompt("task-001-1-help")
    assert "Settle the conflict" in prompt
    assert "### Conflicts to resolve" in prompt
    assert shop.ledger.observations(shop.log.run_id, WALKTHROUGH) == ()
    assert not shop.store.exists(shop.layout.walkthrough("task-001", 1))


def test_a_run_without_budget_stops(shop: Workshop) -> None:
    none = Caps(tokens=None, money_micros=None, milliseconds=None)
    shop.caps = BudgetCaps(dispatch=none, phase=none, run=Caps(tokens=1, money_micros=None, milliseconds=None))
    shop.script(Role.WORKER, "task-001-1")
    worked = shop.work("task-001")
    assert worked.halt is not None
    assert worked.halt.reason.startswith("the budget is used up")


def refinery(shop: Workshop) -> tuple[MergeMember, ...]:
    commit = shop.repository.commit("HEAD")
    return tuple(MergeMember(node=node, attempt=1, commit=commit) for node in ("task-002", "task-001"))


@pytest.mark.req("F9")
def test_a_refinery_is_told_the_branches_in_their_order_and_runs_the_tests_where_it_works(shop: Workshop) -> None:
    includes = refinery(shop)
    shop.person.write("check.sh", "exit 0\n")
    shop.script(Role.REFINERY, "refinery-001-1", [("run_tests", {}), ("read_subtasks", {})], refined())
    assert shop.work("refinery-001", includes=includes).done
    prompt = shop.prompt("refinery-001-1")
    joined = prompt.split("### Branches that were joined")[1]
    assert joined.index("task-002/attempt-1") < joined.index("task-001/attempt-1")
    assert shop.results("refinery-001-1", "read_subtasks") == ["there are no subtasks"]
    (told,) = shop.results("refinery-001-1", "run_tests")
    assert told == "check passed, exit code 0"


def test_a_refinery_is_told_what_the_target_holds_already(shop: Workshop) -> None:
    shop.script(Role.REFINERY, "refinery-001-1", [], refined())
    shop.work("refinery-001", includes=refinery(shop)[:1])
    assert f"- task-001 is in {TARGET} already" in shop.prompt("refinery-001-1")


@pytest.mark.req("F9")
def test_what_a_refinery_asked_for_by_a_tool_is_emitted_though_its_answer_forgot_it(shop: Workshop) -> None:
    answer = refined(request("By answer"), walkthrough=walkthrough(status="partial"))
    shop.script(Role.REFINERY, "refinery-001-1", [("emit_cr", EMIT)], answer)
    assert not shop.work("refinery-001").done
    emitted = [(data["crId"], data["title"]) for _, data in shop.events("cr.emitted")]
    assert emitted == [("cr-001", "By answer"), ("cr-002", "By tool")]
    shop.work("refinery-001")  # as after a kill
    assert len(shop.events("cr.emitted")) == 2


@pytest.mark.req("F9")
def test_a_request_that_stands_in_the_answer_too_is_emitted_once(shop: Workshop) -> None:
    shop.script(Role.REFINERY, "refinery-001-1", [("emit_cr", EMIT)], refined(request("By tool")))
    assert shop.work("refinery-001").done
    assert [data["title"] for _, data in shop.events("cr.emitted")] == ["By tool"]


@pytest.mark.req("F9", "P16")
def test_a_kill_loses_nothing_of_what_a_refinery_asked_for_by_a_tool(shop: Workshop) -> None:
    shop.script(Role.REFINERY, "refinery-001-1", [("emit_cr", EMIT)], refined())
    killed(shop.root, "dispatch.finished", "refinery-001")
    assert shop.events("cr.emitted") == []
    assert shop.work("refinery-001").done
    assert [data["title"] for _, data in shop.events("cr.emitted")] == ["By tool"]
    assert shop.tries() == {"refinery-001-1": 1}
