"""A recorded agent session: one header line, then one line for each turn of the model.

Only the model's turns are recorded. Tools run for real in a real worktree, so the recording holds only a digest of the
results that the model saw: a replay that produces other results has diverged.
"""

from typing import Any, Literal

from fairwitness.contracts.common.base import Contract, Count, Flag, Maybe, Prose, Text
from fairwitness.contracts.common.ids import Sha256
from fairwitness.contracts.common.tools import Role

FORMAT = 1


class CassetteHeader(Contract):
    """The first line of a cassette."""

    cassette: Literal[1]
    role: Role
    instance: Text
    model: Text
    """The model or agent whose turns are recorded."""
    prompt: Sha256
    """The digest of the first prompt; a replay with another prompt reports the difference and goes on."""
    answer: Maybe[Text] = None
    """The contract of its answer."""
    schema_digest: Maybe[Sha256] = None


class CassetteCall(Contract):
    """A tool that the model asked for; `{root}` stands for the worktree."""

    tool: Text
    args: dict[str, Any]
    ok: Maybe[Flag] = None
    """Whether the tool succeeded when the session was recorded; None if that was not recorded."""


class CassetteTurn(Contract):
    """One turn of the model: its text, its tool calls and its answer."""

    turn: Count
    text: Prose = ""
    calls: tuple[CassetteCall, ...] = ()
    submitted: Maybe[dict[str, Any]] = None
    """An answer given through the answer tool instead of as text."""
    usage: tuple[Count, Count]
    """Tokens in and out."""
    ms: Count
    """How long the model took."""
    seen: Sha256 | None
    """The digest of every tool result that the model saw since its last turn, normalized so that it is the same on
    every machine and on every day; null if it was not recorded.

    Prompts are not part of the digest: their wording changes with every release, and the header holds the digest of the
    first one. The digest of turn 0 is therefore always that of empty input.
    """
