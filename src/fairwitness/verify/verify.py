"""The whole proof of a change, from two trees to the gate's answer."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from fairwitness.contracts.common.gates import Blocked, Open
from fairwitness.contracts.verify.checks import Discovered, Language, VerifySettings
from fairwitness.contracts.verify.report import CheckLine, FindingLine, MissingLine
from fairwitness.git.objects import GITLINK
from fairwitness.verify.answering import (
    asked_of,
    check_line,
    comparison_proofs,
    finding_proofs,
    missing_lines,
)
from fairwitness.verify.asking import answer_of
from fairwitness.verify.canary import must_fail
from fairwitness.verify.cascade import Checked, run_checks, run_protected
from fairwitness.verify.concluding import Conclusion, conclude, verdict_of
from fairwitness.verify.coverage import untouched_lines
from fairwitness.verify.diff import INSPECTED, changed_texts, inspect
from fairwitness.verify.harness import Harness
from fairwitness.verify.inspections.counts import Drift
from fairwitness.verify.inspections.model import ChangedFile
from fairwitness.verify.model import Change, Tell
from fairwitness.verify.mutating import chosen_mutants
from fairwitness.verify.proofs import Proof, is_no_worse, new_tests, red_at_baseline, survives_mutants
from fairwitness.verify.trees import production, protected_tree, red_tree

TIER_3 = 3


class Proven(NamedTuple):
    """Everything the report is made of."""

    answer: Open | Blocked
    checks: tuple[CheckLine, ...]
    findings: tuple[FindingLine, ...]
    missing: tuple[MissingLine, ...]
    notes: tuple[str, ...]


def verify_change(
    harness: Harness,
    change: Change,
    before: Discovered,
    after: Discovered,
    settings: VerifySettings,
    *,
    actor: str,
    strict: bool,
    tell: Tell,
    parallel: int,
) -> Proven:
    """Runs, compares, inspects, writes it all down, and asks the gate.

    It can be repeated: what a killed try had run is taken from the ledger, and what was verified to its end is only
    told, without the lines of its report.
    """
    before_this = verdict_of(
        harness.ledger, harness.run_id, harness.subject, base=change.base.tree, head=change.head.tree
    )
    if before_this is not None:
        told = answer_of(harness.ledger, harness.run_id, harness.subject)
        assert told is not None
        return Proven(answer=told, checks=(), findings=(), missing=(), notes=before_this.notes)
    texts = changed_texts(harness.shadow, change)
    files, findings = texts.files, inspect(change, texts)
    checked = run_checks(harness, change, before, after, tell=tell, parallel=parallel)
    loosened = {one.path for one in findings if one.check == "oracle-files" and one.blocks and one.accepted is None}
    tree = protected_tree(
        harness.shadow,
        change.head.tree,
        change.files,
        loosened=loosened,
        accepted=lambda path: change.accepted(path) is not None,
    )
    checked = run_protected(harness, change, checked, tree, tell=tell, parallel=parallel)
    rows = INSPECTED if change.declared is None else (*INSPECTED, ("scope", "the change stays inside its plan"))
    proofs = [*comparison_proofs(change, checked), *finding_proofs(findings, rows)]
    notes = _left_out(harness, change)
    for each in checked:
        if each.are_tests and is_no_worse(each):
            proofs += _about_new_tests(harness, change, each, notes, tell=tell)
            if all(proof.holds for proof in proofs):
                # wrong forms of a change that is blocked already would only cost time
                proofs += _about_its_lines(harness, change, each, files, settings, notes, tell=tell, parallel=parallel)
    drift = Drift.of(files)
    if drift.files:
        notes.append(f"in the changed test files: {drift}")
    if not any(each.spec.tier == TIER_3 for each in checked):
        text = "there is no package to import, and fairwitness.toml declares no smoke-execution"
        proofs.append(Proof("tier3-infeasible", None, True, text, {}))
    undiscovered = after.undiscovered
    asked = asked_of(change, checked, undiscovered, strict=strict)
    notes += [proof.text for proof in proofs if proof.check == "tests-vacuous" and proof.holds]
    answer = conclude(harness, change, Conclusion(proofs, asked, notes, actor))
    excused = {silent.instance for silent in asked.silent if silent.excused}
    return Proven(
        answer=answer,
        checks=tuple(check_line(each, proofs, excused=each.spec.id in excused) for each in checked),
        findings=findings,
        missing=missing_lines(asked, checked, undiscovered),
        notes=tuple(notes),
    )


def _left_out(harness: Harness, change: Change) -> list[str]:
    """What a checkout of the change does not hold, so that a check which misses it is understood."""
    modules = [path for path, entry in harness.shadow.entries(change.head.tree).items() if entry.mode == GITLINK]
    return [f"not checked out: submodule {', '.join(modules[:5])}"] if modules else []


def _about_new_tests(
    harness: Harness, change: Change, checked: Checked, notes: list[str], *, tell: Tell
) -> list[Proof]:
    """Whether tests are forged, and whether the new ones are red at the baseline."""
    proofs = [must_fail(harness, change, checked, tell=tell)]
    if production(change.files):
        if not new_tests(checked):
            notes.append(
                f"{checked.spec.id}: no new test passes with this change; only the tests that were there speak"
            )
        tree = red_tree(harness.shadow, change.base.tree, change.files)
        proofs.append(red_at_baseline(harness, change, checked, tree, tell=tell))
    return [proof for proof in proofs if proof is not None]


def _about_its_lines(
    harness: Harness,
    change: Change,
    checked: Checked,
    files: Sequence[ChangedFile],
    settings: VerifySettings,
    notes: list[str],
    *,
    tell: Tell,
    parallel: int,
) -> list[Proof]:
    """Which changed lines no test touches, and whether new tests notice when such a line is wrong."""
    notes += untouched_lines(harness, change, checked, files, tell=tell)
    new = new_tests(checked)
    if not new or checked.spec.language is not Language.PYTHON or not settings.mutants:
        return []
    proof = survives_mutants(
        harness,
        change,
        checked,
        chosen_mutants(harness.shadow, change, checked, files, new, settings),
        tell=tell,
        parallel=parallel,
        deadline=time.monotonic() + settings.mutants_s,
        now=time.monotonic,
    )
    return [proof] if proof is not None else []
