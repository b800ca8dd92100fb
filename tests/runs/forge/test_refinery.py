"""A refinery's tools: what it was given and nothing else, files in conflict settled safely, and requests noted."""

import asyncio
import inspect
import os
import stat
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fairwitness.agents.toolset.model import TEXT_LIMIT, ToolFailed
from fairwitness.agents.toolset.toolbox import Toolbox
from fairwitness.contracts.common.tools import POLICIES, Role, Scope, Tool
from fairwitness.contracts.forge.documents import ChangeRequest
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart, MergeMember
from fairwitness.runs.forge.refinery import refinery_tools
from fairwitness.sandbox.scripted import ScriptedRunner

MARKED = "one\n<<<<<<< ours\ntwo\n=======\nthree\n>>>>>>> theirs\nfour\n"
BODY = "## Description\nWhat.\n## Impact Assessment\nLittle.\n## Proposed Resolution\nAdd it.\n"
ORDER = AttemptOrder(
    run_id="run-1",
    node="refinery-01",
    attempt=2,
    branch="fairwitness/run-1/refinery-01/attempt-2",
    target="fairwitness/run-1/target",
    includes=(
        MergeMember(node="task-01", attempt=1, commit="a" * 40),
        MergeMember(node="task-02", attempt=3, commit="b" * 40),
    ),
)
FIRST, SECOND = "fairwitness/run-1/task-01/attempt-1", "fairwitness/run-1/task-02/attempt-3"
REQUEST = {
    "title": "A part is missing",
    "reason": "Two parts do not meet.",
    "affected_tasks": ("task-03",),
    "suggested_changes": "Add one between them.",
    "body": BODY,
}


class Refinery:
    """An attempt in a folder, with its tools."""

    def __init__(self, folder: Path, *conflicts: str, checks: tuple[str, ...] = ()) -> None:
        self.folder, self.wanted = folder, list[ChangeRequest]()
        self.ran: list[str] = []
        self.says: Callable[[str], str] = lambda name: f"{name} passed, exit code 0"
        prepared = AttemptStart(base="c" * 40, start="d" * 40, conflicts=conflicts)
        self.tools = refinery_tools(
            ORDER,
            prepared,
            folder,
            checks,
            self._run,
            self.wanted,
            clock=lambda: datetime(2026, 2, 26, 14, 30, tzinfo=UTC),
        )

    async def _run(self, check: str) -> str:
        self.ran.append(check)
        return self.says(check)

    def call(self, tool: Tool, **arguments: Any) -> str:
        async def called() -> str:
            answer: Awaitable[str] | str = self.tools[tool](**arguments)
            return await answer if inspect.isawaitable(answer) else str(answer)

        return asyncio.run(called())


@pytest.fixture
def refinery(tmp_path: Path) -> Refinery:
    folder = tmp_path / "worktree"
    (folder / "src").mkdir(parents=True)
    (folder / "newest").write_text(MARKED)
    (folder / "src" / "run.sh").write_text(MARKED)
    (folder / "src" / "run.sh").chmod(0o755)
    return Refinery(folder, "newest", "src/run.sh", "gone.bin")


@pytest.mark.req("F9")
def test_the_four_tools_of_a_refinery_are_its_roles_and_are_offered_by_the_toolbox(refinery: Refinery) -> None:
    assert set(refinery.tools) == {Tool.MERGE_BRANCHES, Tool.RUN_TESTS, Tool.FIX_CONFLICT, Tool.EMIT_CR}
    assert set(refinery.tools) <= set(POLICIES[Role.REFINERY].tools)
    box = Toolbox(
        role=Role.REFINERY,
        scope=Scope(writes=("**",)),
        worktree=refinery.folder,
        runner=ScriptedRunner(()),
        sources=refinery.tools,
    )
    try:
        offered = {spec.name for spec in box.offered()}
        assert {tool.value for tool in refinery.tools} <= offered

        async def called() -> list[tuple[bool, str]]:
            calls: list[tuple[str, dict[str, Any]]] = [
                ("merge_branches", {"branches": [FIRST]}),
                ("fix_conflict", {"path": str(refinery.folder / "newest"), "content": "two\nthree\n"}),
                ("fix_conflict", {"path": "../newest", "content": "x"}),
                ("emit_cr", {**REQUEST, "body": "## Description\n"}),
            ]
            return [((result := await box.call(*call)).ok, result.text) for call in calls]

        results = asyncio.run(called())
        assert [ok for ok, _ in results] == [True, True, False, False]
        assert "Impact Assessment" in results[-1][1]
    finally:
        asyncio.run(box.close())


@pytest.mark.req("F9")
def test_branches_that_were_given_are_in_the_worktree_with_the_files_as_they_are_now(refinery: Refinery) -> None:
    assert refinery.call(Tool.MERGE_BRANCHES, branches=(FIRST, SECOND)).splitlines() == [
        f"{FIRST} is in your worktree, at {'a' * 12}",
        f"{SECOND} is in your worktree, at {'b' * 12}",
        "conflict in newest: it still holds conflict marks",
        "conflict in src/run.sh: it still holds conflict marks",
        "conflict in gone.bin: it is not there",
    ]
    (refinery.folder / "newest").write_text("Title\n=======\ntwo and three\n")  # a heading is no mark
    (refinery.folder / "gone.bin").write_bytes(b"\0\xff")
    told = refinery.call(Tool.MERGE_BRANCHES, branches=(FIRST,))
    assert "conflict in newest: it holds no conflict marks" in told
    assert "conflict in gone.bin: it holds no conflict marks" in told


def test_without_conflicts_there_are_none(tmp_path: Path) -> None:
    assert Refinery(tmp_path).call(Tool.MERGE_BRANCHES, branches=(FIRST,)).endswith("no file is in conflict")


@pytest.mark.req("F9")
@pytest.mark.parametrize(
    "branch", ["main", "fairwitness/run-1/task-01/attempt-2", "fairwitness/run-2/task-01/attempt-1", ""]
)
def test_a_branch_that_was_not_given_is_refused(refinery: Refinery, branch: str) -> None:
    with pytest.raises(ToolFailed, match=f"was not given to you; the branches are: {FIRST}, {SECOND}"):
        refinery.call(Tool.MERGE_BRANCHES, branches=(FIRST, branch))


@pytest.mark.req("F9")
def test_checks_are_run_one_after_the_other_and_told_with_their_ends(tmp_path: Path) -> None:
    refinery = Refinery(tmp_path, checks=("pytest", "mypy"))

    def says(name: str) -> str:
        if name == "mypy":
            raise ToolFailed("there is no check mypy; the checks: pytest")
        return "pytest failed, exit code 2\n" + "dots\n" * 20_000 + "1 failed"

    refinery.says = says
    told = refinery.call(Tool.RUN_TESTS)
    assert refinery.ran == ["pytest", "mypy"]
    assert told.startswith("pytest failed, exit code 2\n")
    assert told.endswith("\n1 failed\n\nmypy: there is no check mypy; the checks: pytest")
    assert len(told) <= TEXT_LIMIT


def test_where_nobody_has_set_checks_that_is_said(tmp_path: Path) -> None:
    assert Refinery(tmp_path).call(Tool.RUN_TESTS) == "this project has no checks"


@pytest.mark.req("F9")
def test_a_conflict_is_settled_and_what_could_be_executed_still_can(refinery: Refinery) -> None:
    told = refinery.call(Tool.FIX_CONFLICT, path="src/run.sh", content="two\nthree\n")
    assert told.splitlines()[:2] == ["src/run.sh is settled", "conflict in newest: it still holds conflict marks"]
    file = refinery.folder / "src" / "run.sh"
    assert file.read_text() == "two\nthree\n"
    assert stat.S_IMODE(file.stat().st_mode) & 0o111
    refinery.call(Tool.FIX_CONFLICT, path="gone.bin", content="")
    assert (refinery.folder / "gone.bin").read_bytes() == b""


@pytest.mark.req("F9")
@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("src/other", "x", "src/other is not in conflict; those that are: newest, src/run.sh, gone.bin"),
        ("../newest", "x", "is not in conflict"),
        ("newest", MARKED, "line 2 of the content is still a conflict mark"),
        ("newest", "x\r\n>>>>>>> theirs\r\n", "line 2 of the content"),
        ("newest", "x\n||||||| base\n", "line 2 of the content"),
        ("newest", "x\0", "NUL"),
        ("newest", "x\ud800", "half of a surrogate pair"),
        ("newest", "é" * (1 << 20) + "x", "more than the"),
    ],
)
def test_what_may_not_be_written_is_refused_and_the_file_stays(
    refinery: Refinery, path: str, content: str, words: str
) -> None:
    with pytest.raises(ToolFailed, match=words):
        refinery.call(Tool.FIX_CONFLICT, path=path, content=content)
    assert (refinery.folder / "newest").read_text() == MARKED


@pytest.mark.req("F9")
def test_nothing_is_written_through_a_link_or_onto_what_is_no_plain_file(refinery: Refinery, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "run.sh").write_text("theirs\n")
    newest = refinery.folder / "newest"
    newest.unlink()
    newest.symlink_to(outside / "run.sh")
    (refinery.folder / "src" / "run.sh").unlink()
    (refinery.folder / "src").rmdir()
    (refinery.folder / "src").symlink_to(outside)
    os.mkfifo(refinery.folder / "gone.bin")
    for path in ("newest", "src/run.sh", "gone.bin"):
        with pytest.raises(ToolFailed):
            refinery.call(Tool.FIX_CONFLICT, path=path, content="mine\n")
    assert (outside / "run.sh").read_text() == "theirs\n"
    told = refinery.call(Tool.MERGE_BRANCHES, branches=(FIRST,))
    assert "conflict marks" not in told  # nothing was read there either
    (refinery.folder / "gone.bin").unlink()
    (refinery.folder / "gone.bin").mkdir()
    with pytest.raises(ToolFailed, match=r"gone\.bin is a folder"):
        refinery.call(Tool.FIX_CONFLICT, path="gone.bin", content="mine\n")


@pytest.mark.req("F4", "F9")
def test_a_request_is_noted_as_pending_and_has_to_be_returned(refinery: Refinery) -> None:
    told = refinery.call(Tool.EMIT_CR, **REQUEST)
    assert told.startswith("noted as cr-001, and pending")
    assert "It is part of your answer" in told
    refinery.call(Tool.EMIT_CR, **{**REQUEST, "title": "Another", "affected_tasks": ()})
    first, second = refinery.wanted
    assert first.plain() == {
        "id": "cr-001",
        "emitted_by": "refinery-01",
        "emitted_at": "2026-02-26T14:30:00.000000Z",
        "status": "pending",
        **REQUEST,
        "affected_tasks": ["task-03"],
    }
    assert (second.id, second.title) == ("cr-002", "Another")


@pytest.mark.req("F4", "F9")
@pytest.mark.parametrize(
    ("differs", "words"),
    [
        ({"body": "Add it."}, "missing or out of turn: Description"),
        ({"body": "## Description\n## Proposed Resolution\n"}, "missing or out of turn: Impact Assessment"),
        ({"body": BODY.replace("## Description\nWhat.\n", "") + "## Description\n"}, "missing or out of turn"),
        ({"body": BODY + "\x1b[2J"}, "control character"),
        ({"title": " "}, "title: expected"),
        ({"affected_tasks": ("../task",)}, r"affected_tasks\.0: expected a name"),
    ],
)
def test_a_request_that_is_none_is_refused_with_what_it_lacks(
    refinery: Refinery, differs: dict[str, Any], words: str
) -> None:
    with pytest.raises(ToolFailed, match=words):
        refinery.call(Tool.EMIT_CR, **{**REQUEST, **differs})
    assert refinery.wanted == []
