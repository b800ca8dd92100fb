"""Markdown files whose sections keep rules: some may change, some may only grow, some must stay.

A section is a `## ` heading and all below it up to the next one. What stands before the first section (front matter)
has no rule here. A heading inside a code fence or the front matter is none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from fairwitness.contracts.common.markdown import split_sections


class Rule(StrEnum):
    """What a new version of a section may do to the old one."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    IMMUTABLE = "immutable"


Policy = Mapping[str, Rule]
"""The sections a file may have, each with its rule."""

_DEBUG: Policy = MappingProxyType(
    {
        "Current Focus": Rule.OVERWRITE,
        "Symptoms": Rule.IMMUTABLE,
        "Eliminated": Rule.APPEND,
        "Evidence": Rule.APPEND,
        "Resolution": Rule.OVERWRITE,
    }
)


def debug_policy(*, gathering: bool) -> Policy:
    """The rules of a debug session; `gathering` says that the file on disk still has that status."""
    return _DEBUG if not gathering else MappingProxyType({**_DEBUG, "Symptoms": Rule.OVERWRITE})


@dataclass(frozen=True, slots=True)
class Broken:
    """A section and what was done to it."""

    section: str
    reason: str

    def __str__(self) -> str:
        return f"section '{self.section}' {self.reason}"


def check_sections(old: str, new: str, policy: Policy) -> list[Broken]:
    """Every section that the new text may not have, or not so, given the old one."""
    sections = _sections(new)
    before, after = dict(_sections(old)), dict(sections)
    names = [name for name, _ in sections]
    broken = [Broken(name, "stands twice") for name in after if names.count(name) > 1]
    broken += [Broken(name, "is not one of this file's") for name in after if name not in policy and name not in before]
    broken += [Broken(name, "is gone") for name in before if name not in after]
    kept, now = [name for name in before if name in after], [name for name in after if name in before]
    broken += [Broken(name, "changed its place") for name, other in zip(kept, now, strict=True) if name != other]
    for name in kept:
        # a section without a rule was not written through us: nobody may change it
        reason = _broken_rule(policy.get(name, Rule.IMMUTABLE), before[name], after[name])
        if reason is not None:
            broken.append(Broken(name, reason))
    return broken


def _broken_rule(rule: Rule, old: str, new: str) -> str | None:
    """White space at the end of a section does not count; a line that was the last one may not be continued."""
    old, new = old.rstrip(), new.rstrip()
    if rule is Rule.IMMUTABLE and new != old:
        return "must stay as it is"
    if rule is Rule.APPEND and old and not f"{new}\n".startswith(f"{old}\n"):
        return "may only grow at its end"
    return None


def _sections(text: str) -> tuple[tuple[str, str], ...]:
    """The sections after the front matter, in order, each with its body."""
    lines = text.split("\n")
    return split_sections("\n".join(lines[_front_matter_length(lines) :]))


def _front_matter_length(lines: list[str]) -> int:
    if lines[0].rstrip() == "---":
        for number, line in enumerate(lines[1:], start=2):
            if line.rstrip() == "---":
                return number
    return 0
