"""One call of an agent: what it is told, what happened, what it cost, and what came of it.

An outcome is what the driver saw and validated; nothing an agent says about itself decides its status.
"""

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from fairwitness.contracts.common.base import Contract, Count, Flag, Maybe, Positive, Prose, Text, Texts
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.ids import RelPath, RunId, SafeName
from fairwitness.contracts.common.sandbox import Seconds
from fairwitness.contracts.common.tools import Role, Scope


class EnforcementTier(StrEnum):
    """Who makes a role's limits hold, as measured by the conformance set; the weaker ones need the outer sandbox."""

    A = "A"
    """All tools are ours."""
    B = "B"
    """It sends every write and every command to us."""
    C = "C"
    """It asks, and then acts by itself."""
    D = "D"
    """It acts unasked."""


class OutcomeStatus(StrEnum):
    """How a dispatch can end."""

    OK = "ok"
    INVALID_ANSWER = "invalid_answer"
    REFUSED = "refused"
    """It broke its role's limits, or the dispatch itself was not allowed: whatever it answered is void."""
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    OVER_BUDGET = "over_budget"
    AGENT_ERROR = "agent_error"


class UsageSource(StrEnum):
    """Who counted; the nearer to the model, the better."""

    GATEWAY = "gateway"
    PROVIDER = "provider"
    AGENT = "agent"
    CASSETTE = "cassette"
    NOT_REPORTED = "not reported"


class Usage(Contract):
    """What a dispatch used, as far as anybody said; None is "not reported", never zero."""

    source: UsageSource = UsageSource.NOT_REPORTED
    tokens_in: Count | None = None
    """Everything that was sent, what came from a cache included."""
    tokens_out: Count | None = None
    tokens_cached: Count | None = None
    cost_micros: Count | None = None
    """Millionths of a dollar; None where nobody knows the price."""
    turns: Count | None = None

    @property
    def tokens(self) -> int | None:
        """Everything that was sent and said; None if either is unknown."""
        if self.tokens_in is None or self.tokens_out is None:
            return None
        return self.tokens_in + self.tokens_out


class Layer(StrEnum):
    """Which of the four layers said no."""

    SANDBOX = "sandbox"
    VISIBILITY = "visibility"
    DECISION = "decision"
    AUDIT = "audit"


class Denial(Contract):
    """Something an agent asked for, or did, that its role may not."""

    layer: Layer
    tool: Text
    """The tool as Fair Witness names it, or as the agent did where nothing is known by that name."""
    target: Prose
    """The path, the command or the statement."""
    reason: Text


class DispatchLimits(Contract):
    """How far one dispatch may go."""

    wall_s: Seconds
    turns: Positive
    tokens: Maybe[Positive] = None
    cost_micros: Maybe[Positive] = None


class PromptSection(Contract):
    """One input, shown to the agent as data and never as an instruction."""

    title: Text
    text: Prose


class Brief(Contract):
    """What one dispatch is about."""

    dispatch_id: SafeName
    run_id: RunId
    role: Role
    instance: Text
    """`researcher-architecture`, `security-sentinel`, `task-03`: which of several like it."""
    task: Text
    """What is to be done, in our words."""
    parameters: dict[str, str] = Field(default_factory=dict)
    inputs: tuple[PromptSection, ...] = ()
    scope: Scope = Scope()
    known: dict[str, Any] = Field(default_factory=dict)
    """Fields of the answer that the harness fills in by itself, by their dotted way: header, times, ids."""


class Kind(StrEnum):
    """What can happen in a session."""

    PROMPT = "prompt"
    TEXT = "text"
    THOUGHT = "thought"
    CALL = "call"
    RESULT = "result"
    DENIED = "denied"
    USAGE = "usage"
    NOTE = "note"


class Happening(Contract):
    """One thing that happened in a session; the transcript is a list of these."""

    kind: Kind
    ms: Count
    """Since the dispatch began."""
    text: Prose = ""
    tool: Maybe[Text] = None
    call: Maybe[Text] = None
    """Binds a result to its call."""
    args: Maybe[dict[str, Any]] = None
    ok: Maybe[Flag] = None
    """Of a result: whether the tool did what it was asked for."""


class Stop(StrEnum):
    """Why a turn of an agent ended."""

    DONE = "done"
    REFUSED = "refused"
    """The agent, or its model, would not go on."""
    LIMIT = "limit"
    """A limit that is ours, of turns, tokens or money."""
    CANCELLED = "cancelled"
    FAILED = "failed"


class DispatchOutcome(Contract):
    """What came of a dispatch. The answer is there only if it was validated."""

    status: OutcomeStatus
    answer: Maybe[dict[str, Any]] = None
    raw_text: Prose
    """The last words of the agent, whatever they were."""
    problems: Texts = ()
    """What is wrong with the last answer, or why there is none."""
    asked: Count
    """How often the agent was asked: once, or twice when the first answer was no good."""
    usage: Usage
    denials: tuple[Denial, ...] = ()
    cause: Maybe[ErrorCause] = None
    """For the retry rule; None if it went well, or was cancelled."""
    model: Maybe[Text] = None
    """The model that answered, as far as anybody said."""
    duration_ms: Count


class Probe(Contract):
    """What is known of a backend before it is used."""

    name: Text
    kind: Literal["cassette", "api", "acp"]
    found: Flag
    version: Maybe[Text] = None
    tier: EnforcementTier
    where: Maybe[Text] = None
    """The program, where there is one."""
    missing: Texts = ()
    """What has to be there before it can be used: a program, a package, a key."""
    next_step: Prose = ""


class PathChangeKind(StrEnum):
    """What an agent did to a path of its worktree."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


class ChangedPath(Contract):
    """One path that is not as it was when the dispatch began; seen by us, in git."""

    path: RelPath
    change: PathChangeKind
    allowed: Flag
