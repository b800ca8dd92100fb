"""The store of built environments: `<state>/env/<digest>/`, usable once its marker file says that it is complete.

Each try builds in a new folder under its final name, because installed scripts contain the path of their interpreter.
The marker, which names the folder, is written last and atomically. A crash before that leaves an unused folder, which
the next builder of the same environment removes. Builders of one environment wait for each other.
"""

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command, Confinement, End, Network, SandboxLimits
from fairwitness.errors import BadDocument, StoreError
from fairwitness.kit.files import read_plain, replace_file
from fairwitness.kit.folder_trees import remove_tree
from fairwitness.kit.json_text import parse, render
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import visible
from fairwitness.sandbox.runner import Finished, Runner
from fairwitness.verify.environment.model import NoEnvironment

MARKER = "complete.json"
NOTES_FORM = 2
"""Version of a builder's notes; it is part of the digest, so a new version builds every environment again."""
_TRY = "try-"
_MARKER_LIMIT = 1 << 20
_NETWORK_WORDS = (
    "enotfound", "eai_again", "econnrefused", "econnreset", "etimedout", "enetunreach", "enotcached",
    "name resolution", "network is unreachable", "connection refused", "could not resolve", "failed to fetch",
    "connecttimeout", "read timed out", "max retries exceeded", "no such host", "dns error", "newconnectionerror",
)  # fmt: skip

_TREE_WORDS = (
    "eusage",
    "resolutionimpossible",
    "conflicting dependencies",
    "failed to parse",
    "does not match the hash",
)


@dataclass(frozen=True, slots=True)
class BuiltEnvironment:
    """A complete environment: its folder, and the notes of its builder."""

    folder: Path
    notes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EnvironmentStore:
    """The folder of environments, and the sandbox in which foreign programs run while they are built."""

    folder: Path
    runner: Runner
    wall_s: float
    min_tier: SandboxTier = SandboxTier.UID
    cancel: Event | None = None

    def kept(
        self, digest: str, build: Callable[[Path], dict[str, Any] | NoEnvironment]
    ) -> BuiltEnvironment | NoEnvironment:
        """Return the environment of this digest: the existing one, or one that `build` creates in a new folder."""
        place = self.folder / digest
        found = self._whole(place)
        if found is not None:
            return found
        place.mkdir(parents=True, exist_ok=True)
        with _build_lock(place / "lock"):
            found = self._whole(place)  # another process may have made it while we waited
            if found is not None:
                return found
            for left in place.glob(f"{_TRY}*"):
                remove_tree(left)
            trying = Path(tempfile.mkdtemp(prefix=_TRY, dir=place))
            trying.chmod(0o755)  # one tier runs commands as another user; the state folder decides who may enter
            killpoint("environment.build.begun")
            notes: dict[str, Any] | NoEnvironment | None = None
            try:
                notes = build(trying)
            finally:
                if not isinstance(notes, dict):
                    remove_tree(trying)
            if isinstance(notes, NoEnvironment):
                return notes
            killpoint("environment.build.unmarked")
            replace_file(place, MARKER, render({"folder": trying.name, "notes": notes}).encode())
            return BuiltEnvironment(trying, notes)

    def _whole(self, place: Path) -> BuiltEnvironment | None:
        try:
            told = parse(read_plain(place, MARKER, limit=_MARKER_LIMIT).decode())
            folder = place / str(told["folder"])
            notes = told["notes"]
        except (StoreError, BadDocument, UnicodeDecodeError, KeyError, TypeError):
            return None
        return (
            BuiltEnvironment(folder, notes)
            if folder.parent == place and folder.is_dir() and isinstance(notes, dict)
            else None
        )

    def ask(self, argv: Sequence[str], *, read: Sequence[Path], env: dict[str, str] | None = None) -> Finished:
        """Run a program for its output only: without write access and without network."""
        nothing = self.folder / "nothing"
        nothing.mkdir(parents=True, exist_ok=True)
        return self.run(argv, worktree=nothing, read=read, env=env or {}, writable=False, wall_s=60.0)

    def run(
        self,
        argv: Sequence[str],
        *,
        worktree: Path,
        read: Sequence[Path],
        env: dict[str, str],
        cwd: str = ".",
        writable: bool = True,
        write: Sequence[Path] = (),
        network: bool = False,
        wall_s: float | None = None,
    ) -> Finished:
        """Run a foreign program in the sandbox."""
        plain = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONNOUSERSITE": "1"}  # the sandbox sets HOME
        command = Command(
            argv=tuple(argv),
            cwd=cwd,
            confinement=Confinement(
                worktree=str(worktree),
                writable=writable,
                read=tuple(dict.fromkeys(str(path) for path in read)),
                write=tuple(map(str, write)),
                network=Network.OPEN if network else Network.OFF,
                env={**plain, **env},
                min_tier=self.min_tier,
            ),
            limits=SandboxLimits(
                wall_s=wall_s or self.wall_s,
                cpu_s=3600,
                memory=8 << 30,  # includes what is built in the temporary folder, which is in memory
                memory_process=4 << 30,
                processes=512,
                file_size=4 << 30,
                disk=16 << 30,
                temporary=4 << 30,
                open_files=4096,
            ),
            purpose="prepare dependencies",
            observe=False,
        )
        return self.runner.run(command, cancel=self.cancel)


@contextmanager
def _build_lock(lock: Path) -> Iterator[None]:
    """Hold the lock of an environment's folder; it is released when its process ends, also by a crash."""
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def digest_of(*facts: Any) -> str:
    """Return the digest of everything an environment depends on, including the version of its notes."""
    return hashlib.sha256(json.dumps([NOTES_FORM, facts], sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def failure(what: str, finished: Finished, *, network: bool, next_step: str = "") -> NoEnvironment:
    """Return why a command of the preparation failed: its error line, and whether the machine is the cause."""
    end = finished.result.end
    if end in (End.SANDBOX_ERROR, End.CANCELLED):
        said = finished.result.sandbox_error or f"it was {end}"
        return NoEnvironment(f"{what} could not be run: {said}", environmental=True, next_step=next_step)
    if end in (End.TIMEOUT, End.LIMIT):
        return NoEnvironment(
            f"{what} was stopped at its {finished.result.limit_hit or 'wall'} limit", environmental=True
        )
    if end is End.VIOLATION:
        tried = next((f"{one.kind} {one.path}" for one in finished.result.violations), "something")
        return NoEnvironment(f"{what} violated the sandbox: {visible(tried)}", environmental=False, next_step=next_step)
    output = (finished.stderr + b"\n" + finished.stdout).decode(errors="replace")
    # without network nothing can be fetched, so a failure is no evidence about the tree
    plainly = any(word in output.lower() for word in _TREE_WORDS)
    environmental = not plainly and (not network or any(word in output.lower() for word in _NETWORK_WORDS))
    line = meaningful(finished.stderr) or meaningful(finished.stdout) or f"exit code {finished.result.exit_code}"
    return NoEnvironment(f"{what} failed: {line}", environmental=environmental, next_step=next_step)


def meaningful(output: bytes) -> str:
    """Return the line of an output that states the error: the last one with "error" in it, or else the last line."""
    text = visible_lines(output)
    npm = [line.removeprefix("npm error ") for line in text if line.startswith("npm error ")]
    if npm:  # npm prints its message first and hints after it
        said = [line for line in npm if not line.startswith(("code ", "errno ", "syscall "))]
        pointed = [line for line in said if line.startswith(("Invalid:", "Missing:"))]
        return " ".join((npm[0], *(pointed or said)[:1]))[:300] if said else npm[0][:300]
    named = [line for line in text if "error" in line.lower() and not line.lower().startswith(("note:", "hint:"))]
    return (named or text or [""])[-1][:300]


def visible_lines(output: bytes) -> list[str]:
    """Return the lines of an output, safe to display."""
    return [visible(line.strip()) for line in output.decode(errors="replace").splitlines() if line.strip()]
