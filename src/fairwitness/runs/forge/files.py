"""The files that show the state of a forge run: its status, and its change requests.

They are written from folds over its events. A projection remembers how far it has folded, so refreshing costs only the
new events. It is called at step boundaries; after a crash the files may be older until the next call.
"""

import threading

from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.forge.dag import Dag
from fairwitness.contracts.forge.status import RunState
from fairwitness.contracts.graph.orders import DEFAULT_ATTEMPTS
from fairwitness.errors import EventsBroken
from fairwitness.kit.json_text import render
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.fold_forge import ForgeState, fold_forge
from fairwitness.runs.forge.change_requests import write_files
from fairwitness.runs.forge.log import ForgeLog
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


class ForgeProjection:
    """`run-state.json` and `dag-status.json` of one run."""

    def __init__(
        self, ledger: Ledger, store: Store, layout: ForgeLayout, *, max_attempts: int = DEFAULT_ATTEMPTS
    ) -> None:
        self._ledger = ledger
        self._store = store
        self._layout = layout
        self._max_attempts = max_attempts
        self._state: ForgeState | None = None

    def refresh(self, dag: Dag | None) -> ForgeState:
        """Fold the new events and write both files; `dag` is the base graph, once there is one."""
        after = self._state.run.lastEventSeq if self._state else 0
        events = self._ledger.events(self._layout.run_id, after=after)
        folded = fold_forge(events, dag, max_attempts=self._max_attempts, onto=self._state)
        self._state = _folded(folded, self._layout.run_id)
        _write(self._store, self._layout.dag_status, self._state.dag)
        _write(self._store, self._layout.run_state, self._state.run)
        return self._state


def _folded(answer: ForgeState | Problem, run_id: str) -> ForgeState:
    if isinstance(answer, Problem):
        raise EventsBroken(
            f"run {run_id}: {spell_path(answer.where)}: expected {answer.expected}; found {answer.found}",
            next_step="fairwitness ledger verify",
        )
    return answer


def _write(store: Store, path: str, document: Contract) -> None:
    store.put(path, render(document.plain()).encode())
