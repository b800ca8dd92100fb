"""Alignment scores over time, and the band each score falls into."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, Strict

from fairwitness.contracts.common.base import AlignmentScore, Contract, Flag, Timestamp


class ScoreBand(StrEnum):
    """The six bands of the alignment scale, best first."""

    EXCELLENCE = "excellence"
    GOOD = "good"
    ACCEPTABLE = "acceptable"
    SIGNIFICANT_GAPS = "significant_gaps"
    MAJOR_FAILURES = "major_failures"
    NOT_IMPLEMENTED = "not_implemented"


_FLOORS = (
    (9.5, ScoreBand.EXCELLENCE),
    (8.0, ScoreBand.GOOD),
    (7.0, ScoreBand.ACCEPTABLE),
    (5.0, ScoreBand.SIGNIFICANT_GAPS),
    (3.0, ScoreBand.MAJOR_FAILURES),
    (0.0, ScoreBand.NOT_IMPLEMENTED),
)


def band_of(score: float) -> ScoreBand:
    """The band of a score between 0.0 and 10.0.

    >>> [band_of(score).value for score in (9.5, 9.4, 7.0, 6.9, 2.9)]
    ['excellence', 'good', 'acceptable', 'significant_gaps', 'not_implemented']
    """
    return next(band for floor, band in _FLOORS if score >= floor)


class ScoreFlag(StrEnum):
    """What made a phase be scored."""

    INITIAL = "initial"
    FORCE = "force"
    QUALITY = "quality"
    GAPS = "gaps"


class ScoreEntry(Contract):
    """One scoring of a phase."""

    score: AlignmentScore
    timestamp: Timestamp
    flag: ScoreFlag
    cycle: Annotated[int, Strict(), Field(ge=0, le=5)]  # 0 first; --quality runs 3 cycles, --gaps 5


class ScoreHistory(Contract):
    """The part of a phase record that the quality flags keep."""

    score_history: tuple[ScoreEntry, ...]
    quality_exhausted: Flag
    gaps_exhausted: Flag
