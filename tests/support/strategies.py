"""Generated documents for every contract, made by walking the types of its fields.

A type says what it takes: enums, literals, bounds, patterns and nested models are read from its annotation, our own
validators are recognised by their function. Rules between fields are kept by `fitting`.
"""

import inspect
import types
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, BeforeValidator, RootModel
from pydantic.fields import FieldInfo

from fairwitness.contracts.autopilot.metrics import MetricsFile
from fairwitness.contracts.autopilot.vocabulary import CheckWord, Tally, never_null
from fairwitness.contracts.common.base import AgentDocument, AlignmentScore, OneLine, Score, Timestamp
from fairwitness.contracts.common.ids import GitRef, RelPath, SafeName
from fairwitness.contracts.common.markdown import body_with
from fairwitness.contracts.common.problems import unique_ids
from fairwitness.contracts.feature.document import SignedDocument
from fairwitness.contracts.feature.knowledge import INSTRUCTIONS_FOLDER, InstructionUpdate
from kit.plain_values import ODD_TEXTS, plain_values
from support.fitting import FITTINGS, Plain, distinct, fit_signed
from support.fitting_autopilot import AUTOPILOT_FITTINGS

Strategy = st.SearchStrategy[Any]
Function = Callable[..., Any]

_LARGEST = 2**63 - 1
_LETTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], include_characters="\n\t\x1b\x85")
_OF_A_LINE = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"])
_OF_A_BODY = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], include_characters="\n\t")
_FITTINGS = {**FITTINGS, **AUTOPILOT_FITTINGS}
_UNKNOWN_FIELDS = ["x_note", "an unknown field", "<<", "null", "🟢", "", "- dash", "1"]
_FEW = 2
"""Entries of a list beyond those it must have: the shapes inside matter, not their number."""


def _texts(*, blank: bool = True, longest: int | None = None) -> st.SearchStrategy[str]:
    texts = st.one_of(st.text(_LETTERS, max_size=12), st.sampled_from(ODD_TEXTS)).map(lambda text: text[:longest])
    return texts if blank else texts.map(lambda text: text if text.strip() else "x")


def _one_line(text: str) -> str:
    return " ".join(text.splitlines()).strip() or "x"


def _segments(first: str, others: str) -> st.SearchStrategy[str]:
    return st.from_regex(f"[{first}][{others}]{{0,12}}", fullmatch=True)


_TIMES = st.builds(
    lambda moment, fraction, zone: f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}{zone}",
    st.datetimes(min_value=datetime(1000, 1, 2), max_value=datetime(9999, 12, 30)),  # noqa: DTZ001  # the zone follows
    st.sampled_from(["", ".5", ".123", ".123456", ".123456789"]),
    st.sampled_from(["Z", "+00:00", "+05:30", "-11:00"]),
)
_NAMES = _segments("A-Za-z0-9", "A-Za-z0-9_-")
_PATHS = st.lists(_segments("A-Za-z0-9_.é🟢 ", "A-Za-z0-9_é🟢 #'-"), min_size=1, max_size=4).map("/".join)
_REFS = st.lists(_segments("A-Za-z0-9é", "A-Za-z0-9_é-"), min_size=1, max_size=3).map("/".join)
_TALLIES = st.tuples(st.integers(0, 99), st.integers(0, 99)).map(lambda pair: f"{min(pair)}/{max(pair)}")
_TENTHS = st.integers(0, 100).map(lambda tenths: tenths / 10)


def _validators(metadata: list[Any]) -> list[Function]:
    return [item.func for item in metadata if isinstance(item, AfterValidator | BeforeValidator)]


def _last_validator(annotation: Any) -> Function:
    return _validators(list(get_args(annotation)[1:]))[-1]


_BY_VALIDATOR: dict[Function, Strategy] = {
    _last_validator(Timestamp): _TIMES,
    _last_validator(SafeName): _NAMES,
    _last_validator(RelPath): _PATHS,
    _last_validator(GitRef): _REFS,
    _last_validator(Tally): _TALLIES,
    _last_validator(AlignmentScore): _TENTHS,
    _last_validator(CheckWord): st.sampled_from([True, False, "n/a"]),
    _validators(InstructionUpdate.model_fields["file_path"].metadata)[-1]: _PATHS.map(INSTRUCTIONS_FOLDER.__add__),
}
_ONE_LINE = _last_validator(OneLine)
_DECIMAL_ONLY = _last_validator(Score)
_NEVER_NULL = never_null(Any).func
_SECTIONS = body_with("any").func.__code__
_UNIQUE = unique_ids("any").__code__


def documents(shape: Any) -> Strategy:
    """Plain documents that a contract takes: a model, or an annotation such as a union of models."""
    return _of(shape, [])


def _of(annotation: Any, metadata: list[Any]) -> Strategy:
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *more = get_args(annotation)
        return _of(inner, [*_flat(more), *metadata])
    for function in reversed(_validators(metadata)):
        if function in _BY_VALIDATOR:
            return _BY_VALIDATOR[function]
    if origin in (Union, types.UnionType):
        members = [member for member in get_args(annotation) if not (member is type(None) and _is_said(metadata))]
        return st.one_of(*(_of(member, metadata) for member in members))
    if origin is Literal:
        return st.sampled_from(get_args(annotation))
    if origin is tuple:
        return _list(get_args(annotation)[0], metadata)
    if origin in (dict, Mapping):
        key, value = get_args(annotation)
        return st.dictionaries(_of(key, []), _of(value, []), max_size=_FEW + 1)
    return _of_class(annotation, metadata)


def _of_class(annotation: Any, metadata: list[Any]) -> Strategy:
    if annotation is Any:
        return plain_values()
    if annotation in (None, type(None)):
        return st.none()
    if issubclass(annotation, BaseModel):
        return _model(annotation)
    if issubclass(annotation, Enum):
        return st.sampled_from([member.value for member in annotation])
    if annotation is bool:
        return st.booleans()
    if annotation is int:
        return st.integers(_bound(metadata, "ge", -_LARGEST, max), _bound(metadata, "le", _LARGEST, min))
    if annotation is float:
        return _number(metadata)
    if annotation is str:
        return _text(metadata)
    raise TypeError(f"no way to generate {annotation!r}")


def _flat(metadata: list[Any]) -> list[Any]:
    found: list[Any] = []
    for item in metadata:
        found += item.metadata if isinstance(item, FieldInfo) else [item]
    return found


def _bound(metadata: list[Any], name: str, default: Any, pick: Callable[..., Any]) -> Any:
    said = [getattr(item, name) for item in metadata if getattr(item, name, None) is not None]
    return pick(said) if said else default


def _is_said(metadata: list[Any]) -> bool:
    return _NEVER_NULL in _validators(metadata)


def _number(metadata: list[Any]) -> Strategy:
    low, high = _bound(metadata, "ge", None, max), _bound(metadata, "le", None, min)
    decimals = st.floats(low, high, allow_nan=False, allow_infinity=False)
    if _DECIMAL_ONLY in _validators(metadata):
        return decimals
    return st.one_of(decimals, st.integers(low if low is not None else -(2**50), high if high is not None else 2**50))


def _text(metadata: list[Any]) -> Strategy:
    functions = _validators(metadata)
    for function in functions:
        if getattr(function, "__code__", None) is _SECTIONS:
            return _body(inspect.getclosurevars(function).nonlocals["required"])
    longest = _bound(metadata, "max_length", None, min)
    pattern = _bound(metadata, "pattern", None, lambda said: said[-1])
    if pattern in (None, r"\S"):
        texts = _texts(blank=pattern is None, longest=longest)
        return texts.map(_one_line) if _ONE_LINE in functions else texts
    spelled = st.from_regex(pattern, fullmatch=pattern.endswith("$"), alphabet=_OF_A_LINE)
    return spelled if longest is None else spelled.filter(lambda text: len(text) <= longest)


def _body(required: tuple[str, ...]) -> Strategy:
    # What stands between the sections may look like one, but may not open a block that hides the next.
    prose = st.text(_OF_A_BODY, max_size=20).map(lambda text: text.replace("```", "").replace("~~~", ""))
    between = st.one_of(prose, st.just("---"), st.just("## Another"), st.just("```\n## hidden\n```"))
    return st.tuples(*(between for _ in required)).map(
        lambda texts: "".join(f"## {name}\n{text}\n" for name, text in zip(required, texts, strict=True))
    )


def _list(item: Any, metadata: list[Any]) -> Strategy:
    fewest = _bound(metadata, "min_length", 0, max)
    most = min(_bound(metadata, "max_length", fewest + _FEW, min), fewest + _FEW)
    by_id = any(getattr(function, "__code__", None) is _UNIQUE for function in _validators(metadata))
    return st.lists(
        _of(item, []), min_size=fewest, max_size=most, unique_by=(lambda entry: entry["id"]) if by_id else None
    )


@cache
def _model(model: type[BaseModel]) -> Strategy:
    if issubclass(model, RootModel):
        field = model.model_fields["root"]
        whole = _of(field.annotation, _flat(field.metadata))
        return whole.map(lambda runs: distinct(runs, "run_id")) if model is MetricsFile else whole
    required: dict[str, Strategy] = {}
    optional: dict[str, Strategy] = {}
    for name, field in model.model_fields.items():
        is_tag = get_origin(field.annotation) is Literal  # a union is told apart by it, so it is always said
        fields = required if field.is_required() or is_tag else optional
        fields[field.alias or name] = _of(field.annotation, _flat(field.metadata))
    whole = st.fixed_dictionaries(required, optional=optional).map(lambda document: _fitted(model, document))
    if not issubclass(model, AgentDocument):
        return whole
    taken = {*required, *optional}
    names = st.sampled_from([name for name in _UNKNOWN_FIELDS if name not in taken])
    unknown = st.one_of(st.just({}), st.dictionaries(names, plain_values(), max_size=1))
    return st.tuples(whole, unknown).map(lambda pair: {**pair[0], **pair[1]})


def _fitted(model: type[BaseModel], document: Plain) -> Plain:
    document = dict(document)
    if issubclass(model, SignedDocument):
        fit_signed(document, model)
    for ancestor in reversed(model.__mro__):
        if ancestor in _FITTINGS:
            _FITTINGS[ancestor](document)
    return document
