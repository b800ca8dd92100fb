"""Fills in the placeholders of a profile for one dispatch."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairwitness.contracts.agents.profile import PLACEHOLDERS, AgentProfile, RoleKind
from fairwitness.contracts.common.tools import POLICIES, Role
from fairwitness.errors import UsageError

_PLACEHOLDER = re.compile(f"\\{{({'|'.join(PLACEHOLDERS)})\\}}")
_UNFIT = re.compile(r"[\x00-\x1f\x7f\"'\\`$]")
"""Characters that would end a string of a settings file, or mean something to a shell."""


_NO_TOOL = "no-such-tool"
"""For a role without tools: an agent takes an option with an empty list for an option that was left out."""


def role_kind(role: Role) -> RoleKind:
    """Return the kind of a role."""
    return RoleKind.BUILD if POLICIES[role].source else RoleKind.READ


def tools_of(profile: AgentProfile, role: Role) -> tuple[str, ...]:
    """Return the agent's names of the tools that the role has."""
    allowed = POLICIES[role].tools
    return tuple(name for name, tool in profile.tools.items() if tool in allowed)


@dataclass(frozen=True, slots=True)
class ProfileValues:
    """The values of the placeholders for one dispatch."""

    values: Mapping[str, str]
    tools: tuple[str, ...]

    def text(self, template: str) -> str:
        """Return a text with its placeholders filled in."""
        return _PLACEHOLDER.sub(lambda found: self.values[found.group(1)], template)

    def words(self, templates: tuple[str, ...]) -> tuple[str, ...]:
        """Return arguments with their placeholders filled in; `{tools}` alone becomes one argument for each tool."""
        filled: list[str] = []
        for template in templates:
            filled += (self.tools or (_NO_TOOL,)) if template == "{tools}" else (self.text(template),)
        return tuple(filled)

    def value(self, template: Any) -> Any:
        """Return a JSON value with its placeholders filled in; `{tools}` alone becomes a list."""
        if template == "{tools}":
            return list(self.tools)
        if isinstance(template, str):
            return self.text(template)
        if isinstance(template, dict):
            return {name: self.value(item) for name, item in template.items()}
        if isinstance(template, list | tuple):
            return [self.value(item) for item in template]
        return template


def profile_values(profile: AgentProfile, role: Role, **values: str) -> ProfileValues:
    """Return the values of one dispatch; `UsageError` for a value that could break out of a quoted string."""
    for name, value in values.items():
        if _UNFIT.search(value):
            raise UsageError(
                f"the {name} of this dispatch cannot be passed on to {profile.title}",
                next_step=f"use a {name} without quotes, backslashes, '$' and control characters",
            )
    tools = tools_of(profile, role)
    hidden = {name: False for name in profile.tools if name not in tools}
    lists = {"tools": ",".join(tools), "tools_json": json.dumps(tools), "hidden_json": json.dumps(hidden)}
    return ProfileValues(values | lists, tools)
