"""The answers of a gate: open with its evidence, or blocked with what is missing."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from fairwitness.contracts.common.base import Contract, Count, Positive, Text, Texts
from fairwitness.contracts.common.evidence import EvidenceQuery


class Gate(StrEnum):
    """The gates: six of the feature pipeline, that of `fairwitness verify`, and two that events of a run answer."""

    BASELINE_EXISTS = "EG-1"
    VERIFICATION_SUFFICIENT = "EG-2"
    REVIEWERS_SUBMITTED = "EG-3"
    NO_BLOCKER = "EG-4"
    CATEGORIES_COVERED = "EG-5"
    MAJORITY_APPROVES = "EG-6"
    CHANGE_HOLDS = "verify"
    PERSON_APPROVES = "approval"
    PHASE_PASSES = "phase"


class Open(Contract):
    """The gate is open, with the evidence rows that opened it; for a gate that events answer, their numbers."""

    answer: Literal["open"] = "open"
    gate: Gate
    evidence: tuple[Positive, ...]
    count: Count
    threshold: Count
    query: EvidenceQuery


class Blocked(Contract):
    """The gate is blocked, with what is missing and why the existing evidence does not suffice."""

    answer: Literal["blocked"] = "blocked"
    gate: Gate
    missing: Annotated[Texts, Field(min_length=1)]
    because: Text
    count: Count
    threshold: Count
    query: EvidenceQuery
    asks: Texts = ()
    """Those of `missing` that a person may accept."""

    @property
    def needs_person(self) -> bool:
        """Return True if nothing is missing but the decision of a person."""
        return set(self.missing) == set(self.asks)


GateAnswer = Annotated[Open | Blocked, Field(discriminator="answer")]
