"""A run that is followed while a worker executes it: new events, current state, and the worker."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairwitness.app.repository import database_wait_s
from fairwitness.app.views.detail import (
    EVENTS,
    FEATURE,
    RunDetail,
    open_database,
    plain_detail,
    read_detail,
    resolve_run,
)
from fairwitness.app.views.feature import FeatureView
from fairwitness.app.views.run import RunView, WatchEnd
from fairwitness.app.views.workers import RunWorker, worker_on
from fairwitness.errors import DatabaseAway, DatabaseBusy
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.ledger.summary import doubtful_tasks, events_after, last_events, order_of, summary_of
from fairwitness.ledger.summary_event import (
    SummaryEvent as SummaryEvent,
)  # for screens, which may not import the ledger

if TYPE_CHECKING:
    from fairwitness.db.base import Database

POLL_S = 0.2
HISTORY = 20
"""The number of past events that are shown when following begins; earlier ones are counted."""
_ASK_WHO_S = 3.0


class FollowedRun:
    """A run that is polled for new events."""

    def __init__(self, database: "Database", root: Path, detail: RunDetail, *, clock: Clock = system_clock) -> None:
        self._database, self.root, self._clock = database, root, clock
        self._asked: float | None = None
        self._worker: RunWorker | None = None
        self._lost: tuple[float, str] | None = None
        """When the database stopped answering, and what to say about it."""
        self.view: RunView = detail.view
        self.past: tuple[SummaryEvent, ...] = detail.last
        self.note = ""
        """What to say about the run besides its events; may be empty."""

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.view.run_id

    @property
    def now(self) -> datetime:
        """The current time."""
        return self._clock()

    def news(self) -> list[SummaryEvent]:
        """Return the new events, after applying them to the view."""
        try:
            found = events_after(self._database, self.run_id, self.view.seq)
        except DatabaseBusy:
            return []  # the next poll reads them
        except DatabaseAway as error:
            self._wait(error)
            return []
        if self._lost is not None:
            self.note, self._lost = ("" if self.note == self._lost[1] else self.note), None
        for event in found:
            self.view.apply_event(event)
        return found

    def _wait(self, error: DatabaseAway) -> None:
        """Say since when the database does not answer; raise the error when the wait has ended."""
        now = time.monotonic()
        if self._lost is None:
            at = self._clock().astimezone().strftime("%H:%M")
            self._lost = now, f"waiting for the database since {at}"
        if now - self._lost[0] > database_wait_s():
            raise error
        self.note = self._lost[1]

    def order(self) -> dict[str, Any]:
        """Return what the run was started with, as plain values."""
        return order_of(self._database, self.run_id)

    def plain(self) -> dict[str, Any]:
        """Return the current state of the run as plain values."""
        last = last_events(self._database, self.run_id, EVENTS)
        doubtful = doubtful_tasks(self._database, self.run_id)
        return plain_detail(RunDetail(self.view, tuple(last), self.now, doubtful))

    def worker(self) -> RunWorker | None:
        """Return the worker of the run, or None; the answer is cached for a few seconds."""
        now = time.monotonic()
        if self._asked is None or now - self._asked > _ASK_WHO_S:
            with suppress(DatabaseAway):
                self._worker = worker_on(self.root, self.run_id)
            self._asked = now
        return self._worker


ShowCallback = Callable[[FollowedRun, list[SummaryEvent]], None]
"""Called with the run and its new events after each poll."""


@contextmanager
def follow_run(root: Path, wanted: str | None, *, after: int | None = None) -> Iterator[FollowedRun]:
    """Open a run to follow: the named one, or the only unfinished one. The past begins after event `after`."""
    with open_database(root) as database:
        run_id = resolve_run(database, wanted)
        detail = read_detail(database, run_id, events=HISTORY)
        followed = FollowedRun(database, root, detail)
        if after is None and detail.view.workflow == FEATURE:
            after = 0  # its screen shows all steps and needs every event
        if after is not None:
            followed.past = tuple(_past(database, run_id, after, up_to=detail.view.seq))
        yield followed


def read_feature(root: Path, run_id: str) -> FeatureView:
    """Return the current view of a feature run."""
    with open_database(root) as database:
        view = summary_of(database, run_id, FeatureView)
    view.refuse_broken()
    return view


def _past(database: "Database", run_id: str, after: int, *, up_to: int) -> Iterator[SummaryEvent]:
    while found := events_after(database, run_id, after):
        for event in found:
            if event.seq <= up_to:
                yield event
        after = found[-1].seq


def follow(followed: FollowedRun, show: ShowCallback, *, poll_s: float = POLL_S) -> WatchEnd:
    """Show new events until there is nothing more to watch, and return why."""
    show(followed, [])
    while True:
        news = followed.news()
        show(followed, news)
        if not news:
            end = followed.view.ended()
            if end is not None:
                return end
            time.sleep(poll_s)
