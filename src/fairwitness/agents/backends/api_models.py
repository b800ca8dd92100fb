"""A model of each dialect as pydantic-ai speaks it, all of them pointed at our gateway and at nothing else.

Nothing here tries again by itself, follows a proxy of the environment, or leaves this machine.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fairwitness.agents.base import Endpoint
from fairwitness.contracts.agents.model import Dialect
from fairwitness.errors import NotReady, UsageError
from fairwitness.kit.addresses import is_loopback

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

EXTRAS = {
    Dialect.OPENAI_CHAT: "openai",
    Dialect.OPENAI_RESPONSES: "openai",
    Dialect.ANTHROPIC: "anthropic",
    Dialect.GEMINI: "google",
}
"""Which extra of ours brings a dialect."""
PACKAGES = {"api": "pydantic_ai", "openai": "openai", "anthropic": "anthropic", "google": "google.genai"}
"""What an extra brings, as it is imported."""
CONNECT_S = 10.0
QUIET_S = 600.0
"""How long a model may say nothing at all; some think for minutes before the first word."""
ANSWER_TOKENS = 16_384
"""The most of one turn where the dialect wants a number: the budget is reserved by it."""


@asynccontextmanager
async def opened(endpoint: Endpoint, *, quiet_s: float = QUIET_S) -> "AsyncIterator[tuple[Model, ModelSettings]]":
    """The endpoint's model, and the settings for each request; its connections are closed afterwards."""
    url = endpoint.url
    if url is None or not is_loopback(url):
        raise UsageError(
            f"the model's address is {url or 'not given'}, which is not on this machine",
            next_step="reach models through the gateway, on loopback",
        )
    try:
        import httpx2
        from pydantic_ai.settings import ModelSettings
    except ImportError as error:
        raise _missing("api", error) from error
    async with httpx2.AsyncClient(
        timeout=httpx2.Timeout(quiet_s, connect=CONNECT_S, pool=CONNECT_S),
        event_hooks={"request": [_stay_here]},
        trust_env=False,  # a proxy would see the token, and what the repository says
    ) as client:
        try:
            model = _model(endpoint, url.rstrip("/"), client)
        except ImportError as error:
            raise _missing(EXTRAS[endpoint.dialect], error) from error
        settings = ModelSettings(cache=True)
        if endpoint.dialect is Dialect.ANTHROPIC and _most_tokens(model) > ANSWER_TOKENS:
            settings["max_tokens"] = ANSWER_TOKENS
        yield model, settings


def _missing(extra: str, error: ImportError) -> NotReady:
    return NotReady(
        f"the api backend needs the extra {extra!r}: {error.name or error} is not installed",
        next_step=f"pip install 'fairwitness[{extra}]'",
    )


async def _stay_here(request: "httpx2.Request") -> None:
    """The tripwire: runs before every request, those that follow a redirection included."""
    import httpx2

    if not is_loopback(str(request.url)):
        raise httpx2.ConnectError(f"{request.url.host} is not on this machine", request=request)


def _model(endpoint: Endpoint, url: str, client: "httpx2.AsyncClient") -> "Model":
    match endpoint.dialect:
        case Dialect.OPENAI_CHAT | Dialect.OPENAI_RESPONSES:
            from openai import AsyncOpenAI
            from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
            from pydantic_ai.providers.openai import OpenAIProvider

            openai = AsyncOpenAI(api_key=endpoint.token, base_url=f"{url}/v1", http_client=client, max_retries=0)
            kind = OpenAIChatModel if endpoint.dialect is Dialect.OPENAI_CHAT else OpenAIResponsesModel
            return kind(endpoint.model, provider=OpenAIProvider(openai_client=openai))
        case Dialect.ANTHROPIC:
            from anthropic import AsyncAnthropic
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            anthropic = AsyncAnthropic(api_key=endpoint.token, base_url=url, http_client=client, max_retries=0)
            return AnthropicModel(endpoint.model, provider=AnthropicProvider(anthropic_client=anthropic))
        case Dialect.GEMINI:
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            # without retry options its client does not try again
            google = GoogleProvider(api_key=endpoint.token, base_url=url, http_client=client)
            return GoogleModel(endpoint.model, provider=google)


def _most_tokens(model: "Model") -> int:
    """What pydantic-ai would ask for: all that the model can say."""
    most = model.profile.get("anthropic_max_output_tokens")
    return most if isinstance(most, int) else 0
