"""The fourth layer of enforcement: the worktree is compared with its start, and a change outside the role's scope voids
the dispatch.

`rules.tool_policy` says what a role may write. A role that builds also leaves by-products: caches and ignored files.
They never reach a commit, so they are counted separately. Outside of what a role may write, only the ignore rules of
the start count.
"""

import posixpath
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from fairwitness.contracts.agents.dispatch import ChangedPath, Denial, Layer, PathChangeKind
from fairwitness.contracts.common.ids import relative_path_problem
from fairwitness.contracts.common.tools import POLICIES, Role, Scope, ToolPolicy
from fairwitness.errors import FairWitnessError, is_machine_fault
from fairwitness.git.call import bytes_of, text_of
from fairwitness.git.objects import SYMLINK, TreeEntry
from fairwitness.git.shadow import Shadow
from fairwitness.kit.text import visible
from fairwitness.rules.tool_policy import may_write, path_problem
from fairwitness.runs.dispatch.stored_blobs import StoredContents
from fairwitness.runs.dispatch.worktree_snapshot import WorktreeSnapshot, take_snapshot
from fairwitness.sandbox.dotgit import changes as dotgit_changes

TOOL = "worktree"
"""The tool that a denial of this layer names, since no tool was called."""
LISTED = 50
CACHES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"})
"""Folders that a project's own tests leave behind."""
_IGNORE_FILE = ".gitignore"
_IGNORE_LIMIT = 1 << 20


class Audit(NamedTuple):
    """The result of an audit."""

    changed: tuple[ChangedPath, ...]
    """Every change except by-products; a path that cannot be written down is only among the denials."""
    denials: tuple[Denial, ...]
    byproducts: int
    """The number of files that are caches or ignored."""
    tree: str | None
    """The tree of the worktree at the end; None if it could not be read."""


class _Moved(NamedTuple):
    path: str
    change: PathChangeKind
    entry: TreeEntry | None


def audit(
    shadow: Shadow,
    folder: Path,
    start: WorktreeSnapshot,
    *,
    role: Role,
    scope: Scope,
    base_tree: str | None,
    stored_contents: StoredContents | None = None,
) -> Audit:
    """Compare a worktree with its start. A worktree that cannot be read counts as changed outside the scope.

    `base_tree` is the tree from which the worktree was made: its files are never by-products. Without it, nothing is a
    by-product.
    """
    try:
        now = take_snapshot(shadow, folder, stored_contents=stored_contents)
        return _judged(shadow, folder, start, now, POLICIES[role], scope, base_tree)
    except (FairWitnessError, OSError) as error:
        if is_machine_fault(error):
            raise  # the agent is not to blame, and a later look may succeed
        reason = visible(f"the worktree cannot be compared with its start: {error}")
        return Audit((), (Denial(layer=Layer.AUDIT, tool=TOOL, target=str(folder), reason=reason),), 0, None)


def _judged(
    shadow: Shadow,
    folder: Path,
    start: WorktreeSnapshot,
    now: WorktreeSnapshot,
    policy: ToolPolicy,
    scope: Scope,
    base_tree: str | None,
) -> Audit:
    before: dict[str, TreeEntry] = {}
    after: dict[str, TreeEntry] = {}
    moved: tuple[_Moved, ...] = ()
    if start.tree != now.tree:
        before, after = shadow.entries(start.tree), shadow.entries(now.tree)
        moved = tuple(_moves(before, after))
    refused = {each.path: problem for each in moved if (problem := _problem(shadow, each, policy, scope)) is not None}
    byproducts: frozenset[str] = frozenset()
    if policy.source and base_tree is not None and moved:
        own = shadow.entries(base_tree)
        left = [each.path for each in moved if each.path not in own]
        byproducts = _byproducts(shadow, before, [path for path in left if path in refused])
        # what a role may write follows its own rules; those that a by-product brings are its own affair
        rules = {path: after[path] for path in after if path in before or path == _IGNORE_FILE}
        byproducts |= _byproducts(shadow, rules, [path for path in left if path not in refused])
    denials = [_denial(path, problem) for path, problem in refused.items() if path not in byproducts]
    denials += [_denial(path, "it is no file") for path in _odd(start, now)]
    for violation in dotgit_changes(str(folder.absolute()), start.dotgit, now.dotgit):
        denials.append(_denial(violation.path.removeprefix(f"{folder.absolute()}/"), "a repository was touched"))
    return Audit(
        changed=tuple(
            ChangedPath(path=each.path, change=each.change, allowed=each.path not in refused)
            for each in moved
            if each.path not in byproducts and _name_problem(each.path) is None
        ),
        denials=_cut(denials),
        byproducts=len(byproducts),
        tree=now.tree,
    )


def _moves(before: dict[str, TreeEntry], after: dict[str, TreeEntry]) -> Iterable[_Moved]:
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        change = (
            PathChangeKind.ADDED if old is None else PathChangeKind.DELETED if new is None else PathChangeKind.MODIFIED
        )
        yield _Moved(path, change, new)


def _problem(shadow: Shadow, moved: _Moved, policy: ToolPolicy, scope: Scope) -> str | None:
    """Return why the role may not make a change, or None."""
    problem = _name_problem(moved.path) or path_problem(moved.path)
    if problem is not None:
        return problem
    if not may_write(policy, moved.path, scope):
        return f"{moved.change.value}, and not among the files this role may write"
    if moved.entry is not None and moved.entry.mode == SYMLINK:
        target = text_of(shadow.blob(moved.entry.id))
        led = posixpath.normpath(posixpath.join(posixpath.dirname(moved.path), target))
        if target.startswith("/") or path_problem(led) is not None:
            return "it is a link that leads out of the worktree"
    return None


def _name_problem(path: str) -> str | None:
    """Return why a path cannot be written down, or None."""
    if any("\ud800" <= sign <= "\udfff" for sign in path):
        return "its name is no text"
    return relative_path_problem(path)


def is_cache(path: str) -> bool:
    """Return whether a file is in a folder that tools keep for themselves."""
    return not CACHES.isdisjoint(path.split("/")[:-1])


def _byproducts(shadow: Shadow, entries: dict[str, TreeEntry], paths: Collection[str]) -> frozenset[str]:
    """Return which of these paths are caches, or ignored by the rules among these entries."""
    open_paths = [path for path in paths if path_problem(path) is None]
    caches = {path for path in open_paths if is_cache(path)}
    rest = [path for path in open_paths if path not in caches]
    if not rest:
        return frozenset(caches)
    with shadow.passing_folder() as folder:
        for path, entry in entries.items():
            if path.rpartition("/")[2] == _IGNORE_FILE and entry.mode != SYMLINK:
                rules = folder / path
                rules.parent.mkdir(parents=True, exist_ok=True)
                rules.write_bytes(shadow.blob(entry.id, limit=_IGNORE_LIMIT))
        given = b"".join(bytes_of(path) + b"\0" for path in rest)
        git = shadow.git.given(work_tree=folder)
        answer = git.ask("check-ignore", "--no-index", "-z", "--stdin", stdin=given)
    ignored = {text_of(path) for path in answer.out.split(b"\0")[:-1]} if answer.code == 0 else set()
    return frozenset(caches | ignored)


def _odd(start: WorktreeSnapshot, now: WorktreeSnapshot) -> list[str]:
    return sorted(path for path in start.odd.keys() | now.odd.keys() if start.odd.get(path) != now.odd.get(path))


def _denial(path: str, reason: str) -> Denial:
    return Denial(layer=Layer.AUDIT, tool=TOOL, target=visible(path), reason=reason)


def _cut(denials: list[Denial]) -> tuple[Denial, ...]:
    """Return the first denials, and one that says how many more there are."""
    if len(denials) <= LISTED:
        return tuple(denials)
    more = Denial(
        layer=Layer.AUDIT, tool=TOOL, target="…", reason=f"and {len(denials) - LISTED} more changes outside its scope"
    )
    return (*denials[:LISTED], more)
