"""The whole verification of a change, from two trees to the gate's answer.

Besides base and head, two composed trees are checked. *Protected*: the new code with the base's own tests and rules.
Tests, their configuration and linter settings have their old form, and what the change adds to them is absent; other
configuration stays new unless an inspection found that it loosens a check. *Red*: the old code with the new tests. Rust
keeps unit tests in the file they test, so there a file is composed of the code of one version and the tests of the
other.
"""

import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from fairwitness.contracts.common.gates import Blocked, Open
from fairwitness.contracts.verify.checks import TEST_FORMATS, Discovered, Language, OracleMode, VerifySettings
from fairwitness.contracts.verify.report import CheckLine, ExpectationLine, FindingLine, MissingLine
from fairwitness.git.changes import FileChange
from fairwitness.git.objects import GITLINK, TreeEntry
from fairwitness.git.shadow import Shadow
from fairwitness.rules.oracle import PathKind, is_oracle, kind_of_path
from fairwitness.verify.cascade import (
    CheckRuns,
    compared_with_baseline,
    pair_checks,
    project_of,
    run_checks,
    run_protected,
    run_requests,
)
from fairwitness.verify.conclusion import Conclusion, conclude, recorded_outcome
from fairwitness.verify.diff import INSPECTED, changed_texts, inspect
from fairwitness.verify.expectations import WEAKENINGS, expectation_lines, judged_findings, weakening_notes
from fairwitness.verify.gate_answer import gate_answer
from fairwitness.verify.harness import Harness
from fairwitness.verify.inspections.counts import Drift
from fairwitness.verify.inspections.model import ChangedText
from fairwitness.verify.model import CheckRequest, ProgressCallback, ProposedChange
from fairwitness.verify.proofs import (
    ProofRow,
    canary_proof,
    chosen_mutants,
    is_no_worse,
    mutants_proof,
    new_tests,
    red_at_baseline,
    untouched_lines,
)
from fairwitness.verify.proofs_and_report import (
    check_line,
    comparison_proofs,
    finding_proofs,
    gate_question,
    gone_tests,
    missing_lines,
)
from fairwitness.verify.unsuppressed import judged_suppressions

TEXT_LIMIT = 2 << 20
_ALWAYS_OLD = frozenset({PathKind.TEST, PathKind.TEST_CONFIG, PathKind.LINT_CONFIG})
_WITH_TESTS = frozenset({PathKind.TEST, PathKind.TEST_CONFIG})
_RUST_TESTS = re.compile(r"^#\[cfg\(test\)\]\s*\n(?:pub\s+)?mod\s+\w+\s*\{", re.MULTILINE)


def protected_tree(
    shadow: Shadow,
    head: str,
    files: tuple[FileChange, ...],
    *,
    loosened: Collection[str],
    accepted: Callable[[str], bool],
) -> str:
    """Return the head's tree with the base's oracle files; the head's own tree if there is nothing to protect."""
    changes: dict[str, TreeEntry | None] = {}
    for file in files:
        kind = kind_of_path(file.path)
        if accepted(file.path):
            continue
        if is_oracle(file.path):
            if kind in _ALWAYS_OLD or file.path in loosened:
                changes[file.path] = file.old_entry
        elif (mixed := _rust(shadow, code=file.new_entry, tests=file.old_entry, path=file.path)) is not None:
            changes[file.path] = mixed
    return shadow.compose(head, changes) if changes else head


def red_tree(shadow: Shadow, base: str, files: tuple[FileChange, ...]) -> str:
    """Return the base's tree with the head's tests."""
    changes: dict[str, TreeEntry | None] = {}
    for file in files:
        if kind_of_path(file.path) in _WITH_TESTS:
            changes[file.path] = file.new_entry
        elif (mixed := _rust(shadow, code=file.old_entry, tests=file.new_entry, path=file.path)) is not None:
            changes[file.path] = mixed
    return shadow.compose(base, changes) if changes else base


def production_files(files: tuple[FileChange, ...]) -> tuple[FileChange, ...]:
    """Return the changed files that are production code."""
    return tuple(file for file in files if kind_of_path(file.path) is PathKind.PRODUCTION)


def _rust(shadow: Shadow, *, code: TreeEntry | None, tests: TreeEntry | None, path: str) -> TreeEntry | None:
    """Return a Rust file with one version's code and the other's unit tests; None if there is nothing to compose."""
    if not path.endswith(".rs") or code is None or tests is None:
        return None
    code_text, test_text = (shadow.blob(entry.id, limit=TEXT_LIMIT).decode(errors="replace") for entry in (code, tests))
    code_cut, test_cut = (_RUST_TESTS.search(text) for text in (code_text, test_text))
    if code_cut is None or test_cut is None:
        return None
    mixed = code_text[: code_cut.start()] + test_text[test_cut.start() :]
    return None if mixed == code_text else code._replace(id=shadow.add_blob(mixed.encode()))


TIER_3 = 3


class VerificationResult(NamedTuple):
    """The gate's answer and the lines of the report."""

    answer: Open | Blocked
    checks: tuple[CheckLine, ...]
    findings: tuple[FindingLine, ...]
    expectations: tuple[ExpectationLine, ...]
    gone: tuple[str, ...]
    """The tests that disappeared or are skipped now, and that a person has to accept."""
    missing: tuple[MissingLine, ...]
    notes: tuple[str, ...]


def verify_change(
    harness: Harness,
    change: ProposedChange,
    before: Discovered,
    after: Discovered,
    settings: VerifySettings,
    *,
    actor: str,
    oracle: OracleMode,
    strict: bool,
    on_progress: ProgressCallback,
    parallel: int,
) -> VerificationResult:
    """Run and compare the checks, inspect the diff, record everything, and return the gate's answer.

    It can be repeated: results of an interrupted try are taken from the ledger. If the verification is already
    finished, only its answer and notes are returned, without the lines of the report.
    """
    before_this = recorded_outcome(
        harness.ledger, harness.run_id, harness.subject, base=change.base.tree, head=change.head.tree
    )
    if before_this is not None:
        recorded = gate_answer(harness.ledger, harness.run_id, harness.subject)
        assert recorded is not None
        return VerificationResult(
            answer=recorded, checks=(), findings=(), expectations=(), gone=(), missing=(), notes=before_this.notes
        )
    texts = changed_texts(harness.shadow, change)
    files, inspected = texts.files, inspect(change, texts)
    checked = run_checks(harness, change, before, after, on_progress=on_progress, parallel=parallel)
    loosened = {one.path for one in inspected if one.check == WEAKENINGS and one.blocks and one.accepted is None}
    tree = protected_tree(
        harness.shadow,
        change.head.tree,
        change.files,
        loosened=loosened,
        accepted=lambda path: change.accepted(path) is not None,
    )
    checked = run_protected(harness, change, checked, tree, on_progress=on_progress, parallel=parallel)
    rows = INSPECTED if change.declared is None else (*INSPECTED, ("scope", "the plan declares every changed file"))
    eased = judged_findings(inspected, checked, oracle)
    findings = judged_suppressions(
        harness, change, checked, eased, files, oracle, on_progress=on_progress, parallel=parallel
    )
    proofs = [*comparison_proofs(change, checked, oracle), *finding_proofs(findings, rows)]
    expectations = expectation_lines(change, checked, files)
    gone = tuple(gone_tests(change, checked, oracle))
    asked_about = (*(one.id for one in expectations), *gone)
    notes = [*_submodule_notes(harness, change), *weakening_notes(inspected, eased, asked_about)]
    for each in checked:
        if each.are_tests and is_no_worse(each):
            proofs += _new_test_proofs(harness, change, each, notes, on_progress=on_progress)
            if all(proof.holds for proof in proofs):
                # for a change that is already blocked, mutants would only cost time
                proofs += _changed_line_proofs(
                    harness, change, each, files, settings, notes, on_progress=on_progress, parallel=parallel
                )
    drift = Drift.of(files)
    if drift.files:
        notes.append(f"in the changed test files: {drift}")
    if not any(each.spec.tier == TIER_3 for each in checked):
        text = "there is no package to import, and fairwitness.toml declares no smoke-execution"
        proofs.append(ProofRow("tier3-infeasible", None, True, text, {}))
    undiscovered = after.undiscovered
    asked = gate_question(change, checked, undiscovered, strict=strict)
    notes += [proof.text for proof in proofs if proof.check == "tests-vacuous" and proof.holds]
    answer = conclude(harness, change, Conclusion(proofs, asked, notes, actor))
    excused = {silent.instance for silent in asked.silent if silent.excused}
    return VerificationResult(
        answer=answer,
        checks=tuple(check_line(each, proofs, excused=each.spec.id in excused) for each in checked),
        findings=findings,
        expectations=expectations,
        gone=gone,
        missing=missing_lines(asked, checked, undiscovered),
        notes=tuple(notes),
    )


def _submodule_notes(harness: Harness, change: ProposedChange) -> list[str]:
    """Return a note about submodules, which are not checked out, to explain checks that fail without them."""
    modules = [path for path, entry in harness.shadow.entries(change.head.tree).items() if entry.mode == GITLINK]
    return [f"not checked out: submodule {', '.join(modules[:5])}"] if modules else []


def _new_test_proofs(
    harness: Harness, change: ProposedChange, checked: CheckRuns, notes: list[str], *, on_progress: ProgressCallback
) -> list[ProofRow]:
    """Whether tests are forged, and whether the new ones are red at the baseline."""
    proofs = [canary_proof(harness, change, checked, on_progress=on_progress)]
    if production_files(change.files):
        if not new_tests(checked):
            notes.append(f"{checked.spec.id}: no new test passes with this change; only existing tests cover it")
        tree = red_tree(harness.shadow, change.base.tree, change.files)
        proofs.append(red_at_baseline(harness, change, checked, tree, on_progress=on_progress))
    return [proof for proof in proofs if proof is not None]


def shows_new_behaviour(
    harness: Harness, change: ProposedChange, before: Discovered, after: Discovered, on_progress: ProgressCallback
) -> bool:
    """Return whether a new test passes with a change and fails without it.

    For a change that is only a part of the one that was verified: its base has the work of others already. The runs
    conclude nothing else, so they leave no rows.
    """
    tree = red_tree(harness.shadow, change.base.tree, change.files)
    for spec, base_spec in pair_checks(before, after):
        if spec.report in TEST_FORMATS and production_files(change.files):
            asked = [CheckRequest(spec, project_of(spec, after), change.head.tree, "after")]
            if base_spec is not None:
                asked.append(CheckRequest(base_spec, project_of(base_spec, before), change.base.tree, "baseline"))
            ran, *was = run_requests(harness, asked, on_progress, 1)
            runs = CheckRuns(spec, asked[0].project, base_spec, was[0] if was else None, ran)
            compared = replace(runs, comparison=compared_with_baseline(runs, ran))
            proof = red_at_baseline(harness, change, compared, tree, on_progress=on_progress)
            if proof is not None and proof.holds:
                return True
    return False


def _changed_line_proofs(
    harness: Harness,
    change: ProposedChange,
    checked: CheckRuns,
    files: Sequence[ChangedText],
    settings: VerifySettings,
    notes: list[str],
    *,
    on_progress: ProgressCallback,
    parallel: int,
) -> list[ProofRow]:
    """Note the changed lines that no test covers, and prove that new tests detect mutants of the changed lines."""
    notes += untouched_lines(harness, change, checked, files, on_progress=on_progress)
    new = new_tests(checked)
    if not new or checked.spec.language is not Language.PYTHON or not settings.mutants:
        return []
    proof = mutants_proof(
        harness,
        change,
        checked,
        chosen_mutants(harness.shadow, change, checked, files, new, settings),
        on_progress=on_progress,
        parallel=parallel,
        deadline=time.monotonic() + settings.mutants_s,
        now=time.monotonic,
    )
    return [proof] if proof is not None else []
