"""Puts a worktree back to the start of a dispatch whose process was killed, so that the next try begins where it did.

What the killed try left is kept as a tree first; nothing of it counts.
"""

from pathlib import Path

from fairwitness.errors import StoreError
from fairwitness.git.call import GitFailed, text_of
from fairwitness.git.objects import EXECUTABLE, SYMLINK, TreeEntry
from fairwitness.git.shadow import Shadow
from fairwitness.kit.files import replace_file
from fairwitness.kit.text import visible
from fairwitness.runs.dispatch.seen import FILE_LIMIT, Seen, see

_NEXT = "take the worktree away and begin a new attempt"


def restore(shadow: Shadow, folder: Path, start: Seen) -> str:
    """Makes the folder what it was; answers the tree of what had been left in it. Whatever wrote it must be dead."""
    left = see(shadow, folder)
    before, after = shadow.entries(start.tree), shadow.entries(left.tree)
    differing = [path for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)]
    odd = [path for path, mark in left.odd.items() if start.odd.get(path) != mark]
    try:
        for path in (*odd, *(path for path in differing if path in after)):
            _remove(folder, path)
        for path in differing:
            if path in before:
                _write(shadow, folder, path, before[path])
    except (OSError, StoreError) as error:
        raise GitFailed(f"the worktree cannot be put back: {visible(str(error))}", next_step=_NEXT) from None
    if differing or odd:
        now = see(shadow, folder)
        if (now.tree, now.odd) != (start.tree, start.odd):
            raise GitFailed(f"{visible(str(folder))} cannot be put back to its start", next_step=_NEXT)
    return left.tree


def _remove(folder: Path, path: str) -> None:
    place = folder / path
    place.unlink()
    above = place.parent
    while above != folder and not any(above.iterdir()):  # a tree has no empty folders
        above.rmdir()
        above = above.parent


def _write(shadow: Shadow, folder: Path, path: str, entry: TreeEntry) -> None:
    content = shadow.blob(entry.id, limit=FILE_LIMIT)
    if entry.mode == SYMLINK:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).symlink_to(text_of(content))
        return
    replace_file(folder, path, content)
    (folder / path).chmod(0o755 if entry.mode == EXECUTABLE else 0o644)
