"""The `api` backend over real HTTP: the scripted gateway on loopback, in every dialect, with real tools."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from agents.api.kit import DIALECTS, asked, behind_gateway, job_in, play, project, scripted, tree
from agents.jobs import GOOD, Kept
from fairwitness.agents.backends.api import ApiBackend
from fairwitness.agents.backends.api_session import MOST_CALLS
from fairwitness.agents.driver import drive
from fairwitness.agents.gateway import modes
from fairwitness.agents.gateway.modes import ModelAnswer, ModelRequest
from fairwitness.agents.roles import ROLES
from fairwitness.agents.schema_text import form_of
from fairwitness.app.assembly import backends
from fairwitness.contracts.agents.dispatch import Kind, Layer, OutcomeStatus, Stop, UsageSource
from fairwitness.contracts.agents.model import ApiDialect, ModelTurn
from fairwitness.contracts.common.tools import Role
from fairwitness.testing.script_steps import (
    CallsStep,
    EditStep,
    ForceStep,
    GarbageStep,
    ReadStep,
    RunStep,
    SayStep,
    SubmitStep,
    WriteStep,
)

pytestmark = [pytest.mark.enable_socket, pytest.mark.req("X3")]
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


@every_dialect
def test_a_model_edits_runs_and_hands_in_through_our_tools(tmp_path: Path, dialect: ApiDialect) -> None:
    kept = Kept()
    turn, job = play(
        tmp_path,
        dialect,
        ReadStep(path="src/add.py"),
        EditStep(path="src/add.py", old="    return a - b\n", new="    return a + b\n"),
        WriteStep(path="src/more.py", content="MORE = 1\n"),
        RunStep(command="echo done"),
        SubmitStep(answer={"note": "fine"}),
        kept=kept,
        runner=backends.runner(),
    )
    assert turn.stop is Stop.DONE
    assert turn.submitted == {"note": "fine"}
    assert tree(job.worktree)["src/add.py"].endswith("return a + b\n")
    assert tree(job.worktree)["src/more.py"] == "MORE = 1\n"
    assert (turn.usage.source, turn.usage.tokens_in, turn.usage.tokens_out) == (UsageSource.PROVIDER, 5000, 250)
    assert turn.usage.turns == 5
    called = [one.tool for one in kept.happenings if one.kind is Kind.CALL]
    assert called == ["read_file", "replace_string_in_file", "create_file", "run_in_terminal", "submit_result"]
    results = [one for one in kept.happenings if one.kind is Kind.RESULT]
    assert all(one.ok for one in results)
    assert "done" in results[3].text
    assert len(kept.texts(Kind.USAGE)) == 5
    assert job.tools.denials == ()


@every_dialect
def test_a_final_text_is_an_answer_too(tmp_path: Path, dialect: ApiDialect) -> None:
    turn, _ = play(
        tmp_path, dialect, ReadStep(path="notes.md"), SayStep(text=f"Here:\n```json\n{json.dumps(GOOD)}\n```")
    )
    assert turn.stop is Stop.DONE
    assert turn.submitted is None
    assert json.dumps(GOOD) in turn.text


@every_dialect
def test_the_answer_of_every_role_can_be_handed_in(tmp_path: Path, dialect: ApiDialect) -> None:
    async def run() -> None:
        worktree = project(tmp_path)
        async with scripted(ForceStep(tool="submit_result", args={"any": "thing"})) as model:
            for role, spec in ROLES.items():
                if spec.answer is None:
                    continue
                job = job_in(worktree, role=role, endpoint=model.endpoint(dialect))
                (turn,) = await asked(replace(job, form=form_of(spec.answer, ())))
                assert turn.submitted == {"any": "thing"}, (role, turn)

    asyncio.run(run())


@every_dialect
def test_a_reviewer_is_offered_less_and_refused_the_rest(tmp_path: Path, dialect: ApiDialect) -> None:
    async def run() -> None:
        worktree = project(tmp_path)
        before = tree(worktree)
        async with scripted(
            ForceStep(tool="create_file", args={"path": "src/add.py", "content": "gone\n"}),
            ForceStep(
                tool="replace_string_in_file", args={"path": "notes.md", "old_string": "Notes", "new_string": "x"}
            ),
            ForceStep(tool="run_in_terminal", args={"command": "rm -rf src"}),
            SubmitStep(answer={"verdict": "approved"}),
        ) as model:
            job = job_in(worktree, role=Role.REVIEWER, endpoint=model.endpoint(dialect))
            (turn,) = await asked(job)
            offered = model.log.requests[0].tools
        assert turn.submitted == {"verdict": "approved"}
        assert tree(worktree) == before
        assert {"create_file", "replace_string_in_file"}.isdisjoint(offered)
        assert {"read_file", "submit_result"} <= set(offered)
        assert [one.tool for one in job.tools.denials] == ["create_file", "replace_string_in_file", "run_in_terminal"]
        assert {one.layer for one in job.tools.denials} == {Layer.DECISION}

    asyncio.run(run())


ESCAPES: tuple[ForceStep, ...] = (
    ForceStep(tool="read_file", args={"path": "../secret.txt"}),
    ForceStep(tool="read_file", args={"path": "/etc/passwd"}),
    ForceStep(tool="create_file", args={"path": "../planted.txt", "content": "x"}),
    ForceStep(tool="create_file", args={"path": "src/../../planted.txt", "content": "x"}),
    ForceStep(tool="create_file", args={"path": ".git/hooks/pre-commit", "content": "x"}),
    ForceStep(tool="create_file", args={"path": "link/planted.txt", "content": "x"}),
    ForceStep(tool="run_in_terminal", args={"command": "sh -c 'echo x > ../planted.txt'"}),
    ForceStep(tool="run_in_terminal", args={"command": "echo x > ../planted.txt"}),
    ForceStep(tool="run_in_terminal", args={"command": "git push origin main"}),
)


def test_every_escape_is_answered_with_a_refusal_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("the secret")
    outside = tmp_path / "outside"
    outside.mkdir()
    kept = Kept()

    async def run() -> None:
        worktree = project(tmp_path)
        (worktree / "link").symlink_to(outside)
        async with scripted(CallsStep(calls=ESCAPES), SayStep(text="gave up")) as model:
            job = job_in(worktree, endpoint=model.endpoint(ApiDialect.ANTHROPIC), kept=kept)
            (turn,) = await asked(job)
        assert turn.text == "gave up"
        results = [one for one in kept.happenings if one.kind is Kind.RESULT]
        assert len(results) == len(ESCAPES)
        assert not any(one.ok for one in results)
        assert "the secret" not in "".join(one.text for one in results)
        assert not list(outside.iterdir())
        assert not (tmp_path / "planted.txt").exists()
        assert not (worktree / ".git" / "hooks").exists()
        assert len(job.tools.denials) >= len(ESCAPES) - 1

    asyncio.run(run())


@every_dialect
def test_a_tool_that_does_not_exist_is_an_error_to_the_model_and_not_to_us(tmp_path: Path, dialect: ApiDialect) -> None:
    kept = Kept()
    turn, job = play(
        tmp_path, dialect, ForceStep(tool="launch_missiles", args={"at": "x"}), SayStep(text="sorry"), kept=kept
    )
    assert (turn.stop, turn.text) == (Stop.DONE, "sorry")
    (result,) = (one for one in kept.happenings if one.kind is Kind.RESULT)
    assert result.ok is False
    assert "there is no tool launch_missiles" in result.text
    assert [one.tool for one in job.tools.denials] == ["launch_missiles"]


@pytest.mark.parametrize("dialect", [one for one in DIALECTS if one is not ApiDialect.GEMINI])
def test_arguments_that_are_no_json_are_told_to_the_model(tmp_path: Path, dialect: ApiDialect) -> None:
    kept = Kept()
    turn, job = play(
        tmp_path,
        dialect,
        GarbageStep(call=WriteStep(path="src/x.py", content="x")),
        GarbageStep(call=SubmitStep(answer={"a": 1}), text="[1, 2"),
        SubmitStep(answer={"a": 2}),
        kept=kept,
    )
    assert turn.submitted == {"a": 2}
    bad, worse, good = (one for one in kept.happenings if one.kind is Kind.RESULT)
    assert not bad.ok
    assert "do not fit" in bad.text
    assert not worse.ok
    assert "not a JSON object" in worse.text
    assert good.ok
    assert not (job.worktree / "src" / "x.py").exists()


@every_dialect
def test_a_bad_answer_is_asked_for_once_more_in_the_same_conversation(tmp_path: Path, dialect: ApiDialect) -> None:
    async def run() -> None:
        async with scripted(
            ReadStep(path="notes.md"), SubmitStep(answer={**GOOD, "recommendation": 7}), SubmitStep(answer=GOOD)
        ) as model:
            job = job_in(project(tmp_path), role=Role.JUDGE, endpoint=model.endpoint(dialect))
            outcome = await drive(ApiBackend(), job)
            sizes = [one.size for one in model.log.requests]
        assert outcome.status is OutcomeStatus.OK, outcome
        assert outcome.asked == 2
        assert outcome.usage.turns == 3
        assert sizes == sorted(sizes)  # the second ask goes on with what was said before

    asyncio.run(run())


def test_of_too_many_calls_at_once_the_first_are_made(tmp_path: Path) -> None:
    kept = Kept()
    calls = tuple(WriteStep(path=f"src/f{number}.py", content="x\n") for number in range(MOST_CALLS + 6))
    turn, job = play(tmp_path, ApiDialect.ANTHROPIC, CallsStep(calls=calls), SayStep(text="well"), kept=kept)
    assert (turn.stop, turn.text) == (Stop.DONE, "well")
    assert len(list((job.worktree / "src").glob("f*.py"))) == MOST_CALLS


class _Uncounted:
    """A model whose server does not say what it used."""

    name = "pass"

    async def answer(self, _asked: ModelRequest) -> ModelAnswer:
        return modes.TurnAnswer(ModelTurn(text="x"))


@every_dialect
def test_what_nobody_counted_is_not_reported_and_not_nothing(tmp_path: Path, dialect: ApiDialect) -> None:
    async def run() -> None:
        async with behind_gateway(_Uncounted()) as model:
            (turn,) = await asked(job_in(project(tmp_path), endpoint=model.endpoint(dialect)))
        assert turn.text == "x"
        assert (turn.usage.source, turn.usage.tokens, turn.usage.turns) == (UsageSource.NOT_REPORTED, None, 1)

    asyncio.run(run())
