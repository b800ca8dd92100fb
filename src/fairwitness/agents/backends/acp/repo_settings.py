"""Hides the settings in a repository that an agent would follow, except those that its task may write.

Hooks, servers and permissions are commands of the repository's authors. A task may be about such a file: then the agent
sees what the role may write, and only that.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairwitness.agents.base import AgentJob
from fairwitness.contracts.agents.profile import AgentProfile
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.tools import POLICIES
from fairwitness.rules.tool_policy import may_write, may_write_within

_PARTS = 50
"""A folder with more paths to hide than this is hidden as a whole."""
_LISTED = 10


@dataclass(frozen=True, slots=True)
class RepoSettings:
    """The settings in a worktree that an agent would follow."""

    hidden: tuple[str, ...]
    """Hidden paths; also missing ones, if the sandbox itself can tell which exist."""
    there: tuple[str, ...]
    """Hidden paths that exist in the worktree."""
    seen: tuple[str, ...]
    """Visible paths: the task may write them."""

    def notes(self, profile: AgentProfile) -> Iterator[str]:
        """Yield the notes about them for a person."""
        if self.there:
            yield f"hidden from {profile.title}, which could take settings from it: {_listed(self.there)}"
        if self.seen and not profile.ignores_repo_settings:
            yield (
                f"the repository carries {_listed(self.seen)}, which {profile.title} may follow, and which the task may"
                " write; nothing but the sandbox keeps what comes of it within the role"
            )


def find_repo_settings(profile: AgentProfile, job: AgentJob) -> RepoSettings:
    """Return the settings that an agent would follow, split into hidden and visible ones."""
    hidden: list[str] = []
    seen: list[str] = []
    for path in profile.repo_settings:
        parts = list(_parts(job, path))
        unseen = [part for part, is_seen in parts if not is_seen]
        if len(unseen) > _PARTS:
            hidden.append(path)
            continue
        hidden += unseen
        seen += [part for part, is_seen in parts if is_seen]
    there = tuple(path for path in hidden if os.path.lexists(job.worktree / path))
    # the sandbox decides whether a path exists in the agent's view: a link may lead elsewhere there
    is_told_all = job.runner.tier is SandboxTier.NAMESPACES
    return RepoSettings(tuple(hidden) if is_told_all else there, there, tuple(seen))


def _parts(job: AgentJob, path: str) -> Iterator[tuple[str, bool]]:
    """Yield a path, or the paths below it if the task may write some of them, each with whether it is visible."""
    policy, scope = POLICIES[job.spec.role], job.brief.scope
    place = job.worktree / path
    if not may_write_within(policy, path, scope) or _leads_elsewhere(job.worktree, path):
        yield path, False
    elif place.is_dir():
        for name in sorted(entry.name for entry in place.iterdir()):
            yield from _parts(job, f"{path}/{name}")
    elif os.path.lexists(place):
        yield path, may_write(policy, path, scope)


def _leads_elsewhere(worktree: Path, path: str) -> bool:
    """Return whether the path leads through a link, so that the task would write another file."""
    return os.path.realpath(worktree / path) != os.path.join(os.path.realpath(worktree), path)  # noqa: PTH118


def _listed(paths: tuple[str, ...]) -> str:
    more = len(paths) - _LISTED
    return ", ".join(paths[:_LISTED]) + (f" and {more} more" if more > 0 else "")
