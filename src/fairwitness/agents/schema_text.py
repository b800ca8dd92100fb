"""Describes a contract to an agent: the JSON Schema of the fields that it writes, and every field in words.

Fields that the program fills in are in neither. What the agent's signature fixes (statuses, nulls) is in both.
"""

import ast
import copy
import inspect
import json
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

from fairwitness.agents.base import AnswerForm
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.catalog import entry_of
from fairwitness.contracts.common.ids import GitRef, RelPath, SafeName, TaskId
from fairwitness.contracts.common.tools import Tool
from fairwitness.contracts.common.vocabulary import CompletionStatus
from fairwitness.contracts.feature.document import SIGNATURES, Presence, SignedDocument
from fairwitness.contracts.feature.plan import Pointer
from fairwitness.errors import UsageError
from fairwitness.kit.text import visible
from fairwitness.rules.derived_fields import derived_fields, null_fields

Schema = dict[str, Any]


def form_of(answer: str, known: Collection[str]) -> AnswerForm:
    """Return the form of an answer: a short JSON Schema of the contract without the fields that are known already.

    What every model writes right without being told (no empty text, a relative path) is left out: the answer is
    validated against the contract.
    """
    return AnswerForm(name=answer, schema=_short(_asked(answer, known)))


def unasked_fields(spec: RoleSpec, known: Collection[str], tools: Collection[str] = ()) -> frozenset[str]:
    """Return the fields of an answer that an agent is not asked for: the program knows, counts or does not need them.

    A field that one of the agent's `tools` fills is not asked for either: there is one way to say a thing.
    """
    assert spec.answer is not None
    by_tool = [field for tool, field in _BY_TOOL.items() if tool in tools]
    return frozenset((*known, *by_tool, *spec.unasked, *derived_fields(spec.answer), *null_fields(spec.answer)))


_BY_TOOL = {Tool.EMIT_CR.value: "change_requests"}


def explain(answer: str, known: Collection[str]) -> str:
    """Return a line for every field of an answer: its path, its type and its meaning."""
    schema = _asked(answer, known)
    told = ((field.way, _sentence(schema, field)) for field in fields_of(schema))
    # an object that only holds other fields is told by them
    return "\n".join(f"- `{way}`: {sentence}" for way, sentence in told if sentence != "object.")


class Field(NamedTuple):
    """A field of a schema and its path; `[]` enters a list, `*` a mapping."""

    way: str
    node: Schema
    required: bool


def fields_of(schema: Schema) -> Iterator[Field]:
    """Yield every field of a schema in order, each before its inner fields."""
    yield from _fields(schema, schema, "")


def _asked(answer: str, known: Collection[str]) -> Schema:
    """Return the schema of the fields that an agent writes."""
    schema = copy.deepcopy(_documented(answer))
    _narrow(schema, entry_of(answer).shape)
    for way in sorted(known, key=lambda way: (way.count("."), way)):
        if any(way.startswith((f"{whole}.", f"{whole}[].")) for whole in known):
            continue
        if not _without(schema, schema, way.split(".")) and way not in null_fields(answer):
            raise UsageError(f"{answer} has no field {visible(way)} to fill in")
    return _tidy(schema)


@cache
def _documented(answer: str) -> Schema:
    try:
        entry = entry_of(answer)
    except KeyError:
        raise UsageError(
            f"there is no contract called {visible(answer)!r}", next_step="fairwitness schema list"
        ) from None
    schema = TypeAdapter(entry.shape).json_schema(schema_generator=_WithFieldDocs)
    for shape in (schema, *schema.get("$defs", {}).values()):
        shape.pop("description", None)  # the docstrings of classes are for programmers
    return schema


class _WithFieldDocs(GenerateJsonSchema):
    """Generates schemas with the docstrings of fields: published schemas hold only those of classes."""

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        for name, words in _field_docs(model).items():
            made["properties"][model.model_fields[name].alias or name]["description"] = words
        return made


@cache
def _field_docs(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings of a class's fields, read from its source: Python does not keep them."""
    docs: dict[str, str] = {}
    for shape in reversed(model.__mro__):
        if not issubclass(shape, BaseModel) or "[" in shape.__name__ or shape is BaseModel:
            continue
        made = _classes(shape.__module__)[shape.__qualname__]
        for field, below in pairwise(made.body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
                docs[field.target.id] = str(ast.literal_eval(below.value))
    return docs


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    """Return the classes of a module, parsed once: `inspect` would parse the module for each class."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return dict(_named(tree, ""))


def _named(inside: ast.Module | ast.ClassDef, way: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for node in inside.body:
        if isinstance(node, ast.ClassDef):
            yield f"{way}{node.name}", node
            yield from _named(node, f"{way}{node.name}.")


def _narrow(schema: Schema, shape: Any) -> None:
    """Narrow the completion of a signed document to what this signer may write."""
    if not (isinstance(shape, type) and issubclass(shape, SignedDocument)):
        return
    signature = SIGNATURES[shape.signer]
    said = schema["$defs"]["Completion"]["properties"]
    allowed = [status.value for status in CompletionStatus if status in signature.statuses]
    said["status"] = {"enum": allowed, "type": "string"}
    for name in ("severity", "risk_level", "evidence_summary"):
        presence = getattr(signature, name)
        if presence is Presence.REQUIRED:
            said[name] = next(kind for kind in said[name]["anyOf"] if kind.get("type") != "null")
        elif presence is Presence.NULL and name in schema["$defs"]["Completion"]["required"]:
            said[name] = {"type": "null"}
        elif presence is Presence.NULL:
            del said[name]


def _without(root: Schema, node: Schema, way: list[str]) -> bool:
    """Remove a field, and its object if that has no field left; return False if there is no such field."""
    step, *rest = way
    if step == "[]":
        (listed,) = (kind for kind in _kinds(root, node) if "items" in kind)
        listed["items"] = _own(root, listed["items"])
        return _without(root, listed["items"], rest)
    if step.endswith("[]"):
        step, rest = step.removesuffix("[]"), ["[]", *rest]
    for kind in _kinds(root, node):
        fields = kind.get("properties", {})
        if step not in fields:
            continue
        if rest:
            fields[step] = _own(root, fields[step])
            if not _without(root, fields[step], rest):
                return False
            if any(_fields(root, fields[step], "")):
                return True
        del fields[step]
        kind["required"] = [name for name in kind.get("required", ()) if name != step]
        return True
    return False


def _own(root: Schema, node: Schema) -> Schema:
    """Return a copy of a node that nothing else refers to, so that a change affects no other field."""
    if "$ref" in node:
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return {**copy.deepcopy(_at(root, node)), **beside}
    if "anyOf" in node:
        return {**node, "anyOf": [_own(root, kind) for kind in node["anyOf"]]}
    return node


def _at(root: Schema, node: Schema) -> Schema:
    found: Schema = root["$defs"][node["$ref"].removeprefix("#/$defs/")]
    return found


def _kinds(root: Schema, node: Schema) -> list[Schema]:
    """Yield the schemas that a value may have, with references resolved."""
    if "$ref" in node:
        return _kinds(root, _at(root, node))
    several = node.get("anyOf") or node.get("oneOf")
    return [inner for kind in several for inner in _kinds(root, kind)] if several else [node]


def _tidy(schema: Schema) -> Schema:
    """Return the schema without titles, which repeat the names, and without unused definitions."""
    definitions = schema.pop("$defs", {})
    plain = _untitled(schema)
    used: Schema = {}
    waiting = [plain]
    while waiting:
        for name in _references(waiting.pop()):
            if name not in used:
                used[name] = _untitled(definitions[name])
                waiting.append(used[name])
    return {**plain, "$defs": dict(sorted(used.items()))} if used else plain


def _untitled(node: Any) -> Any:
    if isinstance(node, list):
        return [_untitled(entry) for entry in node]
    if not isinstance(node, dict):
        return node
    return {
        key: {name: _untitled(field) for name, field in value.items()} if key == "properties" else _untitled(value)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
    }


def _short(schema: Schema) -> Schema:
    """Return a schema that accepts what this one accepts, and is as short as it can be told."""
    counts = Counter(_references(schema))
    definitions = schema.get("$defs", {})
    shared = {name for name, count in counts.items() if count > 1 and "properties" in definitions[name]}

    def short(node: Any) -> Any:
        if isinstance(node, list):
            return [short(entry) for entry in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node and (name := node["$ref"].removeprefix("#/$defs/")) not in shared:
            node = {**definitions[name], **{key: value for key, value in node.items() if key != "$ref"}}
        made = {
            key: {name: short(field) for name, field in value.items()} if key == "properties" else short(value)
            for key, value in node.items()
            if not (key in _UNSAID or (key == "pattern" and value in _SPELLED) or (key == _MORE and value in _BOOLS))
        }
        for name, field in made.get("properties", {}).items():
            if name not in made.get("required", ()) and "anyOf" in field:
                made["properties"][name] = _not_null(field)
        return made

    plain: Schema = short({key: value for key, value in schema.items() if key != "$defs"})
    return {**plain, "$defs": {name: short(definitions[name]) for name in sorted(shared)}} if shared else plain


_UNSAID = frozenset({"default", "minLength"})
_MORE, _BOOLS = "additionalProperties", (True, False)


def _not_null(field: Schema) -> Schema:
    """Return the schema of an optional field without null: it is left out instead."""
    kinds = [kind for kind in field["anyOf"] if kind != {"type": "null"}]
    rest = {key: value for key, value in field.items() if key != "anyOf"}
    return {**kinds[0], **rest} if len(kinds) == 1 else {**rest, "anyOf": kinds}


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix("#/$defs/")
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for entry in node:
            yield from _references(entry)


def _fields(root: Schema, node: Schema, way: str) -> Iterator[Field]:
    for kind in _kinds(root, node):
        for name, field in kind.get("properties", {}).items():
            inner = f"{way}.{name}" if way else name
            yield Field(inner, field, name in kind.get("required", ()))
            yield from _fields(root, field, inner)
        if "items" in kind:
            yield from _fields(root, kind["items"], f"{way}[]")
        for value in _values(kind):
            yield from _fields(root, value, f"{way}.*")


def _values(kind: Schema) -> list[Schema]:
    """Return the schemas of a mapping's values, if its keys are free."""
    free = kind.get("additionalProperties")
    return [*kind.get("patternProperties", {}).values(), *([free] if isinstance(free, dict) else [])]


def _sentence(root: Schema, field: Field) -> str:
    kinds = _kinds(root, field.node)
    told = [kind for kind in kinds if kind.get("type") != "null"] or kinds
    words = " or ".join(dict.fromkeys(_words(root, kind) for kind in told))
    is_nullable = ", or null" if field.required and len(told) < len(kinds) else ""
    is_optional = "" if field.required else "; optional"
    docs = (field.node, *(inner for kind in told for inner in _described(root, kind)))
    about = dict.fromkeys(_first(node["description"]) for node in docs if node.get("description"))
    return " ".join((f"{words}{is_nullable}{is_optional}.", *about))


def _described(root: Schema, kind: Schema) -> Iterator[Schema]:
    """Return the schemas that have a docstring: objects and enumerations, also as items of a list."""
    yield kind
    if "items" in kind:
        yield from _kinds(root, kind["items"])


def _first(description: str) -> str:
    return " ".join(description.strip().split("\n\n")[0].split())


def _schema_of(annotation: Any) -> Schema:
    return TypeAdapter(annotation).json_schema()


_SPELLED = {
    _schema_of(TaskId)["pattern"]: "an id such as `task-01`",
    _schema_of(Pointer)["pattern"]: "a pointer such as `design-output.yaml#payload.decisions[id='D-8']`",
    r"\S": "text",
    _schema_of(SafeName)["pattern"]: "a name of letters, digits, `.`, `_` and `-`",
    _schema_of(RelPath)["pattern"]: "a relative path with `/`, without `..`",
}
_REF = _schema_of(GitRef)


def _words(root: Schema, kind: Schema) -> str:
    if "const" in kind or "enum" in kind:
        values = kind.get("enum") or [kind["const"]]
        are_words = all(isinstance(value, str) for value in values)
        spelled = [f"`{value if are_words else json.dumps(value)}`" for value in values]
        return spelled[0] if len(spelled) == 1 else f"one of {', '.join(spelled)}"
    match kind.get("type"):
        case "null":
            return "null"
        case "boolean":
            return "true or false"
        case "integer":
            return f"whole number{_bounds(kind)}"
        case "number":
            return f"number{_bounds(kind)}"
        case "string":
            return _text(kind)
        case "array":
            items = " or ".join(dict.fromkeys(_words(root, item) for item in _kinds(root, kind["items"])))
            size = _size(kind, "minItems", "maxItems")
            return f"list of objects{size}" if items == "object" else f"list{size}, each entry {items}"
        case "object":
            values = " or ".join(_words(root, inner) for value in _values(kind) for inner in _kinds(root, value))
            return f"object with a value for each name: {values}" if values else "object"
        case _:
            raise AssertionError(f"no words for {kind}")


def _text(kind: Schema) -> str:
    if kind.get("format") == "date-time":
        return "a time such as `2026-02-26T14:30:00Z`"
    if {**kind, **_REF} == kind and "pattern" not in kind:
        return "the name of a git branch or commit"
    pattern = kind.get("pattern")
    if pattern is None:
        return f'text or `""`{_size(kind, "minLength", "maxLength")}'
    if pattern not in _SPELLED:
        return f"text like `{pattern}`{_size(kind, 'minLength', 'maxLength')}"
    # the longest path that any disk takes is nothing an agent needs to hear
    return _SPELLED[pattern] + ("" if "minLength" in kind else _size(kind, "minLength", "maxLength"))


def _bounds(kind: Schema) -> str:
    low, high = kind.get("minimum"), kind.get("maximum")
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    return f", {low:g} or more" if low is not None else f", {high:g} or less" if high is not None else ""


_UNITS = {"minItems": "entries", "minLength": "characters"}


def _size(kind: Schema, least: str, most: str) -> str:
    low, high = kind.get(least), kind.get(most)
    if low and high is not None:
        return f", {low} to {high} {_UNITS[least]}"
    return f", {low} or more" if low else f", at most {high} {_UNITS[least]}" if high is not None else ""
