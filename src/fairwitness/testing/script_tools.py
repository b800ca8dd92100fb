"""Turns an abstract operation into a call of an offered tool: finds the tool and its arguments by name."""

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fairwitness.agents.gateway.modes import UNPARSED, OfferedTool
from fairwitness.testing.script_steps import (
    CallStep,
    EditStep,
    ForceStep,
    GarbageStep,
    PatchStep,
    ReadStep,
    RunStep,
    SubmitStep,
    WriteStep,
)

_EDITORS = ("texteditor", "strreplacebasededittool", "strreplaceeditor")
_READERS = ("readfile", "read", "readtextfile", "view", "viewfile", "openfile", "cat", *_EDITORS)
_WRITERS = ("createfile", "writefile", "write", "create", "writetextfile", "writetofile", "savefile", *_EDITORS)
_CHANGERS = (
    *("replacestringinfile", "edit", "editfile", "replace", "strreplace", "strreplacefile", "searchreplace"),
    *("replaceinfile", "multireplacestringinfile", "multiedit", *_EDITORS),
)
_RUNNERS = (
    *("runinterminal", "bash", "shell", "runshellcommand", "execcommand", "shellcommand", "executecommand"),
    *("runcommand", "runterminalcommand", "runterminalcmd", "terminal", "executebash", "exec"),
)
_PATCHERS = ("applypatch",)
_SUBMIT = re.compile(r".*(submit(result|answer|output)?|final(result|answer)|structuredoutput)")

_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "path": ("path", "filepath", "absolutepath", "file", "filename", "targetfile", "relativepath"),
    "content": ("content", "contents", "filetext", "newcontent", "filecontent", "text"),
    "old": ("oldstring", "oldstr", "oldtext", "old", "oldcontent", "search", "find", "before"),
    "new": ("newstring", "newstr", "newtext", "new", "newcontent", "replacement", "replace", "after"),
    "command": ("command", "cmd", "argv", "commandline", "script"),
    "patch": ("input", "patch", "patchtext", "diff"),
}
_VERBS: Mapping[str, tuple[str, ...]] = {
    "read": ("view", "read"),
    "write": ("create", "write"),
    "edit": ("str_replace", "replace", "edit"),
}
_DEEPEST = 8
"""The depth to which recursive schemas are followed."""
_REPLACE = (
    "import pathlib,sys; p,a,b=sys.argv[1:]; f=pathlib.Path(p); t=f.read_text(); "
    "sys.exit('not found') if a not in t else f.write_text(t.replace(a,b,1))"
)


class Unplayable(Exception):
    """The agent offers no tool for the step."""


class FittedCall(NamedTuple):
    """A call of an agent's own tool."""

    tool: str
    args: dict[str, Any]


def fit_call(call: CallStep, offers: Sequence[OfferedTool], cwd: str) -> FittedCall | None:
    """The call; None for an answer that there is no tool to hand in with. `Unplayable` if there is no way at all."""
    match call:
        case ForceStep():
            return FittedCall(call.tool, with_cwd(call.args, cwd))
        case GarbageStep():
            meant = fit_call(call.call, offers, cwd)
            if meant is None:
                raise Unplayable("there is no tool to hand in an answer with")
            return FittedCall(meant.tool, {UNPARSED: call.text})
        case SubmitStep():
            return _submitted(with_cwd(call.answer, cwd), offers)
        case ReadStep() | WriteStep() | EditStep() | RunStep() | PatchStep():
            values = with_cwd({key: value for key, value in call.plain().items() if key != "op"}, cwd)
            for names, given in _ways(call.op, values, cwd):
                for offer in _named(names, offers):
                    args = _fitted(offer, call.op, given, cwd)
                    if args is not None:
                        return FittedCall(offer.name, args)
            raise Unplayable(f"none of the tools offered can {call.op}: {', '.join(o.name for o in offers)}")


def with_cwd(value: Any, cwd: str) -> Any:
    """Return the value with `{cwd}` replaced in every text."""
    match value:
        case str():
            if "{cwd}" in value and not cwd:
                raise Unplayable("the prompt does not say [[cwd:…]]")
            return value.replace("{cwd}", cwd)
        case dict():
            return {key: with_cwd(item, cwd) for key, item in value.items()}
        case list():
            return [with_cwd(item, cwd) for item in value]
        case _:
            return value


def _ways(op: str, values: dict[str, str], cwd: str) -> Iterator[tuple[tuple[str, ...], dict[str, str]]]:
    """Yield the kinds of tool that can do the operation, the best first, each with its values."""
    match op:
        case "read":
            yield _READERS, values
            yield _RUNNERS, {"command": shlex.join(["cat", values["path"]])}
        case "write":
            yield _WRITERS, values
            yield _PATCHERS, {"patch": _adding(_beneath(values["path"], cwd), values["content"])}
            yield _RUNNERS, {"command": _printing(values["path"], values["content"])}
        case "edit":
            yield _CHANGERS, values
            yield ("searchreplace",), {"path": values["path"], "content": _marked(values["old"], values["new"])}
            yield _PATCHERS, {"patch": _updating(_beneath(values["path"], cwd), values["old"], values["new"])}
            command = ["python3", "-c", _REPLACE, values["path"], values["old"], values["new"]]
            yield _RUNNERS, {"command": shlex.join(command)}
        case "patch":
            yield _PATCHERS, values
            yield _RUNNERS, {"command": f"apply_patch <<'PATCH'\n{values['patch']}\nPATCH\n"}
        case _:
            yield _RUNNERS, values


def _beneath(path: str, cwd: str) -> str:
    return path.removeprefix(cwd.rstrip("/") + "/") if cwd else path


def _lines(sign: str, text: str) -> str:
    return "".join(f"{sign}{line}\n" for line in text.splitlines())


def _adding(path: str, content: str) -> str:
    return f"*** Begin Patch\n*** Add File: {path}\n{_lines('+', content)}*** End Patch"


def _updating(path: str, old: str, new: str) -> str:
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n{_lines('-', old)}{_lines('+', new)}*** End Patch"


def _marked(old: str, new: str) -> str:
    return f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE"


def _printing(path: str, content: str) -> str:
    folder = posixpath.dirname(path) or "."
    return f"mkdir -p {shlex.quote(folder)} && printf %s {shlex.quote(content)} > {shlex.quote(path)}"


def _spelled(name: str) -> str:
    """Return a name for comparison: without a server's prefix and punctuation, in lower case."""
    return re.sub(r"[^a-z0-9]", "", re.split(r"__|[./:]", name)[-1].lower())


def _named(names: tuple[str, ...], offers: Sequence[OfferedTool]) -> Iterator[OfferedTool]:
    for name in names:
        yield from (offer for offer in offers if _spelled(offer.name) == name)


def _submitted(answer: dict[str, Any], offers: Sequence[OfferedTool]) -> FittedCall | None:
    offer = next((offer for offer in offers if _SUBMIT.fullmatch(_spelled(offer.name))), None)
    if offer is None:
        return None
    fields = list(offer.schema.get("properties", {}))
    wraps = len(fields) == 1 and fields[0] not in answer
    return FittedCall(offer.name, {fields[0]: answer} if wraps else answer)


def _fitted(offer: OfferedTool, op: str, values: Mapping[str, str], cwd: str) -> dict[str, Any] | None:
    """Return the arguments of a tool; None if it has no field for one of the values."""
    if offer.is_freeform:
        return {"input": next(iter(values.values()))} if len(values) == 1 else None
    told: set[str] = set()
    args = _Fit(offer.schema, values, _VERBS.get(op, ()), cwd).filled(offer.schema, told, 0)
    return args if told == set(values) else None


class _Fit:
    """Fills in the arguments of one tool."""

    def __init__(self, root: dict[str, Any], values: Mapping[str, str], verbs: tuple[str, ...], cwd: str) -> None:
        self._root = root
        self._values = values
        self._verbs = verbs
        self._cwd = cwd

    def filled(self, schema: dict[str, Any], told: set[str], depth: int) -> dict[str, Any]:
        """Return an object with the values in their fields, and samples in other required fields."""
        fields: dict[str, Any] = schema.get("properties", {})
        places = {place: key for key in self._values if (place := _place(fields, key)) is not None}
        args: dict[str, Any] = {}
        for name, given in fields.items():
            field = self._resolved(given)
            verb = next((verb for verb in self._verbs if verb in field.get("enum", ())), None)
            if name in places:
                args[name] = self._shaped(name, field, places[name])
                told.add(places[name])
            elif verb is not None:
                args[name] = verb
            elif (inner := self._inside(field, told, depth)) is not None:
                args[name] = inner
            elif name in schema.get("required", ()):
                args[name] = self._sample(field, depth)
        return args

    def _inside(self, field: dict[str, Any], told: set[str], depth: int) -> Any:
        """Return an object, or a list of one, if a value has a field in it; else None."""
        is_list = field.get("type") == "array"
        held = self._resolved(field.get("items", {})) if is_list else field
        if depth >= _DEEPEST or "properties" not in held:
            return None
        more: set[str] = set()
        args = self.filled(held, more, depth + 1)
        if not more - told:
            return None
        told |= more
        return [args] if is_list else args

    def _shaped(self, name: str, field: dict[str, Any], key: str) -> Any:
        value = self._values[key]
        if key == "path" and self._cwd and _wants_absolute(name, field):
            value = posixpath.join(self._cwd, value)
        if field.get("type") == "array":
            return ["bash", "-lc", value] if key == "command" else [value]
        return value

    def _sample(self, given: dict[str, Any], depth: int) -> Any:
        field = self._resolved(given)
        for word in ("const", "default"):
            if word in field:
                return field[word]
        options = field.get("anyOf") or field.get("oneOf") or []
        kinds = field.get("type")
        if kinds == "null" or (isinstance(kinds, list) and "null" in kinds) or {"type": "null"} in options:
            return None
        if field.get("enum"):
            return field["enum"][0]
        if depth >= _DEEPEST:
            return None
        if options:
            return self._sample(options[0], depth + 1)
        match kinds[0] if isinstance(kinds, list) and kinds else kinds:
            case "integer" | "number":
                return field.get("minimum", 1)
            case "boolean":
                return False
            case "array":
                return [self._sample(field.get("items", {}), depth + 1)] * field.get("minItems", 0)
            case "object":
                needed = field.get("required", ())
                return {name: self._sample(field.get("properties", {}).get(name, {}), depth + 1) for name in needed}
            case _:
                return "script"

    def _resolved(self, field: Any) -> dict[str, Any]:
        for _ in range(_DEEPEST):
            if not isinstance(field, dict):
                return {}
            reference = field.get("$ref")
            if not isinstance(reference, str):
                return field
            field = self._root
            for word in reference.removeprefix("#/").split("/"):
                field = field.get(word, {}) if isinstance(field, dict) else {}
        return {}


def _place(fields: Mapping[str, Any], key: str) -> str | None:
    spelled = {_spelled(name): name for name in fields}
    return next((spelled[synonym] for synonym in _SYNONYMS[key] if synonym in spelled), None)


def _wants_absolute(name: str, field: Mapping[str, Any]) -> bool:
    words = f"{name} {field.get('description', '')}".lower()
    return "absolute" in words and "relative" not in words
