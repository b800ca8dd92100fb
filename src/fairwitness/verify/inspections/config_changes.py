"""Judge whether a changed setting of a tool lets more pass than before.

A setting loosens if it ignores or excludes more, selects less, is less strict, or narrows which tests run. Tightening,
and what has nothing to do with checking, does not block. When it cannot be told the caller says what holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fairwitness.verify.inspections import config_words as words
from fairwitness.verify.inspections.config_values import Settings, Value, Way, items_of, spelled
from fairwitness.verify.inspections.model import quoted

There = tuple[bool, bool]
"""Whether a setting was set before, and whether it is after."""


@dataclass(frozen=True, slots=True)
class SettingJudgement:
    """A description of one changed setting, and whether it blocks."""

    text: str
    blocks: bool


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One setting that differs."""

    way: Way
    before: Value
    after: Value
    there: There

    @property
    def name(self) -> str:
        return self.way[-1]

    def __str__(self) -> str:
        if not self.there[0]:
            return f"{spelled(self.way)}: set to {_shown(self.after)}"
        if not self.there[1]:
            return f"{spelled(self.way)}: removed (was {_shown(self.before)})"
        return f"{spelled(self.way)}: {_shown(self.before)} became {_shown(self.after)}"


def changes_between(before: Settings, after: Settings) -> list[SettingChange]:
    """Return the settings that differ, sorted by path."""
    return [
        SettingChange(way, before.get(way), after.get(way), (way in before, way in after))
        for way in sorted(set(before) | set(after))
        if (way in before) != (way in after) or before[way] != after[way] or type(before[way]) is not type(after[way])
    ]


def judge(change: SettingChange, *, unsure: bool) -> SettingJudgement:
    """Judge a changed setting."""
    # per-file-ignores and the like have their patterns one level below
    if any(words.MORE_IS_LOOSER.fullmatch(part) for part in change.way[-2:]):
        return _list(change, more_is_looser=True)
    if change.name == "filterwarnings":
        return _warnings(change)
    if change.name == "addopts":
        return SettingJudgement(_difference(change), blocks=not keeps_command(change.before, change.after))
    if "rules" in change.way[:-1] or "lints" in change.way:
        return _severity(change)
    if words.TEST_SCOPE.fullmatch(change.name):
        widens = change.name in {"testpaths", "python_files"} and change.there == (True, True)
        return SettingJudgement(
            str(change), blocks=not (widens and set(items_of(change.before)) <= set(items_of(change.after)))
        )
    if loosens_text(change.before, change.after):
        return SettingJudgement(str(change), blocks=True)
    if words.LESS_IS_LOOSER.fullmatch(change.name):
        return _list(change, more_is_looser=False)
    return _scalar(change, unsure=unsure)


def loosens_text(before: Value, after: Value) -> bool:
    """Return whether a changed command lets more pass."""
    new = " ".join(after) if isinstance(after, tuple) else str(after if after is not None else "")
    old = " ".join(before) if isinstance(before, tuple) else str(before if before is not None else "")
    known = {piece.group().strip() for piece in words.LOOSE_TEXT.finditer(old)}
    return any(piece.group().strip() not in known for piece in words.LOOSE_TEXT.finditer(new))


def keeps_command(before: Value, after: Value) -> bool:
    """Return whether a command is unchanged except for added harmless words.

    >>> keeps_command("pytest", "pytest -ra"), keeps_command("pytest", "pytest tests/unit")
    (True, False)
    """
    if loosens_text(before, after):
        return False
    old, new = _commands(before), _commands(after)
    place = 0
    for command in old:
        while place < len(new) and not _keeps(command, new[place]):
            place += 1
        if place == len(new):
            return False
        place += 1
    return bool(old) or all(words.HARMLESS_OPTION.fullmatch(word) for command in new for word in command)


def _commands(value: Value) -> list[tuple[str, ...]]:
    text = " ".join(value) if isinstance(value, tuple) else str(value if value is not None else "")
    pieces = (piece.split() for line in text.splitlines() for piece in line.split("&&"))
    return [tuple(piece) for piece in pieces if piece]


def _keeps(old: tuple[str, ...], new: tuple[str, ...]) -> bool:
    rest = list(new)
    for word in old:
        if word not in rest:
            return False
        rest.remove(word)
    return all(words.HARMLESS_OPTION.fullmatch(word.strip("\"'")) for word in rest)


def _list(change: SettingChange, *, more_is_looser: bool) -> SettingJudgement:
    old, new = items_of(change.before), items_of(change.after)
    more, less = set(new) - set(old), set(old) - set(new)
    if not more_is_looser and not change.there[0]:
        return SettingJudgement(str(change), blocks=False)
    return SettingJudgement(_difference(change), blocks=bool(more if more_is_looser else less))


def _warnings(change: SettingChange) -> SettingJudgement:
    old = [line.strip() for line in _lines(change.before)]
    new = [line.strip() for line in _lines(change.after)]
    looser = any(not line.startswith("error") for line in new if line not in old)
    looser = looser or any(line.startswith("error") for line in old if line not in new)
    return SettingJudgement(_difference(change), blocks=looser)


def _lines(value: Value) -> Sequence[str]:
    return value if isinstance(value, tuple) else str(value or "").split("\n")


def _severity(change: SettingChange) -> SettingJudgement:
    old = words.SEVERITY.get((items_of(change.before) or ("off",))[0].lower())
    new = words.SEVERITY.get((items_of(change.after) or ("off",))[0].lower())
    if new is None or old is None:
        return SettingJudgement(str(change), blocks=change.there[0])
    if not change.there[0]:
        return SettingJudgement(str(change), blocks=new == 0)  # until now a preset may have enabled the rule
    return SettingJudgement(str(change), blocks=new < old or not change.there[1] or new == old)


def _scalar(change: SettingChange, *, unsure: bool) -> SettingJudgement:
    before, after = _truth(change.before), _truth(change.after)
    if words.STRICT_IF_TRUE.fullmatch(change.name) and (before is not None or after is not None):
        return SettingJudgement(str(change), blocks=after is not True)
    if words.LOOSE_IF_TRUE.fullmatch(change.name):
        return SettingJudgement(str(change), blocks=after is not False and change.there[1])
    low, high = _number(change.before), _number(change.after)
    for pattern, sign in ((words.LOWER_IS_LOOSER, -1), (words.HIGHER_IS_LOOSER, 1)):
        if pattern.fullmatch(change.name) and (low is not None or high is not None):
            if low is None or high is None:
                return SettingJudgement(str(change), blocks=not change.there[1])  # without a bound everything passes
            return SettingJudgement(str(change), blocks=(high - low) * sign > 0)
    return SettingJudgement(str(change), blocks=unsure and words.NEUTRAL.fullmatch(change.name) is None)


def _truth(value: Value) -> bool | None:
    if isinstance(value, bool):
        return value
    text = value.strip().lower() if isinstance(value, str) else ""
    return text in {"true", "yes", "on"} if text in {"true", "yes", "on", "false", "no", "off"} else None


def _number(value: Value) -> float | None:
    if isinstance(value, bool | tuple | None):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _difference(change: SettingChange) -> str:
    old, new = items_of(change.before), items_of(change.after)
    more = [item for item in new if item not in old]
    less = [item for item in old if item not in new]
    pieces = [f"{word} {_few(items)}" for word, items in (("added", more), ("removed", less)) if items]
    return f"{spelled(change.way)}: {', '.join(pieces) or 'in another order'}"


def _shown(value: Value) -> str:
    if isinstance(value, tuple):
        return _few(value)
    return quoted(str(value).lower() if isinstance(value, bool) else str(value))


def _few(items: Sequence[str]) -> str:
    shown = ", ".join(f"'{item[:40]}'" for item in items[:5])
    return f"{shown} and {len(items) - 5} more" if len(items) > 5 else shown or "nothing"
