"""Settings that come with a repository and that an agent would follow: kept out of its sight, but for its task's own.

Hooks, servers and permissions are commands from whoever wrote the repository. A task may have such a file as its
subject: what the role may write stays in sight, and only that.
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
"""A folder of which more than so many parts would have to be hidden one by one is hidden as a whole."""
_LISTED = 10


@dataclass(frozen=True, slots=True)
class RepoSettings:
    """What one agent would follow in one worktree."""

    hidden: tuple[str, ...]
    """What it does not get to see; also what is not there, where the sandbox can tell by itself."""
    there: tuple[str, ...]
    """What of it stands in the worktree."""
    seen: tuple[str, ...]
    """What it sees, since its task may write it."""

    def notes(self, profile: AgentProfile) -> Iterator[str]:
        """What a person should know about it."""
        if self.there:
            yield f"hidden from {profile.title}, which could take settings from it: {_listed(self.there)}"
        if self.seen and not profile.ignores_repo_settings:
            yield (
                f"the repository carries {_listed(self.seen)}, which {profile.title} may follow, and which the task may"
                " write; nothing but the sandbox keeps what comes of it within the role"
            )


def find_repo_settings(profile: AgentProfile, job: AgentJob) -> RepoSettings:
    """Sorts what an agent would follow into what it sees and what it does not."""
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
    # whether a path is there in the agent's view is for the sandbox to say: a link may lead elsewhere there
    is_told_all = job.runner.tier is SandboxTier.NAMESPACES
    return RepoSettings(tuple(hidden) if is_told_all else there, there, tuple(seen))


def _parts(job: AgentJob, path: str) -> Iterator[tuple[str, bool]]:
    """A path, or the paths below it where the task may write some of them; and whether each is to be seen."""
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
    """Whether a link is in the way: what the task may write by that name is then something else."""
    return os.path.realpath(worktree / path) != os.path.join(os.path.realpath(worktree), path)  # noqa: PTH118


def _listed(paths: tuple[str, ...]) -> str:
    more = len(paths) - _LISTED
    return ", ".join(paths[:_LISTED]) + (f" and {more} more" if more > 0 else "")
