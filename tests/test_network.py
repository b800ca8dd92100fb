"""No telemetry: commands connect to nothing that the user did not configure.

Every Python process of a command writes down each address it looks up or connects to; where strace works, every
process does. Sockets inside a sandbox have no way out and are the sandbox's own tests.
"""

import ipaddress
import re
import subprocess
from pathlib import Path

import pytest

from cli.runner import FAIRWITNESS, fairwitness
from store.children import strace_works
from support.fixtures import ROOT

WATCHER = """
import os, sys

def _watch(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
        address = arguments[1] if event != "socket.getaddrinfo" else arguments[0]
        host = address[0] if isinstance(address, tuple) else address
        with open(os.environ["WATCHED_SOCKETS"], "a") as log:
            log.write(f"{event} {host!r}\\n")

sys.addaudithook(_watch)
"""
COMMANDS = (
    ("--help",),
    ("status",),
    ("doctor",),
    ("agents", "list"),
    ("schema", "list"),
    ("verify", "--base", "HEAD~1"),
    ("verify", "--base", "HEAD~1", "--json"),
)
_CONNECT = re.compile(r'connect\(\d+, \{sa_family=AF_INET6?.*?(?:inet_addr\("|inet_pton\(AF_INET6, ")([^"]+)')


def is_outside(host: str) -> bool:
    """Return True for an address that is not this machine's own."""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host not in ("", "localhost") and not host.startswith(("/", "\\0"))


def _repository(folder: Path) -> Path:
    """A small Python project with two commits."""
    folder.mkdir()
    git = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-C", str(folder))
    subprocess.run([*git, "init", "-q"], check=True)
    for number in (1, 2):
        (folder / "shop.py").write_text(f"PRICE = {number}\n")
        (folder / "test_shop.py").write_text("import shop\n\n\ndef test_price():\n    assert shop.PRICE > 0\n")
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", f"price {number}"], check=True)
    return folder


def _watched(folder: Path, *arguments: str, cwd: Path) -> list[str]:
    """Return the hosts that the Python processes of a command looked up or connected to."""
    (folder / "watch").mkdir(exist_ok=True)
    (folder / "watch" / "sitecustomize.py").write_text(WATCHER)
    log = folder / "sockets"
    log.write_text("")
    done = fairwitness(*arguments, cwd=cwd, PYTHONPATH=str(folder / "watch"), WATCHED_SOCKETS=str(log))
    assert done.returncode in (0, 1, 3), done.stderr
    return [line.split(" ", 1)[1].strip("'b") for line in log.read_text().splitlines()]


@pytest.mark.usefixtures("own_home")
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_connects_to_nothing_outside(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    hosts = _watched(tmp_path, *arguments, cwd=_repository(tmp_path / "shop"))
    assert [host for host in hosts if is_outside(host)] == []


@pytest.mark.usefixtures("own_home")
@pytest.mark.parametrize(
    "demo",
    [
        pytest.param((), marks=pytest.mark.width("full")),
        *(pytest.param((flag,), marks=pytest.mark.width("sweep")) for flag in ("--light", "--forge", "--autopilot")),
    ],
    ids=" ".join,
)
def test_a_whole_run_connects_to_nothing_outside(tmp_path: Path, demo: tuple[str, ...]) -> None:
    hosts = _watched(tmp_path, "demo", *demo, "--dir", str(tmp_path / "demo"), cwd=tmp_path)
    assert [host for host in hosts if is_outside(host)] == []


@pytest.mark.usefixtures("own_home")
@pytest.mark.skipif(not strace_works(), reason="strace is missing or may not trace")
def test_no_process_of_a_verification_connects_to_anything_outside(tmp_path: Path) -> None:
    log = tmp_path / "connects"
    command = [
        "strace",
        "-f",
        "-qq",
        "-e",
        "trace=connect",
        "-o",
        str(log),
        str(FAIRWITNESS),
        "verify",
        "--base",
        "HEAD~1",
    ]
    subprocess.run(command, cwd=_repository(tmp_path / "shop"), capture_output=True, check=False, timeout=300)
    assert [host for host in _CONNECT.findall(log.read_text()) if is_outside(host)] == []


def test_the_watcher_sees_a_connection(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WATCHER)
    program = "import socket\ntry: socket.create_connection(('127.0.0.1', 9), 1)\nexcept OSError: pass"
    environment = {"PYTHONPATH": str(tmp_path), "WATCHED_SOCKETS": str(tmp_path / "log"), "PATH": "/usr/bin:/bin"}
    subprocess.run([FAIRWITNESS.with_name("python"), "-c", program], env=environment, check=True)
    assert "socket.connect '127.0.0.1'" in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("host", "outside"),
    [("127.0.0.1", False), ("::1", False), ("localhost", False), ("/run/x.sock", False), ("192.0.2.1", True),
     ("telemetry.example.org", True)],
)  # fmt: skip
def test_only_this_machine_is_inside(host: str, outside: bool) -> None:
    assert is_outside(host) is outside


def test_the_promise_is_in_the_readme() -> None:
    promise = (
        "No telemetry: Fair Witness connects only to the model providers, registries and collectors you configure."
    )
    assert promise in (ROOT / "README.md").read_text()
