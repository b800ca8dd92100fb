"""Finds the answer in an agent's last message, fills in the fields that we know, and validates it against its contract.

The last block counts: agents think aloud, quote examples and correct themselves. A tagged block that cannot be parsed
is an invalid answer; an earlier block does not replace it.
"""

import copy
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from fairwitness.contracts.catalog import entry_of
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.problems import ProblemLevel, spell_path
from fairwitness.contracts.common.vocabulary import CompletionStatus
from fairwitness.errors import BadDocument
from fairwitness.kit.documents import Format, read
from fairwitness.kit.limits import CHECKED
from fairwitness.kit.redaction import redact_values
from fairwitness.kit.text import visible
from fairwitness.rules.derived_fields import fill, with_derived
from fairwitness.rules.validation import validated

MOST_TEXT = 1 << 20
"""Characters at the end of a text that are searched."""
_MOST_OBJECTS = 5_000
_FENCE = re.compile(r"^(`{3,}|~{3,})[ \t]*([A-Za-z]*)[^\n]*$")
_TAGS = {"json": Format.JSON, "yaml": Format.YAML, "yml": Format.YAML}
NO_ANSWER = "there is no JSON or YAML block in it"
EMPTY = "it is empty: there is no word in it"


class FoundAnswer(NamedTuple):
    """A mapping found in a text, or the reason why there is none."""

    value: dict[str, Any] | None
    problem: str = ""


class ReadAnswer(NamedTuple):
    """An answer with its known fields filled in, and every problem with it."""

    value: dict[str, Any] | None
    problems: tuple[str, ...]
    document: Contract | None = None
    """It as its contract, for further checks; None if it has not its shape."""


class _Block(NamedTuple):
    tag: str
    text: str


def read_answer(
    text: str,
    submitted: Mapping[str, Any] | None,
    contract: str,
    known: Mapping[str, Any],
    statuses: Collection[CompletionStatus] = (),
) -> ReadAnswer:
    """Return an agent's answer, without secrets, and every problem with it; a submitted answer takes precedence."""
    found = _submitted(submitted) if submitted is not None else find_answer(text)
    if found.value is None:
        return ReadAnswer(None, (found.problem,))
    value = with_derived(contract, with_known(redact_values(found.value), known))
    document, found_problems = validated(value, entry_of(contract), strict=True)
    problems = tuple(
        visible(f"{spell_path(problem.where)}: expected {problem.expected}, found {problem.found}")
        for problem in found_problems
        if problem.level is ProblemLevel.ERROR
    )
    return ReadAnswer(value, (*problems, *_status_problems(value, statuses)), document)


def _submitted(value: Mapping[str, Any]) -> FoundAnswer:
    """Return a submitted answer within the limits of a document; it came through a parser that has none."""
    try:
        text = json.dumps(value)
    except RecursionError:
        return FoundAnswer(None, f"the submitted answer is nested deeper than {CHECKED.depth} levels")
    return _mapping(text, Format.JSON, "submitted answer")


def _status_problems(value: Mapping[str, Any], statuses: Collection[CompletionStatus]) -> tuple[str, ...]:
    completion = value.get("completion")
    said = completion.get("status") if isinstance(completion, dict) else None
    if not statuses or said is None or said in {status.value for status in statuses}:
        return ()
    allowed = " or ".join(status.value for status in statuses)
    return (visible(f"completion.status: expected {allowed}, found '{said}'"),)


def with_known(value: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value with the known fields set; a dotted path that leads through something else is skipped.

    In the entries of a list (`a[].b`) a field is set only where it is missing.

    >>> with_known({"a": {"b": 1}}, {"a.b": 2, "a.c": 3})
    {'a': {'b': 2, 'c': 3}}
    """
    answer = copy.deepcopy(dict(value))
    for way, content in known.items():
        fill(answer, way, content, only_missing="[]" in way)
    return answer


def find_answer(text: str) -> FoundAnswer:
    """Return the last JSON or YAML mapping of a text.

    >>> find_answer('Done.\\n```json\\n{"a": 1}\\n```\\nBye.').value
    {'a': 1}
    """
    text = text[-MOST_TEXT:].replace("\r\n", "\n")
    for block in reversed(list(_blocks(text))):
        form = _TAGS.get(block.tag.lower())
        if form is not None:
            return _mapping(block.text, form)
        if not block.tag:
            found = _untagged(block.text)
            if found.value is not None:
                return found
    bare = _last_object(text)
    if bare is not None:
        return _mapping(bare, Format.JSON)
    whole = _untagged(text)
    return whole if whole.value is not None else FoundAnswer(None, NO_ANSWER if text.strip() else EMPTY)


def _blocks(text: str) -> Iterator[_Block]:
    """Yield the fenced blocks in order; a block that is never closed reaches to the end."""
    fence, tag, inside = "", "", list[str]()
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if not fence:
            if match is not None:
                fence, tag, inside = match[1], match[2], []
        elif match is not None and match[1].startswith(fence) and not line[len(match[1]) :].strip():
            yield _Block(tag, "\n".join(inside))
            fence = ""
        else:
            inside.append(line)
    if fence and inside:
        yield _Block(tag, "\n".join(inside))


def _mapping(text: str, form: Format, name: str = "") -> FoundAnswer:
    name = name or f"{form.value} block"
    try:
        value = read(text.encode("utf-8", "replace"), form, limits=CHECKED).value
    except BadDocument as error:
        return FoundAnswer(None, f"the {name} cannot be read: {visible(error.what)}")
    if not isinstance(value, dict):
        return FoundAnswer(None, f"the {name} is not a mapping of fields")
    return FoundAnswer(value)


def _untagged(text: str) -> FoundAnswer:
    """Return a mapping from a block without a language tag; plain prose with a colon is not one."""
    stripped = text.strip()
    if stripped.startswith("{"):
        return _mapping(stripped, Format.JSON)
    lines = stripped.splitlines()
    if len(lines) < 2 or not re.match(r"[A-Za-z_][\w-]*:(\s|$)", lines[0]):
        return FoundAnswer(None, NO_ANSWER)
    return _mapping(stripped, Format.YAML)


def _last_object(text: str) -> str | None:
    """Return the last JSON object of a text outside a fence, with the objects nested in it."""
    decoder = json.JSONDecoder()
    at, last = 0, None
    for _ in range(_MOST_OBJECTS):
        at = text.find("{", at)
        if at < 0:
            break
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        last, at = text[at:end], end
    return last
