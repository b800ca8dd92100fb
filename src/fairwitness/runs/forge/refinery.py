"""The tools of a refinery: which branches it holds, what the checks say, conflicts settled, and what the plan lacks.

The branches were joined before the refinery was asked, so nothing here merges. What the checks say here helps an agent
to find its way and is no evidence: the harness runs them itself when the work is done.
"""

import re
import shlex
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from pydantic import ValidationError

from fairwitness.agents.toolset.files import to_bytes
from fairwitness.agents.toolset.model import FILE_LIMIT, TEXT_LIMIT, ToolFailed, ToolSource
from fairwitness.agents.toolset.plain import head_and_tail, one_line
from fairwitness.agents.toolset.tree import WorktreeFiles
from fairwitness.contracts.common.ids import attempt_branch
from fairwitness.contracts.common.tools import Tool
from fairwitness.contracts.forge.documents import ChangeRequest, ChangeRequestStatus
from fairwitness.contracts.graph.orders import AttemptOrder, MergeMember, Prepared
from fairwitness.errors import BadDocument
from fairwitness.kit.clock import Clock, spell, system_clock
from fairwitness.rules.change_requests import next_number
from fairwitness.runs.forge.log import document_of
from fairwitness.runs.shared.blocking import run_blocking

RunCommand = Callable[[tuple[str, ...]], Awaitable[str]]
"""Runs a command in the worktree of an agent, and says how it ended and what it printed."""

_MARK = re.compile(rb"^(?:<{7,}|>{7,}|\|{7,})(?: |\r?$)", re.MULTILINE)
"""The signs that git puts around both sides of a conflict; a row of `=` alone may be a heading."""
_ROOM = TEXT_LIMIT - 2_000
"""Characters of what all checks print together."""


def refinery_tools(
    order: AttemptOrder,
    prepared: Prepared,
    folder: Path,
    commands: tuple[tuple[str, ...], ...],
    run_command: RunCommand,
    wanted: list[ChangeRequest],
    *,
    clock: Clock = system_clock,
) -> Mapping[Tool, ToolSource]:
    """The tools of one attempt; change requests that are emitted by one are put into `wanted`."""
    refining = _RefineryWorktree(order, prepared, folder)

    async def run_tests() -> str:
        return await _checked(commands, run_command)

    def emit_cr(title: str, reason: str, affected_tasks: tuple[str, ...], suggested_changes: str, body: str) -> str:
        request = _request(
            id=next_number(each.id for each in wanted),
            title=title,
            emitted_by=order.node,
            emitted_at=spell(clock()),
            status=ChangeRequestStatus.PENDING,
            reason=reason,
            affected_tasks=affected_tasks,
            suggested_changes=suggested_changes,
            body=body,
        )
        wanted.append(request)
        return (
            f"noted as {request.id}, and pending: others decide. Return it under change_requests, too; the program "
            "gives it its number in the run"
        )

    return {
        Tool.MERGE_BRANCHES: refining.merge_branches,
        Tool.RUN_TESTS: run_tests,
        Tool.FIX_CONFLICT: refining.fix_conflict,
        Tool.EMIT_CR: emit_cr,
    }


class _RefineryWorktree:
    """The worktree of a refinery, with what it was given."""

    def __init__(self, order: AttemptOrder, prepared: Prepared, folder: Path) -> None:
        self._tree, self._conflicts = WorktreeFiles(folder), prepared.conflicts
        self._given = {_branch_of(member, order): member for member in order.includes}

    async def merge_branches(self, branches: tuple[str, ...]) -> str:
        """What the worktree holds; a branch that was not given is refused, since nothing of it was proven."""
        strange = [branch for branch in branches if branch not in self._given]
        if strange:
            given = ", ".join(self._given) or "none"
            raise ToolFailed(f"{one_line(strange[0])} was not given to you; the branches are: {given}")
        lines = [f"{branch} is in your worktree, at {self._given[branch].commit[:12]}" for branch in branches]
        return "\n".join([*lines, *await run_blocking(self._standing)])

    def _standing(self) -> list[str]:
        """How far the conflicts are settled, by the files as they are now."""
        if not self._conflicts:
            return ["no file is in conflict"]
        lines = []
        for path in self._conflicts:
            lines.append(f"conflict in {one_line(path)}: {self._told(path)}")
        return lines

    def _told(self, path: str) -> str:
        try:
            if self._tree.kind(path) == "none":
                return "it is not there"
            has_marks = _MARK.search(self._tree.read(path)) is not None
        except ToolFailed as why:
            return str(why)
        return "it still holds conflict marks" if has_marks else "it holds no conflict marks"

    async def fix_conflict(self, path: str, content: str) -> str:
        """Writes a file that is in conflict as it should be."""
        if path not in self._conflicts:
            listed = ", ".join(map(one_line, self._conflicts)) or "none"
            raise ToolFailed(f"{one_line(path)} is not in conflict; those that are: {listed}")
        data = to_bytes(content)
        if len(data) > FILE_LIMIT:
            raise ToolFailed(f"{len(data)} bytes are more than the {FILE_LIMIT} that a file may have")
        if (mark := _MARK.search(data)) is not None:
            line = 1 + data.count(b"\n", 0, mark.start())
            raise ToolFailed(f"line {line} of the content still is a conflict mark: write what should stand there")
        await run_blocking(self._write, path, data)
        return "\n".join([f"{path} is settled", *await run_blocking(self._standing)])

    def _write(self, path: str, data: bytes) -> None:
        if self._tree.kind(path) == "folder":  # also refuses a link
            raise ToolFailed(f"{path} is a folder")
        self._tree.write(path, data)


def _branch_of(member: MergeMember, order: AttemptOrder) -> str:
    """The branch of an attempt of the same run: it begins like the refinery's own."""
    prefix = order.branch.removesuffix(attempt_branch(order.node, order.attempt, prefix=""))
    return attempt_branch(member.node, member.attempt, prefix=prefix)


async def _checked(commands: tuple[tuple[str, ...], ...], run_command: RunCommand) -> str:
    if not commands:
        return "nobody has set any checks for this run"
    told = []
    for argv in commands:
        try:
            said = await run_command(argv)
        except ToolFailed as why:
            said = str(why)
        told.append(f"$ {one_line(shlex.join(argv))}\n{head_and_tail(said, _ROOM // len(commands)).rstrip()}")
    return "\n\n".join(told)


def _request(**fields: object) -> ChangeRequest:
    """A change request, or the sentence that says what keeps it from being one."""
    try:
        request = ChangeRequest.model_validate(fields)
        document_of(request.plain())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ToolFailed(f"no change request was noted: {place}: expected {one_line(first['msg'])}") from None
    except BadDocument as error:
        raise ToolFailed(f"no change request was noted: body: {error.reason}") from None
    return request
