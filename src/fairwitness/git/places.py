"""How an attempt is spelled: the branch it commits to, the folder it works in, and the files beside that folder."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from fairwitness.contracts.common.ids import attempt_branch, attempt_name, is_git_ref, is_safe_name, run_ref, sub_branch
from fairwitness.errors import UsageError
from fairwitness.kit.text import visible

POOL, ASIDE = "pool", "aside"
"""Folders beside the worktrees, whose names all have a `--`."""
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Worktree:
    """Where one attempt works."""

    run: str
    task: str
    attempt: int
    branch: str
    folder: Path
    sub: str | None = None
    """Who works beside the attempt, on a branch of its own; None for the attempt itself."""

    @property
    def ref(self) -> str:
        """The branch in full."""
        return f"refs/heads/{self.branch}"

    @property
    def name(self) -> str:
        """One word for it."""
        return _joined(self.task, attempt_name(self.attempt), self.sub)

    @property
    def mark(self) -> Path:
        """A file that names the branch, written once everything stands; before that no agent has seen the folder."""
        return self.folder.with_name(f"{self.folder.name}.ready")

    @property
    def aside(self) -> Path:
        """Where its folder comes from the pool or is made ready for it; what stands here belongs to nobody."""
        return self.folder.parent / ASIDE / self.run / self.folder.name


def worktree_of(root: Path, prefix: str, run_id: str, task: str, attempt: int, sub: str | None) -> Worktree:
    """The worktree of an attempt, or of who works beside it; `UsageError` for names that git would not take."""
    run = run_ref(run_id)
    branch = attempt_branch(task, attempt, prefix=f"{prefix}/{run}")
    if sub is not None:
        branch = sub_branch(branch, sub)
    names = (run, task, *([] if sub is None else [sub]))
    if not (all(is_safe_name(name) for name in names) and attempt > 0 and is_git_ref(branch)):
        raise UsageError(
            f"{visible(branch)!r} cannot name a branch", next_step="name run and task by letters, digits and '-'"
        )
    name = _joined(run, task, attempt_name(attempt), sub)
    if len(name) > _LONGEST_NAME or any("--" in part for part in names):  # run and task could be told apart elsewhere
        name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(branch.encode()).hexdigest()[:16]}"
    return Worktree(run, task, attempt, branch, Path(os.path.realpath(root)) / name, sub)


def _joined(*names: str | None) -> str:
    return "--".join(name for name in names if name is not None)
