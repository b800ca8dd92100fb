"""Tables of `fairwitness.toml` as one contract: the checkout's file over the user's, key by key."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from fairwitness.app.settings.trust import NAME, refuse_needed
from fairwitness.app.settings.verify import RepositoryContent, TableReading, overlaid, read_table, refused
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.problems import spell_path
from fairwitness.contracts.feature.order import FeatureSettings
from fairwitness.rules.problem_words import problems_of


def feature_settings(top: Path | None, *, user: Path | None = None) -> FeatureSettings:
    """Return the effective settings of feature runs."""
    return read_tables(FeatureSettings, top, user=user)


C = TypeVar("C", bound=Contract)


def read_tables(contract: type[C], top: Path | None, *, user: Path | None = None) -> C:
    """Return the effective settings; the fields of the contract are the tables."""
    merged: dict[str, Any] = {}
    for table, reading in table_readings(contract, top, user=user):
        refuse_needed(reading.file, reading.held)
        for _, content in reading.layers:
            merged = overlaid(merged, {table: content} if content else {})
    return _validated(contract, NAME, merged)


def table_readings(
    contract: type[Contract],
    top: Path | None,
    *,
    user: Path | None = None,
    instead: RepositoryContent | None = None,
) -> Iterator[tuple[str, TableReading]]:
    """Yield each table of the contract, by its name; each file is validated separately, so that errors name it."""
    defaults = contract().plain()
    for table in contract.model_fields:

        def checked(where: str, content: dict[str, Any], table: str = table) -> dict[str, Any]:
            _validated(contract, where, {table: content} if content else {})
            return content

        yield table, read_table(table, top, checked, defaults[table], user=user, instead=instead)


def _validated(contract: type[C], where: str, tables: dict[str, Any]) -> C:
    try:
        return contract.model_validate_json(json.dumps(tables, allow_nan=False), strict=True)
    except ValidationError as error:
        first = problems_of(tables, error.errors(include_url=False))[0]
        raise refused(where, spell_path(first.where), f"{first.expected}, found {first.found}") from None
    except (TypeError, ValueError):
        any_table = next(iter(contract.model_fields))
        raise refused(where, any_table, "only texts, finite numbers, truth values, lists and tables") from None
