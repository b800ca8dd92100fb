"""How models are spoken to: the four dialects, and one turn of a model in words of our own."""

from enum import StrEnum
from typing import Any

from fairwitness.contracts.common.base import Contract, Count, Maybe, Prose, Text


class ApiDialect(StrEnum):
    """An interface that models are served by."""

    ANTHROPIC = "anthropic"
    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    GEMINI = "gemini"


class ToolUse(Contract):
    """A tool that a model asks for."""

    id: Text
    name: Text
    args: dict[str, Any]


class ModelUsage(Contract):
    """What one turn used; tokens from the cache, and tokens put into it, are part of those that were sent."""

    tokens_in: Count
    tokens_out: Count
    tokens_cached: Count = 0
    tokens_cache_written: Count = 0


class ModelTurn(Contract):
    """What a model answered, whatever the dialect."""

    text: Prose = ""
    calls: tuple[ToolUse, ...] = ()
    usage: Maybe[ModelUsage] = None
    model: Maybe[Text] = None
