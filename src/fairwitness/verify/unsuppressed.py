"""Judge suppressions that a change adds by running the checkers without them.

The linters and type checkers that heed an added comment run once more on the change without it. A suppression that
hides nothing, or one for a single line and code, is a note; a wider one that hides a new diagnostic blocks. Where no
checker that heeds it could be run a person decides: another tool's silence says nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fairwitness.contracts.verify.checks import CheckSpec, OracleMode, ReportFormat
from fairwitness.contracts.verify.report import FindingLine
from fairwitness.contracts.verify.results import BAD, Evidence
from fairwitness.rules.base_oracle import SuppressionVerdict, judged_line
from fairwitness.verify.cascade import CheckRuns, compared_with_baseline, run_requests
from fairwitness.verify.expectations import WEAKENINGS
from fairwitness.verify.harness import Harness
from fairwitness.verify.inspections.model import ChangedText
from fairwitness.verify.inspections.suppressions import SuppressionMark, marks_by_line, without_marks
from fairwitness.verify.model import CheckRequest, ProgressCallback, ProposedChange

CHECK = "suppressions"


class BareFile(NamedTuple):
    """A changed file with its added marks, and its text without them."""

    text: str
    marks: Mapping[int, Sequence[SuppressionMark]]
    """The marks on lines with a finding; none for a mark that cannot be removed."""


class HiddenDiagnostics(NamedTuple):
    """The files in which a checker finds something new once the marks are gone; None if it gave no evidence."""

    spec: CheckSpec
    files: frozenset[str] | None


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
    bare = {path: _bare(texts[path], path, added) for path in {one.path for one in added}}
    found = _found(harness, change, checked, bare, on_progress=on_progress, parallel=parallel)
    return tuple(_judged(one, bare[one.path], found, mode) if _is_open(one) else one for one in findings)


def _is_open(one: FindingLine) -> bool:
    return one.check == CHECK and one.blocks and one.accepted is None and one.line is not None


def _bare(text: str, path: str, findings: Iterable[FindingLine]) -> BareFile:
    lines = frozenset(one.line for one in findings if one.path == path and one.line is not None)
    without = without_marks(text, path, lines)
    left = marks_by_line(without, path)
    return BareFile(
        without,
        {line: marks for line, marks in marks_by_line(text, path).items() if line in lines and line not in left},
    )


def _found(
    harness: Harness,
    change: ProposedChange,
    checked: Sequence[CheckRuns],
    bare: Mapping[str, BareFile],
    *,
    on_progress: ProgressCallback,
    parallel: int,
) -> tuple[HiddenDiagnostics, ...]:
    """Run the checkers that heed a mark on the change without the marks."""
    heeding = frozenset(
        tool for file in bare.values() for marks in file.marks.values() for mark in marks for tool in mark.heeded_by
    )
    checkers = [
        each
        for each in checked
        if each.spec.tool in heeding and not each.are_tests and each.spec.report is not ReportFormat.EXIT
    ]
    if not checkers:
        return ()
    entries = harness.shadow.entries(change.head.tree)
    changes = {
        path: entries[path]._replace(id=harness.shadow.add_blob(file.text.encode())) for path, file in bare.items()
    }
    tree = harness.shadow.compose(change.head.tree, changes)
    requests = [
        CheckRequest(each.spec, each.project, tree, "unsuppressed", environment_tree=change.head.tree)
        for each in checkers
    ]
    found = []
    for each, ran in zip(checkers, run_requests(harness, requests, on_progress, parallel), strict=True):
        compared = compared_with_baseline(each, ran)
        if each.comparison is None or compared is None or ran.evidence is Evidence.NONE:
            found.append(HiddenDiagnostics(each.spec, None))
            continue
        known = {moved.id for moved in each.comparison.moved}
        new = {moved.id for moved in compared.moved if moved.move in BAD} - known
        paths = (each.spec.in_repository(item.path) for item in ran.items if item.id in new and item.path)
        found.append(HiddenDiagnostics(each.spec, frozenset(paths)))
    return tuple(found)


def _judged(one: FindingLine, file: BareFile, found: Sequence[HiddenDiagnostics], mode: OracleMode) -> FindingLine:
    """Return the finding as the marks of its line make it."""
    assert one.line is not None
    marks = file.marks.get(one.line, ())
    match judged_line(mode, ((mark.is_narrow, _hides(mark, one.path, found)) for mark in marks)):
        case SuppressionVerdict.NOTE:
            return one.model_copy(update={"blocks": False})
        case SuppressionVerdict.ASK:
            return one.model_copy(update={"check": WEAKENINGS})
        case SuppressionVerdict.BLOCK:
            return one.model_copy(update={"text": f"{one.text}; without it there is a new diagnostic"})


def _hides(mark: SuppressionMark, path: str, found: Sequence[HiddenDiagnostics]) -> bool | None:
    """Return whether a checker that heeds the mark finds something new without it; None if none could say."""
    own = [each.files for each in found if each.spec.tool in mark.heeded_by and each.spec.covers(path)]
    if not own or None in own:
        return None
    return any(path in files for files in own if files is not None)
