"""Where checks run: a checkout of their own for those that write, one that is shared for those that cannot."""

import hashlib
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairwitness.git.shadow import Shadow
from fairwitness.kit.killpoints import killpoint
from fairwitness.sandbox.held import hold, sweep
from fairwitness.verify.environment.model import Environment
from fairwitness.verify.environment.node_modules import furnish
from fairwitness.verify.model import CheckRequest

STARTS_WITH = "verify-"
"""How the name of such a folder starts: like the run it belongs to."""


class Checkouts:
    """The folders of one verification; used from any thread, and gone afterwards.

    Whoever is killed leaves them; they are held by a lock as long as someone works there, and the next one sweeps.
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
    def folders(self, question: CheckRequest) -> Iterator[tuple[Path, Path]]:
        """A report file to be written and a private folder, both gone afterwards.

        Commands and their variables name them, and stand in the ledger: the same question has the same folders, in
        whichever order questions come.
        """
        name = _name_of(question)
        with self._lock:
            before = self._asked.get(name, 0)
            self._asked[name] = before + 1
        own = self._folder / (f"{name}-{before}" if before else name)
        (own / "report").mkdir(parents=True)
        (own / "tmp").mkdir()
        try:
            yield own / "report" / "report", own / "tmp"
        finally:
            shutil.rmtree(own, ignore_errors=True)

    def place(self, question: CheckRequest, environment: Environment, temporary: Path) -> Path:
        """Where the tree of a question is to stand."""
        if question.spec.writes:
            return temporary.parent / "tree"
        return self._folder / "shared" / f"{question.tree[:16]}-{environment.digest[-16:]}"

    def check_out(self, question: CheckRequest, environment: Environment, checkout: Path) -> None:
        """Puts the tree there, unless another check did."""
        with self._lock_of(checkout):
            if not checkout.exists():
                arriving = checkout.with_name(f"{checkout.name}.arriving")
                self._shadow.checkout(question.tree, arriving)
                arriving.rename(checkout)
                killpoint("verify.checked-out")
            furnish(checkout, question.project, environment)

    def _lock_of(self, checkout: Path) -> threading.Lock:
        with self._lock:
            return self._checkouts.setdefault(checkout, threading.Lock())

    def close(self) -> None:
        """Removes everything."""
        self._held.remove()


def _name_of(question: CheckRequest) -> str:
    asked = [question.spec.id, question.tree, question.purpose, question.phase, question.ids, question.turn]
    return hashlib.sha256(repr(asked).encode()).hexdigest()[:8]
