"""The only function that decides a feature run's next move, from facts alone.

Scheduler, command line, dashboard, MCP and merge all use it, so they cannot disagree. The same facts give the same
decision, regardless of the order of calls, rows and tasks.
"""

from collections.abc import Iterable, Sequence
from typing import assert_never

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.completion import FeatureAgent
from fairwitness.contracts.common.decisions import (
    Advance,
    AskHuman,
    Decision,
    Finish,
    FinishOutcome,
    Graded,
    Halt,
    HaltOutcome,
    Replan,
    Retry,
    RetryOf,
    Revert,
    Revise,
    Wait,
    WaitsFor,
)
from fairwitness.contracts.common.gates import Blocked, GateAnswer
from fairwitness.contracts.common.policy import Policy, RunPath
from fairwitness.contracts.common.vocabulary import Severity
from fairwitness.contracts.feature.events import Degradation
from fairwitness.contracts.feature.facts import (
    OPTIONS,
    CallFacts,
    CanStart,
    FeatureFacts,
    FixFacts,
    ReviewFacts,
    Step,
    TaskFacts,
)
from fairwitness.contracts.feature.research import Focus
from fairwitness.rules.confidence import confidence_facts, grade, may_commit
from fairwitness.rules.feature_paths import REJOINS_AT, calls_on, route_on, why_left
from fairwitness.rules.feature_retry import after_failed_verification, under_way
from fairwitness.rules.feature_routes import (
    AGENT_OF,
    GATE_OF,
    OUTCOME_OF,
    Action,
    RouteOutcome,
    after_plan,
    as_read,
    default_choice,
)
from fairwitness.rules.gates import baseline_exists, is_verified, task_gates, task_rows
from fairwitness.rules.review import after_review, exhausted

_WORK = (Step.IMPLEMENT, Step.VERIFY, Step.CODE_REVIEW)


def decide(facts: FeatureFacts, policy: Policy) -> Decision:
    """Return what the run does next, with the reason and the gates behind it."""
    decision = _next_move(facts, policy)
    if facts.can_start is CanStart.YES or not _starts_something(decision):
        return decision
    assert facts.held_by is not None
    if facts.can_start is CanStart.NOT_NOW:
        return Wait(
            reason=f"held by {facts.held_by}",
            gates=decision.gates,
            waits_for=WaitsFor.PERMISSION,
            what=(facts.held_by,),
        )
    if facts.step is Step.KNOWLEDGE or (isinstance(decision, Advance) and decision.to == Step.KNOWLEDGE):
        return _routed(facts, policy, RouteOutcome.ERROR, step=Step.KNOWLEDGE, degraded=(Degradation.KNOWLEDGE_FAILED,))
    return Halt(
        reason=f"stopped by {facts.held_by}", gates=decision.gates, outcome=HaltOutcome.OUT_OF_BUDGET, resumable=True
    )


def _starts_something(decision: Decision) -> bool:
    match decision:
        case Retry() | Revise() | Replan() | Revert():
            return True
        case Advance():
            return AGENT_OF[Step(decision.to)] is not None
        case AskHuman() | Wait() | Halt() | Finish():
            return False
        case _:
            assert_never(decision)


def _next_move(facts: FeatureFacts, policy: Policy) -> Decision:
    step = facts.step
    if facts.code_review is not None and step in _WORK:
        return _code_review(facts, facts.code_review, policy)
    match step:
        case None:
            return _enter(Step.SETUP, facts, policy, reason="the run begins")
        case Step.SETUP | Step.SPEC:
            return _pushback(facts, policy, step)
        case Step.RESEARCH_GATE | Step.PLAN_GATE:
            return _at_gate(facts, policy, step)
        case Step.RESEARCH:
            return _research(facts, policy)
        case Step.DESIGN | Step.PLAN | Step.KNOWLEDGE:
            return _one_call(facts, policy, step)
        case Step.DESIGN_REVIEW:
            return _design_review(facts, policy)
        case Step.IMPLEMENT:
            return _implement(facts, policy)
        case Step.VERIFY:
            return _verify(facts, policy)
        case Step.CODE_REVIEW:
            return _enter(step, facts, policy, reason="the code review begins")
        case Step.EVIDENCE:
            return _evidence(facts, policy)
        case Step.COMMIT:
            return _commit(facts, policy)
        case _:
            assert_never(step)


def _enter(step: Step, facts: FeatureFacts, policy: Policy, *, reason: str, path: RunPath | None = None) -> Advance:
    """Return the entry of a step; `path` is the path on which the run continues, if it changes."""
    return Advance(
        reason=reason,
        to=step.value,
        start=calls_on(path or facts.path, step)[: policy.max_concurrent],
        round=_round(step, facts),
        path=path,
    )


def _leaving(facts: FeatureFacts, policy: Policy, step: Step) -> Advance | None:
    """Return the step with which a run that leaves the light path continues on the full one; None if it stays."""
    why = why_left(facts, step, policy)
    if why is None:
        return None
    reason = f"the run leaves the light path: {why}"
    return _enter(REJOINS_AT[step], facts, policy, reason=reason, path=RunPath.FULL)


def _round(step: Step, facts: FeatureFacts) -> int | None:
    review = {Step.DESIGN_REVIEW: facts.design_review, Step.CODE_REVIEW: facts.code_review}
    if step not in review:
        return None
    last = review[step]
    return 1 if last is None else last.round + 1


def _routed(
    facts: FeatureFacts,
    policy: Policy,
    outcome: RouteOutcome,
    *,
    step: Step,
    to: Step | None = None,
    detail: str = "",
    gates: tuple[GateAnswer, ...] = (),
    known_issues: tuple[str, ...] = (),
    degraded: Iterable[Degradation] = (),
    auto_selected: str | None = None,
) -> Decision:
    """Return the decision of the routing table, completed with the facts."""
    route = route_on(facts.path, step, outcome)
    reason = f"{route.because}: {detail}" if detail else route.because
    target = to or route.to
    if route.action is Action.HALT:
        assert route.halt is not None
        return Halt(reason=reason, gates=gates, outcome=route.halt, resumable=route.halt is HaltOutcome.ERROR)
    assert target is not None
    if route.action is Action.REVISE:
        assert facts.approval is not None
        return Revise(reason=reason, to=target.value, round=len(facts.approval.spent) + 2)
    left = None if to is Step.EVIDENCE else _leaving(facts, policy, step)  # where nothing is merged nobody reviews
    entered = left or _enter(target, facts, policy, reason=reason)
    return entered.model_copy(
        update={
            "gates": gates,
            "known_issues": known_issues,
            "degradations": tuple(kind.value for kind in degraded),
            "auto_selected": auto_selected,
        }
    )


def _calls(facts: FeatureFacts, step: Step) -> tuple[CallFacts, ...]:
    agent = AGENT_OF[step]
    if agent is None:
        return facts.calls
    return tuple(as_read(agent, call, replanning=facts.iteration > 1) for call in facts.calls)


def _unless_all_done(
    facts: FeatureFacts, policy: Policy, step: Step, expected: Sequence[str], degraded: Iterable[Degradation] = ()
) -> Decision | None:
    """Return what a step's calls still need, or what follows from a call that failed for good."""
    calls = _calls(facts, step)
    pending = under_way(step, expected, calls, policy)
    if pending is not None:
        return pending
    failed = sorted(f"{call.instance} ({call.cause.value})" for call in calls if call.cause)
    if failed:
        return _routed(facts, policy, RouteOutcome.ERROR, step=step, detail=", ".join(failed), degraded=degraded)
    return None


def _one_call(facts: FeatureFacts, policy: Policy, step: Step) -> Decision:
    degraded = (Degradation.KNOWLEDGE_FAILED,) if step is Step.KNOWLEDGE else ()
    unfinished = _unless_all_done(facts, policy, step, calls_on(facts.path, step), degraded)
    if unfinished is not None:
        return unfinished
    to = after_plan(replanning=facts.iteration > 1) if step is Step.PLAN else None
    return _routed(facts, policy, RouteOutcome.DONE, step=step, to=to)


def _pushback(facts: FeatureFacts, policy: Policy, step: Step) -> Decision:
    unfinished = _unless_all_done(facts, policy, step, calls_on(facts.path, step))
    if unfinished is not None:
        return unfinished
    if facts.concerns is Severity.BLOCKER:
        return _routed(
            facts, policy, RouteOutcome.BLOCKER, step=step, detail="the request cannot be met in its current form"
        )
    if facts.concerns is None:
        return _routed(facts, policy, RouteOutcome.DONE, step=step)
    return _at_gate(facts, policy, step)


def _at_gate(facts: FeatureFacts, policy: Policy, step: Step) -> Decision:
    gate = GATE_OF[step]
    chosen = default_choice(gate)
    if facts.mode is ApprovalMode.AUTONOMOUS:
        return _routed(
            facts, policy, RouteOutcome.DONE, step=step, detail="no approval is required", auto_selected=chosen.value
        )
    approval = facts.approval
    if approval is None or approval.gate is not gate or not approval.asked:
        spent = approval.spent if approval is not None and approval.gate is gate else ()
        offered = [
            choice.value
            for choice in OPTIONS[gate]
            if OUTCOME_OF[choice] is not RouteOutcome.NEEDS_REVISION or spent.count(choice) < policy.human_loops
        ]
        return AskHuman(
            reason="a person decides here",
            gate_id=gate.value,
            step=step.value,
            options=tuple(offered),
            default=chosen.value,
        )
    if approval.selected is None:
        return Wait(reason="a person has not answered yet", waits_for=WaitsFor.PERSON, what=(gate.value,))
    outcome = OUTCOME_OF[approval.selected]
    if outcome is RouteOutcome.NEEDS_REVISION and approval.spent.count(approval.selected) >= policy.human_loops:
        outcome = RouteOutcome.EXHAUSTED
    return _routed(facts, policy, outcome, step=step, detail=f"a person chose {approval.selected.value}")


def _research(facts: FeatureFacts, policy: Policy) -> Decision:
    calls = _calls(facts, Step.RESEARCH)
    expected = calls_on(facts.path, Step.RESEARCH)
    pending = under_way(Step.RESEARCH, expected, calls, policy)
    if pending is not None:
        return pending
    done = {call.instance for call in calls if call.cause is None} & set(expected)
    told = f"{len(done)} of {len(Focus)}"
    if len(done) < policy.researchers:
        return _routed(facts, policy, RouteOutcome.ERROR, step=Step.RESEARCH, detail=told)
    degraded = (Degradation.FEWER_RESEARCHERS,) if len(done) < len(Focus) else ()
    return _routed(facts, policy, RouteOutcome.DONE, step=Step.RESEARCH, detail=told, degraded=degraded)


def _design_review(facts: FeatureFacts, policy: Policy) -> Decision:
    if facts.design_review is None:
        return _enter(Step.DESIGN_REVIEW, facts, policy, reason="the design review begins")
    return _with_calls(after_review(facts.design_review, policy), facts, policy)


def _with_calls(decision: Decision, facts: FeatureFacts, policy: Policy) -> Decision:
    """Return a review's advance to the next step with that step's first calls."""
    if isinstance(decision, Advance) and not decision.start:
        return decision.model_copy(update={"start": calls_on(facts.path, Step(decision.to))[: policy.max_concurrent]})
    return decision


def _begun_tasks(facts: FeatureFacts) -> list[TaskFacts]:
    tasks = [task for task in facts.tasks if task.iteration == facts.iteration and task.ready]
    return sorted(tasks, key=lambda task: task.task)


def _implement(facts: FeatureFacts, policy: Policy) -> Decision:
    if not facts.tasks:
        return _routed(facts, policy, RouteOutcome.ERROR, step=Step.IMPLEMENT, detail="the plan has no task")
    tasks = _begun_tasks(facts)
    unfinished = _unless_all_done(facts, policy, Step.IMPLEMENT, [task.task for task in tasks])
    if unfinished is not None:
        return unfinished
    gates = tuple(baseline_exists(task.baseline) for task in tasks)
    without = [task for task, answer in zip(tasks, gates, strict=True) if isinstance(answer, Blocked)]
    if not without:
        return _routed(facts, policy, RouteOutcome.DONE, step=Step.IMPLEMENT, gates=gates)
    names = tuple(task.task for task in without)
    if any(task.baseline_runs > policy.retry.checks for task in without):
        detail = f"no baseline: {', '.join(names)}"
        return _routed(facts, policy, RouteOutcome.ERROR, step=Step.IMPLEMENT, detail=detail, gates=gates)
    return Retry(
        reason="the checks have not run before the change yet",
        gates=gates,
        step=Step.IMPLEMENT.value,
        what=RetryOf.BASELINE,
        instances=names,
    )


def _verify(facts: FeatureFacts, policy: Policy) -> Decision:
    unfinished = _unless_all_done(facts, policy, Step.VERIFY, [task.task for task in _begun_tasks(facts)])
    if unfinished is not None:
        return unfinished
    tasks = sorted(facts.tasks, key=lambda task: task.task)
    if not tasks:
        return _routed(facts, policy, RouteOutcome.ERROR, step=Step.VERIFY, detail="there is no task to verify")
    gates = tuple(answer for task in tasks for answer in task_gates(task, policy))
    failing = [task for task in tasks if not task.ready or not is_verified(task, policy)]
    infeasible = any(row.check_name == "tier3-infeasible" for task in tasks for row, _ in task_rows(task))
    degraded = (Degradation.TIER3_INFEASIBLE,) if infeasible else ()
    if not failing:
        return _routed(facts, policy, RouteOutcome.DONE, step=Step.VERIFY, gates=gates, degraded=degraded)
    follows = after_failed_verification(failing, gates, facts.iteration, policy)
    if follows is not None:
        return follows
    detail, is_merged = ", ".join(task.task for task in failing), len(failing) < len(tasks)
    return _routed(
        facts,
        policy,
        RouteOutcome.EXHAUSTED,
        step=Step.VERIFY,
        to=None if is_merged else Step.EVIDENCE,
        detail=detail if is_merged else f"{detail}; nothing is merged, so there is nothing to review",
        gates=gates,
        known_issues=tuple(f"{task.task}: without enough evidence" for task in failing),
        degraded=(*degraded, Degradation.REPLAN_EXHAUSTED),
    )


def _code_review(facts: FeatureFacts, review: ReviewFacts, policy: Policy) -> Decision:
    if facts.fix is None:
        return _with_calls(after_review(review, policy), facts, policy)
    return _after_fix(facts, review, facts.fix, policy)


def _after_fix(facts: FeatureFacts, review: ReviewFacts, fix: FixFacts, policy: Policy) -> Decision:
    """Send a fix to the next round only with its own evidence on the merged tree; otherwise drop it."""
    call = as_read(FeatureAgent.IMPLEMENTER, fix.call, replanning=False)
    pending = under_way(Step.IMPLEMENT, [call.instance], [call], policy)
    if pending is not None:
        return pending
    if call.cause is None and fix.checks is None:
        return Wait(reason="the fix is being checked", waits_for=WaitsFor.CHECKS, what=(call.instance,))
    if call.cause is None and fix.checks is not None:
        gates = task_gates(fix.checks, policy)
        if fix.checks.tree is not None and not fix.checks.files:
            why = "the fix changed nothing, its findings stay open"
            return _with_calls(exhausted(review, policy, why=why), facts, policy)
        if is_verified(fix.checks, policy):
            why = "the fix has its evidence on the merged tree"
            entered = _leaving(facts, policy, Step.CODE_REVIEW) or _enter(Step.CODE_REVIEW, facts, policy, reason=why)
            return entered.model_copy(update={"gates": gates})
        again = after_failed_verification([fix.checks], gates, policy.verification.iterations, policy)
        if isinstance(again, Retry):
            return again
    return _with_calls(exhausted(review, policy, why="the fix was dropped"), facts, policy)


def _evidence(facts: FeatureFacts, policy: Policy) -> Decision:
    pending = under_way(Step.EVIDENCE, calls_on(facts.path, Step.EVIDENCE), facts.calls, policy)
    if pending is not None:
        return pending
    graded = grade(confidence_facts(facts, policy))
    if not may_commit(graded.level):
        return _finish_low(graded)
    outcome = RouteOutcome.ERROR if any(call.cause for call in facts.calls) else RouteOutcome.DONE
    return _routed(facts, policy, outcome, step=Step.EVIDENCE, detail=f"confidence {graded.level.value}")


def _commit(facts: FeatureFacts, policy: Policy) -> Decision:
    graded = grade(confidence_facts(facts, policy))
    if not facts.calls and not may_commit(graded.level):
        return _finish_low(graded)
    unfinished = _unless_all_done(facts, policy, Step.COMMIT, calls_on(facts.path, Step.COMMIT))
    if unfinished is not None:
        return unfinished
    reason = route_on(facts.path, Step.COMMIT, RouteOutcome.DONE).because
    return Finish(reason=reason, outcome=FinishOutcome.COMMITTED, confidence=graded.level)


def _finish_low(graded: Graded) -> Finish:
    return Finish(
        reason=f"nothing is committed: {'; '.join(graded.because)}",
        outcome=FinishOutcome.LOW_CONFIDENCE,
        confidence=graded.level,
    )
