"""What a change does to the expectations of existing tests, and what the base's own tests say about it.

Inspections find every weakening of a test or of a rule in the diff. Whether it matters is judged by running the base's
own form against the new code (`rules/base_oracle`). This module brings both together and shows old and new expectation
side by side.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fairwitness.contracts.verify.checks import Language, OracleMode
from fairwitness.contracts.verify.report import LISTED, ExpectationLine, FindingLine
from fairwitness.rules.base_oracle import WEAKENED, WeakeningVerdict
from fairwitness.rules.oracle import PathKind, kind_of_path
from fairwitness.verify.cascade import CheckRuns
from fairwitness.verify.inspections.languages import Lang, language_of
from fairwitness.verify.inspections.model import ChangedText, FindingRule
from fairwitness.verify.inspections.python_source import UnreadableSource, parse
from fairwitness.verify.inspections.python_tests import tests_of
from fairwitness.verify.model import ProposedChange
from fairwitness.verify.proofs_and_report import changed_expectations

WEAKENINGS = "oracle-files"
"""The check whose findings are weakened tests and rules."""
SHOWN_LINES = 8
"""How many lines of each form of a test are shown."""
NAMED = 5
"""How many findings a note names."""
_RUN_BY_NONE = frozenset({PathKind.LINT_CONFIG, PathKind.CI, PathKind.BUILD_CONFIG, PathKind.MIXED_CONFIG})
"""Configuration: where a check reads it, its old form was run as well; where none does, it cannot hide anything."""
_ALWAYS_ASKS = frozenset({FindingRule.EXIT_ADDED, FindingRule.TEST_CONFIG_HOOK, FindingRule.UNREADABLE})
"""What may change how other tests are reported, and what could not be read."""
_LANGUAGES: Mapping[Lang, Language] = {
    Lang.PYTHON: Language.PYTHON,
    Lang.SCRIPT: Language.NODE,
    Lang.RUST: Language.RUST,
    Lang.GO: Language.GO,
    Lang.NATIVE: Language.NATIVE,
    Lang.JAVA: Language.JAVA,
}


def judged_findings(
    findings: Sequence[FindingLine], checked: Sequence[CheckRuns], mode: OracleMode
) -> tuple[FindingLine, ...]:
    """Return the findings; those do not block that the base's own tests and rules do not object to."""
    return tuple(one.model_copy(update={"blocks": False}) if _is_note(one, checked, mode) else one for one in findings)


def _is_note(one: FindingLine, checked: Sequence[CheckRuns], mode: OracleMode) -> bool:
    if one.check != WEAKENINGS or not one.blocks or one.accepted is not None or one.rule in _ALWAYS_ASKS:
        return False
    is_judged = kind_of_path(one.path) in _RUN_BY_NONE or _was_run_in_old_form(one.path, checked)
    return WEAKENED[mode, is_judged] is WeakeningVerdict.NOTE


def _was_run_in_old_form(path: str, checked: Sequence[CheckRuns]) -> bool:
    """Return whether the tests that may load a file were run in the base's form, with evidence."""
    language = language_of(path)
    own = [
        each
        for each in checked
        if each.are_tests
        and each.spec.covers(path)
        and (language is None or each.spec.language in (_LANGUAGES[language], Language.OTHER))
    ]
    return bool(own) and all(each.original is not None for each in own)


def weakening_notes(before: Sequence[FindingLine], after: Sequence[FindingLine], asked: Iterable[str]) -> Iterator[str]:
    """Yield a note about what the change does to existing tests and rules without an objection of the base's own.

    `asked` are the tests about which a person is asked.
    """
    failing = {id_.split("[", 1)[0] for id_ in asked}
    eased = [old.subject or old.path for old, new in zip(before, after, strict=True) if old.blocks and not new.blocks]
    names = [name for name in dict.fromkeys(eased) if name not in failing]
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        listed = ", ".join(names[:NAMED])
        yield f"changed, and the base's own form of it has no objection to the new code: {listed}{more}"


def expectation_lines(
    change: ProposedChange, checked: Sequence[CheckRuns], files: Sequence[ChangedText]
) -> tuple[ExpectationLine, ...]:
    """Return the tests that expect something else now, with both forms."""
    texts = {file.path: file for file in files}
    lines = []
    for each in checked:
        for moved in changed_expectations(change, each):
            id_ = each.spec.in_repository(moved.id)
            before, after = _both_forms(texts.get(id_.split("::", 1)[0]), id_)
            lines.append(ExpectationLine(id=id_, message=moved.message, before=before, after=after))
    return tuple(lines[:LISTED])


def _both_forms(file: ChangedText | None, id_: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lines of a test that differ between the two versions of its file."""
    if file is None:
        return (), ()
    old, new = (_lines_of_test(text, id_) for text in (file.before, file.after))
    if old is None and new is None:  # another language: what changed in the file
        old, new = ((text or "").splitlines() for text in (file.before, file.after))
    removed, added = [], []
    for line in difflib.ndiff(old or [], new or []):
        if line.startswith("- "):
            removed.append(line[2:].strip())
        elif line.startswith("+ "):
            added.append(line[2:].strip())
    return _some(removed), _some(added)


def _some(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(line for line in lines if line)[:SHOWN_LINES]


def _lines_of_test(text: str | None, id_: str) -> list[str] | None:
    """Return the lines of a Python test, decorators included; None if there is no such test."""
    name = id_.partition("::")[2].split("[", 1)[0]
    try:
        found = tests_of(parse(text or "")).get(name)
    except UnreadableSource:
        return None
    if not found:
        return None
    node = found[-1].node
    first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
    return (text or "").splitlines()[first - 1 : node.end_lineno]
