"""Whoever an attempt might talk to: listeners, a terminal, a key and a piece of shared memory, all of our own."""

import ctypes
import fcntl
import os
import pty
import selectors
import socket
import tempfile
import termios
import threading
import time
import tty
from contextlib import suppress
from pathlib import Path

from sandbox.escapes.attacks.calls import system_call

_USER_KEYRING = -4
_SETPERM, _UNLINK = 5, 9
_ALL_FOR_OWNER = 0x3F3F0000
_CREATE_PRIVATE = 0o1600  # a new segment that only the owner may read


class Listeners:
    """Sockets on this machine's own loopback and file system, and everything they heard."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fairwitness-listen-"))
        self.abstract = f"fairwitness-escape-{self.folder.name}"
        self.file = self.folder / "s"
        self._heard: list[bytes] = []
        self._selector = selectors.DefaultSelector()
        tcp = self._open(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        udp = self._open(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self._open(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.abstract}")
        for name, kind in (("stream", socket.SOCK_STREAM), ("datagram", socket.SOCK_DGRAM)):
            path = f"{self.file}.{name}"
            self._open(socket.AF_UNIX, kind, path)
            Path(path).chmod(0o777)
        self.folder.chmod(0o711)
        self.tcp: int = tcp.getsockname()[1]
        self.udp: int = udp.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def _open(self, family: int, kind: int, address: tuple[str, int] | str) -> socket.socket:
        listening = socket.socket(family, kind)
        listening.bind(address)
        if kind == socket.SOCK_STREAM:
            listening.listen(16)
        listening.setblocking(False)
        self._selector.register(listening, selectors.EVENT_READ, kind == socket.SOCK_STREAM)
        return listening

    def _listen(self) -> None:
        while True:
            for key, _ in self._selector.select():
                ready = key.fileobj
                assert isinstance(ready, socket.socket)
                with suppress(OSError):
                    if key.data:
                        caller, _ = ready.accept()
                        caller.setblocking(False)
                        self._selector.register(caller, selectors.EVENT_READ, False)
                        self._heard.append(b"somebody connected")
                    elif said := ready.recv(4096):
                        self._heard.append(said)
                    elif ready.type == socket.SOCK_STREAM:
                        self._selector.unregister(ready)
                        ready.close()

    def heard(self, scene: str, *, patience_s: float) -> bool:
        """Whether anybody spoke in the name of a scene."""
        give_up = time.monotonic() + patience_s
        while True:
            if any(scene.encode() in said for said in self._heard):
                return True
            if time.monotonic() > give_up:
                return False
            time.sleep(0.01)

    def close(self) -> None:
        for name in ("stream", "datagram"):
            Path(f"{self.file}.{name}").unlink(missing_ok=True)
        self.folder.rmdir()


def free_port() -> int:
    """A port of the loopback that nobody has at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def answers(port: int) -> bytes:
    """What somebody who listens on the loopback says."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.5) as caller:
        caller.settimeout(0.5)
        return caller.recv(4096)
    return b""


class Terminal:
    """A controlling terminal of this process, which must lead a session of its own."""

    def __init__(self) -> None:
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        fcntl.ioctl(self._slave, termios.TIOCSCTTY, 0)

    def characters(self) -> bytes:
        """What was pushed into it or written on it since the last look."""
        came = b""
        with suppress(BlockingIOError):
            came += os.read(self._master, 4096)
        waiting = int.from_bytes(fcntl.ioctl(self._slave, termios.FIONREAD, b"\0\0\0\0"), "little")
        return came + (os.read(self._slave, waiting) if waiting else b"")


class Key:
    """A key in the user's keyring; its number is 0 where the kernel keeps none for us."""

    def __init__(self, secret: str) -> None:
        self.name = f"fairwitness-escape-{os.getpid()}"
        self.number = 0
        with suppress(OSError):
            payload = f"{secret}-key".encode()
            self.number = system_call("add_key", b"user", self.name.encode(), payload, len(payload), _USER_KEYRING)
            system_call("keyctl", _SETPERM, self.number, _ALL_FOR_OWNER, 0, 0)

    def remove(self) -> None:
        if self.number:
            system_call("keyctl", _UNLINK, self.number, _USER_KEYRING, 0, 0)


class SharedMemory:
    """A System V segment of the user with a secret in it; its number is -1 where there is none."""

    def __init__(self, secret: str) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._library.shmat.restype = ctypes.c_void_p
        self.number = int(self._library.shmget(0, 4096, _CREATE_PRIVATE))
        if self.number >= 0:
            address = self._library.shmat(self.number, None, 0)
            text = f"{secret}-shm".encode()
            ctypes.memmove(address, text, len(text))

    def remove(self) -> None:
        if self.number >= 0:
            self._library.shmctl(self.number, 0, None)
