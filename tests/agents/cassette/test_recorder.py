"""What was recorded is what is played: same worktree, same answer, same refusals; secrets are no part of it."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.api.kit import PROMPT, TOKEN, job_in, project, scripted, tree
from agents.cassette.kit import play
from agents.jobs import GOOD, Kept
from fairwitness.agents.backends.api import ApiBackend
from fairwitness.agents.backends.cassette import CassetteBackend
from fairwitness.agents.base import AgentJob, AnswerForm
from fairwitness.agents.cassette_file import load
from fairwitness.agents.driver import drive
from fairwitness.agents.recorder import recorded_backend
from fairwitness.agents.roles import ROLES
from fairwitness.app.assembly import backends
from fairwitness.contracts.agents.dispatch import DispatchOutcome, Kind, OutcomeStatus, UsageSource
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.contracts.common.tools import Role
from fairwitness.testing.script_steps import (
    CallsStep,
    EditStep,
    ErrorStep,
    ForceStep,
    GarbageStep,
    ReadStep,
    RunStep,
    SayStep,
    ScriptStep,
    SubmitStep,
    WriteStep,
)

pytestmark = pytest.mark.req("X3")


def builder(folder: Path, **more: Any) -> AgentJob:
    """A job with a builder's tools, of which a judge's short answer is wanted."""
    job = job_in(project(folder), role=Role.EXECUTOR, **more)
    answer = ROLES[Role.JUDGE].answer
    assert answer is not None
    return replace(job, form=AnswerForm(answer, {"type": "object"}), spec=job.spec.model_copy(update={"statuses": ()}))


def record(
    folder: Path, tapes: Path, *steps: ScriptStep, dialect: ApiDialect = ApiDialect.ANTHROPIC, **more: Any
) -> tuple[DispatchOutcome, AgentJob]:
    """A dispatch over the scripted gateway, recorded."""

    async def run() -> tuple[DispatchOutcome, AgentJob]:
        async with scripted(*steps) as model:
            job = builder(folder, endpoint=model.endpoint(dialect), **more)
            return await drive(recorded_backend(ApiBackend(), tapes), job), job

    return asyncio.run(run())


def replay(folder: Path, tapes: Path, **more: Any) -> tuple[DispatchOutcome, AgentJob]:
    """The same dispatch with the recording."""
    job = builder(folder, **more)
    return asyncio.run(drive(CassetteBackend(tapes), job)), job


@pytest.mark.enable_socket
@pytest.mark.parametrize("dialect", list(ApiDialect))
def test_a_dispatch_is_played_again_as_it_was(tmp_path: Path, dialect: ApiDialect) -> None:
    worktree = tmp_path / "one" / "project"
    steps = (
        CallsStep(
            calls=(ReadStep(path="src/add.py"), ForceStep(tool="grep_search", args={"query": "add"})), text="Looking."
        ),
        EditStep(path="src/add.py", old="    return a - b\n", new="    return a + b\n"),
        ForceStep(
            tool="create_file", args={"path": f"{worktree}/src/new.py", "content": f"W = '{worktree}' # {{root}}\n"}
        ),
        ForceStep(tool="create_file", args={"path": "../outside.txt", "content": "x"}),
        ForceStep(tool="no_such_tool", args={"a": [1, {"b": None}]}),
        GarbageStep(call=ReadStep(path="notes.md")) if dialect is not ApiDialect.GEMINI else ReadStep(path="notes.md"),
        RunStep(command="echo hello"),
        SubmitStep(answer={**GOOD, "recommendation": 7}),
        SubmitStep(answer=GOOD),
    )
    tapes = tmp_path / "tapes"
    runner, said, heard = backends.runner(), Kept(), Kept()
    first, one = record(tmp_path / "one", tapes, *steps, dialect=dialect, kept=said, runner=runner)
    again, two = replay(tmp_path / "two", tapes, kept=heard, runner=runner)
    assert first.status is OutcomeStatus.OK, first
    assert (again.status, again.answer, again.asked) == (first.status, first.answer, first.asked), again
    ours, theirs = tree(one.worktree), tree(two.worktree)
    assert ours["src/new.py"] == f"W = '{one.worktree}' # {{root}}\n"
    assert theirs["src/new.py"] == f"W = '{two.worktree}' # {{root}}\n"
    assert {**ours, "src/new.py": ""} == {**theirs, "src/new.py": ""}
    assert again.denials == first.denials
    assert len(first.denials) == 2
    assert (again.usage.tokens, again.usage.turns) == (first.usage.tokens, first.usage.turns)
    assert again.usage.source is UsageSource.CASSETTE
    assert [one.text for one in heard.happenings if one.kind is Kind.RESULT] == [
        one.text for one in said.happenings if one.kind is Kind.RESULT
    ]
    assert str(tmp_path) not in (tapes / "executor.executor.1.jsonl").read_text()


@pytest.mark.enable_socket
def test_a_secret_in_a_session_is_not_in_its_recording(tmp_path: Path) -> None:
    secret = "ghp_" + "aB3" * 12
    steps = (
        WriteStep(path="src/config.py", content=f"TOKEN = '{secret}'\nURL = 'https://x'\n# {TOKEN}\n"),
        ReadStep(path="src/config.py"),
        SayStep(text=f"I used {secret}."),
    )
    record(tmp_path / "one", tmp_path / "tapes", *steps)
    (path,) = (tmp_path / "tapes").iterdir()
    text = path.read_text()
    assert secret not in text
    assert TOKEN not in text
    assert "redacted" in text
    assert [one.seen is None for one in load(path).turns[:3]] == [False, True, True]
    (end,) = play(path, builder(tmp_path / "two"), PROMPT)  # what it reads is without the secret, and nobody minds
    assert "redacted" in end.text


@pytest.mark.enable_socket
def test_only_a_session_that_came_to_its_own_end_is_kept(tmp_path: Path) -> None:
    kept = Kept()
    outcome, _ = record(tmp_path, tmp_path / "tapes", ReadStep(path="notes.md"), ErrorStep(status=529), kept=kept)
    assert outcome.status is OutcomeStatus.AGENT_ERROR
    assert not (tmp_path / "tapes").exists()
    assert kept.texts(Kind.NOTE) == ["not recorded: the session did not come to its own end"]
