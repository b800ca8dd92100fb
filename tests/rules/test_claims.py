"""Claims: what is said clearly of a command that the harness ran is true, or is told; all else says nothing."""
# the sentences of the tables stay whole

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.verification import MiniVerifierReturn
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.rules.claims import (
    ClaimedResult,
    claim_differences,
    mini_differences,
    plain_command,
    said_of,
    unrun_claims,
)
from support.strategies import documents

GENERATED = settings(max_examples=200)
COMMAND = "pytest -q tests/test_token.py"
CRITERION = "Tokens carry their line"


def execution(
    assessment: Assessment = Assessment.PASS, command: str = COMMAND, criterion: str = CRITERION
) -> ExecutionResult:
    code = {Assessment.PASS: 0, Assessment.FAIL: 1}.get(assessment)
    return ExecutionResult(
        criterion=criterion,
        command=command,
        exit_code=code,
        stdout_truncated="",
        stderr_truncated="",
        duration_ms=900,
        sandbox_violation=assessment is Assessment.VIOLATION,
        assessment=assessment,
    )


EXECUTIONS = st.builds(
    execution,
    st.sampled_from(Assessment),
    st.sampled_from([COMMAND, "make", "x -> y"]),
    st.sampled_from([CRITERION, "b"]),
)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("14 passed", ClaimedResult(None, True)),
        ("14 passed, 0 failed", ClaimedResult(None, True)),
        ("10 failed", ClaimedResult(None, False)),
        ("3 passed, 1 failed in 0.2s", ClaimedResult(None, False)),
        ("0 passed", ClaimedResult(None, False)),
        ("OK", ClaimedResult(None, True)),
        ("not ok 3", ClaimedResult(None, False)),
        ("it doesn't pass", ClaimedResult(None, False)),
        ("no errors found", ClaimedResult(None, True)),
        ("Success: no issues found in 3 source files", ClaimedResult(None, True)),
        ("timed out", ClaimedResult(None, False)),
        ("exit 0", ClaimedResult(0, True)),
        ("exit code: 0", ClaimedResult(0, True)),
        ("exited with code 2", ClaimedResult(2, False)),
        ("exit_code=1", ClaimedResult(1, False)),
        ("rc=0", ClaimedResult(0, True)),
        ("return code 0, 1 failed", ClaimedResult(0, False)),
        ("exit code 137 (killed)", ClaimedResult(137, False)),
        ("src/token.py:12: line: int", ClaimedResult(None, None)),
        ("", ClaimedResult(None, None)),
        ("exit", ClaimedResult(None, None)),
    ],
)
def test_a_result_is_read_for_what_it_clearly_says(result: str, expected: ClaimedResult) -> None:
    assert said_of(result) == expected


@pytest.mark.req("A15", "X1")
def test_each_claim_against_each_end() -> None:
    table = {
        claim: {
            each.value: claim_differences([f"{COMMAND} -> {claim}"], [execution(each)])
            for each in Assessment
            if claim_differences([f"{COMMAND} -> {claim}"], [execution(each)])
        }
        for claim in ("14 passed", "1 failed", "exit code 0", "exit code 1", "it looks fine")
    }
    assert table == snapshot(
        {
            "14 passed": {
                "fail": (
                    "“pytest -q tests/test_token.py” is said to have passed; it ended with fail (exit code 1) when the harness ran it",  # noqa: E501
                ),
                "timeout": (
                    "“pytest -q tests/test_token.py” is said to have passed; it ended with timeout when the harness ran it",  # noqa: E501
                ),
                "violation": (
                    "“pytest -q tests/test_token.py” is said to have passed; it ended with violation when the harness ran it",  # noqa: E501
                ),
                "lost": (
                    "“pytest -q tests/test_token.py” is said to have passed; it ended with lost when the harness ran it",  # noqa: E501
                ),
            },
            "1 failed": {
                "pass": (
                    "“pytest -q tests/test_token.py” is said to have failed; it ended with pass (exit code 0) when the harness ran it",  # noqa: E501
                )
            },
            "exit code 0": {
                "fail": (
                    "“pytest -q tests/test_token.py” is said to have ended with exit code 0; it ended with fail (exit code 1) when the harness ran it",  # noqa: E501
                ),
                "timeout": (
                    "“pytest -q tests/test_token.py” is said to have ended with exit code 0; it ended with timeout when the harness ran it",  # noqa: E501
                ),
                "violation": (
                    "“pytest -q tests/test_token.py” is said to have ended with exit code 0; it ended with violation when the harness ran it",  # noqa: E501
                ),
                "lost": (
                    "“pytest -q tests/test_token.py” is said to have ended with exit code 0; it ended with lost when the harness ran it",  # noqa: E501
                ),
            },
            "exit code 1": {
                "pass": (
                    "“pytest -q tests/test_token.py” is said to have ended with exit code 1; it ended with pass (exit code 0) when the harness ran it",  # noqa: E501
                ),
                "timeout": (
                    "“pytest -q tests/test_token.py” is said to have ended with exit code 1; it ended with timeout when the harness ran it",  # noqa: E501
                ),
                "violation": (
                    "“pytest -q tests/test_token.py” is said to have ended with exit code 1; it ended with violation when the harness ran it",  # noqa: E501
                ),
                "lost": (
                    "“pytest -q tests/test_token.py” is said to have ended with exit code 1; it ended with lost when the harness ran it",  # noqa: E501
                ),
            },
            "it looks fine": {},
        }
    )


@pytest.mark.parametrize(
    "claim",
    [
        f"{COMMAND} -> 3 passed",
        f"`{COMMAND}` → 3 passed",
        f"$ {COMMAND} => 3 passed",
        "  pytest   -q\ttests/test_token.py->3 passed",
    ],
)
def test_a_command_is_known_however_it_is_framed(claim: str) -> None:
    assert len(claim_differences([claim], [execution(Assessment.FAIL)])) == 1
    assert claim_differences([claim], [execution()]) == ()


def test_an_arrow_in_a_command_is_its_own() -> None:
    command = 'grep -q "def f() -> int" src/a.py'
    run = execution(Assessment.FAIL, command)
    assert len(claim_differences([f"{command} -> exit 0"], [run])) == 1
    assert claim_differences([command], [run]) == (), "nothing is said of it"


def test_what_the_harness_did_not_run_is_not_compared() -> None:
    assert claim_differences(["make -> ok", "all is well", "-> ok"], [execution(Assessment.FAIL)]) == ()
    assert claim_differences([f"{COMMAND} -> ok"], []) == ()


def test_one_of_several_runs_is_enough_and_a_lie_is_told_once() -> None:
    runs = [execution(), execution(Assessment.TIMEOUT)]
    claim = f"{COMMAND} -> ok"
    assert claim_differences([claim, claim], runs) == (
        f"“{COMMAND}” is said to have passed; it ended with timeout when the harness ran it",
    )


@GENERATED
@given(
    st.lists(st.text(max_size=40) | st.sampled_from([f"{COMMAND} -> ok", "make -> exit 1"]), max_size=4),
    st.lists(EXECUTIONS, max_size=4),
)
def test_any_claims_have_an_answer_and_differ_only_by_runs_that_are_there(
    claims: list[str], executions: list[ExecutionResult]
) -> None:
    found = claim_differences(claims, executions)
    assert len(set(found)) == len(found)
    assert all(any(plain_command(run.command) in text for run in executions) for text in found)
    green = [run.model_copy(update={"assessment": Assessment.PASS, "exit_code": 0}) for run in executions]
    assert not any("have passed" in text or "exit code 0;" in text for text in claim_differences(claims, green))


@GENERATED
@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    said = said_of(text)
    assert said.exit_code is None or said.passed is not None
    assert plain_command(plain_command(text)) == plain_command(plain_command(plain_command(text)))


def mini(**differs: Any) -> MiniVerifierReturn:
    result = {
        "criterion": CRITERION,
        "status": "pass",
        "evidence": "src/token.py:12",
        "command": COMMAND,
        "command_output": "3 passed",
    }
    said = {
        "task_id": "01-02",
        "pass": True,
        "criteria_results": [result | differs.pop("result", {})],
        "concerns": [],
        "commands_run": ["ls -> src"],
    }
    return MiniVerifierReturn.model_validate(said | differs)


@pytest.mark.req("A15", "X1")
def test_a_mini_verifier_is_held_against_what_the_harness_saw() -> None:
    failed = execution(Assessment.FAIL)
    cases = {
        "an honest pass": (mini(), [execution()]),
        "a pass that fails": (mini(), [failed]),
        "the same by its command": (mini(result={"criterion": "something else"}), [failed]),
        "the same by its criterion": (mini(result={"command": "true", "criterion": f" {CRITERION.upper()}"}), [failed]),
        "a claim beside it": (mini(commands_run=[f"{COMMAND} -> exit 0"]), [failed]),
        "an honest failure": (mini(**{"pass": False, "result": {"status": "fail"}}), [failed]),
        "stricter than its command": (mini(**{"pass": False, "result": {"status": "fail"}}), [execution()]),
        "one left out": (mini(), [execution(), execution(Assessment.PASS, "make", "It builds")]),
        "one left out that fails": (mini(), [execution(), execution(Assessment.FAIL, "make", "It builds")]),
        "one left out of a failure": (
            mini(**{"pass": False}),
            [execution(), execution(Assessment.FAIL, "make", "It builds")],
        ),
        "nothing was run": (mini(), []),
    }
    assert {name: mini_differences(*case) for name, case in cases.items()} == snapshot(
        {
            "an honest pass": (),
            "a pass that fails": (
                "“Tokens carry their line” is said to pass; its command ended with fail (exit code 1) when the harness ran it",  # noqa: E501
            ),
            "the same by its command": (
                "“Tokens carry their line” is said to pass; its command ended with fail (exit code 1) when the harness ran it",  # noqa: E501
            ),
            "the same by its criterion": (
                "“Tokens carry their line” is said to pass; its command ended with fail (exit code 1) when the harness ran it",  # noqa: E501
            ),
            "a claim beside it": (
                "“Tokens carry their line” is said to pass; its command ended with fail (exit code 1) when the harness ran it",  # noqa: E501
                "“pytest -q tests/test_token.py” is said to have ended with exit code 0; it ended with fail (exit code 1) when the harness ran it",  # noqa: E501
            ),
            "an honest failure": (),
            "stricter than its command": (),
            "one left out": (),
            "one left out that fails": (
                "the task is said to pass without a word on “It builds”; its command ended with fail (exit code 1) when the harness ran it",  # noqa: E501
            ),
            "one left out of a failure": (),
            "nothing was run": (),
        }
    )


@GENERATED
@given(documents(MiniVerifierReturn), st.lists(EXECUTIONS, max_size=4))
def test_a_pass_that_the_harness_did_not_see_is_never_without_a_word(
    plain: Any, executions: list[ExecutionResult]
) -> None:
    said = MiniVerifierReturn.model_validate(plain)
    found = mini_differences(said, executions)
    assert len(set(found)) == len(found)
    if said.pass_ and any(run.assessment is not Assessment.PASS for run in executions):
        assert found


@pytest.mark.req("A3", "A20")
@pytest.mark.parametrize(
    ("claim", "ran", "shown", "said"),
    [
        pytest.param("pytest -q -> 400 passed", (), "", "passed", id="never run"),
        pytest.param("make test -> 2 failed", ("make lint",), "", "failed", id="another was run"),
        pytest.param("pytest -> 400 passed", ("pytest tests/test_a.py",), "", "passed", id="a part of it was run"),
        pytest.param("pytest -q -> 400 passed", ("pytest  -q",), "", None, id="run"),
        pytest.param("python3 -m pytest -> 400 passed", ("run_check pytest",), "", None, id="run as a check"),
        pytest.param("run_check(tests) -> passed", ("run_check tests",), "", None, id="a check called"),
        pytest.param("run_check: tests -> passed", ("run_check tests",), "", None, id="a check named"),
        pytest.param("run_check(tests) -> passed", ("run_check lint",), "", "passed", id="another check was run"),
        pytest.param("run_check(pytest) -> passed", ("run_check pytest tests/a.py",), "", None, id="a part of a check"),
        pytest.param(
            "run_check(pytest, tests/a.py) -> 3 passed", ("run_check pytest tests/a.py",), "", None, id="the same part"
        ),
        pytest.param(
            "python3 -m pytest tests/a.py::test_b -> 1 passed",
            ("run_check pytest ./tests/a.py",),
            "",
            None,
            id="less than the part of a check that was run",
        ),
        pytest.param(
            "pytest tests/a.py tests/b/c.py -> 7 passed",
            ("run_check pytest tests/a.py", "run_check pytest tests/b/"),
            "",
            None,
            id="two parts of a check",
        ),
        pytest.param(
            "CI=1 .venv/bin/pytest --rootdir=a/b -k x tests/a.py -> 3 passed",
            ("run_check pytest tests/a.py",),
            "",
            None,
            id="a part with options",
        ),
        pytest.param(
            "pytest tests/never.py -> 9 passed", ("run_check pytest tests/a.py",), "", "passed", id="another part"
        ),
        pytest.param(
            "pytest tests -> 9 passed", ("run_check pytest tests/a.py",), "", "passed", id="more than the part"
        ),
        pytest.param(
            "pytest tests/a.py -> 9 passed", ("run_check pytest tests/a.py::test_b",), "", "passed", id="one test of it"
        ),
        pytest.param(
            "pytest tests/b.py -> 9 passed",
            ("run_check pytest tests/a.py", "run_check pytest"),
            "",
            None,
            id="a part, and then the whole check",
        ),
        pytest.param("run_check(npm:test) -> passed", ("run_check npm:test",), "", None, id="a check with a colon"),
        pytest.param("pytest -q -> 4 passed", ("python -m pytest -q",), "", None, id="run as a module"),
        pytest.param(".venv/bin/pytest -> 4 passed", ("CI=1 pytest -q",), "", None, id="run with a variable"),
        pytest.param("cd a && pytest -> 4 passed", ("pytest",), "", None, id="run after a change of folder"),
        pytest.param("pytest && make -> OK", ("pytest",), "", "passed", id="one of two was run"),
        pytest.param("Ran `pytest -q` -> 4 passed", ("bash -c 'pytest -q'",), "", None, id="told in a sentence"),
        pytest.param("sh a.sh -> b -> exit code 0", ("sh a.sh -> b",), "", None, id="an arrow in the command"),
        pytest.param("sh check.sh -> OK", (), "- it holds\n      sh  check.sh\n", None, id="the harness runs it"),
        pytest.param("pytest -q -> OK", (), "tests (passed): `python -m pytest`", None, id="the harness ran the check"),
        pytest.param("tests -> passed", (), "tests (passed): `sh check.sh`", None, id="a check of the harness"),
        pytest.param("pytest -> 400 passed", (), "command: pytest tests/test_a.py", "passed", id="a part is shown"),
        pytest.param("make -> OK", (), "we make things", "passed", id="a word of a sentence"),
        pytest.param("make -> OK", (), "1. It builds\n   command: make\n2. More", None, id="the value of a field"),
        pytest.param("pytest -> OK", (), "command: pytest\n  tests/test_a.py", "passed", id="a value of two lines"),
        pytest.param(
            "make -> OK", (), "- criterion: It is so\n  command: make", None, id="the second field of an item"
        ),
        pytest.param("make a -> OK", (), "script: |\n  make a\n  make b", None, id="a line of a script"),
        pytest.param("grep -n x a.py -> no errors", (), "", None, id="only looks"),
        pytest.param("sh -c 'a  b' -> OK", (), "command: 'sh -c ''a\n  b'''", None, id="shown in YAML's quotes"),
        pytest.param("src/a.py:3 -> a line", (), "", None, id="no result"),
        pytest.param("-> passed", (), "", None, id="no command"),
    ],
)
def test_a_result_of_a_command_that_did_not_run_is_found(
    claim: str, ran: tuple[str, ...], shown: str, said: str | None
) -> None:
    command = claim.partition(" -> ")[0]
    sentence = f"“{command}” is said to have {said}, but it was not run in this session"
    assert unrun_claims([claim, claim], ran, shown) == (() if said is None else (sentence,))


@pytest.mark.req("A3", "A20")
@pytest.mark.parametrize(
    ("claim", "command"),
    [
        ("pytest -q: 400 passed", "pytest -q"),
        ("ran pytest, 400 passed", "ran pytest"),
        ("pytest -q 400 passed", "pytest -q"),
        ("python3 -m unittest (OK)", "python3 -m unittest"),
        ("go test ./... - ok", "go test ./..."),
        ("I ran `make test`: no failures", "make test"),
        ("pytest -q", None),
        ("make sure that it exists: ok", None),
        ("go through the diff: no errors", None),
        ("Read the diff: no errors", None),
        ("`src/a.py` has no errors", None),
        ("make: no rule", None),
    ],
)
def test_a_result_is_read_without_an_arrow_where_the_program_is_known_for_it(claim: str, command: str | None) -> None:
    sentence = f"“{command}” is said to have passed, but it was not run in this session"
    assert unrun_claims([claim], (), "") == (() if command is None else (sentence,))
    assert unrun_claims([claim], ("pytest", "python -m unittest", "go test ./...", "make test"), "") == ()
