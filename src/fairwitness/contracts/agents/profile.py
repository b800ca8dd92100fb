"""The profile of an external agent: how it is found, started, isolated, held to its role and understood.

Texts of a profile may hold placeholders, which are filled in for each dispatch: `{url}`, `{token}`, `{model}`,
`{home}`, `{tmp}`, `{worktree}`, and the tools of the role by the agent's own names: `{tools}` (separated by commas;
alone in an argument or in the meta of a session, one entry for each tool), `{tools_json}` (a JSON list),
`{hidden_json}` (a JSON object with false for each tool that the role does not have).

Agents change between releases: a profile describes the versions that it names, and the conformance tests show whether
it still holds.
"""

from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from fairwitness.contracts.agents.dispatch import EnforcementTier
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.contracts.common.base import Contract, Count, Flag, Maybe, OneLine, Positive, Prose, Text, Texts
from fairwitness.contracts.common.ids import RelPath, Slug
from fairwitness.contracts.common.problems import FieldRefusal, refuse_if_any
from fairwitness.contracts.common.sandbox import Seconds
from fairwitness.contracts.common.tools import Tool

PLACEHOLDERS = ("url", "token", "model", "home", "tmp", "worktree", "tools", "tools_json", "hidden_json")


class RoleKind(StrEnum):
    """The two kinds of role that an agent can be configured for."""

    BUILD = "build"
    """The role changes the files that its task declared."""
    READ = "read"
    """The role changes no file of the project."""


class HomeFile(Contract):
    """A file to create in the agent's private home directory; its text may hold placeholders."""

    path: RelPath
    text: Prose


class UsageFrom(StrEnum):
    """Where an agent reports how many tokens it used."""

    RESPONSE = "response"
    QUOTA = "quota"
    """In `_meta.quota` of the answer."""
    NOWHERE = "nowhere"


class UsageWay(Contract):
    """How the agent's own token count is read."""

    found: UsageFrom
    is_of_session: Flag = False
    """Whether the numbers cover the whole session instead of the last turn."""
    last_call_only: Flag = False
    """Whether it counts only the last call of the model, so that the number is not used as a total."""
    cost: Flag = False
    """Whether its updates report the cost of the session."""


class Quirks(Contract):
    """Deviations of the agent that Fair Witness works around."""

    missing_file_as_empty: Flag = False
    """The agent can create a file only if reading the missing file returns empty text instead of an error."""
    turn_ends_on_refusal: Flag = False
    """A refused tool call ends its turn without an answer."""
    command_in_title: Flag = False
    """A command is reported only in the title of its call."""
    ignores_cancel: Flag = False
    """It does not respond to a cancellation, so Fair Witness does not wait for it."""


class AgentLimits(Contract):
    """Resource limits of the agent's own process, in addition to those of a dispatch."""

    memory: Positive = 4 << 30
    memory_process: Positive = 8 << 30
    """Per process; language runtimes reserve far more memory than they use."""
    processes: Positive = 512
    open_files: Positive = 4096
    start_s: Seconds = 90
    """Seconds until it must be ready for a prompt."""


class AgentProfile(Contract):
    """One agent that speaks the Agent Client Protocol."""

    name: Slug
    title: OneLine
    program: Text
    """The program's name on the PATH."""
    args: Texts = ()
    role_args: dict[RoleKind, Texts] = Field(default_factory=dict)
    """Arguments that only one kind of role gets."""
    package: Text
    install: Text
    """The command that installs it."""
    node: Maybe[Positive] = None
    """The minimum Node.js version, for agents that need Node.js."""
    version_args: Texts = ("--version",)
    """The arguments that print its version; empty if there are none."""
    tested: Annotated[Texts, Field(min_length=1)]
    dialect: ApiDialect
    env: dict[str, Prose]
    quiet: dict[str, Prose] = Field(default_factory=dict)
    """Environment variables that keep it from contacting any server except its model's."""
    files: tuple[HomeFile, ...] = ()
    modes: dict[RoleKind, Text] = Field(default_factory=dict)
    """The session mode to set; a kind that is not named keeps the agent's own."""
    meta: dict[RoleKind, dict[str, Any]] = Field(default_factory=dict)
    """`_meta` of `session/new`."""
    authenticate: Maybe[Text] = None
    """The authentication method that it requires before a session."""
    names: Texts = ("title",)
    """Dotted paths to the tool's name in a call; the first that yields a known tool is used."""
    tools: dict[Text, Tool]
    """The agent's tools by its own names, each mapped to a tool of Fair Witness. A tool that is not listed is refused.
    """
    bare_path: Maybe[Tool] = None
    """The tool to assume for a call that names no tool and only a path; None if that is ambiguous."""
    submit: Flag = False
    """Whether it can use the MCP server that offers the answer tool."""
    submit_names: Texts = ()
    """The names that it uses for the answer tool in permission requests."""
    repo_settings: Texts = ()
    """Files and folders of a repository from which it would read settings, hooks or servers."""
    ignores_repo_settings: Flag = False
    """Whether this profile's configuration makes it ignore them."""
    quirks: Quirks = Quirks()
    usage: UsageWay
    tier: EnforcementTier
    limits: AgentLimits = AgentLimits()
    starts_in_ms: Count = 0
    """Measured start-up time in milliseconds."""

    @model_validator(mode="after")
    def _holds_no_secret_in_the_open(self) -> Self:
        words = (*self.args, *(word for words in self.role_args.values() for word in words), *self.version_args)
        shown = [word for word in words if "{token}" in word]
        refusals = [
            FieldRefusal(("args",), "no token on a command line, where everybody can read it", word) for word in shown
        ]
        refuse_if_any("AgentProfile", refusals)
        return self
