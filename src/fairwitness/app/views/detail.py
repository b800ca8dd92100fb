"""The list of runs, one run in detail, and the resolution of a run's name."""

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairwitness.app.repository import URL, no_ledger, read_database
from fairwitness.app.views.run import NodeStage, RunView, status_text
from fairwitness.errors import UsageError
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.durations import seconds_between
from fairwitness.kit.text import visible
from fairwitness.ledger import summary as ledger
from fairwitness.ledger.run_summary import AUTOPILOT, NodeSummary
from fairwitness.ledger.run_summary import FEATURE as FEATURE
from fairwitness.ledger.summary_event import SummaryEvent

if TYPE_CHECKING:
    from fairwitness.db.base import Database

LAST, FORGE = "last", "forge"
SHOWN = 20
"""The number of ended runs that a list shows; the others are only counted."""
EVENTS, READ = 5, 25
"""The number of last events that are shown, and that are read for it: some events are not shown."""
RESUMABLE = frozenset({"error", "out_of_budget"})
"""The outcomes after which a feature run can be resumed."""
AT_WORK = (NodeStage.WORKING, NodeStage.HELPING, NodeStage.MERGING)


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in the list."""

    run_id: str
    workflow: str
    events: int
    last_time: str
    last_event: str
    began: str
    status: str
    reason: str | None
    is_over: bool
    total: int
    merged: int
    failed: int
    running: int
    waits_for: str
    age_s: float

    @property
    def word(self) -> str:
        """The status in words."""
        return status_text(self.status)


def run_lines(root: Path, *, most: int | None = None, clock: Clock = system_clock) -> tuple[list[RunLine], int]:
    """Return the runs of a repository, newest first, and how many were left out.

    `most` limits the ended runs; unfinished runs are always included.
    """
    with read_database(root) as database:
        if database is None:
            return [], 0
        lines: list[RunLine] = []
        left = 0
        for run in ledger.run_summaries(database, RunView):
            ended = sum(line.is_over for line in lines)
            if most is not None and run.is_over and ended >= most:
                left += 1
            else:
                lines.append(_line(run, clock))
        return lines, left


def _line(run: RunView, clock: Clock) -> RunLine:
    run.refuse_broken()
    phases, last_time = run.phases.counts(), run.last_time or ""
    nodes = run.counted if run.tasks else {"merged": 0, "failed": phases["failed"], "running": 0}
    running = nodes["running"]
    return RunLine(
        run_id=run.run_id,
        workflow=run.workflow,
        events=run.seq,
        last_time=last_time,
        last_event=run.last_event,
        began=run.began or "",
        status=run.status,
        reason=run.reason,
        is_over=run.is_over,
        total=run.tasks or phases["total"],
        merged=nodes["merged"] or phases["completed"],
        failed=nodes["failed"],
        running=running,
        waits_for=run.waits_for(f"{running} running" if running else ""),
        age_s=seconds_between(last_time, clock()),
    )


@contextmanager
def open_database(root: Path) -> Iterator["Database"]:
    """Open the ledger database of a repository for reading; raise `DatabaseUnusable` if there is none."""
    with read_database(root) as database:
        if database is None:
            raise no_ledger(root)
        yield database


def resolve_run(database: "Database", wanted: str | None, *, workflow: str | None = None) -> str:
    """Return the id of a run given by its id, its spelling in refs, or `last`; None means the only unfinished run.

    With `workflow`, `last` is the latest run of that workflow.
    """
    runs = ledger.run_summaries(database, RunView)
    if wanted is None:
        found = only_unfinished(database)
        if found is None:
            raise UsageError("there is no unfinished run", next_step="fairwitness status lists the ended runs")
        return found
    if wanted == LAST:
        return _latest([run for run in runs if workflow in (None, run.workflow)], workflow)
    for run in runs:
        if wanted in (run.run_id, run.run_id.replace(":", "-")):  # the second form is used in git refs
            return run.run_id
    near = _near(wanted, [run.run_id for run in runs])
    if near:
        listed = " or ".join(map(visible, near))
        raise UsageError(
            f"there is no run {visible(wanted)!r}", next_step=f"did you mean {listed}? `fairwitness status` lists all"
        )
    setting = "" if os.environ.get(URL) else f"; to see runs in Postgres, set {URL}"
    raise UsageError(
        f"there is no run {visible(wanted)!r}",
        next_step=f"`fairwitness status` lists the runs in {database.name}{setting}",
    )


def resolve_run_at(root: Path, wanted: str | None, *, workflow: str | None = None) -> str:
    """Return the id of a run of the repository at `root`; see `resolve_run`."""
    with open_database(root) as database:
        return resolve_run(database, wanted, workflow=workflow)


def _latest(runs: Sequence[RunView], workflow: str | None) -> str:
    if runs:
        return max(runs, key=lambda run: (run.began or "", run.run_id)).run_id
    raise UsageError(
        f"there is no {f'{workflow} ' if workflow else ''}run yet",
        next_step=f"fairwitness {f'{workflow} REQUEST' if workflow else 'demo'}",
    )


def only_unfinished(database: "Database") -> str | None:
    """Return the id of the only unfinished run, or None; raise `UsageError` if there are several."""
    unfinished = [run.run_id for run in ledger.run_summaries(database, RunView) if not run.is_over]
    if len(unfinished) > 1:
        listed = ", ".join(visible(run) for run in unfinished[:SHOWN])
        raise UsageError(f"{len(unfinished)} runs are unfinished: {listed}", next_step="name one of them")
    return unfinished[0] if unfinished else None


def _near(wanted: str, known: Sequence[str]) -> list[str]:
    begins = [run for run in known if wanted and run.startswith(wanted)]
    return (begins or difflib.get_close_matches(wanted, known, n=3))[:3]


@dataclass(frozen=True, slots=True)
class RunDetail:
    """The state of a run at one moment, and its last events."""

    view: RunView
    last: tuple[SummaryEvent, ...]
    now: datetime
    doubtful: Mapping[str, float]
    """The tasks that ask for a review, with the confidence that their workers claim."""


def read_detail(database: "Database", run_id: str, *, events: int = EVENTS, clock: Clock = system_clock) -> RunDetail:
    """Return the current state of a run and its last events."""
    view = ledger.summary_of(database, run_id, RunView)
    view.refuse_broken()
    last = ledger.last_events(database, run_id, max(1, events), up_to=view.seq)  # later ones are read later
    options = (ledger.graph_of(database, run_id) or {}).get("options")
    if isinstance(options, dict) and isinstance(options.get("max_attempts"), int):
        view.max_attempts = options["max_attempts"]
    return RunDetail(view, tuple(last), clock(), ledger.doubtful_tasks(database, run_id))


def review_lines(doubtful: Mapping[str, float]) -> list[str]:
    """Return a line for each task that asks for a review: how unsure its worker is, and where to look."""
    lines = [
        f"fairwitness task show {visible(task)} (confidence {sure:.2f})"
        for task, sure in list(doubtful.items())[:EVENTS]
    ]
    more = len(doubtful) - EVENTS
    return [*lines, f"{more} more with a confidence below 0.6"] if more > 0 else lines


def next_command(view: RunView, *, is_worked_on: bool) -> str:
    """Return the next command for a run."""
    if view.workflow == FEATURE:
        return _next_of_feature(view, is_worked_on=is_worked_on)
    if view.workflow == AUTOPILOT:
        return _next_of_autopilot(view, is_worked_on=is_worked_on)
    counts = view.counts()
    if view.status == "completed" or (view.is_over and counts["failed"]):
        return f"fairwitness dag show {view.run_id}"
    if view.asks and not view.is_over:
        return "fairwitness inbox"
    if view.is_reviewed and not view.is_approved and not view.is_over:
        return f"fairwitness plan show {view.run_id}"
    return f"fairwitness {'watch' if is_worked_on and not view.is_over else 'resume'} {view.run_id}"


def _next_of_feature(view: RunView, *, is_worked_on: bool) -> str:
    if view.status == "waiting":
        return "fairwitness inbox"
    if view.is_over:
        return f"fairwitness {'resume' if view.status in RESUMABLE else 'report'} {view.run_id}"
    return f"fairwitness {'watch' if is_worked_on else 'resume'} {view.run_id}"


def _next_of_autopilot(view: RunView, *, is_worked_on: bool) -> str:
    if view.status == "waiting":
        return "fairwitness inbox"
    if view.is_over:
        return f"fairwitness autopilot report {view.run_id}"
    return f"fairwitness {'watch' if is_worked_on else 'resume'} {view.run_id}"


def plain_detail(detail: RunDetail) -> dict[str, Any]:
    """Return a run in detail as plain values."""
    view = detail.view
    return {
        "run_id": view.run_id,
        "workflow": view.workflow,
        "request": view.request,
        "status": view.status,
        "reason": view.reason,
        "is_over": view.is_over,
        "began": view.began,
        "started": view.started,
        "last_time": view.last_time,
        "events": view.seq,
        "counts": view.counts(),
        "max_attempts": view.max_attempts,
        "at_work": [_plain_node(view, node, detail.now) for node in view.at(*AT_WORK)],
        "to_be_merged": [_plain_node(view, node, detail.now) for node in view.at(NodeStage.QUEUED)],
        "exhausted": [{"node": node.name, "attempts": node.attempt, "error": node.error} for node in view.exhausted()],
        "reviews": dict(detail.doubtful),
        "waits_for": view.waits(),
        "last_events": [event.plain() for event in detail.last[-EVENTS:]],
        **({"phases": dict(view.phases.statuses)} if view.workflow == AUTOPILOT else {}),
        **({"path": view.feature.path} if view.workflow == FEATURE else {}),
    }


def _plain_node(view: RunView, node: NodeSummary, now: datetime) -> dict[str, Any]:
    return {
        "node": node.name,
        "stage": view.stage(node).value,
        "attempt": node.attempt,
        "agent": node.agent,
        "since": node.since,
        "seconds": round(seconds_between(node.since, now), 3),
    }
