"""The roles of agents, one TOML file each: purpose, answer, time limit, budget and model.

The prompt of a role is `agents/prompts/<prompt>.md`; its tools are in `contracts.common.tools`. The budgets of
autopilot's roles are small beside those of the feature pipeline: a phase of one task must fit into the limits of tokens
and hours that the circuit breaker sets by default.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from fairwitness.agents.data_files import ROLES as USER
from fairwitness.agents.data_files import checked, read_files, read_tables, refused, user_folder
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


_OWN = frozenset({"role", "title", "purpose", "prompt", "timeout_s", "budget", "turns", "model", "prompt_tokens"})
"""What a person's file may say; the rest is what workflows rely on."""


def with_own_roles(roles: Mapping[Role, RoleSpec], folder: Path) -> Mapping[Role, RoleSpec]:
    """Return the roles with what a person's files say about them; a file names only what differs."""
    known = {role.value: role for role in Role}
    found = dict(roles)
    for path, values in read_tables(folder):
        if path.stem not in known:
            raise refused(path, f"names no role; the roles are {', '.join(known)}")
        for key in values:
            if key not in _OWN:
                raise refused(path, f"{key}: expected one of {', '.join(sorted(_OWN))}")
        role = known[path.stem]
        found[role] = checked(path, {**roles[role].plain(), "role": role.value, **values}, RoleSpec, "role")
    return MappingProxyType(found)


ROLES: Mapping[Role, RoleSpec] = with_own_roles(read_roles(FOLDER), user_folder(USER))
"""Every role, as this package describes it and the person's files change it."""
