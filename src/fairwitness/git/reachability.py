"""Finds commits that no ref of the repository reaches any more, to check that no commit of a run is lost."""

from collections.abc import Iterable

from fairwitness.contracts.common.ids import run_ref
from fairwitness.git import quarantine
from fairwitness.git.repository import Repository


def lost(repository: Repository, run_id: str, commits: Iterable[str]) -> tuple[str, ...]:
    """Return the run's commits that neither a branch nor the run's quarantine holds, including deleted commits.

    Another run's quarantine does not count, because it may be cleared without regard to this run.
    """
    asked = list(dict.fromkeys(commits))
    there = _commits(repository, asked)
    given = b"".join(f"{commit}\n".encode() for commit in there)
    answer = repository.git.run(
        *("rev-list", "--stdin", "--not", "--branches", f"--glob={_quarantine(run_id)}*"), stdin=given
    )
    unheld = set(answer.decode().split())
    return tuple(commit for commit in asked if commit not in there or commit in unheld)


def unheld(repository: Repository, run_id: str, commit: str) -> tuple[tuple[str, ...], ...]:
    """Return all commits that only this commit reaches, each with its parents, newest first."""
    answer = repository.git.run(
        *("rev-list", "--parents", "--topo-order", commit),
        *("--not", "--branches", f"--glob={_quarantine(run_id)}*"),
    )
    return tuple(tuple(line.split(" ")) for line in answer.decode().splitlines())


def in_quarantine(repository: Repository, run_id: str, commit: str) -> bool:
    """Return whether the run's own quarantine holds a commit."""
    under = _quarantine(run_id)
    return bool(repository.git.run("for-each-ref", "--count=1", f"--contains={commit}", under))


def _quarantine(run_id: str) -> str:
    return f"{quarantine.PREFIX}{run_ref(run_id)}/"


def _commits(repository: Repository, names: list[str]) -> frozenset[str]:
    """Return the names that are commits of the repository."""
    if not names:
        return frozenset()
    given = b"".join(f"{name}\n".encode() for name in names)
    rows = repository.git.run("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=given).decode().split("\n")
    return frozenset(row.removesuffix(" commit") for row in rows if row.endswith(" commit"))
