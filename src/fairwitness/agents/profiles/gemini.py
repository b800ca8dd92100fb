"""Gemini's command line."""

from fairwitness.contracts.agents.dispatch import EnforcementTier
from fairwitness.contracts.agents.model import Dialect
from fairwitness.contracts.agents.profile import AgentProfile, HomeFile, Quirks, RoleKind, UsageFrom, UsageWay
from fairwitness.contracts.common.tools import Tool

_SETTINGS = """\
{
  "general": {"disableAutoUpdate": true},
  "model": {"name": "{model}"},
  "privacy": {"usageStatisticsEnabled": false},
  "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": true}},
  "tools": {
    "core": {tools_json},
    "confirmationRequired": ["write_file", "replace", "run_shell_command"]
  }
}
"""
"""Trust is wanted and never given, so what the repository says about its tools and hooks does not count.

To be among the `core` tools is to be allowed without a question, so it is told which of them to ask about all the same.
"""

PROFILE = AgentProfile(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    args=("--acp",),
    package="@google/gemini-cli",
    install="npm install -g @google/gemini-cli",
    node=20,
    tested=("0.61.0",),
    dialect=Dialect.GEMINI,
    env={"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "{token}", "GEMINI_MODEL": "{model}"},
    files=(HomeFile(path=".gemini/settings.json", text=_SETTINGS),),
    modes={RoleKind.BUILD: "default", RoleKind.READ: "default"},
    authenticate="gemini-api-key",
    tools={
        "read_file": Tool.READ_FILE,
        "read_many_files": Tool.READ_FILE,
        "list_directory": Tool.LIST_DIR,
        "glob": Tool.FILE_SEARCH,
        "grep_search": Tool.GREP_SEARCH,
        "search_file_content": Tool.GREP_SEARCH,
        "write_file": Tool.CREATE_FILE,
        "replace": Tool.REPLACE_STRING,
        "run_shell_command": Tool.RUN_IN_TERMINAL,
    },
    # where the folder is not trusted, it starts no tool server either
    submit=False,
    carried=(".gemini/settings.json", ".gemini/extensions", ".gemini/.env"),
    carried_off=True,
    quirks=Quirks(missing_file_as_empty=True, command_in_title=True),
    usage=UsageWay(found=UsageFrom.QUOTA),
    tier=EnforcementTier.C,
    starts_in_ms=4130,
)
