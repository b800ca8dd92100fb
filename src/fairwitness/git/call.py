"""Calls git in a way that nothing in a repository or a home folder can make it run another program.

Git gets no system or user configuration, no hooks, no pager, no editor, no transport, and an environment that is empty
except for PATH. Its directories are given explicitly, so that no file in them leads to others. Only the filters and
drivers that a repository's own configuration defines cannot be switched off. Therefore files are compared, added and
written only under a git directory of Fair Witness (`fairwitness.git.shadow`). Under the user's, only the commands of
`_UNDER_THE_USERS` are called: they read refs, history and values, or write refs and objects, and use no filter, driver
or work tree. `ConfigGuard` hashes the user's configuration when a repository is opened and compares it before every
later call.

`converse` runs one process: it writes and reads at the same time, up to a deadline and an output limit, and the process
never outlives the call.
"""

import contextlib
import functools
import hashlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from fairwitness.errors import InternalError, NotReady, NotStored, StoreError
from fairwitness.kit.files import read_given
from fairwitness.kit.safe_open import HeldFolder
from fairwitness.kit.text import visible

_ERROR_LIMIT = 64 << 10
_CHUNK = 1 << 16
RUN_FSCK = "look at the repository with `git fsck`"


class GitFailed(NotReady):
    """A git command failed; the message contains git's own words."""

    is_machine_fault = False


class GitOutput(NamedTuple):
    """The output and the exit code of a git command."""

    code: int
    out: bytes
    err: str

    @property
    def words(self) -> str:
        """Return the last error message that git printed."""
        lines = [line for line in self.err.strip().splitlines() if line.strip()]
        return visible(lines[-1]) if lines else f"exit code {self.code}"


def converse(
    command: list[str],
    *,
    name: str,
    folder: Path,
    environment: Mapping[str, str],
    stdin: bytes,
    timeout_s: float,
    limit: int,
) -> GitOutput:
    """Run a command until it ends and return its output; `name` is how errors call the command."""
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise GitFailed(
            f"{visible(str(folder))} cannot be entered: {error.strerror}", next_step="check the path"
        ) from None
    try:
        out, err = _talk(process, stdin, timeout_s, limit)
        return GitOutput(process.wait(), out, err.decode(errors="replace"))
    except TimeoutError:
        raise GitFailed(f"git {name} did not end within {timeout_s:g} s", next_step=RUN_FSCK) from None
    except OverflowError:
        raise GitFailed(
            f"git {name} printed more than the {limit} bytes allowed", next_step="ask about fewer files at once"
        ) from None
    finally:
        _end(process)


def _talk(process: "subprocess.Popen[bytes]", stdin: bytes, timeout_s: float, limit: int) -> tuple[bytes, bytes]:
    """Write and read at the same time, up to the deadline and the limit."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    give_up = time.monotonic() + timeout_s
    pieces: dict[int, list[bytes]] = {process.stdout.fileno(): [], process.stderr.fileno(): []}
    sizes = dict.fromkeys(pieces, 0)
    waiting = memoryview(stdin)
    with selectors.DefaultSelector() as selector:
        for number in pieces:
            selector.register(number, selectors.EVENT_READ)
        if waiting:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin.fileno(), selectors.EVENT_WRITE)
        else:
            process.stdin.close()
        while selector.get_map():
            ready = selector.select(max(give_up - time.monotonic(), 0))
            if not ready and time.monotonic() >= give_up:
                raise TimeoutError
            for key, _ in ready:
                number = key.fd
                if number not in pieces:
                    try:
                        waiting = waiting[os.write(number, waiting[:_CHUNK]) :]
                    except BrokenPipeError:  # git stopped reading; its exit code says why
                        waiting = waiting[:0]
                    if not waiting:
                        selector.unregister(number)
                        process.stdin.close()
                    continue
                piece = os.read(number, _CHUNK)
                if not piece:
                    selector.unregister(number)
                    continue
                sizes[number] += len(piece)
                if number == process.stdout.fileno() and sizes[number] > limit:
                    raise OverflowError
                if number == process.stdout.fileno() or sizes[number] <= _ERROR_LIMIT:
                    pieces[number].append(piece)
    while process.poll() is None:
        if time.monotonic() >= give_up:
            raise TimeoutError
        time.sleep(0.0001)  # both pipes are closed, so the process is about to end
    return b"".join(pieces[process.stdout.fileno()]), b"".join(pieces[process.stderr.fileno()])


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None and not stream.closed:
            stream.close()


_CONFIG_LIMIT = 8 << 20


@dataclass(frozen=True, slots=True)
class ConfigGuard:
    """The hash of the files that decide what git runs, taken when the repository was opened."""

    files: tuple[Path, ...]
    digest: str

    @classmethod
    def over(cls, files: tuple[Path, ...]) -> "ConfigGuard":
        """Return a guard with the current content of the files."""
        return cls(files, _digest(files))

    def check(self) -> None:
        """Raise `GitFailed` if the content of one of the files has changed."""
        if _digest(self.files) != self.digest:
            raise GitFailed(
                f"the repository's configuration changed while we worked ({self.files[0]})",
                next_step="find out who changed it, then start again",
            )


def _digest(files: tuple[Path, ...]) -> str:
    sum_ = hashlib.sha256()
    for file in files:
        try:
            held = b"holds " + hashlib.sha256(read_given(file, limit=_CONFIG_LIMIT)).digest()
        except NotStored:
            held = b"missing"
        except StoreError as error:
            held = error.what.encode(errors="replace")
        sum_.update(os.fsencode(file) + b"\0" + held + b"\0")
    return sum_.hexdigest()


_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.pager": "cat",
    "core.editor": "/bin/false",
    "core.sshCommand": "/bin/false",
    "core.attributesFile": "/dev/null",
    "core.alternateRefsCommand": "",
    "diff.external": "",
    "credential.helper": "",
    # A repository may allow a transport by name, which takes precedence over `protocol.allow`.
    "protocol.allow": "never",
    **{f"protocol.{name}.allow": "never" for name in ("ext", "file", "git", "ssh", "http", "https", "fd")},
    "submodule.recurse": "false",
    "diff.ignoreSubmodules": "all",
    "safe.bareRepository": "explicit",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
}
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    # Evidence is about the commits that exist, not about replacements by refs or graft files.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null",
    "LC_ALL": "C",
}
_OF_THE_PERSON = (
    *("HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "EMAIL", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"),
    *("GIT_CONFIG_NOSYSTEM", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
    *("GNUPGHOME", "GPG_TTY", "SSH_AUTH_SOCK", "DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "TERM"),
)
"""Environment variables needed to read the user's own configuration, or to sign with the user's key."""
_UNDER_THE_USERS = frozenset(
    {
        *("cat-file", "config", "for-each-ref", "hash-object", "ls-files", "ls-tree", "merge-base", "rev-list"),
        *("rev-parse", "symbolic-ref", "update-ref", "var", "worktree"),
    }
)
"""The commands that may be called under a configuration that is not ours: none of them runs what it names."""
TIMEOUT_S = 60.0
OUTPUT_LIMIT = 256 << 20


@dataclass(frozen=True, slots=True)
class GitDir:
    """A git directory with an explicit path: git never searches for one where an agent could have put it."""

    path: Path
    work_tree: Path | None = None
    common_dir: Path | None = None
    """The folder of refs, objects and configuration, if it is another one; a file `commondir` has no effect."""
    is_ours: bool = False
    """Whether Fair Witness wrote everything in the directory that git reads."""
    guard: ConfigGuard | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    def given(
        self,
        *,
        work_tree: Path | None = None,
        settings: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> "GitDir":
        """Return this directory with another work tree, more settings or more environment variables."""
        return replace(
            self,
            work_tree=work_tree or self.work_tree,
            env={**self.env, **(env or {})},
            settings={**self.settings, **(settings or {})},
        )

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        timeout_s: float = TIMEOUT_S,
        limit: int = OUTPUT_LIMIT,
        as_person: bool = False,
    ) -> bytes:
        """Return what a git command prints; raise `GitFailed` if it fails."""
        answer = self.ask(*arguments, stdin=stdin, timeout_s=timeout_s, limit=limit, as_person=as_person)
        if answer.code:
            raise failed(arguments[0], self.work_tree or self.path, answer)
        return answer.out

    def ask(
        self,
        *arguments: str,
        stdin: bytes = b"",
        timeout_s: float = TIMEOUT_S,
        limit: int = OUTPUT_LIMIT,
        as_person: bool = False,
    ) -> GitOutput:
        """Return the output and the exit code, for commands whose exit code is part of the answer."""
        if not self.is_ours and arguments[0] not in _UNDER_THE_USERS:
            raise InternalError(f"git {arguments[0]} may not be called under the configuration in {self.path}")
        if self.guard is not None:
            self.guard.check()
        common = {"GIT_COMMON_DIR": str((self.common_dir or self.path).absolute())}
        environment = {**_environment(as_person=as_person), **common, **self.env}
        with _held(self.work_tree) as held:
            # the work tree is the folder that git starts in, whatever becomes of its path meanwhile
            work_tree = self.work_tree if held is None else Path()
            where = [f"--git-dir={self.path.absolute()}", *([f"--work-tree={work_tree}"] if work_tree else [])]
            return converse(
                [_executable(environment["PATH"]), *where, *_options(self.settings), *arguments],
                name=arguments[0],
                folder=self.work_tree or self.path if held is None else held.through,
                environment=environment,
                stdin=stdin,
                timeout_s=timeout_s,
                limit=limit,
            )


@contextlib.contextmanager
def _held(work_tree: Path | None) -> Iterator[HeldFolder | None]:
    """Hold a work tree open during a call; raise `UnsafePath` if a link is in its place, None if there is no folder."""
    if work_tree is None or not os.path.lexists(work_tree):
        yield None
        return
    with HeldFolder(work_tree) as held:
        yield held


def failed(command: str, where: Path, answer: GitOutput) -> GitFailed:
    """Return the error for a failed command."""
    return GitFailed(f"git {command} failed in {visible(str(where))}: {answer.words}", next_step=RUN_FSCK)


def text_of(raw: bytes) -> str:
    """Decode a path or name that git printed; bytes that are not UTF-8 survive the round trip."""
    return raw.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """Encode a path or name for git."""
    return text.encode("utf-8", "surrogateescape")


@functools.cache
def _executable(path: str) -> str:
    found = shutil.which("git", path=path)
    if found is None:
        raise NotReady("git is not installed", next_step="install git 2.39 or newer")
    return found


def _path() -> str:
    """Return the absolute folders of PATH: a relative one such as `.` could be a folder that an agent wrote."""
    return os.pathsep.join(
        folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder.startswith("/")
    )


def _environment(*, as_person: bool) -> dict[str, str]:
    environment = {"PATH": _path(), **_ENVIRONMENT}
    if as_person:
        del environment["GIT_CONFIG_NOSYSTEM"], environment["GIT_CONFIG_GLOBAL"]
        environment |= {name: os.environ[name] for name in _OF_THE_PERSON if name in os.environ}
    return environment


def _options(more: Mapping[str, str]) -> list[str]:
    return [word for name, value in {**_SETTINGS, **more}.items() for word in ("-c", f"{name}={value}")]
