"""The models of agents: their addresses and keys, and the gateway through which a dispatch reaches them.

A key is sent only to the provider's own address, or to one that the person configured with it.
"""

import hmac
import secrets
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from fairwitness.agents.base import Endpoint
from fairwitness.agents.data_files import own_prices
from fairwitness.agents.driver import DispatchCut
from fairwitness.agents.gateway.keys import Key, find_key
from fairwitness.agents.gateway.modes import Grant
from fairwitness.agents.gateway.patience import WATCHES, PatientMode, ProviderWatches
from fairwitness.agents.gateway.pricing import Price, Prices
from fairwitness.agents.gateway.upstream import ModelRoute, PassMode, Provider, priced
from fairwitness.agents.profiles import PROFILES
from fairwitness.contracts.agents.dispatch import DispatchLimits, Usage
from fairwitness.contracts.agents.model import ApiDialect, ModelUsage
from fairwitness.contracts.agents.settings import (
    AgentsSettings,
    BackendSettings,
    GatewayLimits,
    ModelPrice,
    ProviderKind,
)
from fairwitness.errors import NotReady, UsageError
from fairwitness.runs.dispatch.meter import RunMeter
from fairwitness.runs.dispatch.model import ModelConnection


class Seller(NamedTuple):
    """The defaults of a model provider."""

    dialect: ApiDialect
    base_url: str
    variable: str
    model: str
    """The default model."""


SELLERS = {
    ProviderKind.ANTHROPIC: Seller(
        ApiDialect.ANTHROPIC, "https://api.anthropic.com", "ANTHROPIC_API_KEY", "claude-sonnet-5-5"
    ),
    ProviderKind.OPENAI: Seller(ApiDialect.OPENAI_CHAT, "https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-5"),
    ProviderKind.OPENAI_RESPONSES: Seller(
        ApiDialect.OPENAI_RESPONSES, "https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-5.5"
    ),
    ProviderKind.GOOGLE: Seller(
        ApiDialect.GEMINI, "https://generativelanguage.googleapis.com", "GEMINI_API_KEY", "gemini-2.5-pro"
    ),
}
_API = (ProviderKind.ANTHROPIC, ProviderKind.OPENAI, ProviderKind.GOOGLE)
"""The providers whose keys are tried in this order for `api` without further settings."""


class KeyRing:
    """Finds keys in an environment and in the person's folder of keys."""

    def __init__(self, environment: Mapping[str, str] | None = None, folder: Path | None = None) -> None:
        self._environment, self._folder = environment, folder

    def find(self, name: str, *, variable: str | None, command: tuple[str, ...] = ()) -> Key:
        """Return the key of a name; raise `NotReady` with instructions if there is none."""
        return find_key(name, variable=variable, command=command, environment=self._environment, folder=self._folder)

    def of(self, kind: ProviderKind) -> Key | None:
        """Return the key of a provider, or None; raise an error if it exists but cannot be used."""
        try:
            return self.find(kind.value, variable=SELLERS[kind].variable)
        except NotReady as error:
            if error.what.startswith("there is no key"):
                return None
            raise


PERSONS = KeyRing()
"""The keys of the person who started this process."""


def route_of(agent: str, model: str | None, settings: AgentsSettings, *, keys: KeyRing = PERSONS) -> ModelRoute:
    """Return the model and address for an agent; raise `NotReady` if there is no key."""
    said = settings.backend.get(agent)
    if said is not None:
        return _said_route(agent, model, said, keys)
    kind = _kind_of(agent, keys)
    seller = SELLERS[kind]
    key = keys.find(kind.value, variable=seller.variable)
    return ModelRoute(Provider(kind.value, seller.dialect, seller.base_url, key), model or seller.model)


def _kind_of(agent: str, keys: KeyRing) -> ProviderKind:
    if agent in PROFILES:
        dialect = PROFILES[agent].dialect
        return next(kind for kind, seller in SELLERS.items() if seller.dialect is dialect)
    found = next((kind for kind in _API if keys.of(kind) is not None), None)
    if found is None:
        variables = ", ".join(SELLERS[kind].variable for kind in _API)
        step = f"set one of {variables}, or name a backend in your own fairwitness.toml"
        raise NotReady("there is no key for a model", next_step=step)
    return found


def _said_route(agent: str, model: str | None, said: BackendSettings, keys: KeyRing) -> ModelRoute:
    seller = SELLERS[said.provider]
    if agent in PROFILES and PROFILES[agent].dialect is not seller.dialect:
        speaks = PROFILES[agent].dialect
        allowed = " or ".join(kind.value for kind, other in SELLERS.items() if other.dialect is speaks)
        raise UsageError(
            f"agents.backend.{agent}: {agent} speaks {speaks.value}, not {seller.dialect.value}",
            next_step=f'set provider = "{allowed}"',
        )
    url = said.base_url or seller.base_url
    key: Key | None = None
    if said.key_env is not None or said.key_cmd is not None:
        key = keys.find(agent, variable=said.key_env, command=said.key_cmd or ())
    elif said.base_url is None:
        key = keys.find(said.provider.value, variable=seller.variable)
    return ModelRoute(Provider(agent, seller.dialect, url, key), model or said.model or seller.model)


class GatewayModels:
    """Connects to models through a gateway that lives as long as one try of a dispatch."""

    def __init__(
        self,
        route: ModelRoute,
        meter: RunMeter,
        *,
        tcp: bool,
        limits: GatewayLimits,
        watches: ProviderWatches = WATCHES,
        prices: Mapping[str, ModelPrice] | None = None,
    ) -> None:
        """Listen on loopback if `tcp`, for agents in this process; else only on a Unix socket.

        `prices` are those of the settings.
        """
        self._prices = prices_of(prices or {})
        self._route, self._meter, self._tcp, self._limits = route, meter, tcp, limits
        self._watches = watches
        self._tries: Counter[str] = Counter()

    def connect(
        self, dispatch_id: str, limits: DispatchLimits, cut: DispatchCut
    ) -> AbstractAsyncContextManager[ModelConnection]:
        """See `Models`."""
        return self._connected(dispatch_id, limits, cut)

    @asynccontextmanager
    async def _connected(
        self, dispatch_id: str, limits: DispatchLimits, cut: DispatchCut
    ) -> AsyncIterator[ModelConnection]:
        try:
            from fairwitness.agents.gateway.app import gateway
            from fairwitness.agents.gateway.metered import MeteredMode
            from fairwitness.agents.gateway.server import serving
        except ImportError as error:
            raise NotReady(
                f"the gateway to models is not installed ({error.name} is missing)",
                next_step="pip install 'fairwitness[gateway]'",
            ) from None
        self._tries[dispatch_id] += 1
        name = dispatch_id if self._tries[dispatch_id] == 1 else f"{dispatch_id}.{self._tries[dispatch_id]}"
        grant = Grant(token=f"fairwitness-{secrets.token_urlsafe(32)}", dispatch_id=name)
        passing = PassMode(lambda asked: self._route if asked == grant else None)
        metered = MeteredMode(passing, self._meter, priced(lambda _grant: self._route, self._prices))
        if not is_priced(self._route, self._prices):  # the role's money cannot be counted; its tokens are
            limits = limits.model_copy(update={"cost_micros": None})
        watch, wait_s = self._watches.of(self._route), self._limits.provider_wait_s
        mode = PatientMode(metered, watch, self._route, cut, limit_s=wait_s)
        app = gateway(mode, lambda token: _granted(token, grant), models=(self._route.model,))
        self._meter.open(name, limits, lambda refusal: cut.over_budget(refusal.reason))
        try:
            with tempfile.TemporaryDirectory(prefix="fairwitness-gateway-") as folder:
                socket = None if self._tcp else Path(folder) / "model"
                async with serving(app, socket=socket, tcp=self._tcp, limits=self._limits) as served:
                    endpoint = Endpoint(
                        dialect=self._route.provider.dialect,
                        token=grant.token,
                        model=self._route.model,
                        url=served.url,
                        socket=served.socket,
                    )
                    yield ModelConnection(
                        endpoint, lambda: self._meter.close(name), lambda: mode.waited_s, lambda: mode.trouble
                    )
        finally:
            self._meter.close(name)
            await passing.aclose()


def _granted(token: str, grant: Grant) -> Grant | None:
    return grant if hmac.compare_digest(token.encode(errors="replace"), grant.token.encode()) else None


def prices_of(said: Mapping[str, ModelPrice]) -> Prices:
    """Return the prices of the settings, then those of the person's files, and behind them the built-in list."""
    return Prices(
        {
            model: Price.of(repr(price.input), repr(price.output), None if price.cached is None else repr(price.cached))
            for model, price in {**own_prices(), **said}.items()
        }
    )


def is_priced(route: ModelRoute, prices: Prices) -> bool:
    """Return whether the price of a model is known; a model on this machine has none unless one is set."""
    return prices.micros(route.sold_as, ModelUsage(tokens_in=1, tokens_out=1), url=route.provider.base_url) is not None


class NoModels:
    """For recordings: connects to no model and counts no usage."""

    def connect(
        self, dispatch_id: str, limits: DispatchLimits, cut: DispatchCut
    ) -> AbstractAsyncContextManager[ModelConnection]:
        """See `Models`."""
        return _nobody()


@asynccontextmanager
async def _nobody() -> AsyncIterator[ModelConnection]:
    yield ModelConnection(None, _nothing)


def _nothing() -> Usage | None:
    return None
