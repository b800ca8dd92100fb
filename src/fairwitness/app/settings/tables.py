"""Tables of `fairwitness.toml` as one contract: the checkout's file over the user's, key by key."""

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from fairwitness.app.settings.verify import NAME, read_table, refused
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.problems import spell_path
from fairwitness.contracts.feature.order import FeatureSettings
from fairwitness.rules.validation import problems_of


def feature_settings(top: Path | None, *, user: Path | None = None) -> FeatureSettings:
    """Return the effective settings of feature runs."""
    return read_tables(FeatureSettings, top, user=user)


C = TypeVar("C", bound=Contract)


def read_tables(contract: type[C], top: Path | None, *, user: Path | None = None) -> C:
    """Return the effective settings; the fields of the contract are the tables."""
    said: dict[str, dict[str, Any]] = {}
    for table in contract.model_fields:
        for place, content in read_table(table, top, user=user)[0]:
            if content:
                said.setdefault(place, {})[table] = content
    merged: dict[str, Any] = {}
    for place, tables in said.items():
        _validated(contract, place, tables)  # each file separately, so that an error names its file
        merged = _over(merged, tables)
    return _validated(contract, NAME, merged)


def _validated(contract: type[C], where: str, tables: dict[str, Any]) -> C:
    try:
        return contract.model_validate_json(json.dumps(tables, allow_nan=False), strict=True)
    except ValidationError as error:
        first = problems_of(tables, error.errors(include_url=False))[0]
        raise refused(where, spell_path(first.where), f"{first.expected}, found {first.found}") from None
    except (TypeError, ValueError):
        any_table = next(iter(contract.model_fields))
        raise refused(where, any_table, "only texts, finite numbers, truth values, lists and tables") from None


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _over(merged[key], value) if both else value
    return merged
