"""Where a repository's ledger is written: on the server that `ASSAY_DATABASE_URL` names, else in the repository."""

import os
from pathlib import Path

from assay.app.status import DATABASE, URL
from assay.kit.clock import Clock, system_clock
from assay.ledger.ledger import Ledger


def ledger_in(state: Path, *, clock: Clock = system_clock) -> Ledger:
    """The ledger to write to; begun if there is none yet."""
    url = os.environ.get(URL)
    if not url:
        return Ledger.open_file(state / DATABASE, clock=clock)
    from assay.db.postgres import PostgresDatabase

    return Ledger.open(PostgresDatabase(url), clock=clock)
