"""Heads of the ledger chains of runs as git refs, `refs/fairwitness/heads/<run>`.

They are stored outside the ledger, so that a truncated ledger is detected. These refs belong to the ledger in the
repository's top folder. A ledger in another folder of the repository, or in a linked worktree, stores its heads under
`refs/fairwitness/places/<place>/heads/<run>`, so that neither ledger misses the runs of the other.
"""

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from fairwitness.errors import UsageError
from fairwitness.git.call import GitDir, GitFailed
from fairwitness.git.repository import git_around, looks_like_git_dir

PREFIX = "refs/fairwitness/heads/"


class KeptHead(NamedTuple):
    """The number of links in a run's chain and the hash of the last link, and the anchor that was written with it."""

    links: int
    hash: str
    anchor: int = 0
    """The number of the anchor; 0 in a ref from before anchors."""
    anchor_hash: str = ""
    ledger: str = ""
    """The id of the ledger."""


def keep_head(work_tree: Path, run_id: str, head: KeptHead) -> None:
    """Store a run's head as a ref, outside the ledger."""
    from fairwitness.contracts.common.ids import is_safe_name, run_ref  # too heavy for `status`, which only reads

    name = run_ref(run_id)
    if not is_safe_name(name):
        raise UsageError(f"{run_id!r} cannot name a ref")
    anchor = f" {head.anchor} {head.anchor_hash} {head.ledger}" if head.anchor else ""
    content = f"{head.links} {head.hash}{anchor}\n".encode()
    git = git_around(work_tree)
    blob = git.run("hash-object", "-w", "--stdin", stdin=content).decode().strip()
    git.run("update-ref", _prefix(git, work_tree) + name, blob)


def is_in_repository(work_tree: Path) -> bool:
    """Return whether a folder belongs to a repository, which could keep heads."""
    is_inside = any((folder / ".git").exists() for folder in (work_tree, *work_tree.absolute().parents))
    return is_inside or looks_like_git_dir(work_tree)


def kept_heads(work_tree: Path) -> dict[str, KeptHead]:
    """Return all heads that the ledger in this folder stored, by the run's name in refs; none outside a repository.

    Refs that cannot be read are an error: without them a truncated ledger would look complete.
    """
    if not is_in_repository(work_tree):
        return {}
    git = git_around(work_tree)
    prefix = _prefix(git, work_tree)
    listed = [
        line.split() for line in git.run("for-each-ref", "--format=%(refname) %(objectname)", prefix).splitlines()
    ]
    blobs = git.run("cat-file", "--batch", stdin=b"".join(blob + b"\n" for _, blob in listed)) if listed else b""
    kept = {}
    for ref, _ in listed:
        header, _, blobs = blobs.partition(b"\n")  # "<id> <type> <size>", or "<id> missing"
        _, *facts = header.split()
        length = int(facts[1]) if len(facts) > 1 else -1
        name = ref.decode()
        kept[name.removeprefix(prefix)] = _kept_head(name, blobs[: max(length, 0)] if facts[0] == b"blob" else b"")
        blobs = blobs[length + 1 :]
    return kept


def _prefix(git: GitDir, work_tree: Path) -> str:
    """Return the ref prefix for the heads of the ledger in this folder."""
    folder = b""
    if git.work_tree is not None:
        inside = Path(os.path.realpath(work_tree)).relative_to(git.work_tree)
        folder = b"".join(os.fsencode(part) + b"/" for part in inside.parts)
    linked = os.fsencode(git.path).removeprefix(os.fsencode(git.common_dir or git.path))
    if not folder and not linked:
        return PREFIX
    place = hashlib.sha256(linked + b"\0" + folder).hexdigest()[:16]
    return f"refs/fairwitness/places/{place}/heads/"


def _kept_head(ref: str, content: bytes) -> KeptHead:
    try:
        links, hash_, *anchor = content.decode().split()
        number, anchor_hash, ledger = anchor or ("0", "", "")
        return KeptHead(int(links), hash_, int(number), anchor_hash, ledger)
    except ValueError:
        raise GitFailed(f"{ref} does not hold the head of a ledger", next_step="find out who changed the ref") from None
