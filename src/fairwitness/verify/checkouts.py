"""The folders in which checks run: a private checkout for a check that writes, a shared one for checks that read."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairwitness.git.shadow import Shadow
from fairwitness.kit.folder_trees import remove_tree
from fairwitness.kit.killpoints import killpoint
from fairwitness.sandbox.locked_tmp import hold, sweep
from fairwitness.verify.environment.model import Environment
from fairwitness.verify.environment.node_modules import furnish
from fairwitness.verify.model import CheckRequest

STARTS_WITH = "verify-"
"""Prefix of such a folder's name, like that of the run it belongs to."""


class Checkouts:
    """The folders of one verification; safe to use from any thread, removed by `close`.

    A lock marks them as used. After a crash the next verification removes the folders whose lock is free.
    """

    def __init__(self, folder: Path, shadow: Shadow) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._held = hold(folder)
        sweep(str(folder.parent), starts=(STARTS_WITH,))
        self._folder = folder
        self._shadow = shadow
        self._lock = threading.Lock()
        self._asked: dict[str, int] = {}
        self._checkouts: dict[Path, threading.Lock] = {}

    @contextmanager
    def folders(self, request: CheckRequest) -> Iterator[tuple[Path, Path]]:
        """Yield the path of a report file and a private folder, both removed afterwards.

        Commands and their variables contain these paths and are recorded in the ledger. So the same request always has
        the same paths, independent of the order of requests.
        """
        name = _name_of(request)
        with self._lock:
            before = self._asked.get(name, 0)
            self._asked[name] = before + 1
        own = self._folder / (f"{name}-{before}" if before else name)
        (own / "report").mkdir(parents=True)
        (own / "tmp").mkdir()
        try:
            yield own / "report" / "report", own / "tmp"
        finally:
            remove_tree(own)

    def place(self, request: CheckRequest, environment: Environment, temporary: Path) -> Path:
        """Return the folder for the tree of a request."""
        if request.spec.writes:
            return temporary.parent / "tree"
        return self._folder / "shared" / f"{request.tree[:16]}-{environment.digest[-16:]}"

    def check_out(self, request: CheckRequest, environment: Environment, checkout: Path) -> None:
        """Check the tree out, unless another check already did, and link what the environment provides."""
        with self._lock_of(checkout):
            if not checkout.exists():
                arriving = checkout.with_name(f"{checkout.name}.arriving")
                self._shadow.checkout(request.tree, arriving)
                arriving.rename(checkout)
                killpoint("verify.checked-out")
            furnish(checkout, request.project, environment)

    def _lock_of(self, checkout: Path) -> threading.Lock:
        with self._lock:
            return self._checkouts.setdefault(checkout, threading.Lock())

    def close(self) -> None:
        """Remove all folders."""
        self._held.remove()


def _name_of(request: CheckRequest) -> str:
    asked = [request.spec.id, request.tree, request.purpose, request.phase, request.ids, request.rerun]
    return hashlib.sha256(repr(asked).encode()).hexdigest()[:8]
