"""What a person sees when the provider of a model has a bad day: a line while the run waits, exit code 3, and how to
go on."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.gateway.fault_kit import BadDayProvider, Spell, error
from cli.graph_grounds import NEEDS_SANDBOX
from cli.runner import fairwitness
from fairwitness.agents.gateway.server import serving
from fairwitness.contracts.agents.model import ApiDialect
from feature.grounds import Grounds

pytestmark = [pytest.mark.timeout(300), pytest.mark.width("full"), pytest.mark.req("P12"), NEEDS_SANDBOX]


class Moody:
    """A provider whose mood a test sets."""

    def __init__(self) -> None:
        self.reply: Spell = error(500)
        self.url = ""
        self.asked = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked += 1
        await BadDayProvider(ApiDialect.OPENAI_CHAT, (self.reply,))(scope, receive, send)


@pytest.fixture
def moody(socket_enabled: None) -> Iterator[Moody]:
    """A provider on loopback."""
    del socket_enabled
    provider, ready = Moody(), threading.Event()
    ends: list[Callable[[], object]] = []

    async def serve() -> None:
        async with serving(provider, tcp=True) as served:
            provider.url = served.url or ""
            over, loop = asyncio.Event(), asyncio.get_running_loop()
            ends.append(lambda: loop.call_soon_threadsafe(over.set))
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(20)
    yield provider
    ends[0]()
    thread.join()


def test_a_bad_day_interrupts_a_run_which_can_be_resumed(tmp_path: Path, moody: Moody) -> None:
    till = Grounds.lay_out(tmp_path / "place").top
    own = tmp_path / "config" / "fairwitness" / "fairwitness.toml"
    own.parent.mkdir(parents=True)
    own.write_text(
        "[agents.gateway]\nprovider_wait_s = 2.5\n[agents.backend.mine]\n"
        f'provider = "openai"\nbase_url = "{moody.url}/v1"\nmodel = "m-1"\nkey_env = "MY_KEY"\n'
    )
    home = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "MY_KEY": "a-key-that-is-long-enough"}
    moody.reply = error(529, "Overloaded")
    done = fairwitness("feature", "Add a thing", "--agents", "mine", "--plain", cwd=till, **home)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "waiting for the provider until " in done.stdout
    assert "(mine: it is overloaded (529: Overloaded))" in done.stdout
    said = " ".join(done.stderr.split())
    assert "was interrupted: the provider mine gave no answer for" in said
    assert "fairwitness resume " in said
    assert moody.asked >= 2

    moody.reply = error(401, "invalid key")
    again = fairwitness("resume", "--plain", cwd=till, **home)
    assert again.returncode == 3, again.stdout + again.stderr
    said = " ".join(again.stderr.split())
    assert "the provider mine cannot be used: it does not accept the key (401: invalid key)" in said
    assert "set a valid key in place of the one of the environment variable MY_KEY, then: fairwitness resume" in said

    view = json.loads(fairwitness("status", "last", "--json", cwd=till, **home).stdout)
    assert view["status"] not in ("failed", "error")
    events = fairwitness("events", "last", "--json", cwd=till, **home).stdout
    assert "dispatch_finished" not in events  # no attempt was spent
    worker = fairwitness("worker", "--once", cwd=till, **home)
    assert worker.returncode == 3, worker.stdout + worker.stderr
    assert "it does not accept the key" in worker.stderr
