"""Anchors: the heads of runs, kept where an editor of the database does not reach.

An anchor says how far the chain of a run had come: its number of links and its last hash. The anchors of a ledger form
a chain of their own over all runs, in the table `anchors`: the hash of an anchor commits to every earlier one, so that
the last hash, the *ledger head*, commits to all runs. A person who holds a ledger head can check the ledger against it.

Each anchor is also a line in the user's state directory, in `heads/<ledger id>.jsonl`, whose lines are chained too. The
row is written first, the line second: a process that dies in between leaves an anchor that the file lacks, which proves
nothing and contradicts nothing. A run is announced by an anchor of zero links before its first record, so that a run
that no line announces was not written on this machine.

The id of a ledger is random and part of every anchor. A ledger from before anchors inherits an id at its first opening;
`adopt` gives a new one, so that two copies of a ledger do not contradict each other.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from fairwitness.db.base import Database, SqlDialect, Transaction
from fairwitness.db.migrations import version_of
from fairwitness.errors import UsageError
from fairwitness.kit import user_state
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.chain import START, Head

ANCHORS_SINCE = 3
"""The version whose migration added the anchors; a ledger that was not written to since then has none."""
LEDGERS = "ledgers.jsonl"
"""The file in the user's state directory that names the places where this machine keeps a ledger."""
COLUMNS = ("number", "ledger", "run_id", "links", "head", "anchored_at", "witness", "prev_hash", "hash")
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM anchors"
_INSERT = f"INSERT INTO anchors ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
_HELD = re.compile(r"([1-9][0-9]{0,11}):([0-9a-f]{64})")


class Reason(StrEnum):
    """Why a line was written."""

    BEGUN = "begun"
    """A run begins: it has no links yet."""
    REACHED = "reached"
    """A run came to a decision, a gate or its end."""
    INHERITED = "inherited"
    """The ledger was written before there were anchors."""
    ADOPTED = "adopted"
    """A person accepted the ledger as it was."""


class Anchor(NamedTuple):
    """One row of the table `anchors`."""

    number: int
    ledger: str
    run_id: str
    links: int
    head: str
    at: str
    witness: str
    """The hash of the last line that the file in the user's state directory had then."""
    previous: str
    hash: str

    @property
    def held(self) -> str:
        """Return the ledger head as a person holds it."""
        return f"{self.number}:{self.hash.removeprefix('sha256:')}"


class HeldHead(NamedTuple):
    """A ledger head that a person holds."""

    number: int
    hash: str


class AnchorLine(NamedTuple):
    """What one line of this machine says: how far some runs had come, and the last anchor of the ledger then."""

    reason: Reason
    number: int
    hash: str
    at: str
    runs: Mapping[str, Head]
    gone: frozenset[str]
    """The runs that a person accepted as gone, as they are spelled in refs."""


class AnchorLines(NamedTuple):
    """The lines of this machine about one ledger."""

    lines: tuple[AnchorLine, ...]
    broken: tuple[int, ...]
    """The numbers of lines that were changed, or before which one was removed or inserted."""
    hashes: frozenset[str]


NO_LINES = AnchorLines((), (), frozenset())


def read_held(text: str) -> HeldHead:
    """Return a ledger head as `fairwitness ledger verify` prints it."""
    found = _HELD.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no ledger head", next_step="give it as it was printed: NUMBER:64 hex digits")
    return HeldHead(int(found[1]), f"sha256:{found[2]}")


def file_of(ledger: str) -> str:
    """Return the name of a ledger's file in the user's state directory."""
    return f"heads/{ledger}.jsonl"


def anchor_hash(anchor: Anchor) -> str:
    """Return the hash of an anchor over its values and the previous hash, one per line."""
    number, ledger, run_id, links, head, at, witness, previous, _ = anchor
    text = f"{ledger}\n{number}\n{run_id}\n{links}\n{head}\n{at}\n{witness}\n{previous}"
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def copy_anchors(database: Database, transaction: Transaction, run_id: str) -> None:
    """Copy the anchors since the first one of a run into its export, so that it can be checked against a later head."""
    first = "(SELECT MIN(number) FROM anchors WHERE run_id = ?)"
    for row in database.read(f"{_SELECT} WHERE number >= {first} ORDER BY number", (run_id,)):
        transaction.run(_INSERT, row)


def has_anchors(database: Database) -> bool:
    """Return whether the database has a table of anchors."""
    return version_of(database) >= ANCHORS_SINCE


def place_of(database: Database) -> str:
    """Return the place of a ledger: the path of its file, or the name of its server and database."""
    return os.path.realpath(database.name) if database.dialect is SqlDialect.SQLITE else database.name


def ledgers_at(place: str) -> tuple[str, ...]:
    """Return the ids of the ledgers that this machine kept at a place, oldest first."""
    return tuple(dict.fromkeys(str(one["ledger"]) for one in user_state.remembered(LEDGERS) if one["place"] == place))


def lines_of(ledger: str) -> AnchorLines:
    """Return what this machine wrote about a ledger."""
    found = user_state.remembered_in_chain(file_of(ledger))
    lines, broken = [], list(found.broken)
    for number, record in enumerate(found.records, 1):
        line = _line(record)
        if line is None:
            broken.append(number)
        else:
            lines.append(line)
    return AnchorLines(tuple(lines), tuple(sorted(set(broken))), found.hashes)


def _line(record: Mapping[str, Any]) -> AnchorLine | None:
    try:
        runs = {str(run): Head(int(links), str(head)) for run, (links, head) in record["runs"].items()}
        gone = frozenset(map(str, record.get("gone", ())))
        return AnchorLine(
            Reason(record["reason"]), int(record["number"]), str(record["hash"]), str(record["at"]), runs, gone
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


class KnownAnchors(NamedTuple):
    """What a ledger and this machine say about the heads of its runs."""

    rows: tuple[Anchor, ...]
    """The anchors in the database, in the order of their numbers."""
    lines: AnchorLines
    is_shared: bool
    """Whether other machines write to this ledger."""

    @property
    def ids(self) -> frozenset[str]:
        """The ids that this ledger had."""
        return frozenset(row.ledger for row in self.rows)

    @property
    def held(self) -> str:
        """The ledger head as a person holds it; empty if there is none."""
        return self.rows[-1].held if self.rows else ""

    @property
    def gone(self) -> frozenset[str]:
        """The runs that a person accepted as gone, as they are spelled in refs."""
        return frozenset(run for line in self.lines.lines for run in line.gone)

    def heads_of(self, run_id: str) -> list[Head]:
        """Return the heads of a run that were anchored, here or in the database."""
        return [
            *(Head(row.links, row.head) for row in self.rows if row.run_id == run_id and row.links),
            *(line.runs[run_id] for line in self.lines.lines if run_id in line.runs),
        ]

    def is_foreign(self, run_id: str) -> bool:
        """Return whether a run was neither begun nor accepted here; in a shared ledger, by no machine."""
        begun = (run_id in line.runs for line in self.lines.lines if line.reason is not Reason.REACHED)
        return not any(begun) and not (self.is_shared and any(row.run_id == run_id for row in self.rows))

    def is_from_elsewhere(self, run_id: str) -> bool:
        """Return whether only another machine anchored a run of a shared ledger."""
        return self.is_shared and not any(run_id in line.runs for line in self.lines.lines)


def known_anchors(database: Database) -> KnownAnchors:
    """Return what is known about the heads of a ledger.

    This machine's lines are read before the rows, because a row is written before its line.
    """
    is_shared = database.dialect is not SqlDialect.SQLITE
    if not has_anchors(database):
        return KnownAnchors((), NO_LINES, is_shared)
    last = database.read("SELECT ledger FROM anchors ORDER BY number DESC LIMIT 1")
    lines = lines_of(str(last[0][0])) if last else NO_LINES
    rows = tuple(Anchor(*row) for row in database.read(f"{_SELECT} ORDER BY number"))
    return KnownAnchors(rows, lines, is_shared)


def last_anchor(database: Database, run_id: str) -> Anchor | None:
    """Return the last anchor of a run with a link, or None."""
    if not has_anchors(database):
        return None
    sql = f"{_SELECT} WHERE run_id = ? AND links > 0 ORDER BY number DESC LIMIT 1"
    rows = database.read(sql, (run_id,))
    return Anchor(*rows[0]) if rows else None


class Anchorage:
    """Writes the anchors of one open ledger: the row in its database, and the line on this machine."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._registered: str | None = None
        self._witness: tuple[str, str] = ("", "")

    def write(self, run_id: str, at: str, reason: Reason) -> Anchor:
        """Anchor the present head of a run; raise if this machine's line cannot be written."""
        last = self._database.read("SELECT ledger FROM anchors ORDER BY number DESC LIMIT 1")
        known = str(last[0][0]) if last else ""
        witness = self._witness_of(known) if known else ""
        fresh = user_state.new_id()

        def work(transaction: Transaction) -> Anchor:
            # two processes never take the same number
            transaction.take_turns("anchors")
            return _add(transaction, _present(transaction, run_id), at, witness=witness, fresh=fresh)[-1]

        anchor = self._database.write(work)
        killpoint("ledger.anchor.row")
        self._keep(anchor, {run_id: Head(anchor.links, anchor.head)}, reason)
        killpoint("ledger.anchor.line")
        self._register(anchor.ledger)
        return anchor

    def take_over(self, at: str, reason: Reason, *, gone: Iterable[str] = ()) -> Anchor | None:
        """Give the ledger a new id and anchor the present heads of all its runs; None if it has no run.

        The line is written before the rows are committed: a process that dies in between leaves the file of an id that
        no ledger has.
        """
        fresh = user_state.new_id()
        missing = tuple(gone)

        def work(transaction: Transaction) -> Anchor | None:
            transaction.take_turns("anchors")
            if reason is Reason.INHERITED and transaction.run("SELECT 1 FROM anchors LIMIT 1"):
                return None  # another process was faster
            runs = _present(transaction)
            if not runs and not missing:
                return None
            anchors = _add(transaction, runs or {"": Head(0, START)}, at, witness="", fresh=fresh, renew=True)
            self._keep(anchors[-1], runs, reason, gone=missing)
            killpoint("ledger.anchor.taken-over")
            return anchors[-1]

        anchor = self._database.write(work)
        if anchor is not None:
            self._register(anchor.ledger)
        return anchor

    def _keep(self, anchor: Anchor, runs: Mapping[str, Head], reason: Reason, *, gone: tuple[str, ...] = ()) -> None:
        record = {
            "reason": reason.value,
            "number": anchor.number,
            "hash": anchor.hash,
            "at": anchor.at,
            "runs": {run: [head.links, head.hash] for run, head in runs.items()},
            **({"gone": list(gone)} if gone else {}),
        }
        self._witness = (anchor.ledger, user_state.remember_in_chain(file_of(anchor.ledger), record))

    def _witness_of(self, ledger: str) -> str:
        if self._witness[0] != ledger:
            self._witness = (ledger, user_state.end_of_chain(file_of(ledger)))
        return self._witness[1]

    def _register(self, ledger: str) -> None:
        """Note where this ledger is, once."""
        if self._registered != ledger:
            place = place_of(self._database)
            if ledger not in ledgers_at(place):
                user_state.remember(LEDGERS, {"ledger": ledger, "place": place})
            self._registered = ledger


def _present(transaction: Transaction, run_id: str | None = None) -> dict[str, Head]:
    """Return the heads of all runs, or of one run, which may have no link yet."""
    only, values = ("", ()) if run_id is None else (" WHERE run_id = ?", (run_id,))
    rows = transaction.run(
        "SELECT c.run_id, c.seq, c.hash FROM chain c "
        f"JOIN (SELECT run_id, MAX(seq) AS seq FROM chain{only} GROUP BY run_id) last "
        "ON last.run_id = c.run_id AND last.seq = c.seq ORDER BY c.run_id",
        values,
    )
    found = {str(run): Head(int(links), str(hash_)) for run, links, hash_ in rows}
    return found if run_id is None or found else {run_id: Head(0, START)}


def _add(
    transaction: Transaction, runs: Mapping[str, Head], at: str, *, witness: str, fresh: str, renew: bool = False
) -> tuple[Anchor, ...]:
    """Insert the anchors of these runs; the id of the ledger is the last one, or `fresh`."""
    rows = transaction.run(f"{_SELECT} ORDER BY number DESC LIMIT 1")
    number, ledger, previous = (rows[0][0], rows[0][1], rows[0][-1]) if rows else (0, fresh, START)
    added = []
    for run_id, head in runs.items():
        number += 1
        anchor = Anchor(number, fresh if renew else ledger, run_id, head.links, head.hash, at, witness, previous, "")
        anchor = anchor._replace(hash=anchor_hash(anchor))
        transaction.run(_INSERT, anchor)
        added.append(anchor)
        previous = anchor.hash
    return tuple(added)


def broken_anchors(anchors: Sequence[Anchor], *, is_copy: bool) -> Iterator[tuple[int, str]]:
    """Yield every anchor whose row was changed, removed or inserted, with what is wrong.

    A copy begins with the first anchor of its run.
    """
    expected, previous = 1, START
    if is_copy and anchors:
        expected, previous = anchors[0].number, anchors[0].previous
    for anchor in anchors:
        if anchor.number > expected:
            yield expected, "deleted: its row is gone"
        if anchor_hash(anchor) != anchor.hash:
            yield anchor.number, "edited: its row does not hash to what it says"
        elif anchor.previous != previous and anchor.number == expected:
            yield anchor.number, "reordered: it does not follow the one before it"
        expected, previous = anchor.number + 1, anchor.hash
