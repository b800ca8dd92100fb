"""JUDGE-REPORT.md and SCORECARD.md: the adversarial second opinion, and the score criterion by criterion."""

from collections.abc import Iterator, Sequence

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.autopilot.rating import RatingReturn, ScorecardItem
from fairwitness.contracts.autopilot.returns import JudgeReturn
from fairwitness.contracts.autopilot.score import ScoreBand
from fairwitness.contracts.autopilot.verifying import VerifierReturn
from fairwitness.contracts.autopilot.words import Recommendation
from fairwitness.kit.markdown import (
    ROWS,
    Markdown,
    cell,
    code,
    counted,
    items,
    line,
    page,
    prose,
    table,
    texts,
)
from fairwitness.runs.autopilot.pages_verification import ASSESSED
from fairwitness.runs.autopilot.wording import milliseconds, of_ten, recommendation, title

DIVERGENCE = "## Divergence from the verifier"
OWN_EVIDENCE = "## Independent evidence"

BANDS: dict[ScoreBand, str] = {
    ScoreBand.EXCELLENCE: "every criterion is fully met, with evidence, and nothing worries",
    ScoreBand.GOOD: "every criterion is met, with small doubts",
    ScoreBand.ACCEPTABLE: "most criteria are met; there are real deficiencies",
    ScoreBand.SIGNIFICANT_GAPS: "several criteria are met only in part",
    ScoreBand.MAJOR_FAILURES: "several criteria are not met",
    ScoreBand.NOT_IMPLEMENTED: "the work does not reach the goal of the phase",
}
"""What each band means."""


def judge_page(phase: RoadmapPhase, judge: JudgeReturn, verifier: VerifierReturn | None) -> str:
    """`JUDGE-REPORT.md`; the verifier's return is what the judge was held against."""
    return page(_judge(phase, judge, verifier), whole="the judge's return")


def _judge(phase: RoadmapPhase, judge: JudgeReturn, verifier: VerifierReturn | None) -> Iterator[Markdown]:
    yield title("Judge report", phase)
    yield Markdown(
        "Rendered by Fair Witness from what the judge returned: an opinion with its evidence, never a score."
    )
    yield Markdown(f"Recommendation: {recommendation(judge.recommendation)}.")
    yield Markdown("## Concerns")
    yield texts(judge.concerns, "")
    yield Markdown(OWN_EVIDENCE)
    yield texts(judge.independent_evidence, "**None:** the judge names nothing that it looked at or ran itself.")
    yield Markdown(DIVERGENCE)
    yield from _divergence(judge, verifier)
    yield Markdown("## Scope creep")
    yield texts(judge.scope_creep, "The judge saw nothing that nobody asked for.")
    yield Markdown("## Missing requirements")
    yield texts(judge.missing_requirements, "The judge misses none.")
    yield Markdown("## How the judge came to it")
    yield prose(judge.notes)


def _divergence(judge: JudgeReturn, verifier: VerifierReturn | None) -> Iterator[Markdown]:
    yield Markdown(f"The judge says that it {'agrees' if judge.verifier_agreement else '**does not agree**'}.")
    if judge.verifier_agreement and not judge.independent_evidence:
        yield Markdown("**Agreement without evidence of its own counts for nothing.**")
    if verifier is None:
        yield Markdown("No return of a verifier is on record.")
    else:
        proceeds = judge.recommendation is Recommendation.PROCEED
        same = "the same direction" if proceeds is verifier.pass_ else "**opposite directions**"
        yield Markdown(
            f"The verifier says {'pass' if verifier.pass_ else 'fail'}, the judge says "
            f"{judge.recommendation.value}: {same}."
        )
    yield Markdown("What the verifier missed, as the judge has it:")
    yield texts(judge.verifier_missed, "Nothing.")


def scorecard_page(phase: RoadmapPhase, rating: RatingReturn, executed: Sequence[ExecutionResult]) -> str:
    """`SCORECARD.md`; `executed` are the commands of the card as Fair Witness ran them again."""
    return page(_scorecard(phase, rating, executed), whole="the rater's return")


def _scorecard(phase: RoadmapPhase, rating: RatingReturn, executed: Sequence[ExecutionResult]) -> Iterator[Markdown]:
    runs = {(result.criterion, result.command): result for result in executed}
    yield title("Scorecard", phase)
    yield Markdown(
        f"**{of_ten(rating.alignment_score)}**, {line(rating.score_band.value)}: {BANDS[rating.score_band]}."
    )
    yield Markdown("The rater saw only the criteria and the change. Its scores are opinions.")
    yield Markdown("Under *Run by Fair Witness* stands what its commands really came to.")
    yield table(
        ("#", "Criterion", "Score", "Run by Fair Witness"),
        [
            (str(number), item.criterion, of_ten(item.score), _run(runs.get(_key(item))))
            for number, item in enumerate(rating.scorecard, start=1)
        ],
        "",
    )
    yield Markdown("## Why this score")
    yield prose(rating.aggregate_justification)
    yield Markdown("## Criteria")
    for number, item in enumerate(rating.scorecard[:ROWS], start=1):
        yield Markdown(f"### {number}. {line(item.criterion)}")
        yield items(list(_item(item, runs.get(_key(item)))), "")
    yield Markdown("## Tests")
    yield _tests(rating)
    yield Markdown("## Side effects")
    yield texts(rating.side_effects, "The rater saw none.")
    yield Markdown("## Commands the rater says it ran")
    yield texts(rating.commands_run, "")


def _key(item: ScorecardItem) -> tuple[str, str]:
    return item.criterion, item.verification_command


def _run(result: ExecutionResult | None) -> Markdown:
    return Markdown("**not run**") if result is None else ASSESSED[result.assessment]


def _item(item: ScorecardItem, result: ExecutionResult | None) -> Iterator[Markdown]:
    yield Markdown(f"- Score: {of_ten(item.score)}")
    yield Markdown(f"- Command: {code(item.verification_command)}")
    yield Markdown(f"- Printed, as the rater has it: {cell(item.command_output)}")
    if result is None:
        yield Markdown("- Run by Fair Witness: **no**, so the score rests on the rater's word")
    else:
        said = cell(result.stdout_truncated or result.stderr_truncated or "it printed nothing")
        exit_code = "no exit code" if result.exit_code is None else f"exit code {result.exit_code}"
        yield Markdown(
            f"- Run by Fair Witness: {ASSESSED[result.assessment]}, {exit_code}, {milliseconds(result.duration_ms)}: {said}"
        )
    if item.execution_result is not None:
        ended = item.execution_result.exit_code
        yield Markdown(
            f"- The rater says it ran {code(item.execution_result.command)} with "
            f"{'no exit code' if ended is None else f'exit code {ended}'}: {cell(item.execution_result.output)}"
        )
    yield Markdown(f"- Evidence: {line(item.evidence)}")
    yield Markdown(f"- Why: {line(item.justification)}")


def _tests(rating: RatingReturn) -> Markdown:
    coverage = rating.test_coverage
    if coverage is None:
        return Markdown("The rater says nothing about tests.")
    return Markdown(
        f"{coverage.tasks_with_tests} of {counted(coverage.tasks_total, 'task')} have tests of their own; "
        f"{coverage.assertions_passed} of {counted(coverage.assertions_total, 'assertion')} held."
    )
