"""The state files of a forge run, written from folds over its events.

A projection remembers how far it has folded, so refreshing costs only the new events. It is called at step boundaries,
not for each event; after a crash the file may be older until the next call.
"""

from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.forge.dag import Dag
from fairwitness.errors import EventsBroken
from fairwitness.kit.json_text import render
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.fold_forge import DEFAULT_ATTEMPTS, ForgeState, fold_forge
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout


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
