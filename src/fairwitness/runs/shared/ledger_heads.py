"""Keeping a ledger's head in two more places: the run's own event log and a git ref."""

from pathlib import Path

from fairwitness.contracts.common.words import Workflow
from fairwitness.contracts.feature.events import HeadRecorded
from fairwitness.git.ledger_heads import KeptHead, keep_head
from fairwitness.ledger.chain import Head
from fairwitness.ledger.ledger import Ledger


def record_head(ledger: Ledger, work_tree: Path, run_id: str, workflow: Workflow, *, timestamp: str) -> Head:
    """Notes the head in the event log, then keeps the head after that note in git; returns the latter.

    A crash between the two leaves an older ref, which a longer chain still agrees with.
    """
    before = ledger.head(run_id)
    note = HeadRecorded(head=before.hash, rows=before.links)
    data = note.model_dump(mode="json", exclude={"type"})
    ledger.record(run_id, lambda record: record.event(workflow, note.type, data, timestamp=timestamp))
    after = ledger.head(run_id)
    keep_head(work_tree, run_id, KeptHead(after.links, after.hash))
    return after
