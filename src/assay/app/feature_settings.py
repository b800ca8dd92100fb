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
    merged: dict[str, Any] = {}
    where = NAME
    for table in TABLES:
        read, _ = read_table(table, top, user=user)
        for place, said in read:
            if said:
                where = place
                merged[table] = _over(merged.get(table, {}), said)
    try:
        return FeatureSettings.model_validate_json(json.dumps(merged, allow_nan=False), strict=True)
    except ValidationError as error:
        first = problems_of(merged, error.errors(include_url=False))[0]
        raise refused(where, spell_path(first.where), f"{first.expected}, found {first.found}") from None
    except (TypeError, ValueError):
        raise refused(where, TABLES[0], "only texts, finite numbers, truth values, lists and tables") from None


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _over(merged[key], value) if both else value
    return merged
