"""Whether the backend can be used at all: packages, addresses, and what the environment must not change."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from agents.api.kit import PROMPT, job_in, project, scripted
from fairwitness.agents.backends.api import EXTRAS, ApiBackend
from fairwitness.agents.base import Endpoint
from fairwitness.contracts.agents.dispatch import EnforcementTier, Stop
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.errors import UsageError
from fairwitness.kit.addresses import is_loopback
from fairwitness.testing.script_steps import SayStep

_WITHOUT = """
import asyncio, sys
sys.modules[{package!r}] = None
from fairwitness.agents.base import Endpoint
from fairwitness.agents.backends.api import open_model
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.errors import NotReady

async def main():
    endpoint = Endpoint(dialect=ApiDialect({dialect!r}), token="t" * 9, model="m", url="http://127.0.0.1:9")
    try:
        async with open_model(endpoint):
            pass
    except NotReady as error:
        print(error.what, "|", error.next_step)

asyncio.run(main())
"""
_LIGHT = """
import sys
from fairwitness.agents.backends.api import ApiBackend
probe = ApiBackend().probe()
print(probe.found, any(name in sys.modules for name in ("pydantic_ai", "openai", "anthropic", "httpx2")))
"""


_LACKING = """
import sys
for package in {packages!r}:
    sys.modules[package] = None
from fairwitness.agents.backends.api import ApiBackend
from fairwitness.contracts.agents.model import ApiDialect
probe = ApiBackend(dialect={dialect}).probe()
print(probe.found, *probe.missing, probe.next_step, sep="|")
"""


def _python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_probe_looks_for_the_packages_and_imports_none() -> None:
    assert _python(_LIGHT) == "True False"
    probe = ApiBackend(dialect=ApiDialect.GEMINI).probe()
    assert (probe.kind, probe.tier, probe.missing) == ("api", EnforcementTier.A, ())
    assert probe.version is not None


@pytest.mark.parametrize(
    ("packages", "dialect", "said"),
    [
        (("pydantic_ai", "openai"), "ApiDialect.OPENAI_CHAT", "False|the package pydantic_ai|the package openai|"),
        (("google",), "ApiDialect.GEMINI", "False|the package google.genai|pip install 'fairwitness[google]'"),
        (("openai", "anthropic"), "None", "True|"),
        (("openai", "anthropic", "google"), "None", "False|the package anthropic|pip install 'fairwitness[anthropic]'"),
    ],
)
def test_a_probe_says_what_is_missing(packages: tuple[str, ...], dialect: str, said: str) -> None:
    assert _python(_LACKING.format(packages=packages, dialect=dialect)).startswith(said)


@pytest.mark.parametrize(
    ("package", "dialect", "extra"),
    [
        ("pydantic_ai.settings", ApiDialect.ANTHROPIC, "api"),
        ("anthropic", ApiDialect.ANTHROPIC, "anthropic"),
        ("openai", ApiDialect.OPENAI_RESPONSES, "openai"),
        ("google.genai.client", ApiDialect.GEMINI, "google"),
    ],
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    package: str, dialect: ApiDialect, extra: str
) -> None:
    said = _python(_WITHOUT.format(package=package, dialect=dialect.value))
    assert f"the extra '{extra}'" in said
    assert said.endswith(f"| pip install 'fairwitness[{extra}]'")


def test_every_dialect_has_an_extra() -> None:
    assert set(EXTRAS) == set(ApiDialect)


@pytest.mark.parametrize(
    "url",
    [
        None,
        "https://api.openai.com/v1",
        "http://127.0.0.1.example.com",
        "http://user@example.com",
        "http://0.0.0.0:80",
        "ftp:",
        "",
    ],
)
@pytest.mark.req("X3")
def test_an_address_elsewhere_is_refused_before_anything_is_sent(tmp_path: Path, url: str | None) -> None:
    endpoint = Endpoint(dialect=ApiDialect.OPENAI_CHAT, token="t" * 9, model="m", url=url)

    async def run() -> None:
        async with ApiBackend().open(job_in(project(tmp_path), endpoint=endpoint)):
            pass

    with pytest.raises(UsageError, match="not on this machine"):
        asyncio.run(run())
    assert url is None or not is_loopback(url)


def test_without_an_endpoint_there_is_no_session(tmp_path: Path) -> None:
    async def run() -> None:
        async with ApiBackend().open(job_in(project(tmp_path))):
            pass

    with pytest.raises(UsageError, match="no endpoint"):
        asyncio.run(run())


@pytest.mark.enable_socket
@pytest.mark.parametrize("dialect", list(ApiDialect))
def test_the_environment_leads_nowhere_else(
    tmp_path: Path, dialect: ApiDialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "a-key-of-the-person")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")

    async def run() -> None:
        async with scripted(SayStep(text="here")) as model:
            job = job_in(project(tmp_path), endpoint=model.endpoint(dialect))
            async with ApiBackend().open(job) as session:
                turn = await session.ask(PROMPT)
        assert (turn.stop, turn.text) == (Stop.DONE, "here"), turn

    asyncio.run(run())


@pytest.mark.enable_socket
def test_a_redirection_to_another_machine_is_not_followed(tmp_path: Path) -> None:
    async def run() -> None:
        async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 307 Elsewhere\r\nlocation: http://192.0.2.7/v1\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(redirect, "127.0.0.1", 0)
        async with server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            endpoint = Endpoint(dialect=ApiDialect.OPENAI_CHAT, token="t" * 9, model="gpt-5.5", url=url)
            job = job_in(project(tmp_path), endpoint=endpoint)
            async with ApiBackend().open(job) as session:
                turn = await asyncio.wait_for(session.ask(PROMPT), 10)
        assert turn.stop is Stop.FAILED
        assert "307" in turn.error

    asyncio.run(run())
