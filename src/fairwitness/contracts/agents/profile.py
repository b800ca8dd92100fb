"""An external agent as data: how it is found, started, kept quiet, kept to its role, and understood.

Texts of a profile may hold placeholders, which are filled in for one dispatch: `{url}`, `{token}`, `{model}`, `{home}`,
`{tmp}`, `{worktree}`, and the tools of the role by the agent's own names: `{tools}` (with commas; alone in an argument
or in the meta of a session, each by itself), `{tools_json}` (a JSON list), `{hidden_json}` (a JSON object that says
false for each tool the role does not have). Behaviour changes between releases: what is said here was measured with
the versions named, and the conformance set says whether it still holds.
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
    """The two kinds of role that an agent is set up for."""

    BUILD = "build"
    """It changes the files that its task declared."""
    READ = "read"
    """It changes no file of the project."""


class HomeFile(Contract):
    """A file below the private home; its text may hold placeholders."""

    path: RelPath
    text: Prose


class UsageFrom(StrEnum):
    """Where an agent says how many tokens it used."""

    RESPONSE = "response"
    QUOTA = "quota"
    """In `_meta.quota` of the answer."""
    NOWHERE = "nowhere"


class UsageWay(Contract):
    """How an agent's own count is to be read."""

    found: UsageFrom
    is_of_session: Flag = False
    """Whether its numbers are of the whole session, and not of the last turn."""
    last_call_only: Flag = False
    """Whether it counts only the last call of the model: no total, so it is not taken for one."""
    cost: Flag = False
    """Whether its updates tell what the session has cost."""


class Quirks(Contract):
    """What has to be known to get along with it."""

    missing_file_as_empty: Flag = False
    """It cannot make a new file unless reading it before gives nothing instead of an error."""
    turn_ends_on_refusal: Flag = False
    """A call that was refused ends its turn without an answer."""
    command_in_title: Flag = False
    """Of a command it tells nothing but the title, which is the command itself."""
    ignores_cancel: Flag = False
    """It does not answer when it is asked to stop, so nobody waits for it."""


class AgentLimits(Contract):
    """What the agent's own process may use, beyond what a dispatch says."""

    memory: Positive = 4 << 30
    memory_process: Positive = 8 << 30
    """Virtual machines reserve far more than they use."""
    processes: Positive = 512
    open_files: Positive = 4096
    start_s: Seconds = 90
    """It must be ready to be asked by then."""


class AgentProfile(Contract):
    """One agent that speaks the Agent Client Protocol."""

    name: Slug
    title: OneLine
    program: Text
    """As it is found on the path."""
    args: Texts = ()
    role_args: dict[RoleKind, Texts] = Field(default_factory=dict)
    """Arguments that only one kind of role gets."""
    package: Text
    install: Text
    """What a person types to get it."""
    node: Maybe[Positive] = None
    """The oldest Node.js that will do, for agents that need one."""
    version_args: Texts = ("--version",)
    """What makes it say its version; empty if nothing does."""
    tested: Annotated[Texts, Field(min_length=1)]
    dialect: ApiDialect
    env: dict[str, Prose]
    quiet: dict[str, Prose] = Field(default_factory=dict)
    """Variables that keep it from calling anybody but its model."""
    files: tuple[HomeFile, ...] = ()
    modes: dict[RoleKind, Text] = Field(default_factory=dict)
    """The session mode to set; a kind that is not named keeps the agent's own."""
    meta: dict[RoleKind, dict[str, Any]] = Field(default_factory=dict)
    """`_meta` of `session/new`."""
    authenticate: Maybe[Text] = None
    """The method to authenticate with before a session can be had."""
    names: Texts = ("title",)
    """Where a call says the name of its tool, by dotted ways into it; the first that names a known tool counts."""
    tools: dict[Text, Tool]
    """The agent's tools by its own names, and what each is to us. A tool that is not here is refused."""
    bare_path: Maybe[Tool] = None
    """What a call is that tells no name of a tool and nothing but a path; None if that could be anything."""
    submit: Flag = False
    """Whether a tool server that is passed along works, so that an answer can be handed in."""
    submit_names: Texts = ()
    """What it calls the tool for handing in an answer when it asks about it."""
    repo_settings: Texts = ()
    """Files and folders of a repository from which it would take settings, hooks or servers."""
    ignores_repo_settings: Flag = False
    """Whether its configuration here makes it ignore them."""
    quirks: Quirks = Quirks()
    usage: UsageWay
    tier: EnforcementTier
    limits: AgentLimits = AgentLimits()
    starts_in_ms: Count = 0
    """About how long it takes until it can be asked, as measured."""

    @model_validator(mode="after")
    def _holds_no_secret_in_the_open(self) -> Self:
        words = (*self.args, *(word for words in self.role_args.values() for word in words), *self.version_args)
        shown = [word for word in words if "{token}" in word]
        refusals = [
            FieldRefusal(("args",), "no token on a command line, where everybody can read it", word) for word in shown
        ]
        refuse_if_any("AgentProfile", refusals)
        return self
