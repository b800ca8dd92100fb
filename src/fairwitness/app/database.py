"""Where a repository's ledger is written: on the server that `FAIRWITNESS_DATABASE_URL` names, else in the repository."""

import os
from pathlib import Path

from fairwitness.app.status import DATABASE, URL
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.ledger.ledger import Ledger


def ledger_in(state: Path, *, clock: Clock = system_clock) -> Ledger:
    """The ledger to write to; begun if there is none yet."""
    url = os.environ.get(URL)
    if not url:
        return Ledger.open_file(state / DATABASE, clock=clock)
    from fairwitness.db.postgres import PostgresDatabase

    return Ledger.open(PostgresDatabase(url), clock=clock)
