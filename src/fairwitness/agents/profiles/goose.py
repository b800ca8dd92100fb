"""Goose: it sends every file it writes and every command it runs to us."""

from fairwitness.contracts.agents.dispatch import EnforcementTier
from fairwitness.contracts.agents.model import Dialect
from fairwitness.contracts.agents.profile import AgentProfile, HomeFile, Quirks, RoleKind, UsageFrom, UsageWay
from fairwitness.contracts.common.tools import Tool

PROFILE = AgentProfile(
    name="goose",
    title="Goose",
    program="goose",
    args=("acp",),
    package="@aaif/goose",
    install="npm install -g @aaif/goose",
    tested=("1.34.0",),
    dialect=Dialect.OPENAI_CHAT,
    env={
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": "{model}",
        "GOOSE_MODE": "approve",
        "GOOSE_DISABLE_KEYRING": "1",
        "OPENAI_HOST": "{url}",
        "OPENAI_BASE_PATH": "v1/chat/completions",
        "OPENAI_API_KEY": "{token}",
    },
    files=(HomeFile(path=".config/goose/config.yaml", text="GOOSE_TELEMETRY_ENABLED: false\n"),),
    modes={RoleKind.BUILD: "approve", RoleKind.READ: "approve"},
    # titles are no names: a second call of the model writes them
    names=("_meta.goose.toolCall.toolName",),
    tools={
        "read": Tool.READ_FILE,
        "tree": Tool.LIST_DIR,
        "write": Tool.CREATE_FILE,
        "edit": Tool.REPLACE_STRING,
        "shell": Tool.RUN_IN_TERMINAL,
    },
    bare_path=Tool.READ_FILE,
    submit=True,
    submit_names=("fairwitness__submit_result",),
    quirks=Quirks(ignores_cancel=True),
    usage=UsageWay(found=UsageFrom.RESPONSE, last_call_only=True),
    tier=EnforcementTier.B,
    starts_in_ms=100,
)
