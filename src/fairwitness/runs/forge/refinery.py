"""The tools of a refinery: its branches, its checks, conflict resolution, and change requests.

The branches are merged before the refinery is called, so no tool merges. Check results guide the agent but are no
evidence: the harness runs the checks itself when the work is done.
"""

import inspect
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from fairwitness.agents.toolset.files import to_bytes
from fairwitness.agents.toolset.model import FILE_LIMIT, TEXT_LIMIT, ToolFailed, ToolSource
from fairwitness.agents.toolset.plain import head_and_tail, one_line
from fairwitness.agents.toolset.tree import WorktreeFiles
from fairwitness.contracts.common.ids import attempt_branch
from fairwitness.contracts.common.tools import Tool
from fairwitness.contracts.forge.documents import ChangeRequest, ChangeRequestStatus
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart, MergeMember
from fairwitness.errors import BadDocument
from fairwitness.kit.clock import Clock, spell, system_clock
from fairwitness.rules.change_requests import next_number
from fairwitness.runs.dispatch.blocking import run_blocking
from fairwitness.runs.forge.log import document_of

_MARK = re.compile(rb"^(?:<{7,}|>{7,}|\|{7,})(?: |\r?$)", re.MULTILINE)
"""The markers that git puts around the sides of a conflict; a row of `=` alone may be a heading."""
_ROOM = TEXT_LIMIT - 2_000
"""How many characters the outputs of all checks may have together."""


def refinery_tools(
    order: AttemptOrder,
    prepared: AttemptStart,
    folder: Path,
    checks: tuple[str, ...],
    run_check: ToolSource | None,
    wanted: list[ChangeRequest],
    *,
    clock: Clock = system_clock,
) -> Mapping[Tool, ToolSource]:
    """Return the tools of one attempt; emitted change requests are appended to `wanted`."""
    worktree = _RefineryWorktree(order, prepared, folder)

    async def run_tests() -> str:
        return await _checked(checks, run_check)

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
            f"noted as {request.id}, and pending: others decide. It is part of your answer; the program gives it its "
            "number in the run"
        )

    return {
        Tool.MERGE_BRANCHES: worktree.merge_branches,
        Tool.RUN_TESTS: run_tests,
        Tool.FIX_CONFLICT: worktree.fix_conflict,
        Tool.EMIT_CR: emit_cr,
    }


class _RefineryWorktree:
    """The worktree of a refinery, with its branches and conflicts."""

    def __init__(self, order: AttemptOrder, prepared: AttemptStart, folder: Path) -> None:
        self._tree, self._conflicts = WorktreeFiles(folder), prepared.conflicts
        self._given = {_branch_of(member, order): member for member in order.includes}

    async def merge_branches(self, branches: tuple[str, ...]) -> str:
        """Report what the worktree contains; other branches are refused, because nothing of them is proven."""
        strange = [branch for branch in branches if branch not in self._given]
        if strange:
            given = ", ".join(self._given) or "none"
            raise ToolFailed(f"{one_line(strange[0])} was not given to you; the branches are: {given}")
        lines = [f"{branch} is in your worktree, at {self._given[branch].commit[:12]}" for branch in branches]
        return "\n".join([*lines, *await run_blocking(self._conflict_report)])

    def _conflict_report(self) -> list[str]:
        """Return which conflicts are resolved, by the current files."""
        if not self._conflicts:
            return ["no file is in conflict"]
        lines = []
        for path in self._conflicts:
            lines.append(f"conflict in {one_line(path)}: {self._conflict_status(path)}")
        return lines

    def _conflict_status(self, path: str) -> str:
        try:
            if self._tree.kind(path) == "none":
                return "it is not there"
            has_marks = _MARK.search(self._tree.read(path)) is not None
        except ToolFailed as why:
            return str(why)
        return "it still holds conflict marks" if has_marks else "it holds no conflict marks"

    async def fix_conflict(self, path: str, content: str) -> str:
        """Write the resolved content of a file in conflict."""
        if path not in self._conflicts:
            listed = ", ".join(map(one_line, self._conflicts)) or "none"
            raise ToolFailed(f"{one_line(path)} is not in conflict; those that are: {listed}")
        data = to_bytes(content)
        if len(data) > FILE_LIMIT:
            raise ToolFailed(f"{len(data)} bytes are more than the {FILE_LIMIT} that a file may have")
        if (mark := _MARK.search(data)) is not None:
            line = 1 + data.count(b"\n", 0, mark.start())
            raise ToolFailed(f"line {line} of the content is still a conflict marker: write the resolved text")
        await run_blocking(self._write, path, data)
        return "\n".join([f"{path} is settled", *await run_blocking(self._conflict_report)])

    def _write(self, path: str, data: bytes) -> None:
        if self._tree.kind(path) == "folder":  # also refuses a link
            raise ToolFailed(f"{path} is a folder")
        self._tree.write(path, data)


def _branch_of(member: MergeMember, order: AttemptOrder) -> str:
    """Return the branch of another attempt in the same run; it has the same prefix as the refinery's own."""
    prefix = order.branch.removesuffix(attempt_branch(order.node, order.attempt, prefix=""))
    return attempt_branch(member.node, member.attempt, prefix=prefix)


async def _checked(checks: tuple[str, ...], run_check: ToolSource | None) -> str:
    """Run all checks of the project, one after the other."""
    outputs: list[str] = []
    if run_check is None:
        return "checks cannot be run here"
    for name in checks:
        try:
            answer = run_check(name)
            said = await answer if inspect.isawaitable(answer) else str(answer)
        except ToolFailed as why:
            said = f"{name}: {why}"
        outputs.append(head_and_tail(said, _ROOM // len(checks)).rstrip())
    return "\n\n".join(outputs) or "this project has no checks"


def _request(**fields: object) -> ChangeRequest:
    """Return a change request; `Unable` with the reason if the fields are invalid."""
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
