"""Reading, listing and writing files: what is there, what is not a role's, and what somebody planted."""

import os
import socket
import stat
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from agents.toolset.kit import FOLDER, Bench
from fairwitness.agents.toolset.files import LINES_LIMIT, to_bytes
from fairwitness.agents.toolset.model import FILE_LIMIT, TEXT_LIMIT, ToolFailed
from fairwitness.contracts.common.tools import Role

LINKED = "a part of it is a link, on another file system or no plain file"


def _many(bench: Bench, lines: int) -> None:
    (bench.root / "src/many.txt").write_text("".join(f"line {number}\n" for number in range(1, lines + 1)))


def test_a_file_is_shown_with_its_line_numbers(bench: Bench) -> None:
    assert bench.good("read_file", path="src/a.py") == snapshot(
        """\
src/a.py, lines 1 to 2 of 2
1	def one() -> int:
2	    return 1\
"""
    )


def test_some_lines_of_a_file_are_shown_and_what_cannot_be_meant_is_said(bench: Bench) -> None:
    _many(bench, 10)
    assert bench.good("read_file", path="src/many.txt", start_line=3, end_line=4) == snapshot(
        """\
src/many.txt, lines 3 to 4 of 10
3	line 3
4	line 4\
"""
    )
    assert bench.bad("read_file", path="src/many.txt", start_line=11) == "src/many.txt has only 10 lines"
    assert bench.bad("read_file", path="src/many.txt", start_line=4, end_line=3) == (
        "end_line 3 is before start_line 4"
    )
    assert "lines 9 to 10 of 10" in bench.good("read_file", path="src/many.txt", start_line=9, end_line=99)


def test_a_long_file_is_shown_in_parts_that_say_how_to_go_on(bench: Bench) -> None:
    _many(bench, LINES_LIMIT + 5)
    first = bench.good("read_file", path="src/many.txt")
    assert first.startswith(
        f"src/many.txt, lines 1 to {LINES_LIMIT} of {LINES_LIMIT + 5}; go on with start_line 1001\n"
    )
    assert bench.good("read_file", path="src/many.txt", start_line=LINES_LIMIT + 1).endswith(f"{LINES_LIMIT + 5}")


def test_no_result_is_longer_than_a_model_can_use(bench: Bench) -> None:
    (bench.root / "src/wide.txt").write_text("\n".join("x" * 500_000 for _ in range(3)))
    assert len(bench.good("read_file", path="src/wide.txt")) < TEXT_LIMIT
    (bench.root / "src/wide.txt").write_text("\n".join("x" * 1_900 for _ in range(900)))
    assert len(bench.good("read_file", path="src/wide.txt")) < TEXT_LIMIT


def test_how_a_file_ends_its_lines_is_said(bench: Bench) -> None:
    (bench.root / "src/dos.txt").write_bytes(b"one\r\ntwo\r\nthree")
    assert bench.good("read_file", path="src/dos.txt") == snapshot(
        """\
src/dos.txt, lines 1 to 3 of 3; line ends are CRLF; the last line has no line end
1	one
2	two
3	three\
"""
    )
    (bench.root / "src/empty.txt").write_bytes(b"")
    assert bench.good("read_file", path="src/empty.txt") == "src/empty.txt is empty"


def test_signs_that_command_a_terminal_or_hide_are_spelled_out(bench: Bench) -> None:
    (bench.root / "src/odd.txt").write_text("\x1b[31mred\x07 \u202eback\u200bward \U000e0041 \tkept é 👩‍💻\n")
    shown = bench.good("read_file", path="src/odd.txt")
    assert "\\x1b[31mred\\x07 \\u202eback\\u200bward \\U000e0041 \tkept é 👩‍💻" in shown


@pytest.mark.parametrize("spelling", ["src/a.py", "./src/a.py", "src//a.py", "{root}/src/a.py", "src/./a.py"])
def test_a_path_may_be_spelled_in_several_ways(bench: Bench, spelling: str) -> None:
    assert bench.good("read_file", path=spelling.format(root=bench.root)).startswith("src/a.py, lines 1 to 2")


def test_what_is_not_there_or_no_file_is_said(bench: Bench) -> None:
    assert bench.bad("read_file", path="src/none.py") == "there is no file src/none.py"
    assert bench.bad("read_file", path="none/none.py") == "there is no file none/none.py"
    assert bench.bad("read_file", path="src") == "src is a folder, not a file"
    assert bench.bad("list_dir", path="src/a.py") == "src/a.py is a file, not a folder"
    assert bench.bad("list_dir", path="none") == "there is no folder none"


def test_bytes_that_are_no_text_are_not_shown(bench: Bench) -> None:
    (bench.root / "src/picture.png").write_bytes(b"\x89PNG\0\0")
    (bench.root / "src/latin.txt").write_bytes("café".encode("latin-1"))
    assert bench.bad("read_file", path="src/picture.png") == "src/picture.png is binary (6 bytes)"
    assert bench.bad("read_file", path="src/latin.txt") == "src/latin.txt is not UTF-8 text: byte 3 cannot be read"


def test_a_huge_file_is_not_read(bench: Bench) -> None:
    with (bench.root / "src/huge.txt").open("wb") as file:
        file.truncate(1 << 40)
    assert bench.bad("read_file", path="src/huge.txt") == (
        f"./src/huge.txt is larger than the {FILE_LIMIT} bytes allowed"
    )


@pytest.mark.req("X3")
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/etc/passwd", "it is absolute"),
        ("../outside.txt", "it has a '..' segment"),
        ("src/../../outside.txt", "it has a '..' segment"),
        ("~/.ssh/id_rsa", "it is absolute"),
        (".git/config", "it is in .git"),
        ("sub/.GIT/config", "it is in .git"),
        (".fairwitness/state.json", "it is in .fairwitness"),
        ("src/a\nb.py", "it has a control character"),
        ("src/a\0.py", "it has a control character"),
        ("src\\a.py", "it has a backslash"),
        ("", "it must have 1 to 1024 characters"),
        ("x" * 2000, "it must have 1 to 1024 characters"),
    ],
)
def test_no_role_reads_what_lies_outside_or_is_closed(bench: Bench, path: str, reason: str) -> None:
    (bench.root.parent / "outside.txt").write_text("secret\n")
    for tool in ("read_file", "list_dir"):
        assert reason in bench.refused(tool, path=path)
    assert reason in bench.refused("create_file", path=path, content="x")


@pytest.mark.req("X3")
def test_an_absolute_path_next_to_the_worktree_is_outside(bench: Bench) -> None:
    (bench.root.parent / "tree-2").mkdir()
    (bench.root.parent / "tree-2/a.py").write_text("secret\n")
    assert "it is absolute" in bench.refused("read_file", path=f"{bench.root}-2/a.py")
    assert "'..'" in bench.refused("read_file", path=f"{bench.root}/../tree-2/a.py")


@pytest.mark.req("X3")
def test_a_planted_link_leads_nowhere(bench: Bench) -> None:
    outside = bench.root.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("secret\n")
    (bench.root / "src/passwd").symlink_to("/etc/passwd")
    (bench.root / "src/out").symlink_to(outside)
    (bench.root / "src/inner.py").symlink_to("a.py")
    (bench.root / "src/dangling").symlink_to(outside / "new.txt")
    for path in ("src/passwd", "src/out/a.txt", "src/inner.py", "src/dangling"):
        assert LINKED in bench.bad("read_file", path=path)
        assert LINKED in bench.bad("create_file", path=path, content="mine\n")
        assert LINKED in bench.bad("replace_string_in_file", path=path, old_string="secret", new_string="mine")
    assert LINKED in bench.bad("list_dir", path="src/out")
    assert (outside / "a.txt").read_text() == "secret\n"
    assert not (outside / "new.txt").exists()
    assert bench.text("src/a.py") == "def one() -> int:\n    return 1\n"


@pytest.mark.req("X3")
def test_a_second_name_of_a_file_outside_is_neither_read_nor_written(bench: Bench) -> None:
    outside = bench.root.parent / "outside.txt"
    outside.write_text("secret\n")
    os.link(outside, bench.root / "src/hard.txt")
    for said in (
        bench.bad("read_file", path="src/hard.txt"),
        bench.bad("create_file", path="src/hard.txt", content="mine"),
        bench.bad("replace_string_in_file", path="src/hard.txt", old_string="secret", new_string="mine"),
    ):
        assert said == "./src/hard.txt is a second name of another file (a hard link)"
    assert outside.read_text() == "secret\n"


@pytest.mark.req("X3")
def test_nothing_waits_on_a_pipe_or_a_socket(bench: Bench) -> None:
    os.mkfifo(bench.root / "src/pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(bench.root / "src/door"))
        for path in ("src/pipe", "src/door"):
            assert LINKED in bench.bad("read_file", path=path)
            assert LINKED in bench.bad("create_file", path=path, content="x")
        assert "pipe (a link or no plain file: closed)" in bench.good("list_dir", path="src")
        assert "src/pipe" not in bench.good("file_search", pattern="*")
        bench.good("grep_search", query="one")


def test_a_folder_is_listed_with_what_is_closed(bench: Bench) -> None:
    (bench.root / "src/link").symlink_to("/etc")
    assert bench.good("list_dir") == snapshot(
        """\
.fairwitness/ (closed: it is in .fairwitness)
.git/ (closed: it is in .git)
.gitignore
README.md
build/
src/
tests/\
"""
    )
    assert bench.good("list_dir", path="src") == snapshot(
        """\
a.py
deep/
link (a link or no plain file: closed)
run.log\
"""
    )


def test_odd_names_are_listed_on_one_line_each(bench: Bench) -> None:
    folder = bench.root / "odd"
    folder.mkdir()
    assert bench.good("list_dir", path="odd") == "odd is empty"
    (folder / "two\nlines").touch()
    (folder / "\x1b[31m").touch()
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9")).touch()
    assert bench.good("list_dir", path="odd") == snapshot(
        """\
\\x1b[31m (closed: it has a control character)
caf\\udce9 (closed: its name is not UTF-8)
two\\nlines (closed: it has a control character)\
"""
    )


def test_a_crowded_folder_is_cut_short(bench: Bench) -> None:
    (bench.root / "crowd").mkdir()
    for number in range(510):
        (bench.root / f"crowd/{number:04}").touch()
    assert bench.good("list_dir", path="crowd").endswith("0499\n[10 more]")


@pytest.mark.req("X3")
def test_a_builder_writes_the_files_of_its_task_and_no_others(bench: Bench) -> None:
    assert bench.good("create_file", path="src/new/deep/c.py", content="x = 1\n") == (
        "created src/new/deep/c.py (1 line)"
    )
    assert bench.text("src/new/deep/c.py") == "x = 1\n"
    assert bench.good("create_file", path="src/a.py", content="") == "replaced src/a.py (0 lines)"
    for path in ("README.md", "tests/deep/test_b.py", "srcs/a.py", ".gitignore", f"{FOLDER}/plan.md"):
        told = bench.refused("create_file", path=path, content="x")
        assert told.startswith(f"{path} is not among the files this role may write: ")
        assert not (bench.root / path).exists() or path in ("README.md", ".gitignore")
    assert bench.text("README.md") == "# Login\n"


@pytest.mark.req("X3")
def test_a_role_that_does_not_build_writes_only_its_own_documents(worktree: Path) -> None:
    bench = Bench(worktree, role=Role.PLANNER)
    task = f"{FOLDER}/tasks/task-01.yaml"
    assert bench.good("create_file", path=task, content="task_id: task-01\n") == f"created {task} (1 line)"
    assert "is not among the files" in bench.refused("create_file", path="src/a.py", content="x")
    assert bench.refused("multi_replace_string_in_file", path=task, replacements=[]) == (
        "planner does not have multi_replace_string_in_file"
    )
    assert Bench(worktree, role=Role.JUDGE).refused("create_file", path=task, content="x") == (
        "judge does not have create_file"
    )


def test_what_could_be_executed_still_can_and_nothing_else_may(bench: Bench) -> None:
    script = bench.root / "src/run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o4755)
    bench.good("create_file", path="src/run.sh", content="#!/bin/sh\ntrue\n")
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    bench.good("replace_string_in_file", path="src/run.sh", old_string="true", new_string="false")
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    bench.good("create_file", path="src/plain.sh", content="#!/bin/sh\n")
    assert stat.S_IMODE((bench.root / "src/plain.sh").stat().st_mode) & 0o111 == 0


def test_text_that_no_file_can_hold_is_not_written(bench: Bench) -> None:
    assert bench.bad("create_file", path="src/x.txt", content="a\0b") == "the text has a NUL character"
    assert "content: input should be a valid string" in bench.bad("create_file", path="src/x.txt", content="\ud800")
    wide = bench.bad("create_file", path="src/x.txt", content="é" * FILE_LIMIT)
    assert wide == f"{2 * FILE_LIMIT} bytes are more than the {FILE_LIMIT} that a file may have"
    assert "content: string should have at most" in bench.bad("create_file", path="src/x.txt", content="x" * 3_000_000)
    assert bench.bad("create_file", path="src/deep", content="x") == "src/deep is a folder"
    assert LINKED in bench.bad("create_file", path="src/a.py/x.py", content="x")
    assert not (bench.root / "src/x.txt").exists()


def test_a_worktree_that_is_gone_is_said(bench: Bench) -> None:
    bench.root.rename(bench.root.parent / "moved")
    gone = ". was replaced or removed while it was in use; nothing is read or written there"
    assert bench.bad("read_file", path="src/a.py") == gone
    assert bench.bad("list_dir") == gone


def test_half_a_sign_is_no_text() -> None:
    with pytest.raises(ToolFailed, match="half of a surrogate pair"):
        to_bytes("a\ud800")
