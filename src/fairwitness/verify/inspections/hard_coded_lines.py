"""Written-out answers in other languages, by lines: `if`, `?:`, `case`, match arms, and tables with quoted keys."""

import re
from collections.abc import Iterator, Sequence

from fairwitness.verify.inspections.hard_coded import Entry
from fairwitness.verify.inspections.literals import NUMBER, STRING, Atom, Atoms, number_atom
from fairwitness.verify.inspections.model import clipped

_LITERAL = rf"(?:{STRING}|{NUMBER})[fFuUlL]{{0,3}}"
_NAME = r"(?<!\w)[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*(?:\(\))?|\[\w{1,20}\]){0,4}"
_EQUAL = re.compile(
    rf"(?P<name>{_NAME})\s*===?\s*(?P<value>{_LITERAL})|(?P<value2>{_LITERAL})\s*===?\s*(?P<name2>{_NAME})"
    rf"|(?P<name3>{_NAME})\.equals(?:IgnoreCase)?\(\s*(?P<value3>{STRING})\s*\)"
    rf"|\bstrn?cmp\(\s*(?P<name4>{_NAME})\s*,\s*(?P<value4>{STRING})[^)]{{0,20}}\)\s*==\s*0"
    rf"|!\s*strn?cmp\(\s*(?P<name5>{_NAME})\s*,\s*(?P<value5>{STRING})"
)
_ANSWER = rf"(?:[A-Za-z_][\w:]{{0,40}}[(!]\(?\s*){{0,2}}(?P<answer>{_LITERAL}|true|false)\s*(?:\.\w+\(\))?\s*\)*"
_RETURN = re.compile(rf"\breturn\s+\(?\s*{_ANSWER}\s*;?")
_BARE = re.compile(rf"\s*{_ANSWER}\s*;?\s*(?:\}}.*)?$")
_BRACED = re.compile(rf"\{{\s*(?:return\s+)?{_ANSWER}\s*;?\s*\}}")
_TERNARY = re.compile(rf"\?\s*{_ANSWER}\s*:")
_CASE = re.compile(rf"^\s*(?:case|when)\s+(?P<keys>{_LITERAL}(?:\s*,\s*{_LITERAL}){{0,8}})\s*(?::|->|=>)")
_ARM = re.compile(rf"^\s*(?P<keys>\(?\s*{_LITERAL}(?:\s*[,|]\s*{_LITERAL}){{0,8}}\s*\)?)\s*=>\s*{_ANSWER}\s*,?\s*$")
_PAIR = re.compile(rf"^\s*\[?(?P<keys>{STRING}|{NUMBER})\]?\s*:\s*{_ANSWER}\s*,?\s*$")
_ONE = re.compile(rf"(?P<string>{STRING})|(?P<number>{NUMBER})")
_FIELDS = re.compile(
    r".*(?:\.|->|::)(?:status|statusCode|status_code|code|type|kind|key|keyCode|errno|method|tag|nodeName|tagName|"
    r"length|len\(\)|size\(\)|size)"
)
"""Parts of something bigger that are compared with well-known values all the time."""
_NEAR = 4
"""Lines between siblings."""


def line_entries(code: Sequence[str]) -> Iterator[Entry]:
    """Every entry of a text whose comments are gone."""
    family = 0
    last: dict[str, int] = {}
    for number, whole in enumerate(code, 1):
        line = clipped(whole)
        for kind, keys, answer, answered_at in _on_line(line, code, number):
            if number - last.get(kind, -100) > _NEAR:
                family += 1
            last[kind] = answered_at
            result = _atom(answer)
            if result is not None:
                bypasses = kind == "branch" and result[0] != "b"
                yield Entry(
                    number, frozenset({number, answered_at}), keys, (result,), (kind, family), kind == "table", bypasses
                )


def _on_line(line: str, code: Sequence[str], number: int) -> Iterator[tuple[str, Atoms, str, int]]:
    arm, case, pair = _ARM.match(line), _CASE.match(line), _PAIR.match(line)
    if arm:
        yield "table", _keys(arm.group("keys")), arm.group("answer"), number
    elif pair:
        yield "table", _keys(pair.group("keys")), pair.group("answer"), number
    elif case:
        answer = _answer(line[case.end() :], code, number, bare=False)
        if answer:
            yield "table", _keys(case.group("keys")), *answer
    else:
        yield from _branch(line, code, number)


def _branch(line: str, code: Sequence[str], number: int) -> Iterator[tuple[str, Atoms, str, int]]:
    keys: list[Atom] = []
    end = 0
    for match in _EQUAL.finditer(line):
        name = next(value for key, value in match.groupdict().items() if key.startswith("name") and value)
        value = next(value for key, value in match.groupdict().items() if key.startswith("value") and value)
        known = _atom(value)
        if known and not _FIELDS.fullmatch(name):
            keys.append(known)
            end = match.end()
    if not keys:
        return
    rest = line[end:]
    ternary = _TERNARY.search(rest)
    if ternary:
        yield "branch", tuple(keys), ternary.group("answer"), number
    elif re.search(r"\bif\b", line[:end]) and (answer := _answer(rest, code, number, bare=True)):
        yield "branch", tuple(keys), *answer


def _answer(rest: str, code: Sequence[str], number: int, *, bare: bool) -> tuple[str, int] | None:
    """The answer after a condition, on its line or on one of the next two."""
    here = _RETURN.search(rest) or _BRACED.search(rest)
    if here:
        return here.group("answer"), number
    following = [(at, clipped(code[at - 1])) for at in range(number + 1, min(number + 3, len(code) + 1))]
    for at, line in following:
        if not line.strip():
            continue
        there = _RETURN.match(line.lstrip()) or (_BARE.match(line) if bare else None)
        return (there.group("answer"), at) if there else None
    return None


def _keys(text: str) -> Atoms:
    return tuple(atom for match in _ONE.finditer(text) if (atom := _atom(match.group())) is not None)


def _atom(text: str) -> Atom | None:
    if text in {"true", "false"}:
        return ("b", text == "true")
    if text[:1] in "\"'`":
        return ("s", text[1:-1])
    match = _ONE.match(text)
    return number_atom(match.group()) if match else None
