"""Verify and judge: the harness runs what can be run, a verifier looks, and a judge doubts both."""

import threading
from collections.abc import Sequence

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.facts import StepError
from fairwitness.contracts.autopilot.passes import PhasePass, StepResult
from fairwitness.contracts.autopilot.phase_record import AutomatedChecks, JudgeStep, PhaseSteps, VerifyStep
from fairwitness.contracts.autopilot.plan import PlanTask, TaskKind
from fairwitness.contracts.autopilot.returns import JudgeReturn
from fairwitness.contracts.autopilot.trace import TraceAction
from fairwitness.contracts.autopilot.verifying import PhaseCriterionStatus, VerifierReturn
from fairwitness.contracts.autopilot.words import CheckState, FailureCategory, Recommendation, StepName
from fairwitness.contracts.common.base import Contract, Flag, Maybe
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.words import Assessment
from fairwitness.rules.flags import asking
from fairwitness.rules.scoring import may_defer
from fairwitness.runs.autopilot.book import pass_name
from fairwitness.runs.autopilot.done import Done, Span, answer, asked_span, first_line
from fairwitness.runs.autopilot.pages_judgement import judge_page
from fairwitness.runs.autopilot.pages_verification import verification_page
from fairwitness.runs.autopilot.room import JUDGEMENT, SEEN, VERIFICATION, Room
from fairwitness.runs.graph.world import to_end, until_stopped


class Seen(Contract):
    """What the harness saw of a phase at one commit."""

    checks: AutomatedChecks
    executed: tuple[ExecutionResult, ...]
    seconds: float
    passed: Flag
    """Whether nothing of it failed."""


class Verified(Contract):
    """What the harness saw, and what the verifier said about the same commit."""

    seen: Seen
    said: Maybe[VerifierReturn] = None
    commit: str


async def verify(room: Room, asked: PhasePass, number: int) -> Done:
    """Runs checks and criteria at the tip, then asks a verifier who knows nothing of what executors said."""
    tip = await to_end(room.tip)
    seen = await until_stopped(lambda stop: _look(room, asked, number, tip, stop))
    plan = await to_end(room.plan, asked.phase)
    diff, warned = await to_end(diff_of, room, asked, tip), await to_end(_warned, room)
    brief = room.briefs.verifier(asked, number, plan, diff, seen.executed, warned=warned)
    done = await room.asker.ask(asked, StepName.VERIFY, number, brief, at=tip)
    found = answer(done, VerifierReturn)
    said = None if isinstance(found, StepError) else found
    kept = await to_end(room.keep, VERIFICATION, asked, number, Verified(seen=seen, said=said, commit=tip))
    spans = (*_ran(kept.seen.executed), asked_span(Role.PHASE_VERIFIER.value, done))
    return await to_end(_verified, room, asked, number, kept, found if isinstance(found, StepError) else None, spans)


def _warned(room: Room) -> str:
    """Why a phase has to be verified harder: the scores of many before it hardly differ."""
    kinds = ("rubber_stamp_enhanced", "rubber_stamp_critical")
    events = [room.book.ledger.last_event(room.book.run_id, kind) for kind in kinds]
    last = max((event for event in events if event is not None), key=lambda event: event.seq, default=None)
    ended = room.book.ledger.last_event(room.book.run_id, "phase_completed")
    if last is None or ended is None or ended.phase != last.data["phases"][-1]:
        return ""  # a phase was completed since that did not raise it again
    return (
        f"The last {last.data['count']} phases were scored within 0.2 of each other. Run every criterion yourself by "
        "another way than the command that is named, look for a case that fails, and say what you tried."
    )


def _look(room: Room, asked: PhasePass, number: int, tip: str, stop: threading.Event) -> Seen:
    name, tree, base = f"verify-{pass_name(asked)}-{number}", room.tree(tip), room.tree(asked.checkpoint)
    began = room.book.clock()
    checks = room.harness.checks(name, tree, base, stop=stop)
    executed = room.harness.run_all(name, room.criteria(asked), tree, stop=stop)
    failed = False in (checks.compile, checks.tests, checks.lint, checks.build)
    seen = Seen(
        checks=checks,
        executed=executed,
        seconds=round((room.book.clock() - began).total_seconds(), 3),
        passed=not failed and all(each.assessment is Assessment.PASS for each in executed),
    )
    return room.keep(SEEN, asked, number, seen)


def diff_of(room: Room, asked: PhasePass, tip: str) -> str:
    """What the phase changed; everything that is there if it changed nothing."""
    if room.tree(asked.checkpoint) != room.tree(tip):
        return room.briefs.diff(asked.checkpoint, tip)
    return room.briefs.diff(None, tip)


def _verified(
    room: Room, asked: PhasePass, number: int, kept: Verified, error: StepError | None, spans: tuple[Span, ...]
) -> Done:
    seen, said = kept.seen, kept.said
    issues = _issues(kept)
    passed = seen.passed and said is not None and said.pass_
    path = None
    if said is not None:
        path = room.layout(asked.phase).verification
        page = verification_page(
            room.phase(asked.phase),
            said,
            seen.executed,
            run_id=room.book.run_id,
            commit=kept.commit,
            at=room.book.now(),
            passed=passed,
            checks=seen.checks,
        )
        room.put(path, page)
    if error is None and not passed:
        error = StepError(category=_category(kept), first_line=first_line(issues, "the verification failed"))
    return Done(
        StepResult(
            step=StepName.VERIFY,
            number=number,
            good=passed,
            defers=passed and said is not None and _defers(room, asked, said),
            issues=issues if issues or passed else ((error.first_line,) if error is not None else ()),
        ),
        steps=PhaseSteps(
            verify=VerifyStep(
                status=CheckState.PASS if passed else CheckState.FAIL,
                automated=seen.checks,
                scope_creep=said.scope_creep if said is not None else (),
            )
        ),
        output=path,
        error=error,
        newly_passing=_newly_passing(room, asked, seen.executed),
        spans=spans,
    )


def _issues(kept: Verified) -> tuple[str, ...]:
    checks = kept.seen.checks
    pairs = (("compile", checks.compile), ("tests", checks.tests), ("lint", checks.lint), ("build", checks.build))
    found = [f"the check {name} fails" for name, word in pairs if word is False]
    found += [
        f"{each.criterion}: {each.command} is {each.assessment.value}"
        for each in kept.seen.executed
        if each.assessment is not Assessment.PASS
    ]
    if kept.said is not None:
        found += kept.said.failures
        found += [
            f"{each.criterion}: {each.evidence}"
            for each in kept.said.criteria_results
            if each.status is PhaseCriterionStatus.FAILED
        ]
    return tuple(dict.fromkeys(found))


def _category(kept: Verified) -> FailureCategory:
    checks = kept.seen.checks
    if checks.compile is False:
        return FailureCategory.COMPILATION_FAILURE
    if checks.build is False:
        return FailureCategory.BUILD_FAILURE
    if checks.lint is False:
        return FailureCategory.LINT_FAILURE
    return FailureCategory.ACCEPTANCE_CRITERIA_UNMET


def _newly_passing(room: Room, asked: PhasePass, executed: Sequence[ExecutionResult]) -> int:
    """How many criteria hold that did not hold when this pass was looked at before."""
    rows = [row for row in room.book.ledger.observations(room.book.run_id, SEEN) if row.subject == asked.phase]
    earlier = Seen.model_validate(rows[-2].detail["document"]).executed if len(rows) > 1 else ()  # the last is this one
    before = {(run.criterion, run.command) for run in earlier if _holds(run)}
    return sum(_holds(run) and (run.criterion, run.command) not in before for run in executed)


def _holds(run: ExecutionResult) -> bool:
    return run.assessment is Assessment.PASS


def human_tasks(room: Room, phase_id: str) -> tuple[PlanTask, ...]:
    """The tasks of a plan that only a person can decide."""
    plan = room.plan(phase_id)
    return () if plan is None else tuple(task for task in plan.tasks if task.kind is TaskKind.HUMAN_VERIFY)


def _defers(room: Room, asked: PhasePass, said: VerifierReturn) -> bool:
    """Only the plan may ask for a person, and only a verifier that is unsure after trying lets it."""
    confidence = said.autonomous_confidence
    if not human_tasks(room, asked.phase) or confidence is None or not said.deferral_evidence:
        return False
    return may_defer(confidence, asking(room.book.state().state.meta).limit)


def _ran(executed: Sequence[ExecutionResult]) -> tuple[Span, ...]:
    return tuple(
        Span(
            TraceAction.COMMAND_RUN,
            run.command,
            run.stdout_truncated or run.assessment.value,
            run.duration_ms,
            _holds(run),
        )
        for run in executed
    )


async def judge(room: Room, asked: PhasePass, number: int) -> Done:
    """A second opinion; without one that can be read, nothing is let through."""
    tip = await to_end(room.tip)
    known = await to_end(room.latest, VERIFICATION, asked.phase, Verified)
    plan = await to_end(room.plan, asked.phase)
    said = None if known is None else known.said
    if said is None:
        nothing = "there is no verification to be judged"
        error = StepError(category=FailureCategory.COORDINATION_FAILURE, first_line=nothing)
        return Done(StepResult(step=StepName.JUDGE, number=number, good=False, issues=(nothing,)), error=error)
    brief = room.briefs.judge(asked, number, plan, await to_end(diff_of, room, asked, tip), said)
    done = await room.asker.ask(asked, StepName.JUDGE, number, brief, at=tip)
    found = answer(done, JudgeReturn)
    spans = (asked_span(Role.JUDGE.value, done),)
    if isinstance(found, StepError):
        result = StepResult(step=StepName.JUDGE, number=number, good=False, issues=(found.first_line,))
        return Done(result, error=found, spans=spans)
    kept = await to_end(room.keep, JUDGEMENT, asked, number, found)
    path = room.layout(asked.phase).judge_report
    await to_end(room.put, path, judge_page(room.phase(asked.phase), kept, said))
    wanted = () if kept.recommendation is Recommendation.PROCEED else (*kept.missing_requirements, *kept.concerns)
    return Done(
        StepResult(step=StepName.JUDGE, number=number, good=True, recommendation=kept.recommendation, issues=wanted),
        steps=PhaseSteps(judge=JudgeStep(recommendation=kept.recommendation, concerns=kept.concerns)),
        output=path,
        spans=spans,
    )
