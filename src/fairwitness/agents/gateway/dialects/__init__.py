"""The four dialects: how each is read and spelled, and how a model's own answer is overheard in it."""

from collections.abc import Mapping

from fairwitness.agents.gateway.dialects import anthropic, gemini, openai_chat, openai_responses
from fairwitness.agents.gateway.dialects.base import Codec
from fairwitness.agents.gateway.dialects.observer import TurnObserver
from fairwitness.contracts.agents.model import Dialect

CODECS: Mapping[Dialect, Codec] = {
    Dialect.ANTHROPIC: anthropic.CODEC,
    Dialect.OPENAI_CHAT: openai_chat.CODEC,
    Dialect.OPENAI_RESPONSES: openai_responses.CODEC,
    Dialect.GEMINI: gemini.CODEC,
}


def observe(dialect: Dialect) -> TurnObserver:
    """Someone who listens to an answer as it passes, plain or streamed."""
    return TurnObserver(CODECS[dialect])
