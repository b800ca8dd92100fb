"""The table of running bodies: it ensures that a run has at most one body, and stores the last heartbeat of each."""

from collections.abc import Collection

from fairwitness.db.base import Database, Transaction
from fairwitness.engine.run_row import ENDED_STATUSES
from fairwitness.engine.tables import Tables, batched


class Bodies:
    """The rows of the bodies that run now, in any process."""

    def __init__(self, database: Database, tables: Tables) -> None:
        self._database = database
        self._tables = tables

    def enter(self, run_id: str, executor: str) -> bool:
        """Claim the row of a run, possibly again; return False while a body in another process has not ended."""
        body, lease, now = self._tables.body, self._tables.lease, self._tables.now

        def work(transaction: Transaction) -> bool:
            transaction.run(
                f"DELETE FROM {body} WHERE run_id = ? AND executor NOT IN (SELECT executor FROM {lease})",  # noqa: S608
                (run_id,),
            )
            return bool(
                transaction.run(
                    f"INSERT INTO {body} AS b (run_id, executor, beat) VALUES (?, ?, {now}) "  # noqa: S608
                    "ON CONFLICT (run_id) DO UPDATE SET stop = 0, beat = excluded.beat "
                    "WHERE b.executor = excluded.executor RETURNING 1",
                    (run_id, executor),
                )
            )

        return self._database.write(work)

    def leave(self, run_id: str, executor: str) -> None:
        """Release the row of a run, if this worker still has it."""
        self._database.write(
            lambda transaction: transaction.run(
                f"DELETE FROM {self._tables.body} WHERE run_id = ? AND executor = ?",  # noqa: S608
                (run_id, executor),
            )
        )

    def stop(self, run_ids: Collection[str]) -> None:
        """Tell bodies to stop, in whichever process they run."""
        wanted = [(run_id,) for run_id in run_ids]

        def work(transaction: Transaction) -> None:
            for values in wanted:
                transaction.run(f"UPDATE {self._tables.body} SET stop = 1 WHERE run_id = ?", values)  # noqa: S608

        self._database.write(work)

    def beat(self, executor: str) -> None:
        """Record a heartbeat for all bodies of a worker. It must come from the event loop on which they run."""
        self._database.write(
            lambda transaction: transaction.run(
                f"UPDATE {self._tables.body} SET beat = {self._tables.now} WHERE executor = ?",  # noqa: S608
                (executor,),
            )
        )

    def silent(self, run_ids: Collection[str]) -> dict[str, float]:
        """Return the seconds since the last heartbeat of each run that a worker has taken.

        For a run whose body has not started, the time counts from when it was taken: an event loop that hangs starts
        nothing, while the library continues to take runs for it.
        """
        run, body, now = self._tables.run, self._tables.body, self._tables.now
        found: dict[str, float] = {}
        for ids in batched(run_ids):
            rows = self._database.read(
                f"SELECT r.workflow_uuid, {now} - COALESCE(b.beat, r.started_at_epoch_ms / 1000.0) FROM {run} AS r "  # noqa: S608
                f"LEFT JOIN {body} AS b ON b.run_id = r.workflow_uuid AND b.executor = r.executor_id "
                f"WHERE r.status = 'PENDING' AND r.workflow_uuid IN ({', '.join('?' * len(ids))})",
                ids,
            )
            found |= {run_id: max(0.0, float(seconds)) for run_id, seconds in rows}
        return found

    def ended(self, run_ids: Collection[str]) -> frozenset[str]:
        """Return those of the runs that have ended."""
        return self._standing(run_ids, ENDED_STATUSES)

    def cancelled(self, run_ids: Collection[str]) -> frozenset[str]:
        """Return those of the runs that were cancelled."""
        return self._standing(run_ids, ["CANCELLED"])

    def _standing(self, run_ids: Collection[str], words: list[str]) -> frozenset[str]:
        found: set[str] = set()
        for ids in batched(run_ids):
            rows = self._database.read(
                f"SELECT workflow_uuid FROM {self._tables.run} WHERE status IN ({', '.join('?' * len(words))}) "  # noqa: S608
                f"AND workflow_uuid IN ({', '.join('?' * len(ids))})",
                [*words, *ids],
            )
            found |= {run_id for (run_id,) in rows}
        return frozenset(found)

    def taken(self, executor: str) -> frozenset[str]:
        """Return the runs that a worker has taken, whether or not they have a body."""
        rows = self._database.read(
            f"SELECT workflow_uuid FROM {self._tables.run} WHERE status = 'PENDING' AND executor_id = ?",  # noqa: S608
            (executor,),
        )
        return frozenset(run_id for (run_id,) in rows)

    def kept(self, executor: str) -> frozenset[str]:
        """Return the runs whose bodies a worker may continue."""
        rows = self._database.read(
            f"SELECT run_id FROM {self._tables.body} WHERE executor = ? AND stop = 0",  # noqa: S608
            (executor,),
        )
        return frozenset(str(run_id) for (run_id,) in rows)
