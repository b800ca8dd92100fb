"""The records of the evidence ledger: executed commands, observations, agents' claims, and the checks based on them.

A check is evidence only through its source. A caller never states whether it passed: that follows from the execution's
assessment, from the observation, or from the claimed verdict.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from fairwitness.contracts.common.base import Contract, Count, Flag, Integer, Maybe, Positive, Prose, Text, Timestamp
from fairwitness.contracts.common.ids import RunId, SafeName, Sha256
from fairwitness.contracts.common.problems import FieldRefusal, refuse_if_any
from fairwitness.contracts.common.vocabulary import Assessment, CategoryVerdict, Severity

Tree = Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
"""The full hash of a git tree."""

Snippet = Annotated[str, Field(max_length=500)]
"""The first 500 characters of an output."""

ROUNDS = 99
"""The maximum number of attempts of a graph's task; each is verified in its own round."""

Round = Annotated[Integer, Field(ge=0, le=ROUNDS)]
"""1 to 3 for an iteration of verification, up to 99 for an attempt, 1 or 2 for a review.

A baseline stands one round below what it is compared with: in 0 for the first, as published.
"""


class Provenance(StrEnum):
    """The source of a check; gates on code count only executed checks."""

    EXECUTED = "executed"
    OBSERVED = "observed"
    CLAIMED = "claimed"


class Phase(StrEnum):
    """When a check was made: before the change, after it, or in a review."""

    BASELINE = "baseline"
    AFTER = "after"
    REVIEW = "review"


class SandboxTier(StrEnum):
    """How a command was isolated; results without isolation open no gate."""

    NAMESPACES = "ns"
    LANDLOCK = "ll"
    UID = "uid"
    NONE = "none"


class Execution(Contract):
    """One command that Fair Witness ran."""

    run_id: RunId
    task_id: SafeName | None
    key: Text
    """Run, step and attempt in one text, so that a repeated step finds its earlier result."""
    argv: Annotated[tuple[str, ...], Field(min_length=1)]
    cwd: Text
    env_digest: Sha256
    tool: Text
    tool_version: Text | None
    tree: Tree
    sandbox: SandboxTier
    started_at: Timestamp
    duration_ms: Count
    exit_code: Integer | None
    signal: Positive | None
    stdout: Sha256
    stderr: Sha256
    assessment: Assessment

    @model_validator(mode="after")
    def _assessment_follows_from_the_end(self) -> Self:
        refusals = []
        if self.exit_code is not None and self.signal is not None:
            refusals.append(FieldRefusal(("signal",), "nothing, since there is an exit code", self.signal))
        if self.assessment is Assessment.PASS and self.exit_code is None:
            refusals.append(FieldRefusal(("exit_code",), "an exit code, since the assessment is pass", None))
        if self.assessment is Assessment.LOST and self.exit_code is not None:
            refusals.append(FieldRefusal(("exit_code",), "nothing, since the sandbox was lost", self.exit_code))
        refuse_if_any("Execution", refusals)
        return self


class Observation(Contract):
    """Something that Fair Witness observed itself, in git or in a file."""

    run_id: RunId
    task_id: SafeName | None
    key: Text
    kind: SafeName
    subject: Text
    holds: Flag
    detail: dict[str, Any]
    tree: Tree | None
    observed_at: Timestamp


class Claim(Contract):
    """Something that an agent claimed; it is stored and shown, and counts as an opinion."""

    run_id: RunId
    task_id: SafeName | None
    key: Text
    agent: Text
    instance: Text | None
    kind: SafeName
    body: dict[str, Any]
    claimed_at: Timestamp


class CheckRow(Contract):
    """A row of `anvil_checks` with the data of its source: everything that a gate may use."""

    id: Positive
    check_name: Text
    phase: Phase
    round: Round
    passed: Flag
    verdict: CategoryVerdict | None
    severity: Severity | None
    instance: Text | None
    provenance: Provenance
    assessment: Assessment | None
    """The assessment of the execution; null for other sources."""
    tree: Tree | None
    sandbox: SandboxTier | None


class EvidenceQuery(Contract):
    """The ledger query behind an answer, so that every interface can show it."""

    sql: Text
    values: tuple[str | int | None, ...]


class Tally(Contract):
    """The rows of one run, task and phase (and round, where one was asked for), oldest first.

    Rules hear the latest row of each check from one source; a blocker is heard even if it was followed by another row.
    """

    query: EvidenceQuery
    rows: tuple[CheckRow, ...]


class Dispatch(Contract):
    """One row of `pipeline_telemetry`: an agent call that has ended."""

    run_id: RunId
    step: Text
    agent: Text
    instance: Text | None
    started_at: Timestamp
    completed_at: Timestamp
    status: Literal["DONE", "NEEDS_REVISION", "ERROR", "TIMEOUT"]
    dispatch_count: Positive
    retry_count: Count
    notes: Maybe[Annotated[Prose, Field(max_length=1000)]] = None
