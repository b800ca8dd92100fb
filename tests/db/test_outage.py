"""A server that is lost in the middle: calls outlast it, nothing is written twice, and patience has an end."""

import contextlib
import re
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairwitness.db.base import Transaction
from fairwitness.db.postgres import Outage, PostgresDatabase
from fairwitness.errors import DatabaseAway
from support.postgres import Server, own_server

pytestmark = [pytest.mark.req("P16"), pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def server(postgres_url: str) -> Iterator[Server]:
    """A server of this module."""
    with own_server() as made:
        yield made


@pytest.fixture
def database(server: Server) -> Iterator[PostgresDatabase]:
    """A patient database with one empty table."""
    made = PostgresDatabase(server.url, outage=Outage(60.0))
    made.write(lambda transaction: transaction.run("DROP TABLE IF EXISTS t"))
    made.write(lambda transaction: transaction.run("CREATE TABLE t (n INTEGER)"))
    yield made
    made.close()


def insert(transaction: Transaction) -> str:
    """The least write there is."""
    transaction.run("INSERT INTO t VALUES (1)")
    return "written"


def count(database: PostgresDatabase) -> int:
    """How often it was written."""
    return int(database.read("SELECT count(*) FROM t")[0][0])


def test_calls_outlast_a_restart_and_cut_connections(server: Server, database: PostgresDatabase) -> None:
    assert database.write(insert) == "written"
    server.stop()
    threading.Timer(1.5, server.start).start()
    assert database.write(insert) == "written"
    assert count(database) == 2
    assert server.terminate() >= 2
    assert count(database) == 2
    assert server.terminate() >= 1
    assert database.look(lambda read: read("SELECT count(*) FROM t")) == [(2,)]

    def cut(transaction: Transaction) -> int:
        tries.append(1)
        insert(transaction)
        if len(tries) == 1:
            server.terminate()
        insert(transaction)
        return len(tries)

    tries: list[int] = []
    assert database.write(cut) == 2, "a transaction that was cut is begun again"
    assert count(database) == 4


def test_patience_ends_by_time_and_by_request_and_says_since_when(server: Server) -> None:
    brief, asked = Outage(1.0), Outage(60.0)
    first, second = PostgresDatabase(server.url, outage=brief), PostgresDatabase(server.url, outage=asked)
    server.stop()
    try:
        with pytest.raises(DatabaseAway, match=r"^the database has not answered since \d\d:\d\d: "):
            first.read("SELECT 1")
        assert brief.is_over
        threading.Timer(0.5, asked.end).start()
        began = time.monotonic()
        with pytest.raises(DatabaseAway):
            second.write(insert)
        assert time.monotonic() - began < 30
        assert asked.since is not None
        assert re.fullmatch(r"\d\d:\d\d", asked.since)
    finally:
        server.start()
    assert first.read("SELECT 1") == [(1,)], "it can be used again"
    assert brief.since is None
    first.close()
    second.close()


def test_a_new_database_does_not_wait_for_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DatabaseAway):
        PostgresDatabase(f"postgresql://nobody@/postgres?host={tmp_path}", outage=Outage(600.0))


class Proxy:
    """Passes everything between a client and the server, until the client commits: then it cuts the line once."""

    def __init__(self, server: Server, folder: Path, *, forward: bool) -> None:
        self._server, self._forward = server, forward
        self.cuts = 0
        self.is_armed = False
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(folder / ".s.PGSQL.5432"))
        self._socket.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                upstream = socket.socket(socket.AF_UNIX)
                upstream.connect(str(self._server.home / ".s.PGSQL.5432"))
                threading.Thread(target=self._up, args=(client, upstream), daemon=True).start()
                threading.Thread(target=self._down, args=(client, upstream), daemon=True).start()

    def _up(self, client: socket.socket, upstream: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if b"COMMIT" in data and b"INSERT" not in data and not self.cuts and self.is_armed:
                    self.cuts += 1
                    client.shutdown(socket.SHUT_RDWR)
                    if self._forward:
                        upstream.sendall(data)
                        time.sleep(0.3)  # until it is committed; its answer has nowhere to go
                    break
                upstream.sendall(data)
        client.close()
        upstream.close()

    def _down(self, client: socket.socket, upstream: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := upstream.recv(65536):
                client.sendall(data)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Accept nobody any more."""
        self._socket.close()


@pytest.mark.parametrize("forward", [True, False], ids=["the answer is lost", "the request is lost"])
def test_a_commit_without_an_answer_is_written_exactly_once(
    server: Server, database: PostgresDatabase, forward: bool
) -> None:
    with tempfile.TemporaryDirectory(prefix="fw-proxy-") as folder:
        proxy = Proxy(server, Path(folder), forward=forward)
        through = PostgresDatabase(f"postgresql://fairwitness@/postgres?host={folder}", outage=Outage(60.0))
        try:
            through.read("SELECT 1")
            proxy.is_armed = True
            assert through.write(insert) == "written"
        finally:
            through.close()
            proxy.close()
    assert proxy.cuts == 1
    assert count(database) == 1
