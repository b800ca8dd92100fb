"""Settings of feature runs: the tables `[feature]`, `[policy]`, `[finish]`, `[artifacts]` and `[budget]`."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from assay.app.settings import NAME, read_table, refused
from assay.contracts.common.problems import spell_path
from assay.contracts.feature.settings import FeatureSettings
from assay.rules.violations import problems_of

TABLES = tuple(FeatureSettings.model_fields)


def feature_settings(top: Path | None, *, user: Path | None = None) -> FeatureSettings:
    """What is in force: the checkout's file over the person's own, key by key."""
    said: dict[str, dict[str, Any]] = {}
    for table in TABLES:
        for place, content in read_table(table, top, user=user)[0]:
            if content:
                said.setdefault(place, {})[table] = content
    merged: dict[str, Any] = {}
    for place, tables in said.items():
        _validated(place, tables)  # each file by itself, so that whoever is wrong is named
        merged = _over(merged, tables)
    return _validated(NAME, merged)


def _validated(where: str, tables: dict[str, Any]) -> FeatureSettings:
    try:
        return FeatureSettings.model_validate_json(json.dumps(tables, allow_nan=False), strict=True)
    except ValidationError as error:
        first = problems_of(tables, error.errors(include_url=False))[0]
        raise refused(where, spell_path(first.where), f"{first.expected}, found {first.found}") from None
    except (TypeError, ValueError):
        raise refused(where, TABLES[0], "only texts, finite numbers, truth values, lists and tables") from None


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _over(merged[key], value) if both else value
    return merged
