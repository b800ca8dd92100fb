"""What the logs of all workflows share: the ledger of one run, its observations, and its folded state."""

import threading
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.evidence import Observation
from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.errors import EventsBroken, RowRefused, UsageError
from fairwitness.kit.clock import Clock, spell
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record


class RunLog:
    """The ledger of one run, with its clock."""

    __slots__ = ()

    ledger: Ledger
    run_id: str
    clock: Clock

    def now(self) -> str:
        """Return the current timestamp."""
        return spell(self.clock())

    def observation(
        self,
        key: str,
        kind: str,
        subject: str,
        detail: Mapping[str, object],
        now: str | None = None,
        *,
        holds: bool = True,
        task_id: str | None = None,
        tree: str | None = None,
    ) -> Observation:
        """Return a new observation of this run, to be recorded; `now` is the time of the record, if it has events."""
        return Observation(
            run_id=self.run_id,
            task_id=task_id,
            key=key,
            kind=kind,
            subject=subject,
            holds=holds,
            detail=dict(detail),
            tree=tree,
            observed_at=now or self.now(),
        )

    def write_first(self, write: Callable[[Record], None]) -> None:
        """Write the first record of a run; the ledger refuses a run id that exists."""
        try:
            self.ledger.record(self.run_id, write)
        except RowRefused:
            raise UsageError(
                f"run {self.run_id} exists already",
                next_step=f"fairwitness resume {self.run_id}, or wait a second and begin another",
            ) from None


class _Sequenced(Protocol):
    @property
    def seq(self) -> int:
        """The number of the last event."""
        ...


S = TypeVar("S", bound=_Sequenced)


class FoldedState(Generic[S]):
    """The state of a run, updated by the events that were written since it was asked for last."""

    def __init__(self, fold: Callable[[tuple[Envelope, ...], S | None], S | Problem]) -> None:
        """`fold` applies events to a state, or to none."""
        self._fold = fold
        self._state: S | None = None
        self._guard = threading.Lock()

    def now(self, log: RunLog) -> S:
        """Return the state after all events in the ledger."""
        with self._guard:
            news = tuple(log.ledger.events(log.run_id, after=self._state.seq if self._state is not None else 0))
            if news or self._state is None:
                folded = self._fold(news, self._state)
                if isinstance(folded, Problem):
                    where = spell_path(folded.where)
                    raise EventsBroken(
                        f"run {log.run_id}: {where}: expected {folded.expected}; found {folded.found}",
                        next_step="fairwitness ledger verify",
                    )
                self._state = folded
            return self._state
