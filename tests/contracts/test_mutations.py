"""Ten thousand damaged documents are each taken or refused at a place, and nothing else ever happens.

Every mutation has a number that is its seed: `_mutated(4711)` makes the same document again.
"""

import contextlib
import copy
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from fairwitness.app.schemas import check_document, recognise
from fairwitness.contracts.catalog import entry_of
from fairwitness.contracts.common.problems import ProblemLevel
from fairwitness.errors import BadDocument, UsageError
from fairwitness.kit.documents import SUFFIXES, Document, Format, read, render
from support.fixtures import SEEDS, instances

_CHUNKS, _PER_CHUNK = 10, 1000
_HOW_OFTEN = (1, 1, 1, 2, 3)

TOKENS = (
    *(b"&a ", b"*a", b"!!python/object:os.system ", b"<<: {a: 1}\n", b"---\n", b"...\n", b"%YAML 1.2\n", b"? ", b"- "),
    *(
        b"[",
        b"]",
        b"{",
        b"}",
        b"[" * 70,
        b'{"a":' * 70,
        b",",
        b":",
        b": ",
        b"#",
        b" #",
        b"|",
        b">",
        b"\t",
        b"\n",
        b"  ",
    ),
    *(
        b'"',
        b"'",
        b"\\",
        b"\\u0000",
        b"\\ud800",
        b"\\x",
        b"\0",
        b"\x1b[31m",
        b"\x7f",
        b"\xff",
        b"\xc0\xaf",
        b"\xed\xa0\x80",
    ),
    *(b"NaN", b"Infinity", b".inf", b".nan", b"1e999", b"9" * 40, b"9" * 70, b"-", b"0x" + b"f" * 30, b"null", b"~"),
    *(
        b"\xef\xbb\xbf",
        b"\xc2\x85",
        b"\xe2\x80\xa8",
        b"\xe2\x80\xae",
        "🟢".encode(),
        "é".encode(),
        b"\r",
        b"\r\n",
        b"x" * 3000,
    ),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**63 - 1, 2**63, -(10**30), 10**70, 0.0, 0.5, 1.0, 8, 1e308, -0.0),
    *(
        "",
        " ",
        "x",
        "no",
        "null",
        "1",
        "1.0",
        "../../etc/passwd",
        "/abs",
        "a\nb",
        "\u202e",
        "🟢",
        "x" * 3000,
        "task-01",
    ),
    *([], {}, [None], [[]], [{}], {"": None}, {"a": {"b": []}}, ["x"] * 50, [1, "x", None, {}], "DONE", "approve"),
)


class Mutation(NamedTuple):
    """One damaged document, and the contract it once followed."""

    file: str
    contract: str
    form: Format
    data: bytes


def _span(rng: Random, data: bytes, longest: int = 60) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.randint(1, longest))


def _flip(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _delete(rng: Random, data: bytes) -> bytes:
    start, end = _span(rng, data)
    return data[:start] + data[end:]


def _duplicate(rng: Random, data: bytes) -> bytes:
    start, end = _span(rng, data, 200)
    return data[:end] + data[start:end] + data[end:]


def _splice(rng: Random, data: bytes) -> bytes:
    other = _originals()[rng.randrange(len(_originals()))].data
    start, end = _span(rng, other, 200)
    at, until = _span(rng, data, 100)
    return data[:at] + other[start:end] + data[until:]


def _insert(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(TOKENS) + data[at:]


def _cut(rng: Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def _move_line(rng: Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    line = lines.pop(rng.randrange(len(lines)))
    lines.insert(rng.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


_BYTE_CHANGES: tuple[Callable[[Random, bytes], bytes], ...] = (
    *(_flip, _delete, _duplicate, _splice, _insert, _cut, _move_line),
)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a value, as what holds it and the step to it."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        steps = inner if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        for step in steps:
            found.append((inner, step))
            waiting.append(inner[step])
    return found


def _change_value(rng: Random, value: Any) -> None:
    places = _places(value)
    if not places:
        return
    holder, step = rng.choice(places)
    match rng.randrange(6):
        case 0:
            del holder[step]
        case 1 if isinstance(holder, dict):
            holder[rng.choice(("", "x", f"{step}_", str(step).upper(), "<<", "payload"))] = holder.pop(step)
        case 2:
            other, otherwise = rng.choice(places)
            with contextlib.suppress(KeyError, IndexError):  # it was taken away with what held it
                holder[step] = copy.deepcopy(other[otherwise])
        case 3 if isinstance(holder, list):
            holder.append(copy.deepcopy(holder[step]))
        case 4:
            holder[step] = [holder[step]]
        case _:
            holder[step] = copy.deepcopy(rng.choice(VALUES))


def _restructured(rng: Random, original: Mutation) -> bytes:
    value = copy.deepcopy(read(original.data, original.form).value)
    for _ in range(rng.choice(_HOW_OFTEN)):
        _change_value(rng, value)
    if original.form is Format.MARKDOWN:
        body = value.pop("body", "")
        return f"---\n{render(value, Format.YAML)}---\n{body}".encode()
    return render(value, original.form).encode()


@cache
def _originals() -> tuple[Mutation, ...]:
    """Every fixture; events and spans of traces also as lines, since they are kept that way."""
    found = []
    for file, contract in instances():
        original = Mutation(file, contract, SUFFIXES[Path(file).suffix], (SEEDS / file).read_bytes())
        found.append(original)
        if original.form is Format.JSON and contract.endswith(("-event", "-envelope", "-span")):
            value = read(original.data, Format.JSON).value
            found.append(original._replace(form=Format.JSONL, data=render([value, value], Format.JSONL).encode()))
    return tuple(found)


def _mutated(number: int) -> Mutation:
    rng = Random(f"mutation {number}")
    original = _originals()[number % len(_originals())]
    data = original.data
    while data == original.data:
        kind = rng.random()
        data = _restructured(rng, original) if kind < 0.6 else original.data
        for _ in range(rng.choice(_HOW_OFTEN) if kind > 0.5 else 0):
            data = rng.choice(_BYTE_CHANGES)(rng, data) if data else original.data
    return original._replace(data=data)


def _outcome(mutation: Mutation, *, strict: bool) -> str:
    try:
        document = read(mutation.data, mutation.form, source=mutation.file)
    except BadDocument as error:
        refusal = error
    else:
        return _checked(document, mutation, strict=strict)
    assert refusal.reason
    _is_place(refusal.position.line, refusal.position.column, mutation.data)
    return "unreadable"


def _checked(document: Document, mutation: Mutation, *, strict: bool) -> str:
    with contextlib.suppress(UsageError):  # no contract looks like it any more, which is an answer
        recognise(document.value, mutation.form, mutation.file)
    violations = check_document(document, entry_of(mutation.contract), strict=strict)
    for violation in violations:
        assert violation.field
        assert violation.expected
        assert violation.found
        _is_place(violation.line, violation.column, mutation.data)
    if any(violation.level is ProblemLevel.ERROR for violation in violations):
        return "refused"
    return "accepted"


def _is_place(line: int, column: int, data: bytes) -> None:
    assert 1 <= line <= data.count(b"\n") + data.count(b"\r") + 2
    assert 1 <= column <= len(data) + 1


@pytest.mark.req("P1")
@pytest.mark.req("A1")
@pytest.mark.req("F3")
@pytest.mark.parametrize("chunk", range(_CHUNKS))
def test_a_thousand_mutated_documents_are_taken_or_refused_at_a_place(chunk: int) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(chunk * _PER_CHUNK, (chunk + 1) * _PER_CHUNK):
        mutation = _mutated(number)
        try:
            outcomes[_outcome(mutation, strict=number % 2 == 0)] += 1
        except Exception as error:  # noqa: BLE001  # whatever it is, it must be told with the number that repeats it
            pytest.fail(f"mutation {number} of {mutation.file} raised {error!r}")
    assert outcomes.total() == _PER_CHUNK
    assert min(outcomes[name] for name in ("unreadable", "refused", "accepted")) > 25, outcomes


def test_a_number_makes_the_same_document_again_and_different_from_the_original() -> None:
    originals = {(original.file, original.form): original.data for original in _originals()}
    for number in range(0, _CHUNKS * _PER_CHUNK, 97):
        mutation = _mutated(number)
        assert mutation == _mutated(number)
        assert mutation.data != originals[mutation.file, mutation.form]


def test_every_fixture_is_mutated_and_there_are_ten_thousand_mutations() -> None:
    assert _CHUNKS * _PER_CHUNK == 10_000
    assert {_mutated(number).file for number in range(len(_originals()))} == {file for file, _ in instances()}
