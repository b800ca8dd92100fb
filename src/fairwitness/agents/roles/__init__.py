"""The roles of agents, one TOML file each: purpose, answer, time limit, budget and model.

The prompt of a role is `agents/prompts/<prompt>.md`; its tools are in `contracts.common.tools`. The budgets of
autopilot's roles are small beside those of the feature pipeline: a phase of one task must fit into the limits of tokens
and hours that the circuit breaker sets by default.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from fairwitness.agents.data_files import read_files
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.tools import Role
from fairwitness.errors import UsageError

FOLDER = Path(__file__).parent


def read_roles(folder: Path) -> Mapping[Role, RoleSpec]:
    """Return the role that each file of a folder describes, in the order of `Role`."""
    described = {spec.role: spec for spec in read_files(folder, RoleSpec, named_by="role")}
    missing = [role.value for role in Role if role not in described]
    if missing:
        raise UsageError(f"no file describes the role {', '.join(missing)}", next_step="install Fair Witness again")
    return MappingProxyType({role: described[role] for role in Role})


ROLES: Mapping[Role, RoleSpec] = read_roles(FOLDER)
