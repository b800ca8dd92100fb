"""GitHub Copilot's command line, with a model of our own and no login."""

from fairwitness.contracts.agents.dispatch import EnforcementTier
from fairwitness.contracts.agents.model import Dialect
from fairwitness.contracts.agents.profile import AgentProfile, HomeFile, Quirks, RoleKind, UsageFrom, UsageWay
from fairwitness.contracts.common.tools import Tool

_SETTINGS = """\
{"disableAllHooks": true, "enabledPlugins": {}, "enableMemory": false, "ide": {"autoConnect": false}}
"""
_ONLY = ("--available-tools", "{tools}")

PROFILE = AgentProfile(
    name="copilot",
    title="GitHub Copilot CLI",
    program="copilot",
    args=("--acp", "--no-auto-update", "--disable-builtin-mcps"),
    role_args={RoleKind.BUILD: _ONLY, RoleKind.READ: _ONLY},
    package="@github/copilot",
    install="npm install -g @github/copilot",
    node=22,
    tested=("1.0.102",),
    dialect=Dialect.OPENAI_CHAT,
    env={
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_BASE_URL": "{url}/v1",
        "COPILOT_PROVIDER_API_KEY": "{token}",
        "COPILOT_MODEL": "{model}",
        "COPILOT_HOME": "{home}/.copilot",
        "COPILOT_ALLOW_ALL": "false",
    },
    quiet={"COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false", "COPILOT_PLUGIN_DIR_ONLY": "true"},
    files=(HomeFile(path=".copilot/settings.json", text=_SETTINGS),),
    # the title of a call is what its model says about it
    names=(),
    tools={
        "view": Tool.READ_FILE,
        "glob": Tool.FILE_SEARCH,
        "grep": Tool.GREP_SEARCH,
        "create": Tool.CREATE_FILE,
        "edit": Tool.REPLACE_STRING,
        "bash": Tool.RUN_IN_TERMINAL,
        "read_bash": Tool.TERMINAL_OUTPUT,
    },
    carried=(".github/hooks", ".github/copilot/settings.json", ".github/mcp.json", ".mcp.json"),
    quirks=Quirks(turn_ends_on_refusal=True),
    usage=UsageWay(found=UsageFrom.RESPONSE),
    tier=EnforcementTier.C,
    starts_in_ms=770,
)
