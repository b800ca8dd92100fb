"""The commit that a run starts from, kept from garbage collection by the ref `refs/fairwitness/baseline/<run>`."""

from fairwitness.contracts.common.ids import baseline_tag, is_safe_name, run_ref
from fairwitness.errors import UsageError
from fairwitness.git.call import GitFailed
from fairwitness.git.commits import move_ref
from fairwitness.git.repository import Repository
from fairwitness.kit.text import visible

PREFIX = "refs/fairwitness/baseline/"


def baseline_ref(run_id: str) -> str:
    """Return the ref of a run's baseline.

    >>> baseline_ref("2026-02-26T14:30:00Z")
    'refs/fairwitness/baseline/2026-02-26T14-30-00Z'
    """
    return PREFIX + _checked(run_id)


def keep_baseline(repository: Repository, run_id: str, commit: str, *, tag: bool = False) -> str:
    """Keep the commit that a run starts from, and return it; a repeated call finds the ref of the first.

    With `tag` the commit also gets the published tag name, which other tools read. The tag is the only ref outside
    `refs/fairwitness/`, so it is made only on request, and never moved.
    """
    names = [baseline_ref(run_id), *([f"refs/tags/{baseline_tag(run_id)}"] if tag else [])]
    for name in names:
        if not move_ref(repository, name, commit, None, why="baseline") and repository.ref(name) != commit:
            raise GitFailed(
                f"{name} holds another commit already: a run has one baseline", next_step="start another run"
            )
    return commit


def baseline(repository: Repository, run_id: str) -> str | None:
    """Return the commit that a run started from, or None if it kept none."""
    return repository.ref(baseline_ref(run_id))


def _checked(run_id: str) -> str:
    name = run_ref(run_id)
    if not is_safe_name(name):
        raise UsageError(f"{visible(run_id)!r} cannot name a ref", next_step="use letters, digits and '-'")
    return name
