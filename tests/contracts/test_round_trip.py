"""Whatever a contract takes comes back equal after it was written and read, in every format it may stand in."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from fairwitness.contracts.catalog import CatalogEntry, catalog
from fairwitness.kit.documents import Format, read, render
from support.strategies import documents

_REQUIREMENTS = {"common": "P1", "feature": "P1", "autopilot": "A1", "forge": "F3"}
_ENTRIES = [
    pytest.param(entry, marks=pytest.mark.req(_REQUIREMENTS[entry.workflow]), id=entry.name)
    for entry in catalog().values()
]


def _formats(entry: CatalogEntry) -> list[Format]:
    return [Format.YAML, Format.JSON, *([Format.MARKDOWN] if entry.written_as == "markdown" else [])]


@pytest.mark.parametrize("entry", _ENTRIES)
def test_a_generated_document_comes_back_equal(entry: CatalogEntry) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(entry.shape)

    @settings(
        deadline=None,
        max_examples=40,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
    @given(st.data())
    def comes_back(data: st.DataObject) -> None:
        generated = data.draw(documents(entry.shape))
        value = adapter.validate_python(generated)
        plain = adapter.dump_python(value, mode="json")
        for form in _formats(entry):
            again = read(render(plain, form).encode(), form).value
            assert again == plain
            assert adapter.validate_python(again) == value
        lines = read(render([plain, plain], Format.JSONL).encode(), Format.JSONL).value
        assert [adapter.validate_python(line) for line in lines] == [value, value]

    comes_back()
