"""Which bodies live, so that of one run there is never more than one, also when it is begun anew elsewhere."""

from collections.abc import Collection

from assay.db.base import Database, Transaction
from assay.engine.tables import Tables


class Bodies:
    """The rows of the bodies that run now, in whatever process."""

    def __init__(self, database: Database, tables: Tables) -> None:
        self._database = database
        self._tables = tables

    def enter(self, run_id: str, executor: str) -> bool:
        """Claims the only place a run has; False while an older body of it has not ended."""
        body, lease = self._tables.body, self._tables.lease

        def work(transaction: Transaction) -> bool:
            transaction.run(
                f"DELETE FROM {body} WHERE run_id = ? AND executor NOT IN (SELECT executor FROM {lease})",  # noqa: S608
                (run_id,),
            )
            return bool(
                transaction.run(
                    f"INSERT INTO {body} (run_id, executor) VALUES (?, ?) ON CONFLICT (run_id) DO NOTHING RETURNING 1",  # noqa: S608
                    (run_id, executor),
                )
            )

        return self._database.write(work)

    def leave(self, run_id: str, executor: str) -> None:
        """Gives the place back, if it was not taken away."""
        self._database.write(
            lambda transaction: transaction.run(
                f"DELETE FROM {self._tables.body} WHERE run_id = ? AND executor = ?",  # noqa: S608
                (run_id, executor),
            )
        )

    def stop(self, run_ids: Collection[str]) -> None:
        """Tells bodies to end, in whatever process they are."""
        wanted = [(run_id,) for run_id in run_ids]

        def work(transaction: Transaction) -> None:
            for values in wanted:
                transaction.run(f"UPDATE {self._tables.body} SET stop = 1 WHERE run_id = ?", values)  # noqa: S608

        self._database.write(work)

    def kept(self, executor: str) -> frozenset[str]:
        """The runs whose bodies a worker may go on with."""
        rows = self._database.read(
            f"SELECT run_id FROM {self._tables.body} WHERE executor = ? AND stop = 0",  # noqa: S608
            (executor,),
        )
        return frozenset(str(run_id) for (run_id,) in rows)
