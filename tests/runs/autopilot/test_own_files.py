"""A run's own files make no tree unclean, its state is never committed, and no file of others is taken for its own."""

import pytest

from fairwitness.runs.autopilot.own_files import COMMENT, foreign_paths, gitignore_with, is_our_gitignore, is_own
from fairwitness.store.layout import autopilot

OURS = "".join(f"{line}\n" for line in (COMMENT, *autopilot.GITIGNORE))


@pytest.mark.req("A6")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", OURS),
        ("\n", f"\n{OURS}"),
        ("*.pyc\n", f"*.pyc\n\n{OURS}"),
        ("*.pyc", f"*.pyc\n\n{OURS}"),
        (OURS, OURS),
        (OURS.replace("\n", "\r\n"), OURS.replace("\n", "\r\n")),
        (
            ".autopilot/state.json\n",
            ".autopilot/state.json\n\n" + OURS.replace(".autopilot/state.json\n", ""),
        ),
    ],
)
def test_our_lines_are_added_once(before: str, after: str) -> None:
    assert gitignore_with(before) == after
    assert gitignore_with(after) == after
    assert is_our_gitignore(before, after)


@pytest.mark.req("A6")
def test_the_lines_name_what_a_run_needs_while_it_runs() -> None:
    assert gitignore_with("").splitlines()[1:] == [
        ".autopilot/state.json",
        ".autopilot/state.json.backup",
        ".autopilot/archive/",
        ".autopilot/diagnostics/",
    ]


def test_a_change_by_a_person_is_not_taken_for_ours() -> None:
    assert is_our_gitignore("*.pyc\n", "*.pyc\n")
    assert not is_our_gitignore("*.pyc\n", f"*.log\n\n{OURS}")
    assert not is_our_gitignore("", f"{OURS}secret.txt\n")


@pytest.mark.req("A6")
@pytest.mark.parametrize(
    ("path", "ours"),
    [
        (".autopilot/state.json", True),
        (".autopilot/", True),
        (".autopilot", True),
        (".planning/phases/6.1/VERIFICATION.md", True),
        (".planning/phases/", True),
        (".planning/debug/resolved/a.md", True),
        (".planning/screenshots/home.png", True),
        (".planning/", False),
        (".planning/ROADMAP.md", False),
        (".planning/REQUIREMENTS.md", False),
        (".planning/config.json", False),
        (".planning/phases.md", False),
        (".autopilot.md", False),
        (".autopilot/../src/a.py", False),
        ("src/.autopilot/state.json", False),
        ("src/a.py", False),
        (".gitignore", False),
        ("/.autopilot/state.json", False),
        ("", False),
        ("/", False),
    ],
)
def test_only_what_a_run_writes_is_its_own(path: str, ours: bool) -> None:
    assert is_own(path) is ours


def test_what_keeps_a_tree_from_being_clean_is_named() -> None:
    assert foreign_paths((".autopilot/learnings.md", "src/a.py", ".planning/ROADMAP.md")) == (
        "src/a.py",
        ".planning/ROADMAP.md",
    )
