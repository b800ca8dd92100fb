"""What an answer says about commands is read from the fields of its contract; other fields decide nothing."""

from typing import Any

import pytest

from fairwitness.contracts.agents.dispatch import Brief
from fairwitness.contracts.autopilot.returns import ExecutorReturn
from fairwitness.contracts.autopilot.verification import MiniVerifierReturn, VerifierReturn
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.tools import Role, Scope
from fairwitness.runs.shared.claimed_commands import claim_check
from support.fixtures import value_of

EXECUTED = value_of("003/filled-executor-return.json")
CHECKED = value_of("003/filled-mini-verifier-return.json")
VERIFIED = value_of("003/filled-verifier-return.json")
SHAPES: dict[Role, type[Contract]] = {
    Role.EXECUTOR: ExecutorReturn,
    Role.MINI_VERIFIER: MiniVerifierReturn,
    Role.PHASE_VERIFIER: VerifierReturn,
}
LIE = "make test -> 400 passed"
LOOKED = "ls src -> a.py"


def objections(role: Role, answer: dict[str, Any], *ran: str) -> tuple[str, ...]:
    brief = Brief(
        dispatch_id="d", run_id="run-1", role=role, instance="d", task="Do it.", parameters={}, inputs=(), scope=Scope()
    )
    return claim_check(brief)(SHAPES.get(role, VerifierReturn).model_validate(answer), ran)


@pytest.mark.req("A3", "A20")
@pytest.mark.parametrize("extra", ["I read the diff.", None, ["x"], [None], {"a": 1}, 7, [{"commands_run": LIE}]])
@pytest.mark.parametrize(("role", "good"), [(Role.MINI_VERIFIER, CHECKED), (Role.PHASE_VERIFIER, VERIFIED)])
def test_a_field_that_the_contract_does_not_have_decides_nothing(role: Role, good: Any, extra: Any) -> None:
    said = good | {"commands_run": [LOOKED], "execution_results": [], "evidence": extra}
    assert objections(role, said) == ()
    assert len(objections(role, said | {"commands_run": [LIE]})) == 1


@pytest.mark.req("A3", "A20")
@pytest.mark.parametrize("extra", ["I ran everything.", None, [None], {"a": 1}, [LIE]])
def test_an_executor_is_held_to_the_commands_of_its_tasks(extra: Any) -> None:
    task = EXECUTED["evidence"][0]
    said = EXECUTED | {"evidence": [task | {"commands_run": [LOOKED]}], "commands_run": extra}
    assert objections(Role.EXECUTOR, said) == ()
    assert len(objections(Role.EXECUTOR, said | {"evidence": [task | {"commands_run": [LIE]}]})) == 1


@pytest.mark.req("A3", "A20")
@pytest.mark.parametrize(
    ("command", "found"), [("make `test`", 1), ("make lint\nmake test", 1), ("make lint", 0), ("read src/a.py", 0)]
)
def test_the_commands_of_criteria_and_executions_ran(command: str, found: int) -> None:
    criteria = [{**each, "command": command} for each in CHECKED["criteria_results"]]
    checked = CHECKED | {"commands_run": [LOOKED], "criteria_results": criteria}
    execution = {"criterion": "x", "command": command, "exit_code": 0, "output": "", "assessment": "pass"}
    ended = [execution, {**execution, "exit_code": None, "assessment": "timeout"}]
    verified = VERIFIED | {"commands_run": [LOOKED], "execution_results": ended}
    for role, said in ((Role.MINI_VERIFIER, checked), (Role.PHASE_VERIFIER, verified)):
        assert len(objections(role, said, "make lint")) == found
        assert objections(role, said, "make lint", "make test") == ()


def test_other_roles_are_not_asked_what_they_ran() -> None:
    assert objections(Role.RATER, VERIFIED | {"commands_run": [LIE]}) == ()
