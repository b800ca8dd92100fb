"""The decision after a pass returned: first its integrity, then the gate of the phase.

The verdict and its events are recorded together.
"""

from collections.abc import Mapping

from fairwitness.contracts.autopilot import events_phase as of_phase
from fairwitness.contracts.autopilot import events_quality as of_quality
from fairwitness.contracts.autopilot import events_run as of_run
from fairwitness.contracts.autopilot.event_base import AutopilotEventBase
from fairwitness.contracts.autopilot.facts import DeferralFacts, EventFacts
from fairwitness.contracts.autopilot.integrity import IntegrityAnswer
from fairwitness.contracts.autopilot.passes import AfterPass, PassDecision, PassKind, PhasePass
from fairwitness.contracts.autopilot.phase_record import HumanVerifyJustification
from fairwitness.contracts.autopilot.phase_return import PhaseOutcome, PhaseReturn
from fairwitness.contracts.autopilot.rating import band_of
from fairwitness.contracts.autopilot.vocabulary import (
    AutopilotRunStatus,
    FailureCategory,
    PhaseStatus,
    Recommendation,
    StepName,
)
from fairwitness.rules.cost import standing_score
from fairwitness.rules.integrity import IntegrityVerdict, integrity
from fairwitness.rules.phase_plan import parts_of
from fairwitness.rules.phases import gate_of, has_dependents
from fairwitness.rules.run_flags import run_mode
from fairwitness.rules.scores import PhaseGateMove, RubberStamp, split_score, tenths, too_many_deferred, uniform_tail
from fairwitness.runs.autopilot.context import AutopilotContext
from fairwitness.runs.autopilot.cycles import after_cycle_pass, cycle_result, first_cycle, nothing_to_raise
from fairwitness.runs.autopilot.integrity_inputs import (
    PassReview,
    category_of,
    integrity_facts,
    review_pass,
    scores_before,
    write_diagnostic,
)
from fairwitness.runs.autopilot.lineage import origin, passes_of, revert_key
from fairwitness.runs.autopilot.log import VERDICT, AutopilotLog, LoggedEvent, new_event
from fairwitness.runs.autopilot.post_mortems import PhaseFailure, write_post_mortem
from fairwitness.runs.autopilot.revert import take_back
from fairwitness.runs.autopilot.verification import human_tasks
from fairwitness.store.layout.autopilot import STATE


def stamped(context: AutopilotContext, review: PassReview, found: IntegrityVerdict) -> tuple[LoggedEvent, ...]:
    """Return the warning about a row of nearly equal scores, if there is one."""
    score = review.returned.alignment_score
    if found.stamp is None or score is None:
        return ()
    phase = review.phase_pass.phase
    row = [*scores_before(context, phase), (phase, score)]
    length = uniform_tail([tenths(known) for _, known in row])
    tail = row[-length:]
    kinds: Mapping[RubberStamp, type[AutopilotEventBase]] = {
        RubberStamp.WARNING: of_run.RubberStampWarning,
        RubberStamp.ENHANCED: of_run.RubberStampEnhanced,
        RubberStamp.CRITICAL: of_run.RubberStampCritical,
    }
    event: AutopilotEventBase = new_event(
        kinds[found.stamp],
        context.log.now(),
        count=length,
        lowest=min(known for _, known in tail),
        highest=max(known for _, known in tail),
        phases=tuple(other for other, _ in tail),
    )
    return (LoggedEvent(event),)


_NEEDLESS = 14
"""The number of the integrity check for needless deferrals."""


def deferred(log: AutopilotLog, review: PassReview, found: IntegrityVerdict) -> tuple[LoggedEvent, ...]:
    """Return the events of a phase that is deferred to a person, with a warning if that happens too often."""
    phase, now = review.phase_pass.phase, log.now()
    claim = review.returned.human_verify_justification
    assert claim is not None  # the contract of a return requires it
    said = None if review.verified is None else review.verified.said
    facts = DeferralFacts(
        reason=claim.task_description,
        autonomous_confidence=None if said is None else said.autonomous_confidence,
        justification=HumanVerifyJustification(
            checkpoint_task_id=claim.checkpoint_task_id,
            task_description=claim.task_description,
            auto_tasks_passed=claim.auto_tasks_passed,
            auto_tasks_total=claim.auto_tasks_total,
        ),
    )
    events = [
        LoggedEvent(new_event(of_run.CheckpointWritten, now, phase=phase, path=STATE), EventFacts(deferral=facts))
    ]
    if any(each.number == _NEEDLESS for each in found.findings):
        needless = new_event(
            of_phase.UnnecessaryDeferralWarning,
            now,
            phase=phase,
            checkpoint_task_id=claim.checkpoint_task_id,
            task_description=claim.task_description,
        )
        events.append(LoggedEvent(needless))
    meta = log.state().state.meta
    deferred, processed = meta.human_deferred_count + 1, meta.total_phases_processed + 1
    if too_many_deferred(deferred, processed, meta.deferral_threshold):
        often = new_event(
            of_run.HighDeferRateWarning,
            now,
            human_deferred_count=deferred,
            total_phases_processed=processed,
            defer_rate=round(deferred / processed, 4),
        )
        events.append(LoggedEvent(often))
    return tuple(events)


class PassDecisions:
    """Decides about the passes of one run."""

    def __init__(self, context: AutopilotContext) -> None:
        self._context, self._log = context, context.log

    def decide(self, phase: str, number: int) -> PassDecision:
        """Return the verdict about a pass, or a phase whose parts all returned; repeating it changes nothing."""
        key = f"{VERDICT}:{phase}-{number}"
        known = self._log.kept(key, PassDecision)
        if known is not None:
            return known
        phase_pass = next((each for each in passes_of(self._log, phase) if each.number == number), None)
        verdict, events = self._joined(phase, number) if phase_pass is None else self._of_pass(phase_pass)
        return self._log.keep(key, VERDICT, phase, verdict, lambda _now: events)

    def _of_pass(self, phase_pass: PhasePass) -> tuple[PassDecision, tuple[LoggedEvent, ...]]:
        context, log = self._context, self._log
        returned = log.returned(phase_pass)
        assert returned is not None  # only a pass that returned is decided about
        review = review_pass(context, phase_pass, returned)
        found = integrity(integrity_facts(context, review))
        failure = next((each for each in found.findings if each.answer is IntegrityAnswer.FAILURE), None)
        failed = None if failure is None else f"integrity check {failure.number}, {failure.name}: {failure.because}"
        is_cycle = origin(log, phase_pass).kind is PassKind.CYCLE
        path = None
        if (
            not is_cycle or not cycle_result(context, review, failed).revert
        ):  # else the diagnostic before it still applies
            path = write_diagnostic(context, review, force_incomplete=False)
        events = [*self._diagnosed(review, path), *stamped(context, review, found)]
        if found.answer is IntegrityAnswer.ENFORCEMENT:
            because = next(each.because for each in found.findings if each.answer is IntegrityAnswer.ENFORCEMENT)
            again = PhasePass(
                phase=phase_pass.phase,
                number=phase_pass.number + 1,
                kind=PassKind.AGAIN,
                start=phase_pass.start,
                checkpoint=phase_pass.checkpoint,
                again=found.again,
            )
            return self._verdict(review, found, AfterPass.ONCE_MORE, because, again), tuple(events)
        if is_cycle:
            after = after_cycle_pass(context, review, failed=failed)
            verdict = self._verdict(review, found, after.after, after.because, after.next)
            return verdict, (*events, *after.events)
        verdict, more = self._gated(review, found, failed)
        return verdict, (*events, *more)

    def _diagnosed(self, review: PassReview, path: str | None) -> tuple[LoggedEvent, ...]:
        if path is None or review.rated is None:
            return ()
        phase = review.phase_pass.phase
        written = new_event(
            of_quality.ConfidenceDiagnosticWritten,
            self._log.now(),
            phase=phase,
            phase_id=phase,
            alignment_score=review.rated.settled.score,
            pass_threshold=self._threshold / 10,
            diagnostic_path=path,
            path_to_9_items=len(review.way.usable),
        )
        return (LoggedEvent(written),)

    @property
    def _threshold(self) -> int:
        return run_mode(frozenset(self._context.order.flags)).threshold_tenths

    def _verdict(
        self,
        review: PassReview,
        found: IntegrityVerdict,
        after: AfterPass,
        because: str,
        following: PhasePass | None = None,
    ) -> PassDecision:
        return PassDecision(
            phase=review.phase_pass.phase,
            number=review.phase_pass.number,
            after=after,
            because=because,
            findings=found.findings,
            next=following,
            cycles=review.cycles,
        )

    def _gated(
        self, review: PassReview, found: IntegrityVerdict, failed: str | None
    ) -> tuple[PassDecision, tuple[LoggedEvent, ...]]:
        """Apply the gate to a phase that went through its steps."""
        context, order, returned = self._context, self._context.order, review.returned
        plan = run_mode(frozenset(order.flags))
        answer = gate_of(
            context.order.roadmap.outline,
            returned,
            threshold_tenths=self._threshold,
            cycles=0,
            gained=True,
            quality=any(each.loop.value == "quality" for each in plan.loops),
            complete=plan.goes_on,
        )
        if failed is not None:
            return self._failed(review, found, failed, halts=not plan.goes_on)
        match answer.move:
            case PhaseGateMove.DEFER:
                verdict = self._verdict(review, found, AfterPass.DEFERRED, answer.because)
                return verdict, deferred(self._log, review, found)
            case PhaseGateMove.SPLIT:
                return self._split(review, found, answer.because)
            case PhaseGateMove.ROLL_BACK:
                return self._failed(review, found, _reason(returned), halts=not plan.goes_on)
            case PhaseGateMove.FAIL_AND_GO_ON:
                return self._failed(review, found, _reason(returned, answer.because), halts=False)
            case PhaseGateMove.FAIL_AND_HALT:
                return self._failed(review, found, _reason(returned, answer.because), halts=True)
            case (
                PhaseGateMove.PASS
                | PhaseGateMove.REMEDIATE
                | PhaseGateMove.PASS_INCOMPLETE
                | PhaseGateMove.PASS_EXHAUSTED
            ):
                started = first_cycle(context, review)
                if started is None:
                    events = (*nothing_to_raise(context, review), *self.completed(review))
                    return self._verdict(review, found, AfterPass.SETTLED, answer.because), events
                verdict = self._verdict(review, found, AfterPass.ONCE_MORE, answer.because, started.next)
                return verdict, started.events

    def completed(self, review: PassReview) -> tuple[LoggedEvent, ...]:
        """Return the events of a phase that passed its gate."""
        context, phase, now = self._context, review.phase_pass.phase, self._log.now()
        score = review.returned.alignment_score
        said = None if review.verified is None else review.verified.said
        events = []
        if human_tasks(context, phase) and said is not None and said.autonomous_confidence is not None:
            alone = new_event(
                of_phase.AutonomousResolutionSuccess,
                now,
                phase=phase,
                autonomous_confidence=said.autonomous_confidence,
            )
            events.append(LoggedEvent(alone))
        done = new_event(
            of_phase.PhaseCompleted,
            now,
            phase=phase,
            alignment_score=score,
            score_band=None if score is None else band_of(score),
            checkpoint_sha=context.tip(),
        )
        return (*events, LoggedEvent(done))

    def _split(
        self, review: PassReview, found: IntegrityVerdict, because: str
    ) -> tuple[PassDecision, tuple[LoggedEvent, ...]]:
        phase_pass, plan = review.phase_pass, self._context.plan(review.phase_pass.phase)
        assert plan is not None
        names = [f"{phase_pass.phase}{chr(ord('a') + index)}" for index in range(len(parts_of(plan)))]
        parts = tuple(
            PhasePass(
                phase=name,
                number=len(passes_of(self._log, name)) + 1,  # a retried phase may be split again
                kind=PassKind.PART,
                start=phase_pass.start,
                checkpoint=phase_pass.checkpoint,
                tasks=tuple(task.id for task in part),
            )
            for name, part in zip(names, parts_of(plan), strict=True)
        )
        verdict = PassDecision(
            phase=phase_pass.phase,
            number=phase_pass.number,
            after=AfterPass.SPLIT,
            because=because,
            findings=found.findings,
            parts=parts,
        )
        return verdict, ()

    def _joined(self, phase: str, number: int) -> tuple[PassDecision, tuple[LoggedEvent, ...]]:
        """Decide about a phase whose parts ended: completed with their mean score, or failed with the first failure."""
        context, log = self._context, self._log
        parts = next(each.parts for each in log.verdicts() if (each.phase, each.number) == (phase, number - 1))
        state = log.state().state.phases
        records = [state[part.phase] for part in parts if part.phase in state]  # after a failure some never started
        first = next(each for each in passes_of(context.log, phase) if each.number == number - 1)
        done = [name for name, record in state.items() if record.status is PhaseStatus.COMPLETED]
        failed = [part.phase for part in parts if part.phase not in done]
        settled = PassDecision(phase=phase, number=number, after=AfterPass.SETTLED, because="all its parts have ended")
        if failed:
            reason = f"its part {failed[0]} is not completed"
            events = self._failure(first, reason, Recommendation.ROLLBACK, StepName.EXECUTE)
            goes_on = run_mode(frozenset(context.order.flags)).goes_on
            if goes_on or not has_dependents(context.order.roadmap.outline, phase):
                return settled, events
            halted = settled.model_copy(update={"after": AfterPass.HALTED, "because": reason})
            return halted, (*events, self._stop(phase, reason))
        score = split_score([standing_score(each) for each in records])
        completed = new_event(
            of_phase.PhaseCompleted,
            log.now(),
            phase=phase,
            alignment_score=score,
            score_band=None if score is None else band_of(score),
            checkpoint_sha=context.tip(),
        )
        return settled, (LoggedEvent(completed),)

    def _failed(
        self, review: PassReview, found: IntegrityVerdict, reason: str, *, halts: bool
    ) -> tuple[PassDecision, tuple[LoggedEvent, ...]]:
        phase_pass = review.phase_pass
        halts = halts and phase_pass.phase in {phase.id for phase in self._context.order.roadmap.phases}
        results = self._log.results(phase_pass)
        step = results[-1].step if results else StepName.PREFLIGHT
        events = self._failure(phase_pass, reason, review.returned.recommendation, step)
        if halts:
            events = (*events, self._stop(phase_pass.phase, reason))
        return self._verdict(review, found, AfterPass.HALTED if halts else AfterPass.SETTLED, reason), events

    def _stop(self, phase: str, reason: str) -> LoggedEvent:
        why = f"phase {phase} failed: {reason}"
        return LoggedEvent(new_event(of_run.RunHalted, self._log.now(), reason=why, status=AutopilotRunStatus.FAILED))

    def _failure(
        self, phase_pass: PhasePass, reason: str, recommendation: Recommendation, step: StepName
    ) -> tuple[LoggedEvent, ...]:
        """Revert a failed phase, keep its changes on a diagnostic branch, and write the post-mortem."""
        context, log, now = self._context, self._log, self._log.now()
        events: list[LoggedEvent] = []
        back = take_back(
            log, context.repo, phase_pass.phase, to=phase_pass.checkpoint, why=reason, key=revert_key(phase_pass)
        )
        if back.branch is not None:
            begun = new_event(
                of_phase.RollbackInitiated,
                now,
                phase=phase_pass.phase,
                reason=reason,
                rollback_from=back.from_,
                rollback_to=back.to,
            )
            done = new_event(
                of_phase.RollbackCompleted,
                now,
                phase=phase_pass.phase,
                rollback_from=back.from_,
                rollback_to=back.to,
                diagnostic_branch=back.branch,
            )
            events = [LoggedEvent(begun), LoggedEvent(done)]
        category = category_of(context, phase_pass) or FailureCategory.COORDINATION_FAILURE
        written = write_post_mortem(
            log, context.files, phase_pass, PhaseFailure(reason=reason, category=category, step=step)
        )
        failed = new_event(
            of_phase.PhaseFailed,
            now,
            phase=phase_pass.phase,
            reason=reason,
            category=category,
            recommendation=recommendation,
            postmortem_path=written.path,
        )
        return (*events, LoggedEvent(failed))


def _reason(returned: PhaseReturn, otherwise: str = "a rollback was asked for") -> str:
    return returned.summary if returned.status is PhaseOutcome.FAILED else otherwise
