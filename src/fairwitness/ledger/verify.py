"""Verifies that a ledger is unchanged: every row against its link, every link against the previous one, every head.

Edited, deleted, inserted and reordered rows show from the ledger alone. A truncated end is detected only with stored
heads: those in the event log, and those that the caller provides (from git refs).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from fairwitness.db.base import Database, ReadQuery
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


@dataclass(frozen=True, slots=True)
class LedgerFinding:
    """One row or link that was changed after it was written."""

    kind: Tampering
    run_id: str
    table: str
    row: int
    detail: str

    def __str__(self) -> str:
        return f"run {self.run_id}: {self.table} {self.row} {self.kind.value}: {self.detail}"


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
            yield LedgerFinding(
                Tampering.REORDERED, run_id, member.table, member.row, f"stands in two links, also {seq}"
            )
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
    import json

    try:
        said = json.loads(body or "null")
    except ValueError:
        return False  # the claim was edited, which its own link shows
    return isinstance(said, dict) and said.get("met") is True


def _recorded_heads(read: ReadQuery, run_id: str) -> Iterator[Head]:
    """Yield the heads that the run recorded in its event log."""
    import json

    for (data,) in read("SELECT data FROM events WHERE run_id = ? AND type = 'head_recorded' ORDER BY seq", (run_id,)):
        try:
            noted = json.loads(data)
            yield Head(int(noted["rows"]), str(noted["head"]))
        except (ValueError, TypeError, KeyError):
            continue  # the event was edited, which its own link shows


def _check_heads(run_id: str, hashes: dict[int, str], heads: Iterable[Head]) -> Iterator[LedgerFinding]:
    last = max(hashes, default=0)
    for head in dict.fromkeys(heads):
        if head.links > last:
            yield LedgerFinding(
                Tampering.TRUNCATED, run_id, "chain", head.links, f"the ledger ends at link {last}, a head knows more"
            )
        elif head.links and hashes.get(head.links) != head.hash:
            yield LedgerFinding(Tampering.EDITED, run_id, "chain", head.links, "not the head that was kept")


def hash_at(database: Database, run_id: str, links: int) -> str | None:
    """Return the hash of a run's chain at this length, or None if it is shorter."""
    rows = database.read("SELECT hash FROM chain WHERE run_id = ? AND seq = ?", (run_id, links))
    return str(rows[0][0]) if rows else None
