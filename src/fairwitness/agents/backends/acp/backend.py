"""The backend for external agents that speak the Agent Client Protocol."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager
from importlib import util
from typing import TYPE_CHECKING, Any

from fairwitness.agents.backends.acp import agent_process as launching
from fairwitness.agents.backends.acp import installation
from fairwitness.agents.backends.acp.installation import InstalledAgent, Lookup
from fairwitness.agents.backends.acp.profile_fill import role_kind
from fairwitness.agents.backends.acp.repo_settings import find_repo_settings
from fairwitness.agents.base import AgentJob, Session
from fairwitness.contracts.agents.dispatch import Kind, Probe
from fairwitness.contracts.agents.profile import AgentProfile
from fairwitness.errors import NotReady, UsageError
from fairwitness.sandbox import locked_tmp
from fairwitness.sandbox.private_folders import PrivateFolders

if TYPE_CHECKING:
    from fairwitness.agents.backends.acp.session import AcpSession

_EXTRA = "pip install 'fairwitness[acp]'"


class AcpBackend:
    """Runs one external agent."""

    def __init__(self, profile: AgentProfile, *, lookup: Lookup = installation.which) -> None:
        self.profile = profile
        self._lookup = lookup

    @property
    def name(self) -> str:
        """The name of the agent."""
        return self.profile.name

    def probe(self) -> Probe:
        """Return whether the agent is installed, in which version, and what is missing."""
        profile = self.profile
        installed = installation.find(profile, self._lookup)
        missing, steps = [], []
        if installed is None:
            missing.append(f"the program {profile.program} (package {profile.package})")
            steps.append(profile.install)
        node = installation.node_version(self._lookup) if profile.node is not None else None
        if profile.node is not None and (node is None or node < profile.node):
            missing.append(f"Node.js {profile.node} or newer ({'none' if node is None else node} is here)")
            steps.append(f"install Node.js {profile.node} or newer")
        if util.find_spec("acp") is None:
            missing.append("the library of the Agent Client Protocol")
            steps.append(_EXTRA)
        return Probe(
            name=profile.name,
            kind="acp",
            found=installed is not None,
            version=installation.version(profile, installed) if installed is not None else None,
            tier=profile.tier,
            where=installed.where if installed is not None else None,
            missing=tuple(missing),
            next_step=", then ".join(steps),
        )

    def open(self, job: AgentJob) -> AbstractAsyncContextManager[Session]:
        """Open a session with the agent in the sandbox; leaving it ends everything it started and removes its home."""
        return self._open(job)

    @contextlib.asynccontextmanager
    async def _open(self, job: AgentJob) -> AsyncIterator[Session]:
        installed = self._installed(job)
        own = locked_tmp.make("run")
        try:
            session = await self._start(job, installed, _private_folders(own))
            try:
                yield session
            finally:
                await uninterrupted(session.close())
        finally:
            await uninterrupted(asyncio.to_thread(own.remove))

    def _installed(self, job: AgentJob) -> InstalledAgent:
        """Return where the agent is installed; raise if this dispatch may not use it."""
        profile = self.profile
        launching.require_sandbox(profile, job)
        if job.endpoint is not None and job.endpoint.dialect is not profile.dialect:
            raise UsageError(
                f"{profile.title} speaks {profile.dialect.value} to its model, not {job.endpoint.dialect.value}",
                next_step="choose the model's dialect by the agent's profile",
            )
        if job.endpoint is not None and job.endpoint.socket is None:
            raise UsageError("there is no socket that leads to the model", next_step="let the gateway listen on one")
        installed = installation.find(profile, self._lookup)
        if installed is None:
            raise NotReady(f"{profile.title} is not installed ({profile.program})", next_step=profile.install)
        if util.find_spec("acp") is None:
            raise NotReady("the library of the Agent Client Protocol is not installed", next_step=_EXTRA)
        return installed

    async def _start(self, job: AgentJob, installed: InstalledAgent, own: PrivateFolders) -> "AcpSession":
        from fairwitness.agents.backends.acp.answer_tool import AnswerTool
        from fairwitness.agents.backends.acp.session import AcpSession

        profile, kind = self.profile, role_kind(job.spec.role)
        fill = launching.values_of(profile, job, own)
        launching.write_settings(profile, fill, own)
        for note in find_repo_settings(profile, job).notes(profile):
            job.report(Kind.NOTE, note)
        hand = AnswerTool(job.form, own) if profile.submit else None
        meta = fill.value(profile.meta.get(kind, {}))
        around = await asyncio.to_thread(job.tools.surroundings)
        command = launching.agent_command(profile, job, installed, fill, own, around)
        process = await launching.AgentProcess.start(job.runner, command)
        try:
            return AcpSession(profile, job, process, meta, profile.modes.get(kind), hand)
        except BaseException:
            process.stop()
            process.hang_up()
            await uninterrupted(process.reaped())
            raise


def _private_folders(own: locked_tmp.LockedFolder) -> PrivateFolders:
    """Create a home beside a temporary folder: some agents refuse a home inside a temporary folder."""
    for name in ("home", "tmp"):
        (own.path / name).mkdir(mode=0o700)
    return PrivateFolders(str(own.path), str(own.path / "home"), str(own.path / "tmp"))


async def uninterrupted(work: Coroutine[Any, Any, None]) -> None:
    """Wait until the work is done, even if the caller is cancelled meanwhile; the cancellation is raised afterwards."""
    task = asyncio.ensure_future(work)
    disturbed: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            disturbed = error
    task.result()
    if disturbed is not None:
        raise disturbed
