"""The hash chain of a run: every record is a link over its rows, and each link holds the one before.

A link lists its rows with a digest of each, so that a row which was changed is named and not only noticed. The chain
shows what was edited, deleted, inserted or reordered; that its end was cut off shows only against a head kept
elsewhere (in the event log and in a git ref).
"""

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

from fairwitness.db.base import Row, Transaction

START = "sha256:" + "0" * 64
"""What the first link points back to."""


class Head(NamedTuple):
    """The end of a run's chain: how many links, and the hash of the last."""

    links: int
    hash: str


class ChainMember(NamedTuple):
    """One row of a link."""

    table: str
    row: int
    digest: str


_spell_row = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def row_digest(table: str, values: Sequence[object]) -> str:
    """The digest of a row: its table and its values in the order of the columns, as JSON."""
    return hashlib.sha256(_spell_row([table, *values]).encode()).hexdigest()


def link_hash(run_id: str, seq: int, members: str, previous: str) -> str:
    """The hash of a link over its rows and the link before, one to a line; none of them holds a line break."""
    return "sha256:" + hashlib.sha256(f"{run_id}\n{seq}\n{previous}\n{members}".encode()).hexdigest()


def spell_members(members: Sequence[ChainMember]) -> str:
    """The rows of a link as they stand in the table: JSON, written by hand since nothing in it needs escaping."""
    return "[" + ",".join([f'["{table}",{row},"{digest}"]' for table, row, digest in members]) + "]"


def read_members(text: str) -> tuple[ChainMember, ...]:
    """The rows of a link; ValueError if the text was never one of ours."""
    listed = json.loads(text)
    if not isinstance(listed, list) or not all(isinstance(one, list) and len(one) == 3 for one in listed):
        raise ValueError("not the members of a link")
    return tuple(ChainMember(str(table), int(row), str(digest)) for table, row, digest in listed)


def add_link(transaction: Transaction, run_id: str, members: Sequence[ChainMember]) -> Head:
    """Appends a link over the rows of one record."""
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
