"""A recorded session: one header, then one line for each turn of the model.

Only the model is canned. Tools run for real in a real worktree, so what is recorded of them is a digest of what the
model saw: a replay that shows it something else has diverged.
"""

from typing import Any, Literal

from fairwitness.contracts.common.base import Contract, Count, Flag, Maybe, Prose, Text
from fairwitness.contracts.common.ids import Sha256
from fairwitness.contracts.common.tools import Role

FORMAT = 1


class CassetteHeader(Contract):
    """The first line."""

    cassette: Literal[1]
    role: Role
    instance: Text
    model: Text
    """The model, or the agent, whose turns these are."""
    prompt: Sha256
    """Of what it was asked first; another prompt is reported, and does not stop a replay."""
    answer: Maybe[Text] = None
    """The contract of its answer."""
    schema_digest: Maybe[Sha256] = None


class CassetteCall(Contract):
    """A tool that the model asked for; `{root}` stands for the worktree."""

    tool: Text
    args: dict[str, Any]
    ok: Maybe[Flag] = None
    """Whether it did what it was asked for when this was recorded; None where nobody looked."""


class CassetteTurn(Contract):
    """One turn."""

    turn: Count
    text: Prose = ""
    calls: tuple[CassetteCall, ...] = ()
    submitted: Maybe[dict[str, Any]] = None
    """An answer handed in by a tool instead of being written as text."""
    usage: tuple[Count, Count]
    """Tokens in and out."""
    ms: Count
    """How long the model took."""
    seen: Sha256 | None
    """Of every result the model was shown since its last turn, made the same for every machine and every day; null
    where nobody looked. Prompts are no part of it, neither the first nor a second one: their words are ours and change
    with every release, and the header's digest tells of the first. So turn 0 is always the digest of nothing."""
