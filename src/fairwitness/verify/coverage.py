"""Which changed lines no test touches, where the project's own environment can tell (pytest-cov)."""

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise

from fairwitness.contracts.verify.checks import CheckSpec
from fairwitness.rules.oracle import PathKind, kind_of_path
from fairwitness.verify.cascade import Checked, ask_all
from fairwitness.verify.harness import BESIDE, Harness
from fairwitness.verify.inspections.model import ChangedFile
from fairwitness.verify.model import Change, Tell
from fairwitness.verify.question import Question

PLUGIN = "pytest-cov"


def untouched_lines(
    harness: Harness, change: Change, checked: Checked, files: Sequence[ChangedFile], *, tell: Tell
) -> list[str]:
    """One sentence for each changed file with lines that no test touches; nothing where nobody can tell."""
    changed = {
        file.path: set(file.added)
        for file in files
        if file.path.endswith(".py") and file.added and kind_of_path(file.path) is PathKind.PRODUCTION
    }
    if not changed or checked.spec.tool != "pytest" or not harness.offers(checked.project, change.head.tree, PLUGIN):
        return []
    words = ("--cov={root}", f"--cov-report=json:{{report}}{BESIDE}")
    spec = checked.spec.model_copy(update={"argv": (*checked.spec.argv, *words)})
    (ran,) = ask_all(harness, [Question(spec, checked.project, change.head.tree, "coverage")], tell, 1)
    return [
        f"no test touches {path}:{spelled(sorted(missed & changed[path]))}"
        for path, missed in sorted(_missed(ran.beside, spec).items())
        if path in changed and missed & changed[path]
    ]


def _missed(told: str | None, spec: CheckSpec) -> dict[str, set[int]]:
    """Path → lines that were not run, from coverage's JSON; nothing if it is not that."""
    try:
        listed = json.loads(told or "{}").get("files", {})
        return {
            spec.in_repository(str(path)): {int(line) for line in file["missing_lines"]}
            for path, file in listed.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}


def spelled(lines: Iterable[int]) -> str:
    """Lines as people write them.

    >>> spelled([3, 4, 5, 9])
    '3-5, 9'
    """
    numbers = list(lines)
    starts = [numbers[0], *(after for before, after in pairwise(numbers) if after != before + 1)]
    ends = [*(before for before, after in pairwise(numbers) if after != before + 1), numbers[-1]]
    return ", ".join(str(start) if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True))
