"""The `api` backend: calls a model through our gateway, with our tools and our own loop, so it has tier A.

Models are called with pydantic-ai. Nothing here retries by itself, uses a proxy of the environment, or leaves this
machine.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from fairwitness.agents.backends.turn_loop import RetryWaits, no_retries
from fairwitness.agents.base import AgentJob, Endpoint, Session
from fairwitness.contracts.agents.dispatch import EnforcementTier, Probe
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.errors import NotReady, UsageError
from fairwitness.kit.addresses import is_loopback

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings


EXTRAS = {
    ApiDialect.OPENAI_CHAT: "openai",
    ApiDialect.OPENAI_RESPONSES: "openai",
    ApiDialect.ANTHROPIC: "anthropic",
    ApiDialect.GEMINI: "google",
}
"""The extra of this package that a dialect needs."""
PACKAGES = {"api": "pydantic_ai", "openai": "openai", "anthropic": "anthropic", "google": "google.genai"}
"""The package that an extra installs, by its import name."""
CONNECT_S = 10.0
QUIET_S = 600.0
"""Seconds without a byte from the model; some think for minutes before the first one."""
ANSWER_TOKENS = 16_384
"""The longest turn, for a dialect that requires a limit: the gateway reserves budget by it."""


@asynccontextmanager
async def open_model(endpoint: Endpoint, *, quiet_s: float = QUIET_S) -> "AsyncIterator[tuple[Model, ModelSettings]]":
    """Return the model of an endpoint and the settings of each request; its connections are closed afterwards."""
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
        trust_env=False,  # a proxy would see the token and the repository's content
    ) as client:
        try:
            model = _model(endpoint, url.rstrip("/"), client)
        except ImportError as error:
            raise _missing(EXTRAS[endpoint.dialect], error) from error
        settings = ModelSettings(cache=True)
        if endpoint.dialect is ApiDialect.ANTHROPIC and _most_tokens(model) > ANSWER_TOKENS:
            settings["max_tokens"] = ANSWER_TOKENS
        yield model, settings


def _missing(extra: str, error: ImportError) -> NotReady:
    return NotReady(
        f"the api backend needs the extra {extra!r}: {error.name or error} is not installed",
        next_step=f"pip install 'fairwitness[{extra}]'",
    )


async def _stay_here(request: "httpx2.Request") -> None:
    """Refuse a request that leaves this machine; runs before every request, also after a redirect."""
    import httpx2

    if not is_loopback(str(request.url)):
        raise httpx2.ConnectError(f"{request.url.host} is not on this machine", request=request)


def _model(endpoint: Endpoint, url: str, client: "httpx2.AsyncClient") -> "Model":
    match endpoint.dialect:
        case ApiDialect.OPENAI_CHAT | ApiDialect.OPENAI_RESPONSES:
            from openai import AsyncOpenAI
            from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
            from pydantic_ai.providers.openai import OpenAIProvider

            openai = AsyncOpenAI(api_key=endpoint.token, base_url=f"{url}/v1", http_client=client, max_retries=0)
            kind = OpenAIChatModel if endpoint.dialect is ApiDialect.OPENAI_CHAT else OpenAIResponsesModel
            return kind(endpoint.model, provider=OpenAIProvider(openai_client=openai))
        case ApiDialect.ANTHROPIC:
            from anthropic import AsyncAnthropic
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            anthropic = AsyncAnthropic(api_key=endpoint.token, base_url=url, http_client=client, max_retries=0)
            return AnthropicModel(endpoint.model, provider=AnthropicProvider(anthropic_client=anthropic))
        case ApiDialect.GEMINI:
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            # its client does not retry without retry options
            google = GoogleProvider(api_key=endpoint.token, base_url=url, http_client=client)
            return GoogleModel(endpoint.model, provider=google)


def _most_tokens(model: "Model") -> int:
    """Return the limit that pydantic-ai would send: the longest output of the model."""
    most = model.profile.get("anthropic_max_output_tokens")
    return most if isinstance(most, int) else 0


class ApiBackend:
    """Calls the model at the endpoint of each job."""

    def __init__(
        self,
        *,
        name: str = "api",
        dialect: ApiDialect | None = None,
        waits: RetryWaits = no_retries,
        quiet_s: float = QUIET_S,
    ) -> None:
        """Set the dialect that `probe` looks for; the endpoint of a job names its own."""
        self._name, self._dialect, self._waits, self._quiet_s = name, dialect, waits, quiet_s

    @property
    def name(self) -> str:
        """The name by which people choose it."""
        return self._name

    def probe(self) -> Probe:
        """Look for the packages without importing them, which would take seconds."""
        missing = tuple(self._missing())
        return Probe(
            name=self._name,
            kind="api",
            found=not missing,
            version=_version("pydantic-ai-slim"),
            tier=EnforcementTier.A,
            missing=tuple(f"the package {PACKAGES[extra]}" for extra in missing),
            next_step=f"pip install 'fairwitness[{','.join(missing)}]'" if missing else "",
        )

    def _missing(self) -> Iterator[str]:
        if not _is_there(PACKAGES["api"]):
            yield "api"
        wanted = {EXTRAS[self._dialect]} if self._dialect is not None else set(EXTRAS.values())
        absent = sorted(extra for extra in wanted if not _is_there(PACKAGES[extra]))
        if len(absent) == len(wanted):  # any of them is enough if no dialect was named
            yield absent[0]

    def open(self, job: AgentJob) -> AbstractAsyncContextManager[Session]:
        """Open a conversation; `NotReady` names a missing extra, `UsageError` an address that is not local."""
        return self._opened(job)

    @asynccontextmanager
    async def _opened(self, job: AgentJob) -> AsyncIterator[Session]:
        if job.endpoint is None:
            raise UsageError("the api backend was given no endpoint", next_step="start the gateway, and name a model")
        async with open_model(job.endpoint, quiet_s=self._quiet_s) as (model, settings):
            from fairwitness.agents.backends.api_session import ApiSession  # imports pydantic-ai

            session = ApiSession(model, settings, job, self._waits)
            try:
                yield session
            finally:
                await session.cancel()


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
