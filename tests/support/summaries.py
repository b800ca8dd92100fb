"""The summaries of a ledger against its events: as stored, as rebuilt, and as the folds of the rules say it."""

from fairwitness.app.views.board import view_of_summary
from fairwitness.contracts.autopilot.facts import AutopilotState
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.contracts.forge.dag import Dag
from fairwitness.ledger.feature_summary import FeatureSummary
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.phase_summary import PhaseSummary
from fairwitness.ledger.run_summary import RunSummary
from fairwitness.ledger.summary import folded_summary, graph_of, run_summaries, summary_differs, summary_of
from fairwitness.rules.cost import standing_score
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
        assert list(stored.parts().items()) == list(folded.parts().items()), "the order of nodes and calls counts"
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
    _pipeline(run.feature, state)


def _pipeline(seen: FeatureSummary, state: FeatureState) -> None:
    for name, step in state.steps.items():
        found, outcome = seen.steps[name], step.outcome.value if step.outcome else None
        if found.outcome == outcome:  # a step that a resumed run reopened is shown as it ended
            assert (found.visits, found.started, found.finished) == (step.runs, step.started_at, step.finished_at)
    assert {name for name, step in seen.steps.items() if step.visits} == set(state.steps)
    assert {name: (call.status, call.tokens, call.life) for name, call in seen.calls.items()} == {
        name: (call.status.value if call.status else None, call.tokens, call.life)
        for name, call in state.dispatches.items()
    }
    assert seen.tokens == sum(call.tokens for call in state.dispatches.values())
    assert seen.refused == sum(call.refused_calls for call in state.dispatches.values())
    assert [kind for kind, _ in seen.degradations] == [each.kind.value for each in state.degradations]
    assert (seen.commit, seen.rollback) == (state.commit, state.rollback_command)
    assert (seen.decisions, seen.lives) == (state.decisions, state.resumed)
    assert {gate for gate, _ in seen.gates} == set(state.gates)
    assert len(seen.exhausted_budgets) == len(state.exhausted)
    assert sum(map(len, seen.reviews.values())) == len(state.reviews)


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
    _board(ledger, run, state)


def _board(ledger: Ledger, run: RunSummary, folded: AutopilotState) -> None:
    """What the board shows is what the fold says, but for the last error of the breaker: it names why it opened."""
    view, state = view_of_summary(ledger.database, run.run_id), folded.state
    meta, breaker = state.meta, state.circuit_breaker
    assert (view.status, view.threshold) == (meta.status.value, meta.pass_threshold)
    assert (view.current_phase, view.current_step) == (meta.current_phase, meta.current_step)
    assert (view.deferred, view.processed) == (meta.human_deferred_count, meta.total_phases_processed)
    assert (view.resolution_rate, view.confidence_limit) == (meta.autonomous_resolution_rate, meta.deferral_confidence)
    assert (view.breaker, view.cooldown_until) == (breaker.state.value, breaker.cooldown_until)
    assert (view.tokens, view.minutes) == (state.metrics.total_tokens_used, state.metrics.total_duration_minutes)
    for line in view.phases:
        record = state.phases[line.id]
        assert (line.type, line.status, line.tokens) == (record.phase_type, record.status, record.tokens_used)
        assert (line.score, line.scores) == (standing_score(record), tuple(one.score for one in record.score_history))
        summary = run.board.lines.get(line.id) or PhaseSummary()
        assert (summary.cycles, summary.debugged) == (record.remediation_cycles, record.debug_attempts)
        assert (summary.replanned, summary.is_incomplete) == (record.replan_attempts, record.force_incomplete)
        assert summary.quality_exhausted == bool(record.quality_exhausted)
        assert summary.gaps_exhausted == bool(record.gaps_exhausted)
        assert summary.is_suspect == bool(record.rubber_stamp_suspect)
        assert summary.verdict == (None if record.human_verdict is None else record.human_verdict.verdict)
