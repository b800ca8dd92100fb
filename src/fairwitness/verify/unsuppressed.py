"""Judge suppressions that a change adds by running the checkers without them.

Linters and type checkers run once more on the change with the added comments removed. A suppression that hides nothing,
or one for a single line and code, is a note; a wider one that hides a new diagnostic blocks. Where no checker could be
run a person decides.
"""

from collections.abc import Iterable, Mapping, Sequence

from fairwitness.contracts.verify.checks import OracleMode, ReportFormat
from fairwitness.contracts.verify.report import FindingLine
from fairwitness.contracts.verify.results import BAD, Evidence
from fairwitness.rules.base_oracle import SUPPRESSED, SuppressionVerdict
from fairwitness.verify.cascade import CheckRuns, compared_with_baseline, run_requests
from fairwitness.verify.expectations import WEAKENINGS
from fairwitness.verify.harness import Harness
from fairwitness.verify.inspections.model import ChangedText
from fairwitness.verify.inspections.suppressions import is_narrow, without_marks
from fairwitness.verify.model import CheckRequest, ProgressCallback, ProposedChange

CHECK = "suppressions"


def judged_suppressions(
    harness: Harness,
    change: ProposedChange,
    checked: Sequence[CheckRuns],
    findings: Sequence[FindingLine],
    files: Sequence[ChangedText],
    mode: OracleMode,
    *,
    on_progress: ProgressCallback,
    parallel: int,
) -> tuple[FindingLine, ...]:
    """Return the findings with each added suppression judged by what it hides."""
    added = [one for one in findings if _is_open(one)]
    if not added:
        return tuple(findings)
    texts = {file.path: file.after or "" for file in files}
    bare = {path: without_marks(texts[path], path, _lines(added, path)) for path in {one.path for one in added}}
    hidden = _hidden(harness, change, checked, {path: text for path, text in bare.items() if text != texts[path]},
                     on_progress=on_progress, parallel=parallel)  # fmt: skip
    return tuple(_judged(one, texts[one.path], bare, hidden, mode) if _is_open(one) else one for one in findings)


def _is_open(one: FindingLine) -> bool:
    return one.check == CHECK and one.blocks and one.accepted is None and one.line is not None


def _lines(findings: Iterable[FindingLine], path: str) -> frozenset[int]:
    return frozenset(one.line for one in findings if one.path == path and one.line is not None)


def _hidden(
    harness: Harness,
    change: ProposedChange,
    checked: Sequence[CheckRuns],
    bare: Mapping[str, str],
    *,
    on_progress: ProgressCallback,
    parallel: int,
) -> frozenset[str] | None:
    """Return the files with diagnostics that only the suppressions hide; None if no checker could be run."""
    checkers = [
        each
        for each in checked
        if not each.are_tests and each.spec.report is not ReportFormat.EXIT and each.comparison is not None
    ]
    if not checkers or not bare:
        return None
    entries = harness.shadow.entries(change.head.tree)
    changes = {path: entries[path]._replace(id=harness.shadow.add_blob(text.encode())) for path, text in bare.items()}
    tree = harness.shadow.compose(change.head.tree, changes)
    requests = [
        CheckRequest(each.spec, each.project, tree, "unsuppressed", environment_tree=change.head.tree)
        for each in checkers
    ]
    found: set[str] = set()
    for each, ran in zip(checkers, run_requests(harness, requests, on_progress, parallel), strict=True):
        compared = compared_with_baseline(each, ran)
        if compared is None or ran.evidence is Evidence.NONE:
            return None
        known = {moved.id for moved in each.comparison.moved} if each.comparison else set()
        new = {moved.id for moved in compared.moved if moved.move in BAD} - known
        found |= {each.spec.in_repository(item.path) for item in ran.items if item.id in new and item.path}
    return frozenset(found)


def _judged(
    one: FindingLine, text: str, bare: Mapping[str, str], hidden: frozenset[str] | None, mode: OracleMode
) -> FindingLine:
    lines = text.split("\n")
    line = lines[one.line - 1] if one.line is not None and one.line <= len(lines) else ""
    hides = None if hidden is None or bare[one.path] == text else one.path in hidden
    match SUPPRESSED[mode, is_narrow(line), hides]:
        case SuppressionVerdict.NOTE:
            return one.model_copy(update={"blocks": False})
        case SuppressionVerdict.ASK:
            return one.model_copy(update={"check": WEAKENINGS})
        case SuppressionVerdict.BLOCK:
            return one.model_copy(update={"text": f"{one.text}; without it there is a new diagnostic"})
