"""The evidence bundle of a run, as it was stored."""

from pathlib import Path
from typing import NamedTuple

from fairwitness.app.feature_run import opened_context
from fairwitness.app.looking import meant_run
from fairwitness.errors import UsageError


class Bundle(NamedTuple):
    """The page, and by what it is known."""

    run_id: str
    path: str
    sha256: str
    text: str


def bundle_of(root: Path, wanted: str) -> Bundle:
    """The bundle of a run; read by its hash, so that it is the one its commit names."""
    run_id = meant_run(root, wanted)
    with opened_context(root, run_id) as context:
        path = context.layout.evidence_bundle
        digest = context.state().artifacts.get(path)
        if digest is None:
            raise UsageError(f"run {run_id} has no evidence bundle yet", next_step=f"fairwitness status {run_id}")
        return Bundle(run_id, path, digest.removeprefix("sha256:"), context.kept_bytes(digest).decode())
