"""Contracts as JSON Schema files, and documents checked against their contracts."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from fairwitness.contracts.catalog import CatalogEntry, catalog
from fairwitness.contracts.common.problems import Problem, ProblemLevel, spell_path
from fairwitness.errors import BadDocument, FairWitnessError, Position, UsageError
from fairwitness.kit import files, json_text
from fairwitness.kit.documents import SUFFIXES, Document, Format, read
from fairwitness.kit.folder_trees import walk
from fairwitness.kit.limits import CHECKED, DEFAULT_LIMITS
from fairwitness.kit.text import visible
from fairwitness.rules.problem_words import LISTED, cut
from fairwitness.rules.validation import adapter, problems_in

_ENOUGH = 0.5
"""A document must show at least this share of a contract's signs; damaged ones may lack some."""

_SAME_FAMILY = {
    Format.YAML: ("yaml", "json"),
    Format.JSON: ("json", "yaml", "jsonl"),
    Format.JSONL: ("jsonl", "json"),
    Format.MARKDOWN: ("markdown",),
}


def recognise(value: Any, form: Format, source: str) -> CatalogEntry:
    """Return the contract of a document; raise `UsageError` unless exactly one fits."""
    sample = value[0] if form is Format.JSONL and value else value
    ranked = sorted(
        ((_likeness(entry, sample), entry) for entry in catalog().values() if entry.written_as in _SAME_FAMILY[form]),
        key=lambda pair: pair[0],
        reverse=True,
    )
    best = ranked[0][0]
    likely = [entry for likeness, entry in ranked if likeness == best and likeness[0] >= _ENOUGH]
    if len(likely) == 1:
        return likely[0]
    stem = PurePath(source).stem
    named = [
        entry for entry in (likely or catalog().values()) if stem in (entry.name, entry.name.removeprefix("autopilot-"))
    ]
    if len(named) == 1:
        return named[0]
    fitting = f" (it could be {' or '.join(entry.name for entry in likely)})" if likely else ""
    raise UsageError(
        f"{source}: cannot tell which contract this document follows{fitting}",
        next_step="name it with --as NAME; `fairwitness schema list` shows the names",
    )


def _likeness(entry: CatalogEntry, value: Any) -> tuple[float, int]:
    """Return how many of a contract's signs a document shows, as a share and as a number."""
    shown = sum(_shows(value, sign) for sign in entry.signs)
    positive = sum(_shows(value, sign) for sign in entry.signs if not sign.startswith("!"))
    if positive == 0:
        return (0.0, 0)
    return (shown / len(entry.signs), shown)


def _shows(value: Any, sign: str) -> bool:
    if sign.startswith("!"):
        return not _shows(value, sign[1:])
    way, _, wanted = sign.partition("=")
    for part in way.split("."):
        if part == "[]" and isinstance(value, list) and value:
            value = value[0]
        elif part == "*" and isinstance(value, dict) and value:
            value = next(iter(value.values()))
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            return False
    return not wanted or value in wanted.split("|")


_MODULE_PATH = re.compile(r"^(?:[a-z0-9_]+__)+(?=[A-Z])")
DIALECT = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True, slots=True)
class DocumentViolation:
    """A violation in a document with its position."""

    line: int
    column: int
    level: ProblemLevel
    field: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class DocumentReport:
    """The result of checking one file; `unread` says why it could not be checked."""

    path: str
    contract: str | None = None
    violations: tuple[DocumentViolation, ...] = ()
    unread: str | None = None
    next_step: str = ""

    @property
    def errors(self) -> int:
        """The number of violations that make the document invalid."""
        return sum(violation.level is ProblemLevel.ERROR for violation in self.violations)


def json_schema(entry: CatalogEntry) -> dict[str, Any]:
    """Return a contract as JSON Schema 2020-12."""
    schema = _without_module_paths(adapter(entry).json_schema())
    return {
        "$schema": DIALECT,
        "$id": f"urn:fairwitness:schema:{entry.name}:{entry.version}",
        "title": f"{entry.name} {entry.version}",
        **{key: value for key, value in schema.items() if key != "title"},
    }


def _without_module_paths(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with definitions named by class alone, so that moving a module changes no published schema.

    Pydantic puts the module in front of a class name that occurs twice, such as `RunStarted.Details`.
    """
    text = json.dumps(schema)
    short = {name: _MODULE_PATH.sub("", name) for name in schema.get("$defs", ())}
    if len(set(short.values())) != len(short):
        raise AssertionError(f"two definitions share a name: {sorted(short.values())}")
    for name, to in short.items():
        text = text.replace(f'"{name}"', f'"{to}"').replace(f'"#/$defs/{name}"', f'"#/$defs/{to}"')
    plain: dict[str, Any] = json.loads(text)
    return plain


def entry_named(name: str) -> CatalogEntry:
    """Return the contract of a name; raise `UsageError` if there is none."""
    if name not in catalog():
        raise UsageError(f"there is no contract called {visible(name)!r}", next_step="fairwitness schema list")
    return catalog()[name]


@dataclass(slots=True)
class SchemaExport:
    """The result of an export by file."""

    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def export(folder: Path, *, replace: bool = False) -> SchemaExport:
    """Write every contract's schema; an exported version with other content is kept unless `replace`."""
    done = SchemaExport()
    folder.mkdir(parents=True, exist_ok=True)
    for entry in catalog().values():
        name = f"{entry.name}-{entry.version}.json"
        content = json_text.render(json_schema(entry)).encode()
        target = folder / name
        present = target.read_bytes() if target.exists() else None
        if present == content:
            done.unchanged.append(name)
        elif present is not None and not replace:
            done.refused.append(name)
        else:
            files.replace_file(folder, name, content)
            done.written.append(name)
    return done


def check(paths: Iterable[Path], *, contract: str | None = None, strict: bool = False) -> list[DocumentReport]:
    """Check documents against their contracts; a folder means every document below it.

    A document that breaks its contract is invalid. A broken rule between fields (such as a wrong total) is a warning
    unless `strict`: some published examples break such rules.
    """
    entry = entry_named(contract) if contract else None
    return [_check_file(path, entry, strict=strict) for path in _documents_below(paths)]


def _documents_below(paths: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(
                inner
                for place, _, names in walk(path)
                for inner in map(Path(place).joinpath, names)
                if inner.suffix in SUFFIXES and inner.is_file() and not files.is_temporary(inner.name)
            )
        else:
            found.append(path)
    return found


def _check_file(path: Path, entry: CatalogEntry | None, *, strict: bool) -> DocumentReport:
    source = visible(str(path))
    form = SUFFIXES.get(path.suffix)
    if form is None and entry is not None:
        form = Format(entry.written_as)
    if form is None:
        known = ", ".join(SUFFIXES)
        return DocumentReport(
            source, unread=f"{source}: unsupported file type (supported: {known})", next_step="name it with --as NAME"
        )
    try:
        limits = DEFAULT_LIMITS if form is Format.JSONL else CHECKED
        document = read(files.read_given(path, limit=limits.bytes), form, limits=limits)
    except BadDocument as error:
        return DocumentReport(source, entry.name if entry else None, (_unreadable(error),))
    except FairWitnessError as error:
        return DocumentReport(source, unread=error.what, next_step=error.next_step)
    try:
        known_entry = entry or recognise(document.value, form, source)
    except UsageError as error:
        return DocumentReport(source, unread=error.what, next_step=error.next_step)
    return DocumentReport(source, known_entry.name, check_document(document, known_entry, strict=strict))


def _unreadable(error: BadDocument) -> DocumentViolation:
    return DocumentViolation(
        error.position.line,
        error.position.column,
        ProblemLevel.ERROR,
        "(document)",
        "a readable document",
        error.reason,
    )


def check_document(document: Document, entry: CatalogEntry, *, strict: bool = False) -> tuple[DocumentViolation, ...]:
    """Return all violations of a document: those of its schema, or else of its rules."""
    problems = _problems(document, entry, strict=strict)
    if not problems:
        return ()
    positions = document.positions([problem.where for problem in problems])
    return tuple(
        _violation(problem, position)
        for position, problem in sorted(zip(positions, problems, strict=True), key=lambda pair: _order(pair[0]))
    )


def _problems(document: Document, entry: CatalogEntry, *, strict: bool) -> tuple[Problem, ...]:
    """Return all problems of a document; for JSON lines, of each line."""
    if document.format is not Format.JSONL:
        return problems_in(document.value, entry, strict=strict)
    found: list[Problem] = []
    for index, value in enumerate(document.value):
        found += (
            problem.model_copy(update={"where": (index, *problem.where)})
            for problem in problems_in(value, entry, strict=strict)
        )
        if len(found) > LISTED:
            break
    return cut(found, len(found))


def _order(position: Position) -> tuple[int, int]:
    return (position.line, position.column)


def _violation(problem: Problem, position: Position) -> DocumentViolation:
    return DocumentViolation(
        position.line,
        position.column,
        problem.level,
        visible(spell_path(problem.where)),
        visible(problem.expected),
        visible(problem.found),
    )
