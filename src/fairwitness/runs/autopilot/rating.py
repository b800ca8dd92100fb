"""The rate step: the rater sees only criteria and diff, and its score counts only after its commands ran."""

import json

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.facts import StepFailureCause
from fairwitness.contracts.autopilot.passes import PhasePass, StepResult
from fairwitness.contracts.autopilot.phase_record import PhaseSteps, RateStep
from fairwitness.contracts.autopilot.rating import RatingReturn, band_of
from fairwitness.contracts.autopilot.trace import TraceAction
from fairwitness.contracts.autopilot.vocabulary import CheckState, FailureCategory, StepName
from fairwitness.contracts.common.base import Contract, Text
from fairwitness.contracts.common.tools import Role
from fairwitness.rules.rating import SettledRating, settle
from fairwitness.rules.scores import tenths
from fairwitness.runs.autopilot.commands import CriterionCommand
from fairwitness.runs.autopilot.context import RATING, VERIFICATION, AutopilotContext
from fairwitness.runs.autopilot.log import pass_name
from fairwitness.runs.autopilot.pages_judgement import scorecard_page
from fairwitness.runs.autopilot.step_result import FinishedStep, Span, agent_span, answer
from fairwitness.runs.autopilot.verification import PhaseVerification, diff_of
from fairwitness.runs.dispatch.blocking import run_blocking, run_blocking_stoppable


class PhaseRating(Contract):
    """A rating after its commands ran, and its score as it was written."""

    said: RatingReturn
    """The rating as the rater wrote it."""
    settled: SettledRating
    executed: tuple[ExecutionResult, ...]
    written: Text


async def rate(context: AutopilotContext, phase_pass: PhasePass, number: int) -> FinishedStep:
    """Call the rater, run its commands, and lower the scores that they do not support."""
    tip = await run_blocking(context.tip)
    criteria = await run_blocking(context.rated_criteria, phase_pass)
    diff = await run_blocking(diff_of, context, phase_pass, tip)
    known = await run_blocking(context.latest, VERIFICATION, phase_pass.phase, PhaseVerification)
    seen = None if known is None or known.commit != tip else known.seen
    executed, proven = ((), ()) if seen is None else (seen.executed, seen.proven)
    brief = context.briefs.rater(phase_pass, number, criteria, diff, executed, proven)
    done = await context.ask(phase_pass, StepName.RATE, number, brief, at=tip)
    found = answer(done, RatingReturn)
    agent = agent_span(Role.RATER.value, done)
    if isinstance(found, StepFailureCause):
        result = StepResult(step=StepName.RATE, number=number, good=False, issues=(found.first_line,))
        return FinishedStep(result, error=found, spans=(agent,))
    wanted = tuple(CriterionCommand(item.criterion, item.verification_command) for item in found.scorecard)
    name, tree = f"rate-{pass_name(phase_pass)}-{number}", await run_blocking(context.tree, tip)
    executed = await run_blocking_stoppable(lambda stop: context.harness.run_all(name, wanted, tree, stop=stop))
    written = json.dumps((done.outcome.answer or {}).get("alignment_score"))
    rated = PhaseRating(said=found, settled=settle(found, executed), executed=executed, written=written)
    kept = await run_blocking(context.keep, RATING, phase_pass, number, rated)
    return await run_blocking(_rated, context, phase_pass, number, kept, agent)


def _rated(
    context: AutopilotContext, phase_pass: PhasePass, number: int, kept: PhaseRating, agent: Span
) -> FinishedStep:
    settled = kept.settled
    score, path = settled.score, context.layout(phase_pass.phase).scorecard
    context.put(path, scorecard_page(context.phase(phase_pass.phase), _shown(kept), kept.executed))
    unscored = [each.text for each in context.rated_criteria(phase_pass) if each.text not in _scored(settled)]
    error = None
    if unscored:
        error = StepFailureCause(
            category=FailureCategory.COORDINATION_FAILURE, first_line=f"the scorecard leaves out: {unscored[0]}"
        )
    low = low_items(settled)
    ran = tuple(
        Span(
            TraceAction.COMMAND_RUN,
            run.command,
            run.assessment.value,
            run.duration_ms,
            run.passed,
        )
        for run in kept.executed
    )
    return FinishedStep(
        StepResult(
            step=StepName.RATE,
            number=number,
            good=error is None,
            score_tenths=tenths(score),
            issues=(error.first_line,) if error is not None else low,
        ),
        steps=None
        if error is not None
        else PhaseSteps(
            rate=_scored_step(score, context.log.state().state.meta.pass_threshold)
        ),  # an incomplete scorecard is no score
        output=path,
        error=error,
        score_gained=0 if error is not None else max(0, tenths(score) - _best(context, phase_pass.phase)),
        spans=(agent, *ran),
    )


_GOOD = 90


def low_items(settled: SettledRating) -> tuple[str, ...]:
    """Return the criteria with a low score, each with the rater's reason."""
    return tuple(
        f"{item.criterion}: {item.justification}" for item in settled.rating.scorecard if tenths(item.score) < _GOOD
    )


def _scored_step(score: float, threshold: float) -> RateStep:
    status = CheckState.PASS if score >= threshold else CheckState.FAIL
    return RateStep(status=status, alignment_score=score, score_band=band_of(score))


def _shown(kept: PhaseRating) -> RatingReturn:
    """Return the scores that count, with the rater's own words."""
    counted = zip(kept.said.scorecard, kept.settled.rating.scorecard, strict=True)
    items = tuple(said.model_copy(update={"score": settled.score}) for said, settled in counted)
    return kept.settled.rating.model_copy(update={"scorecard": items})


def _scored(settled: SettledRating) -> frozenset[str]:
    return frozenset(item.criterion for item in settled.rating.scorecard)


def _best(context: AutopilotContext, phase_id: str) -> int:
    record = context.log.state().state.phases.get(phase_id)
    return max((tenths(entry.score) for entry in (record.score_history if record is not None else ())), default=0)
