"""The summaries of a ledger against its events: as stored, as rebuilt, and as the folds of the rules say it."""

from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.forge.dag import Dag
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.run_summary import RunSummary
from fairwitness.ledger.summary import folded_summary, graph_of, run_summaries, summary_differs, summary_of
from fairwitness.rules.dag import is_exhausted
from fairwitness.rules.fold_feature import fold_feature
from fairwitness.rules.fold_forge import fold_forge
from fairwitness.runs.autopilot.log import AutopilotLog

_WORDS = {
    AutopilotRunStatus.RUNNING: {"executing", "waiting"},
    AutopilotRunStatus.PAUSED: {"paused"},
    AutopilotRunStatus.COMPLETED: {"completed"},
    AutopilotRunStatus.FAILED: {"failed"},
}


def assert_summaries(ledger: Ledger) -> list[RunSummary]:
    """Every summary is the one that the events give, and says what the folds say; returns all of them."""
    runs = run_summaries(ledger.database, RunSummary)
    for run in runs:
        stored = summary_of(ledger.database, run.run_id, RunSummary)
        folded = ledger.database.look(lambda read, name=run.run_id: folded_summary(read, name))  # type: ignore[misc]  # the name of this round
        assert not summary_differs(ledger.database, run.run_id)
        assert stored.plain() == folded.plain() == run.plain()
        assert [node.plain() for node in stored.nodes.values()] == [node.plain() for node in folded.nodes.values()]
        of = [node.counts() for node in stored.nodes.values()]
        assert list(stored.counted.values()) == [sum(counts[place] for counts in of) for place in range(3)]
        _agrees_with_rules(ledger, stored)
    return runs


def _agrees_with_rules(ledger: Ledger, run: RunSummary) -> None:
    match run.workflow:
        case "feature":
            _feature(ledger, run)
        case "forge":
            _forge(ledger, run)
        case _:
            _autopilot(ledger, run)


def _feature(ledger: Ledger, run: RunSummary) -> None:
    state = fold_feature(ledger.events(run.run_id))
    assert not isinstance(state, Problem), state
    asked = {gate for gate, approval in state.approvals.items() if approval.selected_option is None}
    assert (run.seq, run.request, run.is_over) == (state.seq, state.slug, state.ending is not None)
    assert run.asks == asked
    if state.ending is not None:
        assert (run.status, run.reason) == (state.ending.outcome.value, state.ending.reason or None)
    else:
        assert run.status == ("waiting" if asked else "executing")
    assert run.counted["merged"] >= sum(task.merged is not None for task in state.tasks.values())


def _forge(ledger: Ledger, run: RunSummary) -> None:
    graph = graph_of(ledger.database, run.run_id)
    assert graph is not None
    dag, most = Dag.model_validate(graph["dag"]), int(graph["options"]["max_attempts"])
    state = fold_forge(ledger.events(run.run_id), dag, max_attempts=most)
    assert not isinstance(state, Problem), state
    assert (run.seq, run.status, run.tasks) == (state.run.lastEventSeq, state.run.status.value, state.run.totalTasks)
    assert run.counted == {
        "merged": state.run.completedTasks,
        "failed": state.run.failedTasks,
        "running": state.run.runningTasks,
    }
    for name, node in run.nodes.items():
        folded = state.dag.nodes[name]
        assert (node.state, node.attempt, node.error) == (folded.status.value, folded.currentAttempt, folded.lastError)
        assert node.is_exhausted == is_exhausted(folded)


def _autopilot(ledger: Ledger, run: RunSummary) -> None:
    state = AutopilotLog(ledger, run.run_id).state()
    phases = {phase: record.status.value for phase, record in state.state.phases.items()}
    assert {phase: run.phases.statuses.get(phase, "not_started") for phase in phases} == phases
    assert run.status in _WORDS[state.state.meta.status]
    assert run.seq == state.seq
