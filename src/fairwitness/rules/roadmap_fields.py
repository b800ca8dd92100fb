"""The fields below a phase's heading: type, goal, dependencies, requirements and success criteria.

Each reader returns a value and all problems of its field. An ambiguous field is refused, with one exception: existing
templates write "Phase N-1 (independent)" for a phase without dependencies.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from fairwitness.contracts.autopilot.context_map import Sufficiency
from fairwitness.contracts.autopilot.roadmap import Criterion, LineProblem, Requirement, RequirementId, at_line
from fairwitness.contracts.autopilot.vocabulary import PhaseType
from fairwitness.contracts.common.problems import ProblemLevel
from fairwitness.rules.markdown_lines import MarkdownLine, item_of

NOTHING = frozenset({"nothing", "none", "n/a", "-", "–", "—", "independent", "no phase", "no dependencies"})
"""Words for "no dependencies"."""
_STUBS = frozenset(word.casefold().strip("[]") for word in Sufficiency().stub_patterns)

_NUMBER = re.compile(r"([0-9]{1,6})(?:\.([0-9]{1,6}))?")
_BOX = re.compile(r"\[[ xX]\](?:[ \t]+|$)")
_TICKS = re.compile(r"`+")
_VERIFIED = re.compile(r"(?:^|(?<=[\s(,;.:*_—–-]))[*_]*verified by[*_]*:?[*_]*$", re.IGNORECASE)
_ID = re.compile(r"[A-Za-z0-9._-]+")
_OPENERS, _CLOSERS = "([", ")]"


class RoadmapField(NamedTuple):
    """A field: the line of its label, the text after the label, and the lines below."""

    line: int
    value: str
    below: tuple[MarkdownLine, ...]


class ListItem(NamedTuple):
    """One entry of a field; `inline` if it follows the label and may hold several, separated by commas."""

    line: int
    text: str
    inline: bool


def plain(text: str) -> str:
    """Return the text with normalized white space."""
    return " ".join(text.split())


def phase_id_of(text: str) -> str | None:
    """Return the phase id of a number without leading zeros, or None; letters denote the parts of a split phase.

    >>> [phase_id_of(text) for text in ("06", "6.1", "6a", "٣", "1e3", "")]
    ['6', '6.1', None, None, None, None]
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    return str(int(match[1])) + ("" if match[2] is None else f".{int(match[2])}")


def _unboxed(text: str) -> str:
    box = _BOX.match(text)
    return text if box is None else text[box.end() :]


def is_stub(text: str) -> bool:
    """Return True if a text is only a placeholder."""
    return text.casefold().strip("[].") in _STUBS


def paragraph(field: RoadmapField) -> str:
    """Return the text of a field up to the first empty line."""
    words = [field.value] if field.value else []
    for line in field.below:
        if not line.text and words:
            break
        words.append(line.text)
    return plain(" ".join(words))


def items(field: RoadmapField) -> tuple[ListItem, ...]:
    """Return the entries of a field: the text after its label, then each entry of the list below.

    Continuation lines and nested lists belong to the entry; a separate paragraph belongs to none.
    """
    # Texts are joined once at the end: an entry of a hundred thousand lines must not be copied for each of them.
    found = [(field.line, True, [field.value])] if field.value else []
    margin: int | None = None
    goes_on = bool(found)
    for line in field.below:
        text = item_of(line.text)
        if not line.text:
            goes_on = False
        elif text is not None and (margin is None or line.indent <= margin + 1):
            margin = line.indent if margin is None else min(margin, line.indent)
            found.append((line.number, False, [text]))
            goes_on = True
        elif goes_on or (margin is not None and line.indent > margin):
            words = found[-1][2]
            words.append(f" {line.text}" if text is None else f"; {text}" if words[-1] else text)
            goes_on = True
    return tuple(ListItem(line, "".join(words).strip(), inline) for line, inline, words in found)


def type_of(field: RoadmapField) -> tuple[PhaseType | None, tuple[LineProblem, ...]]:
    """Return the type of a phase."""
    word = paragraph(field).strip("`*[]").casefold()
    try:
        return PhaseType(word), ()
    except ValueError:
        return None, (at_line(field.line, "one of " + ", ".join(PhaseType), word),)


def dependencies(field: RoadmapField) -> tuple[tuple[str, ...], tuple[LineProblem, ...]]:
    """Return the phases that this one depends on."""
    entries = [(item.line, entry) for item in items(field) for entry in _parted(_unwrapped(item.text))]
    if not entries:
        return (), (at_line(field.line, 'phases such as "Phase 3", or "Nothing"', ""),)
    found: list[str] = []
    problems = []
    for line, entry in entries:
        name, note = _noted(entry)
        phase_id = phase_id_of(re.sub(r"^phase\s+", "", name, flags=re.IGNORECASE))
        if note.casefold().startswith("independent"):
            hint = '"Nothing" for a phase that waits for none; the named phase is not waited for'
            problems.append(at_line(line, hint, entry, ProblemLevel.WARNING))
        elif name.casefold() in NOTHING and len(entries) == 1:
            return (), ()
        elif phase_id is None:
            problems.append(at_line(line, 'phases such as "Phase 3, Phase 4.1 (note)", or "Nothing" alone', entry))
        else:
            found.append(phase_id)
    return tuple(dict.fromkeys(found)), tuple(problems)


def _unwrapped(text: str) -> str:
    inner = text.strip().rstrip(".")
    wrapped = inner.startswith("[") and inner.endswith("]") and inner.count("[") == 1
    return inner[1:-1] if wrapped else inner


def _parted(text: str) -> Iterator[str]:
    """Split at commas outside of brackets."""
    depth, start = 0, 0
    for place, sign in enumerate(text):
        depth = max(0, depth + (sign in _OPENERS) - (sign in _CLOSERS))
        if sign == "," and depth == 0:
            yield plain(text[start:place])
            start = place + 1
    yield plain(text[start:])


def _noted(entry: str) -> tuple[str, str]:
    """Split an entry from the note in brackets after it."""
    opened = min((entry.index(sign) for sign in _OPENERS if sign in entry), default=len(entry))
    return entry[:opened].strip("*` "), entry[opened:].strip("()[] ")


def requirements(field: RoadmapField) -> tuple[tuple[Requirement, ...], tuple[LineProblem, ...]]:
    """Return the requirements of a phase, each with its id."""
    found: dict[str, Requirement] = {}
    problems = []
    for item in items(field):
        for entry in _parted(_unwrapped(item.text)) if item.inline else [plain(item.text)]:
            if item.inline and (entry.casefold() in NOTHING or is_stub(entry)):
                continue
            requirement = _requirement(_unboxed(entry))
            if requirement is None:
                problems.append(at_line(item.line, "an id such as REQ-01, and then what it asks for", entry))
            elif requirement.id in found:
                problems.append(at_line(item.line, "each requirement once", requirement.id))
            else:
                found[requirement.id] = requirement
    return tuple(found.values()), tuple(problems)


_REQUIREMENT_ID: TypeAdapter[str] = TypeAdapter(RequirementId)


def _requirement(entry: str) -> Requirement | None:
    match = _ID.match(entry.lstrip("*`"))
    try:
        name = _REQUIREMENT_ID.validate_python("" if match is None else match.group().rstrip("._-"))
    except ValidationError:
        return None
    rest = entry.lstrip("*`")[len(name) :].lstrip("*` :-–—")
    if rest.startswith("(") and rest.endswith(")"):
        rest = rest[1:-1].strip()
    return Requirement(id=name, text=rest or None)


def criteria(field: RoadmapField) -> tuple[tuple[Criterion, ...], tuple[LineProblem, ...]]:
    """Return the success criteria; a placeholder cannot be verified and gives a warning."""
    entries = items(field)
    if len(entries) > 1 and entries[0].inline and entries[0].text.startswith("(") and entries[0].text.endswith(")"):
        entries = entries[1:]  # a remark on the list, as in "(what must be true)"
    if len(entries) == 1 and is_stub(plain(entries[0].text)):
        return (), (at_line(field.line, "criteria, before the phase is run", entries[0].text, ProblemLevel.WARNING),)
    if not entries:
        return (), (at_line(field.line, "a list of at least one criterion", ""),)
    found = []
    problems = []
    for item in entries:
        text, command = split_criterion(item.text)
        if not text:
            problems.append(at_line(item.line, "a criterion with a text", item.text))
        elif command == "":
            problems.append(at_line(item.line, "a command between the backticks", item.text))
        else:
            found.append(Criterion(text=text, command=command))
            if command is None and "verified by" in text.casefold():
                hint = "the command in backticks at the very end"
                problems.append(at_line(item.line, hint, text, ProblemLevel.WARNING))
    return tuple(found), tuple(problems)


def split_criterion(entry: str) -> tuple[str, str | None]:
    """Split a criterion into its text and its verification command; an empty command verifies nothing.

    >>> split_criterion("[ ] Pages load, verified by `curl -f localhost`.")
    ('Pages load', 'curl -f localhost')
    >>> split_criterion("It feels right")
    ('It feels right', None)
    """
    entry = _unboxed(entry.strip())
    body = entry.rstrip(" \t.)")
    runs = list(_TICKS.finditer(body))
    if not runs or runs[-1].end() != len(body):
        return plain(entry), None
    closing = runs[-1]
    opening = next((run for run in reversed(runs[:-1]) if len(run.group()) == len(closing.group())), None)
    before = body[: closing.start() if opening is None else opening.start()].rstrip()
    # Only the end is looked at: a pattern that begins anywhere must not wander through a long text.
    said = _VERIFIED.search(before[-40:])
    if said is None:
        return plain(entry), None
    text = plain(before[: len(before) - len(before[-40:]) + said.start()]).rstrip(" ,;(–—-")
    return text, "" if opening is None else body[opening.end() : closing.start()].strip()
