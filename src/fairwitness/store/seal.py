"""Seal a folder: list its files with their hashes in a lock file beside it; after that none may change.

A seal cannot protect the lock itself: a process that can delete files can delete the lock. So `seal` returns the lock's
hash for the caller to keep (in the ledger), and `broken_seals` compares it and reports a lock that differs.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fairwitness.errors import NotStored, StoreError, UnsafePath, UsageError
from fairwitness.store.artifacts import Store, Stored, content_hash, join

_VERSION = 1
_UNPLAIN = "no plain file"


def seal(store: Store, folder: str, lock_name: str = "specs.lock.json") -> Stored:
    """Write the lock of a folder once; sealing it again without changes is allowed."""
    lock = store.lock_of(folder)
    if lock is None or lock.rpartition("/")[2] != lock_name:
        raise UsageError(
            f"no store would honour {lock_name} beside {folder}",
            next_step="name the folder and its lock in `sealable` of every store over this root",
        )
    files = dict(_hashes(store, folder))
    if not files:
        raise NotStored(f"{folder} holds no file to seal", next_step="write its files first")
    if unplain := sorted(name for name, value in files.items() if value == _UNPLAIN):
        raise UnsafePath(
            f"{folder} cannot be sealed: not a plain file: {', '.join(map(repr, unplain))}",
            next_step="find out who put it there, remove it, then resume",
        )
    document = {"version": _VERSION, "folder": folder.rpartition("/")[2], "files": files}
    return store.create(lock, json.dumps(document, indent=2, sort_keys=True).encode() + b"\n")


def broken_seals(store: Store, below: str = "", *, locks: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the path of every sealed file that was changed, removed or added, and of every lock that is not valid.

    `locks` maps paths to the hashes that `seal` returned: each of these locks must exist with exactly that content.
    """
    expected = locks or {}
    found = dict(_locks(store, below))
    broken = {lock for lock in expected if lock not in found}
    for lock, folder in found.items():
        try:
            sealed = _sealed(store.get(lock, sha256=expected.get(lock)), folder)
        except (StoreError, ValueError):
            broken.add(lock)
            continue
        try:
            present = dict(_hashes(store, folder))
        except UnsafePath:  # the folder itself has become a link
            present = {}
        changed = {name for name in sealed.keys() | present.keys() if sealed.get(name) != present.get(name)}
        broken |= {join(folder, name) for name in changed}
    return tuple(sorted(broken))


def _locks(store: Store, folder: str) -> Iterator[tuple[str, str]]:
    """Yield every lock below a folder with the folder that it seals."""
    names = store.names(folder)
    for name, lock_name in store.sealable.items():
        if lock_name in names:
            yield join(folder, lock_name), join(folder, name)
    for subfolder in store.folders(folder):
        yield from _locks(store, subfolder)


def _sealed(lock: bytes, folder: str) -> dict[str, str]:
    document: Any = json.loads(lock)
    if (
        not isinstance(document, dict)
        or document.get("version") != _VERSION
        or document.get("folder") != folder.rpartition("/")[2]
    ):
        raise ValueError("not the lock of this folder")
    files = document.get("files")
    if not isinstance(files, dict) or not all(str(value).startswith("sha256:") for value in files.values()):
        raise ValueError("no list of files")
    return files


def _hashes(store: Store, folder: str, below: str = "") -> Iterator[tuple[str, str]]:
    """Yield every file below a folder with its hash, and everything else with a value that no lock can contain."""
    for entry in store.entries(folder):
        try:
            if entry.kind == "folder":
                yield from _hashes(store, join(folder, entry.name), f"{below}{entry.name}/")
            else:
                yield below + entry.name, content_hash(store.get(join(folder, entry.name)))
        except UnsafePath:
            yield below + entry.name, _UNPLAIN
