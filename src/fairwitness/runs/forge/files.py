"""The files that show the state of a forge run: its status, and its change requests."""

import threading

from fairwitness.contracts.forge.dag import Dag
from fairwitness.contracts.forge.status import RunState
from fairwitness.runs.forge.change_requests import write_files
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.runs.shared.state_files import ForgeProjection
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout


class ForgeFiles:
    """The files of one run."""

    def __init__(self, log: ForgeLog, store: Store, layout: ForgeLayout) -> None:
        self._log, self._store, self._layout = log, store, layout
        self._projection: ForgeProjection | None = None
        self._guard = threading.Lock()

    def refresh(self) -> RunState:
        """Bring the files up to the last event.

        Several writers may do this at once: the last one has checked that there is no newer event.
        """
        log = self._log
        with self._guard:
            if self._projection is None:
                self._projection = ForgeProjection(
                    log.ledger, self._store, self._layout, max_attempts=self._max_attempts()
                )
            while True:
                if log.course().requests:
                    write_files(log, self._store, self._layout)
                run = self._projection.refresh(self._base()).run
                if not any(log.ledger.events(log.run_id, after=run.lastEventSeq)):
                    return run

    def _base(self) -> Dag | None:
        """Return the approved graph, or the proposed one; None before there is one."""
        if self._log.course().is_approved:
            return self._log.begun().dag
        plan = self._log.proposal()
        return None if plan is None else plan.dag

    def _max_attempts(self) -> int:
        order = self._log.order()
        return (self._log.begun().options if order is None else order.options).max_attempts
