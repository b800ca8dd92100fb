"""What an autopilot run leaves behind beside what every run does: its branches, its pages, and a fold of its events."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from dag.remains import git
from fairwitness.app.run_records.autopilot import open_autopilot_run
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, PhaseStatus
from fairwitness.contracts.common.ids import run_ref
from fairwitness.runs.autopilot.state_file import rendered, whole_state
from fairwitness.store.layout import autopilot
from feature.remains import Content, Reader, assert_left, document, read_content, rows_in

FOLDERS = (".autopilot", ".planning")
CHECKPOINT = "checkpoint_written"
PASSING: Mapping[str, frozenset[str]] = {
    "moments": frozenset({"verified", "locked_at", "cooldown_until", "last_checkpoint"}),
    "how long": frozenset(
        {"seconds", "duration_minutes", "total_duration_minutes", "verification_duration_seconds", "duration_seconds"}
    ),
    "what a killed try had used is counted": frozenset({"total_tokens_used"}),
}
"""What differs between two runs that nobody killed, beside what the reader of every run leaves out."""
_PASSING = frozenset[str]().union(*PASSING.values())

_TOOK = re.compile(r"\b((\d+ min )?[0-9.]+ (ms|s)|[0-9,]+ tokens? used)\b")


class _Reader(Reader):
    """Reads rows and pages of an autopilot run without what passes."""

    def _walk(self, value: Any, name: str) -> Any:
        return "*" if name in _PASSING else super()._walk(value, name)

    def page(self, path: Path) -> str:
        """A file of the run as text."""
        text = path.read_text()
        if path.suffix == ".json":
            return self.plain({"": json.loads(text)})
        if path.suffix == ".jsonl":
            return "\n".join(self.plain(json.loads(line)) for line in text.splitlines())
        return document(_TOOK.sub("time", self.said(text)))


def target_of(run_id: str) -> str:
    """The run's own branch."""
    return f"fairwitness/{run_ref(run_id)}/target"


def content_of(repository: Path, run_id: str) -> Content:
    """Reads all of it, with what stands in each file of the run, on each branch, and in each commit's message.

    Left out are signs of life: during a long step the state file is announced every 45 seconds, and how long a step
    takes differs. The state itself is left out with them, since it lists them; `assert_clean` holds it to be the fold
    of all events, and those are compared.
    """
    reader = _Reader(repository, run_id)
    files = _files(repository, run_id, reader)
    return read_content(repository, reader, tip=target_of(run_id), files=files, left_out=_signs_of_life(repository))


def _signs_of_life(repository: Path) -> set[int]:
    """The checkpoints that no event of the same record comes before: of one record, all have the same moment."""
    told = rows_in(repository, "SELECT seq, type, timestamp FROM events ORDER BY seq")
    return {
        int(row["seq"])
        for before, row in pairwise(told)
        if row["type"] == CHECKPOINT and row["timestamp"] != before["timestamp"]
    }


def _files(repository: Path, run_id: str, reader: _Reader) -> Iterator[str]:
    states = {repository / autopilot.STATE_BACKUP, repository / autopilot.archived_state(run_id)}
    for path in (path for folder in FOLDERS for path in (repository / folder).rglob("*") if path.is_file()):
        name = reader.said(str(path.relative_to(repository)))
        yield f"{name}: {'' if path in states else reader.page(path)}"
    for branch in _branches(repository):
        tree = git(repository, "rev-parse", f"{branch}^{{tree}}")
        yield f"branch {reader.said(branch)}: {tree} {reader.said(git(repository, 'log', '--format=%B', branch))}"


def _branches(repository: Path) -> list[str]:
    return git(repository, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads").split()


def assert_clean(repository: Path, run_id: str) -> None:
    """Nothing is left but the run's branches, the ledger and what is kept on purpose; the archive is the whole fold."""
    assert _branches(repository) == ["autopilot-diagnostic-phase-2", target_of(run_id), "main"]
    assert_left(repository, run_id, head="main")
    assert_archived(repository, run_id)
    with open_autopilot_run(repository, run_id) as context:
        state = context.log.state().state
    assert {record.status for record in state.phases.values()} == {PhaseStatus.COMPLETED}


def assert_archived(repository: Path, run_id: str) -> None:
    """The state of a completed run stands in the archive with every event, and says what its events say."""
    with open_autopilot_run(repository, run_id) as context:
        log = context.log
        assert log.state().state.meta.status is AutopilotRunStatus.COMPLETED
        assert (repository / autopilot.archived_state(run_id)).read_bytes() == rendered(whole_state(log))
        assert (repository / autopilot.STATE_BACKUP).read_bytes() == rendered(log.state().state)
    assert not (repository / autopilot.STATE).exists()
