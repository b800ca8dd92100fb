"""A Postgres of our own for the tests: from the binaries of this machine, on a private socket, as an ordinary user."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Server:
    """A server in a folder of its own that may be stopped without harm to other tests."""

    home: Path

    @property
    def url(self) -> str:
        """The address of its database."""
        return f"postgresql://fairwitness@/postgres?host={self.home}"

    def make(self) -> None:
        """Lay out its files."""
        self._run("initdb", "-U", "fairwitness", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")

    def start(self) -> None:
        """Start it; after a failure it repairs itself from its log."""
        options = f"-k {self.home} -c listen_addresses='' -c max_connections=80 -c log_min_messages=fatal"
        self._run("pg_ctl", "-w", "-t", "60", "-l", str(self.home / "log"), "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop it, as if its power had failed unless another mode is given."""
        self._run("pg_ctl", "-m", mode, "stop")

    def terminate(self) -> int:
        """End every connection, as an administrator would; return how many there were."""
        import psycopg

        sql = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        with psycopg.connect(self.url, autocommit=True) as connection:
            return len(connection.execute(sql).fetchall())

    def _run(self, program: str, *words: str) -> None:
        tools = binaries()
        assert tools is not None
        command = [str(tools / program), "-D", str(self.home / "data"), *words]
        as_user = "nobody" if os.getuid() == 0 else None
        subprocess.run(command, check=True, capture_output=True, cwd=self.home, user=as_user)


@contextmanager
def own_server() -> Iterator[Server]:
    """A running server of one test."""
    # a socket's path may have 107 characters, which pytest's own folders exceed
    made = Server(Path(tempfile.mkdtemp(prefix="fairwitness-pg-")))
    if os.getuid() == 0:
        shutil.chown(made.home, "nobody")
    try:
        made.make()
        made.start()
        try:
            yield made
        finally:
            with suppress(subprocess.CalledProcessError):  # the test may have stopped it
                made.stop()
    finally:
        shutil.rmtree(made.home, ignore_errors=True)


@contextmanager
def server() -> Iterator[str]:
    """A running server; yields the address of its database."""
    with own_server() as made:
        yield made.url
