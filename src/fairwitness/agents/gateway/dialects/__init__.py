"""The four dialects: how requests are parsed, answers encoded, and answers of a model observed."""

from collections.abc import Mapping

from fairwitness.agents.gateway.dialects import anthropic, gemini, openai_chat, openai_responses
from fairwitness.agents.gateway.dialects.base import Codec
from fairwitness.agents.gateway.dialects.observer import TurnObserver
from fairwitness.contracts.agents.model import ApiDialect

CODECS: Mapping[ApiDialect, Codec] = {
    ApiDialect.ANTHROPIC: anthropic.CODEC,
    ApiDialect.OPENAI_CHAT: openai_chat.CODEC,
    ApiDialect.OPENAI_RESPONSES: openai_responses.CODEC,
    ApiDialect.GEMINI: gemini.CODEC,
}


def observe(dialect: ApiDialect) -> TurnObserver:
    """Return an observer of an answer in the dialect, plain or streamed."""
    return TurnObserver(CODECS[dialect])
