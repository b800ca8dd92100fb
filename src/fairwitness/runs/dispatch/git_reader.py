"""A git reader for agents. It runs outside the sandbox, where only our configuration exists.

Each question gets a git directory of its own: the repository's objects, its branch and tag names, one commit as HEAD,
and the agent's worktree as its files. `rules.tool_policy` decides before which commands are allowed.
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
"""The most bytes of an answer; the toolset shows less."""
TIMEOUT_S = 60.0
_PLAINLY = dict.fromkeys(("diff", "log", "show"), ("--no-ext-diff", "--no-textconv"))
"""Options that keep git from running external programs."""


def git_reader(repository: Repository, shadow: Shadow, worktree: Path, commit: str) -> GitReader:
    """Return a reader for a worktree at a commit. What git prints on failure is an answer, too."""

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
    """Return a git directory with what a person would see, in which nothing can be executed."""
    git = lay_out(folder, objects=shadow.git.path / "objects", object_format=shadow.object_format)
    names = repository.git.run("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
    (folder / "packed-refs").write_bytes(b"# pack-refs with: sorted\n" + names)
    git.run("update-ref", "--no-deref", "HEAD", commit)
    git.run("read-tree", commit)
    return git
