"""The user's repository: its location, its refs, and the relations of its commits; reading it changes nothing.

`find` searches folders for the repository around a path, and git is asked only about what was found. A folder that an
agent could write is never searched, because its `.git` is under the agent's control.
"""

import os
import re
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from fairwitness.errors import NotReady, NotStored, StoreError, UsageError
from fairwitness.git.bare_repository import lay_out, stores
from fairwitness.git.call import RUN_FSCK, ConfigGuard, GitDir, GitFailed, text_of
from fairwitness.git.indexes import staged_tree, worktree_tree
from fairwitness.git.objects import Objects
from fairwitness.kit.files import read_given
from fairwitness.kit.text import visible
from fairwitness.kit.user_state import user_state_path

WORKTREES = "worktrees"
_OURS = re.compile(r"\.fairwitness|fairwitness-[0-9]+-[0-9a-f]{16}")
"""A state folder in a checkout, and the folder for commands that run as another user (`app.state.scratch_root`)."""
_POINTER_LIMIT = 8192


class RepositoryLocation(NamedTuple):
    """The location of a repository."""

    top: Path | None
    """The checkout's folder; None for a bare repository."""
    git_dir: Path


def find(path: Path) -> RepositoryLocation:
    """Return the repository around a path."""
    try:
        return _search(path)
    except PermissionError as error:
        raise NotReady(
            f"{visible(str(error.filename))} may not be read", next_step="give this user the right to read it"
        ) from None


def _search(path: Path) -> RepositoryLocation:
    start = Path(os.path.realpath(path))
    if not start.exists():
        raise UsageError(f"there is no {visible(str(path))}", next_step="check the path")
    if start.is_file():
        start = start.parent
    _refuse_worktree(start)
    for folder in (start, *start.parents):
        pointer = folder / ".git"
        if pointer.is_symlink() or pointer.exists():
            return RepositoryLocation(folder, _git_dir(pointer))
        if looks_like_git_dir(folder):
            return RepositoryLocation(None, folder)
    raise UsageError(
        f"{visible(str(path))} is not in a git repository", next_step="go to a repository, or make one: git init"
    )


def looks_like_git_dir(folder: Path) -> bool:
    """Return whether git would take a folder for a repository of its own."""
    return (
        (folder / "HEAD").is_file()
        and (folder / "objects").is_dir()
        and ((folder / "refs").is_dir() or (folder / "reftable").is_dir())
    )


def refuse_foreign(place: RepositoryLocation) -> None:
    """Raise `NotReady` if the repository has another owner and the user has not declared it safe.

    Git checks this before it reads a repository's configuration, but not if the git directory is given explicitly.
    """
    owners = {found.stat().st_uid for found in (place.top, place.git_dir) if found is not None}
    us = {os.geteuid()} | (
        {int(sudo)} if os.geteuid() == 0 and (sudo := os.environ.get("SUDO_UID", "")).isdigit() else set()
    )
    if owners <= us:
        return
    where = place.top or place.git_dir
    accepted = GitDir(place.git_dir).ask(
        "config", "--global", "--includes", "-z", "--get-all", "safe.directory", as_person=True
    )
    system = GitDir(place.git_dir).ask("config", "--system", "-z", "--get-all", "safe.directory", as_person=True)
    safe: set[str] = set()
    for value in [*system.out.split(b"\0")[:-1], *accepted.out.split(b"\0")[:-1]]:
        safe = safe | {text_of(value).rstrip("/")} if value else set()  # an empty value clears those before it
    if not safe & {"*", str(where), str(place.git_dir)}:
        raise NotReady(
            f"{visible(str(where))} belongs to another user (dubious ownership)",
            next_step=f"if you trust it: git config --global --add safe.directory {visible(str(where))}",
        )


def _git_dir(pointer: Path) -> Path:
    """Return the git directory that a checkout's `.git` is or names."""
    if pointer.is_dir():
        named = pointer.resolve()
    else:
        try:
            said = read_given(pointer, limit=_POINTER_LIMIT)
        except StoreError as error:
            raise GitFailed(f"{visible(str(pointer))} cannot be read: {error.what}", next_step=RUN_FSCK) from None
        if not said.startswith(b"gitdir: "):
            raise GitFailed(f"{visible(str(pointer))} names no repository", next_step=RUN_FSCK)
        named = (pointer.parent / text_of(said.removeprefix(b"gitdir: ").rstrip(b"\r\n"))).resolve()
    has_objects = (named / "objects").is_dir() or (named / "commondir").is_file()
    if not has_objects or not (named / "HEAD").is_file():
        raise GitFailed(
            f"{visible(str(pointer.parent))} has a damaged repository: {visible(str(named))} is not a git repository",
            next_step="restore it, or clone it again",
        )
    return named


def _common_dir(git_dir: Path) -> Path:
    """Return the folder of refs and objects: the git directory itself, or the one whose worktree it belongs to.

    Git follows the file `commondir` to any folder; here it must lead from `<repository>/worktrees/<name>` back to that
    repository, as `git worktree add` writes it.
    """
    try:
        said = read_given(git_dir / "commondir", limit=_POINTER_LIMIT)
    except NotStored:
        return git_dir
    except StoreError as error:
        raise GitFailed(f"{visible(str(git_dir))} cannot be read: {error.what}", next_step=RUN_FSCK) from None
    named = (git_dir / text_of(said.rstrip(b"\r\n"))).resolve()
    if git_dir.parent != named / "worktrees":
        raise GitFailed(
            f"{visible(str(git_dir / 'commondir'))} leads to {visible(str(named))}, which has no such worktree",
            next_step="remove the file if it is not yours, or repair the worktree: git worktree repair",
        )
    return named


def _refuse_planted_stores(place: RepositoryLocation, common_dir: Path) -> None:
    """Raise `GitFailed` if objects are read from a folder of the checkout, where a commit could have put them."""
    if place.top is None:
        return
    own = (common_dir, place.git_dir, place.top / ".git")
    for store in stores(common_dir / "objects"):
        if store.is_relative_to(place.top) and not any(store.is_relative_to(folder) for folder in own):
            raise GitFailed(
                f"the repository reads objects from {visible(str(store))}, a folder of its own checkout",
                next_step=f"remove it from {visible(str(common_dir / 'objects' / 'info' / 'alternates'))}",
            )


def _is_of_ours(folder: Path) -> bool:
    """Return whether a folder can be one in which Fair Witness creates worktrees."""
    return bool(_OURS.fullmatch(folder.name)) or folder.is_relative_to(os.path.realpath(user_state_path()))


def _refuse_worktree(folder: Path) -> None:
    for parent in (folder, *folder.parents):
        if parent.name == WORKTREES and _is_of_ours(parent.parent):
            raise UsageError(
                f"{visible(str(folder))} is inside an attempt's worktree, which an agent may have written",
                next_step=f"go to {visible(str(parent.parent.parent))}",
            )


def git_around(folder: Path) -> GitDir:
    """Return the user's git directory around a folder, for refs and objects; `Repository.open` reads more of it."""
    place = find(folder)
    refuse_foreign(place)
    return GitDir(place.git_dir, work_tree=place.top, common_dir=_common_dir(place.git_dir))


_MAIN_NAMES = ("main", "master")


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository as of when it was opened; `git` refuses to continue once the configuration changes."""

    top: Path | None
    """The checkout; None for a bare repository."""
    git_dir: Path
    common_dir: Path
    """The folder of refs and objects; differs from `git_dir` in a linked worktree."""
    is_bare: bool
    is_shallow: bool
    head: str | None
    """The commit checked out; None before the first commit."""
    branch: str | None
    """The branch checked out; None if HEAD is detached."""
    object_format: str
    git: GitDir
    _trees: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def open(cls, path: Path) -> "Repository":
        """Open the repository around a path; raise an error that says why if there is none."""
        place = find(path)
        refuse_foreign(place)
        common_dir = _common_dir(place.git_dir)
        _refuse_planted_stores(place, common_dir)
        git = GitDir(place.git_dir, common_dir=common_dir)
        facts = git.ask("rev-parse", "--is-shallow-repository", "--show-object-format")
        if facts.code:
            raise GitFailed(
                f"git cannot read the repository in {visible(str(place.top or place.git_dir))}: {facts.words}",
                next_step="look at it with `git fsck`; if it is damaged, clone it again",
            )
        shallow, object_format = facts.out.split()
        if place.top is None and _says(git, "core.bare") != "true":
            raise UsageError(
                f"{visible(str(place.git_dir))} is the inside of a repository", next_step="go to its work tree"
            )
        git = replace(git, guard=ConfigGuard.over(_deciding_files(git, place.git_dir, common_dir)))
        branch = git.ask("symbolic-ref", "--quiet", "HEAD")
        return cls(
            top=place.top,
            git_dir=place.git_dir,
            common_dir=common_dir,
            is_bare=place.top is None,
            is_shallow=shallow == b"true",
            head=_head(git, branch.out),
            branch=text_of(branch.out.strip()).removeprefix("refs/heads/") or None,
            object_format=object_format.decode(),
            git=git,
        )

    @property
    def objects_dir(self) -> Path:
        """Return the folder of the objects."""
        return self.common_dir / "objects"

    @property
    def index_file(self) -> Path:
        """Return the index that would be committed; inside a hook git names another file than usual."""
        usual = self.git_dir / "index"
        named = os.environ.get("GIT_INDEX_FILE")
        if not named or self.top is None:
            return usual
        given = Path(os.path.realpath(self.top / named))
        return given if given.is_relative_to(self.git_dir) else usual

    def checkout(self, wish: str) -> Path:
        """Return the checkout's folder; raise `UsageError` for a bare repository, which has none."""
        if self.top is None:
            raise UsageError(
                f"{visible(str(self.git_dir))} is a bare repository, so there is no {wish}",
                next_step="name commits: --base REF --head REF",
            )
        return self.top

    def commit(self, ref: str) -> str:
        """Return the full hash of the commit that a ref, hash or expression names."""
        if ref.startswith("-") or not ref or not ref.isprintable():
            raise UsageError(f"{visible(ref)!r} cannot be a ref", next_step="name a branch, tag or commit")
        answer = self.git.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        if answer.code == 0:
            return answer.out.decode().split()[-1]
        if self.head is None and ref.split("~")[0].split("^")[0] in ("HEAD", "@"):
            raise UsageError("the repository has no commits yet", next_step="commit something first")
        hint = "git fetch --unshallow, or name another" if self.is_shallow else "see `git branch --all` and `git tag`"
        why = " (the clone is shallow)" if self.is_shallow else ""
        raise UsageError(f"unknown ref {visible(ref)!r}{why}", next_step=hint)

    def tree_of(self, commit: str) -> str:
        """Return the tree of a commit; the tree of a full hash is cached, since it never changes."""
        known = self._trees.get(commit)
        if known is not None:
            return known
        answer = self.git.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{tree}}")
        if answer.code:
            raise GitFailed(f"the tree of {visible(commit)} is missing: {answer.words}", next_step=RUN_FSCK)
        tree = answer.out.decode().split()[-1]
        if len(commit) == len(tree) and not commit.strip("0123456789abcdef"):  # a ref or a short hash may move
            self._trees[commit] = tree
        return tree

    def merge_base(self, a: str, b: str) -> str | None:
        """Return the best common ancestor of two commits, or None."""
        answer = self.git.ask("merge-base", "--end-of-options", a, b)
        if answer.code > 1:
            raise GitFailed(f"{visible(a)} and {visible(b)} cannot be compared: {answer.words}", next_step=RUN_FSCK)
        return answer.out.decode().strip() or None

    def is_ancestor(self, a: str, b: str) -> bool:
        """Return whether commit `a` is an ancestor of commit `b`."""
        answer = self.git.ask("merge-base", "--is-ancestor", "--end-of-options", a, b)
        if answer.code > 1:
            raise GitFailed(f"{visible(a)} and {visible(b)} cannot be compared: {answer.words}", next_step=RUN_FSCK)
        return answer.code == 0

    def ref(self, name: str) -> str | None:
        """Return the value of a full ref name (`refs/…`), or None."""
        answer = self.git.ask("rev-parse", "--verify", "--quiet", "--end-of-options", name)
        return answer.out.decode().split()[-1] if answer.code == 0 else None

    def ids(self, *names: str) -> tuple[str | None, ...]:
        """Return what several refs or expressions name, with one git call; None for each that names nothing."""
        if any(not name.isprintable() for name in names):
            raise UsageError(f"{visible(' '.join(names))!r} cannot be refs", next_step="name branches, tags or commits")
        given = "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")
        rows = self.git.run("cat-file", "--batch-check=%(objectname)", stdin=given).decode(errors="replace").split("\n")
        return tuple(row if " " not in row else None for row in rows[:-1])

    def tracked_bytes(self) -> int:
        """Return the size of all files of the current commit; 0 without a commit."""
        if self.head is None:
            return 0
        rows = self.git.run("ls-tree", "-r", "-l", "--full-tree", "-z", "HEAD").split(b"\0")
        sizes = [row.partition(b"\t")[0].split()[-1] for row in rows if row]
        return sum(int(size) for size in sizes if size.isdigit())

    def default_base(self) -> str | None:
        """Return the default base of a change: where it left the branch it came from, else the parent commit.

        Return None on the first commit.
        """
        if self.head is None:
            return None
        for ref in self._branches_it_may_come_from():
            tip = self.ref(ref)
            base = tip and self.merge_base(tip, self.head)
            if base and base != self.head:
                return base
        return self.ref(f"{self.head}~1^{{commit}}")

    def tracked(self, path: str) -> str | None:
        """Return the first file of the index that is at a path or below it, in any case, or None."""
        if self.top is None:
            return None
        listed = self.git.run("ls-files", "--cached", "--full-name", "-z", "--", f":(top,icase){path}")
        return text_of(listed.split(b"\0")[0]) or None

    def is_dirty(self) -> bool:
        """Return whether the index or the files differ from the commit; ignored files do not count."""
        if self.top is None:
            return False
        with tempfile.TemporaryDirectory() as folder:
            objects = self.throwaway(Path(folder))
            was = self.tree_of(self.head) if self.head else objects.empty_tree()
            return staged_tree(objects, self) != was or worktree_tree(objects, self) != was

    def throwaway(self, folder: Path) -> Objects:
        """Return an object store in this folder for temporary trees, which the repository never sees."""
        git = lay_out(
            folder / "git",
            objects=self.objects_dir,
            object_format=self.object_format,
            shallow=self.common_dir / "shallow",
        )
        return Objects(git, folder / "passing", self.object_format)

    def _branches_it_may_come_from(self) -> list[str]:
        upstream = ""
        if self.branch:
            upstream = text_of(
                self.git.run("for-each-ref", "--format=%(upstream)", f"refs/heads/{self.branch}").strip()
            )
        default = text_of(self.git.ask("symbolic-ref", "--quiet", "refs/remotes/origin/HEAD").out.strip())
        mains = [f"{where}{name}" for where in ("refs/heads/", "refs/remotes/origin/") for name in _MAIN_NAMES]
        refs = [upstream, default, *(ref for ref in mains if ref != f"refs/heads/{self.branch}")]
        if self.branch and upstream.endswith(f"/{self.branch}"):  # its own published copy, tried last
            refs = [*refs[1:], upstream]
        return [ref for ref in refs if ref]


def _head(git: GitDir, symbolic: bytes) -> str | None:
    answer = git.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if answer.code == 0:
        return answer.out.decode().split()[-1]
    named = git.ask("rev-parse", "--verify", "--quiet", "HEAD")
    broken = symbolic and "broken" in git.ask("for-each-ref", text_of(symbolic.strip())).err
    if named.code and symbolic and not broken:
        return None  # the branch has no commit yet
    raise GitFailed("HEAD names a commit that cannot be read", next_step=RUN_FSCK)


def _says(git: GitDir, name: str) -> str:
    return git.ask("config", "--local", "--type=bool", "--get", name).out.decode().strip()


def _deciding_files(git: GitDir, git_dir: Path, common_dir: Path) -> tuple[Path, ...]:
    """Return all files of the repository's own configuration, including those that it includes."""
    files = [common_dir / "config", common_dir / "config.worktree", git_dir / "config.worktree", git_dir / "commondir"]
    for scope in ("--local", "--worktree"):
        listed = git.ask("config", scope, "--includes", "--show-origin", "-z", "--list").out.split(b"\0")[:-1]
        for origin, said in zip(listed[::2], listed[1::2], strict=True):
            file = Path(os.path.normpath(git_dir / text_of(origin.removeprefix(b"file:"))))
            files.append(file)
            name, _, value = text_of(said).partition("\n")
            if name.startswith("include") and name.endswith(".path"):  # it may be empty now and be filled later
                files.append(file.parent / Path(value).expanduser())
    return tuple(dict.fromkeys(files))
