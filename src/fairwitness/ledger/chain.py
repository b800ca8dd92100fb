"""The hash chain of a run: every record is a link over its rows, and each link contains the hash of the previous one.

A link lists its rows with a digest of each, so that a changed row is identified and not only detected. The chain shows
edited, deleted, inserted and reordered rows. A truncated end is detected only with a head that is stored elsewhere (in
the event log and in a git ref).
"""

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

from fairwitness.db.base import Row, Transaction

START = "sha256:" + "0" * 64
"""The previous hash of the first link."""


class Head(NamedTuple):
    """The end of a run's chain: the number of links, and the hash of the last."""

    links: int
    hash: str


class ChainMember(NamedTuple):
    """One row of a link."""

    table: str
    row: int
    digest: str


_spell_row = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def row_digest(table: str, values: Sequence[object]) -> str:
    """Return the digest of a row: its table and its values in the order of the columns, as JSON."""
    return hashlib.sha256(_spell_row([table, *values]).encode()).hexdigest()


def link_hash(run_id: str, seq: int, members: str, previous: str) -> str:
    """Return the hash of a link over its rows and the previous link, one per line; none contains a line break."""
    return "sha256:" + hashlib.sha256(f"{run_id}\n{seq}\n{previous}\n{members}".encode()).hexdigest()


def spell_members(members: Sequence[ChainMember]) -> str:
    """Return the rows of a link as JSON for the table; it is built by hand because nothing in it needs escaping."""
    return "[" + ",".join([f'["{table}",{row},"{digest}"]' for table, row, digest in members]) + "]"


def read_members(text: str) -> tuple[ChainMember, ...]:
    """Return the rows of a link; raise ValueError if the text is not such a list."""
    listed = json.loads(text)
    if not isinstance(listed, list) or not all(isinstance(one, list) and len(one) == 3 for one in listed):
        raise ValueError("not the members of a link")
    return tuple(ChainMember(str(table), int(row), str(digest)) for table, row, digest in listed)


def add_link(transaction: Transaction, run_id: str, members: Sequence[ChainMember]) -> Head:
    """Append a link over the rows of one record."""
    rows: list[Row] = transaction.run(
        "SELECT seq, hash FROM chain WHERE run_id = ? ORDER BY seq DESC LIMIT 1", (run_id,)
    )
    last, previous = rows[0] if rows else (0, START)
    spelled = spell_members(members)
    head = Head(last + 1, link_hash(run_id, last + 1, spelled, previous))
    transaction.run(
        "INSERT INTO chain (run_id, seq, members, prev_hash, hash) VALUES (?, ?, ?, ?, ?)",
        (run_id, head.links, spelled, previous, head.hash),
    )
    return head
