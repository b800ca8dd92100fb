"""Every second attempt of an autopilot run gets what failed, what reviewers said, the change and the history."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairwitness.contracts.agents.dispatch import EnforcementTier, OutcomeStatus
from fairwitness.contracts.autopilot.passes import PhasePass, StepResult
from fairwitness.contracts.autopilot.returns import JudgeReturn
from fairwitness.contracts.autopilot.vocabulary import StepName
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.graph.orders import Proof
from fairwitness.runs.autopilot.context import JUDGEMENT
from fairwitness.runs.autopilot.failed_work import RetryMaterial
from fairwitness.runs.autopilot.log import PASS, STEP, pass_name, step_key
from fairwitness.runs.autopilot.task_graphs import TaskNode
from fairwitness.store.artifacts import Store
from runs.autopilot.site import pass_of
from runs.autopilot.workyard import MENDED, Yard, create, made, node
from runs.dispatch.world import Scripted, says, writes
from support.fixtures import value_of

BAD = "bad = 1\n"
NOISE = "for n in 1 2 3 4 5 6 7 8 9; do echo 'a line of noise that fills the output of the script'; done\n"
SCRIPT = (
    "echo 'FAILED tests/test_a.py::test_it - AssertionError: bad is no good' >&2\n"
    f"{NOISE}test -e src/a.py && grep -q good src/a.py\n"
)


@pytest.fixture
def yard(tmp_path: Path, own_home: None) -> Iterator[Yard]:
    yard = made(tmp_path)
    yield yard
    yard.ledger.close()


def work_of(yard: Yard) -> RetryMaterial:
    return RetryMaterial(yard.log, yard.harness, Store(yard.root / "state"), yard.repository, yard.shadow)


def done(yard: Yard, asked: PhasePass, step: StepName, number: int, *issues: str) -> None:
    """A step of a pass ended."""
    result = StepResult(step=step, number=number, good=not issues, issues=issues)
    yard.log.keep(step_key(asked, step, number), STEP, pass_name(asked), result)


@pytest.mark.req("A3", "A5")
def test_a_debugger_gets_the_output_the_words_of_the_check_the_change_and_what_the_last_one_did(yard: Yard) -> None:
    yard.plays("a", BAD, BAD + "# 1\n", BAD + "# 2\n", passes=(False, False, False))
    repaired = MENDED | {"changes": ["src/a.py: a comment"], "remaining_issues": ["I do not know"]}
    yard.script(Role.DEBUGGER, "p5-a-1-debug-1", repaired, [create("src/a.py", BAD + "# 1\n")])
    yard.begin(node(script=SCRIPT))
    assert not yard.work().done
    first, second = yard.prompt("p5-a-1-debug-1"), yard.prompt("p5-a-1-debug-2")
    for told in (first, second):
        checks = told.split("### Checks that failed in the last attempt")[1]
        assert "FAILED tests/test_a.py::test_it - AssertionError: bad is no good" in checks
        assert "exit code 1" in checks
        said = told.split("### What reviewers said about the last attempt")[1]
        assert "src/a.py is there: src/a.py:1 -- it stands there" in said
        change = told.split("### The change that failed")[1]
        assert "(it is in your files)" in change
        assert "+bad = 1" in change
    assert "### Earlier attempts" not in first
    history = second.split("### Earlier attempts")[1]
    assert "debugger 1 changed: src/a.py: a comment; it said that this remains: I do not know" in history


@pytest.mark.req("A3", "A5")
def test_a_task_that_is_tried_again_learns_of_the_attempt_before(yard: Yard) -> None:
    yard.proof = Proof(holds=False, reasons=("tests (regressed): test_it (AssertionError)",))
    yard.plays("a", "good = 1\n")
    first = yard.begin(node())
    yard.carry(first)
    second = yard.begin(node(), purpose="execute-2")
    yard.plays("a", "good = 2\n", attempt=2)
    assert yard.work("p5-a", second).done
    told = yard.prompt("p5-a-2")
    assert "- attempt 1: tests (regressed): test_it (AssertionError)" in told.split("### Earlier attempts")[1]
    other = yard.begin(node(files=["src/other.py"]), purpose="execute-3")
    yard.plays("a", "", attempt=3)
    yard.work("p5-a", other)
    assert "### Earlier attempts" not in yard.prompt("p5-a-3"), "a new plan gave the id to another task"


@pytest.mark.req("A3", "A5")
@pytest.mark.parametrize("number", [1, 2])
def test_after_a_refused_debugger_the_next_attempt_is_told_which_command_failed(yard: Yard, number: int) -> None:
    yard.plays("a", *([BAD] * number))
    name = f"p5-a-1-debug-{number}"
    answer = MENDED | {"commits": []}
    yard.others[name] = Scripted(says(answer), (writes("src/token.py", "not mine\n"),), tier=EnforcementTier.D)
    yard.carry(yard.begin(node(script=SCRIPT)))
    assert yard.result(name).outcome.status is OutcomeStatus.REFUSED
    second = yard.begin(node(script=SCRIPT), purpose="execute-2")
    yard.plays("a", "good = 2\n", attempt=2)
    assert yard.work("p5-a", second).done
    checks = yard.prompt("p5-a-2").split("### Checks that failed in the last attempt")[1]
    assert "FAILED tests/test_a.py::test_it" in checks


@pytest.mark.req("A3")
def test_a_plan_and_its_check_learn_why_the_plans_before_were_refused(yard: Yard) -> None:
    asked = pass_of(yard.base)
    done(yard, asked, StepName.RESEARCH, 1)
    assert work_of(yard).plan(asked) == ()
    done(yard, asked, StepName.PLAN_CHECK, 1, "no command proves REQ-01")
    (last,) = work_of(yard).plan(asked)
    assert (last.title, last.text) == ("What reviewers said about the last attempt", "- no command proves REQ-01")
    done(yard, asked, StepName.PLAN_CHECK, 2, "task 2 is too large")
    last, history = work_of(yard).plan(asked)
    assert last.text == "- task 2 is too large"
    assert (history.title, history.text) == ("Earlier attempts", "- plan_check 1: no command proves REQ-01")
    done(yard, asked, StepName.RESEARCH, 2)
    assert work_of(yard).plan(asked) == (), "the refusals before new research are of another plan"


@pytest.mark.req("A3", "A5")
def test_the_debug_step_gets_what_failed_in_the_phase_and_the_change_of_tasks_that_failed(yard: Yard) -> None:
    asked = pass_of(yard.base)
    yard.log.keep(f"{PASS}:{pass_name(asked)}", PASS, asked.phase, asked)
    assert work_of(yard).phase(asked) == ()
    yard.plays("a", BAD, BAD, BAD)
    yard.carry(yard.begin(node(script=SCRIPT)))
    done(yard, asked, StepName.VERIFY, 1, "the check tests fails")
    name = "p5-debug"
    yard.script(Role.DEBUGGER, f"{name}-2-debug-1", MENDED, [create("src/token.py", "line = 1\n")])
    number = yard.begin(TaskNode(id=name, role=Role.DEBUGGER, problems=("lines are lost",)), purpose="debug-1")
    yard.work(name, number)
    told = yard.prompt(f"{name}-2-debug-1")
    assert "lines are lost" in told
    checks = told.split("### Checks that failed in the last attempt")[1]
    assert "p5-a: the script of the task passes" in checks
    assert "FAILED tests/test_a.py::test_it" in checks
    change = told.split("### The change that failed")[1]
    assert "p5-a:\n(it was discarded" in change
    assert "+bad = 1" in change
    assert "verify 1: the check tests fails" in told.split("### Earlier attempts")[1]


@pytest.mark.req("A3", "A5")
def test_what_reviewers_said_is_not_repeated_as_an_earlier_attempt(yard: Yard) -> None:
    asked = pass_of(yard.base)
    yard.log.keep(f"{PASS}:{pass_name(asked)}", PASS, asked.phase, asked)
    judged = JudgeReturn.model_validate(value_of("003/filled-judge-return.json") | {"concerns": ["no test for CRLF"]})
    yard.log.keep(f"{JUDGEMENT}:{pass_name(asked)}:1", JUDGEMENT, asked.phase, judged)
    done(yard, asked, StepName.JUDGE, 1, "no test for CRLF")
    done(yard, asked, StepName.RATE, 1, "no test for CRLF", "the total is wrong")
    told = {each.title: each.text for each in work_of(yard).phase(asked)}
    assert "- judge: no test for CRLF" in told["What reviewers said about the last attempt"]
    assert told["Earlier attempts"] == "- pass 1, rate 1: no test for CRLF; the total is wrong"
