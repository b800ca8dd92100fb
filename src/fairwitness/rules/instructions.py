"""Changes to instruction files and memory: a text that weakens a rule is refused, with named objections.

Texts are compared by statement: a paragraph, a list item, a row or a heading, each with the heading and the opening
above it. A changed statement counts as one removed and one added, so a protected statement cannot be changed. Ambiguous
words are read in the stricter way, because a person can always edit the file.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.ids import relative_path_problem
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.feature.knowledge import (
    COPILOT_INSTRUCTIONS,
    INSTRUCTIONS_FOLDER,
    InstructionUpdate,
)

MOST_ROUNDS = 3
"""The largest bound of any loop; a new instruction may not allow more."""
KEY_LIMIT, VALUE_LIMIT = 120, 2000


class Objection(StrEnum):
    """The reasons to refuse a change of instructions or memory."""

    PATH = "path_not_governed"
    UNFIT = "patch_does_not_fit"
    TOO_LONG = "too_long"
    SECRET = "holds_a_secret"
    HIDDEN = "hidden_text"
    PROTECTED = "protected_text_removed"
    OPENED = "restricted_made_allowed"
    LIMIT = "loop_limit_raised"
    CHECK = "check_removed"
    SELF = "runtime_self_modification"
    IMMUTABLE = "immutable_rule_weakened"
    OVERRIDE = "other_rules_overridden"
    NEVER = "file_is_never_changed_by_a_run"
    AUTONOMOUS = "nobody_is_there_to_approve"
    UNAPPROVED = "not_approved"
    PROPOSER = "approved_by_no_person"


@dataclass(frozen=True, slots=True)
class UpdateJudgement:
    """The judgement of a change: allowed if there are no objections."""

    grounds: tuple[Objection, ...]

    @property
    def is_allowed(self) -> bool:
        return not self.grounds


class Statement(NamedTuple):
    """One normalized statement of a text; code is kept apart from statements."""

    heading: str
    opening: str
    is_code: bool
    text: str


def _words(*stems: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z])(?:{'|'.join(stems)})")


_PROTECTED = _words(
    *(rf"{phrase}(?![a-z])" for phrase in ("must not", "never", "restricted", "prohibited")),
    *("terminal.only", "redirect", "agent definition", "bounded", "evidence"),
)
"""Words and phrases of the rules that no change may touch."""
_RESTRICTS = _words(
    *("must not", "may not", "never", "restricted", "prohibit", "forbid", "denied", "not allowed", "disallow")
)
_PERMITS = _words("allow", "permit", r"may(?![a-z])", r"can(?![a-z])", "free to", "is fine", "granted")
_LOOP = r"(?<![a-z])(?:loop|retr(?:y|ies)|iteration|rounds|review round|attempt|replan|revision|self-fix|repeat)"
_LOOPS = re.compile(_LOOP)
_ENDLESS = (
    r"(?:unlimited|unbounded|no (?:upper )?limit|without (?:any |a )?(?:limit|bound)"
    r"|indefinite|infinite|forever|endless)"
)
_CHECKS = _words("check", "validat", "verif", "constraint", "gate", "assert", "sandbox", "test", "lint", "evidence")
_WEAKENS = _words(
    *("skip", "optional", r"not(?![a-z])", "without", "unless", "instead", "no longer", "except", "should"),
    *(r"may(?![a-z])", r"can(?![a-z])"),
)
_DENIED = re.compile(r"(?<![a-z])(?:must not|never|may not|do not|shall not|cannot|no)\s?$")
_COUNTS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNTED = re.compile(rf"\b(?:{'|'.join(_COUNTS)})\b")
_NUMBER = re.compile(r"\d+")
_DIGITS = 18
_NEAR = 40
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])\s+|(?=\|)")

_SAYS: Mapping[Objection, re.Pattern[str]] = {
    Objection.LIMIT: re.compile(
        rf"{_LOOP}.{{0,60}}{_ENDLESS}|{_ENDLESS}.{{0,60}}{_LOOP}"
        r"|until (?:it|they|all|everything|the (?:test|check)s?).{0,20} pass"
    ),
    Objection.CHECK: re.compile(
        r"(?:skip|disabl|bypass|turn off|omit|ignor|comment out|weaken|relax)\w{0,4}\s.{0,40}?"
        r"(?:check|validat|verif|constraint|gate|assert|sandbox|test|lint|review|hook)"
        r"|(?:check|validation|verification|test|evidence|review|gate)s? (?:is|are|may be|can be) "
        r"(?:optional|skipped|unnecessary|not (?:needed|required|necessary))"
        r"|--no-verify"
    ),
    Objection.SELF: re.compile(
        r"(?:edit|modif|chang|rewrit|updat|overwrit|append|improv|extend|delet|replac)\w{0,5}\s.{0,60}?"
        r"(?:\.agent\.md|agent definition|copilot-instructions|\.github/"
        r"|(?:own|its|your|these|this|their) (?:prompt|instruction|definition|rule|file))"
    ),
    Objection.IMMUTABLE: re.compile(
        r"(?:run|execut)\w{0,4}\s.{0,40}?tests?\s.{0,60}?(?<![a-z])(?:ide|editor|test explorer|extension)(?![a-z])"
        r"|redirect\w{0,4}\s.{0,60}?(?:file|log|output)|\s\d?>{1,2}\s?[\w./-]{1,80}\.(?:txt|log|out)|\|\s?tee\s"
        r"|(?:claim|report|declar|mark|assum|commit|approv)\w{0,4}\s.{0,60}?(?:without|before).{0,30}?"
        r"(?:evidence|running|proof|row)"
        r"|assum\w{0,4}\s.{0,40}?pass|trust\w{0,3} (?:the |an? )?(?:agent|report|implementer|claim)"
    ),
    Objection.OVERRIDE: re.compile(
        r"(?:ignor|disregard|forget|overrid|overrul|bypass|supersed)\w{0,4}\s.{0,40}?"
        r"(?:instruction|rule|prompt|polic|guideline|above|previous|restriction|prohibition)"
        r"|(?:no longer|not) appl(?:y|ies)|from now on|you are now|system prompt|</?(?:system|assistant|user)>"
        r"|(?:rule|instruction|restriction|prohibition)s? (?:above |below )?(?:is|are) "
        r"(?:void|suspended|lifted|obsolete)"
    ),
}
"""What a new statement must not say, unless it forbids exactly that."""


def judge_update(update: InstructionUpdate, old: str, new: str | None, *, has_secret: bool) -> UpdateJudgement:
    """Judge whether a change may be proposed; `old` and `new` are the file before and after, `new` is None if the patch
    fails.

    >>> update = InstructionUpdate(file_path=".github/instructions/a.md", change_type="append",
    ...     change_summary="less work", patch="Skip the tests of slow folders.")
    >>> [ground.value for ground in judge_update(update, "# A\\n", update.patch, has_secret=False).grounds]
    ['check_removed']
    """
    found = {Objection.UNFIT} if new is None else _of_change(old, new)
    if not _is_governed(update.file_path):
        found.add(Objection.PATH)
    return _judged(found | _of_form(update.patch, has_secret))


def may_apply(
    update: InstructionUpdate,
    old: str,
    new: str | None,
    *,
    has_secret: bool,
    mode: ApprovalMode,
    proposer: str,
    approved_by: str | None,
) -> UpdateJudgement:
    """Judge whether a change may be written to the file: it is acceptable as a proposal and approved by a person."""
    found = set(judge_update(update, old, new, has_secret=has_secret).grounds)
    if update.file_path.casefold() == COPILOT_INSTRUCTIONS:
        found.add(Objection.NEVER)
    if mode is ApprovalMode.AUTONOMOUS:
        found.add(Objection.AUTONOMOUS)
    approver = _spelled(approved_by or "")
    if not approver:
        found.add(Objection.UNAPPROVED)
    if approver in {_spelled(name) for name in (proposer, "fairwitness", "auto", *(role.value for role in Role))}:
        found.add(Objection.PROPOSER)
    return _judged(found)


def judge_memory(key: str, value: str, *, has_secret: bool) -> UpdateJudgement:
    """Judge whether a learned fact may be kept: later runs read it as data, and it must be harmless as an instruction
    too.
    """
    text = f"{key}\n\n{value}"
    found = _of_form(text, has_secret) | _of_change("", text)
    if len(key) > KEY_LIMIT or len(value) > VALUE_LIMIT:
        found.add(Objection.TOO_LONG)
    return _judged(found)


def statements(text: str) -> Iterator[Statement]:
    """Return the statements of a Markdown text, without comments; front matter sets the scope of all statements."""
    front = found.group() if (found := _FRONT.match(text)) else ""
    heading = scope = _spelled(front)
    opening, is_code, is_item = "", False, False
    gathered: list[str] = []
    for line in [*_COMMENT.sub("", text[len(front) :]).splitlines(), ""]:
        bare = line.strip()
        marked = _ITEM.match(bare)
        is_fence = bare.startswith(("```", "~~~"))
        is_heading = bare.startswith("#") and not is_code
        if gathered and (not bare or is_fence or is_heading or is_code or marked):
            said = _spelled(" ".join(gathered))
            yield Statement(heading, opening if is_item else "", is_code, said)
            if not is_item:
                opening = said if said.endswith(":") else ""
            gathered = []
        if is_fence:
            is_code = not is_code
        elif is_heading:
            said, opening = _spelled(bare.lstrip("#")), ""
            heading = f"{scope} {said}"
            yield Statement(scope, "", False, said)
        elif bare:
            is_item = bool(marked) or (is_item and bool(gathered))
            gathered.append(bare[marked.end() :] if marked else bare)


def _of_change(old: str, new: str) -> set[Objection]:
    before, after = Counter(statements(old)), Counter(statements(new))
    removed, added = list(before - after), list(after - before)
    gone, come = [each.text for each in removed], [each.text for each in added]
    found = {ground for ground, pattern in _SAYS.items() if any(_says(pattern, text) for text in come)}
    if any(_PROTECTED.search(part) for each in removed for part in (each.heading, each.opening, each.text)):
        found.add(Objection.PROTECTED)
    if any(map(_RESTRICTS.search, gone)) and any(_PERMITS.search(_RESTRICTS.sub("", text)) for text in come):
        found.add(Objection.OPENED)
    if _raises_a_limit(gone, come):
        found.add(Objection.LIMIT)
    if any(not any(_keeps_its_checks(text, other) for other in come) for text in gone if _CHECKS.search(text)):
        found.add(Objection.CHECK)
    if new.count("<!--") > old.count("<!--"):
        found.add(Objection.HIDDEN)
    return found


def _says(pattern: re.Pattern[str], text: str) -> bool:
    """Return True if a statement matches without a negation just before; a negated match does not cover the next."""
    match = pattern.search(f"{text} ")
    while match is not None and _DENIED.search(text[: match.start()]):
        match = pattern.search(f"{text} ", match.start() + 1)
    return match is not None


def _raises_a_limit(gone: Iterable[str], come: Iterable[str]) -> bool:
    """Return True if a bound is removed or raised; the same sentence with no larger number is no raise."""
    was: dict[str, list[tuple[int, ...]]] = {}
    for text in filter(_bounds, gone):
        was.setdefault(_NUMBER.sub("#", text), []).append(_numbers(text))
    left = set(was)
    for text in filter(_bounds, come):
        sentence = _NUMBER.sub("#", text)
        left.discard(sentence)
        for old in was.get(sentence, ()):
            if any(new > before for new, before in zip(_numbers(text), old, strict=True)):
                return True
        if sentence not in was and max(_bounds(text)) > MOST_ROUNDS:
            return True
    return bool(left)


def _bounds(text: str) -> tuple[int, ...]:
    """Return the numbers of a sentence that are close to words about loops."""
    return tuple(
        number
        for found in _LOOPS.finditer(text)
        for number in _numbers(text[max(0, found.start() - _NEAR) : found.end() + _NEAR])
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number.lstrip("0")[:_DIGITS] or "0") for number in _NUMBER.findall(text))


def _keeps_its_checks(old: str, new: str) -> bool:
    kept = set(_CHECKS.findall(old)) <= set(_CHECKS.findall(new))
    return kept and set(_WEAKENS.findall(new)) <= set(_WEAKENS.findall(old))


def _of_form(text: str, has_secret: bool) -> set[Objection]:
    found = {Objection.SECRET} if has_secret else set()
    if any(unicodedata.category(sign)[0] == "C" for sign in text if sign not in "\n\r\t"):
        found.add(Objection.HIDDEN)
    return found


def _is_governed(path: str) -> bool:
    """Return True for a governed instruction file that does not define an agent."""
    inside = path.startswith(INSTRUCTIONS_FOLDER) and not path.casefold().endswith(".agent.md")
    return relative_path_problem(path) is None and (inside or path == COPILOT_INSTRUCTIONS)


def _spelled(text: str) -> str:
    """Normalize white space, case, emphasis and small numbers."""
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return _COUNTED.sub(lambda word: str(_COUNTS.index(word.group())), re.sub(r"[*`]", "", plain)).strip()


def _judged(found: set[Objection]) -> UpdateJudgement:
    return UpdateJudgement(tuple(ground for ground in Objection if ground in found))
