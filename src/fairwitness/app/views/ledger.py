"""The ledger of a repository: opened for reading, verified, queried, and its events."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairwitness.app.repository import DATABASE, URL, database_hint, no_ledger, state_in
from fairwitness.app.views.detail import LAST, resolve_run
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.ids import run_ref
from fairwitness.db.migrations import check_version
from fairwitness.errors import DatabaseUnusable, UsageError
from fairwitness.git.ledger_heads import kept_heads
from fairwitness.kit import json_text
from fairwitness.kit.text import visible
from fairwitness.ledger.chain import Head
from fairwitness.ledger.ledger import MIGRATIONS, Ledger
from fairwitness.ledger.queries import BY_NAME, Canned
from fairwitness.ledger.run_summary import RunSummary
from fairwitness.ledger.summary import run_summaries, summary_differs
from fairwitness.ledger.verify import hash_at, verify

EXPORTS = "docs/feature/*/verification-ledger.db"
_POLL_S = 0.2
_SUMMARY_DIFFERS = (
    "its summary differs from its events, so `fairwitness status` is wrong about it; "
    "`fairwitness ledger verify` rebuilds it where it may write"
)


@dataclass(frozen=True, slots=True)
class ChainReport:
    """The verification of one run in one ledger: the length of its chain, and every sign of tampering."""

    ledger: str
    run_id: str
    links: int
    head: str
    findings: tuple[str, ...]
    rebuilt: bool = False
    """Whether its summary differed from its events and was replaced by the one that they give."""


def open_ledger(root: Path) -> Ledger:
    """Open the ledger of a repository for reading: on the server if one is configured, else in its file."""
    url = os.environ.get(URL)
    if url:
        from fairwitness.db.postgres import PostgresDatabase

        database = PostgresDatabase(url)
        if check_version(database, len(MIGRATIONS)) == 0:
            hint = database_hint(root)
            raise DatabaseUnusable(f"{database.name} holds no ledger yet", next_step=hint or "begin a run first")
        return Ledger(database)
    file = state_in(root) / DATABASE
    if not file.exists():
        raise no_ledger(root)
    return Ledger.read_only(file)


def verify_ledgers(root: Path, file: Path | None = None) -> list[ChainReport]:
    """Verify a ledger file, or every ledger of a repository: its chain, its git refs, and its exports.

    A summary in the ledger of the repository that differs from its events is rebuilt; other files are not changed.
    """
    kept = {run: Head(*head) for run, head in kept_heads(root).items()}
    ledger = Ledger.read_only(file) if file else open_ledger(root)
    try:
        reports = [_verify(ledger, run_id, kept.get(run_ref(run_id))) for run_id in ledger.runs()]
        if file is None:
            reports = [_rebuilt(root, ledger, report) for report in reports]
            known = {run_ref(report.run_id) for report in reports}
            reports += [_vanished(ledger, run, head) for run, head in kept.items() if run not in known]
            for export in sorted(root.glob(EXPORTS)):
                reports += _verify_export(export, ledger)
        return reports
    finally:
        ledger.close()


def _verify(ledger: Ledger, run_id: str, kept: Head | None) -> ChainReport:
    head = ledger.head(run_id)
    findings = verify(ledger.database, run_id, [kept] if kept else [])
    told = [str(finding) for finding in findings]
    if summary_differs(ledger.database, run_id):
        told.append(f"run {run_id}: {_SUMMARY_DIFFERS}")
    return ChainReport(ledger.database.name, run_id, head.links, head.hash, tuple(told))


def _rebuilt(root: Path, ledger: Ledger, report: ChainReport) -> ChainReport:
    """Rebuild the summary of a run if nothing else is wrong with it."""
    if report.findings != (f"run {report.run_id}: {_SUMMARY_DIFFERS}",):
        return report
    if os.environ.get(URL):
        ledger.rebuild_summary(report.run_id)
        return replace(report, findings=(), rebuilt=True)
    try:
        writable = Ledger.open_file(state_in(root) / DATABASE)
    except (DatabaseUnusable, OSError):
        return report
    try:
        writable.rebuild_summary(report.run_id)
    except DatabaseUnusable:
        return report
    finally:
        writable.close()
    return replace(report, findings=(), rebuilt=True)


def _vanished(ledger: Ledger, run: str, kept: Head) -> ChainReport:
    finding = f"run {run}: chain {kept.links} truncated: git keeps its head, the ledger nothing"
    return ChainReport(ledger.database.name, run, 0, "", (finding,))


def _verify_export(export: Path, ledger: Ledger) -> list[ChainReport]:
    """Verify an export: it may be older than the ledger, but must be a part of it."""
    copy = Ledger.read_only(export)
    try:
        reports = []
        for run_id in copy.runs():
            report = _verify(copy, run_id, None)
            if hash_at(ledger.database, run_id, report.links) != report.head:
                differs = f"run {run_id}: chain {report.links} edited: the ledger holds no such link"
                report = replace(report, findings=(*report.findings, differs))
            reports.append(report)
        return reports
    finally:
        copy.close()


def query_named(name: str) -> Canned:
    """Return the canned query of a name; raise `UsageError` if there is none."""
    if name not in BY_NAME:
        raise UsageError(f"there is no query called {name!r}", next_step="fairwitness ledger query --list")
    return BY_NAME[name]


def query_list() -> list[dict[str, str]]:
    """Return every canned query: its name, its parameter, and what it is about."""
    return [
        {"name": query.name, "wants": "".join(query.parameters), "about": query.about} for query in BY_NAME.values()
    ]


def run_query(root: Path, query: Canned, value: str | None) -> list[dict[str, Any]]:
    """Return the rows of a canned query by column; texts are safe for a terminal."""
    ledger = open_ledger(root)
    try:
        values = [judged_run(ledger, str(value)) if wanted == "run" else str(value) for wanted in query.parameters]
        return [
            {column: _plain(cell) for column, cell in zip(query.columns, row, strict=True)}
            for row in ledger.database.read(query.sql, values)
        ]
    finally:
        ledger.close()


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    return value if value is None or isinstance(value, int | float) else float(value)


def known_run(ledger: Ledger, wanted: str, *, workflow: str | None = None) -> str:
    """Return the id of a run given by its id, its spelling in refs, or `last`.

    Verifications are runs, too, but have no events: one of them is `last` only if there is no other run.
    """
    runs = ledger.runs()
    named = next((run_id for run_id in runs if wanted in (run_id, run_ref(run_id))), None)
    if (
        named is None
        and wanted == LAST
        and runs
        and workflow is None
        and not run_summaries(ledger.database, RunSummary)
    ):
        return max(runs)
    return named or resolve_run(ledger.database, wanted, workflow=workflow)


def judged_run(ledger: Ledger, wanted: str) -> str:
    """Return the id of a run, where `last` is the run or verification with the latest row of evidence."""
    latest = "SELECT run_id FROM anvil_checks ORDER BY id DESC LIMIT 1"
    rows = ledger.database.read(latest) if wanted == LAST else ()
    return str(rows[0][0]) if rows else known_run(ledger, wanted)


def follow_events(ledger: Ledger, run_id: str, *, after: int = 0, keep_on: bool = False) -> Iterator[Envelope]:
    """Yield the events of a run; with `keep_on`, wait for new ones."""
    while True:
        for event in ledger.events(run_id, after=after):
            after = event.seq
            yield event
        if not keep_on:
            return
        time.sleep(_POLL_S)


def event_line(event: Envelope) -> str:
    """Return an event as one line for a terminal."""
    about = " ".join(f"{name} {value}" for name, value in (("task", event.task), ("attempt", event.attempt)) if value)
    data = json_text.render_line(event.data)
    return visible(f"{event.seq:>5}  {event.timestamp}  {event.type:<24} {about}{' ' if about else ''}{data}")
