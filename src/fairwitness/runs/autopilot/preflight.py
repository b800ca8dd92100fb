"""The two steps before any agent runs: preflight (may the phase start) and triage (how much of it exists)."""

import threading

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.facts import StepFailureCause
from fairwitness.contracts.autopilot.passes import PhasePass, StepResult
from fairwitness.contracts.autopilot.phase_record import PhaseSteps, PreflightStep, TriageStep
from fairwitness.contracts.autopilot.returns import PreflightReturn
from fairwitness.contracts.autopilot.state import SpecLock
from fairwitness.contracts.autopilot.trace import TraceAction
from fairwitness.contracts.autopilot.triage import (
    SKIPPED_BY_VERIFY_ONLY,
    VERIFY_ONLY_ABOVE,
    CriteriaSource,
    Triage,
    TriagedCriterion,
    TriageResult,
)
from fairwitness.contracts.autopilot.vocabulary import CheckState, FailureCategory, PhaseStatus, StepName, TriageRoute
from fairwitness.errors import FairWitnessError, is_machine_fault
from fairwitness.rules.run_flags import run_mode
from fairwitness.rules.spec_lock import SpecChange, SpecTurn, spec_changes
from fairwitness.runs.autopilot.commands import CriterionCommand
from fairwitness.runs.autopilot.context import PREFLIGHT, TRIAGE, AutopilotContext
from fairwitness.runs.autopilot.log import AutopilotLog, pass_name
from fairwitness.runs.autopilot.own_files import foreign_paths, is_our_gitignore
from fairwitness.runs.autopilot.pages_phase import triage_file
from fairwitness.runs.autopilot.step_result import SNIPPET, FinishedStep, Span
from fairwitness.store.artifacts import Store, content_hash
from fairwitness.store.layout import autopilot as layout

RELOCK = "relock"
"""The kind of observation with which a user locks a changed specification."""
_NAMED = 3


def preflight(context: AutopilotContext, phase_pass: PhasePass, number: int) -> FinishedStep:
    """Check specifications, working tree and dependencies of a phase."""
    changes = changed_specs(context.log, context.files)
    dirty = _dirty(context)
    unmet = _unmet(context, phase_pass.phase)
    open_debug = tuple(name for name in context.files.names(layout.DEBUG) if name.endswith(".md"))
    issues = [_spelled(change) for change in changes]
    if dirty:
        more = f" and {len(dirty) - _NAMED} more" if len(dirty) > _NAMED else ""
        issues.append(f"the checkout holds changes that are not committed: {', '.join(dirty[:_NAMED])}{more}")
    issues += [f"phase {other} is not completed, and phase {phase_pass.phase} rests on it" for other in unmet]
    found = PreflightReturn(
        all_clear=not issues,
        spec_hash_match=not changes,
        working_tree_clean=not dirty,
        dependencies_met=not unmet,
        unresolved_debug=open_debug,
        issues=tuple(issues),
    )
    context.keep(PREFLIGHT, phase_pass, number, found)
    status = CheckState.PASS if found.all_clear else CheckState.FAIL
    error = None
    if not found.all_clear:
        error = StepFailureCause(category=FailureCategory.COORDINATION_FAILURE, first_line=found.issues[0])
    said = "all clear" if found.all_clear else found.issues[0]
    return FinishedStep(
        StepResult(step=StepName.PREFLIGHT, number=number, good=found.all_clear, issues=found.issues),
        steps=PhaseSteps(preflight=PreflightStep(status=status, timestamp=context.log.now())),
        error=error,
        spans=(Span(TraceAction.DECISION, "may the phase begin", said, 0, found.all_clear),),
    )


def locks_of(log: AutopilotLog) -> tuple[SpecLock, ...]:
    """Return the locks in force: those of the order, or those that the user set later."""
    rows = log.ledger.observations(log.run_id, RELOCK)
    if not rows:
        return log.order().specs
    return tuple(SpecLock.model_validate(lock) for lock in rows[-1].detail["specs"])


def changed_specs(log: AutopilotLog, files: Store) -> tuple[SpecChange, ...]:
    """Return how the specifications changed since they were locked."""
    locks, paths = locks_of(log), log.order().spec_paths
    hashes = {}
    for path in dict.fromkeys((*paths, *(lock.path for lock in locks))):
        try:
            hashes[path] = content_hash(files.get(path))
        except (OSError, FairWitnessError) as error:
            if is_machine_fault(error):
                raise
            continue  # an unreadable file counts as missing
    return spec_changes(locks, paths, hashes)


def _spelled(change: SpecChange) -> str:
    if change.turn is SpecTurn.NEW:
        return f"{change.path} came since the run was begun: take it away, or lock it with fairwitness autopilot lock"
    turn = "is gone" if change.found is None else "was changed"
    return f"{change.path} {turn} since it was locked: put it back, or lock it as it is with fairwitness autopilot lock"


def _dirty(context: AutopilotContext) -> tuple[str, ...]:
    """Return changed files of the checkout that are not the run's own."""
    repository, shadow = context.repository, context.shadow
    head, work = repository.tree_of("HEAD"), shadow.worktree_tree(repository)
    changes = shadow.diff(head, work) if head != work else ()
    found = foreign_paths(tuple(change.path for change in changes))
    return tuple(path for path in found if path != ".gitignore" or not _is_ours(context, path))


def _is_ours(context: AutopilotContext, path: str) -> bool:
    try:
        before = context.repository.git.run("show", f"HEAD:{path}").decode(errors="replace")
    except FairWitnessError:
        before = ""
    return is_our_gitignore(before, context.files.get(path).decode(errors="replace"))


def _unmet(context: AutopilotContext, phase_id: str) -> tuple[str, ...]:
    order, phases = context.order, context.log.state().state.phases
    done = {phase for phase, record in phases.items() if record.status is PhaseStatus.COMPLETED}
    done |= {phase for phase, known in order.earlier.items() if known.status is PhaseStatus.COMPLETED}
    done |= order.roadmap.ticked - set(order.phases)
    return tuple(other for other in context.phase(phase_id).depends_on if other not in done)


def triage(context: AutopilotContext, phase_pass: PhasePass, number: int, stop: threading.Event) -> FinishedStep:
    """Run the criteria's commands on the current code; if nearly all pass, only verification remains."""
    criteria, source = _criteria(context, phase_pass)
    runs = context.harness.run_all(
        f"triage-{pass_name(phase_pass)}-{number}", criteria, context.tree(context.tip()), stop=stop
    )
    checked = tuple(_checked(each, run) for each, run in zip(criteria, runs, strict=True))
    passed = sum(each.result is TriageResult.PASS for each in checked)
    ratio = round(passed / len(checked), 4) if checked else 0.0
    forced = run_mode(frozenset(context.order.flags)).fresh  # --force runs the phase again although it exists
    route = TriageRoute.VERIFY_ONLY if ratio > VERIFY_ONLY_ABOVE and not forced else TriageRoute.FULL_PIPELINE
    found = context.keep(
        TRIAGE,
        phase_pass,
        number,
        Triage(
            phase_id=phase_pass.phase,
            timestamp=context.log.now(),
            criteria_source=source,
            criteria_checked=checked,
            total_criteria=len(checked),
            passed_criteria=passed,
            pass_ratio=ratio,
            routing_decision=route,
            skipped_steps=SKIPPED_BY_VERIFY_ONLY if route is TriageRoute.VERIFY_ONLY else (),
            note="--force runs all steps of the phase" if forced else None,
        ),
    )
    path = context.layout(phase_pass.phase).triage
    context.put(path, triage_file(found))
    return FinishedStep(
        StepResult(step=StepName.TRIAGE, number=number, good=True, route=found.routing_decision),
        steps=PhaseSteps(triage=TriageStep(status=found.routing_decision, pass_ratio=found.pass_ratio)),
        output=path,
        spans=tuple(
            Span(TraceAction.COMMAND_RUN, run.command, run.stdout_truncated, run.duration_ms, run.passed)
            for run in runs
        ),
    )


def _criteria(context: AutopilotContext, phase_pass: PhasePass) -> tuple[tuple[CriterionCommand, ...], CriteriaSource]:
    phase, plan = context.phase(phase_pass.phase), context.plan(phase_pass.phase)
    if plan is not None:
        return context.criteria(phase_pass), CriteriaSource.PLAN
    named = tuple(CriterionCommand(each.text, each.command) for each in phase.criteria if each.command is not None)
    return named, CriteriaSource.ROADMAP if named else CriteriaSource.NONE


def _checked(each: CriterionCommand, run: ExecutionResult) -> TriagedCriterion:
    said = run.stdout_truncated or run.stderr_truncated
    result = TriageResult.PASS if run.passed else TriageResult.FAIL
    return TriagedCriterion(criterion=each.criterion, command=each.command, result=result, output=said[:SNIPPET])
