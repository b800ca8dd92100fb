"""Scores of phases and their consequences: thresholds, the phase gate, remediation, quality, gaps, deferral.

Scores are compared as whole tenths, because binary floating point does not represent 8.3 exactly.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from fractions import Fraction

from fairwitness.contracts.autopilot.facts import PathItem, PathProblems
from fairwitness.contracts.autopilot.phase_return import PhaseOutcome
from fairwitness.contracts.autopilot.rating import Deficiency
from fairwitness.contracts.autopilot.vocabulary import Recommendation, RunFlag
from fairwitness.contracts.common.base import Contract, Count, Flag, Text

PASS_TENTHS = 90
LENIENT_TENTHS = 70
QUALITY_TENTHS = 95
COMBINED_TENTHS = 98
FAIL_BELOW_TENTHS = 70

REMEDIATION_CYCLES = 2
QUALITY_CYCLES = 3
GAP_ITERATIONS = 5


EXCLUSIONS: tuple[tuple[RunFlag, RunFlag], ...] = (
    (RunFlag.FORCE, RunFlag.QUALITY),
    (RunFlag.FORCE, RunFlag.GAPS),
    (RunFlag.FORCE, RunFlag.COMPLETE),
    (RunFlag.GAPS, RunFlag.COMPLETE),
    (RunFlag.FORCE, RunFlag.MAP),
)
"""Pairs of flags that exclude each other."""


def flag_conflicts(flags: frozenset[RunFlag]) -> tuple[tuple[RunFlag, RunFlag], ...]:
    """Return every pair of the given flags that exclude each other.

    >>> flag_conflicts(frozenset({RunFlag.FORCE, RunFlag.GAPS, RunFlag.LENIENT}))
    ((<RunFlag.FORCE: 'force'>, <RunFlag.GAPS: 'gaps'>),)
    """
    return tuple(pair for pair in EXCLUSIONS if flags.issuperset(pair))


def threshold_tenths(flags: frozenset[RunFlag]) -> int:
    """Return the score to reach; `lenient` has no effect with quality or gaps, and those two together aim higher.

    >>> threshold_tenths(frozenset()), threshold_tenths(frozenset({RunFlag.LENIENT, RunFlag.GAPS}))
    (90, 95)
    """
    if flags.issuperset((RunFlag.QUALITY, RunFlag.GAPS)):
        return COMBINED_TENTHS
    if RunFlag.QUALITY in flags or RunFlag.GAPS in flags:
        return QUALITY_TENTHS
    return LENIENT_TENTHS if RunFlag.LENIENT in flags else PASS_TENTHS


def tenths(score: float) -> int:
    """Return a score with one decimal as whole tenths.

    >>> tenths(8.3), tenths(0.3), tenths(10.0)
    (83, 3, 100)
    """
    return round(score * 10)


def mean_score(scores: Sequence[float]) -> float:
    """Return the mean of the scores, computed exactly and rounded down to one decimal.

    >>> mean_score([8.2, 8.3, 8.3]), mean_score([9.0, 9.0]), mean_score([0.1, 0.2, 0.3])
    (8.2, 9.0, 0.2)
    """
    total = sum((Fraction(repr(score)) for score in scores), Fraction(0))
    return (total * 10 / len(scores)).__floor__() / 10


class PhaseGateFacts(Contract):
    """The input of a phase gate; `score_tenths` is the best score kept."""

    outcome: PhaseOutcome
    recommendation: Recommendation
    score_tenths: Count | None
    threshold_tenths: Count
    cycles: Count
    """Remediation cycles run so far."""
    gained: Flag
    """Whether the last cycle raised the score; true before the first."""
    quality: Flag
    has_dependents: Flag
    complete: Flag
    """Whether the run continues after a failed phase (`--complete`)."""


class PhaseGateMove(StrEnum):
    """What happens to a phase at its gate."""

    PASS = "pass"
    PASS_INCOMPLETE = "pass_incomplete"
    PASS_EXHAUSTED = "pass_exhausted"
    REMEDIATE = "remediate"
    DEFER = "defer"
    SPLIT = "split"
    FAIL_AND_GO_ON = "fail_and_go_on"
    FAIL_AND_HALT = "fail_and_halt"
    ROLL_BACK = "roll_back"


class PhaseGateAnswer(Contract):
    """The gate's move and its reason."""

    move: PhaseGateMove
    because: Text


def phase_gate(facts: PhaseGateFacts) -> PhaseGateAnswer:
    """Return what happens to a returned phase. A rollback takes precedence over the status, and the status over the
    score.
    """
    if facts.recommendation is Recommendation.ROLLBACK:
        return PhaseGateAnswer(move=PhaseGateMove.ROLL_BACK, because="a rollback was asked for")
    if facts.outcome is PhaseOutcome.NEEDS_HUMAN_VERIFICATION:
        return PhaseGateAnswer(move=PhaseGateMove.DEFER, because="a person must verify it")
    if facts.outcome is PhaseOutcome.SPLIT_REQUEST:
        return PhaseGateAnswer(move=PhaseGateMove.SPLIT, because="it is too large for one phase")
    return _completed(facts) if facts.outcome is PhaseOutcome.COMPLETED else _failed("it failed", facts)


def _completed(facts: PhaseGateFacts) -> PhaseGateAnswer:
    if facts.recommendation is not Recommendation.PROCEED:
        return _failed(f"it is completed, but {facts.recommendation.value} was recommended", facts)
    if facts.score_tenths is None:
        return _failed("it is completed, but has no score", facts)
    if facts.score_tenths < FAIL_BELOW_TENTHS:
        return _failed("its score is below 7.0", facts)
    if facts.score_tenths >= facts.threshold_tenths:
        return PhaseGateAnswer(move=PhaseGateMove.PASS, because="it reached the threshold")
    if facts.quality:
        if facts.cycles >= QUALITY_CYCLES or not facts.gained:
            return PhaseGateAnswer(move=PhaseGateMove.PASS_EXHAUSTED, because="more cycles bring no more quality")
        return PhaseGateAnswer(move=PhaseGateMove.REMEDIATE, because="it is below the quality it should have")
    if facts.cycles >= REMEDIATION_CYCLES:
        return PhaseGateAnswer(move=PhaseGateMove.PASS_INCOMPLETE, because="remediation is exhausted")
    return PhaseGateAnswer(move=PhaseGateMove.REMEDIATE, because="it is below the threshold")


def _failed(because: str, facts: PhaseGateFacts) -> PhaseGateAnswer:
    halts = facts.has_dependents and not facts.complete
    return PhaseGateAnswer(move=PhaseGateMove.FAIL_AND_HALT if halts else PhaseGateMove.FAIL_AND_GO_ON, because=because)


def kept_tenths(before: int, after: int) -> int:
    """Return the score kept after a cycle: a change that lowers it is reverted."""
    return max(before, after)


class GapMove(StrEnum):
    """What `--gaps` does next."""

    REACHED = "reached"
    NEXT = "next"
    EXHAUSTED = "exhausted"


def in_order_of_gap(deficiencies: Sequence[Deficiency]) -> tuple[Deficiency, ...]:
    """Return the deficiencies with the widest gap first, otherwise in their order."""
    return tuple(sorted(deficiencies, key=lambda one: tenths(one.current_score) - tenths(one.target_score)))


def after_gaps(score_tenths: int, target_tenths: int, iterations: int, remaining: int) -> GapMove:
    """Return the next move of `--gaps`: one deficiency per iteration, regardless of gains, while both are left.

    >>> after_gaps(94, 95, 4, 2).value, after_gaps(94, 95, 5, 2).value, after_gaps(94, 95, 1, 0).value
    ('next', 'exhausted', 'exhausted')
    """
    if score_tenths >= target_tenths:
        return GapMove.REACHED
    return GapMove.NEXT if iterations < GAP_ITERATIONS and remaining > 0 else GapMove.EXHAUSTED


def worth_gaps(score_tenths: int) -> bool:
    """Return True if a finished phase has gaps worth closing."""
    return score_tenths < COMBINED_TENTHS


def split_score(parts: Sequence[float | None]) -> float | None:
    """Return the score of a split phase: the mean of its parts, or None if a part has none.

    >>> split_score([9.0, 8.5]), split_score([9.0, None])
    (8.7, None)
    """
    known = [score for score in parts if score is not None]
    return mean_score(known) if known and len(known) == len(parts) else None


DEFERRAL_START = 6.0
DEFERRAL_FLOOR = 3.0
DEFERRAL_CEILING = 8.0
DEFERRAL_STEP = 0.5
VERDICTS_NEEDED = 3


def too_many_deferred(deferred: int, processed: int, share: float) -> bool:
    """Return True if more than this share of at least two phases was deferred to a person.

    >>> too_many_deferred(1, 20, 0.05), too_many_deferred(2, 20, 0.05), too_many_deferred(1, 1, 0.05)
    (False, True, False)
    """
    return processed >= 2 and deferred > Fraction(repr(share)) * processed


def may_defer(autonomous_confidence: float, limit: float) -> bool:
    """Return True if a verifier's confidence is low enough to defer a phase to a person."""
    return autonomous_confidence < limit


def adjusted_limit(limit: float, passed: int, verdicts: int) -> float:
    """Return the confidence limit after human verdicts: mostly passes mean fewer questions, otherwise more.

    >>> adjusted_limit(6.0, 3, 3), adjusted_limit(6.0, 2, 3), adjusted_limit(6.0, 2, 2), adjusted_limit(3.0, 9, 9)
    (5.5, 6.5, 6.0, 3.0)
    """
    if verdicts < VERDICTS_NEEDED:
        return limit
    if passed * 10 > verdicts * 8:
        return max(DEFERRAL_FLOOR, limit - DEFERRAL_STEP)
    if passed * 10 < verdicts * 7:
        return min(DEFERRAL_CEILING, limit + DEFERRAL_STEP)
    return limit


def autonomous_resolution_rate(processed: int, deferred: int) -> float:
    """Return the share of phases that needed no person; 0 if none was processed."""
    return round((processed - deferred) / processed, 4) if processed else 0.0


class RubberStamp(StrEnum):
    """How suspicious a sequence of nearly equal scores is."""

    WARNING = "warning"
    ENHANCED = "enhanced"
    CRITICAL = "critical"


STAMPS: Mapping[RubberStamp, int] = {RubberStamp.CRITICAL: 7, RubberStamp.ENHANCED: 5, RubberStamp.WARNING: 3}
"""The number of consecutive scores for each level, worst first."""
STAMP_TENTHS = 2


def uniform_tail(scores_tenths: Sequence[int]) -> int:
    """Return how many of the last scores lie within 0.2 of each other.

    >>> uniform_tail([80, 85, 86, 87]), uniform_tail([])
    (3, 0)
    """
    lowest, highest, length = 100, 0, 0
    for score in reversed(scores_tenths):
        lowest, highest = min(lowest, score), max(highest, score)
        if highest - lowest > STAMP_TENTHS:
            break
        length += 1
    return length


def rubber_stamp(scores_tenths: Sequence[int]) -> RubberStamp | None:
    """Return the suspicion that the last scores raise, or None."""
    tail = uniform_tail(scores_tenths)
    return next((stamp for stamp, needed in STAMPS.items() if tail >= needed), None)


_VAGUE = re.compile(
    r"\b(improve|enhance|better|more|clean(er)? up|polish|refactor|optimi[sz]e|tidy|increase|add|fix|review)\b"
    r"[^.]{0,500}?\b(quality|tests?|testing|coverage|docs?|documentation|code|readability|maintainability|performance|style|"
    r"structure|error handling|things|issues?|bugs?)\b",
    re.IGNORECASE,
)
_ANCHOR = re.compile(r"\d|[`'\"“‘][^`'\"”’]{2,}[`'\"”’]|\w[_./]\w|\w\(\)|[a-z][A-Z]")
"""What makes a sentence concrete: a number, a quoted name, a path, an identifier."""


UNNAMED_FILE = "the file is not named"


def path_problems(item: PathItem) -> PathProblems | None:
    """Return why a diagnostic item is unusable, or None: it must name a file, what is wrong there, and the gain."""
    problems = []
    name = item.file.rsplit("/", 1)[-1]
    if "." not in name and not name[:1].isupper():  # a Makefile is a file, `src/auth` is a folder
        problems.append(UNNAMED_FILE)
    if _ANCHOR.search(item.deficiency) is None and (
        _VAGUE.search(item.deficiency) is not None or len(item.deficiency.split()) < 4
    ):
        problems.append("the deficiency is vague")
    if _ANCHOR.search(item.impact) is None:
        problems.append("the impact names neither a number nor a criterion")
    return PathProblems(item=item, problems=tuple(problems)) if problems else None
