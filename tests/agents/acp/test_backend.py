"""An agent before it is asked: found or not, refused where nothing could hold it, and never left behind."""

import asyncio
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.acp.kit import BUILDER, READER, Ground, endpoint
from agents.jobs import job
from fairwitness.agents.backends.acp import installation
from fairwitness.agents.backends.acp.backend import AcpBackend, uninterrupted
from fairwitness.agents.base import AgentJob, Backend
from fairwitness.agents.profiles import PROFILES
from fairwitness.contracts.agents.dispatch import EnforcementTier
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.tools import Role
from fairwitness.errors import NotReady, UsageError
from fairwitness.sandbox.scripted import ScriptedRunner
from fairwitness.testing.scripted_agent import scripted_profile

pytestmark = pytest.mark.req("X3")


def program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


# what is there


def test_an_agent_that_is_not_installed_says_how_to_get_it() -> None:
    found = AcpBackend(PROFILES["claude"], lookup=lambda _name: None).probe()
    assert (found.found, found.kind, found.name, found.version, found.where) == (False, "acp", "claude", None, None)
    assert any("claude-agent-acp" in missing for missing in found.missing)
    assert "npm install" in found.next_step


def test_the_version_is_what_the_agent_says_with_a_home_of_its_own(tmp_path: Path) -> None:
    script = '#!/bin/sh\n[ -w "$HOME" ] && [ -z "$SECRET" ] && echo "agent v1.34.0-beta ($HOME)" && touch "$HOME/x"\n'
    path = program(tmp_path, "goose", script)
    found = AcpBackend(PROFILES["goose"], lookup=lambda _name: str(path)).probe()
    assert (found.found, found.version, found.where, found.tier) == (True, "1.34.0-beta", str(path), EnforcementTier.B)
    assert found.missing == ()


def test_an_agent_that_does_not_say_its_version_in_time_has_none(tmp_path: Path) -> None:
    path = program(tmp_path, "goose", "#!/bin/sh\nexit 3\n")
    assert AcpBackend(PROFILES["goose"], lookup=lambda _name: str(path)).probe().version is None


def test_the_package_tells_the_version_where_the_program_does_not(tmp_path: Path) -> None:
    package = tmp_path / "lib/node_modules/@agentclientprotocol/claude-agent-acp"
    path = program(package, "dist/index.js", "#!/usr/bin/env node\n")
    (package / "package.json").write_text('{"name": "@agentclientprotocol/claude-agent-acp", "version": "0.99.0"}')
    (package / "dist" / "package.json").write_text('{"type": "module"}')
    link = tmp_path / "bin" / "claude-agent-acp"
    link.parent.mkdir()
    link.symlink_to(path)
    node = program(tmp_path, "bin/node", "#!/bin/sh\necho v20.1.0\n")
    places = {"claude-agent-acp": str(link), "node": str(node)}
    found = AcpBackend(PROFILES["claude"], lookup=places.get).probe()
    assert found.version == "0.99.0"
    assert found.missing == ("Node.js 22 or newer (20 is here)",)
    installed = installation.find(PROFILES["claude"], places.get)
    assert installed is not None
    assert str(tmp_path / "lib/node_modules") in installed.read
    assert str(node) in installed.read
    assert (installed.where, installed.program) == (str(link), str(path))
    assert found.where == str(link)
    assert installed.path == (str(tmp_path / "bin"),)


def test_a_program_of_python_brings_its_environment(tmp_path: Path) -> None:
    base = tmp_path / "python"
    program(base, "bin/python3", "")
    environment = tmp_path / "tools" / "vibe"
    environment.mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text(f"home = {base}/bin\nversion = 3.12\n")
    (environment / "bin").mkdir()
    (environment / "bin" / "python").symlink_to(base / "bin" / "python3")
    script = program(environment, "bin/vibe-acp", f"#!{environment}/bin/python\n")
    link = tmp_path / "bin" / "vibe-acp"
    link.parent.mkdir()
    link.symlink_to(script)
    installed = installation.find(PROFILES["vibe"], {"vibe-acp": str(link)}.get)
    assert installed is not None
    assert {str(environment), str(base)} <= set(installed.read)


# who is refused


def open_it(backend: AcpBackend, ours: AgentJob) -> None:
    async def whole() -> None:
        async with backend.open(ours):
            pass

    asyncio.run(whole())


def weak(folder: Path, role: Role, tier: SandboxTier = SandboxTier.LANDLOCK, **more: Any) -> AgentJob:
    return job(folder, role=role, runner=ScriptedRunner((), tier=tier), **more)


@pytest.mark.parametrize("tier", [SandboxTier.LANDLOCK, SandboxTier.UID, SandboxTier.NONE])
@pytest.mark.parametrize("enforcement", [EnforcementTier.C, EnforcementTier.D])
def test_an_agent_that_acts_by_itself_needs_the_outer_sandbox(
    tmp_path: Path, tier: SandboxTier, enforcement: EnforcementTier
) -> None:
    backend = AcpBackend(scripted_profile("answers", tier=enforcement))
    with pytest.raises(NotReady, match="acts by itself") as refused:
        open_it(backend, weak(tmp_path, BUILDER, tier))
    assert "bubblewrap" in refused.value.next_step


def test_a_role_that_may_not_write_needs_the_outer_sandbox_whatever_the_agent(tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="may not change"):
        open_it(AcpBackend(scripted_profile("works")), weak(tmp_path, READER))


def test_a_model_is_reached_only_out_of_the_outer_sandbox(tmp_path: Path) -> None:
    ours = weak(tmp_path, BUILDER, endpoint=endpoint(tmp_path / "g.sock"))
    with pytest.raises(NotReady, match="must reach its model"):
        open_it(AcpBackend(scripted_profile("works")), ours)


def test_an_agent_that_is_not_there_cannot_be_opened(tmp_path: Path) -> None:
    backend = AcpBackend(PROFILES["goose"], lookup=lambda _name: None)
    with pytest.raises(NotReady, match="not installed") as refused:
        open_it(backend, weak(tmp_path, BUILDER, SandboxTier.NAMESPACES))
    assert "npm install" in refused.value.next_step


def test_a_model_that_the_agent_cannot_speak_to_is_refused(tmp_path: Path) -> None:
    ours = weak(tmp_path, BUILDER, SandboxTier.NAMESPACES, endpoint=endpoint(tmp_path / "g.sock"))
    with pytest.raises(UsageError, match="anthropic"):
        open_it(AcpBackend(PROFILES["claude"], lookup=lambda _name: "/bin/true"), ours)


def test_a_model_without_a_socket_is_refused(tmp_path: Path) -> None:
    ours = weak(tmp_path, BUILDER, SandboxTier.NAMESPACES, endpoint=endpoint(None))
    with pytest.raises(UsageError, match="socket"):
        open_it(AcpBackend(scripted_profile("answers")), ours)


# what is left


def modes(home: Path) -> list[int]:
    return [stat.S_IMODE(folder.stat().st_mode) for folder in (home, home.parent)]


def test_the_home_is_private_and_gone_afterwards(ground: Ground) -> None:
    async def whole() -> list[int]:
        async with ground.backend("answers").open(ground.job()) as session:
            await session.ask("go")
            return await asyncio.to_thread(modes, ground.home)

    assert asyncio.run(whole()) == [0o700, 0o700]
    assert not ground.home.parent.exists()


@pytest.mark.parametrize("variant", ["answers", "hang", "deaf", "stuck-start"])
def test_nothing_is_left_when_the_caller_is_cancelled(ground: Ground, variant: str) -> None:
    async def dispatch() -> None:
        async with ground.backend(variant).open(ground.job()) as session:
            await session.ask("go")
            await asyncio.sleep(60)

    async def whole() -> None:
        task = asyncio.ensure_future(dispatch())
        for _ in range(200):
            await asyncio.sleep(0.02)
            if variant in ("answers", "stuck-start") or ground.orphans():
                break
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(whole())
    assert ground.orphans() == []
    assert not ground.home.parent.exists()


_SET_UP = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from agents.acp.test_backend import weak, open_it, endpoint, AcpBackend, scripted_profile, BUILDER, SandboxTier
place = Path(sys.argv[2])
odd = replace(endpoint(place / "g.sock"), model='a"b')
open_it(AcpBackend(scripted_profile("answers")), weak(place, BUILDER, SandboxTier.NAMESPACES, endpoint=odd))
"""


def test_what_fails_while_it_is_being_set_up_leaves_nothing(tmp_path: Path) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    argv = [sys.executable, "-c", _SET_UP, str(Path(__file__).parents[2]), str(tmp_path)]
    ended = subprocess.run(argv, env={"TMPDIR": str(place), "PATH": "/usr/bin"}, capture_output=True, text=True)
    assert "the model of this dispatch cannot be passed on" in ended.stderr
    assert list(place.iterdir()) == []


def test_an_agent_whose_program_cannot_run_is_an_error_of_the_sandbox(ground: Ground) -> None:
    broken = program(ground.folder, "agent", "#!/no/such/interpreter\n")
    turn = ground.ask(AcpBackend(scripted_profile("answers"), lookup=lambda _name: str(broken)))
    assert turn.cause is ErrorCause.SANDBOX_LOST


def test_work_that_must_be_done_is_done_although_its_caller_is_cancelled() -> None:
    done: list[str] = []

    async def work() -> None:
        await asyncio.sleep(0.1)
        done.append("done")

    async def whole() -> None:
        task = asyncio.ensure_future(uninterrupted(work()))
        for _ in range(3):
            await asyncio.sleep(0.01)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(whole())
    assert done == ["done"]


def test_the_backend_promises_what_every_backend_promises() -> None:
    backend: Backend = AcpBackend(PROFILES["codex"])
    assert backend.name == "codex"
