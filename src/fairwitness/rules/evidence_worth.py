"""What an evidence row proves: the registered checks, which sources count for each, and how many a task needs.

This is the only place that decides it. `proof_of` says what one command proves by itself, `baseline_worth` and
`row_worth` what a row of a phase is worth to a gate. All three workflows, their pages and their comparisons with what
agents say ask here.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from fairwitness.contracts.common.decisions import Depth
from fairwitness.contracts.common.evidence import CheckRow, Execution, Phase, Provenance, SandboxTier, Tally
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.vocabulary import Assessment, Risk, Size
from fairwitness.contracts.verify.results import Evidence


class Voice(StrEnum):
    """Which sources count for a check."""

    COMMAND = "command"
    INSPECTION = "inspection"
    CRITERION = "criterion"
    DECLARED = "declared"
    EXPECTATION = "expectation"
    """What only a person can decide: a failure asks for one."""
    OBJECTION = "objection"
    REMARK = "remark"
    VERDICT = "verdict"


class AcceptedSources(NamedTuple):
    """The sources whose pass satisfies a check, and those whose failure blocks a gate."""

    yes: frozenset[Provenance]
    no: frozenset[Provenance]


_EXECUTED = frozenset({Provenance.EXECUTED})
_SEEN = frozenset({Provenance.EXECUTED, Provenance.OBSERVED})
_NOBODY: frozenset[Provenance] = frozenset()

ACCEPTED_SOURCES: Mapping[Voice, AcceptedSources] = {
    Voice.COMMAND: AcceptedSources(yes=_EXECUTED, no=_SEEN),
    Voice.INSPECTION: AcceptedSources(yes=_SEEN, no=_SEEN),
    # a criterion may be judged by reading: then a claim is the only source, and its failure counts
    Voice.CRITERION: AcceptedSources(
        yes=frozenset({Provenance.EXECUTED, Provenance.CLAIMED}), no=frozenset(Provenance)
    ),
    # an observed row of these only records that the check was not declared
    Voice.DECLARED: AcceptedSources(yes=_EXECUTED, no=_EXECUTED),
    Voice.EXPECTATION: AcceptedSources(yes=_SEEN, no=_SEEN),
    Voice.OBJECTION: AcceptedSources(yes=_NOBODY, no=_SEEN),
    Voice.REMARK: AcceptedSources(yes=_NOBODY, no=_NOBODY),
    Voice.VERDICT: AcceptedSources(yes=_NOBODY, no=_NOBODY),
}


class CheckKind(NamedTuple):
    """A family of checks with the same name pattern."""

    name: str
    """The name pattern; `<x>` stands for any safe name."""
    phase: Phase
    tier: int | None
    voice: Voice
    counts: bool
    """Whether an executed pass counts towards the threshold."""
    says: str


CHECKS: tuple[CheckKind, ...] = (
    CheckKind("baseline-<x>", Phase.BASELINE, None, Voice.COMMAND, False, "what a check said before the change"),
    CheckKind("ide-diagnostics", Phase.AFTER, 1, Voice.COMMAND, True, "no new diagnostics"),
    CheckKind("syntax-check", Phase.AFTER, 1, Voice.COMMAND, True, "every file parses"),
    CheckKind("build", Phase.AFTER, 2, Voice.COMMAND, True, "it builds"),
    CheckKind("type-check", Phase.AFTER, 2, Voice.COMMAND, True, "its types hold"),
    CheckKind("lint", Phase.AFTER, 2, Voice.COMMAND, True, "the linter reports nothing"),
    CheckKind("tests", Phase.AFTER, 2, Voice.COMMAND, True, "the tests pass"),
    CheckKind("import-check", Phase.AFTER, 3, Voice.COMMAND, True, "it can be loaded"),
    CheckKind("smoke-execution", Phase.AFTER, 3, Voice.COMMAND, True, "it runs at all"),
    CheckKind("tier3-infeasible", Phase.AFTER, 3, Voice.REMARK, False, "why nothing could be run"),
    CheckKind("readiness-observability", Phase.AFTER, 4, Voice.DECLARED, True, "it can be monitored"),
    CheckKind("readiness-degradation", Phase.AFTER, 4, Voice.DECLARED, True, "it fails gracefully"),
    CheckKind("readiness-secrets", Phase.AFTER, 4, Voice.INSPECTION, True, "it contains no secret"),
    CheckKind("baseline-discrepancy", Phase.AFTER, None, Voice.OBJECTION, False, "a reported baseline was not true"),
    CheckKind("revert-<x>", Phase.AFTER, None, Voice.OBJECTION, False, "the task was put back to the baseline"),
    # an agent, the verifier, chose the command: its failure counts against a task, its pass does not count for it
    CheckKind("ac-<n>", Phase.AFTER, None, Voice.CRITERION, False, "an acceptance criterion is met"),
    CheckKind("oracle-files", Phase.AFTER, None, Voice.EXPECTATION, False, "tests and rules were not weakened"),
    CheckKind("oracle-<x>", Phase.AFTER, None, Voice.INSPECTION, True, "protected tests pass in their original form"),
    CheckKind("red-at-baseline-<x>", Phase.AFTER, None, Voice.INSPECTION, False, "a new test fails without the change"),
    CheckKind("scope", Phase.AFTER, None, Voice.INSPECTION, False, "the change stays inside its plan"),
    CheckKind("secrets", Phase.AFTER, None, Voice.INSPECTION, False, "the change carries no secret"),
    CheckKind("expectations", Phase.AFTER, None, Voice.EXPECTATION, False, "tests expect what they did before"),
    CheckKind("test-drift", Phase.AFTER, None, Voice.EXPECTATION, False, "no test vanished or began to be skipped"),
    CheckKind("regressions", Phase.AFTER, None, Voice.INSPECTION, False, "nothing that held before is worse"),
    CheckKind("tests-vacuous", Phase.AFTER, None, Voice.INSPECTION, False, "the new tests notice a wrong change"),
    CheckKind("suppressions", Phase.AFTER, None, Voice.INSPECTION, False, "no check was switched off in a file"),
    CheckKind("special-cases", Phase.AFTER, None, Voice.INSPECTION, False, "no code knows that it is being tested"),
    CheckKind("forgery", Phase.AFTER, None, Voice.INSPECTION, False, "a test that must fail is reported as failed"),
    CheckKind("review-<scope>-<category>", Phase.REVIEW, None, Voice.VERDICT, False, "a reviewer's verdict"),
)

_PARTS: Mapping[str, str] = {
    "<x>": r"[A-Za-z0-9][A-Za-z0-9._-]*",
    "<n>": r"[1-9][0-9]*",
    "<scope>": r"(?:design|code)",
    "<category>": r"(?:security|architecture|correctness)",
}


def _pattern(name: str) -> re.Pattern[str]:
    parts = re.split("(<[a-z]+>)", name)
    return re.compile("".join(_PARTS.get(part, re.escape(part)) for part in parts))


_BY_PATTERN = tuple((_pattern(kind.name), kind) for kind in CHECKS)


def kind_of(check_name: str, phase: Phase) -> CheckKind | None:
    """Return the family of a check, or None if the name is not registered for that phase.

    >>> [kind.says if (kind := kind_of(name, Phase.AFTER)) else None for name in ("tests", "ac-3", "line-budget")]
    ['the tests pass', 'an acceptance criterion is met', None]
    """
    for pattern, kind in _BY_PATTERN:
        if kind.phase is phase and pattern.fullmatch(check_name):
            return kind
    return None


ENDED_AS: Mapping[Assessment, Evidence] = {
    Assessment.PASS: Evidence.PASSED,
    Assessment.FAIL: Evidence.FAILED,
    Assessment.TIMEOUT: Evidence.NONE,
    Assessment.VIOLATION: Evidence.NONE,
    Assessment.LOST: Evidence.NONE,
}
"""What the end of a command says about the tree, wherever it ran."""


def is_confined(row: CheckRow | Execution) -> bool:
    """Return whether the command of a row ran in a sandbox."""
    return row.sandbox not in (None, SandboxTier.NONE)


def proof_of(row: CheckRow | Execution) -> Evidence:
    """Return what one executed command proves by itself; other sources prove nothing.

    A pass needs a sandbox, a failure does not. A row that contradicts its own assessment has failed.
    """
    if isinstance(row, CheckRow) and row.provenance is not Provenance.EXECUTED:
        return Evidence.NONE
    said = Evidence.NONE if row.assessment is None else ENDED_AS[row.assessment]
    if said is Evidence.PASSED and isinstance(row, CheckRow) and not row.passed:
        return Evidence.FAILED
    return Evidence.NONE if said is Evidence.PASSED and not is_confined(row) else said


class RowWorth(StrEnum):
    """What one evidence row is worth to a gate; the value is shown to people."""

    COUNTS = "passed"
    HOLDS = "holds"
    SILENT = "says nothing"
    FAILED = "failed"
    ASKS = "needs a person"
    REGRESSED = "regressed"
    RED_BEFORE_TOO = "failed before the change too"
    NO_EVIDENCE = "no evidence"
    UNCONFINED = "ran outside a sandbox"
    STALE = "stale: tree changed"
    UNKNOWN = "unknown check name"


SHUTS = frozenset({RowWorth.FAILED, RowWorth.REGRESSED, RowWorth.ASKS})
LACKS = frozenset({RowWorth.NO_EVIDENCE, RowWorth.UNCONFINED, RowWorth.STALE})
SATISFIES = frozenset({RowWorth.COUNTS, RowWorth.HOLDS})


class ValuedRow(NamedTuple):
    """An evidence row with its worth."""

    row: CheckRow
    worth: RowWorth

    @property
    def passes(self) -> bool:
        """Return whether the row says yes about this tree, even if a gate does not need it."""
        return self.row.passed and self.worth in SATISFIES | {RowWorth.SILENT, RowWorth.UNKNOWN}

    @property
    def is_finding(self) -> bool:
        """Return whether the row says something about the change; a failure that was there before does not."""
        return self.passes or self.worth in SHUTS | LACKS


def latest(rows: Iterable[CheckRow]) -> tuple[CheckRow, ...]:
    """Return the newest row of each phase, round, check, instance and source, oldest first."""
    newest: dict[tuple[str, int, str, str | None, str], CheckRow] = {}
    for row in sorted(rows, key=lambda row: row.id):
        # the source is part of the key, so that a later claim cannot hide a command that failed
        newest[(row.phase, row.round, row.check_name, row.instance, row.provenance)] = row
    return tuple(sorted(newest.values(), key=lambda row: row.id))


Before = Mapping[tuple[str, str | None], bool]
"""Whether each check and instance passed before the change."""


def baseline_results(tally: Tally) -> Before:
    """Return the baseline result of each check whose baseline is evidence.

    A contradictory baseline counts as a pass: a failure now is then a regression, and nothing is excused.
    """
    return {
        (row.check_name.removeprefix("baseline-"), row.instance): row.passed or row.assessment is Assessment.PASS
        for row in latest(tally.rows)
        if row.phase is Phase.BASELINE and baseline_worth(row, tree=None) in SATISFIES
    }


def baseline_worth(row: CheckRow, *, tree: str | None) -> RowWorth:
    """Return what one row of phase `baseline` is worth: a failure is evidence as well, and both need a sandbox."""
    if kind_of(row.check_name, Phase.BASELINE) is None:
        return RowWorth.UNKNOWN
    if row.provenance is not Provenance.EXECUTED:
        return RowWorth.SILENT
    if row.assessment is None or ENDED_AS[row.assessment] is Evidence.NONE:
        return RowWorth.NO_EVIDENCE
    if not is_confined(row):
        return RowWorth.UNCONFINED
    return RowWorth.HOLDS if tree in (None, row.tree) else RowWorth.STALE


def row_worth(row: CheckRow, *, tree: str | None, before: Before) -> RowWorth:
    """Return what one row of phase `after` is worth; `before` holds the baseline results."""
    kind = kind_of(row.check_name, Phase.AFTER)
    if kind is None:
        said_no = row.provenance is not Provenance.CLAIMED and not row.passed
        return RowWorth.FAILED if said_no else RowWorth.UNKNOWN
    worth = _executed(row, kind, before) if row.provenance is Provenance.EXECUTED else _told(row, kind)
    return RowWorth.STALE if worth is not RowWorth.SILENT and _is_stale(row, kind, tree) else worth


def _executed(row: CheckRow, kind: CheckKind, before: Before) -> RowWorth:
    heard = ACCEPTED_SOURCES[kind.voice]
    if Provenance.EXECUTED not in heard.no:
        return RowWorth.SILENT
    if row.assessment is None or ENDED_AS[row.assessment] is Evidence.NONE:
        return RowWorth.NO_EVIDENCE
    if proof_of(row) is Evidence.FAILED:
        said_before = before.get((row.check_name, row.instance)) if kind.voice is Voice.COMMAND else None
        if said_before is None:
            return RowWorth.FAILED
        return RowWorth.REGRESSED if said_before else RowWorth.RED_BEFORE_TOO
    if Provenance.EXECUTED not in heard.yes:
        return RowWorth.SILENT
    if proof_of(row) is not Evidence.PASSED:
        return RowWorth.UNCONFINED
    return RowWorth.COUNTS if kind.counts else RowWorth.HOLDS


def _told(row: CheckRow, kind: CheckKind) -> RowWorth:
    heard = ACCEPTED_SOURCES[kind.voice]
    if row.passed:
        return RowWorth.HOLDS if row.provenance in heard.yes else RowWorth.SILENT
    if row.provenance not in heard.no:
        return RowWorth.SILENT
    return RowWorth.ASKS if kind.voice is Voice.EXPECTATION else RowWorth.FAILED


def _is_stale(row: CheckRow, kind: CheckKind, tree: str | None) -> bool:
    if tree is None or kind.voice is Voice.OBJECTION:
        return False
    if row.provenance is not Provenance.EXECUTED and row.tree is None:
        return False
    return row.tree != tree


def valued_rows(
    tally: Tally, *, iteration: int, tree: str | None = None, baseline: Tally | None = None
) -> tuple[ValuedRow, ...]:
    """Return every row of this iteration with its worth; rows of other iterations do not count."""
    before = baseline_results(baseline) if baseline is not None else {}
    return tuple(
        ValuedRow(row, row_worth(row, tree=tree, before=before))
        for row in latest(tally.rows)
        if row.phase is Phase.AFTER and row.round == iteration
    )


def effective_size(size: Size, risk: Risk) -> Size:
    """Return the planned size, or Large if the change is red.

    >>> effective_size(Size.STANDARD, Risk.RED).value
    'Large'
    """
    return Size.LARGE if risk is Risk.RED else size


def depth_of(size: Size, policy: Policy) -> Depth:
    """Return the verification depth of a task of this effective size.

    >>> [depth_of(size, Policy()).checks for size in Size]
    [2, 3]
    """
    if size is Size.LARGE:
        needed = policy.verification.large_checks
        return Depth(size=size, tiers=(1, 2, 3, 4), checks=needed, required=("readiness-secrets",))
    return Depth(size=size, tiers=(1, 2, 3), checks=policy.verification.standard_checks, required=())
