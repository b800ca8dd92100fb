"""A Postgres of our own for the tests: from the binaries of this machine, on a private socket, as an ordinary user."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REQUIRED = "FAIRWITNESS_REQUIRE_POSTGRES"
"""Set by CI: there a missing Postgres fails the tests instead of skipping them."""


def binaries() -> Path | None:
    """The folder of initdb and pg_ctl, on PATH or where Debian puts them."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return installed[-1].parent if installed else None


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A running server; yields the address of its database."""
    tools = binaries()
    assert tools is not None
    user = "nobody" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
    # a socket's path may have 107 characters, which pytest's own folders exceed
    home = Path(tempfile.mkdtemp(prefix="fairwitness-pg-"))
    if os.getuid() == 0:
        shutil.chown(home, user)
    data = home / "data"

    def run(*command: str | Path) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd=home, user=user if os.getuid() == 0 else None)

    try:
        run(tools / "initdb", "-D", data, "-U", "fairwitness", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        options = f"-k {home} -c listen_addresses='' -c max_connections=60 -c log_min_messages=fatal"
        run(tools / "pg_ctl", "-D", data, "-w", "-t", "60", "-l", home / "log", "-o", options, "start")
        try:
            yield f"postgresql://fairwitness@/postgres?host={home}"
        finally:
            run(tools / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)
