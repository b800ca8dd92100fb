"""The post-mortem of a failed phase: timeline, root cause, attempted fixes and a prevention rule.

Nothing in it is an agent's account: it is read from the run's events and from the return that the harness filled in.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fairwitness.contracts.autopilot import events_phase as of_phase
from fairwitness.contracts.autopilot.events import AutopilotEvent
from fairwitness.contracts.autopilot.passes import PhasePass
from fairwitness.contracts.autopilot.phase_return import PhaseReturn
from fairwitness.contracts.autopilot.postmortem import (
    AttemptedFix,
    PostMortem,
    PostMortemEvidence,
    RootCause,
    TimelineEntry,
    TimelineStatus,
)
from fairwitness.contracts.autopilot.trace import TraceStep
from fairwitness.contracts.autopilot.vocabulary import FailureCategory, HumanWord, StepName
from fairwitness.contracts.common.base import Texts
from fairwitness.contracts.common.problems import Problem
from fairwitness.kit.killpoints import killpoint
from fairwitness.rules.fold_phase import autopilot_event
from fairwitness.rules.graph_run import MOVING
from fairwitness.runs.autopilot.learnings import Learnings, failure_entry, repair_entry
from fairwitness.runs.autopilot.log import AutopilotLog, pass_name
from fairwitness.runs.autopilot.pages_phase import post_mortem_file
from fairwitness.store.artifacts import Store
from fairwitness.store.layout import autopilot

POST_MORTEM = "post-mortem"
TIMELINE = 20
_SAID = 200

PREVENTION: Mapping[FailureCategory, str] = {
    FailureCategory.EXECUTOR_INCOMPLETE: "Run the command of every criterion before a task is called done",
    FailureCategory.EXECUTOR_WRONG_APPROACH: "Try out the riskiest assumption of a plan before building on it",
    FailureCategory.COMPILATION_FAILURE: "Compile after each file that was changed, and fix it before you continue",
    FailureCategory.LINT_FAILURE: "Run the project's linter on what was changed before it is handed over",
    FailureCategory.BUILD_FAILURE: "Run the whole build before a task is called done, not only its own tests",
    FailureCategory.ACCEPTANCE_CRITERIA_UNMET: "See the criterion's command fail first, then work until it passes",
    FailureCategory.SCOPE_CREEP: "Touch the files that the task names, and no others",
    FailureCategory.CONTEXT_EXHAUSTION: "Plan tasks that one agent can finish with the room it has; split larger ones",
    FailureCategory.TOOL_FAILURE: "Use commands that end by themselves within the limit and need no network",
    FailureCategory.COORDINATION_FAILURE: "Return the fields that were asked for; the next step sees nothing else",
}
"""What to do differently after a failure of each category."""
_OF_PLANS = "Give every requirement of a phase a task with its files, its criteria and a command that decides them"


class PhaseFailure(NamedTuple):
    """What is known about a failed phase when it is given up."""

    reason: str
    category: FailureCategory
    """The category of the whole phase, used if no step and no task has a cause of its own."""
    step: StepName
    """The step that the phase ended with."""
    rule: str | None = None
    """A prevention rule by an agent that saw the cause; None derives one from the cause."""


class StoredPostMortem(NamedTuple):
    """A post-mortem and its path."""

    post_mortem: PostMortem
    path: str


def write_post_mortem(log: AutopilotLog, files: Store, phase_pass: PhasePass, failed: PhaseFailure) -> StoredPostMortem:
    """Record the post-mortem of a pass, write its file, and add a learning; each once."""
    key = f"{POST_MORTEM}:{pass_name(phase_pass)}"
    known = log.kept(key, PostMortem)
    post_mortem = known or log.keep(key, POST_MORTEM, phase_pass.phase, _post_mortem(log, phase_pass, failed))
    path = autopilot.phase_post_mortem(phase_pass.phase)
    content = post_mortem_file(post_mortem).encode()
    if not files.exists(path) or files.get(path) != content:
        files.put(path, content)
        killpoint("autopilot.postmortem")
    Learnings(log, files).add(f"failure:{pass_name(phase_pass)}", failure_entry(post_mortem))
    return StoredPostMortem(post_mortem, path)


def learn_repairs(log: AutopilotLog, files: Store, phase: str) -> None:
    """Add what a phase failed at before a debugger repaired it to the learnings; each once."""
    learnings = Learnings(log, files)
    for cause in repaired(events_of(log, phase)):
        entry = repair_entry(phase, cause, PREVENTION[cause.category])
        learnings.add(f"repair:{phase}:{cause.first_observed_at}", entry)


def _post_mortem(log: AutopilotLog, phase_pass: PhasePass, failed: PhaseFailure) -> PostMortem:
    now = log.now()
    events = events_of(log, phase_pass.phase)
    cause = root_cause(events) or RootCause(
        category=failed.category, description=_text(failed.reason), first_observed_at=now, step=failed.step
    )
    returned = log.returned(phase_pass)
    story = timeline(events, cause)
    names = {phase.id: phase.name for phase in log.order().roadmap.phases}
    return PostMortem(
        phase_id=phase_pass.phase,
        phase_name=names.get(phase_pass.phase) or names[phase_pass.phase[:-1]],
        timestamp=now,
        status="failed",
        root_cause=cause,
        timeline=story,
        evidence=_evidence(returned),
        attempted_fixes=tuple(attempted_fixes(events, None if returned is None else returned.issues)),
        prevention_rule=failed.rule or prevention_rule(cause),
    )


def events_of(log: AutopilotLog, phase: str) -> tuple[AutopilotEvent, ...]:
    """Return the events of a phase since its last start, without those of its task graphs."""
    found: list[AutopilotEvent] = []
    for envelope in log.ledger.events(log.run_id):
        if envelope.phase != phase or envelope.type in MOVING:
            continue
        opened = autopilot_event(envelope)
        assert not isinstance(opened, Problem)  # the fold accepted it
        if isinstance(opened[0], of_phase.PhaseStarted):
            found.clear()
        found.append(opened[0])
    return tuple(found)


def root_cause(events: Sequence[AutopilotEvent]) -> RootCause | None:
    """Return the earliest categorized failure that no later step or task made good, or None."""
    for at, event in enumerate(events):
        match event:
            case of_phase.StepFailed(details=said, step=StepName() as step) if said.category is not None:
                made_good = any(
                    isinstance(later, of_phase.StepCompleted) and later.step is step for later in events[at:]
                )
            case of_phase.TaskFailed(details=said) if said.category is not None:
                step = StepName.EXECUTE
                made_good = any(
                    isinstance(later, of_phase.TaskCompleted) and later.details.task == said.task
                    for later in events[at:]
                )
            case _:
                continue
        if not made_good:
            return RootCause(
                category=said.category,
                description=_text(said.error or said.category.value),
                first_observed_at=event.timestamp,
                step=step,
            )
    return None


def repaired(events: Sequence[AutopilotEvent]) -> Iterator[RootCause]:
    """Yield the first failure of each verification that passed after a debug attempt."""
    cause, is_debugged = None, False
    for event in events:
        match event:
            case of_phase.StepFailed(details=said, step=StepName.VERIFY) if cause is None and said.category is not None:
                cause = RootCause(
                    category=said.category,
                    description=_text(said.error or said.category.value),
                    first_observed_at=event.timestamp,
                    step=StepName.VERIFY,
                )
            case of_phase.DebugAttempt():
                is_debugged = True
            case of_phase.StepCompleted(step=StepName.VERIFY):
                if cause is not None and is_debugged:
                    yield cause
                cause, is_debugged = None, False
            case _:
                pass


def timeline(events: Sequence[AutopilotEvent], cause: RootCause) -> tuple[TimelineEntry, ...]:
    """Return at most 20 entries: the start, the cause, and the newest of the rest."""
    entries = [entry for event in events if (entry := _moment(event)) is not None]
    if len(entries) <= TIMELINE:
        return tuple(entries)
    kept = set(range(len(entries) - TIMELINE, len(entries)))
    first = next(
        (
            at
            for at, entry in enumerate(entries)
            if entry.timestamp == cause.first_observed_at and entry.status is TimelineStatus.FAILURE
        ),
        0,
    )
    for place in (first, 0):
        if place not in kept:
            kept.remove(min(kept - {0, first}))
            kept.add(place)
    return tuple(entries[at] for at in sorted(kept))


def _moment(event: AutopilotEvent) -> TimelineEntry | None:
    """Return an event as a timeline entry, or None if it does not belong there."""
    good, bad, partly = TimelineStatus.SUCCESS, TimelineStatus.FAILURE, TimelineStatus.PARTIAL
    runner = TraceStep.PHASE_RUNNER
    moment: tuple[TraceStep, str, TimelineStatus]
    match event:
        case of_phase.PhaseStarted():
            moment = runner, "the phase began", good
        case of_phase.StepCompleted(step=StepName() as step):
            moment = TraceStep(step.value), f"{step.value} ended", good
        case of_phase.StepFailed(step=StepName() as step, details=said):
            moment = TraceStep(step.value), f"{step.value} failed: {said.error or 'no reason is on record'}", bad
        case of_phase.TaskCompleted(details=said):
            moment = TraceStep.EXECUTE, f"task {said.task} completed", good
        case of_phase.TaskFailed(details=said):
            moment = TraceStep.EXECUTE, f"task {said.task or ''} failed: {said.error or 'no reason is on record'}", bad
        case of_phase.TaskRetried(details=said):
            moment = TraceStep.EXECUTE, f"task {said.task or ''} is tried again", partly
        case of_phase.DebugAttempt(details=said):
            moment = TraceStep.DEBUG, f"debug attempt {said.attempt or ''}: {_issues(said.issues)}", partly
        case of_phase.ReplanAttempt(details=said):
            moment = TraceStep.PLAN, f"a new plan is made: {said.reason or 'its score was too low'}", partly
        case of_phase.RollbackInitiated(details=said):
            moment = runner, f"its commits are reverted: {said.reason or 'it failed'}", partly
        case of_phase.RollbackCompleted():
            moment = runner, "its commits were reverted", good
        case of_phase.HumanVerdictRecorded(details=said):
            passed = said.verdict is HumanWord.PASS
            moment = runner, f"a person said: {_issues(said.issues)}", good if passed else bad
        case of_phase.PhaseFailed(details=said):
            moment = runner, f"the phase failed: {said.reason or 'no reason is on record'}", bad
        case _:
            return None
    who, words, status = moment
    return TimelineEntry(timestamp=event.timestamp, step=who, event=_text(words), status=status)


def attempted_fixes(events: Sequence[AutopilotEvent], left: Texts | None) -> Iterator[AttemptedFix]:
    """Yield each debug attempt with what it resolved.

    `left` are the issues at the end; if they are None, the last attempt counts as having resolved nothing.
    """
    attempts = [(at, event) for at, event in enumerate(events) if isinstance(event, of_phase.DebugAttempt)]
    for number, (at, event) in enumerate(attempts, start=1):
        issues = event.details.issues or ()
        until, later = attempts[number] if number < len(attempts) else (len(events), None)
        open_ = left if later is None else later.details.issues
        still = issues if open_ is None else tuple(issue for issue in issues if issue in open_)
        commits = [
            each.details.commit
            for each in events[at:until]
            if isinstance(each, of_phase.TaskCompleted) and each.details.commit is not None
        ]
        yield AttemptedFix(
            attempt=number,
            description=_text(_issues(issues)),
            commit_sha=commits[-1] if commits else None,
            resolved=tuple(issue for issue in issues if issue not in still),
            remaining=still,
        )


def prevention_rule(cause: RootCause) -> str:
    """Return what the next phase should do differently, with the cause."""
    said = _OF_PLANS if cause.step is StepName.PLAN_CHECK else PREVENTION[cause.category]
    return f"{said}: {cause.step.value} ended in “{cause.description}”."


def _evidence(returned: PhaseReturn | None) -> PostMortemEvidence:
    if returned is None:
        return PostMortemEvidence(commands_run=(), files_checked=())
    said = returned.evidence
    return PostMortemEvidence(commands_run=said.commands_run, files_checked=said.files_checked)


def _issues(issues: Texts | None) -> str:
    return "; ".join(issues) if issues else "no issue is named"


def _text(words: str) -> str:
    """Return the words as one non-empty line of limited length."""
    line = " ".join(words.split()) or "no reason is on record"
    return line if len(line) <= _SAID else f"{line[:_SAID]} …"
