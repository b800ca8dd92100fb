"""Following a run while others carry it out: what is new, where it stands, and whether anybody works on it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairwitness.app.views.detail import EVENTS, FEATURE, Looked, look_at, meant, opened, plain_look
from fairwitness.app.views.feature import FeatureLook
from fairwitness.app.views.run import End, RunLook
from fairwitness.app.views.workers import Worker, worker_on
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


class Watching:
    """One run that is looked at again and again."""

    def __init__(self, database: "Database", root: Path, looked: Looked, *, clock: Clock = system_clock) -> None:
        self._database, self.root, self._clock = database, root, clock
        self._asked: float | None = None
        self._worker: Worker | None = None
        self.look: RunLook = looked.look
        self.past: tuple[Event, ...] = looked.last
        self.note = ""
        """What whoever carries the run has to say to those who look, if anything."""

    @property
    def run_id(self) -> str:
        """The run that is watched."""
        return self.look.run_id

    @property
    def now(self) -> datetime:
        """The time, for how long things take."""
        return self._clock()

    def news(self) -> list[Event]:
        """What happened since the last look; the run's state has moved on with it."""
        try:
            found = events_after(self._database, self.run_id, self.look.seq)
        except DatabaseBusy:
            return []  # the next look may find it
        for event in found:
            self.look.take_in(event)
        return found

    def plain(self) -> dict[str, Any]:
        """The run as it stands, as plain values."""
        last = last_events(self._database, self.run_id, EVENTS)
        return plain_look(Looked(self.look, tuple(last), self.now))

    def worker(self) -> Worker | None:
        """Who carries the run; asked now and again, not at every look."""
        now = time.monotonic()
        if self._asked is None or now - self._asked > _ASK_WHO_S:
            self._asked, self._worker = now, worker_on(self.root, self.run_id)
        return self._worker


Show = Callable[[Watching, list[Event]], None]
"""What is done with each look: the run, and what is new."""


@contextmanager
def watching(root: Path, wanted: str | None, *, after: int | None = None) -> Iterator[Watching]:
    """A run to follow; without a name the only one that has not ended. `after` says from where its past is told."""
    with opened(root) as database:
        run_id = meant(database, wanted)
        looked = look_at(database, run_id, events=HISTORY)
        followed = Watching(database, root, looked)
        if after is None and looked.look.workflow == FEATURE:
            after = 0  # its screen shows the whole plan, and needs to know everything that happened
        if after is not None:
            followed.past = tuple(_past(database, run_id, after, up_to=looked.look.seq))
        yield followed


def feature_look(root: Path, run_id: str) -> FeatureLook:
    """A feature run as it stands now."""
    look = FeatureLook(run_id)
    with opened(root) as database:
        while found := events_after(database, run_id, look.seq):
            for event in found:
                look.take_in(event)
    return look


def _past(database: "Database", run_id: str, after: int, *, up_to: int) -> Iterator[Event]:
    while found := events_after(database, run_id, after):
        for event in found:
            if event.seq <= up_to:
                yield event
        after = found[-1].seq


def follow(followed: Watching, show: Show, *, poll_s: float = POLL_S) -> End:
    """Shows what happens until there is nothing more to watch, and says why."""
    show(followed, [])
    while True:
        news = followed.news()
        show(followed, news)
        if not news:
            end = followed.look.ended()
            if end is not None:
                return end
            time.sleep(poll_s)
