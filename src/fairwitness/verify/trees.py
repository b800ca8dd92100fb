"""The trees that are asked about besides the base and the head.

*Protected*: the new code under the base's own tests and rules. Tests, their configuration and linter settings stand in
their old form, what the change adds to them is absent; other configuration stays new unless an inspection found that
it loosens something. *Red*: the old code with the new tests. Rust keeps unit tests in the file they test: there the two
parts of a file are put together anew.
"""

import re
from collections.abc import Callable, Collection

from fairwitness.git.changes import FileChange
from fairwitness.git.objects import TreeEntry
from fairwitness.git.shadow import Shadow
from fairwitness.rules.oracle import PathKind, is_oracle, kind_of_path

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
    """The head's tree with the base's oracle files; the head's own tree if there is nothing to protect."""
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
    """The base's tree with the head's tests."""
    changes: dict[str, TreeEntry | None] = {}
    for file in files:
        if kind_of_path(file.path) in _WITH_TESTS:
            changes[file.path] = file.new_entry
        elif (mixed := _rust(shadow, code=file.old_entry, tests=file.new_entry, path=file.path)) is not None:
            changes[file.path] = mixed
    return shadow.compose(base, changes) if changes else base


def production(files: tuple[FileChange, ...]) -> tuple[FileChange, ...]:
    """The changed files that the product is made of."""
    return tuple(file for file in files if kind_of_path(file.path) is PathKind.PRODUCTION)


def _rust(shadow: Shadow, *, code: TreeEntry | None, tests: TreeEntry | None, path: str) -> TreeEntry | None:
    """A file of one version's code and another's unit tests; None if there is nothing to put together."""
    if not path.endswith(".rs") or code is None or tests is None:
        return None
    code_text, test_text = (shadow.blob(entry.id, limit=TEXT_LIMIT).decode(errors="replace") for entry in (code, tests))
    code_cut, test_cut = (_RUST_TESTS.search(text) for text in (code_text, test_text))
    if code_cut is None or test_cut is None:
        return None
    mixed = code_text[: code_cut.start()] + test_text[test_cut.start() :]
    return None if mixed == code_text else code._replace(id=shadow.add_blob(mixed.encode()))
