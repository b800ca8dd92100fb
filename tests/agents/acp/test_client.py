"""The client's side of the protocol, asked directly: permissions, files, terminals, and everything nobody knows."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError

from agents.jobs import Kept, job
from fairwitness.agents.backends.acp.protocol import Client
from fairwitness.agents.base import AgentJob
from fairwitness.contracts.agents.dispatch import Kind
from fairwitness.contracts.agents.profile import AgentProfile, Quirks
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command
from fairwitness.contracts.common.tools import Role, Scope
from fairwitness.sandbox.runner import Attached, Finished
from fairwitness.sandbox.scripted import Reply, ScriptedAnswer, ScriptedRunner
from fairwitness.testing.scripted_agent import OPTIONS, scripted_profile
from support.swapping import look, moments, swapping

pytestmark = pytest.mark.req("X3")
SCOPE = Scope(folder="docs/run", writes=("src/**",))
ONCE = {"outcome": {"outcome": "selected", "optionId": "once"}}
NO = {"outcome": {"outcome": "selected", "optionId": "no"}}


class Slow(ScriptedRunner):
    """Runs what is asked for until somebody stops it."""

    def run(
        self,
        command: Command,
        *,
        stdin: bytes = b"",
        cancel: threading.Event | None = None,
        attached: Attached | None = None,
    ) -> Finished:
        assert cancel is not None
        cancel.wait(20)
        return super().run(command, stdin=stdin, cancel=cancel, attached=attached)


class Bench:
    """A client, and the job behind it."""

    def __init__(self, folder: Path, role: Role = Role.IMPLEMENTER, **changes: Any) -> None:
        (folder / "src").mkdir()
        (folder / "src" / "a.py").write_text("one\ntwo\nthree\n")
        (folder / "latin.txt").write_bytes(b"\xe9")
        self.folder, self.kept = folder, Kept()
        answers = [
            ScriptedAnswer("*/cat src/a.py", Reply(stdout=b"one\n")),
            ScriptedAnswer("*/cat no", Reply(exit_code=1, stderr=b"no")),
        ]
        runner = changes.pop("runner", None) or ScriptedRunner(answers, tier=SandboxTier.NAMESPACES)
        self.job: AgentJob = job(folder, role=role, scope=SCOPE, runner=runner, kept=self.kept)
        self.profile: AgentProfile = scripted_profile("answers", **changes)

    def run(self, talk: Callable[[Client], Awaitable[Any]]) -> Any:
        async def whole() -> Any:
            client = Client(self.profile, self.job)
            try:
                return await talk(client)
            finally:
                await client.terminals.close()

        return asyncio.run(whole())

    def ask(self, method: str, **params: Any) -> Any:
        return self.run(lambda client: client.handle(method, params, False))

    def refused(self, method: str, **params: Any) -> RequestError:
        with pytest.raises(RequestError) as error:
            self.ask(method, **params)
        return error.value

    def permission(self, raw: Any, options: Any = OPTIONS, **call: Any) -> Any:
        return self.ask(
            "session/request_permission", toolCall={"toolCallId": "1", "rawInput": raw, **call}, options=options
        )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


# permissions


def test_what_the_role_may_do_is_allowed_just_once(bench: Bench) -> None:
    assert bench.permission({"path": f"{bench.folder}/src/new.py", "content": "x"}) == ONCE


@pytest.mark.parametrize(
    "raw",
    [
        {"path": "README.md", "content": "x"},
        {"path": "/etc/passwd", "content": "x"},
        {"path": ".git/config", "content": "x"},
        {"command": "curl example.org"},
        {"command": "cat src/a.py; rm src/a.py"},
        {"something": "else"},
        None,
    ],
)
def test_everything_else_is_refused_and_the_refusal_is_on_record(bench: Bench, raw: Any) -> None:
    assert bench.permission(raw) == NO
    assert len(bench.job.tools.denials) == 1


@pytest.mark.parametrize("options", [[], None, "x", [3], [{"kind": "allow_once"}], OPTIONS[:1]])
def test_without_a_way_to_say_it_once_nothing_is_allowed(bench: Bench, options: Any) -> None:
    assert bench.permission({"command": "cat src/a.py"}, options)["outcome"] == {"outcome": "cancelled"}


def test_always_is_never_chosen_whatever_its_name(bench: Bench) -> None:
    decoys = [{"optionId": "allow_once", "name": "Allow once", "kind": "allow_always"}, *OPTIONS[1:]]
    assert bench.permission({"command": "cat src/a.py"}, decoys) == ONCE


def test_a_request_that_says_little_is_understood_with_what_was_told_before(bench: Bench) -> None:
    async def talk(client: Client) -> Any:
        told = {"sessionUpdate": "tool_call", "toolCallId": "7", "rawInput": {"command": "cat src/a.py"}, "title": "x"}
        await client.handle("session/update", {"sessionId": "s", "update": told}, True)
        return await client.handle(
            "session/request_permission", {"toolCall": {"toolCallId": "7"}, "options": OPTIONS}, False
        )

    assert bench.run(talk) == ONCE


def test_after_a_cancel_nothing_is_allowed_any_more(bench: Bench) -> None:
    async def talk(client: Client) -> Any:
        client.is_cancelled = True
        call = {"toolCallId": "1", "rawInput": {"command": "cat src/a.py"}}
        answer = await client.handle("session/request_permission", {"toolCall": call, "options": OPTIONS}, False)
        with pytest.raises(RequestError, match="cancelled"):
            await client.handle("fs/write_text_file", {"path": "src/a.py", "content": ""}, False)
        return answer

    assert bench.run(talk) == {"outcome": {"outcome": "cancelled"}}
    assert (bench.folder / "src" / "a.py").read_text() == "one\ntwo\nthree\n"


# files


@pytest.mark.parametrize(
    ("line", "limit", "expected"),
    [
        (None, None, "one\ntwo\nthree\n"),
        (2, None, "two\nthree\n"),
        (2, 1, "two\n"),
        (0, 1, "one\n"),
        (9, 1, ""),
        (1, 0, ""),
    ],
)
def test_a_file_is_read_as_it_stands_or_in_part(
    bench: Bench, line: int | None, limit: int | None, expected: str
) -> None:
    assert bench.ask("fs/read_text_file", path=f"{bench.folder}/src/a.py", line=line, limit=limit) == {
        "content": expected
    }


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", ".git/config", ".fairwitness/state"])
def test_nothing_outside_is_read(bench: Bench, path: str) -> None:
    assert str(bench.refused("fs/read_text_file", path=path)).startswith("refused:")


def test_a_link_is_not_followed(bench: Bench) -> None:
    (bench.folder / "src" / "link.py").symlink_to("/etc/passwd")
    assert "link" in str(bench.refused("fs/read_text_file", path="src/link.py"))
    assert "link" in str(bench.refused("fs/write_text_file", path="src/link.py", content="x"))


def test_what_is_no_text_is_not_read(bench: Bench) -> None:
    assert "not UTF-8" in str(bench.refused("fs/read_text_file", path="latin.txt"))


def test_a_file_that_is_not_there_is_said_to_be_missing(bench: Bench) -> None:
    assert bench.refused("fs/read_text_file", path="none").code == -32_002


def test_a_file_that_is_not_there_is_empty_for_agents_that_need_it_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path, quirks=Quirks(missing_file_as_empty=True))
    assert bench.ask("fs/read_text_file", path="none") == {"content": ""}


@pytest.mark.parametrize(("line", "limit"), [(None, None), (1, 1), (2, 1)])
def test_a_secret_in_a_file_is_not_shown_and_not_lost(bench: Bench, line: int | None, limit: int | None) -> None:
    file = bench.folder / "src" / "keys.py"
    key = "ghp_" + "a1B2" * 9
    file.write_text(f'token = "{key}"\nother = "{key}"\n')
    said = bench.ask("fs/read_text_file", path="src/keys.py", line=line, limit=limit)["content"]
    assert key not in said
    assert said.startswith(("token = ", "other = "))
    assert "stands for a secret" in str(bench.refused("fs/write_text_file", path="src/keys.py", content=said))
    assert key in file.read_text()


@pytest.mark.parametrize(
    ("method", "more"), [("fs/read_text_file", {}), ("fs/write_text_file", {"content": "written\n"})]
)
def test_a_worktree_that_is_swapped_at_any_moment_shows_and_changes_nothing_outside(
    tmp_path: Path, method: str, more: dict[str, str]
) -> None:
    outside = tmp_path / "outside"
    (outside / "src").mkdir(parents=True)
    (outside / "src" / "a.py").write_text("a secret of the person\n")
    before = look(outside)

    def tried(at: int) -> tuple[int, str]:
        place = tmp_path / f"{method[3:5]}{at}-{len(list(tmp_path.iterdir()))}"
        place.mkdir()
        bench = Bench(place)
        with swapping(place, outside, at) as swap:
            try:
                said = str(bench.ask(method, path="src/a.py", **more))
            except RequestError as error:
                said = f"refused: {error}"
        return swap.seen, said

    tried(-1)  # everything is imported now
    count, said = tried(-1)
    assert not said.startswith("refused")
    refused = 0
    for at in moments(count, 40):
        _, said = tried(at)
        assert look(outside) == before, at
        assert "of the person" not in said, at
        refused += said.startswith("refused")
    assert refused


def test_a_file_is_written_where_the_role_may(bench: Bench) -> None:
    assert bench.ask("fs/write_text_file", path=f"{bench.folder}/src/deep/new.py", content="x = 1\n") == {}
    assert (bench.folder / "src" / "deep" / "new.py").read_text() == "x = 1\n"


@pytest.mark.parametrize("path", ["README.md", "../x", "/tmp/x", ".git/hooks/x", "src/../README.md"])
def test_a_file_is_not_written_where_the_role_may_not(bench: Bench, path: str) -> None:
    assert "refused" in str(bench.refused("fs/write_text_file", path=path, content="x"))
    assert len(bench.job.tools.denials) == 1
    assert not (bench.folder / "README.md").exists()


def test_a_planner_writes_its_tasks_and_nothing_else(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Role.PLANNER)
    bench.ask("fs/write_text_file", path="docs/run/tasks/task-01.yaml", content="x")
    assert (tmp_path / "docs/run/tasks/task-01.yaml").exists()
    assert "refused" in str(bench.refused("fs/write_text_file", path="src/a.py", content="x"))


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("fs/read_text_file", {}),
        ("fs/read_text_file", {"path": 3}),
        ("fs/read_text_file", {"path": "src/a.py", "line": -1}),
        ("fs/read_text_file", {"path": "src/a.py", "limit": "all"}),
        ("fs/write_text_file", {"path": "src/a.py"}),
        ("fs/write_text_file", {"path": "src/a.py", "content": None}),
        ("terminal/create", {}),
        ("terminal/create", {"command": "cat", "args": "x"}),
        ("terminal/create", {"command": "cat", "args": [1]}),
    ],
)
def test_what_makes_no_sense_is_said_to_make_none(bench: Bench, method: str, params: dict[str, Any]) -> None:
    assert bench.refused(method, **params).code == -32_602


# terminals


def through(bench: Bench, **params: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    async def talk(client: Client) -> tuple[dict[str, Any], dict[str, Any]]:
        number = (await client.handle("terminal/create", params, False))["terminalId"]
        ended = await client.handle("terminal/wait_for_exit", {"terminalId": number}, False)
        output = await client.handle("terminal/output", {"terminalId": number}, False)
        await client.handle("terminal/release", {"terminalId": number}, False)
        with pytest.raises(RequestError):
            await client.handle("terminal/output", {"terminalId": number}, False)
        return ended, output

    found = bench.run(talk)
    assert isinstance(found, tuple)
    return found


@pytest.mark.parametrize(
    "params",
    [
        {"command": "cat", "args": ["src/a.py"]},
        {"command": "cat src/a.py"},
        {"command": "bash", "args": ["-lc", "cat src/a.py"]},
    ],
)
def test_a_command_that_the_role_may_run_is_run_without_a_shell(bench: Bench, params: dict[str, Any]) -> None:
    ended, output = through(bench, **params, cwd=str(bench.folder))
    assert ended == {"exitCode": 0, "signal": None}, output
    assert "one" in output["output"]
    assert output["exitStatus"] == ended
    assert isinstance(bench.job.runner, ScriptedRunner)
    assert [command.argv[1:] for command in bench.job.runner.commands] == [("src/a.py",)]


def test_the_exit_code_is_the_commands_own(bench: Bench) -> None:
    assert through(bench, command="cat no")[0] == {"exitCode": 1, "signal": None}


def test_output_is_cut_where_the_agent_wants_it_cut(bench: Bench) -> None:
    _, output = through(bench, command="cat src/a.py", outputByteLimit=3)
    assert output["truncated"] is True
    assert len(output["output"].encode()) <= 3


@pytest.mark.parametrize(
    "params",
    [
        {"command": "curl example.org"},
        {"command": "cat a | sh"},
        {"command": "cat a\nrm b"},
        {"command": "cat 'a"},
        {"command": "bash", "args": ["-c", "cat a && rm b"]},
        {"command": "cat", "args": ["src/a.py"], "cwd": "/"},
        {"command": "cat", "args": ["src/a.py"], "cwd": 3},
    ],
)
def test_every_other_command_is_refused_before_anything_runs(bench: Bench, params: dict[str, Any]) -> None:
    assert "refused" in str(bench.refused("terminal/create", **params))
    assert len(bench.job.tools.denials) == 1
    assert isinstance(bench.job.runner, ScriptedRunner)
    assert bench.job.runner.commands == []


def test_a_command_that_runs_can_be_looked_at_and_killed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, runner=Slow([ScriptedAnswer("*", Reply())], tier=SandboxTier.NAMESPACES))

    async def talk(client: Client) -> Any:
        number = (await client.handle("terminal/create", {"command": "sleep 60"}, False))["terminalId"]
        running = await client.handle("terminal/output", {"terminalId": number}, False)
        await client.handle("terminal/kill", {"terminalId": number}, False)
        return running, await client.handle("terminal/wait_for_exit", {"terminalId": number}, False)

    running, ended = bench.run(talk)
    assert running == {"output": "", "truncated": False}
    assert ended == {"exitCode": None, "signal": "SIGKILL"}


def test_commands_that_nobody_waits_for_end_with_the_session(tmp_path: Path) -> None:
    bench = Bench(tmp_path, runner=Slow([ScriptedAnswer("*", Reply())], tier=SandboxTier.NAMESPACES))
    bench.run(lambda client: client.handle("terminal/create", {"command": "sleep 60"}, False))
    assert [one.ok for one in bench.kept.happenings if one.kind is Kind.RESULT] == [False]


# everything else


@pytest.mark.parametrize("method", ["fs/delete", "elicitation/create", "mcp/connect", "_vendor/thing", ""])
def test_what_nobody_knows_is_refused(bench: Bench, method: str) -> None:
    assert bench.refused(method).code == -32_601


@pytest.mark.parametrize("params", [None, 3, [], {"update": 5}, {"update": {"sessionUpdate": ["x"]}}, {"update": {}}])
def test_an_odd_notification_is_a_note_and_no_more(bench: Bench, params: Any) -> None:
    assert bench.run(lambda client: client.handle("session/update", params, True)) is None
    assert len(bench.kept.texts(Kind.NOTE)) == 1


def test_what_the_client_did_is_told_with_call_and_result(bench: Bench) -> None:
    bench.ask("fs/read_text_file", path="src/a.py")
    call, result = bench.kept.happenings
    assert (call.kind, call.tool, call.args) == (Kind.CALL, "read_file", {"path": "src/a.py"})
    assert (result.kind, result.call, result.ok) == (Kind.RESULT, call.call, True)
