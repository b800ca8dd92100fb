"""The final rating of a phase, and the improvements that would raise it.

What Fair Witness ran outweighs what the rater claims: contradicted criteria lose points.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.facts import PathItem
from fairwitness.contracts.autopilot.rating import Deficiency, RatedExecution, RatingReturn, ScorecardItem, band_of
from fairwitness.contracts.common.base import AlignmentScore, Contract, Texts
from fairwitness.rules.claims import claim_differences, ended, plain_command
from fairwitness.rules.integrity_evidence import has_place, places
from fairwitness.rules.scores import PASS_TENTHS, in_order_of_gap, mean_score, tenths

CONTRADICTED = 4.9
"""The highest score of a criterion whose command did not pass or was misreported."""
UNSHOWN = 6.9
"""The highest score of a criterion without a reference to a line of a file."""
SNIPPET = 200


class SettledRating(Contract):
    """The final score, the corrected rating, and the rater's discrepancies."""

    score: AlignmentScore
    rating: RatingReturn
    """The rating with final scores, and with observed executions in place of claimed ones."""
    discrepancies: Texts


class _Settled(NamedTuple):
    item: ScorecardItem
    discrepancies: tuple[str, ...]


def settle(rating: RatingReturn, executions: Sequence[ExecutionResult]) -> SettledRating:
    """Compute the final rating; `executions` are the runs of its verification commands, in the order of the scorecard.

    A missing run, or a run of another command, counts as a command that did not pass. The score is the mean of the
    corrected items, rounded down, and never above the rater's own.
    """
    claimed = mean_score([item.score for item in rating.scorecard])
    settled = [
        _settled(item, _run_of(item, executions[place : place + 1])) for place, item in enumerate(rating.scorecard)
    ]
    items = [each.item for each in settled]
    score = min(rating.alignment_score, mean_score([item.score for item in items]))
    found = [text for each in settled for text in each.discrepancies]
    if rating.alignment_score > claimed:
        found.append(f"the score is given as {rating.alignment_score}, and the mean of its scorecard is {claimed}")
    found += claim_differences(rating.commands_run, executions)
    changed = {
        "alignment_score": score,
        "score_band": band_of(score).value,
        "scorecard": [item.plain() for item in items],
    }
    return SettledRating(
        score=score,
        rating=RatingReturn.model_validate(rating.plain() | changed),
        discrepancies=tuple(dict.fromkeys(found)),
    )


def _run_of(item: ScorecardItem, at_its_place: Sequence[ExecutionResult]) -> ExecutionResult | None:
    asked = plain_command(item.verification_command)
    return next((run for run in at_its_place if plain_command(run.command) == asked), None)


def _settled(item: ScorecardItem, run: ExecutionResult | None) -> _Settled:
    limits, found = [item.score], []
    if run is None:
        limits.append(CONTRADICTED)
        found.append(f"“{item.criterion}”: its command was not run by the harness")
    else:
        if not run.passed:
            limits.append(CONTRADICTED)
        found += _untrue(item, run)
        limits += [CONTRADICTED] * len(found)
    if not has_place(item.evidence):
        limits.append(UNSHOWN)
    seen = None if run is None else _shown(run)
    changed = {
        "score": min(limits),
        "command_output": "" if seen is None else seen.output,
        "execution_result": None if seen is None else seen.plain(),
    }
    return _Settled(ScorecardItem.model_validate(item.plain() | changed), tuple(found))


def _untrue(item: ScorecardItem, run: ExecutionResult) -> Iterator[str]:
    """Report untrue claims about the run; a high score for a failing command is also reported."""
    claim = item.execution_result
    if claim is not None and claim.exit_code != run.exit_code:
        code = "no exit code" if claim.exit_code is None else f"exit code {claim.exit_code}"
        yield f"“{item.criterion}”: its command is said to have ended with {code}; it {ended(run)}"
    elif not run.passed and item.score > CONTRADICTED:
        yield f"“{item.criterion}” is given {item.score}; its command {ended(run)}"


def _shown(run: ExecutionResult) -> RatedExecution:
    output = run.stdout_truncated or run.stderr_truncated
    return RatedExecution(command=run.command, exit_code=run.exit_code, output=output[:SNIPPET])


def improvement_paths(
    rating: RatingReturn, files: Mapping[str, str], known: Collection[str], target_tenths: int = PASS_TENTHS
) -> tuple[PathItem, ...]:
    """Return what would raise the criteria below the target, widest gap first.

    The file is the first existing one that the rater names, or the one that `files` assigns to the criterion; a
    criterion with neither is left out.
    """
    return tuple(
        PathItem(file=gap.target_file, deficiency=gap.deficiency, impact=gap.expected_impact)
        for gap in deficiencies(rating, files, known, target_tenths)
    )


def deficiencies(
    rating: RatingReturn, files: Mapping[str, str], known: Collection[str], target_tenths: int
) -> tuple[Deficiency, ...]:
    """Return the criteria below the target as entries of the `--gaps` list."""
    found = []
    for number, item in enumerate(rating.scorecard, start=1):
        file = _file(item, files, known)
        if tenths(item.score) < target_tenths and file is not None:
            found.append(
                Deficiency(
                    criterion=item.criterion,
                    current_score=item.score,
                    target_score=target_tenths / 10,
                    deficiency=item.justification,
                    target_file=file,
                    expected_impact=f"raises criterion {number} from {item.score} to {target_tenths / 10}",
                )
            )
    return in_order_of_gap(found)


def _file(item: ScorecardItem, files: Mapping[str, str], known: Collection[str]) -> str | None:
    named = (*places(item.justification), *places(item.evidence), *filter(None, (files.get(item.criterion),)))
    return next((file for file in named if file in known), None)
