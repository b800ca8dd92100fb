"""State files come from events: refreshed piece by piece they are what folding everything at once gives."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.dag import Dag
from fairwitness.contracts.forge.status import DagStatus, RunState
from fairwitness.errors import EventsBroken
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.dag import COUNTED, run_counts
from fairwitness.runs.forge.files import ForgeProjection
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout
from rules import fold_streams
from rules.fold_streams import stream
from support.fixtures import value_of


def tell(ledger: Ledger, envelopes: Iterable[Envelope]) -> None:
    """Writes envelopes as a workflow would: one record each."""
    for envelope in envelopes:
        ledger.record(
            envelope.run_id,
            lambda record, envelope=envelope: record.event(  # type: ignore[misc]  # a default argument binds the loop's value
                envelope.workflow,
                envelope.type,
                envelope.data,
                timestamp=envelope.timestamp,
                phase=envelope.phase,
                task=envelope.task,
                attempt=envelope.attempt,
            ),
        )


@pytest.mark.req("F6", "F3")
def test_forges_files_follow_its_events_and_agree_with_each_other(ledger: Ledger, tmp_path: Path) -> None:
    run_id, said = fold_streams.FORGE_RUN, fold_streams.FORGE
    store, layout = Store(tmp_path / "root"), ForgeLayout(run_id)
    dag = fold_streams.DAG
    projection = ForgeProjection(ledger, store, layout)
    state = None
    for envelope in stream(Workflow.FORGE, run_id, said):
        tell(ledger, [envelope])
        state = projection.refresh(dag)
        written = RunState.model_validate(json.loads(store.get(layout.run_state)))
        assert written == state.run
        assert written.lastEventSeq == envelope.seq
        status = DagStatus.model_validate(json.loads(store.get(layout.dag_status)))
        assert written.model_dump(include=set(COUNTED)) == run_counts(status)
    whole = ForgeProjection(ledger, Store(tmp_path / "other"), layout).refresh(dag)
    assert whole == state


def test_events_that_cannot_have_happened_are_named(ledger: Ledger, tmp_path: Path) -> None:
    run_id = "run-7f2"
    tell(ledger, stream(Workflow.FORGE, run_id, [("run.completed", {})]))
    with pytest.raises(EventsBroken, match=r"run run-7f2: events\[1\]"):
        ForgeProjection(ledger, Store(tmp_path / "root"), ForgeLayout(run_id)).refresh(
            Dag.model_validate(value_of("004/dag.json"))
        )
    assert not (tmp_path / "root").exists()
