"""Every contract is published as JSON Schema, told by its document, and held against it."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from contracts import feature_constraints, forge_constraints
from fairwitness.app.schemas import check, export, json_schema, recognise
from fairwitness.contracts.catalog import catalog, entry_of
from fairwitness.errors import UsageError
from fairwitness.kit.documents import SUFFIXES, Format, read, render
from support.fixtures import DELETE, ROOT, SEEDS, edited, instances, value_of

SCHEMAS = ROOT / "schemas"


def _validator(contract: str) -> Draft202012Validator:
    return Draft202012Validator(json_schema(entry_of(contract)))


@pytest.mark.req("P1")
def test_names_are_unique_and_each_has_a_published_schema() -> None:
    assert [entry_of(name) for name in catalog()] == list(catalog().values())
    published = {path.name for path in SCHEMAS.glob("*.json")}
    assert published >= {f"{entry.name}-{entry.version}.json" for entry in catalog().values()}


@pytest.mark.req("P1")
@pytest.mark.parametrize("contract", catalog())
def test_a_published_schema_is_what_its_contract_says(contract: str) -> None:
    entry = entry_of(contract)
    published = json.loads((SCHEMAS / f"{entry.name}-{entry.version}.json").read_text())
    assert published == json_schema(entry), f"{contract} changed: give it a new version in contracts/catalog.py"
    Draft202012Validator.check_schema(published)


@pytest.mark.req("P1")
def test_a_published_version_is_never_overwritten(tmp_path: Path) -> None:
    assert export(tmp_path).refused == []
    changed = tmp_path / "plan-output-1.0.json"
    changed.write_text("{}")
    again = export(tmp_path)
    assert (again.refused, again.written, len(again.unchanged)) == (["plan-output-1.0.json"], [], len(catalog()) - 1)
    assert changed.read_text() == "{}"
    assert export(tmp_path, replace=True).written == ["plan-output-1.0.json"]


@pytest.mark.req("P1", "A1", "F3")
@pytest.mark.parametrize(("file", "contract"), instances())
def test_every_example_is_recognised_and_accepted_and_fits_its_json_schema(file: str, contract: str) -> None:
    (report,) = check([SEEDS / file])
    assert (report.contract, report.errors) == (contract, 0)
    # Legacy spellings are read but never written: the published schema describes what we write.
    shape: TypeAdapter[Any] = TypeAdapter(entry_of(contract).shape)
    written = shape.dump_python(shape.validate_python(value_of(file)), mode="json")
    assert [error.message for error in _validator(contract).iter_errors(written)] == []


def test_every_contract_has_an_example() -> None:
    assert {contract for _, contract in instances()} == set(catalog())


def test_no_example_lies_about_unlisted() -> None:
    listed = {file for file, _ in instances()}
    on_disk = {str(path.relative_to(SEEDS)) for path in SEEDS.rglob("*") if path.suffix in SUFFIXES}
    assert on_disk == listed


@pytest.mark.req("P1")
def test_a_missing_required_field_is_refused_by_the_published_schema_too() -> None:
    rows = [*feature_constraints.rows(), *forge_constraints.rows()]
    missed = [
        (contract, field)
        for file, contract, field, bad in rows
        if bad is DELETE
        and (contract, field) != ("forge-run-state", "startedAt")  # depends on the status, which only the model checks
        and _validator(contract).is_valid(edited(value_of(file), field, DELETE))
    ]
    assert missed == []


@pytest.mark.parametrize(("file", "contract"), instances())
def test_an_example_reads_back_equal_and_readable(file: str, contract: str) -> None:
    path = SEEDS / file
    form = SUFFIXES[path.suffix]
    value = read(path.read_bytes(), form).value
    text = render(value, form)
    assert read(text.encode(), form).value == value
    assert "\\n" not in text.replace("\\\\n", "") or form is Format.JSON
    assert list(value) == list(read(text.encode(), form).value)


def _recognised(value: Any, form: Format, source: str = "x.yaml") -> str:
    return recognise(value, form, source).name


def test_a_damaged_document_is_still_recognised() -> None:
    for path in ("agent_output.agent", "agent_output.payload.focus", "agent_output.payload.source_files_examined"):
        assert _recognised(edited(value_of("000/research-output.yaml"), path, DELETE), Format.YAML) == "research-output"


def test_an_unknown_document_is_told_by_its_name_or_not_at_all() -> None:
    assert _recognised({"x": 1}, Format.YAML, "docs/plan-output.yaml") == "plan-output"
    with pytest.raises(UsageError, match="cannot tell which contract"):
        _recognised({"x": 1}, Format.YAML)
    with pytest.raises(UsageError, match="cannot tell which contract"):
        _recognised([1, 2], Format.JSON, "x.json")


def test_json_lines_are_checked_line_by_line(tmp_path: Path) -> None:
    span = value_of("003/trace-span.json")
    file = tmp_path / "TRACE.jsonl"
    file.write_text(render([span, span | {"status": "fine"}], Format.JSONL))
    (report,) = check([file])
    assert report.contract == "autopilot-trace-span"
    assert [(violation.line, violation.field) for violation in report.violations] == [(2, "[1].status")]


def test_a_folder_stands_for_every_document_below_it() -> None:
    reports = check([SEEDS])
    assert len(reports) == len(instances())
    assert [report.path for report in reports if report.errors or report.unread] == []
