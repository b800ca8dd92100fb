"""Which files in a repository are autopilot's own: what git is told to ignore, and what a clean tree may hold."""

from fairwitness.contracts.common.ids import relative_path_problem
from fairwitness.store.layout import autopilot

COMMENT = "# what an autopilot run of Fair Witness needs while it runs"

OWN_FOLDERS = (autopilot.RUNTIME, autopilot.PHASES, autopilot.DEBUG, autopilot.SCREENSHOTS)
"""Folders in which nobody but a run writes; roadmap, requirements and configuration are people's, and stand beside."""


def gitignore_with(text: str) -> str:
    """A `.gitignore` that has our lines, each once; what stood there before stays as it was."""
    have = {line.strip() for line in text.splitlines()}
    missing = [line for line in autopilot.GITIGNORE if line not in have]
    if not missing:
        return text
    begun = text if not text or text.endswith("\n") else f"{text}\n"
    gap = "\n" if begun.strip() else ""
    return begun + gap + "\n".join((COMMENT, *missing)) + "\n"


def is_our_gitignore(committed: str, found: str) -> bool:
    """True if the file differs from the committed one by our lines and nothing else, or not at all."""
    return found in (committed, gitignore_with(committed))


def is_own(path: str) -> bool:
    """True for a file or folder of a run, as git names it; anything odd is not ours, and so makes a tree unclean.

    >>> [is_own(path) for path in (".autopilot/", ".planning/phases/6/PLAN.md", ".planning/ROADMAP.md", "src/a.py")]
    [True, True, False, False]
    """
    bare = path.removesuffix("/")
    if relative_path_problem(bare) is not None:
        return False
    return any(bare == folder or bare.startswith(f"{folder}/") for folder in OWN_FOLDERS)


def foreign_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The changed paths that keep a working tree from being clean for a run."""
    return tuple(path for path in paths if not is_own(path))
