"""Which files of a repository belong to autopilot: what git ignores, and what a clean working tree may contain."""

from fairwitness.contracts.common.ids import relative_path_problem
from fairwitness.store.layout import autopilot

COMMENT = "# what an autopilot run of Fair Witness needs while it runs"

OWN_FOLDERS = (autopilot.RUNTIME, autopilot.PHASES, autopilot.DEBUG, autopilot.SCREENSHOTS)
"""Folders that only a run writes; roadmap, requirements and configuration are the user's and lie beside them."""


def gitignore_with(text: str) -> str:
    """Return a `.gitignore` with our lines, each once; the given text stays unchanged."""
    have = {line.strip() for line in text.splitlines()}
    missing = [line for line in autopilot.GITIGNORE if line not in have]
    if not missing:
        return text
    begun = text if not text or text.endswith("\n") else f"{text}\n"
    gap = "\n" if begun.strip() else ""
    return begun + gap + "\n".join((COMMENT, *missing)) + "\n"


def is_our_gitignore(committed: str, found: str) -> bool:
    """Return True if the file equals the committed one, or adds only our lines."""
    return found in (committed, gitignore_with(committed))


def is_own(path: str) -> bool:
    """Return True for a file or folder of a run; an invalid path is not ours and makes a tree unclean.

    >>> [is_own(path) for path in (".autopilot/", ".planning/phases/6/PLAN.md", ".planning/ROADMAP.md", "src/a.py")]
    [True, True, False, False]
    """
    bare = path.removesuffix("/")
    if relative_path_problem(bare) is not None:
        return False
    return any(bare == folder or bare.startswith(f"{folder}/") for folder in OWN_FOLDERS)


def foreign_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the changed paths that make a working tree unclean for a run."""
    return tuple(path for path in paths if not is_own(path))
