"""A diff names every file, and every line with its number; nothing in the change can hide a part of it."""

from pathlib import Path

import pytest

from fairwitness.git.changes import TEXT_LIMIT, DiffLine, FileChange
from fairwitness.git.objects import TreeEntry
from fairwitness.git.shadow import Shadow
from git.person import Person


@pytest.fixture
def shadow(person: Person) -> Shadow:
    return person.shadow()


def _diff(shadow: Shadow, old: dict[str, bytes], new: dict[str, bytes]) -> dict[str, FileChange]:
    return {change.path: change for change in shadow.diff(_tree(shadow, old), _tree(shadow, new))}


def _tree(shadow: Shadow, files: dict[str, bytes], mode: str = "100644") -> str:
    entries = {path: TreeEntry(mode, shadow.add_blob(content)) for path, content in files.items()}
    return shadow.compose(shadow.empty_tree(), entries)


def test_lines_carry_their_numbers_on_both_sides(shadow: Shadow) -> None:
    old = b"a\nb\nc\nd\ne\n"
    new = b"a\nB\nBB\nc\ne\nf"
    change = _diff(shadow, {"x": old}, {"x": new})["x"]
    assert change.status == "M"
    assert [(hunk.removed, hunk.added) for hunk in change.hunks] == [
        ((DiffLine(2, "b"),), (DiffLine(2, "B"), DiffLine(3, "BB"))),
        ((DiffLine(4, "d"),), ()),
        ((), (DiffLine(6, "f"),)),
    ]


def test_added_removed_empty_and_binary_files(shadow: Shadow) -> None:
    changes = _diff(
        shadow,
        {"gone": b"1\n2", "same": b"x", "bin": b"\0a", "was empty": b""},
        {"new": b"1\n", "same": b"x", "bin": b"\0b", "empty": b"", "new bin": b"\0", "was empty": b"now\n"},
    )
    assert {path: change.status for path, change in changes.items()} == {
        **{"gone": "D", "new": "A", "bin": "M", "empty": "A", "new bin": "A", "was empty": "M"}
    }
    assert changes["gone"].removed == (DiffLine(1, "1"), DiffLine(2, "2"))
    assert changes["new"].added == (DiffLine(1, "1"),)
    assert changes["was empty"].added == (DiffLine(1, "now"),)
    assert {path for path, change in changes.items() if change.is_binary} == {"bin", "new bin"}
    assert changes["empty"].hunks == changes["bin"].hunks == ()
    assert changes["gone"].new_entry is None
    assert changes["new"].old_entry is None


def test_text_that_looks_like_a_patch_is_text(shadow: Shadow) -> None:
    tricky = b"diff --git a/x b/x\n--- a\n+++ b\n@@ -1,2 +3,4 @@\n-x\n+y\n\\ No newline at end of file\n"
    changes = _diff(shadow, {"x": b"1\n", "y": tricky}, {"x": tricky, "y": b"1"})
    assert [line.text for line in changes["x"].added] == tricky.decode().splitlines()
    assert [line.text for line in changes["y"].removed] == tricky.decode().splitlines()
    assert changes["y"].added == (DiffLine(1, "1"),)


def test_line_ends_and_other_bytes_stay_visible(shadow: Shadow) -> None:
    changes = _diff(shadow, {"x": b"a\nb\n", "y": b"\xff\n"}, {"x": b"a\r\nb\n", "y": b"\xfe\n"})
    assert changes["x"].added == (DiffLine(1, "a\r"),)
    assert changes["y"].added == (DiffLine(1, "\ufffd"),)


def test_a_rename_is_a_removed_and_an_added_file_that_names_its_origin(shadow: Shadow) -> None:
    text = b"".join(b"%d\n" % number for number in range(20))
    changes = _diff(shadow, {"old name": text, "z": b"z\n"}, {"new\nname": text + b"more\n", "y": b"other\n"})
    assert (changes["old name"].status, changes["new\nname"].status) == ("D", "A")
    assert changes["new\nname"].renamed_from == "old name"
    assert changes["old name"].renamed_from is None
    assert changes["y"].renamed_from is None
    assert len(changes["new\nname"].added) == 21


def test_kinds_and_modes_change_too(shadow: Shadow) -> None:
    blob = shadow.add_blob(b"x")
    commit = "1" * 40
    base = {"link": TreeEntry("100644", blob), "run": TreeEntry("100644", blob), "sub": TreeEntry("160000", commit)}
    head = {"link": TreeEntry("120000", blob), "run": TreeEntry("100755", blob), "sub": TreeEntry("160000", "2" * 40)}
    old, new = (shadow.compose(shadow.empty_tree(), entries) for entries in (base, head))
    changes = {change.path: change for change in shadow.diff(old, new)}
    assert {path: change.status for path, change in changes.items()} == {"link": "T", "run": "M", "sub": "M"}
    assert changes["run"].hunks == ()
    assert (changes["run"].old_entry, changes["run"].new_entry) == (base["run"], head["run"])
    assert changes["sub"].new_entry == head["sub"]
    assert changes["sub"].hunks == ()
    without = shadow.compose(new, {"sub": None})
    assert [change.status for change in shadow.diff(new, without)] == ["D"]


def test_attributes_of_the_change_cannot_declare_a_text_binary(shadow: Shadow) -> None:
    changes = _diff(
        shadow,
        {"t.py": b"assert x\n"},
        {"t.py": b"assert True\n", ".gitattributes": b"*.py binary -diff\n* export-ignore\n"},
    )
    assert changes["t.py"].added == (DiffLine(1, "assert True"),)


def test_a_file_too_large_to_be_read_by_lines_counts_as_binary(shadow: Shadow) -> None:
    changes = _diff(shadow, {"x": b"1\n"}, {"x": b"1\n" * (TEXT_LIMIT // 2 + 1), "y": b"2\n"})
    assert changes["x"].is_binary
    assert not changes["y"].is_binary


def test_equal_trees_differ_in_nothing(shadow: Shadow, tmp_path: Path) -> None:
    assert shadow.diff(_tree(shadow, {"a": b"1"}), _tree(shadow, {"a": b"1"})) == ()
