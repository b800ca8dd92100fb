"""From a rating to what would raise it: for each criterion below nine the file, what is missing there, and what for."""

from collections.abc import Collection, Mapping

from fairwitness.contracts.autopilot.facts import PathItem
from fairwitness.contracts.autopilot.gaps import Deficiency
from fairwitness.contracts.autopilot.rating import RatingReturn, ScorecardItem
from fairwitness.rules.integrity_evidence import places
from fairwitness.rules.scoring import PASS_TENTHS, in_order_of_gap, tenths


def ways_up(
    rating: RatingReturn, files: Mapping[str, str], known: Collection[str], target_tenths: int = PASS_TENTHS
) -> tuple[PathItem, ...]:
    """What would raise the criteria below the target, widest gap first.

    The file is the first one that the rater names and that exists, or the one that `files` says the criterion is about;
    a criterion with neither is left out.
    """
    return tuple(
        PathItem(file=gap.target_file, deficiency=gap.deficiency, impact=gap.expected_impact)
        for gap in deficiencies(rating, files, known, target_tenths)
    )


def deficiencies(
    rating: RatingReturn, files: Mapping[str, str], known: Collection[str], target_tenths: int
) -> tuple[Deficiency, ...]:
    """The same as entries of the list that `--gaps` works through."""
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
