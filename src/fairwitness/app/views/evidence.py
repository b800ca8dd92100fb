"""The evidence bundle of a run, and single executions with their command, sandbox, result and output."""

from pathlib import Path
from typing import Any, NamedTuple

from fairwitness.app.run_records.feature import open_feature_run
from fairwitness.app.views.detail import FEATURE, resolve_run_at
from fairwitness.app.views.ledger import open_ledger
from fairwitness.contracts.common.evidence import Execution
from fairwitness.errors import StoreError, UsageError
from fairwitness.ledger.ledger import Ledger
from fairwitness.store.artifacts import Store
from fairwitness.verify.shown_command import shown_command


class StoredBundle(NamedTuple):
    """The text of an evidence bundle, with its path and hash."""

    run_id: str
    path: str
    sha256: str
    text: str


def bundle_of(root: Path, wanted: str) -> StoredBundle:
    """Return the bundle of a run, read by the hash that its commit names."""
    run_id = resolve_run_at(root, wanted, workflow=FEATURE)
    with open_feature_run(root, run_id) as context:
        path = context.layout.evidence_bundle
        digest = context.state().artifacts.get(path)
        if digest is None:
            raise UsageError(f"run {run_id} has no evidence bundle yet", next_step=f"fairwitness status {run_id}")
        return StoredBundle(run_id, path, digest.removeprefix("sha256:"), context.kept_bytes(digest).decode())


class ExecutionView(NamedTuple):
    """An execution with its details and output."""

    execution: dict[str, Any]
    detail: dict[str, Any]
    stdout: str
    stderr: str
    command: str
    """The command as it is shown; `execution` holds every word of it."""


def read_execution(root: Path, state: Path, number: int) -> ExecutionView:
    """Return an execution from the ledger with its stored output."""
    ledger = open_ledger(root)
    try:
        execution = ledger.execution(number)
        if execution is None:
            raise UsageError(f"the ledger has no execution {number}", next_step="fairwitness ledger query --list")
        detail = _detail(ledger, execution)
    finally:
        ledger.close()
    kept = detail.get("kept", {})
    return ExecutionView(
        {"id": number, **execution.plain()},
        detail,
        _output(state, kept, "stdout"),
        _output(state, kept, "stderr"),
        shown_command(execution.argv),
    )


def _detail(ledger: Ledger, execution: Execution) -> dict[str, Any]:
    """Return the details recorded for an execution.

    If its result was taken from an earlier execution, the details of that one (such as its output) are included.
    """
    observation = ledger.observation(execution.run_id, execution.key)
    detail = dict(observation.detail) if observation else {}
    taken, looked = detail.get("taken_from"), set[int]()
    while isinstance(taken, dict) and isinstance(number := taken.get("execution"), int) and number not in looked:
        looked.add(number)
        source = ledger.execution(number)
        earlier = ledger.observation(source.run_id, source.key) if source is not None else None
        said = earlier.detail if earlier is not None else {}
        taken = said.get("taken_from")
        detail = {**said, **detail}
    return detail


def _output(state: Path, kept: Any, stream: str) -> str:
    digest = kept.get(stream) if isinstance(kept, dict) else None
    if not isinstance(digest, str):
        return ""
    try:
        content = Store(state).get(f"outputs/{digest.removeprefix('sha256:')}", sha256=digest, limit=4 << 20)
    except StoreError:
        return "(no longer stored)"
    return content.decode(errors="replace")
