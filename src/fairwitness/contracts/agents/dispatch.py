"""One call of an agent (a dispatch): its brief, its limits, what happened, what it used and its outcome.

An outcome holds what Fair Witness observed and validated; what an agent says about itself does not decide its status.
"""

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from fairwitness.contracts.common.base import Contract, Count, Flag, Maybe, Positive, Prose, Text, Texts
from fairwitness.contracts.common.budgets import OverBudget
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.ids import RelPath, RunId, SafeName
from fairwitness.contracts.common.sandbox import Seconds
from fairwitness.contracts.common.tools import Role, Scope


class EnforcementTier(StrEnum):
    """Who enforces a role's limits, as measured by the conformance tests; the weaker tiers need the outer sandbox."""

    A = "A"
    """Fair Witness provides and runs all tools."""
    B = "B"
    """The agent sends every write and every command to Fair Witness."""
    C = "C"
    """The agent asks for permission and then acts by itself."""
    D = "D"
    """The agent acts without asking for permission."""


class OutcomeStatus(StrEnum):
    """How a dispatch can end."""

    OK = "ok"
    INVALID_ANSWER = "invalid_answer"
    REFUSED = "refused"
    """The agent broke its role's limits, or the dispatch was not allowed; its answer is discarded."""
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    OVER_BUDGET = "over_budget"
    AGENT_ERROR = "agent_error"


class UsageSource(StrEnum):
    """Who counted the tokens; a source nearer to the model is more reliable."""

    GATEWAY = "gateway"
    PROVIDER = "provider"
    AGENT = "agent"
    CASSETTE = "cassette"
    NOT_REPORTED = "not reported"


class Usage(Contract):
    """What a dispatch used; None means "not reported", never zero."""

    source: UsageSource = UsageSource.NOT_REPORTED
    tokens_in: Count | None = None
    """Input tokens, including those read from a cache."""
    tokens_out: Count | None = None
    tokens_cached: Count | None = None
    cost_micros: Count | None = None
    """Millionths of a US dollar; None if the price is unknown."""
    turns: Count | None = None

    @property
    def tokens(self) -> int | None:
        """Return input plus output tokens, or None if either is unknown."""
        if self.tokens_in is None or self.tokens_out is None:
            return None
        return self.tokens_in + self.tokens_out


class Layer(StrEnum):
    """Which of the four enforcement layers denied the action."""

    SANDBOX = "sandbox"
    VISIBILITY = "visibility"
    DECISION = "decision"
    AUDIT = "audit"


class Denial(Contract):
    """An action that an agent requested or took and that its role does not allow."""

    layer: Layer
    tool: Text
    """The tool's name in Fair Witness, or the agent's own name for a tool that is unknown here."""
    target: Prose
    """The path, command or statement that the action was about."""
    reason: Text


class DispatchLimits(Contract):
    """The limits of one dispatch: time, turns, tokens and cost."""

    wall_s: Seconds
    turns: Positive
    tokens: Maybe[Positive] = None
    cost_micros: Maybe[Positive] = None


class PromptSection(Contract):
    """One input document in a prompt; the agent is told to read it as data, not as instructions."""

    title: Text
    text: Prose


class Brief(Contract):
    """The assignment of one dispatch: role, task, inputs and the contract of its answer."""

    dispatch_id: SafeName
    run_id: RunId
    role: Role
    instance: Text
    """Which of several calls of a role this is: `researcher-architecture`, `security-sentinel`, `task-03`."""
    task: Text
    """What the agent is asked to do."""
    parameters: dict[str, str] = Field(default_factory=dict)
    inputs: tuple[PromptSection, ...] = ()
    scope: Scope = Scope()
    known: dict[str, Any] = Field(default_factory=dict)
    """Fields of the answer that Fair Witness fills in (header, times, ids), by their dotted path."""


class Kind(StrEnum):
    """The kinds of entries in a session transcript."""

    PROMPT = "prompt"
    TEXT = "text"
    THOUGHT = "thought"
    CALL = "call"
    RESULT = "result"
    DENIED = "denied"
    USAGE = "usage"
    NOTE = "note"


class Happening(Contract):
    """One entry of a session transcript."""

    kind: Kind
    ms: Count
    """Milliseconds since the dispatch began."""
    text: Prose = ""
    tool: Maybe[Text] = None
    call: Maybe[Text] = None
    """The id of the call that a result belongs to."""
    args: Maybe[dict[str, Any]] = None
    ok: Maybe[Flag] = None
    """For a result: whether the tool succeeded."""


class Stop(StrEnum):
    """Why a turn of an agent ended."""

    DONE = "done"
    REFUSED = "refused"
    """The agent or its model refused to continue."""
    LIMIT = "limit"
    """A limit of Fair Witness was reached: turns, tokens or cost."""
    CANCELLED = "cancelled"
    FAILED = "failed"


class DispatchOutcome(Contract):
    """The result of a dispatch. It holds an answer only if the answer was validated."""

    status: OutcomeStatus
    answer: Maybe[dict[str, Any]] = None
    raw_text: Prose
    """The agent's last text output."""
    problems: Texts = ()
    """The problems of the last answer, or why there is no answer."""
    refused: Maybe[OverBudget] = None
    """The refused reservation of a dispatch that never started."""
    asked: Count
    """How many times the agent was prompted: once, or twice if its first answer was invalid."""
    usage: Usage
    denials: tuple[Denial, ...] = ()
    cause: Maybe[ErrorCause] = None
    """The cause of the failure, which decides about a retry; None after a success or a cancellation."""
    model: Maybe[Text] = None
    """The model that answered, if it was reported."""
    opened: Maybe[Count] = None
    """How many calls showed the agent something of the repository, as far as they could be seen; None if it was not
    counted."""
    duration_ms: Count


class Probe(Contract):
    """The result of probing an agent backend before it is used."""

    name: Text
    kind: Literal["cassette", "api", "acp"]
    found: Flag
    version: Maybe[Text] = None
    tier: EnforcementTier
    where: Maybe[Text] = None
    """The path of the agent's program, if the backend has one."""
    missing: Texts = ()
    """What must be installed or configured before the backend can be used: a program, a package, a key."""
    next_step: Prose = ""


class PathChangeKind(StrEnum):
    """How a dispatch changed a path of its worktree."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


class ChangedPath(Contract):
    """One path that a dispatch changed, as git shows it."""

    path: RelPath
    change: PathChangeKind
    allowed: Flag
