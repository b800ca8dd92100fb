"""Evidence about a change's tests that running the checks twice does not give.

*Red at baseline*: at least one new test fails without the change. *Mutants*: the new tests detect wrong forms of the
code. Where production code was changed, its changed lines are mutated; a change of tests alone has none, so the
functions and classes that the new tests name are mutated. *Canaries*: a test that must fail, planted beside the real
ones, is reported as failed; otherwise the report is forged, for example by a hook that turns failures into passes, an
exit in the middle of a run, or a configuration that runs nothing. A canary is named after a test in the same folder, so
that the project's own rules collect it. *Coverage*: changed lines that no test runs, if the environment has pytest-cov.
"""

import ast
import hashlib
import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.contracts.verify.checks import CheckSpec, VerifySettings
from fairwitness.contracts.verify.results import RED, Evidence, ItemChange, ItemOutcome, Ran, ReportItem
from fairwitness.git.objects import TreeEntry
from fairwitness.git.shadow import Shadow
from fairwitness.rules.oracle import PathKind, kind_of_path
from fairwitness.rules.report_comparison import is_red_before
from fairwitness.verify.cascade import CheckRuns, items_before, run_requests
from fairwitness.verify.harness import BESIDE, Harness
from fairwitness.verify.inspections.model import ChangedText
from fairwitness.verify.inspections.mutants import Mutant, mutants
from fairwitness.verify.model import CheckRequest, ProgressCallback, ProposedChange, selected_ids

LISTED_IDS = 20
"""How many tests or mutants a message or a row lists."""
MUTANT_S = 60.0
"""Wall time of one mutant; a mutant that does not end counts as detected."""
FEWEST_MUTANTS = 2
"""How many mutants must be judged before new tests are called vacuous."""
_ASSERTED = re.compile(r"\s*(?:$|assert\b|[\w.]*Assertion\w*|Failed\b|.*DID NOT RAISE)")
"""How a failed assertion begins in a report; a failure without a message counts as an assertion."""


class ProofRow(NamedTuple):
    """A proof as it is recorded: the check and instance of its row, whether it holds, and its text."""

    check: str
    instance: str | None
    holds: bool
    text: str
    detail: dict[str, Any]


def new_tests(checked: CheckRuns) -> tuple[str, ...]:
    """Return the ids of the tests that the change adds and that pass."""
    if checked.comparison is None or not checked.are_tests:
        return ()
    return tuple(moved.id for moved in checked.comparison.moved if moved.move is ItemChange.NEW_PASSING)


def is_no_worse(checked: CheckRuns) -> bool:
    """Return whether a check has no new failures; many projects are already red at the base."""
    if checked.comparison is None:
        return checked.after.evidence is Evidence.PASSED
    return not any(moved.move in (ItemChange.BROKEN, ItemChange.NEW_FAILING) for moved in checked.comparison.moved)


def red_at_baseline(
    harness: Harness, change: ProposedChange, checked: CheckRuns, tree: str, *, on_progress: ProgressCallback
) -> ProofRow | None:
    """Prove that at least one new test fails, or does not load, on the old code; None without new tests."""
    new = new_tests(checked)
    if not new or tree == change.base.tree or items_before(checked.before) is None:
        return None
    request = CheckRequest(
        checked.spec,
        checked.project,
        tree,
        "red",
        # other tools do not know the name of a test whose file does not load, so they run everything
        ids=selected_ids(checked.spec, new) if checked.spec.tool == "pytest" else (),
        environment_tree=change.head.tree,
    )
    (ran,) = run_requests(harness, [request], on_progress, 1)
    name = "red-at-baseline-new-tests"
    detail: dict[str, Any] = {"new": list(new[:LISTED_IDS]), "execution": ran.execution}
    if ran.evidence is Evidence.NONE and not broke_by_itself(ran):
        text = f"it is unknown whether the new tests fail without the change: {ran.reason}"
        return ProofRow(name, checked.spec.id, False, text, detail)
    # a build that breaks without the change counts as red: a test may call code that only the change adds
    unbuilt = ran.reason if ran.evidence is Evidence.NONE else None
    judged = is_red_before(new, ran.items or None, unbuilt=unbuilt)
    detail |= {
        "red": [each.id for each in judged.red[:LISTED_IDS]],
        "not_red": [f"{each.id}: {each.reason}" for each in judged.not_red[:LISTED_IDS]],
    }
    if judged.red:
        return ProofRow(
            name, checked.spec.id, True, f"{len(judged.red)} of {len(new)} new tests fail without the change", detail
        )
    text = f"no new test fails without the change ({_some(new)})"
    return ProofRow(name, checked.spec.id, False, text, detail)


def broke_by_itself(ran: Ran) -> bool:
    """Return whether the command failed by itself, although its report names no item."""
    return (
        ran.exit_code not in (None, 0)
        and not ran.environmental
        and ran.assessment not in (Assessment.TIMEOUT, Assessment.LOST)
    )


def mutants_proof(
    harness: Harness,
    change: ProposedChange,
    checked: CheckRuns,
    mutants: Sequence[Mutant],
    *,
    on_progress: ProgressCallback,
    parallel: int,
    deadline: float,
    now: Callable[[], float],
) -> ProofRow | None:
    """Prove that the new tests detect mutants; None if too few mutants could be judged."""
    new = new_tests(checked)
    if not new or not mutants:
        return None
    spec = checked.spec.model_copy(update={"timeout_s": min(checked.spec.timeout_s, MUTANT_S)})
    killed: list[Mutant] = []
    survived: list[Mutant] = []
    asserted = 0
    for start in range(0, len(mutants), parallel):
        if now() > deadline:
            break
        batch = mutants[start : start + parallel]
        requests = [
            CheckRequest(
                spec,
                checked.project,
                _mutated(harness, change, mutant),
                "mutant",
                ids=selected_ids(spec, new),
                environment_tree=change.head.tree,
            )
            for mutant in batch
        ]
        for mutant, ran in zip(batch, run_requests(harness, requests, on_progress, parallel), strict=True):
            match _noticed(ran, frozenset(new)):
                case True:
                    killed.append(mutant)
                    asserted += any(item.id in new and _is_assertion(item) for item in ran.items)
                case False:
                    survived.append(mutant)
                case None:
                    pass
    judged = len(killed) + len(survived)
    detail = {
        "judged": judged,
        "noticed": len(killed),
        "by_assertion": asserted,
        "survivors": [f"{mutant.path}:{mutant.line} {mutant.description}" for mutant in survived[:LISTED_IDS]],
    }
    if judged < FEWEST_MUTANTS:
        return None
    if asserted or len(killed) * 2 >= judged:
        text = f"the new tests detect {len(killed)} of {judged} mutants of the change"
        return ProofRow("tests-vacuous", checked.spec.id, True, text, detail)
    # a mutant that crashes is detected even by a test that only calls the code
    how = f"{len(killed)} of {judged} mutants crashed" if killed else f"none of {judged} mutants was detected"
    text = f"the new tests assert nothing about the change: {how} ({_some(new)})"
    return ProofRow("tests-vacuous", checked.spec.id, False, text, detail)


def _mutated(harness: Harness, change: ProposedChange, mutant: Mutant) -> str:
    entry = harness.shadow.entries(change.head.tree)[mutant.path]
    blob = harness.shadow.add_blob(mutant.content.encode())
    return harness.shadow.compose(change.head.tree, {mutant.path: entry._replace(id=blob)})


def _noticed(ran: Ran, new: frozenset[str]) -> bool | None:
    """Return whether a test detected a mutant; None if it is unknown, for example because its file does not load."""
    if ran.assessment is Assessment.TIMEOUT:
        return True
    if any(item.id in new and item.outcome is ItemOutcome.FAILED for item in ran.items):
        return True
    passed = {item.id for item in ran.items if item.outcome is ItemOutcome.PASSED}
    if ran.evidence is Evidence.PASSED or (ran.evidence is Evidence.FAILED and new <= passed):
        return False  # other tests of the same file may have been red before the change
    own = [item for item in ran.items if item.id in new and item.outcome in RED]
    return True if own else None


def _is_assertion(item: ReportItem) -> bool:
    """Return whether a test failed by an assertion and not by a crash."""
    return item.outcome is ItemOutcome.FAILED and _ASSERTED.match(item.message) is not None


def _some(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:3])
    return f"{shown} and {len(ids) - 3} more" if len(ids) > 3 else shown


FOLDERS = 4
"""In how many test folders a canary is planted: a hook may act only on its own folder."""
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Canary(NamedTuple):
    """A planted test that must fail."""

    path: str
    id: str
    content: str


def planted_canaries(spec: CheckSpec, ids: tuple[str, ...], salt: str) -> tuple[Canary, ...]:
    """Return the canaries for a check; none for a tool whose tests cannot be generated."""
    make = _MAKERS.get(spec.tool)
    if make is None:
        return ()
    by_folder: dict[str, Canary] = {}
    for id_ in ids:
        path = id_.split("::", 1)[0]
        folder = posixpath.dirname(path)
        if folder not in by_folder and len(by_folder) < FOLDERS and (canary := make(id_, salt)):
            by_folder[folder] = canary
    return tuple(by_folder.values())


def _pytest(id_: str, salt: str) -> Canary | None:
    path, _, rest = id_.partition("::")
    name = rest.rsplit("::", 1)[-1].split("[", 1)[0]
    if not path.endswith(".py") or not _PLAIN_NAME.fullmatch(name):
        return None
    file = path.removesuffix(".py") + f"_{salt}.py"
    function = f"{name}_{salt}"
    return Canary(file, f"{file}::{function}", f"def {function}():\n    assert 1 == 2\n")


_MAKERS: dict[str, Callable[[str, str], Canary | None]] = {"pytest": _pytest}


def canary_proof(
    harness: Harness, change: ProposedChange, checked: CheckRuns, *, on_progress: ProgressCallback
) -> ProofRow | None:
    """Prove that planted tests are reported as failed with the change's configuration; None if none can be planted."""
    ran_ids = tuple(item.id for item in checked.after.items if item.outcome is ItemOutcome.PASSED)
    salt = hashlib.sha256(change.head.tree.encode()).hexdigest()[:8]
    canaries = planted_canaries(checked.spec, ran_ids, salt)
    if not canaries:
        return None
    seen = _run_canaries(harness, checked, checked.spec, change.head.tree, canaries, on_progress)
    unheard = _not_reported_as_failed(seen, canaries)
    if unheard is None:
        text = f"{len(canaries)} planted tests that must fail were reported as failed"
        return ProofRow("forgery", checked.spec.id, True, text, {"execution": seen.execution})
    if checked.base_spec is not None:
        at_base = _run_canaries(harness, checked, checked.base_spec, change.base.tree, canaries, on_progress)
        if _not_reported_as_failed(at_base, canaries) is not None:
            return None  # it was the same before the change, so the change is not the cause
    detail = {"execution": seen.execution, "planted": [canary.id for canary in canaries]}
    return ProofRow("forgery", checked.spec.id, False, f"a planted test that must fail {unheard}", detail)


def _run_canaries(
    harness: Harness,
    checked: CheckRuns,
    spec: CheckSpec,
    tree: str,
    canaries: tuple[Canary, ...],
    on_progress: ProgressCallback,
) -> Ran:
    files = {
        spec.in_repository(canary.path): TreeEntry("100644", harness.shadow.add_blob(canary.content.encode()))
        for canary in canaries
    }
    request = CheckRequest(
        spec,
        checked.project,
        harness.shadow.compose(tree, files),
        "canary",
        ids=selected_ids(spec, [canary.id for canary in canaries]),
        environment_tree=tree,
    )
    (ran,) = run_requests(harness, [request], on_progress, 1)
    return ran


def _not_reported_as_failed(ran: Ran, canaries: tuple[Canary, ...]) -> str | None:
    """Return how a canary was reported instead of as failed; None if all were reported as failed."""
    if ran.evidence is Evidence.NONE:
        return f"left no evidence: {ran.reason}"
    outcomes = {item.id: item.outcome for item in ran.items}
    for canary in canaries:
        outcome = outcomes.get(canary.id)
        if outcome not in RED:
            return f"was reported as {outcome.value}" if outcome else "was not reported at all"
    return None


PLUGIN = "pytest-cov"


def untouched_lines(
    harness: Harness,
    change: ProposedChange,
    checked: CheckRuns,
    files: Sequence[ChangedText],
    *,
    on_progress: ProgressCallback,
) -> list[str]:
    """Return a note for each changed file with lines that no test covers; none without coverage data."""
    changed = {
        file.path: set(file.added)
        for file in files
        if file.path.endswith(".py") and file.added and kind_of_path(file.path) is PathKind.PRODUCTION
    }
    if not changed or checked.spec.tool != "pytest" or not harness.offers(checked.project, change.head.tree, PLUGIN):
        return []
    words = ("--cov={root}", f"--cov-report=json:{{report}}{BESIDE}")
    spec = checked.spec.model_copy(update={"argv": (*checked.spec.argv, *words)})
    (ran,) = run_requests(harness, [CheckRequest(spec, checked.project, change.head.tree, "coverage")], on_progress, 1)
    return [
        f"no test covers {path}:{spelled(sorted(missed & changed[path]))}"
        for path, missed in sorted(_missed(ran.beside, spec).items())
        if path in changed and missed & changed[path]
    ]


def _missed(coverage: str | None, spec: CheckSpec) -> dict[str, set[int]]:
    """Return the lines that were not run by path, from coverage's JSON; nothing if it cannot be read."""
    try:
        listed = json.loads(coverage or "{}").get("files", {})
        return {
            spec.in_repository(str(path)): {int(line) for line in file["missing_lines"]}
            for path, file in listed.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}


def spelled(lines: Iterable[int]) -> str:
    """Return line numbers as ranges.

    >>> spelled([3, 4, 5, 9])
    '3-5, 9'
    """
    numbers = list(lines)
    starts = [numbers[0], *(after for before, after in pairwise(numbers) if after != before + 1)]
    ends = [*(before for before, after in pairwise(numbers) if after != before + 1), numbers[-1]]
    return ", ".join(str(start) if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True))


FILE_LIMIT = 1 << 20
MOST_FILES = 400
"""How many production files are searched for what the new tests name."""


def chosen_mutants(
    shadow: Shadow,
    change: ProposedChange,
    checked: CheckRuns,
    files: Sequence[ChangedText],
    new: Sequence[str],
    settings: VerifySettings,
) -> tuple[Mutant, ...]:
    """Return the mutants to run; the choice depends on the tree only, so it is the same at every try."""
    seed = int(change.head.tree[:8], 16)
    own = [file for file in files if file.after is not None and _is_python_code(file.path)]
    if not own:
        own = list(_named_by(shadow, change, checked, new))
    return mutants(own, limit=settings.mutants, seed=seed)


def _is_python_code(path: str) -> bool:
    return path.endswith(".py") and kind_of_path(path) is PathKind.PRODUCTION


def _named_by(shadow: Shadow, change: ProposedChange, checked: CheckRuns, new: Sequence[str]) -> Iterator[ChangedText]:
    """Yield production files with the lines of what the new tests name, as if those lines had been changed."""
    spec = checked.spec
    entries = shadow.entries(change.head.tree)
    tests = {spec.in_repository(id_.split("::", 1)[0]) for id_ in new} & set(entries)
    names = {name for path in tests for name in _names(_parsed(_text(shadow, entries[path].id)))}
    code = [path for path in entries if path.startswith(spec.in_repository("")) and _is_python_code(path)]
    for path in code[:MOST_FILES]:
        text = _text(shadow, entries[path].id)
        lines = sorted(_lines_of(_parsed(text), names))
        if lines:
            yield ChangedText(path, text, text, tuple(lines), ())


def _text(shadow: Shadow, blob: str) -> str:
    return shadow.blob(blob, limit=FILE_LIMIT).decode(errors="replace")


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module(body=[], type_ignores=[])


def _names(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)


def _lines_of(module: ast.Module, names: set[str]) -> Iterator[int]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name in names:
            yield from range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
