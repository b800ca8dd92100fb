"""Heads of the ledger chains of runs as git refs, `refs/fairwitness/heads/<run>`.

They are stored outside the ledger, so that a truncated ledger is detected. These refs belong to the ledger in the
repository's top folder. A ledger in another folder of the repository, or in a linked worktree, stores its heads under
`refs/fairwitness/places/<place>/heads/<run>`, so that neither ledger misses the runs of the other.
"""

import hashlib
from pathlib import Path
from typing import NamedTuple

from fairwitness.contracts.common.ids import is_safe_name, run_ref
from fairwitness.errors import UsageError
from fairwitness.git.call import GitFailed, git

PREFIX = "refs/fairwitness/heads/"


class KeptHead(NamedTuple):
    """The number of links in a run's chain, and the hash of the last link."""

    links: int
    hash: str


def keep_head(work_tree: Path, run_id: str, head: KeptHead) -> None:
    """Store a run's head as a ref, outside the ledger."""
    name = run_ref(run_id)
    if not is_safe_name(name):
        raise UsageError(f"{run_id!r} cannot name a ref")
    content = f"{head.links} {head.hash}\n".encode()
    blob = git(work_tree, "hash-object", "-w", "--stdin", stdin=content).decode().strip()
    git(work_tree, "update-ref", _prefix(work_tree) + name, blob)


def kept_heads(work_tree: Path) -> dict[str, KeptHead]:
    """Return all heads that the ledger in this folder stored, by the run's name in refs; none outside a repository.

    Refs that cannot be read are an error: without them a truncated ledger would look complete.
    """
    if not any((folder / ".git").exists() for folder in (work_tree, *work_tree.absolute().parents)):
        return {}
    prefix = _prefix(work_tree)
    listed = git(work_tree, "for-each-ref", "--format=%(refname) %(objectname)", prefix).decode()
    return dict(_kept_head(work_tree, prefix, *line.split()) for line in listed.splitlines())


def _prefix(work_tree: Path) -> str:
    """Return the ref prefix for the heads of the ledger in this folder."""
    asked = ("--absolute-git-dir", "--path-format=absolute", "--git-common-dir", "--show-prefix")
    own, common, *inside = git(work_tree, "rev-parse", *asked).split(b"\n", 2)
    folder = b"".join(inside).removesuffix(b"\n")
    linked = own.removeprefix(common)
    if not folder and not linked:
        return PREFIX
    place = hashlib.sha256(linked + b"\0" + folder).hexdigest()[:16]
    return f"refs/fairwitness/places/{place}/heads/"


def _kept_head(work_tree: Path, prefix: str, ref: str, blob: str) -> tuple[str, KeptHead]:
    content = git(work_tree, "cat-file", "blob", blob)
    try:
        links, hash_ = content.decode().split()
        return ref.removeprefix(prefix), KeptHead(int(links), hash_)
    except ValueError:
        raise GitFailed(f"{ref} does not hold the head of a ledger", next_step="find out who changed the ref") from None
