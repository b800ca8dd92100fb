"""Turn the results of checks and inspections into proofs, the question to the gate, and the lines of the report."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fairwitness.contracts.verify.checks import OracleMode, Undiscovered
from fairwitness.contracts.verify.report import (
    LISTED,
    ChangeRequirements,
    CheckLine,
    CheckWithoutEvidence,
    FindingLine,
    MissingLine,
    RequiredCheck,
)
from fairwitness.contracts.verify.results import BAD, Evidence, ItemChange, ItemOutcome, Moved, Ran
from fairwitness.rules.base_oracle import GONE, WEAKENED, WeakeningVerdict, gone_without_objection, old_forms
from fairwitness.rules.change_gate import is_excused
from fairwitness.verify.cascade import CheckRuns, items_before
from fairwitness.verify.model import ProposedChange
from fairwitness.verify.proofs import ProofRow, broke_by_itself, is_no_worse

OUTPUT_LINES = 10
_WORSE = frozenset({ItemChange.BROKEN, ItemChange.NEW_FAILING})
_AS_EXPECTED = frozenset({ItemOutcome.PASSED, ItemOutcome.XFAILED})


def comparison_proofs(change: ProposedChange, checked: Sequence[CheckRuns], mode: OracleMode) -> list[ProofRow]:
    """Return the proofs of each check: no regressions, no lost tests, and the base's own tests with the new code."""
    proofs: list[ProofRow] = []
    for each in checked:
        if each.comparison is not None:
            worse = [moved for moved in each.comparison.moved if moved.move in _WORSE]
            proofs.append(_proof("regressions", each, worse, "nothing that passed before fails now"))
            if each.are_tests:
                gone = _unaccepted(change, each, _gone(each, mode))
                proofs.append(_proof("test-drift", each, gone, "no test disappeared or is newly skipped"))
        if each.protected is not None:
            proofs += _original(change, each, each.protected)
    return proofs


def _gone(each: CheckRuns, mode: OracleMode) -> list[Moved]:
    """Return the tests that are gone and that a person has to accept; a changed expectation is a proof of its own."""
    now, original, ran = each.comparison, each.original, each.protected
    if now is None:
        return []
    passed = {item.id for item in ran.items if item.outcome in _AS_EXPECTED} if ran else set()
    fine = gone_without_objection(now, original, passed)
    other = {moved.id for part in old_forms(original, now, each.came_from) for moved in part} if original else set()
    return [
        moved
        for moved in now.moved
        if moved.move in GONE and moved.id not in other and WEAKENED[mode, moved.id in fine] is WeakeningVerdict.ASK
    ]


def _original(change: ProposedChange, each: CheckRuns, ran: Ran) -> list[ProofRow]:
    """Return what the base's own form of a check says about the new code."""
    name, good = f"oracle-{each.spec.name}", f"the base's own {each.spec.name} pass with the new code"
    execution = {"execution": ran.execution}
    if each.original is None:
        text = f"the base's own {each.spec.name} could not be run against the new code: {ran.reason}"
        # with the change's own files it runs: they load something that the old ones do not
        check = "expectations" if each.are_tests and broke_by_itself(ran) and is_no_worse(each) else name
        return [ProofRow(check, each.spec.id, False, text, execution)]
    if not each.are_tests:
        bad = _unaccepted(change, each, [moved for moved in each.original.moved if moved.move in BAD])
        return [_proof(name, each, bad, good, execution)]
    regressed = old_forms(each.original, each.comparison, each.came_from).regressed
    changed = changed_expectations(change, each)
    return [
        _proof(name, each, regressed, good, execution),
        _proof("expectations", each, changed, "every existing test expects what it did before", execution),
    ]


def changed_expectations(change: ProposedChange, each: CheckRuns) -> list[Moved]:
    """Return the tests that expect something else now and that no person has accepted."""
    if each.original is None or not each.are_tests:
        return []
    return _unaccepted(change, each, old_forms(each.original, each.comparison, each.came_from).expect_otherwise)


def gone_tests(change: ProposedChange, checked: Sequence[CheckRuns], mode: OracleMode) -> Iterator[str]:
    """Yield the tests, as the repository names them, that are gone and that a person has to accept."""
    for each in checked:
        if each.are_tests:
            for moved in _unaccepted(change, each, _gone(each, mode)):
                yield each.spec.in_repository(moved.id)


def _unaccepted(change: ProposedChange, each: CheckRuns, moved: Iterable[Moved]) -> list[Moved]:
    return [one for one in moved if change.accepted(each.spec.in_repository(one.id)) is None]


def _proof(
    check: str, each: CheckRuns, bad: Sequence[Moved], good: str, more_detail: Mapping[str, Any] | None = None
) -> ProofRow:
    detail: dict[str, Any] = {"things": [f"{moved.move.value}: {moved.id}" for moved in bad[:LISTED]]}
    detail |= more_detail or {}
    if not bad:
        return ProofRow(check, each.spec.id, True, good, detail)
    shown = "; ".join(f"{moved.id} {moved.move.value}" for moved in bad[:3])
    more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
    return ProofRow(check, each.spec.id, False, f"{shown}{more}", detail)


def gate_question(
    change: ProposedChange, checked: Sequence[CheckRuns], undiscovered: Sequence[Undiscovered], *, strict: bool
) -> ChangeRequirements:
    """Return the question to the gate: the checks that are required, and those without evidence."""
    required = [RequiredCheck(name=each.spec.name, instance=each.spec.id) for each in checked if each.spec.required]
    silent = [quiet for each in checked for quiet in _silent(each, strict=strict)]
    for lost in undiscovered:
        if lost.required:
            required.append(RequiredCheck(name=lost.name, instance=lost.id))
        excused = not lost.required and not strict
        silent.append(CheckWithoutEvidence(name=lost.name, instance=lost.id, reason=lost.reason, excused=excused))
    return ChangeRequirements(tree=change.head.tree, required=tuple(required), silent=tuple(silent))


def _silent(each: CheckRuns, *, strict: bool) -> list[CheckWithoutEvidence]:
    spec = each.spec
    if each.after.evidence is Evidence.NONE:
        excused = is_excused(required=spec.required, strict=strict, before=each.before, after=each.after)
        reason = each.after.reason or "no reason recorded"
        return [CheckWithoutEvidence(name=spec.name, instance=spec.id, reason=reason, excused=excused)]
    if spec.required and items_before(each.before) is None:
        reason = f"unknown before the change: {each.before.reason if each.before else 'not run'}"
        return [CheckWithoutEvidence(name=f"baseline-{spec.name}", instance=spec.id, reason=reason, excused=False)]
    return []


def check_line(each: CheckRuns, proofs: Sequence[ProofRow], *, excused: bool) -> CheckLine:
    """Return a check's line of the report."""
    spec, after = each.spec, each.after
    own = [proof for proof in proofs if proof.instance == spec.id and not proof.holds]
    reason = "; ".join(dict.fromkeys(filter(None, (after.reason, *(proof.text for proof in own))))) or None
    if reason is None and each.before is not None and spec.required:
        reason = each.before.reason
    telling = _run_to_show(each, own)
    output = (telling.stdout or telling.stderr or "").splitlines() if telling else []
    moved = each.comparison.moved if each.comparison else ()
    return CheckLine(
        id=spec.id,
        name=spec.name,
        tool=spec.tool,
        tier=spec.tier,
        required=spec.required,
        baseline=each.before.evidence if each.before else Evidence.NONE,
        after=after.evidence,
        reason=reason,
        excused=excused,
        counts=each.comparison.counts if each.comparison else {},
        moved=tuple(sorted(moved, key=lambda one: one.move not in BAD))[:LISTED],
        duration_ms=after.duration_ms,
        cached=after.cached,
        execution=(telling or after).execution,
        output=tuple([line for line in output if line.strip()][-OUTPUT_LINES:]),
        output_from=f"the base's own {spec.name} with the new code" if telling and telling is each.protected else None,
    )


def _run_to_show(each: CheckRuns, failing: Sequence[ProofRow]) -> Ran | None:
    """Return the run whose output explains a failure; None if there is none or output does not explain it."""
    if each.after.evidence is not Evidence.PASSED:
        return each.after
    told = any(proof.check.startswith("oracle-") or proof.check == "expectations" for proof in failing)
    return each.protected if told else None


def missing_lines(
    asked: ChangeRequirements, checked: Sequence[CheckRuns], undiscovered: Sequence[Undiscovered]
) -> tuple[MissingLine, ...]:
    """Return a line for each check without evidence."""
    steps = {(lost.name, lost.id): lost.next_step for lost in undiscovered}
    steps |= {(each.spec.name, each.spec.id): each.after.next_step or "" for each in checked}
    return tuple(
        MissingLine(
            check=f"{silent.name} {silent.instance}" if silent.instance else silent.name,
            reason=silent.reason,
            excused=silent.excused,
            next_step=steps.get((silent.name, silent.instance or ""), ""),
        )
        for silent in asked.silent
    )


def finding_proofs(findings: Sequence[FindingLine], always: Sequence[tuple[str, str]]) -> list[ProofRow]:
    """Return a proof for each inspection, also for those without findings."""
    proofs = []
    for check, good in always:
        bad = [one for one in findings if one.check == check and one.blocks and one.accepted is None]
        listed = [f"{one.path}:{one.line or 0} {one.rule}: {one.text}" for one in bad[:LISTED]]
        text = good if not bad else f"{bad[0].text} ({bad[0].path})" + (f" and {len(bad) - 1} more" if bad[1:] else "")
        proofs.append(ProofRow(check, None, not bad, text, {"findings": listed}))
    return proofs
