"""Starts an agent in the outer sandbox, with a private home and a connection to its model only."""

import asyncio
import contextlib
import os
import threading
from pathlib import Path

from fairwitness.agents.backends.acp.frames import FRAME_LIMIT
from fairwitness.agents.backends.acp.installation import InstalledAgent
from fairwitness.agents.backends.acp.profile_fill import ProfileValues, profile_values, role_kind
from fairwitness.agents.backends.acp.repo_settings import find_repo_settings
from fairwitness.agents.base import AgentJob, Endpoint
from fairwitness.agents.toolset.model import NO_SURROUNDINGS, CommandEnvironment
from fairwitness.contracts.agents.dispatch import EnforcementTier
from fairwitness.contracts.agents.profile import AgentProfile
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command, Confinement, Network, SandboxLimits, Way
from fairwitness.contracts.common.tools import POLICIES
from fairwitness.errors import NotReady
from fairwitness.kit.files import replace_file
from fairwitness.sandbox.private_folders import PrivateFolders
from fairwitness.sandbox.runner import Attached, Finished, Runner

PORT = 8017
"""The port of the agent's model, on a loopback interface of its own."""
_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
_WEAK = frozenset({EnforcementTier.C, EnforcementTier.D})
_CORES = 16
"""Cores that a process may use at once; the wall clock bounds its time, not this."""
_GRACE_S = 30.0
"""The time limit of the sandbox is later than ours: it is for the case that our process is gone."""


def require_sandbox(profile: AgentProfile, job: AgentJob) -> None:
    """Raise `NotReady` if only the outer sandbox could hold the agent to its role, and there is none."""
    if job.runner.tier is SandboxTier.NAMESPACES:
        return
    if profile.tier in _WEAK:
        why = f"{profile.title} acts by itself (tier {profile.tier.value})"
    elif not POLICIES[job.spec.role].source:
        why = f"{job.spec.role.value} may not change the project"
    elif job.endpoint is not None:
        why = f"{profile.title} must reach its model and nothing else"
    else:
        return
    raise NotReady(
        f"{why}, and the sandbox here ({job.runner.tier.value}) cannot hold it",
        next_step="install bubblewrap and allow user namespaces, or use the api backend",
    )


def values_of(profile: AgentProfile, job: AgentJob, own: PrivateFolders) -> ProfileValues:
    """Return the values of the placeholders for this dispatch."""
    endpoint = job.endpoint or Endpoint(dialect=profile.dialect, token="none", model="none")
    return profile_values(
        profile,
        job.spec.role,
        url=f"http://127.0.0.1:{PORT}",
        token=endpoint.token,
        model=endpoint.model,
        home=own.home,
        tmp=own.temporary,
        worktree=str(job.worktree),
    )


def write_settings(profile: AgentProfile, fill: ProfileValues, own: PrivateFolders) -> None:
    """Write the settings of the agent into its home."""
    for file in profile.files:
        replace_file(Path(own.home), file.path, fill.text(file.text).encode())


def agent_command(
    profile: AgentProfile,
    job: AgentJob,
    installed: InstalledAgent,
    fill: ProfileValues,
    own: PrivateFolders,
    around: CommandEnvironment = NO_SURROUNDINGS,
) -> Command:
    """Return the command that runs the agent in the sandbox; `around` is what the commands that it starts find."""
    role = job.spec.role
    toolchain = [folder for folder in around.env.get("PATH", "").split(":") if folder]
    env = {
        # an agent that is itself a Node program must load nothing of the project
        **{name: value for name, value in around.env.items() if not name.startswith(("NODE_", "npm_"))},
        "HOME": own.home,
        "TMPDIR": own.temporary,
        "PATH": ":".join(dict.fromkeys((*installed.path, *toolchain, *_SYSTEM_PATH))),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "NO_PROXY": "127.0.0.1,localhost",
    }
    env |= {name: fill.text(value) for name, value in (profile.quiet | profile.env).items()}
    socket = job.endpoint.socket if job.endpoint is not None else None
    wall_s = min(86_400.0, job.limits.wall_s + _GRACE_S)
    limits = profile.limits
    return Command(
        argv=(installed.program, *fill.words(profile.args), *fill.words(profile.role_args.get(role_kind(role), ()))),
        confinement=Confinement(
            worktree=str(job.worktree),
            writable=POLICIES[role].source,
            read=tuple(dict.fromkeys((*installed.read, *around.read))),
            write=(own.folder,),
            hidden=find_repo_settings(profile, job).hidden,
            network=Network.LOOPBACK,
            ways=(Way(port=PORT, socket=str(socket)),) if socket is not None else (),
            env=env,
            min_tier=SandboxTier.NAMESPACES if job.runner.tier is SandboxTier.NAMESPACES else SandboxTier.UID,
        ),
        limits=SandboxLimits(
            wall_s=wall_s,
            cpu_s=int(wall_s) * _CORES,
            memory=limits.memory,
            memory_process=limits.memory_process,
            processes=limits.processes,
            open_files=limits.open_files,
        ),
        purpose=f"agent {profile.name} as {role.value}",
    )


class SandboxedRun:
    """A command that runs in the sandbox, in a thread of its own: a pool would limit the number of dispatches."""

    def __init__(self, runner: Runner, task: Command, attached: Attached | None = None) -> None:
        self._runner, self._command, self._attached = runner, task, attached
        self._loop = asyncio.get_running_loop()
        self._stop = threading.Event()
        self.finished: asyncio.Future[Finished] = self._loop.create_future()
        """The result; raises what the runner raised."""
        threading.Thread(target=self._run, name=task.purpose, daemon=True).start()

    def stop(self) -> None:
        """Request the end of the command and of everything it started; do not wait for it."""
        self._stop.set()

    async def reaped(self) -> None:
        """Wait until all its processes have ended."""
        await asyncio.wait({self.finished})
        with contextlib.suppress(Exception):
            self.finished.result()

    def _run(self) -> None:
        try:
            ended = self._runner.run(self._command, cancel=self._stop, attached=self._attached)
        except BaseException as error:  # noqa: BLE001 -- passed to the waiting task
            self._tell(None, error)
        else:
            self._tell(ended, None)

    def _tell(self, ended: Finished | None, error: BaseException | None) -> None:
        def settle() -> None:
            if self.finished.done():
                return
            if ended is None:
                self.finished.set_exception(error or RuntimeError("it ended without a result"))
            else:
                self.finished.set_result(ended)

        with contextlib.suppress(RuntimeError):  # the loop has ended, so nothing waits
            self._loop.call_soon_threadsafe(settle)


class AgentProcess(SandboxedRun):
    """A running agent and its two streams."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    output: asyncio.ReadTransport

    @classmethod
    async def start(cls, runner: Runner, task: Command) -> "AgentProcess":
        """Start the agent; the streams exist at once, the agent a little later."""
        ours, theirs = _pipes()
        try:
            streams = await _streams(*ours)
        except BaseException:
            for handle in theirs:
                os.close(handle)
            raise
        process = cls(runner, task, Attached(stdin=theirs[0], stdout=theirs[1]))
        process.reader, process.writer, process.output = streams
        return process

    def hang_up(self) -> None:
        """Close our ends of the streams."""
        self.writer.close()
        self.output.close()


def _pipes() -> tuple[tuple[int, int], tuple[int, int]]:
    """Return our ends (to read, to write) and the agent's."""
    input_read, input_write = os.pipe()
    output_read, output_write = os.pipe()
    return (output_read, input_write), (input_read, output_write)


async def _streams(
    to_read: int, to_write: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, asyncio.ReadTransport]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=FRAME_LIMIT)
    listening = asyncio.StreamReaderProtocol(reader)
    flow = asyncio.StreamReaderProtocol(asyncio.StreamReader())  # only for flow control
    with contextlib.ExitStack() as opened:
        source = opened.enter_context(os.fdopen(to_read, "rb", 0))
        target = opened.enter_context(os.fdopen(to_write, "wb", 0))
        output, _ = await loop.connect_read_pipe(lambda: listening, source)
        opened.callback(output.close)
        transport, _ = await loop.connect_write_pipe(lambda: flow, target)
        opened.pop_all()
    return reader, asyncio.StreamWriter(transport, flow, None, loop), output
