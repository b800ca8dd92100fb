"""Run every check before and after the change, and the base's form of it against the new code; compare item by item."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeVar

from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.verify.checks import TEST_FORMATS, CheckSpec, Discovered, Project, ReportFormat
from fairwitness.contracts.verify.results import RED, Comparison, Evidence, ItemChange, ItemOutcome, Ran, ReportItem
from fairwitness.kit.durations import took
from fairwitness.rules.report_comparison import compare
from fairwitness.verify.harness import Harness
from fairwitness.verify.model import CheckRequest, Progress, ProgressCallback, ProposedChange, selected_ids

T = TypeVar("T")
R = TypeVar("R")

NO_TESTS = "no test was collected"
"""Start of the problem that a report has when there was nothing to run."""
RERUNS = 2
"""How often an item that got worse is run again before it counts."""
RERUN_LIMIT = 30
"""If more items than this got worse at once, they are not flaky and nothing is run again."""
_PASSES = frozenset({ItemOutcome.PASSED})
_SAYS_BOTH = TEST_FORMATS | {ReportFormat.EXIT}
"""Formats that also name what passed; the others name only problems."""


@dataclass(frozen=True, slots=True)
class CheckRuns:
    """All runs of one check: before the change, after it, and the base's form against the new code."""

    spec: CheckSpec
    project: Project
    base_spec: CheckSpec | None
    """The check as the base declares it; None if the change adds it."""
    before: Ran | None
    after: Ran
    comparison: Comparison | None = None
    """None without evidence on one side."""
    protected: Ran | None = None
    original: Comparison | None = None
    """Comparison for `protected`: the base's form of the check against the new code."""
    flaky: frozenset[str] = field(default_factory=frozenset)
    came_from: Mapping[str, str] = field(default_factory=dict)
    """The earlier path of each file of the project that the change moved."""

    @property
    def are_tests(self) -> bool:
        return self.spec.report in TEST_FORMATS or self.spec.name == "tests"


def run_parallel(work: Callable[[T], R], given: Iterable[T], parallel: int) -> list[R]:
    """Return the results in order; at most `parallel` calls run at the same time."""
    with ThreadPoolExecutor(max_workers=parallel, thread_name_prefix="check") as pool:
        return list(pool.map(work, given))


def pair_checks(before: Discovered, after: Discovered) -> list[tuple[CheckSpec, CheckSpec | None]]:
    """Return each check with its form at the base; a check that the change no longer declares keeps the base's form."""
    old = {spec.id: spec for spec in before.checks}
    new = {spec.id: spec for spec in after.checks}
    both = [(spec, old.get(spec.id)) for spec in after.checks]
    return sorted(both + [(spec, spec) for spec in before.checks if spec.id not in new], key=_order)


def _order(specs: tuple[CheckSpec, CheckSpec | None]) -> tuple[int, str]:
    return (specs[0].tier, specs[0].id)


def project_of(spec: CheckSpec, discovered: Discovered) -> Project:
    """Return the project of a check; a declared check may be in a folder without a project, which gets an empty one."""
    for project in discovered.projects:
        if (project.root, project.language) == (spec.root, spec.language):
            return project
    return Project(root=spec.root, language=spec.language, manifests=())


def run_checks(
    harness: Harness,
    change: ProposedChange,
    before: Discovered,
    after: Discovered,
    *,
    on_progress: ProgressCallback,
    parallel: int,
) -> list[CheckRuns]:
    """Run every check at both trees and compare the results."""
    pairs = pair_checks(before, after)
    asked: list[CheckRequest] = []
    for spec, base_spec in pairs:
        if base_spec is not None:
            project = project_of(base_spec, before)
            asked.append(CheckRequest(base_spec, project, change.base.tree, "baseline", Phase.BASELINE))
        asked.append(CheckRequest(spec, project_of(spec, after), change.head.tree, "after", Phase.AFTER))
    answers = dict(
        zip([(q.spec.id, q.purpose) for q in asked], run_requests(harness, asked, on_progress, parallel), strict=True)
    )
    checked = [
        CheckRuns(
            spec=spec,
            project=project_of(spec, after),
            base_spec=base_spec,
            before=answers.get((spec.id, "baseline")),
            after=answers[spec.id, "after"],
            came_from=_moved_files(change, spec),
        )
        for spec, base_spec in pairs
    ]
    return run_parallel(lambda each: _compare_after(harness, change, each, on_progress), checked, parallel)


def _moved_files(change: ProposedChange, spec: CheckSpec) -> dict[str, str]:
    """Return the files that moved within the project of a check, with their earlier paths."""
    start = 0 if spec.root == "." else len(spec.root) + 1
    return {
        file.path[start:]: file.renamed_from[start:]
        for file in change.files
        if file.renamed_from is not None and spec.covers(file.path) and spec.covers(file.renamed_from)
    }


def run_requests(
    harness: Harness, requests: list[CheckRequest], on_progress: ProgressCallback, parallel: int
) -> list[Ran]:
    """Run all requests and report the progress of each."""

    def run(request: CheckRequest) -> Ran:
        when = _PURPOSES.get(request.purpose, request.purpose)
        on_progress(Progress("begin", request.spec.id, when))
        ran = harness.run(request)
        on_progress(Progress("end", request.spec.id, f"{when}: {_outcome(request.purpose, ran)}"))
        return ran

    return run_parallel(run, requests, parallel)


_PURPOSES = {
    "baseline": "before the change",
    "after": "with the change",
    "again": "repeated",
    "protected": "with the tests of the base",
    "red": "new tests without the change",
    "mutant": "with a mutant",
    "canary": "with a test that must fail",
    "unsuppressed": "without the new suppressions",
}
"""What a run of a check is for, in progress reports."""


def _outcome(purpose: str, ran: Ran) -> str:
    """Return a run in a few words, for progress reports; some runs must fail."""
    if ran.evidence is Evidence.NONE:
        return f"no evidence ({ran.reason})"
    seconds = "from the ledger" if ran.cached else took(ran.duration_ms / 1000)
    red = sum(item.outcome in RED for item in ran.items)
    word = "failed as it must" if red and purpose in ("red", "mutant", "canary") else ran.evidence.value
    return ", ".join(filter(None, (word, f"{red} failing" if red else "", seconds)))


def items_before(before: Ran | None) -> tuple[ReportItem, ...] | None:
    """Return the items to compare with; None if there is no baseline."""
    if before is None:
        return ()
    if before.evidence is Evidence.NONE:
        return () if (before.reason or "").startswith(NO_TESTS) else None
    return before.items


def compared_with_baseline(checked: CheckRuns, ran: Ran, flaky: frozenset[str] = frozenset()) -> Comparison | None:
    """Compare a run with the baseline; None without evidence on one side."""
    old = items_before(checked.before)
    if old is None or ran.evidence is Evidence.NONE:
        return None
    return compare(
        old, ran.items, are_tests=checked.spec.report in _SAYS_BOTH, flaky=flaky, came_from=checked.came_from
    )


def _compare_after(
    harness: Harness, change: ProposedChange, checked: CheckRuns, on_progress: ProgressCallback
) -> CheckRuns:
    """Add the comparison with the baseline, after flaky items were found by running changed items again."""
    comparison = compared_with_baseline(checked, checked.after)
    if comparison is None or not checked.are_tests:
        return replace(checked, comparison=comparison)
    worse, better = _ids(comparison, ItemChange.BROKEN, ItemChange.NEW_FAILING), _ids(comparison, ItemChange.FIXED)
    phase = None if _ids(comparison, ItemChange.STILL_BROKEN) else Phase.AFTER
    again = CheckRequest(checked.spec, checked.project, change.head.tree, "again", phase)
    flaky = _passes_after_all(harness, again, worse, on_progress)
    broken = [id_ for id_ in _ids(comparison, ItemChange.BROKEN) if id_ not in flaky]
    flaky |= _fails_before_too(harness, change, checked, broken, on_progress)
    if checked.base_spec is not None:
        at_base = CheckRequest(checked.base_spec, checked.project, change.base.tree, "again")
        flaky |= _rerun(harness, at_base, better, _PASSES, on_progress)
    if not flaky:
        return replace(checked, comparison=comparison)
    return replace(
        checked, comparison=compared_with_baseline(checked, checked.after, frozenset(flaky)), flaky=frozenset(flaky)
    )


def _ids(comparison: Comparison, *moves: ItemChange) -> list[str]:
    return [moved.id for moved in comparison.moved if moved.move in moves]


def _passes_after_all(
    harness: Harness, request: CheckRequest, ids: list[str], on_progress: ProgressCallback
) -> set[str]:
    """Return the red items that pass when they run again, first alone and then with all others.

    Running them alone is cheap and confirms what is really broken. But an item that passes only alone may be broken by
    what runs before it, and code can detect that it runs alone. So an item is flaky only if the full command, run
    again, gives another outcome.
    """
    alone = _rerun(harness, request._replace(phase=None), ids, _PASSES, on_progress)
    return _rerun(harness, request, sorted(alone), _PASSES, on_progress, whole=True)


def _fails_before_too(
    harness: Harness, change: ProposedChange, checked: CheckRuns, ids: list[str], on_progress: ProgressCallback
) -> set[str]:
    """Return the items that passed at the base but fail there when run again: they are flaky, not regressions.

    If the baseline was green, a new baseline row is written, so that the gate does not use the lucky one.
    """
    if checked.base_spec is None or checked.before is None:
        return set()
    request = CheckRequest(checked.base_spec, checked.project, change.base.tree, "again")
    alone = _rerun(harness, request, ids, RED, on_progress)
    phase = Phase.BASELINE if checked.before.evidence is Evidence.PASSED else None
    return _rerun(harness, request._replace(phase=phase), sorted(alone), RED, on_progress, whole=True)


def _rerun(
    harness: Harness,
    request: CheckRequest,
    ids: list[str],
    wanted: frozenset[ItemOutcome],
    on_progress: ProgressCallback,
    *,
    whole: bool = False,
) -> set[str]:
    """Return the items that have a wanted outcome in one of a few reruns, alone or (`whole`) with all others."""
    left, found = list(ids), set[str]()
    if len(left) > RERUN_LIMIT:
        return found
    for rerun in range(1, RERUNS + 1):
        if not left:
            break
        chosen = request._replace(ids=() if whole else selected_ids(request.spec, left), rerun=rerun)
        (ran,) = run_requests(harness, [chosen], on_progress, 1)
        found |= {item.id for item in ran.items if item.outcome in wanted} & set(left)
        left = [id_ for id_ in left if id_ not in found]
    return found


def run_protected(
    harness: Harness,
    change: ProposedChange,
    checked: list[CheckRuns],
    tree: str,
    *,
    on_progress: ProgressCallback,
    parallel: int,
) -> list[CheckRuns]:
    """Run the base's form of each check against the new code, if the change touches any of it."""
    if tree == change.head.tree:
        return checked
    wanted = [each for each in checked if _is_protected(each)]
    requests = [
        CheckRequest(each.base_spec or each.spec, each.project, tree, "protected", environment_tree=change.head.tree)
        for each in wanted
    ]
    answers: Mapping[str, Ran] = {
        request.spec.id: ran
        for request, ran in zip(requests, run_requests(harness, requests, on_progress, parallel), strict=True)
    }
    held = [replace(each, protected=answers[each.spec.id]) if each.spec.id in answers else each for each in checked]
    return run_parallel(lambda each: _compare_protected(harness, change, each, tree, on_progress), held, parallel)


def _compare_protected(
    harness: Harness, change: ProposedChange, checked: CheckRuns, tree: str, on_progress: ProgressCallback
) -> CheckRuns:
    """Add the comparison of the base's form, after items that only it reports as broken were run again."""
    if checked.protected is None:
        return checked
    original = compared_with_baseline(checked, checked.protected, checked.flaky)
    if original is None or not checked.are_tests:
        return replace(checked, original=original)
    known = set(_ids(checked.comparison, ItemChange.BROKEN)) if checked.comparison else set()
    worse = [id_ for id_ in _ids(original, ItemChange.BROKEN) if id_ not in known]
    again = CheckRequest(
        checked.base_spec or checked.spec, checked.project, tree, "again", environment_tree=change.head.tree
    )
    flaky = _passes_after_all(harness, again, worse, on_progress)
    flaky |= _fails_before_too(harness, change, checked, [id_ for id_ in worse if id_ not in flaky], on_progress)
    if not flaky:
        return replace(checked, original=original)
    return replace(checked, original=compared_with_baseline(checked, checked.protected, checked.flaky | flaky))


def _is_protected(checked: CheckRuns) -> bool:
    """Return whether a check has a base form to run: tests and diagnostics with a baseline, but not builds."""
    if checked.base_spec is None or (items_before(checked.before) in (None, ()) and checked.are_tests):
        return False
    return checked.are_tests or (
        checked.spec.report is not ReportFormat.EXIT and items_before(checked.before) is not None
    )
