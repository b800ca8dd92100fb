"""Postgres: a password is told to nobody, a lost connection is made anew, and a careless server is refused."""

import traceback
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote

import pytest

from db.ledger_jobs import assert_whole, write
from fairwitness.db.base import Transaction
from fairwitness.db.postgres import PostgresDatabase
from fairwitness.errors import DatabaseUnusable
from fairwitness.ledger.ledger import Ledger

SECRET = "hunter2-p@ss/word?#%"
PARTS = ("hunter2", "p@ss", "word?", quote(SECRET, safe=""))


@pytest.fixture
def roles(empty_postgres: str) -> Iterator[str]:
    """The server, with the role's own settings put back afterwards."""
    import psycopg

    yield empty_postgres
    with psycopg.connect(empty_postgres, autocommit=True) as connection:
        connection.execute("ALTER ROLE fairwitness RESET ALL")


def with_password(url: str, password: str) -> str:
    return url.replace("fairwitness@", f"fairwitness:{password}@", 1)


def told(error: BaseException) -> str:
    """Everything a person or a log may get to see of an error."""
    return "".join(traceback.format_exception(error)) + repr(error) + str(getattr(error, "next_step", ""))


@pytest.mark.req("X4")
def test_the_password_is_in_no_name_and_in_no_error(roles: str) -> None:
    database = PostgresDatabase(with_password(roles, quote(SECRET, safe="")))
    assert database.name.startswith("postgres /")
    assert database.name.endswith("/postgres")
    assert not any(part in database.name for part in PARTS)
    with pytest.raises(DatabaseUnusable) as caught:
        database.read("SELECT nothing FROM nowhere")
    assert database.name in str(caught.value)
    assert not any(part in told(caught.value) for part in PARTS)
    database.close()


@pytest.mark.req("X4")
@pytest.mark.parametrize(
    "address",
    [
        "postgresql://fairwitness:{quoted}@/postgres?host=/nowhere",
        "postgresql://fairwitness:{quoted}@/nosuch{rest}",
        "postgresql://nobody:{quoted}@/postgres{rest}",
        "postgresql://fairwitness:{secret}@/postgres{rest}",
        "postgresql://fairwitness:{secret}@localhost:5432/postgres",
        "postgresql://fairwitness:hunter2@localhost:hunter2/postgres",
        "postgresql://fairwitness:hunter2@[::1/postgres",
        "postgresql://fairwitness:hunter2/p@ss/postgres",
        "postgresql://fairwitness:hunter2%zz@localhost/postgres",
        "postgres//fairwitness:hunter2@localhost/postgres",
        "host=/nowhere password=hunter2 dbname=x",
        "host=/nowhere password='hunter2 dbname=x",
        "host=/nowhere password=hunter2 hunter2=x",
    ],
)
def test_an_address_that_does_not_work_is_refused_without_its_password(postgres_url: str, address: str) -> None:
    rest = postgres_url[postgres_url.index("?") :]
    url = address.format(quoted=quote(SECRET, safe=""), secret=SECRET, rest=rest)
    with pytest.raises(DatabaseUnusable) as caught:
        PostgresDatabase(url)
    assert not any(part in told(caught.value) for part in PARTS)
    assert "FAIRWITNESS_DATABASE_URL" in caught.value.next_step


@pytest.mark.req("X4")
@pytest.mark.parametrize("setting", ["synchronous_commit"])
def test_a_server_that_may_forget_commits_is_refused(roles: str, setting: str) -> None:
    import psycopg

    with psycopg.connect(roles, autocommit=True) as connection:
        connection.execute(f"ALTER ROLE fairwitness SET {setting} TO off")
    with pytest.raises(DatabaseUnusable, match=f"{setting} is off"):
        PostgresDatabase(roles)


@pytest.mark.req("X4")
def test_runs_take_turns_also_where_a_server_defaults_to_old_snapshots(roles: str) -> None:
    import psycopg

    with psycopg.connect(roles, autocommit=True) as connection:
        connection.execute("ALTER ROLE fairwitness SET default_transaction_isolation TO 'repeatable read'")
    with closing(Ledger.open(PostgresDatabase(roles))) as ledger:
        isolation = ledger.database.write(lambda transaction: transaction.run("SHOW transaction_isolation"))
        assert isolation == [("read committed",)]


@pytest.mark.req("X4")
def test_a_lost_connection_is_made_anew_and_costs_no_error(roles: str) -> None:
    import psycopg

    ledger = Ledger.open(PostgresDatabase(roles))
    assert write(ledger, "before") == "written"
    with psycopg.connect(roles, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'fairwitness' AND pid <> pg_backend_pid()"  # noqa: E501
        )
    assert len(ledger.runs()) == 1
    assert ledger.database.write(lambda transaction: transaction.run("SELECT 1")) == [(1,)]
    assert write(ledger, "after") == "written"
    assert assert_whole(ledger) == {"before", "after"}
    ledger.close()


@pytest.mark.req("P16")
def test_a_connection_that_is_lost_in_the_middle_of_a_record_leaves_nothing_of_it(roles: str) -> None:
    import psycopg

    database = PostgresDatabase(roles)
    ledger = Ledger.open(database)

    def lose(transaction: Transaction) -> None:
        transaction.run("INSERT INTO schema_meta (table_name) VALUES ('half')")
        ((pid,),) = transaction.run("SELECT pg_backend_pid()")
        with psycopg.connect(roles, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        transaction.run("SELECT 1")

    with pytest.raises(DatabaseUnusable):
        database.write(lose)
    assert database.read("SELECT table_name FROM schema_meta WHERE table_name = 'half'") == []
    assert write(ledger, "after") == "written"
    ledger.close()
