"""Cassette files: their names, how they are read and written, and the placeholder for the worktree in them."""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from fairwitness.agents.normalization import digest, normalize
from fairwitness.contracts.agents.cassette import CassetteHeader, CassetteTurn
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.ids import is_safe_name
from fairwitness.contracts.common.tools import Role
from fairwitness.errors import BadDocument, Position, UsageError
from fairwitness.kit.documents import Document, Format, read, render
from fairwitness.kit.files import read_given
from fairwitness.kit.limits import DocumentLimits

LIMITS = DocumentLimits(bytes=32 << 20, nodes=1_000_000)
NO_PROMPT = "sha256:" + "0" * 64
"""The digest in a recording that was written by hand, without a prompt."""
ROOT = "{root}"
"""Placeholder for the worktree; a literal `{root` in a text is recorded as `{root=`."""
_MARKS = re.compile(r"\{root([=}])")
_SAFE = re.compile(r"[^A-Za-z0-9_-]+")

C = TypeVar("C", bound=Contract)


@dataclass(frozen=True, slots=True)
class Cassette:
    """A recorded session."""

    header: CassetteHeader
    turns: tuple[CassetteTurn, ...]


def name_of(role: Role, instance: str, number: int) -> str:
    """Return the file name of the n-th session of a role and instance, counted from 1.

    >>> name_of(Role.IMPLEMENTER, "task-01", 1), name_of(Role.SPEC, "a/../b", 2)
    ('implementer.task-01.1.jsonl', 'spec.a-b-900ea8b7.2.jsonl')
    """
    if not is_safe_name(instance) or len(instance) > 64:
        mark = hashlib.sha256(instance.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        instance = f"{_SAFE.sub('-', instance)[:40]}-{mark}"
    return f"{role.value}.{instance}.{number}.jsonl"


def load(path: Path) -> Cassette:
    """Return the cassette in a file; `BadDocument` names the line that is wrong."""
    return parse(read_given(path, limit=LIMITS.bytes), source=str(path))


def parse(data: bytes, *, source: str = "") -> Cassette:
    """Return the cassette in some bytes."""
    document = read(data, Format.JSONL, source=source, limits=LIMITS)
    if not document.value:
        raise BadDocument("a cassette begins with a header, and this file is empty", Position(1, 1), source=source)
    header = _line(document, 0, CassetteHeader, "the header of a cassette", source)
    turns = [
        _line(document, index, CassetteTurn, "a turn of a cassette", source) for index in range(1, len(document.value))
    ]
    for index, turn in enumerate(turns):
        if turn.turn != index:
            reason = f"expected turn {index}, found turn {turn.turn}"
            raise BadDocument(reason, Position(index + 2, 1), source=source)
    return Cassette(header, tuple(turns))


def _line(document: Document, index: int, contract: type[C], what: str, source: str) -> C:
    try:
        return contract.model_validate(document.value[index])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        position = document.positions([(index, *first["loc"])])[0]
        field = ".".join(map(str, first["loc"]))
        reason = f"not {what}: {field + ': ' if field else ''}{first['msg']}"
        raise BadDocument(reason, position, source=source) from None


def spell(cassette: Cassette) -> bytes:
    """Return the bytes of a cassette file; `UsageError` if they could not be read again."""
    lines = [cassette.header.plain(), *(turn.plain() for turn in cassette.turns)]
    try:
        data = render(lines, Format.JSONL).encode()
        parse(data)
    except (BadDocument, ValueError) as error:  # half of a surrogate pair, or a number that is not JSON
        raise UsageError(f"the recording cannot be written down: {error}", next_step="record it again") from None
    return data


def packed(value: Any, root: Path) -> Any:
    """Return a value with the worktree's path replaced by the placeholder in all texts, including keys.

    >>> packed({"path": "/tmp/w/a.py", "content": "f'{root}'"}, Path("/tmp/w"))
    {'path': '{root}/a.py', 'content': "f'{root=}'"}
    """
    # a folder whose name only begins the same is another folder
    here = re.compile(f"{re.escape(str(root))}(?![\\w-]|\\.\\w)")
    return _texts(value, lambda text: here.sub(ROOT, text.replace("{root", "{root=")))


def unpacked(value: Any, root: Path) -> Any:
    """Return a value with the placeholder replaced by a worktree's path.

    >>> unpacked({"path": "{root}/a.py", "content": "f'{root=}'"}, Path("/srv/x"))
    {'path': '/srv/x/a.py', 'content': "f'{root}'"}
    """
    return _texts(value, lambda text: _MARKS.sub(lambda mark: str(root) if mark[1] == "}" else "{root", text))


def _texts(value: Any, change: Any) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return {_texts(key, change): _texts(item, change) for key, item in value.items()}
        case list() | tuple():
            return [_texts(item, change) for item in value]
        case _:
            return value


def seen(results: Iterable[tuple[bool, str]], root: Path) -> str:
    """Return a digest of the results that a model was shown since its last turn, without prompts.

    The text of a prompt changes with every release, and a replay does not repeat what it changes in a model. The header
    holds a digest of the first prompt, so that a replay can report another one.
    """
    return digest([f"{'ok' if ok else 'no'}\n{normalize(text, root=str(root))}" for ok, text in results])


def prompt_digest(prompt: str, root: Path) -> str:
    """Return a digest of a prompt that is the same on every machine and every day."""
    return digest([normalize(prompt, root=str(root))])


def schema_digest(schema: dict[str, Any]) -> str:
    """Return a digest of an answer's schema."""
    return digest([json.dumps(schema, sort_keys=True)])


def summary_of_results(results: Sequence[tuple[bool, str]], root: Path) -> str:
    """Return the beginning of each result, to show a person where two runs differ."""
    firsts = [f"{'ok' if ok else 'not ok'}: {normalize(text, root=str(root)).strip()[:80]!r}" for ok, text in results]
    return "; ".join(firsts[:5]) + ("; …" if len(firsts) > 5 else "") if firsts else "nothing"
