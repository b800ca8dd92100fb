"""Whoever types something that cannot be meant gets a sentence, where it is, and what to do; never a traceback."""

from pathlib import Path

import pytest

from cli.graph_grounds import git
from cli.runner import fairwitness
from support.state import own_state

WRONG: list[tuple[str, tuple[str, ...], int, str]] = [
    ("settings that are no TOML", ("feature", "x"), 2, "fairwitness.toml is not TOML"),
    ("a setting that is none", ("feature", "x"), 2, "fairwitness.toml: feature.dirty: expected"),
    ("", ("feature", " "), 2, "the request is empty"),
    ("", ("report", "nope"), 3, "there is no ledger in {root}"),
    ("", ("rollback", "nope"), 3, "there is no ledger in {root}"),
    ("", ("evidence", "bundle", "nope"), 3, "there is no ledger in {root}"),
    ("", ("answer",), 2, "no run waits for an answer"),
    ("", ("answer", "proceed"), 2, "no run waits for an answer"),
    ("a ledger without runs", ("report", "nope"), 2, "the ledger has no run 'nope'"),
    ("a ledger without runs", ("rollback", "nope"), 2, "there is no run 'nope'"),
    ("a ledger without runs", ("evidence", "bundle", "nope"), 2, "there is no run 'nope'"),
    ("a ledger without runs", ("replay", "nope"), 2, "the ledger has no run 'nope'"),
    ("a broken file", ("replay", "--file", "broken.db"), 3, "broken.db cannot be used as a database"),
    ("", ("replay", "--file", "broken.db"), 2, "there is no file broken.db"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository in which nothing was ever run."""
    git(tmp_path, "init", "-q")
    git(tmp_path, "-c", "user.name=Ada", "-c", "user.email=ada@work", "commit", "-q", "--allow-empty", "-m", "begin")
    return tmp_path


def lay(root: Path, what: str) -> None:
    """Puts into a repository what is wrong with it."""
    match what:
        case "settings that are no TOML":
            (root / "fairwitness.toml").write_text("this is = = not TOML\n")
        case "a setting that is none":
            (root / "fairwitness.toml").write_text('[feature]\ndirty = "perhaps"\n')
        case "a ledger without runs":
            from fairwitness.ledger.ledger import Ledger

            own_state(root)
            Ledger.open_file(own_state(root) / "evidence.db").close()
        case "a broken file":
            (root / "broken.db").write_text("this is no database\n")
        case _:
            assert not what


@pytest.mark.parametrize(("what", "arguments", "code", "said"), WRONG)
def test_what_cannot_be_done_is_said_in_a_sentence_with_what_to_do(
    root: Path, what: str, arguments: tuple[str, ...], code: int, said: str
) -> None:
    lay(root, what)
    done = fairwitness(*arguments, cwd=root, COLUMNS="80")
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    sentence, next_step = done.stderr.splitlines()
    assert sentence.startswith(f"fairwitness: {said.format(root=root)}")
    assert next_step.startswith("next:  ")


def test_an_inbox_outside_a_repository_is_empty_and_says_of_what_folder(tmp_path: Path) -> None:
    done = fairwitness("inbox", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "No approvals pending.\n")
    assert done.stderr == "next:  fairwitness status\n"
    assert list(tmp_path.iterdir()) == []
