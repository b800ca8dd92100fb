"""Passes a request to a real provider, with a key that the agent never sees, and passes the answer back.

A provider is not trusted either: redirects are not followed, its answer has limits of size and time and must not be
compressed, and a key that it echoes is removed before the agent reads it.
"""

import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING

from fairwitness.agents.gateway.flow import AnswerStream, StreamBroken, close, once
from fairwitness.agents.gateway.keys import Eraser, Key
from fairwitness.agents.gateway.modes import (
    FailedAnswer,
    Grant,
    ModelAnswer,
    ModelRequest,
    RawAnswer,
    UpstreamFailure,
)
from fairwitness.agents.gateway.outgoing import Outgoing, Unsendable, outgoing
from fairwitness.agents.gateway.pricing import Prices
from fairwitness.contracts.agents.model import ApiDialect, ModelUsage
from fairwitness.errors import NotReady, UsageError
from fairwitness.kit.addresses import is_loopback, split
from fairwitness.rules.provider_faults import ProviderAnswer

if TYPE_CHECKING:
    import httpx

_RETURNED = ("content-type", "retry-after", "retry-after-ms", "x-should-retry", "request-id", "x-request-id")
"""The provider's headers that the agent gets: no cookie, no URL, nothing about the account."""
_PACE = ("retry-after", "ratelimit")
"""Parts of the names of headers that say how fast the provider may be asked."""
_ERROR_LIMIT = 64 * 1024
_UNSENT = ProviderAnswer(None, is_sent=False)


@dataclass(frozen=True, slots=True)
class Provider:
    """A service that sells models, or a server that runs them."""

    name: str
    dialect: ApiDialect
    base_url: str
    """The URL before the dialect's own paths: `https://api.openai.com/v1`, `https://api.anthropic.com`."""
    key: Key | None
    """None only for a local server that needs none."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Our names of its models, and its own."""

    def __post_init__(self) -> None:
        where = split(self.base_url)
        is_odd = where.username is not None or where.query or where.fragment or not where.hostname
        if is_odd or where.scheme not in ("http", "https") or (where.scheme == "http" and not self.is_local):
            named = f"{where.scheme}://{where.hostname}" if where.hostname else "an address without a host"
            raise UsageError(
                f"the provider {self.name} is not spoken to at {named}",
                next_step="set its base_url to an https address, or to one of this machine, and to nothing more",
            )
        if self.key is None and not self.is_local:
            raise NotReady(
                f"the provider {self.name} has no key", next_step="set its environment variable, key_cmd or key file"
            )

    @property
    def is_local(self) -> bool:
        """Whether it is on the loopback interface, by number or as `localhost`."""
        return is_loopback(self.base_url)


@dataclass(frozen=True, slots=True)
class ModelRoute:
    """The provider and the model of a dispatch."""

    provider: Provider
    model: str

    @property
    def sold_as(self) -> str:
        """The provider's name of the model."""
        return self.provider.models.get(self.model, self.model)


@dataclass(frozen=True, slots=True)
class ProviderLimits:
    """Limits of time and size for a provider's answer."""

    connect_s: float = 15.0
    silence_s: float = 300.0
    """Seconds between two pieces of an answer; a model may think for minutes before the first."""
    whole_s: float = 3600.0
    largest: int = 64 * 1024 * 1024


_LIMITS = ProviderLimits()
_OPENAI = frozenset({ApiDialect.OPENAI_CHAT, ApiDialect.OPENAI_RESPONSES})
_ONE_PROVIDER = dict.fromkeys(_OPENAI, _OPENAI)
"""Dialects that one URL speaks; an agent chooses between them by the model's name."""


class PassMode:
    """The mode `pass`: passes requests to the route of their dispatch; without a route it refuses them."""

    name = "pass"

    def __init__(self, route: Callable[[Grant], ModelRoute | None], limits: ProviderLimits = _LIMITS) -> None:
        self._route = route
        self._limits = limits
        self._clients: dict[bool, httpx.AsyncClient] = {}

    async def answer(self, asked: ModelRequest) -> ModelAnswer:
        """Return the provider's answer as it streams in."""
        route = self._route(asked.grant)
        if route is None:
            return FailedAnswer(403, "no model was granted to this dispatch")
        if not {route.provider.dialect, asked.dialect} <= _ONE_PROVIDER.get(asked.dialect, {asked.dialect}):
            return FailedAnswer(400, f"the model of this dispatch speaks {route.provider.dialect}, not {asked.dialect}")
        try:
            sent = outgoing(asked, route.sold_as)
        except Unsendable as error:
            return FailedAnswer(400, str(error))
        return await self._pass(route.provider, sent)

    async def aclose(self) -> None:
        """Close every connection."""
        clients, self._clients = tuple(self._clients.values()), {}
        for client in clients:
            await client.aclose()

    async def _pass(self, provider: Provider, sent: Outgoing) -> ModelAnswer:
        client = self._client(provider)
        import httpx

        request = client.build_request(
            "POST",
            provider.base_url.rstrip("/") + sent.path,
            headers={**sent.headers, **_credentials(provider), "user-agent": "fairwitness"},
            content=sent.content,
        )
        try:
            response = await client.send(request, stream=True)
        except (httpx.ConnectTimeout, httpx.PoolTimeout):
            problem = f"{provider.name} could not be reached within {self._limits.connect_s:g} s"
            return UpstreamFailure(504, problem, reply=_UNSENT)
        except httpx.ConnectError:
            return UpstreamFailure(502, f"{provider.name} could not be reached", reply=_UNSENT)
        except httpx.TimeoutException:
            return UpstreamFailure(504, f"{provider.name} did not answer within {self._limits.silence_s:g} s")
        except (httpx.HTTPError, httpx.InvalidURL):
            return UpstreamFailure(502, f"the connection to {provider.name} broke before it had answered")
        try:
            return await self._answered(provider, response)
        except BaseException:
            await response.aclose()
            raise

    async def _answered(self, provider: Provider, response: "httpx.Response") -> ModelAnswer:
        refused = _refused(provider, response, self._limits.largest)
        if refused is not None:
            await response.aclose()
            return refused
        status, headers, pace = response.status_code, _returned(response, Eraser(provider.key)), _pace(response)
        if response.is_success:
            body = AnswerStream(self._pieces(provider, response), response.aclose)
            return RawAnswer(status, headers, body, pace=pace)
        said = await self._error(provider, response)
        await response.aclose()
        if said is None:
            return UpstreamFailure(status, f"{provider.name} answered {status}", reply=ProviderAnswer(status))
        return RawAnswer(status, headers, once(said), pace=pace)

    async def _error(self, provider: Provider, response: "httpx.Response") -> bytes | None:
        """Return the provider's error; None if it is too long or breaks off."""
        said = b""
        try:
            async with contextlib.aclosing(self._pieces(provider, response)) as pieces:
                async for piece in pieces:
                    said += piece
                    if len(said) > _ERROR_LIMIT:
                        return None
        except StreamBroken:
            return None
        return said

    async def _pieces(self, provider: Provider, response: "httpx.Response") -> AsyncGenerator[bytes, None]:
        import httpx

        eraser = Eraser(provider.key)
        coming, size, give_up = response.aiter_raw(), 0, time.monotonic() + self._limits.whole_s
        try:
            async for piece in coming:
                size += len(piece)
                if size > self._limits.largest:
                    raise StreamBroken(f"{provider.name} sent more than {self._limits.largest} bytes")
                if time.monotonic() > give_up:
                    raise StreamBroken(f"{provider.name} did not end within {self._limits.whole_s:g} s")
                if clean := eraser.feed(piece):
                    yield clean
        except httpx.TimeoutException:
            raise StreamBroken(f"{provider.name} fell silent for {self._limits.silence_s:g} s") from None
        except httpx.HTTPError:
            raise StreamBroken(f"the connection to {provider.name} broke") from None
        finally:
            await close(coming)
        if rest := eraser.end():
            yield rest

    def _client(self, provider: Provider) -> "httpx.AsyncClient":
        """Return the client: one for local servers without a proxy, one for others with the user's proxy settings."""
        if (client := self._clients.get(provider.is_local)) is not None:
            return client
        try:
            import httpx
        except ImportError:
            raise NotReady(
                "providers cannot be reached: httpx is not installed", next_step="pip install 'fairwitness[gateway]'"
            ) from None
        # at DEBUG it would log a provider's headers, and a provider may echo the key in one
        logging.getLogger("httpcore").setLevel(logging.WARNING)
        limits = self._limits
        self._clients[provider.is_local] = client = httpx.AsyncClient(
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # dispatches must not share cookies
            trust_env=not provider.is_local,
            timeout=httpx.Timeout(limits.silence_s, connect=limits.connect_s, pool=limits.connect_s),
            limits=httpx.Limits(max_connections=100, keepalive_expiry=30),
        )
        return client


def _credentials(provider: Provider) -> dict[str, str]:
    if provider.key is None:
        return {}
    secret = provider.key.reveal()
    match provider.dialect:
        case ApiDialect.ANTHROPIC:
            return {"x-api-key": secret}
        case ApiDialect.GEMINI:
            return {"x-goog-api-key": secret}
        case ApiDialect.OPENAI_CHAT | ApiDialect.OPENAI_RESPONSES:
            return {"authorization": f"Bearer {secret}"}


def _returned(response: "httpx.Response", eraser: Eraser) -> dict[str, str]:
    found = {name: eraser.clean(response.headers[name]) for name in _RETURNED if name in response.headers}
    return {name: value for name, value in found.items() if value.isascii() and value.isprintable()}


def _pace(response: "httpx.Response") -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if any(part in name for part in _PACE)}


def _refused(provider: Provider, response: "httpx.Response", largest: int) -> FailedAnswer | None:
    """Return why an answer is not passed on, or None."""
    reply = ProviderAnswer(response.status_code)
    if 300 <= response.status_code < 400:
        return UpstreamFailure(502, f"{provider.name} tried to send us elsewhere, and is not followed", reply=reply)
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        return UpstreamFailure(502, f"{provider.name} packed its answer, which was not asked for", reply=reply)
    length = response.headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > largest:
        return UpstreamFailure(502, f"{provider.name} wants to send more than {largest} bytes", reply=reply)
    return None


def priced(
    route: Callable[[Grant], ModelRoute | None], prices: Prices
) -> Callable[[ModelRequest, ModelUsage], int | None]:
    """Return a function for the cost of a dispatch's calls; without a route a call is not sent and has no cost."""

    def price(asked: ModelRequest, usage: ModelUsage) -> int | None:
        found = route(asked.grant)
        return None if found is None else prices.micros(found.sold_as, usage, url=found.provider.base_url)

    return price
