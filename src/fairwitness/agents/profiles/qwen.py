"""Qwen Code."""

from fairwitness.contracts.agents.dispatch import EnforcementTier
from fairwitness.contracts.agents.model import Dialect
from fairwitness.contracts.agents.profile import AgentProfile, HomeFile, RoleKind, UsageFrom, UsageWay
from fairwitness.contracts.common.tools import Tool

_SETTINGS = """\
{
  "general": {"disableAutoUpdate": true},
  "privacy": {"usageStatisticsEnabled": false},
  "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": true}},
  "tools": {"core": {tools_json}}
}
"""

PROFILE = AgentProfile(
    name="qwen",
    title="Qwen Code",
    program="qwen",
    args=("--acp", "--auth-type", "openai"),
    package="@qwen-code/qwen-code",
    install="npm install -g @qwen-code/qwen-code",
    node=20,
    tested=("0.15.10",),
    dialect=Dialect.OPENAI_CHAT,
    env={"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "{token}", "OPENAI_MODEL": "{model}"},
    files=(HomeFile(path=".qwen/settings.json", text=_SETTINGS),),
    modes={RoleKind.BUILD: "default", RoleKind.READ: "default"},
    tools={
        "read_file": Tool.READ_FILE,
        "list_directory": Tool.LIST_DIR,
        "glob": Tool.FILE_SEARCH,
        "grep_search": Tool.GREP_SEARCH,
        "write_file": Tool.CREATE_FILE,
        "edit": Tool.REPLACE_STRING,
        "run_shell_command": Tool.RUN_IN_TERMINAL,
    },
    carried=(".qwen",),
    usage=UsageWay(found=UsageFrom.NOWHERE),
    tier=EnforcementTier.C,
    starts_in_ms=3210,
)
