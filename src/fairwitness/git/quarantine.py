"""Commits that were not merged and that are kept nevertheless: `refs/fairwitness/quarantine/<run>/<name>`."""

import itertools
from typing import NamedTuple

from fairwitness.contracts.common.ids import is_safe_name, run_ref
from fairwitness.errors import UsageError
from fairwitness.git.commits import move_ref
from fairwitness.git.repository import Repository
from fairwitness.kit.text import visible

PREFIX = "refs/fairwitness/quarantine/"


class Quarantined(NamedTuple):
    """A quarantined commit, and the ref that holds it."""

    ref: str
    commit: str

    @property
    def run(self) -> str:
        """Return the run that the commit belongs to, as spelled in refs."""
        return self.ref.removeprefix(PREFIX).split("/")[0]

    @property
    def name(self) -> str:
        """Return the name of the commit within its run."""
        return self.ref.removeprefix(PREFIX).split("/", 1)[1]


def keep(repository: Repository, run_id: str, name: str, commit: str) -> Quarantined:
    """Quarantine a commit; a name that holds another commit is not reused, and a repeated call keeps it once."""
    run = run_ref(run_id)
    if not (is_safe_name(run) and is_safe_name(name)):
        raise UsageError(f"{visible(f'{run_id}/{name}')!r} cannot name a ref", next_step="use letters, digits and '-'")
    for number in itertools.count(1):
        ref = f"{PREFIX}{run}/{name}" + (f"--{number}" if number > 1 else "")
        now = repository.ref(ref)
        if now == commit or (now is None and move_ref(repository, ref, commit, None, why="quarantine")):
            return Quarantined(ref, commit)
    raise AssertionError("counting ends never")


def kept(repository: Repository, run_id: str | None = None) -> tuple[Quarantined, ...]:
    """Return everything in quarantine, of one run or of all, by name."""
    under = PREFIX if run_id is None else f"{PREFIX}{run_ref(run_id)}/"
    listed = repository.git.run("for-each-ref", "--format=%(refname) %(objectname)", under).decode()
    return tuple(Quarantined(*line.split(" ")) for line in listed.splitlines())
