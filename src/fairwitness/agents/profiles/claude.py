"""Claude Code, through the adapter that holds its own copy of it."""

from fairwitness.contracts.agents.dispatch import EnforcementTier
from fairwitness.contracts.agents.model import Dialect
from fairwitness.contracts.agents.profile import AgentProfile, RoleKind, UsageFrom, UsageWay
from fairwitness.contracts.common.tools import Tool

_META = {"claudeCode": {"options": {"settingSources": ["user"], "tools": "{tools}"}}}
"""Settings come from the private home alone, never from the repository; only the tools of the role are there."""

PROFILE = AgentProfile(
    name="claude",
    title="Claude Code",
    program="claude-agent-acp",
    package="@agentclientprotocol/claude-agent-acp",
    install="npm install -g @agentclientprotocol/claude-agent-acp",
    node=22,
    version_args=(),
    tested=("0.99.0",),
    dialect=Dialect.ANTHROPIC,
    env={
        "ANTHROPIC_BASE_URL": "{url}",
        "ANTHROPIC_API_KEY": "{token}",
        "ANTHROPIC_MODEL": "{model}",
        "ANTHROPIC_SMALL_FAST_MODEL": "{model}",
        "CLAUDE_CONFIG_DIR": "{home}/.claude",
    },
    quiet={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"},
    modes={RoleKind.BUILD: "default", RoleKind.READ: "default"},
    meta={RoleKind.BUILD: _META, RoleKind.READ: _META},
    names=("_meta.claudeCode.toolName",),
    tools={
        "Read": Tool.READ_FILE,
        "LS": Tool.LIST_DIR,
        "Glob": Tool.FILE_SEARCH,
        "Grep": Tool.GREP_SEARCH,
        "Write": Tool.CREATE_FILE,
        "Edit": Tool.REPLACE_STRING,
        "MultiEdit": Tool.MULTI_REPLACE,
        "Bash": Tool.RUN_IN_TERMINAL,
        "BashOutput": Tool.TERMINAL_OUTPUT,
    },
    submit=True,
    submit_names=("mcp__fairwitness__submit_result",),
    carried=(".claude/settings.json", ".claude/settings.local.json", ".mcp.json"),
    carried_off=True,
    usage=UsageWay(found=UsageFrom.RESPONSE, cost=True),
    tier=EnforcementTier.C,
    starts_in_ms=1350,
)
