"""Everything in a repository that belongs to a person and that nobody else may touch."""

import hashlib
from pathlib import Path

from verify.samples import git

OURS = (".fairwitness/", ".git/refs/fairwitness/", ".git/logs/refs/fairwitness/", ".git/objects/")
"""What Fair Witness may write: its state, its refs, and objects, which change nothing by being there."""


def belongings(repository: Path) -> dict[str, str]:
    """Every file, the index, stash, refs and configuration, each with its mode and a hash of what it holds."""
    found = {}
    for path in sorted(repository.rglob("*")):
        name = path.relative_to(repository).as_posix()
        if name.startswith(OURS) or (path.is_dir() and not path.is_symlink()):
            continue
        content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
        found[name] = f"{path.lstat().st_mode:o} {hashlib.sha256(content).hexdigest()}"
    return found


def leave_things_about(repository: Path) -> None:
    """What people have lying around: a stash, something staged, something edited, a note that git does not know."""
    readme = repository / "README.md"
    readme.write_text(readme.read_text() + "\nA thought for later.\n")
    git(repository, "stash", "push", "--quiet", "--message", "a thought")
    (repository / "draft.md").write_text("Staged.\n")
    git(repository, "add", "draft.md")
    readme.write_text(readme.read_text() + "\nNot staged.\n")
    (repository / "notes.txt").write_text("Not known to git.\n")
