"""The heads of runs' ledgers as git refs, `refs/assay/heads/<run>`: a second place, so that a cut ledger shows."""

from pathlib import Path
from typing import NamedTuple

from assay.contracts.common.ids import is_safe_name, run_ref
from assay.errors import UsageError
from assay.git.call import GitFailed, git

PREFIX = "refs/assay/heads/"


class KeptHead(NamedTuple):
    """How many links a run's chain had, and the hash of the last."""

    links: int
    hash: str


def keep_head(work_tree: Path, run_id: str, head: KeptHead) -> None:
    """Writes a run's head where the ledger is not."""
    name = run_ref(run_id)
    if not is_safe_name(name):
        raise UsageError(f"{run_id!r} cannot name a ref")
    content = f"{head.links} {head.hash}\n".encode()
    blob = git(work_tree, "hash-object", "-w", "--stdin", stdin=content).decode().strip()
    git(work_tree, "update-ref", PREFIX + name, blob)


def kept_heads(work_tree: Path) -> dict[str, KeptHead]:
    """Every head that was kept, by the spelling of its run in refs; none outside a repository.

    A repository whose refs cannot be read is an error: without them a cut ledger would look whole.
    """
    if not any((folder / ".git").exists() for folder in (work_tree, *work_tree.absolute().parents)):
        return {}
    listed = git(work_tree, "for-each-ref", "--format=%(refname) %(objectname)", PREFIX).decode()
    return dict(_kept_head(work_tree, *line.split()) for line in listed.splitlines())


def _kept_head(work_tree: Path, ref: str, blob: str) -> tuple[str, KeptHead]:
    content = git(work_tree, "cat-file", "blob", blob)
    try:
        links, hash_ = content.decode().split()
        return ref.removeprefix(PREFIX), KeptHead(int(links), hash_)
    except ValueError:
        raise GitFailed(f"{ref} does not hold the head of a ledger", next_step="find out who changed the ref") from None
