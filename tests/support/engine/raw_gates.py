"""The gates of the raw engine: until when each waits, and its first answer."""

from fairwitness.db.base import Database, Transaction
from support.engine.raw_journal import Recorded, insert_step, known_status, still_ours


class Gates:
    """The rows of all gates; the journal makes their table, since running a run again forgets some of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, run: str, executor: str, key: str, deadline: float | None) -> float | None:
        """Opens a gate, or finds it open; until when it waits stays as it was asked for first."""

        def work(transaction: Transaction) -> float | None:
            still_ours(transaction, run, executor)
            transaction.run(
                "INSERT INTO raw_gate (run, key, deadline) VALUES (?, ?, ?) "
                "ON CONFLICT (run, key) DO UPDATE SET deadline = COALESCE(deadline, excluded.deadline)",
                (run, key, deadline),
            )
            ((until,),) = transaction.run("SELECT deadline FROM raw_gate WHERE run = ? AND key = ?", (run, key))
            return until  # type: ignore[no-any-return]  # a REAL or nothing

        return self._database.write(work)

    def pass_gate(self, run: str, executor: str, position: int, key: str, *, shut: str | None) -> str | None:
        """Records a gate's answer, or that none came (`shut`); None while it has to wait."""
        answered = "SELECT answer FROM raw_gate WHERE run = ? AND key = ?"
        if shut is None and self._database.read(answered + " AND answer IS NOT NULL", (run, key)) == []:
            return None

        def work(transaction: Transaction) -> str | None:
            still_ours(transaction, run, executor)
            ((answer,),) = transaction.run(answered, (run, key))
            passed: str | None = answer if answer is not None else shut
            if passed is not None:
                insert_step(transaction, run, position, Recorded(key, failed=False, result=passed))
            return passed

        return self._database.write(work)

    def answer(self, run: str, key: str, value: str) -> bool:
        """Keeps an answer, if it is the first and the gate did not shut before it came."""

        def work(transaction: Transaction) -> bool:
            known_status(transaction, run)
            if transaction.run("SELECT 1 FROM raw_step WHERE run = ? AND key = ?", (run, key)):
                return False
            return bool(
                transaction.run(
                    "INSERT INTO raw_gate (run, key, answer) VALUES (?, ?, ?) ON CONFLICT (run, key) "
                    "DO UPDATE SET answer = excluded.answer WHERE answer IS NULL RETURNING 1",
                    (run, key, value),
                )
            )

        return self._database.write(work)
