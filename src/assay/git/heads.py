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
    """Every head that was kept, by the spelling of its run in refs; none outside a repository."""
    try:
        listed = git(work_tree, "for-each-ref", "--format=%(refname) %(objectname)", PREFIX).decode()
    except GitFailed:
        return {}
    heads = {}
    for line in listed.splitlines():
        ref, blob = line.split()
        links, hash_ = git(work_tree, "cat-file", "blob", blob).decode().split()
        heads[ref.removeprefix(PREFIX)] = KeptHead(int(links), hash_)
    return heads
