"""The first and the last ledger record of a verification: a subject is verified once, for one change.

The first record holds the settings. The last one holds what a person accepted, every proof, the question to the gate
and its answer. Between them are only executions, so a crash never leaves half a conclusion.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fairwitness.contracts.common.approvals import ApprovalMode, ApprovalRecord
from fairwitness.contracts.common.evidence import CheckRow, Observation, Phase, Provenance
from fairwitness.contracts.common.gates import Blocked, Open
from fairwitness.contracts.verify.checks import VerifySettings
from fairwitness.contracts.verify.report import ChangeRequirements, VerifySubject
from fairwitness.errors import RowRefused, UsageError
from fairwitness.kit.clock import spell
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.rules.change_gate import change_holds
from fairwitness.verify.gate_answer import gate_answer, tallies
from fairwitness.verify.harness import Harness
from fairwitness.verify.model import ProposedChange

if TYPE_CHECKING:  # imported late: a run is resumed without the proofs
    from fairwitness.verify.proofs import ProofRow

SETTINGS, ASKED, VERIFIED = "settings", "asked", "verified"
"""The kinds of observation in the first and last record; the key of each contains the subject."""


class VerificationOutcome(NamedTuple):
    """The result of a finished verification, read from the ledger."""

    holds: bool
    tree: str
    missing: tuple[str, ...]
    """Why it does not hold."""
    notes: tuple[str, ...]


class Conclusion(NamedTuple):
    """The content of the last record."""

    proofs: "Sequence[ProofRow]"
    asked: ChangeRequirements
    notes: Sequence[str]
    actor: str
    """The person who accepted the accepted changes."""


def record_start(harness: Harness, change: ProposedChange, settings: VerifySettings, digest: str) -> None:
    """Record the settings of the verification: the digest of the file and the settings in force.

    Raises `UsageError` if the subject was begun with other settings or for other trees.
    """
    key = harness.subject.key(SETTINGS)
    trees = {"base": change.base.tree, "head": change.head.tree}
    observation = Observation(
        run_id=harness.run_id,
        task_id=harness.subject.task_id,
        key=key,
        kind=SETTINGS,
        subject="fairwitness.toml",
        holds=True,
        detail={"sha256": digest, "in_force": settings.plain(), **trees},
        tree=None,
        observed_at=spell(harness.clock()),
    )
    found = harness.ledger.observation(harness.run_id, key)
    if found is None:
        try:
            harness.record(lambda record: record.observation(observation))
        except RowRefused:
            found = harness.ledger.observation(harness.run_id, key)
            if found is None:
                raise
    if found is not None:
        _refuse_if_different(harness.subject, found, {"sha256": digest, **trees})
    killpoint("verify.begun")


def _refuse_if_different(subject: VerifySubject, found: Observation, asked: dict[str, str]) -> None:
    """Raise `UsageError` if the ledger holds this subject with other settings or trees."""
    words = {"sha256": "by other settings", "base": "against another base", "head": "for another tree"}
    for what, value in asked.items():
        if found.detail.get(what, value) != value:  # records of an older version contain no trees
            raise UsageError(
                f"{subject.name} was verified {words[what]} in this run ({found.detail[what]})",
                next_step="a subject is verified once; verify this one in another round",
            )


def recorded_outcome(
    ledger: Ledger, run_id: str, subject: VerifySubject, *, base: str, head: str
) -> VerificationOutcome | None:
    """Return the recorded result, or None if there is none; raise `UsageError` if it is for other trees."""
    found = ledger.observation(run_id, subject.key(VERIFIED))
    if found is None:
        return None
    _refuse_if_different(subject, found, {"base": base, "head": head})
    detail = found.detail
    return VerificationOutcome(found.holds, head, tuple(map(str, detail["missing"])), tuple(map(str, detail["notes"])))


def conclude(harness: Harness, change: ProposedChange, conclusion: Conclusion) -> Open | Blocked:
    """Write the last record and return its answer; if another process already wrote it, return that answer."""
    ledger, run_id, subject = harness.ledger, harness.run_id, harness.subject
    known = tallies(ledger, run_id, subject)
    moment = spell(harness.clock())
    answers: list[Open | Blocked] = []

    def write(record: Record) -> None:
        for approval in _approvals(harness, change, conclusion.actor, moment):
            record.approval(approval)
        rows = [_write_proof(record, harness, change, proof, moment) for proof in conclusion.proofs]
        record.observation(_observed(harness, change, ASKED, conclusion.asked.plain(), moment))
        # the rule is applied inside the record, so that the record contains its answer or is not written at all
        answer = change_holds(
            known.after.model_copy(update={"rows": (*known.after.rows, *rows)}),
            baseline=known.baseline,
            asked=conclusion.asked,
            iteration=subject.round,
        )
        detail: dict[str, object] = {
            "base": change.base.tree,
            "head": change.head.tree,
            "answer": answer.answer,
            "missing": list(answer.missing) if isinstance(answer, Blocked) else [],
            "notes": list(conclusion.notes),
        }
        record.observation(_observed(harness, change, VERIFIED, detail, moment, holds=isinstance(answer, Open)))
        answers.append(answer)

    try:
        harness.record(write)
    except RowRefused:
        before = gate_answer(ledger, run_id, subject)
        if (
            before is None
            or recorded_outcome(ledger, run_id, subject, base=change.base.tree, head=change.head.tree) is None
        ):
            raise
        return before  # another process finished the same verification first
    killpoint("verify.concluded")
    return answers[-1]


def _observed(
    harness: Harness, change: ProposedChange, kind: str, detail: dict[str, object], moment: str, *, holds: bool = True
) -> Observation:
    subject = harness.subject
    return Observation(
        run_id=harness.run_id,
        task_id=subject.task_id,
        key=subject.key(kind),
        kind=kind,
        subject=subject.task_id,
        holds=holds,
        detail=detail,
        tree=change.head.tree,
        observed_at=moment,
    )


def _write_proof(record: Record, harness: Harness, change: ProposedChange, proof: "ProofRow", moment: str) -> CheckRow:
    """Write a proof as an observed check and return its row as the gate reads it."""
    subject = harness.subject
    observation = Observation(
        run_id=harness.run_id,
        task_id=subject.task_id,
        key=subject.key(f"proof:{proof.check}:{proof.instance or '-'}"),
        kind="proof",
        subject=proof.instance or change.head.ref,
        holds=proof.holds,
        detail={"text": proof.text, **proof.detail},
        tree=change.head.tree,
        observed_at=moment,
    )
    number = record.observed(
        observation,
        phase=Phase.AFTER,
        check_name=proof.check,
        round_=subject.round,
        output=proof.text,
        instance=proof.instance,
    )
    return CheckRow(
        id=number,
        check_name=proof.check,
        phase=Phase.AFTER,
        round=subject.round,
        passed=proof.holds,
        verdict=None,
        severity=None,
        instance=proof.instance,
        provenance=Provenance.OBSERVED,
        assessment=None,
        tree=change.head.tree,
        sandbox=None,
    )


def _approvals(harness: Harness, change: ProposedChange, actor: str, moment: str) -> Iterator[ApprovalRecord]:
    own = "" if harness.subject.is_the_change else f" ({harness.subject.name})"
    for number, accept in enumerate(change.accepts, start=1):
        yield ApprovalRecord(
            gate_id=f"accept-{number}",
            run_id=harness.run_id,
            timestamp=moment,
            mode=ApprovalMode.INTERACTIVE,
            selected_option="accept",
            auto_selected=False,
            actor=actor,
            user_response_raw=f"{accept.subject}: {accept.reason}{own}",
        )
