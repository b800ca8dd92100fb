"""Every role as data: what it is for, what it returns, how long it has and what it may cost.

Its words are `agents/prompts/<name>.md`; which tools it has stands in `contracts.common.tools`.
"""

from collections.abc import Mapping
from typing import NamedTuple

from fairwitness.agents.roles.autopilot import AUTOPILOT
from fairwitness.agents.roles.feature import FEATURE
from fairwitness.agents.roles.forge import FORGE
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.tools import Role

ROLES: Mapping[Role, RoleSpec] = {spec.role: spec for spec in (*FEATURE, *AUTOPILOT, *FORGE)}


class Variants(NamedTuple):
    """Words that only one form of a role gets: `agents/prompts/<folder>/<value of the parameter>.md`."""

    folder: str
    parameter: str


VARIANTS: Mapping[Role, Variants] = {
    Role.RESEARCHER: Variants("foci", "focus"),
    Role.REVIEWER: Variants("perspectives", "perspective"),
}

DOCUMENTS: Mapping[Role, Mapping[str, str]] = {Role.PLANNER: {"tasks/*.yaml": "task-schema"}}
"""Documents that a role writes beside its answer, by the glob of its policy, each with the contract it must follow."""
