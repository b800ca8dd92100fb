"""A profile made definite for one dispatch: placeholders filled in, the tools of the role by the agent's own names."""

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
"""Signs that would end a text of a settings file, or mean something to a shell."""


_NO_TOOL = "no-such-tool"
"""For a role without tools: an option that names none would be taken for one that was left out."""


def role_kind(role: Role) -> RoleKind:
    """Which kind of role it is."""
    return RoleKind.BUILD if POLICIES[role].source else RoleKind.READ


def tools_of(profile: AgentProfile, role: Role) -> tuple[str, ...]:
    """The agent's names of the tools that the role has."""
    allowed = POLICIES[role].tools
    return tuple(name for name, tool in profile.tools.items() if tool in allowed)


@dataclass(frozen=True, slots=True)
class ProfileValues:
    """The values of one dispatch."""

    values: Mapping[str, str]
    tools: tuple[str, ...]

    def text(self, template: str) -> str:
        """A text with everything filled in; what is no placeholder stays as it is."""
        return _PLACEHOLDER.sub(lambda found: self.values[found.group(1)], template)

    def words(self, templates: tuple[str, ...]) -> tuple[str, ...]:
        """Arguments; one that is nothing but the tools becomes one for each."""
        filled: list[str] = []
        for template in templates:
            filled += (self.tools or (_NO_TOOL,)) if template == "{tools}" else (self.text(template),)
        return tuple(filled)

    def value(self, template: Any) -> Any:
        """A JSON value; a text that is nothing but the tools becomes a list."""
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
    """The values of one dispatch; `UsageError` for one that would break out of where it is put."""
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
