"""The `api` backend: a model behind our gateway, with our tools and a loop of our own. All of it is ours: tier A."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from fairwitness.agents.backends.api_models import EXTRAS, PACKAGES, QUIET_S, opened
from fairwitness.agents.backends.asking import Waits, never_again
from fairwitness.agents.base import Job, Session
from fairwitness.contracts.agents.dispatch import EnforcementTier, Probe
from fairwitness.contracts.agents.model import Dialect
from fairwitness.errors import UsageError


class ApiBackend:
    """Reaches a model through the endpoint of each job."""

    def __init__(
        self,
        *,
        name: str = "api",
        dialect: Dialect | None = None,
        waits: Waits = never_again,
        quiet_s: float = QUIET_S,
    ) -> None:
        """`dialect` is what `probe` looks for; each job's endpoint says for itself which one it speaks."""
        self._name, self._dialect, self._waits, self._quiet_s = name, dialect, waits, quiet_s

    @property
    def name(self) -> str:
        """As people choose it."""
        return self._name

    def probe(self) -> Probe:
        """Looks for the packages and imports none of them: that alone takes seconds."""
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
        if len(absent) == len(wanted):  # any one will do where none was named
            yield absent[0]

    def open(self, job: Job) -> AbstractAsyncContextManager[Session]:
        """A conversation; `NotReady` names the extra that is missing, `UsageError` an address that is not ours."""
        return self._opened(job)

    @asynccontextmanager
    async def _opened(self, job: Job) -> AsyncIterator[Session]:
        if job.endpoint is None:
            raise UsageError("the api backend was given no endpoint", next_step="start the gateway, and name a model")
        async with opened(job.endpoint, quiet_s=self._quiet_s) as (model, settings):
            from fairwitness.agents.backends.api_session import ApiSession  # with it comes all of pydantic-ai

            session = ApiSession(model, settings, job, self._waits)
            try:
                yield session
            finally:
                await session.cancel()


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of a package above it
        return False


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
