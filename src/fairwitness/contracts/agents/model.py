"""The four API dialects of model providers, and one model turn in a form that is independent of them."""

from enum import StrEnum
from typing import Any

from fairwitness.contracts.common.base import Contract, Count, Maybe, Prose, Text


class ApiDialect(StrEnum):
    """The API through which a model is served."""

    ANTHROPIC = "anthropic"
    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    GEMINI = "gemini"


class ToolUse(Contract):
    """A tool call requested by a model."""

    id: Text
    name: Text
    args: dict[str, Any]


class ModelUsage(Contract):
    """The tokens that one turn used; tokens read from or written to a cache are included in the input."""

    tokens_in: Count
    tokens_out: Count
    tokens_cached: Count = 0
    tokens_cache_written: Count = 0


class ModelTurn(Contract):
    """One answer of a model, the same for every dialect."""

    text: Prose = ""
    calls: tuple[ToolUse, ...] = ()
    usage: Maybe[ModelUsage] = None
    model: Maybe[Text] = None
