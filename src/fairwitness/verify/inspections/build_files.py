"""Changes of Makefiles, CMake files, CI files and other files of commands: what a check lost or does differently.

An existing command may get harmless words and files to compile, and new ones may follow it. A command of a check that
is gone or otherwise changed blocks; one that has nothing to do with checks does not.
"""

import re
from collections import Counter
from collections.abc import Iterator

from fairwitness.verify.inspections.config_changes import (
    SettingChange,
    SettingJudgement,
    changes_between,
    judge,
    keeps_command,
    loosens_text,
)
from fairwitness.verify.inspections.config_values import Settings, Way, items_of
from fairwitness.verify.inspections.config_words import CHECKING, LOOSE_TEXT
from fairwitness.verify.inspections.line_diff import lines_of
from fairwitness.verify.inspections.model import ChangedText, quoted, squeezed, windows

_RULE = re.compile(r"([^\s:=#][^:=#]*?)\s*::?(?!=)\s*([^=#]*?)\s*(?:#.*)?$")
_VARIABLE = re.compile(r"(?:export\s+|override\s+)?([\w.-]+)\s*(?:[:+?!]|::)?=\s*(.*?)\s*(?:#.*)?$")
_CMAKE = re.compile(r"\b([A-Za-z_]\w*)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_CMAKE_COMMENT = re.compile(r"#[^\n]*")
_ASIDE = re.compile(r"\w*clean\w*|(un)?install|docs?|help|run|dev|serve|release|publish|format|fmt", re.IGNORECASE)
"""Targets that check nothing, whatever files they mention."""
_FLAGS = re.compile(r"FLAGS|SHELL|TEST|PYTEST|LINT|CHECK", re.IGNORECASE)
_LOOSE_SETTING = re.compile(
    r"""['"]off['"]|:\s*0\b|\bignores?\b|\bignorePatterns\b|\bexclude\b|passWithNoTests|PathIgnorePatterns|\btestMatch\b|"""
    r"""\btestRegex\b|\bskip\b|\bglobalSetup\b|\bsetupFiles\w*|\bmoduleNameMapper\b|\binclude\s*:|:\s*false\b"""
)
_COMMENT = re.compile(r"\s*(?://|#(?!\s*\[)|\*|/\*|<!--|rem\b).*", re.IGNORECASE)

Rules = dict[str, tuple[str, list[str]]]
"""Targets of a Makefile with their prerequisites and commands."""


def makefile_changes(change: ChangedText) -> Iterator[SettingJudgement]:
    """Yield judgements of the changed targets and variables of a Makefile."""
    old_rules, old_variables, _ = _makefile(change.before or "")
    rules, variables, twice = _makefile(change.after or "")
    for name in sorted(twice & set(old_rules)):
        yield SettingJudgement(f"target {name} is defined twice", blocks=True)
    for name, (needs, commands) in old_rules.items():
        if name not in rules:
            yield SettingJudgement(f"target {name} is gone", blocks=_checks(name, commands))
        elif rules[name] != (needs, commands):
            yield _target(name, needs, commands, *rules[name])
    for name, (_, commands) in rules.items():
        if name not in old_rules:
            special = name.startswith(".") and name != ".PHONY"
            text = f"target {name} is new"
            yield SettingJudgement(
                text, blocks=special or (name in {"test", "check"} and loosens_text("", "\n".join(commands)))
            )
    for name in sorted(set(old_variables) | set(variables)):
        old, new = old_variables.get(name), variables.get(name)
        if old != new:
            kept = keeps_command(old, new) if old is not None else not loosens_text("", f"{name} = {new}")
            matters = _FLAGS.search(name) is not None or loosens_text(old, f"{name} = {new}")
            yield SettingJudgement(f"{name} is {quoted(new or '')} now", blocks=matters and not kept)


def _target(name: str, needs: str, commands: list[str], new_needs: str, new_commands: list[str]) -> SettingJudgement:
    dropped = set(needs.split()) - set(new_needs.split())
    kept = (
        keeps_command("\n".join(commands), "\n".join(new_commands))
        if commands
        else not loosens_text("", "\n".join(new_commands))
    )
    ignored = Counter(_ignoring(new_commands)) - Counter(_ignoring(commands))
    if ignored:
        return SettingJudgement(f"target {name} ignores failures now: {quoted(min(ignored))}", blocks=True)
    if dropped and _checks(name, commands):
        return SettingJudgement(f"target {name} no longer needs {', '.join(sorted(dropped))}", blocks=True)
    if not kept:
        lost = [line for line in new_commands if line not in commands] or commands
        matters = _checks(name, [*commands, *new_commands]) or loosens_text(
            "\n".join(commands), "\n".join(new_commands)
        )
        return SettingJudgement(f"target {name} runs something else now: {quoted(lost[0])}", blocks=matters)
    return SettingJudgement(f"target {name} does more now", blocks=False)


def _makefile(text: str) -> tuple[Rules, dict[str, str], set[str]]:
    rules: Rules = {}
    variables: dict[str, str] = {}
    twice: set[str] = set()
    current: list[str] = []
    for whole in lines_of(text.replace("\\\r\n", " ").replace("\\\n", " ")):
        line = squeezed(whole)
        if line.startswith("\t"):
            if command := line.strip():
                current.append(command)
        elif variable := _VARIABLE.match(line):
            name = variable.group(1)
            variables[name] = f"{variables[name]} {variable.group(2)}" if name in variables else variable.group(2)
        elif rule := _RULE.match(line):
            current = []
            needs, _, command = rule.group(2).partition(";")
            for name in rule.group(1).split():
                if name in rules and name != ".PHONY" and rules[name][1]:
                    twice.add(name)
                rules[name] = (f"{rules[name][0]} {needs}" if name in rules else needs, current)
            if command.strip():
                current.append(command.strip())
        elif line.strip() and not line.lstrip().startswith("#"):
            variables[line.strip()] = line.strip()  # include, ifeq and the like are stored under the line itself
    return rules, variables, twice


def _checks(name: str, commands: list[str]) -> bool:
    if _ASIDE.fullmatch(name):
        return False
    return CHECKING.search(name) is not None or any(CHECKING.search(command) for command in commands) or name == "all"


def _ignoring(commands: list[str]) -> list[str]:
    return [command for command in commands if re.match(r"[@+]*-", command)]


def cmake_changes(change: ChangedText) -> Iterator[SettingJudgement]:
    """Yield judgements of the changed commands of a CMake file."""
    before, after = _cmake(change.before or ""), _cmake(change.after or "")
    new = Counter(after) - Counter(before)
    for command in Counter(before) - Counter(after):
        name, *words = command.split(" ")
        grown = [other for other in new if other.split(" ")[:2] == command.split(" ")[:2] and _grew(command, other)]
        if grown:
            new -= Counter(grown[:1])
            yield SettingJudgement(f"{name} {words[0] if words else ''} has more now".replace("  ", " "), blocks=False)
        else:
            harmless = name in {"message", "project", "cmake_minimum_required", "install"}
            yield SettingJudgement(f"{quoted(command)} is gone or changed", blocks=not harmless)
    for command in new:
        loose = LOOSE_TEXT.search(command) or re.match(r"(set_tests_properties|return|macro|function)\b", command)
        if loose and not re.match(r"(macro|function) (?!add_test|enable_testing)", command):
            yield SettingJudgement(f"{quoted(command)} is new", blocks=True)


def _cmake(text: str) -> list[str]:
    plain = _CMAKE_COMMENT.sub("", text)
    return [
        " ".join([found.group(1).lower(), *found.group(2).split()]) for found in _CMAKE.finditer(plain)
    ]  # names of commands may be written in any case


def _grew(old: str, new: str) -> bool:
    missing = Counter(old.split(" ")) - Counter(new.split(" "))
    return not missing and not loosens_text(old, new)


def line_judgements(change: ChangedText, *, unsure: bool, settings: bool = True) -> Iterator[SettingJudgement]:
    """Yield judgements of any other file of commands or settings, line by line."""
    before, after = lines_of(change.before or ""), lines_of(change.after or "")
    lost = [before[number - 1] for number in change.removed if number <= len(before)]
    gained = [after[number - 1] for number in change.added if number <= len(after)]
    old, new = _said(lost), _said(gained)
    known = {_loose(piece, settings=settings) for line in before for piece in windows(line)}
    for line in new:
        loose = _loose(line, settings=settings)
        if loose and loose not in known and (unsure or CHECKING.search(line)):
            yield SettingJudgement(f"{quoted(line)} is new", blocks=True)
            return
    kept = {_squeezed(line) for line in new}
    gone = [line for line in old if _squeezed(line) not in kept]
    if gone:
        matters = unsure or any(CHECKING.search(line) for line in gone)
        yield SettingJudgement(f"{quoted(gone[0])} is gone or changed", blocks=matters)
    elif new or old:
        yield SettingJudgement(f"{len(new)} lines are new", blocks=False)


def _said(lines: list[str]) -> list[str]:
    said = (line for line in lines if line.strip() and not _COMMENT.fullmatch(line))
    return [piece for line in said for piece in windows(line)]


def _loose(line: str, *, settings: bool) -> str:
    found = LOOSE_TEXT.search(line) or (_LOOSE_SETTING.search(line) if settings else None)
    return found.group() if found else ""


def _squeezed(line: str) -> str:
    return re.sub(r"[\s,;]+", "", line)


_RUNS = frozenset({"run", "script", "before_script", "after_script", "command", "commands", "args", "entry"})
_TRIGGERS = frozenset({"on", "true", "rules", "only", "except", "workflow", "stages", "branches", "types", "paths"})
_CONDITIONS = frozenset({"if", "when", "condition", "only", "except", "rules", "changes"})


def ci_changes(before: Settings, after: Settings) -> Iterator[SettingJudgement]:
    """Yield judgements of changed jobs, steps and their commands."""
    old, new = _things(before), _things(after)
    gone = [way for way in sorted(old - new) if way[:-2] in new or len(way) <= 2]
    for way in gone:
        inner = [(key, value) for key, value in before.items() if key[: len(way)] == way]
        checks = (
            len(way) <= 2
            or way[-2] == "hooks"
            or any(CHECKING.search(str(value)) for key, value in inner if key[-1] in {*_RUNS, "uses", "name"})
        )
        yield SettingJudgement(f"{quoted(way[-1])} of {way[-2]} is gone or changed", blocks=checks)
    for change in changes_between(before, after):
        lost = any(change.way[: len(way)] == way for way in gone)
        if not lost:
            yield from _setting(change, is_new=not change.there[0] and _thing_of(change.way) not in old)


def _things(settings: Settings) -> set[Way]:
    """Return the paths of jobs and steps: the first two levels, and the items of lists."""
    ways = {way[:2] for way in settings if len(way) > 2}
    return ways | {
        way[: at + 1] for way in settings for at in range(2, len(way) - 1) if way[at - 1] in {"steps", "hooks"}
    }


def _thing_of(way: Way) -> Way:
    for at in range(len(way) - 2, 1, -1):
        if way[at - 1] in {"steps", "hooks"}:
            return way[: at + 1]
    return way[:2]


def _setting(change: SettingChange, *, is_new: bool) -> Iterator[SettingJudgement]:
    name = change.name
    if loosens_text(change.before, change.after):
        yield SettingJudgement(str(change), blocks=True)
    elif name in {"continue-on-error", "allow_failure", "continueOnError"}:
        yield judge(change, unsure=True)
    elif is_new:
        yield SettingJudgement(str(change), blocks=False)
    elif name in _CONDITIONS or _TRIGGERS & set(change.way[:2]):
        narrowed = change.there[0] or name in _CONDITIONS
        yield SettingJudgement(str(change), blocks=narrowed)
    elif name in _RUNS:
        checks = CHECKING.search(f"{change.before} {change.after}") is not None
        yield SettingJudgement(str(change), blocks=checks and not keeps_command(change.before, change.after))
    elif "matrix" in change.way:
        less = set(items_of(change.before)) - set(items_of(change.after))
        yield SettingJudgement(str(change), blocks=bool(less))
    else:
        yield judge(change, unsure=False)
