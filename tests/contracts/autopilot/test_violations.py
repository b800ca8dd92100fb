"""One row for every constraint of the autopilot contracts: a spoilt example, and where the refusal must stand."""

import pytest
from pydantic import ValidationError

from contracts.autopilot import rows_files, rows_returns, rows_run
from contracts.autopilot.seed003 import ADAPTERS, DOCUMENTS, marks, spoilt

TABLE = rows_run.TABLE | rows_returns.TABLE | rows_files.TABLE

ROWS = [
    pytest.param(
        file, row[0], row[1], row[2] if len(row) == 3 else row[0], id=f"{file}:{row[0]}:{index}", marks=marks(file)
    )
    for file, rows in TABLE.items()
    for index, row in enumerate(rows)
]


def test_every_contract_is_held_by_the_table() -> None:
    assert {DOCUMENTS[file] for file in TABLE} == set(ADAPTERS)
    assert len(ROWS) >= 400


@pytest.mark.parametrize(("file", "path", "value", "place"), ROWS)
def test_a_spoilt_document_is_refused_at_its_place(file: str, path: str, value: object, place: str) -> None:
    document, _ = spoilt(file, path, value)
    with pytest.raises(ValidationError) as refused:
        ADAPTERS[DOCUMENTS[file]].validate_python(document)
    wanted = place.split("/")
    assert any(_names(error["loc"], wanted) for error in refused.value.errors()), refused.value


def _names(location: tuple[str | int, ...], wanted: list[str]) -> bool:
    """True if a location is the wanted way, apart from the names of union members and envelopes on it."""
    parts = [str(part) for part in location if part != "[key]"]
    rest = iter(parts)
    return parts[-1:] == wanted[-1:] and all(part in rest for part in wanted)
