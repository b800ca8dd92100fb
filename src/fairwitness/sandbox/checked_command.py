"""Check a requested command and complete it: resolved folders, full environment, hash of the program."""

import functools
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import TIERS, Command, Confinement, Network
from fairwitness.errors import UsageError
from fairwitness.kit.json_text import render_line
from fairwitness.sandbox import hidden
from fairwitness.sandbox.sockets import is_socket, is_socket_or_pipe

PATH = "/usr/local/bin:/usr/bin:/bin"
PRIVATE = "private"
"""Replaces the private home and temporary folder when an environment is hashed, since their names vary between runs."""
_SYSTEM = frozenset({"/", "/usr", "/etc", "/proc", "/dev", "/sys", "/bin", "/sbin", "/lib", "/lib64", "/run", "/var"})


@dataclass(frozen=True)
class CheckedCommand:
    """A validated command with resolved paths. `problem` says why it cannot run on this machine."""

    command: Command
    worktree: str
    """Links are resolved."""
    cwd: str
    read: tuple[str, ...]
    """The readable paths that exist, each as given and with links resolved."""
    write: tuple[str, ...]
    hidden: tuple[str, ...]
    """The hidden paths that exist, relative to the worktree; none lies behind a link."""
    ways: tuple[tuple[int, str], ...]
    """Ports and the sockets they lead to, with links resolved."""
    exe: str | None
    exe_sha256: str | None
    problem: str | None

    def env(self, home: str, temporary: str) -> dict[str, str]:
        """Return the complete environment; the caller's values override the defaults."""
        defaults = {"HOME": home, "TMPDIR": temporary, "PATH": PATH, "LANG": "C.UTF-8"}
        return defaults | self.command.confinement.env

    @property
    def env_sha256(self) -> str:
        """Hash of the environment, without the names of the private folders."""
        return _digest(render_line(dict(sorted(self.env(PRIVATE, PRIVATE).items()))))

    @property
    def policy_sha256(self) -> str:
        """Hash of everything the command is allowed, without environment and limits."""
        policy = self.command.confinement.plain()
        del policy["env"]
        # only the ports count: a socket's path differs between runs although the same service listens there
        if ports := sorted(way["port"] for way in policy.pop("ways")):
            policy["ways"] = ports
        if paths := sorted(policy.pop("hidden")):
            policy["hidden"] = paths
        return _digest(render_line(policy | {"observe": self.command.observe}))


def check_command(command: Command, tier: SandboxTier) -> CheckedCommand:
    """Check a command: raise `UsageError` if the request is invalid, set `problem` if it cannot run on this machine."""
    confinement = command.confinement
    _refuse_nonsense(command)
    worktree = os.path.realpath(confinement.worktree)
    problem = None
    missing = [path for path in (worktree, *confinement.write) if not Path(path).is_dir()]
    if missing:
        problem = f"there is no folder {missing[0]}"
    elif sockets := [path for path in confinement.read if is_socket_or_pipe(os.path.realpath(path))]:
        problem = f"{sockets[0]} is a socket or a pipe; a command must not reach the process behind it"
    elif TIERS.index(tier) > TIERS.index(confinement.min_tier):
        problem = f"tier {tier} is weaker than {confinement.min_tier}, the weakest that will do"
    problem = problem or _no_way(confinement, tier)
    unseen: tuple[str, ...] = ()
    try:
        unseen = _hidden(confinement, worktree, tier)
    except hidden.Unhidable as error:
        problem = problem or str(error)
    exe, digest = _program(command.argv[0])
    if exe is None and problem is None:
        problem = f"there is no program {command.argv[0]}"
    return CheckedCommand(
        command=command,
        worktree=worktree,
        cwd=str(Path(worktree, command.cwd)),
        read=_existing(confinement.read),
        write=_existing((confinement.worktree, *confinement.write) if confinement.writable else confinement.write),
        hidden=unseen,
        ways=tuple((way.port, os.path.realpath(way.socket)) for way in confinement.ways),
        exe=exe,
        exe_sha256=digest,
        problem=problem,
    )


def _no_way(confinement: Confinement, tier: SandboxTier) -> str | None:
    """Return why the ways out cannot be provided, or None: without its own network a command would share the host's."""
    if confinement.ways and tier is not SandboxTier.NAMESPACES:
        return f"tier {tier} gives a command no network of its own, so it can have no way out: only tier ns can"
    if confinement.ways and confinement.network is Network.OPEN:
        return "a command with an open network has no use for a way out, and its port would be the machine's"
    for way in confinement.ways:
        path = os.path.realpath(way.socket)
        if not is_socket(path):
            return f"there is no socket {way.socket}"
        writable = (confinement.worktree, *confinement.write) if confinement.writable else confinement.write
        if any(Path(path).is_relative_to(os.path.realpath(folder)) for folder in writable):
            return f"{way.socket} lies where the command may put something else in its place"
    return None


def _hidden(confinement: Confinement, worktree: str, tier: SandboxTier) -> tuple[str, ...]:
    """Return the hidden paths that exist; raise `Unhidable` if one cannot be hidden."""
    if confinement.hidden and tier is not SandboxTier.NAMESPACES:
        raise hidden.Unhidable(
            f"tier {tier} gives a command no view of its own, so nothing can be hidden: only tier ns can"
        )
    unseen = hidden.existing(worktree, confinement.hidden)
    for path in (*confinement.read, *confinement.write):
        for spelling in (_plain(path), os.path.realpath(path)):
            if any(Path(spelling).is_relative_to(f"{worktree}/{each}") for each in unseen):
                raise hidden.Unhidable(f"{path} is to be shown and lies in what is to be hidden")
    return unseen


def _refuse_nonsense(command: Command) -> None:
    confinement = command.confinement
    ports = [way.port for way in confinement.ways]
    if len(ports) != len(set(ports)):
        raise UsageError("two ways out have the same port", next_step="give each a port of its own")
    sockets = [way.socket for way in confinement.ways]
    given = (*confinement.read, *confinement.write, *confinement.guards, *sockets)
    for path in (command.argv[0], confinement.worktree, *given):
        if not path.startswith("/") or "\0" in path:
            raise UsageError(f"{path!r} is not an absolute path", next_step="name it from the root on")
    for path in confinement.hidden:
        if (problem := hidden.path_problem(path)) is not None:
            raise UsageError(f"{path!r} cannot be hidden: {problem}", next_step="name it relative to the worktree")
    for path in (confinement.worktree, *confinement.write):
        if os.path.realpath(path) in _SYSTEM:
            raise UsageError(f"{path} belongs to the system", next_step="run the command in a folder of its own")
    parts = PurePosixPath(command.cwd).parts
    if command.cwd.startswith("/") or ".." in parts or "\0" in command.cwd:
        raise UsageError(f"{command.cwd!r} is not a folder inside the worktree", next_step="name it relative to it")
    words = (*command.argv, *confinement.env, *confinement.env.values())
    if any("\0" in word for word in words) or any("=" in name or not name for name in confinement.env):
        raise UsageError("an argument or a variable cannot be passed on", next_step="leave out NUL, '=' in names")


def _existing(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return each path that exists, as given and with links resolved, parents before their contents."""
    found = {spelling for path in paths if Path(path).exists() for spelling in (_plain(path), os.path.realpath(path))}
    return tuple(sorted(found, key=lambda path: (path.count("/"), path)))


def _plain(path: str) -> str:
    return os.path.normpath(path)


def _program(path: str) -> tuple[str | None, str | None]:
    exe = os.path.realpath(path)
    try:
        status = os.stat(exe)  # noqa: PTH116 -- os functions throughout, as with realpath
        return exe, _hashed(exe, status.st_mtime_ns, status.st_size, status.st_ino)
    except OSError:
        return None, None


@functools.lru_cache(maxsize=256)
def _hashed(path: str, _modified: int, _size: int, _inode: int) -> str:
    with Path(path).open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
