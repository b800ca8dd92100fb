"""Codex, through the adapter that holds its own copy of it."""

from fairwitness.contracts.agents.dispatch import EnforcementTier
from fairwitness.contracts.agents.model import Dialect
from fairwitness.contracts.agents.profile import AgentProfile, HomeFile, Quirks, RoleKind, UsageFrom, UsageWay
from fairwitness.contracts.common.tools import Tool

_CONFIG = """\
model = "{model}"
model_provider = "fairwitness"
check_for_update_on_startup = false
web_search = "disabled"

[model_providers.fairwitness]
name = "fairwitness"
base_url = "{url}/v1"
env_key = "FAIRWITNESS_MODEL_TOKEN"
wire_api = "responses"

[analytics]
enabled = false

[features]
plugins = false
apps = false
"""

PROFILE = AgentProfile(
    name="codex",
    title="Codex",
    program="codex-acp",
    package="@agentclientprotocol/codex-acp",
    install="npm install -g @agentclientprotocol/codex-acp",
    node=22,
    version_args=(),
    tested=("2.6.0",),
    dialect=Dialect.OPENAI_RESPONSES,
    env={"FAIRWITNESS_MODEL_TOKEN": "{token}", "CODEX_HOME": "{home}/.codex"},
    files=(HomeFile(path=".codex/config.toml", text=_CONFIG),),
    # Its own sandbox is made of namespaces, which it may not make inside ours: in every other mode each command fails,
    # those that read a file too, and in `agent` a second model is asked about each change instead of us. So it is held
    # by the outer sandbox alone, which is what its tier says.
    modes={RoleKind.BUILD: "agent-full-access", RoleKind.READ: "agent-full-access"},
    names=(),
    tools={
        "shell": Tool.RUN_IN_TERMINAL,
        "exec_command": Tool.RUN_IN_TERMINAL,
        "write_stdin": Tool.TERMINAL_OUTPUT,
        "apply_patch": Tool.REPLACE_STRING,
    },
    # the adapter tells it to trust every folder, with the hooks and rules that lie there
    carried=(".codex",),
    quirks=Quirks(turn_ends_on_refusal=True),
    usage=UsageWay(found=UsageFrom.RESPONSE),
    tier=EnforcementTier.D,
    starts_in_ms=430,
)
