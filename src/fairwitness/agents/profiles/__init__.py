"""The external agents that are known, one small file of data each; none of them is shipped."""

from collections.abc import Mapping
from types import MappingProxyType

from fairwitness.agents.profiles import claude, codex, copilot, gemini, goose, kimi_code, opencode, qwen, vibe
from fairwitness.contracts.agents.profile import AgentProfile
from fairwitness.errors import UsageError

_ALL = (claude, codex, copilot, gemini, goose, kimi_code, opencode, qwen, vibe)
PROFILES: Mapping[str, AgentProfile] = MappingProxyType({module.PROFILE.name: module.PROFILE for module in _ALL})
"""By the name that people choose."""


def profile(name: str) -> AgentProfile:
    """The profile of that name; `UsageError` if there is none."""
    found = PROFILES.get(name)
    if found is None:
        raise UsageError(f"there is no agent {name!r}", next_step=f"choose one of {', '.join(sorted(PROFILES))}")
    return found
