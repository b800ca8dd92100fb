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
from fairwitness.runs.shared.state_files import AutopilotProjection, ForgeProjection
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


@pytest.mark.req("A1")
def test_autopilots_state_file_follows_its_events_and_keeps_a_backup(ledger: Ledger, tmp_path: Path) -> None:
    run_id, said, setup = fold_streams.PILOT_RUN, fold_streams.PILOT, fold_streams.SETUP
    store = Store(tmp_path / "root")
    projection = AutopilotProjection(ledger, store, run_id, setup)
    envelopes = stream(Workflow.AUTOPILOT, run_id, said)
    tell(ledger, envelopes[:-1])
    before = projection.refresh()
    tell(ledger, envelopes[-1:])
    after = projection.refresh()
    assert json.loads(store.get(".autopilot/state.json")) == after.state.plain()
    assert json.loads(store.get(".autopilot/state.json.backup")) == before.state.plain()
    assert AutopilotProjection(ledger, Store(tmp_path / "other"), run_id, setup).refresh() == after


def test_events_that_cannot_have_happened_are_named(ledger: Ledger, tmp_path: Path) -> None:
    run_id = "run-7f2"
    tell(ledger, stream(Workflow.FORGE, run_id, [("run.completed", {})]))
    with pytest.raises(EventsBroken, match=r"run run-7f2: events\[1\]"):
        ForgeProjection(ledger, Store(tmp_path / "root"), ForgeLayout(run_id)).refresh(
            Dag.model_validate(value_of("004/dag.json"))
        )
    assert not (tmp_path / "root").exists()


@pytest.mark.req("A5")
def test_an_event_costs_the_same_at_the_beginning_and_after_ten_thousand(tmp_path: Path) -> None:
    """Bytes handed to the disk by each hundred events; a growing file rewritten each time would show at once."""
    ledger = Ledger.open_file(tmp_path / "evidence.db")

    def hundred() -> int:
        before = _written()
        tell(ledger, stream(Workflow.FORGE, "run-1", [("run.resumed", {})] * 100))
        return _written() - before

    hundred()
    early = min(hundred() for _ in range(5))

    def many(count: int) -> None:
        ledger.record(
            "run-1",
            lambda record: [
                record.event(Workflow.FORGE, "run.resumed", {}, timestamp="2026-02-26T14:30:00Z") for _ in range(count)
            ],
        )

    many(10_000)
    hundred()
    late = min(hundred() for _ in range(5))
    ledger.close()
    assert late <= 1.5 * early


def _written() -> int:
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("wchar:"):
            return int(line.split()[1])
    raise AssertionError("this kernel does not count")
