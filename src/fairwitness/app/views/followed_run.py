"""Following a run while others carry it out: what is new, where it stands, and whether anybody works on it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from fairwitness.errors import DatabaseBusy
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.ledger.glance import Event as Event  # faces speak of it, and know no ledger
from fairwitness.ledger.glance import events_after, last_events

if TYPE_CHECKING:
    from fairwitness.db.base import Database

POLL_S = 0.2
HISTORY = 20
"""How many events before the one at which somebody begins to watch are shown; the others are counted."""
_ASK_WHO_S = 3.0


class FollowedRun:
    """One run that is looked at again and again."""

    def __init__(self, database: "Database", root: Path, detail: RunDetail, *, clock: Clock = system_clock) -> None:
        self._database, self.root, self._clock = database, root, clock
        self._asked: float | None = None
        self._worker: RunWorker | None = None
        self.view: RunView = detail.view
        self.past: tuple[Event, ...] = detail.last
        self.note = ""
        """What whoever carries the run has to say to those who look, if anything."""

    @property
    def run_id(self) -> str:
        """The run that is watched."""
        return self.view.run_id

    @property
    def now(self) -> datetime:
        """The time, for how long things take."""
        return self._clock()

    def news(self) -> list[Event]:
        """What happened since the last look; the run's state has moved on with it."""
        try:
            found = events_after(self._database, self.run_id, self.view.seq)
        except DatabaseBusy:
            return []  # the next look may find it
        for event in found:
            self.view.apply_event(event)
        return found

    def plain(self) -> dict[str, Any]:
        """The run as it stands, as plain values."""
        last = last_events(self._database, self.run_id, EVENTS)
        return plain_detail(RunDetail(self.view, tuple(last), self.now))

    def worker(self) -> RunWorker | None:
        """Who carries the run; asked now and again, not at every look."""
        now = time.monotonic()
        if self._asked is None or now - self._asked > _ASK_WHO_S:
            self._asked, self._worker = now, worker_on(self.root, self.run_id)
        return self._worker


ShowCallback = Callable[[FollowedRun, list[Event]], None]
"""What is done with each look: the run, and what is new."""


@contextmanager
def follow_run(root: Path, wanted: str | None, *, after: int | None = None) -> Iterator[FollowedRun]:
    """A run to follow; without a name the only one that has not ended. `after` says from where its past is told."""
    with open_database(root) as database:
        run_id = resolve_run(database, wanted)
        detail = read_detail(database, run_id, events=HISTORY)
        followed = FollowedRun(database, root, detail)
        if after is None and detail.view.workflow == FEATURE:
            after = 0  # its screen shows the whole plan, and needs to know everything that happened
        if after is not None:
            followed.past = tuple(_past(database, run_id, after, up_to=detail.view.seq))
        yield followed


def read_feature(root: Path, run_id: str) -> FeatureView:
    """A feature run as it stands now."""
    view = FeatureView(run_id)
    with open_database(root) as database:
        while found := events_after(database, run_id, view.seq):
            for event in found:
                view.apply_event(event)
    return view


def _past(database: "Database", run_id: str, after: int, *, up_to: int) -> Iterator[Event]:
    while found := events_after(database, run_id, after):
        for event in found:
            if event.seq <= up_to:
                yield event
        after = found[-1].seq


def follow(followed: FollowedRun, show: ShowCallback, *, poll_s: float = POLL_S) -> WatchEnd:
    """Shows what happens until there is nothing more to watch, and says why."""
    show(followed, [])
    while True:
        news = followed.news()
        show(followed, news)
        if not news:
            end = followed.view.ended()
            if end is not None:
                return end
            time.sleep(poll_s)
