"""Verifies that a ledger is unchanged: every row against its link, every link against the previous one, every head.

Edited, deleted, inserted and reordered rows show from the ledger alone. A truncated end, a recomputed chain, a missing
or foreign run and a database that was rolled back are detected with heads that are stored elsewhere: in git refs, in
the user's state directory (`fairwitness.ledger.anchors`), and in a person's notes.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from fairwitness.db.base import Database, ReadQuery
from fairwitness.ledger.anchors import HeldHead, KnownAnchors, broken_anchors, file_of, known_anchors
from fairwitness.ledger.chain import START, ChainMember, Head, link_hash, read_members, row_digest
from fairwitness.ledger.tables import CHAINED, Table


class Tampering(StrEnum):
    """The kinds of changes to a ledger."""

    EDITED = "edited"
    DELETED = "deleted"
    INSERTED = "inserted"
    REORDERED = "reordered"
    TRUNCATED = "truncated"
    UNSOURCED = "without a source"
    MISSING = "missing"
    FOREIGN = "foreign"
    ROLLED_BACK = "rolled back"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class LedgerFinding:
    """One row, link, run or anchor that is not as it was written."""

    kind: Tampering
    run_id: str
    """The run; empty if the finding is about the ledger as a whole."""
    table: str
    """The table; empty if the finding is about the whole run or ledger."""
    row: int
    detail: str

    def __str__(self) -> str:
        run = f"run {self.run_id}: " if self.run_id else ""
        row = f"{self.table} {self.row} " if self.table else ""
        return f"{run}{row}{self.kind.value}: {self.detail}"


def verify(database: Database, run_id: str, heads: Iterable[Head] = ()) -> list[LedgerFinding]:
    """Return everything in one run that was changed after it was written; the run may be written to meanwhile."""
    return database.look(lambda read: _verify(read, run_id, heads))


def _verify(read: ReadQuery, run_id: str, heads: Iterable[Head]) -> list[LedgerFinding]:
    findings: list[LedgerFinding] = []
    hashes: dict[int, str] = {}
    members = list(_check_links(read, run_id, findings, hashes))
    findings += _check_rows(read, run_id, members)
    findings += _check_sources(read, run_id)
    findings += _check_heads(run_id, hashes, [*_recorded_heads(read, run_id), *heads])
    return findings


def _check_links(
    read: ReadQuery, run_id: str, findings: list[LedgerFinding], hashes: dict[int, str]
) -> Iterator[tuple[int, ChainMember]]:
    """Yield the rows of every link with its number; add broken links to `findings`."""

    def broken(kind: Tampering, seq: int, detail: str) -> None:
        findings.append(LedgerFinding(kind, run_id, "chain", seq, detail))

    expected, previous = 1, START
    rows = read("SELECT seq, members, prev_hash, hash FROM chain WHERE run_id = ? ORDER BY seq", (run_id,))
    for seq, members, prev_hash, found in rows:
        for missing in range(expected, seq):
            broken(Tampering.DELETED, missing, "the link is gone")
        if link_hash(run_id, seq, members, prev_hash) != found:
            broken(Tampering.EDITED, seq, "the link does not hash to what it says")
        elif prev_hash != previous and seq == expected:
            broken(Tampering.REORDERED, seq, "the link does not follow the one before it")
        expected, previous = seq + 1, found
        hashes[seq] = found
        try:
            yield from ((seq, member) for member in read_members(members))
        except ValueError:
            broken(Tampering.EDITED, seq, "its list of rows cannot be read")


def _check_rows(read: ReadQuery, run_id: str, members: list[tuple[int, ChainMember]]) -> Iterator[LedgerFinding]:
    by_table: dict[str, dict[int, tuple[int, str]]] = {name: {} for name in CHAINED}
    for seq, member in members:
        if member.table not in by_table:
            yield LedgerFinding(Tampering.EDITED, run_id, "chain", seq, f"there is no table {member.table!r}")
            continue
        listed = by_table[member.table]
        if member.row in listed:
            yield LedgerFinding(Tampering.REORDERED, run_id, member.table, member.row, f"is in two links, also {seq}")
        elif listed and member.row < next(reversed(listed)):
            yield LedgerFinding(Tampering.REORDERED, run_id, member.table, member.row, f"out of order in link {seq}")
        listed[member.row] = (seq, member.digest)
    for name, listed in by_table.items():
        yield from _check_table(read, run_id, CHAINED[name], listed)


def _check_table(
    read: ReadQuery, run_id: str, table: Table, listed: dict[int, tuple[int, str]]
) -> Iterator[LedgerFinding]:
    key = table.columns.index(table.key)
    rows = read(
        f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE run_id = ? ORDER BY {table.key}",
        (run_id,),
    )
    for row in rows:
        seq, digest = listed.pop(row[key], (0, ""))
        if not seq:
            yield LedgerFinding(Tampering.INSERTED, run_id, table.name, row[key], "no link knows this row")
        elif row_digest(table.name, row) != digest:
            yield LedgerFinding(Tampering.EDITED, run_id, table.name, row[key], f"not what link {seq} holds")
    for number, (seq, _) in listed.items():
        yield LedgerFinding(Tampering.DELETED, run_id, table.name, number, f"link {seq} holds it")


def _check_sources(read: ReadQuery, run_id: str) -> Iterator[LedgerFinding]:
    rows = read(
        "SELECT c.id, c.passed, c.phase, s.provenance, e.assessment, o.holds, c.verdict, k.body FROM anvil_checks c "
        "LEFT JOIN check_sources s ON s.check_id = c.id LEFT JOIN executions e ON e.id = s.execution_id "
        "LEFT JOIN observations o ON o.id = s.observation_id LEFT JOIN claims k ON k.id = s.claim_id "
        "WHERE c.run_id = ? ORDER BY c.id",
        (run_id,),
    )
    for check, passed, phase, provenance, assessment, holds, verdict, body in rows:
        claimed = verdict == "approve" if phase == "review" else _says_met(body)
        supported = {"executed": assessment == "pass", "observed": holds == 1, "claimed": claimed}
        if provenance is None:
            yield LedgerFinding(
                Tampering.UNSOURCED, run_id, "anvil_checks", check, "no execution, observation or claim"
            )
        elif bool(passed) != supported[provenance]:
            yield LedgerFinding(
                Tampering.EDITED, run_id, "anvil_checks", check, f"not what its {provenance} source says"
            )


def _says_met(body: str | None) -> bool:
    """Return whether a claim about a criterion says that it is met."""
    try:
        said = json.loads(body or "null")
    except ValueError:
        return False  # the claim was edited, which its own link shows
    return isinstance(said, dict) and said.get("met") is True


def _recorded_heads(read: ReadQuery, run_id: str) -> Iterator[Head]:
    """Yield the heads that the run recorded in its event log."""
    for (data,) in read("SELECT data FROM events WHERE run_id = ? AND type = 'head_recorded' ORDER BY seq", (run_id,)):
        try:
            noted = json.loads(data)
            yield Head(int(noted["rows"]), str(noted["head"]))
        except (ValueError, TypeError, KeyError):
            continue  # the event was edited, which its own link shows


def _check_heads(run_id: str, hashes: dict[int, str], heads: Iterable[Head]) -> Iterator[LedgerFinding]:
    """Yield the farthest head beyond the end of the chain, and the first one that the chain contradicts."""
    last = max(hashes, default=0)
    known = sorted(set(heads))
    if known and known[-1].links > last:
        yield LedgerFinding(
            Tampering.TRUNCATED, run_id, "chain", known[-1].links, f"the ledger ends at link {last}, a head knows more"
        )
    for head in known:
        if 0 < head.links <= last and hashes.get(head.links) != head.hash:
            yield LedgerFinding(Tampering.EDITED, run_id, "chain", head.links, "not the head that was kept")
            return


def verify_here(database: Database, run_id: str, heads: Iterable[Head] = ()) -> list[LedgerFinding]:
    """Verify one run as `verify` does, and against what this machine anchored."""
    known = known_anchors(database)
    findings = verify(database, run_id, [*heads, *known.heads_of(run_id)])
    return [*findings, foreign(run_id)] if known.rows and known.is_foreign(run_id) else findings


def foreign(run_id: str) -> LedgerFinding:
    """Return the finding about a run that was not begun on this machine."""
    return LedgerFinding(Tampering.FOREIGN, run_id, "", 0, "it is in the database, but was not begun on this machine")


def ledger_findings(known: KnownAnchors, *, is_copy: bool = False) -> Iterator[LedgerFinding]:
    """Yield what is wrong with the anchors of a ledger: among themselves, and against what this machine wrote.

    A copy begins with the first anchor of its run and may end earlier than the ledger.
    """
    for number, words in broken_anchors(known.rows, is_copy=is_copy):
        kind, _, detail = words.partition(": ")
        yield LedgerFinding(Tampering(kind), "", "anchor", number, detail)
    if not known.rows or not known.lines.lines:
        return
    first, last, lines = known.rows[0], known.rows[-1], known.lines
    here = f"{file_of(last.ledger)} in the user's state directory"
    if lines.broken:
        detail = f"a line of {here} was changed, removed or inserted there"
        yield LedgerFinding(Tampering.EDITED, "", "line", lines.broken[0], detail)
    hashes = {row.number: row.hash for row in known.rows}
    farthest = max(lines.lines, key=lambda line: line.number)
    if farthest.number > last.number and not is_copy:
        detail = (
            f"the database ends at anchor {last.number} ({last.at}), but this machine wrote anchor {farthest.number} "
            f"({farthest.at}): an older copy was put in its place"
        )
        yield LedgerFinding(Tampering.ROLLED_BACK, "", "", 0, detail)
    for line in lines.lines:
        if first.number <= line.number <= last.number and hashes.get(line.number) != line.hash:
            detail = f"not the one that this machine wrote at {line.at}: forged, or rolled back and then used"
            yield LedgerFinding(Tampering.REPLACED, "", "anchor", line.number, detail)
            break
    if not known.is_shared and not lines.broken:
        for row in known.rows:
            if row.ledger == last.ledger and row.witness and row.witness not in lines.hashes:
                detail = f"lines were removed from {here}: anchor {row.number} knows one that is gone"
                yield LedgerFinding(Tampering.TRUNCATED, "", "", 0, detail)
                break


def head_findings(known: KnownAnchors, held: Iterable[HeldHead], holder: str) -> Iterator[LedgerFinding]:
    """Yield the ledger heads held elsewhere that the anchors contradict or do not reach."""
    hashes = {row.number: row.hash for row in known.rows}
    last = max(hashes, default=0)
    for head in sorted(held):
        if head.number > last:
            detail = f"the ledger ends at anchor {last}, but {holder} anchor {head.number}"
            yield LedgerFinding(Tampering.ROLLED_BACK, "", "", 0, detail)
            return
        if hashes.get(head.number) != head.hash:
            detail = f"{holder} another one: this is another ledger, or it was forged before that anchor"
            yield LedgerFinding(Tampering.REPLACED, "", "anchor", head.number, detail)
            return


def stored_outputs(read: ReadQuery, run_id: str) -> Iterator[tuple[str, str]]:
    """Yield the hash of everything that a run stored beside the ledger, each with the row that names it."""
    for number, detail in read("SELECT id, detail FROM observations WHERE run_id = ? ORDER BY id", (run_id,)):
        said = _mapping(detail)
        kept = said.get("kept")
        named = (*(kept.values() if isinstance(kept, dict) else ()), said.get("result"), said.get("transcript"))
        yield from ((value, f"observation {number}") for value in named if _is_hash(value))
    events = "SELECT seq, data FROM events WHERE run_id = ? AND type = 'artifact_written' ORDER BY seq"
    for number, data in read(events, (run_id,)):
        path, digest = artifact_in(data)
        if _is_hash(digest):
            yield digest, f"event {number}, {path}"


def artifact_in(data: str) -> tuple[str, str]:
    """Return the path and the hash in an event about a written document; empty if it was edited."""
    said = _mapping(data)
    return str(said.get("path", "")), str(said.get("sha256", ""))


def _mapping(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}  # the row was edited, which its link shows
    return value if isinstance(value, dict) else {}


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and value.startswith("sha256:") and len(value) == len(START)


def hash_at(database: Database, run_id: str, links: int) -> str | None:
    """Return the hash of a run's chain at this length, or None if it is shorter."""
    rows = database.read("SELECT hash FROM chain WHERE run_id = ? AND seq = ?", (run_id, links))
    return str(rows[0][0]) if rows else None
