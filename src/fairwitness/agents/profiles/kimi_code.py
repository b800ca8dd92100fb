"""Kimi Code: it sends every file it writes and every command it runs to us."""

from fairwitness.contracts.agents.dispatch import EnforcementTier
from fairwitness.contracts.agents.model import Dialect
from fairwitness.contracts.agents.profile import AgentProfile, HomeFile, UsageFrom, UsageWay
from fairwitness.contracts.common.tools import Tool

_CONFIG = """\
default_model = "fairwitness"
default_permission_mode = "manual"
telemetry = false

[providers.fairwitness]
type = "openai"
base_url = "{url}/v1"
api_key = "{token}"

[models.fairwitness]
provider = "fairwitness"
model = "{model}"
max_context_size = 200000
"""

PROFILE = AgentProfile(
    name="kimi-code",
    title="Kimi Code",
    program="kimi",
    args=("acp",),
    package="@moonshot-ai/kimi-code",
    install="npm install -g @moonshot-ai/kimi-code",
    node=22,
    tested=("2.1.0",),
    dialect=Dialect.OPENAI_CHAT,
    env={"KIMI_CODE_HOME": "{home}/.kimi-code"},
    files=(HomeFile(path=".kimi-code/config.toml", text=_CONFIG),),
    names=("title",),
    tools={
        "Read": Tool.READ_FILE,
        "Glob": Tool.FILE_SEARCH,
        "Grep": Tool.GREP_SEARCH,
        "Write": Tool.CREATE_FILE,
        "Edit": Tool.REPLACE_STRING,
        "Bash": Tool.RUN_IN_TERMINAL,
    },
    submit=True,
    submit_names=("mcp__fairwitness__submit_result", "submit_result"),
    carried=(".kimi-code",),
    usage=UsageWay(found=UsageFrom.NOWHERE),
    tier=EnforcementTier.B,
    starts_in_ms=2620,
)
