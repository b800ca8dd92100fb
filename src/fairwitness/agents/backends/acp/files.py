"""Reads and writes files for an agent that delegates it to the client, with the tools of our own agents."""

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

from acp import RequestError

from fairwitness.agents.backends.acp.tool_calls import MakeRelative
from fairwitness.agents.base import AgentJob
from fairwitness.agents.toolset.model import ToolFailed
from fairwitness.contracts.agents.dispatch import Kind
from fairwitness.contracts.agents.profile import AgentProfile
from fairwitness.contracts.common.tools import Tool, ToolCall, ToolRefusal
from fairwitness.kit.redaction import redact_forms

_SHOWN = 2_000
REFUSED = -32_000
"""The error code of a refusal."""


class Files:
    """The file requests of one session."""

    def __init__(self, profile: AgentProfile, job: AgentJob, relative: MakeRelative) -> None:
        self._profile, self._job, self._relative = profile, job, relative
        self._numbers = itertools.count(1)

    async def read(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer `fs/read_text_file`: a whole text, or some lines of it."""
        path = self._path(params)
        line, limit = _number(params, "line"), _number(params, "limit")
        call = self._began(Tool.READ_FILE, {"path": path, "line": line, "limit": limit})
        answer = self._job.tools.judge(ToolCall(tool=Tool.READ_FILE.value, paths=(path,)))
        if isinstance(answer, ToolRefusal):
            self._ended(Tool.READ_FILE, call, answer.reason, ok=False)
            raise RequestError(REFUSED, f"refused: {answer.reason}")
        try:
            text = await asyncio.to_thread(self._text, path)
        except ToolFailed as why:
            self._ended(Tool.READ_FILE, call, str(why), ok=False)
            raise RequestError(REFUSED, str(why)) from None
        if text is None:
            self._ended(Tool.READ_FILE, call, f"there is no file {path}", ok=False)
            if self._profile.quirks.missing_file_as_empty:
                return {"content": ""}
            raise RequestError.resource_not_found(path)
        self._ended(Tool.READ_FILE, call, f"{len(text)} characters", ok=True)
        return {"content": _lines(text, line, limit)}

    async def write(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer `fs/write_text_file`: create or replace a file."""
        path, content = self._path(params), params.get("content")
        if not isinstance(content, str):
            raise RequestError.invalid_params({"content": "a text"})
        call = self._began(Tool.CREATE_FILE, {"path": path, "content": content[:_SHOWN]})
        result = await self._job.tools.call(Tool.CREATE_FILE.value, {"path": path, "content": content})
        self._ended(Tool.CREATE_FILE, call, result.text, ok=result.ok)
        if not result.ok:
            raise RequestError(REFUSED, result.text)
        return {}

    def _text(self, path: str) -> str | None:
        tree = self._job.tools.tree
        # before lines are chosen: a secret may have several
        return None if tree.kind(path) == "none" else redact_forms(tree.read_text(path))

    def _path(self, params: Mapping[str, Any]) -> str:
        path = params.get("path")
        if not isinstance(path, str) or not path:
            raise RequestError.invalid_params({"path": "the path of a file"})
        return self._relative(path)

    def _began(self, tool: Tool, args: dict[str, Any]) -> str:
        call = f"file-{next(self._numbers)}"
        said = {name: value for name, value in args.items() if value is not None}
        self._job.report(Kind.CALL, tool=tool.value, call=call, args=said)
        return call

    def _ended(self, tool: Tool, call: str, text: str, *, ok: bool) -> None:
        self._job.report(Kind.RESULT, text, tool=tool.value, call=call, ok=ok)


def _number(params: Mapping[str, Any], name: str) -> int | None:
    value = params.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise RequestError.invalid_params({name: "a number of lines"})
    return value


def _lines(text: str, line: int | None, limit: int | None) -> str:
    """Return `limit` lines beginning with `line`, counted from 1 (some agents begin with 0)."""
    if line is None and limit is None:
        return text
    lines = text.splitlines(keepends=True)
    first = max(0, (line or 1) - 1)
    return "".join(lines[first : len(lines) if limit is None else first + limit])
