"""The ledger of a repository: opened for reading, verified, queried, and its events."""

import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairwitness.app.repository import DATABASE, URL, database_hint, no_ledger, state_in
from fairwitness.app.views.detail import LAST, resolve_run
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.ids import run_ref
from fairwitness.db.base import Database
from fairwitness.db.migrations import check_version
from fairwitness.errors import (
    DatabaseUnusable,
    HashMismatch,
    LedgerTampered,
    NotStored,
    StoreError,
    UsageError,
)
from fairwitness.git.ledger_heads import KeptHead, keep_head, kept_heads
from fairwitness.kit import json_text
from fairwitness.kit.files import read_plain
from fairwitness.kit.own_folder import Standing, look
from fairwitness.kit.text import visible
from fairwitness.ledger.anchors import (
    HeldHead,
    KnownAnchors,
    known_anchors,
    ledgers_at,
    lines_of,
    place_of,
    read_held,
)
from fairwitness.ledger.chain import Head
from fairwitness.ledger.ledger import MIGRATIONS, Ledger
from fairwitness.ledger.queries import BY_NAME, Canned
from fairwitness.ledger.run_summary import RunSummary
from fairwitness.ledger.summary import run_summaries, summary_differs
from fairwitness.ledger.verify import (
    LedgerFinding,
    Tampering,
    artifact_in,
    foreign,
    hash_at,
    head_findings,
    ledger_findings,
    stored_outputs,
    verify,
)
from fairwitness.store.artifacts import Store, content_hash

EXPORTS = "docs/feature/*/verification-ledger.db"
_POLL_S = 0.2
_MOST = 10
"""How many outputs of a run are named."""
_LARGEST_OUTPUT = 1 << 30
_NOT_THERE = "missing: it is not stored any more"
_ADOPT = "fairwitness adopt --yes"
_YOU = "you hold"
_SUMMARY_DIFFERS = (
    "its summary differs from its events, so `fairwitness status` is wrong about it; "
    "`fairwitness ledger verify` rebuilds it where it may write"
)


@dataclass(frozen=True, slots=True)
class ChainReport:
    """The verification of one run in one ledger, or of a ledger as a whole: every sign of tampering."""

    ledger: str
    run_id: str
    """The run; empty for the ledger as a whole."""
    links: int
    head: str
    findings: tuple[str, ...]
    rebuilt: bool = False
    """Whether its summary differed from its events and was replaced by the one that they give."""
    notes: tuple[str, ...] = ()
    """What a person should know that is no sign of tampering."""
    ledger_head: str = ""
    """The last anchor of the ledger, to be held by a person; empty if there is none."""


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


def verify_ledgers(root: Path, file: Path | None = None, *, heads: Sequence[str] = ()) -> list[ChainReport]:
    """Verify a ledger file, or every ledger of a repository: its chains, anchors, git refs, outputs and exports.

    `heads` are ledger heads that a person holds, as they were printed. A summary in the ledger of the repository that
    differs from its events is rebuilt; other files are not changed. The last report is about the ledger as a whole, if
    there is something to say about it.
    """
    held = [read_held(head) for head in heads]
    kept = kept_heads(root)  # before the ledger, which is written first
    ledger = Ledger.read_only(file) if file else _open_known(root, kept)
    try:
        if file is not None and not _is_own(root, file):
            return _verify_copy(ledger, file, kept, held)
        return _verify_own(root, ledger, kept, held)
    finally:
        ledger.close()


def _open_known(root: Path, kept: Mapping[str, KeptHead]) -> Ledger:
    try:
        return open_ledger(root)
    except DatabaseUnusable:
        file = state_in(root) / DATABASE
        if os.environ.get(URL) or file.exists():
            raise
        if not kept and ledgers_at(os.path.realpath(file)):
            raise DatabaseUnusable(
                f"there is no ledger in {root}; the one that this machine kept there is gone",
                next_step=f"restore {file} if you did not remove it yourself",
            ) from None
        if not kept:
            raise
    raise LedgerTampered(
        f"the ledger of {root} is gone, but git keeps the heads of {len(kept)} of its runs",
        next_step=f"restore {state_in(root) / DATABASE}; if you removed it yourself: {_ADOPT}",
    )


def _is_own(root: Path, file: Path) -> bool:
    own = state_in(root) / DATABASE
    return not os.environ.get(URL) and own.exists() and file.exists() and own.samefile(file)


def _verify_own(
    root: Path, ledger: Ledger, kept: Mapping[str, KeptHead], held: Sequence[HeldHead]
) -> list[ChainReport]:
    database = ledger.database
    known, runs = known_anchors(database), ledger.runs()
    outputs = _Outputs(state_in(root))
    reports = [_verify(ledger, run_id, known, kept.get(run_ref(run_id))) for run_id in runs]
    is_strict = {run for run in runs if not known.is_shared or run_ref(run) in kept}
    reports = [outputs.added(ledger, report, is_strict=report.run_id in is_strict) for report in reports]
    reports = [_rebuilt(root, ledger, report) for report in reports]
    reports = _with_foreign(database, known, reports, kept)
    spelled = {run_ref(run) for run in runs}
    reports += [_vanished(ledger, *gone) for gone in _gone(known, kept, spelled)]
    for export in sorted(root.glob(EXPORTS)):
        reports += _verify_export(export, ledger)
    reports += _verify_bundles(root, ledger)
    findings = [*ledger_findings(known), *_ref_findings(known, kept), *head_findings(known, held, _YOU)]
    return _whole(ledger, known, reports, findings, _notes(database, known, runs))


def _verify_copy(
    ledger: Ledger, file: Path, kept: Mapping[str, KeptHead], held: Sequence[HeldHead]
) -> list[ChainReport]:
    """Verify a copy: it may end earlier than the ledger, and outputs are checked only if they are beside it."""
    known = known_anchors(ledger.database)
    reports = []
    for run_id in ledger.runs():
        own = [head for head in known.heads_of(run_id) if head.links <= ledger.head(run_id).links]
        ref = kept.get(run_ref(run_id))
        own += [Head(ref.links, ref.hash)] if ref and ref.links <= ledger.head(run_id).links else []
        reports.append(_report(ledger, run_id, own))
    if (file.parent / "outputs").is_dir():
        outputs = _Outputs(file.parent)
        reports = [outputs.added(ledger, report, is_strict=True) for report in reports]
    findings = [*ledger_findings(known, is_copy=True), *head_findings(known, held, _YOU)]
    notes = []
    if known.lines.lines and (last := max(line.number for line in known.lines.lines)) > known.rows[-1].number:
        notes.append(f"this copy ends at anchor {known.rows[-1].number}; this machine wrote anchor {last} since then")
    elif not known.lines.lines and not held:
        notes.append("this machine has no anchor of this ledger: give a head that you hold with --head")
    return _whole(ledger, known, reports, findings, notes)


def _whole(
    ledger: Ledger,
    known: KnownAnchors,
    reports: Sequence[ChainReport],
    findings: Sequence[LedgerFinding],
    notes: Sequence[str],
) -> list[ChainReport]:
    """Return the reports with the ledger's head, and one about the ledger if there is something to say about it."""
    told = tuple(dict.fromkeys(map(str, findings)))
    whole = [ChainReport(ledger.database.name, "", 0, "", told, notes=tuple(notes))] if told or notes else []
    return [replace(report, ledger_head=known.held) for report in (*reports, *whole)]


def _verify(ledger: Ledger, run_id: str, known: KnownAnchors, kept: KeptHead | None) -> ChainReport:
    heads = [*known.heads_of(run_id), *([Head(kept.links, kept.hash)] if kept else [])]
    return _report(ledger, run_id, heads)


def _report(ledger: Ledger, run_id: str, heads: Iterable[Head]) -> ChainReport:
    head = ledger.head(run_id)
    told = [str(finding) for finding in verify(ledger.database, run_id, heads)]
    if summary_differs(ledger.database, run_id):
        told.append(f"run {run_id}: {_SUMMARY_DIFFERS}")
    return ChainReport(ledger.database.name, run_id, head.links, head.hash, tuple(told))


def _with_foreign(
    database: Database, known: KnownAnchors, reports: Sequence[ChainReport], kept: Mapping[str, KeptHead]
) -> list[ChainReport]:
    """Add to the reports which runs were not begun here."""
    if not known.rows and not ledgers_at(place_of(database)) and not any(head.anchor for head in kept.values()):
        return list(reports)  # written before there were anchors
    strange = {report.run_id for report in reports if known.is_foreign(report.run_id)}
    if strange:  # a run may have been announced since the lines were read
        again = known_anchors(database)
        strange = {run_id for run_id in strange if again.is_foreign(run_id)}
    return [
        replace(report, findings=(*report.findings, str(foreign(report.run_id))))
        if report.run_id in strange
        else report
        for report in reports
    ]


def _gone(
    known: KnownAnchors, kept: Mapping[str, KeptHead], present: Collection[str]
) -> Iterator[tuple[str, list[str], int]]:
    """Yield the runs that git or this machine knows and the ledger lacks, with who keeps their heads."""
    missing: dict[str, tuple[list[str], int]] = {}
    for run, ref in kept.items():
        missing[run] = (["git keeps its head, the ledger nothing"], ref.links)
    for line in known.lines.lines:
        for run, head in line.runs.items():
            if head.links:
                said = [one for one in missing.get(run_ref(run), ([], 0))[0] if one.startswith("git")]
                said.append(f"this machine anchored {head.links} links of it at {line.at}, the ledger holds nothing")
                missing[run_ref(run)] = (said, head.links)
    for run, (said, links) in sorted(missing.items()):
        if run not in present and run not in known.gone:
            yield run, said, links


def _ref_findings(known: KnownAnchors, kept: Mapping[str, KeptHead]) -> Iterator[LedgerFinding]:
    """Yield what the anchors in git say against those in the database."""
    own = [HeldHead(head.anchor, head.anchor_hash) for head in kept.values() if head.ledger in known.ids]
    yield from head_findings(known, own, "git keeps")
    last = max((line.number for line in known.lines.lines), default=0)
    if known.lines.lines and not known.is_shared and max((head.number for head in own), default=0) > last:
        newest = max(head.number for head in own)
        detail = f"git keeps anchor {newest}, but the lines of this machine end at anchor {last}"
        yield LedgerFinding(Tampering.TRUNCATED, "", "", 0, detail)


def _notes(database: Database, known: KnownAnchors, runs: Sequence[str]) -> list[str]:
    notes = []
    before = [ledger for ledger in ledgers_at(place_of(database)) if ledger not in known.ids]
    if before and known.rows:
        count = sum(any(head.links for head in line.runs.values()) for one in before for line in lines_of(one).lines)
        if count:
            notes.append(f"this machine kept another ledger here before, which is gone ({len(before)} in all)")
    if not known.rows and runs and not before:
        notes.append("these runs were written before there were anchors; the next run anchors them")
    if known.rows and not known.lines.lines:
        notes.append(f"this machine has no anchor of this ledger; if you brought it here yourself: {_ADOPT}")
    elsewhere = sum(known.is_from_elsewhere(run) for run in runs) if known.rows else 0
    if elsewhere:
        notes.append(f"{elsewhere} of the runs were anchored by another machine; check them there, or with --head")
    return notes


class _Outputs:
    """Compares stored outputs with their hashes, each file once."""

    def __init__(self, state: Path) -> None:
        self._store = Store(state)
        self._known: dict[str, str | None] = {}

    def added(self, ledger: Ledger, report: ChainReport, *, is_strict: bool) -> ChainReport:
        """Add the outputs of a run that are not as they were stored; missing ones only if they must be here."""
        named: dict[str, str] = {}
        for digest, row in stored_outputs(ledger.database.read, report.run_id):
            named.setdefault(digest, row)
        told = []
        for digest, row in named.items():
            wrong = self._wrong(digest)
            if wrong is not None and (is_strict or wrong != _NOT_THERE):
                told.append(f"run {report.run_id}: output {digest[7:19]} {wrong} ({row})")
        if len(told) > _MOST:
            more = f"run {report.run_id}: {len(told) - _MOST} more outputs are missing or changed"
            told = [*told[:_MOST], more]
        return replace(report, findings=(*report.findings, *told))

    def _wrong(self, digest: str) -> str | None:
        if digest not in self._known:
            try:
                self._store.get(f"outputs/{digest.removeprefix('sha256:')}", sha256=digest, limit=_LARGEST_OUTPUT)
                self._known[digest] = None
            except NotStored:
                self._known[digest] = _NOT_THERE
            except HashMismatch:
                self._known[digest] = "edited: its content has another hash"
            except StoreError as error:
                self._known[digest] = f"unreadable: {error.what}"
        return self._known[digest]


def _verify_bundles(root: Path, ledger: Ledger) -> list[ChainReport]:
    """Compare the evidence bundles in the checkout with what the runs wrote; a bundle that is gone proves nothing."""
    written: dict[str, set[str]] = {}
    owner: dict[str, str] = {}
    for run_id, data in ledger.database.read(
        "SELECT run_id, data FROM events WHERE type = 'artifact_written' ORDER BY timestamp, seq"
    ):
        path, digest = artifact_in(data)
        if path.endswith("/evidence-bundle.md"):
            written.setdefault(path, set()).add(digest)
            owner[path] = str(run_id)
    reports = []
    for path, hashes in written.items():
        try:
            found = content_hash(read_plain(root, path, limit=_LARGEST_OUTPUT))
        except NotStored:
            continue
        except StoreError as error:
            found = error.what
        if found not in hashes:
            finding = f"run {owner[path]}: {path} edited: no run wrote what it says"
            reports.append(ChainReport(str(root / path), owner[path], 0, "", (finding,)))
    return reports


def adopt_present(root: Path) -> str:
    """Accept the ledger in the state folder of a repository as it is, and return its new head; empty if there is none.

    A ledger on a server is shared, so it is not adopted with a folder.
    """
    file = state_in(root) / DATABASE
    if not file.exists():
        return ""
    ledger = Ledger.open_file(file)
    try:
        return adopt_ledger(root, ledger)
    finally:
        ledger.close()


def adopt_ledger(root: Path, ledger: Ledger) -> str:
    """Accept the ledger of a repository as it is, and return its new head; empty if it has no run.

    It gets a new id, and this machine anchors the heads of all its runs. Refs that contradict it are written anew, and
    runs that git knows and the ledger lacks are accepted as gone.
    """
    kept = kept_heads(root)
    heads = {run_ref(run_id): (run_id, ledger.head(run_id)) for run_id in ledger.runs()}
    anchor = ledger.adopt(gone=sorted(set(kept) - set(heads)))
    if anchor is None:
        return ""
    for run, ref in kept.items():
        if run in heads:
            run_id, head = heads[run]
            if ref.anchor or hash_at(ledger.database, run_id, ref.links) != ref.hash:
                keep_head(root, run_id, KeptHead(head.links, head.hash, anchor.number, anchor.hash, anchor.ledger))
    return anchor.held


def _rebuilt(root: Path, ledger: Ledger, report: ChainReport) -> ChainReport:
    """Rebuild the summary of a run if nothing else is wrong with it."""
    if report.findings != (f"run {report.run_id}: {_SUMMARY_DIFFERS}",):
        return report
    if os.environ.get(URL):
        ledger.rebuild_summary(report.run_id)
        return replace(report, findings=(), rebuilt=True)
    state = state_in(root)
    if look(state).standing is not Standing.OURS:
        return report  # a copied folder is only read
    try:
        writable = Ledger.open_file(state / DATABASE)
    except (DatabaseUnusable, OSError):
        return report
    try:
        writable.rebuild_summary(report.run_id)
    except DatabaseUnusable:
        return report
    finally:
        writable.close()
    return replace(report, findings=(), rebuilt=True)


def _vanished(ledger: Ledger, run: str, said: Sequence[str], links: int) -> ChainReport:
    findings = tuple(f"run {run}: chain {links} {Tampering.MISSING.value}: {words}" for words in said)
    return ChainReport(ledger.database.name, run, 0, "", findings)


def _verify_export(export: Path, ledger: Ledger) -> list[ChainReport]:
    """Verify an export: it may be older than the ledger, but must be a part of it."""
    copy = Ledger.read_only(export)
    try:
        known = known_anchors(copy.database)
        whole = [str(finding) for finding in ledger_findings(known, is_copy=True)]
        reports = []
        for run_id in copy.runs():
            end = copy.head(run_id).links
            heads = [head for head in known.heads_of(run_id) if head.links <= end]
            report = _report(copy, run_id, heads)
            differs = []
            if hash_at(ledger.database, run_id, report.links) != report.head:
                differs.append(f"run {run_id}: chain {report.links} edited: the ledger holds no such link")
            reports.append(replace(report, findings=(*report.findings, *differs, *whole)))
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
