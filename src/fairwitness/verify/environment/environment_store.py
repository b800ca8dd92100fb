"""Where environments are made and kept: `<state>/env/<digest>/`, used only once their marker says they are whole.

Each try builds in a folder of its own, under the name it keeps, since an installed script knows its interpreter by
path. The marker that names the folder is written last, in one step. Whoever dies before that leaves a folder that
nobody uses and the next builder of the same environment removes; builders of one environment take turns.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command, Confinement, End, Limits, Network
from fairwitness.errors import BadDocument, StoreError
from fairwitness.kit.files import read_plain, replace_file
from fairwitness.kit.json_text import parse, render
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import visible
from fairwitness.sandbox.runner import Finished, Runner
from fairwitness.verify.environment.model import NoEnvironment

MARKER = "complete.json"
NOTES_FORM = 2
"""Of what a builder writes down: another form makes another environment, since nobody reads the old one any more."""
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
    """A whole environment: its folder, and what its builder wrote down about it."""

    folder: Path
    notes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EnvironmentStore:
    """The folder of environments, and the sandbox that everything foreign runs in while they are made."""

    folder: Path
    runner: Runner
    wall_s: float
    min_tier: SandboxTier = SandboxTier.UID
    cancel: Event | None = None

    def kept(
        self, digest: str, build: Callable[[Path], dict[str, Any] | NoEnvironment]
    ) -> BuiltEnvironment | NoEnvironment:
        """The environment of this digest: the one that is there, or else the one that `build` makes in a folder."""
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
                remove(left)
            trying = Path(tempfile.mkdtemp(prefix=_TRY, dir=place))
            trying.chmod(0o755)  # one tier runs commands as another user; who may enter is the state folder's to say
            killpoint("environment.build.begun")
            notes: dict[str, Any] | NoEnvironment | None = None
            try:
                notes = build(trying)
            finally:
                if not isinstance(notes, dict):
                    remove(trying)
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
        """Runs a program that only says something: it may write nothing and talk to nobody."""
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
        """Runs a foreign program in the sandbox."""
        plain = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONNOUSERSITE": "1"}  # a home is the sandbox's to give
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
            limits=Limits(
                wall_s=wall_s or self.wall_s,
                cpu_s=3600,
                memory=4 << 30,
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


def remove(folder: Path) -> None:
    """Takes a folder away, also one that holds folders without the right to write."""
    for parent, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(parent) / name
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _build_lock(lock: Path) -> Iterator[None]:
    """One builder at a time; the lock goes with its process, also by a crash."""
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def digest_of(*facts: Any) -> str:
    """One text for everything that an environment depends on, the form of its notes included."""
    return hashlib.sha256(json.dumps([NOTES_FORM, facts], sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def failure(what: str, finished: Finished, *, network: bool, next_step: str = "") -> NoEnvironment:
    """Why a command of the preparation failed: its last line that means something, and whose fault it is."""
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
        return NoEnvironment(
            f"{what} tried what it may not: {visible(tried)}", environmental=False, next_step=next_step
        )
    output = (finished.stderr + b"\n" + finished.stdout).decode(errors="replace")
    # without a network nothing that is missing can be fetched, so a failure says nothing about the tree
    plainly = any(word in output.lower() for word in _TREE_WORDS)
    environmental = not plainly and (not network or any(word in output.lower() for word in _NETWORK_WORDS))
    line = meaningful(finished.stderr) or meaningful(finished.stdout) or f"exit code {finished.result.exit_code}"
    return NoEnvironment(f"{what} failed: {line}", environmental=environmental, next_step=next_step)


def meaningful(output: bytes) -> str:
    """The line of an output that says what went wrong: the last that names an error, or else its last line."""
    text = visible_lines(output)
    npm = [line.removeprefix("npm error ") for line in text if line.startswith("npm error ")]
    if npm:  # its message comes first, and its manual after it
        said = [line for line in npm if not line.startswith(("code ", "errno ", "syscall "))]
        pointed = [line for line in said if line.startswith(("Invalid:", "Missing:"))]
        return " ".join((npm[0], *(pointed or said)[:1]))[:300] if said else npm[0][:300]
    named = [line for line in text if "error" in line.lower() and not line.lower().startswith(("note:", "hint:"))]
    return (named or text or [""])[-1][:300]


def visible_lines(output: bytes) -> list[str]:
    """The lines of an output as a person may see them."""
    return [visible(line.strip()) for line in output.decode(errors="replace").splitlines() if line.strip()]
