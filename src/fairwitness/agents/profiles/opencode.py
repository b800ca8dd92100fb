"""OpenCode: left to itself it asks nobody, so it is told to ask; once it may, it acts without us."""

from fairwitness.contracts.agents.dispatch import EnforcementTier
from fairwitness.contracts.agents.model import Dialect
from fairwitness.contracts.agents.profile import AgentProfile, Quirks, UsageFrom, UsageWay
from fairwitness.contracts.common.tools import Tool

_CONFIG = (
    '{"model": "fairwitness/{model}", "small_model": "fairwitness/{model}", "autoupdate": false, "share": "disabled",'
    ' "permission": {"edit": "ask", "bash": "ask", "external_directory": "ask", "webfetch": "deny"},'
    ' "agent": {"build": {"tools": {hidden_json}}},'
    ' "provider": {"fairwitness": {"npm": "@ai-sdk/openai-compatible", "name": "fairwitness",'
    ' "options": {"baseURL": "{url}/v1", "apiKey": "{token}"}, "models": {"{model}": {"name": "{model}"}}}}}'
)
"""What the role does not have is taken from the agent that works: for all agents, `permission` would outweigh it."""

PROFILE = AgentProfile(
    name="opencode",
    title="OpenCode",
    program="opencode",
    args=("acp",),
    package="opencode-ai",
    install="npm install -g opencode-ai",
    tested=("1.18.33",),
    dialect=Dialect.OPENAI_CHAT,
    env={"OPENCODE_CONFIG_CONTENT": _CONFIG},
    quiet={
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
    },
    names=("title",),
    tools={
        "read": Tool.READ_FILE,
        "list": Tool.LIST_DIR,
        "glob": Tool.FILE_SEARCH,
        "grep": Tool.GREP_SEARCH,
        "write": Tool.CREATE_FILE,
        "edit": Tool.REPLACE_STRING,
        "apply_patch": Tool.REPLACE_STRING,
        "bash": Tool.RUN_IN_TERMINAL,
    },
    submit=True,
    submit_names=("fairwitness_submit_result",),
    carried=("opencode.json", "opencode.jsonc", ".opencode"),
    quirks=Quirks(turn_ends_on_refusal=True),
    usage=UsageWay(found=UsageFrom.RESPONSE, last_call_only=True, cost=True),
    tier=EnforcementTier.C,
    starts_in_ms=5950,
)
