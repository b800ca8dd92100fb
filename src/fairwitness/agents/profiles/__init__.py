"""The external agents that Fair Witness can start, one TOML file each; none of them is bundled."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from fairwitness.agents.data_files import AGENTS, read_files, user_folder
from fairwitness.contracts.agents.profile import AgentProfile

FOLDER = Path(__file__).parent


def read_profiles(folder: Path) -> Mapping[str, AgentProfile]:
    """Return the agent that each file of a folder describes, by name."""
    return MappingProxyType({profile.name: profile for profile in read_files(folder, AgentProfile, named_by="name")})


PROFILES: Mapping[str, AgentProfile] = MappingProxyType({**read_profiles(FOLDER), **read_profiles(user_folder(AGENTS))})
"""The bundled agents, and those of the person, which come first."""
