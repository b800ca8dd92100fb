"""Keys of providers: from the environment, from a command, or from a private file; never from fairwitness.toml.

Only the gateway has keys. A key is not shown by `repr`, cannot be pickled, and is removed from what a provider sends.
"""

import base64
import contextlib
import os
import re
import selectors
import signal
import stat
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

import platformdirs

from fairwitness.contracts.common.ids import is_safe_name
from fairwitness.errors import NotReady, UsageError
from fairwitness.kit.redaction import know

FOLDER = "keys"
"""Folder in the user's configuration folder; each file in it bears the name of its provider."""
STRUCK_OUT = b"[key]"
_LIMIT = 16 * 1024
_KEY = re.compile(r"[!-~]{8,4096}")
"""Visible characters only, so that a key cannot end a header; removing a shorter one would destroy texts."""
_LINKS = 8
COMMAND_S = 15.0


class Key:
    """A secret and its source."""

    __slots__ = ("_secret", "source")

    def __init__(self, secret: str, source: str) -> None:
        if _KEY.fullmatch(secret) is None:
            raise NotReady(
                f"what {source} holds is no key: it takes 8 to 4096 visible signs on one line",
                next_step="put the key there as the provider gave it",
            )
        self._secret = secret
        self.source = source
        know(secret)

    def reveal(self) -> str:
        """Return the key itself, for the header of a request."""
        return self._secret

    def spellings(self) -> tuple[bytes, ...]:
        """Return the forms in which a provider may echo it: plain, quoted for JSON or a URL, in base64."""
        plain = self._secret
        escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
        slashed = escaped.replace("/", "\\/")
        encoded = base64.b64encode(plain.encode()).decode().rstrip("=")
        found = {plain, escaped, slashed, quote(plain, safe=""), quote(plain, safe="").lower(), encoded}
        return tuple(sorted((each.encode() for each in found), key=len, reverse=True))

    def __repr__(self) -> str:
        return f"Key(from {self.source})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not to be written anywhere")


class Eraser:
    """Removes keys from a stream of bytes, also across pieces; holds back as little as possible."""

    def __init__(self, *keys: Key | None) -> None:
        self._needles = tuple(spelling for key in keys if key is not None for spelling in key.spellings())
        self._pattern = re.compile(b"|".join(map(re.escape, self._needles))) if self._needles else None
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """Return what can be sent on so far."""
        if self._pattern is None:
            return piece
        text = self._pattern.sub(STRUCK_OUT, self._held + piece)
        keep = self._begun(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def end(self) -> bytes:
        """Return what was held back at the end of the stream."""
        rest, self._held = self._held, b""
        return rest

    def clean(self, text: str) -> str:
        """Return a whole text without the keys."""
        if self._pattern is None:
            return text
        return self._pattern.sub(STRUCK_OUT, text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def _begun(self, text: bytes) -> int:
        """Return how many of the last bytes may be the beginning of a key."""
        for length in range(min(len(text), len(self._needles[0]) - 1), 0, -1):
            tail = text[-length:]
            if any(needle.startswith(tail) for needle in self._needles):
                return length
        return 0


def find_key(
    provider: str,
    *,
    variable: str | None = None,
    command: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    command_s: float = COMMAND_S,
) -> Key:
    """The key of a provider: of the environment variable, of `key_cmd`, or of its file, whichever is there first.

    A way that was set and does not work is an error, not a reason to try the next: it would be another key.
    """
    if not is_safe_name(provider):
        raise UsageError(f"{provider!r} cannot be the name of a provider", next_step="use letters, digits and '-'")
    environment = os.environ if environment is None else environment
    folder = platformdirs.user_config_path("fairwitness", appauthor=False) / FOLDER if folder is None else folder
    if variable is not None and (secret := environment.get(variable, "").strip()):
        return Key(secret, f"the environment variable {variable}")
    if command:
        return Key(_first_line(_output_of(provider, command, environment, command_s)), f"the key_cmd of {provider}")
    if (content := _private(folder / provider)) is not None:
        return Key(_first_line(content), f"the file {folder / provider}")
    name = variable or "the provider's environment variable"
    raise NotReady(
        f"there is no key for {provider}: set {name}, or a key_cmd that prints it, or put it into "
        f"{folder / provider} (mode 0600)",
        next_step="choose one of the three; a key in fairwitness.toml is refused",
    )


def _first_line(content: bytes) -> str:
    lines = content.decode("utf-8", "replace").splitlines()
    return lines[0].strip() if lines else ""


def _output_of(provider: str, argv: tuple[str, ...], environment: Mapping[str, str], limit_s: float) -> bytes:
    """What the command printed. What it says beside that is left unread: it might hold the key."""
    next_step = f"run {argv[0]} by hand and see what it says"
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise NotReady(
            f"the key_cmd of {provider} could not be started: {type(error).__name__}", next_step=next_step
        ) from None
    assert process.stdout is not None
    give_up = time.monotonic() + limit_s
    try:
        printed = _read(process.stdout.fileno(), give_up)
        if len(printed) > _LIMIT:
            raise NotReady(f"the key_cmd of {provider} prints more than a key", next_step=next_step)
        code = process.wait(max(0.0, give_up - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise NotReady(f"the key_cmd of {provider} did not end within {limit_s:g} s", next_step=next_step) from None
    finally:
        with contextlib.suppress(ProcessLookupError):  # also what it left running
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()
    if code != 0:
        raise NotReady(f"the key_cmd of {provider} ended with {code}", next_step=next_step)
    return printed


def _read(pipe: int, give_up: float) -> bytes:
    """Read up to the limit and the deadline: a process that the command left behind may hold the pipe open."""
    printed = b""
    with selectors.DefaultSelector() as waiting:
        waiting.register(pipe, selectors.EVENT_READ)
        while len(printed) <= _LIMIT and waiting.select(max(0.0, give_up - time.monotonic())):
            if not (piece := os.read(pipe, _LIMIT)):
                break
            printed += piece
    return printed


def _private(path: Path) -> bytes | None:
    """Return the content of a file that only the user can access; None if there is none."""
    try:
        _refuse_foreign_links(path)
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotReady(f"the key file {path} cannot be read: {error.strerror}", next_step=f"chmod 600 {path}") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise NotReady(f"the key file {path} is no plain file of yours", next_step="remove it, and write a new one")
        if status.st_mode & 0o077:
            raise NotReady(
                f"the key file {path} can be read or written by others (mode {stat.S_IMODE(status.st_mode):04o})",
                next_step=f"chmod 600 {path}, and think of the key as known to others",
            )
        return os.read(handle, _LIMIT)
    finally:
        os.close(handle)


def _refuse_foreign_links(path: Path) -> None:
    """Raise `NotReady` for a link that another user made or could have made: they would choose the key."""
    for _ in range(_LINKS):
        above = path.parent.stat()
        if above.st_uid not in (0, os.geteuid()) or above.st_mode & 0o022:
            raise NotReady(
                f"the folder {path.parent} of the key file can be written by others",
                next_step=f"chmod 700 {path.parent}",
            )
        status = os.lstat(path)
        if not stat.S_ISLNK(status.st_mode):
            return
        if status.st_uid != os.geteuid():
            raise NotReady(f"{path} is a link that another user made", next_step="remove it, and write a new file")
        path = path.parent / path.readlink()
    raise NotReady(f"the key file is behind more than {_LINKS} links", next_step="put the key itself there")
