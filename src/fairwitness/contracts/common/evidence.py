"""What the ledger keeps: commands we ran, things we observed, things agents claimed, and the checks that rest on them.

A check is evidence only through its source. Whether it passed is never said by a caller: it follows from the
execution's assessment, from what was observed, or from the verdict that was claimed.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from fairwitness.contracts.common.base import Contract, Count, Flag, Integer, Maybe, Positive, Prose, Text, Timestamp
from fairwitness.contracts.common.ids import RunId, SafeName, Sha256
from fairwitness.contracts.common.problems import FieldRefusal, refuse_if_any
from fairwitness.contracts.common.vocabulary import Assessment, CategoryVerdict, Severity

Tree = Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
"""A git tree by its full hash."""

Snippet = Annotated[str, Field(max_length=500)]
"""The first 500 characters of an output."""

ROUNDS = 99
"""As many attempts as a task of a graph may have; each is verified in a round of its own."""

Round = Annotated[Integer, Field(ge=0, le=ROUNDS)]
"""1 to 3 for an iteration of verification, up to 99 for an attempt, 1 or 2 for a review.

A baseline stands one round below what it is compared with: in 0 for the first, as published.
"""


class Provenance(StrEnum):
    """Where a check comes from; gates on code count only what was executed."""

    EXECUTED = "executed"
    OBSERVED = "observed"
    CLAIMED = "claimed"


class Phase(StrEnum):
    """When a check was made."""

    BASELINE = "baseline"
    AFTER = "after"
    REVIEW = "review"


class SandboxTier(StrEnum):
    """How a command was kept in; what ran in none of them opens no gate."""

    NAMESPACES = "ns"
    LANDLOCK = "ll"
    UID = "uid"
    NONE = "none"


class Execution(Contract):
    """One command that the harness ran."""

    run_id: RunId
    task_id: SafeName | None
    key: Text
    """Run, step and attempt in one text, so that a repeated step finds what it did before."""
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
    """Something the harness saw for itself, in git or in a file."""

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
    """Something an agent said: stored, shown, counted as an opinion."""

    run_id: RunId
    task_id: SafeName | None
    key: Text
    agent: Text
    instance: Text | None
    kind: SafeName
    body: dict[str, Any]
    claimed_at: Timestamp


class CheckRow(Contract):
    """A row of `anvil_checks` with what its source says: all that a gate may look at."""

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
    """Of the execution; None for other sources."""
    tree: Tree | None
    sandbox: SandboxTier | None


class EvidenceQuery(Contract):
    """What was asked of the ledger, so that every surface can show it."""

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
