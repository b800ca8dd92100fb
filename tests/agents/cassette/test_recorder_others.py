"""Sessions of agents that act by themselves: what is heard at our toolbox and found in the worktree is recorded."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from agents.api.kit import PROMPT, job_in, project, tree
from agents.cassette.kit import Alone, ask, ended, play, turn, write
from agents.jobs import GOOD, Kept
from fairwitness.agents.backends.cassette import CassetteBackend
from fairwitness.agents.base import AgentJob, AgentTurn, Endpoint
from fairwitness.agents.cassette_file import load
from fairwitness.agents.driver import drive
from fairwitness.agents.recorder import recorded_backend
from fairwitness.agents.toolset.toolbox import Toolbox
from fairwitness.app.assembly import backends
from fairwitness.contracts.agents.dispatch import (
    Kind,
    OutcomeStatus,
)
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.contracts.common.tools import Role, ToolCall, ToolRefusal

pytestmark = pytest.mark.req("X3")


def test_what_an_agent_does_by_itself_is_played_as_calls_of_ours(tmp_path: Path) -> None:
    async def works(job: AgentJob) -> AgentTurn:
        root = job.worktree
        job.report(Kind.TEXT, "First ")
        (root / "src" / "new.py").write_text("NEW = 1\n")
        (root / "src" / "add.py").write_text("fixed\n")
        result = await job.tools.call("read_file", {"path": "src/new.py"})
        assert result.ok
        job.report(Kind.TEXT, "then the rest.")
        (root / "src" / "new.py").write_text("NEW = 2\n")
        (root / "notes.md").unlink()
        (root / "elsewhere.md").write_text("not mine to write\n")
        (root / "src" / "picture.bin").write_bytes(b"\xff\x00")
        return ended("Done.")

    async def repairs(job: AgentJob) -> AgentTurn:
        (job.worktree / "src" / "late.py").write_text("LATE = 1\n")
        return ended("Better.", 900)

    kept, heard, tapes = Kept(), Kept(), tmp_path / "tapes"
    one = job_in(project(tmp_path / "one"), kept=kept, runner=backends.runner())
    first = ask(recorded_backend(Alone(works, repairs), tapes), one, PROMPT, "again")
    two = job_in(project(tmp_path / "two"), kept=heard, runner=backends.runner())
    again = play(tapes, two, PROMPT, "again")
    assert [end.text for end in again] == [end.text for end in first] == ["Done.", "Better."]
    theirs = tree(two.worktree)
    (one.worktree / "elsewhere.md").unlink()
    (one.worktree / "src" / "picture.bin").unlink()
    assert theirs == tree(one.worktree)
    assert theirs["src/new.py"] == "NEW = 2\n"
    assert "notes.md" not in theirs
    assert "changed, and no part of the recording: elsewhere.md, src/picture.bin" in kept.texts(Kind.NOTE)
    read = next(one for one in heard.happenings if one.kind is Kind.RESULT and one.tool == "read_file")
    assert "NEW = 1" in read.text  # it was written before it was read
    assert (again[-1].usage.tokens_in, again[-1].usage.tokens_out) == (900, 30)


def test_counts_that_were_told_as_sums_are_not_added_up(tmp_path: Path) -> None:
    async def works(job: AgentJob) -> AgentTurn:
        for tokens in (300, 700):
            job.report(Kind.USAGE, args={"tokens_in": tokens, "tokens_out": 10})
            await job.tools.call("list_dir", {})
        return ended("Done.")

    ask(recorded_backend(Alone(works), tmp_path / "tapes"), job_in(project(tmp_path)))
    (path,) = (tmp_path / "tapes").iterdir()
    turns = load(path).turns
    assert sum(one.usage[0] for one in turns) == 700
    assert sum(one.usage[1] for one in turns) == 30


def test_a_tool_of_the_agents_own_is_no_call_of_the_recording(tmp_path: Path) -> None:
    async def works(job: AgentJob) -> AgentTurn:
        job.report(Kind.CALL, tool="Bash", call="x", args={"command": "ls"})
        job.report(Kind.RESULT, "src", tool="Bash", call="x", ok=True)
        job.report(Kind.TEXT, "Done.")
        return ended("Done.")

    ask(recorded_backend(Alone(works), tmp_path / "tapes"), job_in(project(tmp_path)))
    (path,) = (tmp_path / "tapes").iterdir()
    (only,) = load(path).turns
    assert (only.text, only.calls) == ("Done.", ())


def test_sessions_are_numbered_also_by_a_process_that_comes_later(tmp_path: Path) -> None:
    tapes, worktree = tmp_path / "tapes", project(tmp_path)

    async def works(_job: AgentJob) -> AgentTurn:
        return ended("Done.")

    for _ in range(3):
        ask(recorded_backend(Alone(works), tapes), job_in(worktree))
    names = sorted(path.name for path in tapes.iterdir())
    assert names == [f"implementer.implementer.{number}.jsonl" for number in (1, 2, 3)]


def test_a_recording_of_a_replay_is_the_same_recording(tmp_path: Path) -> None:
    path = write(
        tmp_path / "tapes",
        turn(0, ("read_file", {"path": "src/add.py"}), text="Looking."),
        turn(1, ("create_file", {"path": "src/x.py", "content": "{root}"}), ("list_dir", {})),
        turn(2, submitted=GOOD),
    )
    again = tmp_path / "again"
    ask(recorded_backend(CassetteBackend(path), again), job_in(project(tmp_path)))
    once = load(again / path.name)
    assert [(one.text, one.submitted, one.usage) for one in once.turns] == [
        (one.text, one.submitted, one.usage) for one in load(path).turns
    ]
    assert [[(call.tool, call.args) for call in one.calls] for one in once.turns] == [
        [(call.tool, call.args) for call in one.calls] for one in load(path).turns
    ]
    assert all(one.seen is not None for one in once.turns)


@pytest.mark.parametrize("odd", ["a\x00b", "half \ud800"])
def test_a_recording_that_cannot_be_written_does_not_lose_the_dispatch(tmp_path: Path, odd: str) -> None:
    async def works(job: AgentJob) -> AgentTurn:
        await job.tools.call("create_file", {"path": "src/x.py", "content": odd})
        return ended(json.dumps(GOOD))

    kept = Kept()
    job = job_in(project(tmp_path), role=Role.JUDGE, kept=kept)
    outcome = asyncio.run(drive(recorded_backend(Alone(works), tmp_path / "tapes"), job))
    assert outcome.status is OutcomeStatus.OK
    assert any(text.startswith("not recorded: ") for text in kept.texts(Kind.NOTE))


def test_a_secret_that_cannot_be_taken_out_is_a_reason_to_write_nothing(tmp_path: Path) -> None:
    split = "s3cr3t-" * 3

    async def works(job: AgentJob) -> AgentTurn:
        await job.tools.call("read_file", {"path": split[:9]})
        return ended(f"{split[:9]}\n{split[9:]}")

    kept = Kept()
    job = job_in(project(tmp_path), kept=kept)
    # the token of this dispatch holds a line end, which JSON spells in another way than the text does
    endpoint = Endpoint(dialect=ApiDialect.ANTHROPIC, token="\\n".join((split[:9], split[9:])), model="m")
    ask(recorded_backend(Alone(works), tmp_path / "tapes"), replace(job, endpoint=endpoint))
    assert kept.texts(Kind.NOTE) == ["not recorded: a secret is left in it that could not be taken out"]
    assert not (tmp_path / "tapes").exists()


def test_every_door_of_the_toolbox_is_passed_on(tmp_path: Path) -> None:
    opened: list[Toolbox] = []

    async def works(job: AgentJob) -> AgentTurn:
        opened.append(job.tools)
        refused = job.tools.judge(ToolCall(tool="read_file", paths=("../x",)), target="x")
        assert isinstance(refused, ToolRefusal)
        assert len(job.tools.denials) == 1
        await job.tools.close()
        assert not (await job.tools.call("list_dir", {})).ok
        return ended("Done.")

    job = job_in(project(tmp_path))
    backend = recorded_backend(Alone(works), tmp_path / "tapes")
    ask(backend, job)
    assert (backend.name, backend.probe()) == ("alone", Alone().probe())
    kind = type(opened[0])
    doors = {name for name in vars(Toolbox) if not name.startswith("_")}
    assert doors <= set(vars(kind))
    assert opened[0].offered() == job.tools.offered()
    assert (opened[0].role, opened[0].scope, opened[0].worktree) == (job.tools.role, job.tools.scope, job.worktree)
