"""The worktree's folder is replaced by a link to an outside folder: no tool reads or writes behind it."""

import asyncio
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from agents.toolset.kit import FILES, SCOPE, Bench, plant, real_runner
from fairwitness.agents.toolset.arguments import GrepSearch
from fairwitness.agents.toolset.model import ToolFailed
from fairwitness.agents.toolset.search import grep_search
from fairwitness.agents.toolset.tree import WorktreeFiles
from fairwitness.contracts.common.tools import Role
from support.swapping import look, moments, swapping

pytestmark = pytest.mark.req("X3")

CALLS: dict[str, dict[str, Any]] = {
    "read_file": {"path": "src/a.py"},
    "list_dir": {"path": "src"},
    "file_search": {"pattern": "**/*.py"},
    "grep_search": {"query": "one"},
    "create_file": {"path": "src/new/deep.py", "content": "written\n"},
    "replace_string_in_file": {"path": "src/a.py", "old_string": "return 1", "new_string": "return 2"},
    "multi_replace_string_in_file": {
        "replacements": [
            {"path": "src/a.py", "old_string": "return 1", "new_string": "return 2"},
            {"path": "src/deep/b.py", "old_string": "print", "new_string": "repr"},
        ]
    },
}
WRITES = ("create_file", "replace_string_in_file", "multi_replace_string_in_file")
SECRET = "one = 'a secret of the person'\n"


def outside_of(place: Path) -> Path:
    """A folder of the person with the same names, an executable, and a secret."""
    folder = plant(place / "outside", {**FILES, "src/a.py": SECRET + FILES["src/a.py"], "src/secret.py": SECRET})
    (folder / "src" / "a.py").chmod(0o755)
    return folder


@pytest.mark.parametrize("tool", CALLS)
def test_after_the_swap_every_call_is_refused(bench: Bench, tool: str) -> None:
    outside = outside_of(bench.root.parent)
    before = look(outside)
    bench.good(tool, **CALLS[tool])
    with swapping(bench.root, outside, -1) as swap:
        swap.now()
        said = bench.bad(tool, **CALLS[tool])
    assert "was replaced or removed while it was in use" in said
    assert look(outside) == before


@pytest.mark.parametrize("kind", ["a folder", "nothing", "a file", "a broken link"])
def test_anything_else_in_its_place_is_refused_too(bench: Bench, kind: str) -> None:
    bench.root.rename(bench.root.with_name("away"))
    match kind:
        case "a folder":
            plant(bench.root)
        case "a file":
            bench.root.write_text("x")
        case "a broken link":
            bench.root.symlink_to("nowhere")
        case _:
            assert kind == "nothing"
    for tool, arguments in CALLS.items():
        assert "was replaced or removed" in bench.bad(tool, **arguments), tool


@pytest.mark.parametrize("tool", CALLS)
def test_a_swap_at_any_moment_of_a_call_changes_and_shows_nothing_outside(tmp_path: Path, tool: str) -> None:
    outside = outside_of(tmp_path)
    before = look(outside)
    tries = 0

    def tried(at: int) -> tuple[int, bool, str, dict[str, tuple[int, bytes]]]:
        nonlocal tries
        tries += 1
        place = tmp_path / str(tries)
        place.mkdir()
        bench = Bench(plant(place / "tree"))
        with swapping(bench.root, outside, at) as swap:
            result = asyncio.run(bench.box.call(tool, CALLS[tool]))
        asyncio.run(bench.box.close())
        return swap.seen, result.ok, result.text, look(swap.original)

    tried(-1)  # everything is imported now
    count, is_ok, _, after = tried(-1)
    assert is_ok
    for at in moments(count, 40):
        _, is_ok, text, left = tried(at)
        assert look(outside) == before, at
        assert "secret" not in text, at
        if is_ok and tool in WRITES:  # the swap came after the last thing that was done
            assert left == after, at
        if not is_ok:
            assert "replaced or removed" in text or "nothing was replaced" in text or "there is no" in text, (at, text)
    shutil.rmtree(tmp_path / "1")


def test_commands_do_not_run_in_the_folder_that_took_its_place(worktree: Path) -> None:
    shell = Bench(worktree, runner=real_runner())
    outside = outside_of(worktree.parent)
    before = look(outside)
    command = "python3 -c \"open('src/written', 'w').write('x')\""
    assert shell.call("run_in_terminal", command=command).ok
    with swapping(worktree, outside, -1) as swap:
        swap.now()
        said = shell.bad("run_in_terminal", command=command)
    assert "was replaced or removed" in said
    assert look(outside) == before


def test_a_worktree_that_is_a_link_from_the_beginning_is_refused(tmp_path: Path) -> None:
    plant(tmp_path / "real")
    (tmp_path / "tree").symlink_to(tmp_path / "real")
    with pytest.raises(Exception, match="a part of it is a link"):
        Bench(tmp_path / "tree", role=Role.IMPLEMENTER, scope=SCOPE)


def test_a_long_search_notices_the_swap(tmp_path: Path) -> None:
    outside = outside_of(tmp_path)
    tree = WorktreeFiles(plant(tmp_path / "tree"))
    with swapping(tmp_path / "tree", outside, -1) as swap:
        swap.now()
        with pytest.raises(ToolFailed, match="replaced or removed"):
            grep_search(tree, GrepSearch(query="secret"), threading.Event())
