"""The files that tell where a forge run stands, brought up to its events: its states, and what was asked for."""

import threading

from fairwitness.contracts.forge.dag import Dag
from fairwitness.contracts.forge.status import RunState
from fairwitness.runs.forge.book import ForgeBook
from fairwitness.runs.forge.requests import write_files
from fairwitness.runs.shared.state_files import ForgeProjection
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout


class ForgeFiles:
    """The files of one run."""

    def __init__(self, book: ForgeBook, store: Store, layout: ForgeLayout) -> None:
        self._book, self._store, self._layout = book, store, layout
        self._projection: ForgeProjection | None = None
        self._guard = threading.Lock()

    def refresh(self) -> RunState:
        """Brings them up to the last event.

        Others may write them at the same time: whoever writes last has seen that nothing is newer.
        """
        book = self._book
        with self._guard:
            if self._projection is None:
                self._projection = ForgeProjection(
                    book.ledger, self._store, self._layout, max_attempts=self._max_attempts()
                )
            while True:
                if book.course().requests:
                    write_files(book, self._store, self._layout)
                run = self._projection.refresh(self._base()).run
                if not any(book.ledger.events(book.run_id, after=run.lastEventSeq)):
                    return run

    def _base(self) -> Dag | None:
        """The graph that was sealed, or the one that is being reviewed; None before there is one."""
        if self._book.course().is_approved:
            return self._book.begun().dag
        plan = self._book.proposal()
        return None if plan is None else plan.dag

    def _max_attempts(self) -> int:
        order = self._book.order()
        return (self._book.begun().options if order is None else order.options).max_attempts
