"""`phase-<N>-confidence.md`: why a phase scored below nine, and the way up, item by item."""

from collections.abc import Iterator

from fairwitness.contracts.autopilot.facts import PathItem, PathProblems, RoadmapPhase
from fairwitness.contracts.autopilot.rating import RatingReturn, ScorecardItem
from fairwitness.contracts.autopilot.returns import JudgeReturn
from fairwitness.contracts.autopilot.verifying import PhaseCriterion, PhaseCriterionStatus, VerifierReturn
from fairwitness.contracts.autopilot.words import Threshold
from fairwitness.contracts.common.base import AlignmentScore, Contract, Count, Flag, Texts
from fairwitness.kit.markdown import Markdown, code, items, line, page, table, texts
from fairwitness.rules.scoring import tenths
from fairwitness.runs.autopilot.pages_verification import automated_checks, criterion_status
from fairwitness.runs.autopilot.wording import of_ten, title

_FAILED = PhaseCriterionStatus.FAILED


class Cycle(Contract):
    """One remediation cycle: number 0 is the phase as it first came."""

    number: Count
    score: AlignmentScore
    changes: Texts
    remaining: Texts


class Doubted(Contract):
    """A phase below nine with all that was said of it; where a step did not run, nothing was said."""

    score: AlignmentScore
    threshold: Threshold
    force_incomplete: Flag
    judge: JudgeReturn | None
    verifier: VerifierReturn | None
    rating: RatingReturn | None
    usable: tuple[PathItem, ...]
    """The ways up: each names a file, what is wrong in it and what mending it brings."""
    refused: tuple[PathProblems, ...]
    """What was named as a way up and is none."""
    cycles: tuple[Cycle, ...]


def standing(doubted: Doubted) -> str:
    """How the phase goes on, as the diagnostic calls it."""
    if doubted.force_incomplete:
        return "force_incomplete"
    if tenths(doubted.score) < tenths(doubted.threshold):
        return "below_threshold"
    return f"remediated_to_{doubted.score:.1f}" if any(cycle.number for cycle in doubted.cycles) else "passed"


def confidence_page(phase: RoadmapPhase, doubted: Doubted) -> str:
    """The diagnostic; what was refused as a way up is shown as what it is, and not counted."""
    return page(_confidence(phase, doubted), whole="the returns of the phase")


def _confidence(phase: RoadmapPhase, doubted: Doubted) -> Iterator[Markdown]:
    yield title("Confidence diagnostic", phase)
    yield items(
        [
            Markdown(f"- **Score:** {of_ten(doubted.score)}, by the rater"),
            Markdown(f"- **Threshold:** {of_ten(doubted.threshold)}"),
            Markdown(f"- **Status:** `{standing(doubted)}`"),
        ],
        "",
    )
    yield Markdown("## Judge Concerns")
    if doubted.judge is None:
        yield Markdown("No judge was heard.")
    else:
        yield texts(doubted.judge.concerns, "")
    yield Markdown("## Acceptance Criteria Status")
    yield _criteria(doubted)
    yield Markdown("## Automated Check Results")
    if doubted.verifier is None:
        yield Markdown("No verifier was heard.")
    else:
        yield automated_checks(doubted.verifier.automated_checks)
    yield Markdown("## Path to 9.0/10")
    yield from _path(doubted)
    if doubted.cycles:
        yield Markdown("## Remediation History")
        yield table(
            ("Cycle", "Score", "Changes Made", "Remaining Issues"),
            [
                (
                    "0 (initial)" if cycle.number == 0 else str(cycle.number),
                    of_ten(cycle.score),
                    "; ".join(cycle.changes) or "none",
                    "; ".join(cycle.remaining) or "none",
                )
                for cycle in doubted.cycles
            ],
            "",
        )


def _settled(doubted: Doubted) -> tuple[PhaseCriterion, ...]:
    return () if doubted.verifier is None else doubted.verifier.criteria_results


def _scored(doubted: Doubted) -> tuple[ScorecardItem, ...]:
    return () if doubted.rating is None else doubted.rating.scorecard


def _criteria(doubted: Doubted) -> Markdown:
    """Every criterion the verifier settled or the rater scored; of one that was said twice, the worse."""
    settled = {each.criterion: each for each in sorted(_settled(doubted), key=lambda each: each.status is _FAILED)}
    scored = {each.criterion: each for each in sorted(_scored(doubted), key=lambda each: -each.score)}
    rows = []
    for criterion in dict.fromkeys((*settled, *scored)):
        result, item = settled.get(criterion), scored.get(criterion)
        source = result or item
        rows.append(
            (
                criterion,
                Markdown("**not settled**") if result is None else criterion_status(result.status),
                "" if source is None else source.evidence,
                "not rated" if item is None else f"{of_ten(item.score)}: {item.justification}",
            )
        )
    return table(("Criterion", "Status", "Evidence", "Gap, as the rater has it"), rows, "No criterion was looked at.")


def _path(doubted: Doubted) -> Iterator[Markdown]:
    numbered = [
        Markdown(f"{number}. **{code(item.file)}**: {line(item.deficiency)} → {line(item.impact)}")
        for number, item in enumerate(doubted.usable, start=1)
    ]
    yield items(numbered, "No way up was named.")
    if doubted.refused:
        yield Markdown("Too vague to act on, and not counted:")
        yield items(
            [
                Markdown(f"- {code(each.item.file)}: {line(each.item.deficiency)} ({line('; '.join(each.problems))})")
                for each in doubted.refused
            ],
            "",
        )
