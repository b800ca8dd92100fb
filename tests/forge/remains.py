"""What a forge run leaves behind beside what every run does: its one branch, its folder, and files made from events."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from dag.remains import git
from fairwitness.app.run_records.forge import open_forge_run
from fairwitness.contracts.common.ids import run_ref
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.contracts.forge.status import DagStatus, ForgeRunStatus, RunState
from fairwitness.rules.fold_forge import ForgeState, fold_forge
from fairwitness.runs.forge.plan_files import broken_locks
from fairwitness.runs.graph.attempts import PREPARED
from fairwitness.store.layout.forge import ForgeLayout
from feature.remains import Content, Reader, assert_left, read_content, rows_in

NODES = 14
"""Twelve of the plan, and two that a change request adds."""


def content_of(repository: Path, run_id: str) -> Content:
    """Reads all of it, with what stands in each file of the run's folder."""
    reader, folder = Reader(repository, run_id), repository / ForgeLayout(run_id).folder
    reader.names.update(_marked(repository, reader))
    files = [
        f"{path.relative_to(folder)}: {_text(reader, path)}" for path in sorted(folder.rglob("*")) if path.is_file()
    ]
    return read_content(repository, reader, tip=_target(run_id), files=files)


def _marked(repository: Path, reader: Reader) -> Iterator[tuple[str, str]]:
    """Trees in which a refinery found conflict marks, and what stands for them: the marks name commits."""
    for row in rows_in(repository, f"SELECT tree, detail FROM observations WHERE kind = '{PREPARED}'"):
        conflicts = json.loads(row["detail"])["conflicts"]
        if conflicts:
            listed = git(repository, "ls-tree", "-r", row["tree"]).splitlines()
            told = [line for line in listed if line.partition("\t")[2] not in conflicts]
            told += [reader.said(git(repository, "show", f"{row['tree']}:{path}")) for path in conflicts]
            yield row["tree"], f"marked {hashlib.sha256(json.dumps(told).encode()).hexdigest()}"


def _text(reader: Reader, path: Path) -> str:
    text = path.read_text()
    return reader.plain(json.loads(text)) if path.suffix == ".json" else reader.said(text)


def _target(run_id: str) -> str:
    return f"fairwitness/{run_ref(run_id)}/target"


def assert_clean(repository: Path, run_id: str) -> None:
    """Nothing is left but the target, the ledger and what is kept on purpose; what is shown is what happened."""
    branches = git(repository, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads").split()
    assert branches == [_target(run_id), "main"]
    assert_left(repository, run_id, head="main")
    layout = ForgeLayout(run_id)
    with open_forge_run(repository, run_id) as context:
        base, grown = context.log.effective()
        state = fold_forge(
            context.log.ledger.events(run_id), base, max_attempts=context.log.begun().options.max_attempts
        )
        assert broken_locks(context.log, context.files, layout) == ()
    assert isinstance(state, ForgeState)
    assert RunState.model_validate_json((repository / layout.run_state).read_bytes()) == state.run
    assert DagStatus.model_validate_json((repository / layout.dag_status).read_bytes()) == state.dag
    assert state.run.status is ForgeRunStatus.COMPLETED
    assert {node.id for node in grown.nodes} == state.dag.nodes.keys()
    assert [node.status for node in state.dag.nodes.values()] == [NodeState.MERGED] * NODES
