"""Runs commands for an agent that delegates it to the client: checked by policy, in the sandbox, without a shell."""

import asyncio
import contextlib
import itertools
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acp import RequestError

from fairwitness.agents.backends.acp.files import REFUSED
from fairwitness.agents.backends.acp.permissions import unclear_denial
from fairwitness.agents.backends.acp.tool_calls import MakeRelative, argv_of
from fairwitness.agents.base import AgentJob
from fairwitness.agents.toolset.model import ToolResult
from fairwitness.contracts.agents.dispatch import Kind
from fairwitness.contracts.common.tools import Tool, ToolCall, ToolRefusal

TERMINALS = 64
"""Terminals that may be open at once."""
_EXIT = re.compile(r"exit code (\d{1,3})\b")
_SIGNAL = re.compile(r"ended by signal \d+ \((SIG[A-Z0-9]+)\)")


@dataclass(slots=True)
class _Terminal:
    work: asyncio.Task[ToolResult]
    limit: int | None
    killed: bool = False


class Terminals:
    """The terminal requests of one session."""

    def __init__(self, job: AgentJob, relative: MakeRelative) -> None:
        self._job, self._relative = job, relative
        self._open: dict[str, _Terminal] = {}
        self._told: set[str] = set()
        self._numbers = itertools.count(1)

    async def create(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer `terminal/create`: start a command that the role may run."""
        argv = self._argv(params)
        number = f"terminal-{next(self._numbers)}"
        self._job.report(Kind.CALL, tool=Tool.RUN_IN_TERMINAL.value, call=number, args={"command": shlex.join(argv)})
        answer = self._job.tools.judge(ToolCall(tool=Tool.RUN_IN_TERMINAL.value, argv=argv))
        if isinstance(answer, ToolRefusal):
            self._ended(number, ToolResult(False, f"refused: {answer.reason}"))
            raise RequestError(REFUSED, f"refused: {answer.reason}")
        if len(self._open) >= TERMINALS:
            raise RequestError(REFUSED, f"no more than {TERMINALS} terminals")
        limit = params.get("outputByteLimit")
        work = asyncio.create_task(self._run(number, argv), name=number)
        self._open[number] = _Terminal(work, limit if isinstance(limit, int) and limit >= 0 else None)
        return {"terminalId": number}

    async def output(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer `terminal/output`: the output after the command has ended, nothing before."""
        terminal = self._found(params)
        if not terminal.work.done():
            return {"output": "", "truncated": False}
        text, is_cut = _bounded(_result(terminal).text, terminal.limit)
        return {"output": text, "truncated": is_cut, "exitStatus": _status(terminal)}

    async def wait(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer `terminal/wait_for_exit`."""
        terminal = self._found(params)
        await asyncio.wait({terminal.work})
        return _status(terminal)

    async def kill(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer `terminal/kill`: end the command and keep its output."""
        await _end(self._found(params))
        return {}

    async def release(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer `terminal/release`: end the command and drop its output."""
        terminal, number = self._found(params), str(params.get("terminalId"))
        await _end(terminal)
        self._ended(number, _result(terminal))
        self._open.pop(number, None)
        return {}

    async def close(self) -> None:
        """End every command that still runs."""
        for number, terminal in list(self._open.items()):
            await _end(terminal)
            self._ended(number, _result(terminal))
        self._open.clear()

    async def _run(self, number: str, argv: tuple[str, ...]) -> ToolResult:
        result = ToolResult(False, "it was stopped")
        try:
            result = await self._job.tools.call(Tool.RUN_IN_TERMINAL.value, {"command": shlex.join(argv)})
        finally:
            self._ended(number, result)
        return result

    def _ended(self, number: str, result: ToolResult) -> None:
        """Report once how a command ended; one that was stopped before it began does not report itself."""
        if number not in self._told:
            self._told.add(number)
            tool = Tool.RUN_IN_TERMINAL.value
            self._job.report(Kind.RESULT, result.text, tool=tool, call=number, ok=result.ok)

    def _argv(self, params: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the words of the command; refuse what could be more than one command."""
        command, more, folder = params.get("command"), params.get("args") or [], params.get("cwd")
        if (
            not isinstance(command, str)
            or not isinstance(more, list)
            or not all(isinstance(word, str) for word in more)
        ):
            raise RequestError.invalid_params({"command": "a program and its arguments"})
        problem = None
        try:
            argv = argv_of((command, *more))
        except ValueError as error:
            argv, problem = (command, *more), str(error)
        if folder is not None and (not isinstance(folder, str) or self._relative(folder) not in ("", ".")):
            problem = "a command is only run in the worktree itself"
        if problem is not None:
            self._job.tools.deny(unclear_denial("terminal/create", shlex.join(argv), problem))
            raise RequestError(REFUSED, f"refused: {problem}")
        return argv

    def _found(self, params: Mapping[str, Any]) -> _Terminal:
        terminal = self._open.get(str(params.get("terminalId")))
        if terminal is None:
            raise RequestError.resource_not_found(str(params.get("terminalId")))
        return terminal


async def _end(terminal: _Terminal) -> None:
    """End the command and wait for it; a cancelled call returns only after its command has ended."""
    if not terminal.work.done():
        terminal.killed = True
        terminal.work.cancel()
        await asyncio.wait({terminal.work})


def _result(terminal: _Terminal) -> ToolResult:
    with contextlib.suppress(asyncio.CancelledError, Exception):
        return terminal.work.result()
    return ToolResult(False, "it was stopped")


def _status(terminal: _Terminal) -> dict[str, Any]:
    """Return how the command ended; without an exit code of its own it counts as failed."""
    result = _result(terminal)
    head = result.text.partition("\n")[0]
    if terminal.killed:
        return {"exitCode": None, "signal": "SIGKILL"}
    if (ended := _SIGNAL.match(head)) is not None:
        return {"exitCode": None, "signal": ended.group(1)}
    if (code := _EXIT.match(head)) is not None:
        return {"exitCode": int(code.group(1)), "signal": None}
    return {"exitCode": 0 if result.ok else 1, "signal": None}


def _bounded(text: str, limit: int | None) -> tuple[str, bool]:
    """Return the end of a text within a number of bytes, and whether it was cut."""
    data = text.encode()
    if limit is None or len(data) <= limit:
        return text, False
    return (data[-limit:] if limit else b"").decode(errors="ignore"), True
