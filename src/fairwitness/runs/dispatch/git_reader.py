"""Answers git's reading commands for an agent, outside the sandbox, where no configuration but ours exists.

Each question gets a git directory of its own: the repository's objects and the names of its branches and tags to read,
one commit as HEAD, and the agent's worktree as its files. What may be asked was judged before (`rules.tools`).
"""

import asyncio
from pathlib import Path

from fairwitness.agents.toolset.model import GitReader
from fairwitness.git.bare_repository import lay_out
from fairwitness.git.call import GitDir
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit.text import visible

PRINTED = 4 << 20
"""Bytes of an answer; the toolset shows less."""
TIMEOUT_S = 60.0
_PLAINLY = dict.fromkeys(("diff", "log", "show"), ("--no-ext-diff", "--no-textconv"))
"""By git itself, and by nobody's program."""


def git_reader(repository: Repository, shadow: Shadow, worktree: Path, commit: str) -> GitReader:
    """Looks at a worktree that stands at a commit; what git prints on failure is an answer, too."""

    async def ask(argv: tuple[str, ...]) -> str:
        return await asyncio.to_thread(_asked, repository, shadow, worktree, commit, argv)

    return ask


def _asked(repository: Repository, shadow: Shadow, worktree: Path, commit: str, argv: tuple[str, ...]) -> str:
    with shadow.passing_folder() as folder:
        git = _prepared(folder / "git", repository, shadow, commit).given(work_tree=worktree)
        answer = git.ask(argv[1], *_PLAINLY.get(argv[1], ()), *argv[2:], timeout_s=TIMEOUT_S, limit=PRINTED)
    printed = answer.out.decode("utf-8", "replace")
    return printed if answer.code == 0 else f"exit code {answer.code}\n{printed}{visible(answer.words)}"


def _prepared(folder: Path, repository: Repository, shadow: Shadow, commit: str) -> GitDir:
    """A git directory that knows what a person would see, and could run nothing."""
    git = lay_out(folder, objects=shadow.git.path / "objects", object_format=shadow.object_format)
    names = repository.git.run("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
    (folder / "packed-refs").write_bytes(b"# pack-refs with: sorted\n" + names)
    git.run("update-ref", "--no-deref", "HEAD", commit)
    git.run("read-tree", commit)
    return git
