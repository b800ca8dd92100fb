"""Mistral Vibe: it asks only in the mode that it is put into here."""

from fairwitness.contracts.agents.dispatch import EnforcementTier
from fairwitness.contracts.agents.model import Dialect
from fairwitness.contracts.agents.profile import AgentProfile, HomeFile, RoleKind, UsageFrom, UsageWay
from fairwitness.contracts.common.tools import Tool

_CONFIG = """\
active_model = "fairwitness"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false

[[providers]]
name = "fairwitness"
api_base = "{url}/v1"
api_key_env_var = "FAIRWITNESS_MODEL_TOKEN"
backend = "generic"

[[models]]
name = "{model}"
provider = "fairwitness"
alias = "fairwitness"
"""

PROFILE = AgentProfile(
    name="vibe",
    title="Mistral Vibe",
    program="vibe-acp",
    package="mistral-vibe",
    install="uv tool install mistral-vibe",
    tested=("3.0.2",),
    dialect=Dialect.OPENAI_CHAT,
    env={"FAIRWITNESS_MODEL_TOKEN": "{token}", "VIBE_HOME": "{home}/.vibe"},
    files=(HomeFile(path=".vibe/config.toml", text=_CONFIG),),
    modes={RoleKind.BUILD: "ask", RoleKind.READ: "ask"},
    # a request says nothing but which call it is about; what it is was told before
    names=("_meta.tool_name", "title"),
    tools={
        "read_file": Tool.READ_FILE,
        "read": Tool.READ_FILE,
        "glob": Tool.FILE_SEARCH,
        "grep": Tool.GREP_SEARCH,
        "write_file": Tool.CREATE_FILE,
        "search_replace": Tool.REPLACE_STRING,
        "edit": Tool.REPLACE_STRING,
        "bash": Tool.RUN_IN_TERMINAL,
    },
    carried=(".vibe",),
    usage=UsageWay(found=UsageFrom.RESPONSE, is_of_session=True, cost=True),
    tier=EnforcementTier.C,
    starts_in_ms=3230,
)
