"""Every example of seed 003 is accounted for, read, written again, and told from all others."""

import re
from typing import Any

import jsonschema
import pytest
from pydantic import TypeAdapter

from contracts.autopilot.seed003 import ADAPTERS, AUTOPILOT, DOCUMENTS, FOLDER, MANIFEST, load, marks, parse
from fairwitness.contracts.common.base import AgentDocument, Contract

_OPEN = {entry.name for entry in AUTOPILOT if entry.name.endswith("-return")}
_OPEN |= {"autopilot-phase-plan", "autopilot-debug-session"}
"""Written by agents; every other contract belongs to a file that only Fair Witness writes."""


def test_the_manifest_lists_every_block_in_order() -> None:
    lines = [block["line"] for block in MANIFEST["block"]]
    assert lines == sorted(set(lines))
    assert len(lines) == 53
    assert {block["kind"] for block in MANIFEST["block"]} == {"instance", "fragment", "template", "text"}


def test_a_block_is_a_document_or_says_why_not() -> None:
    for block in MANIFEST["block"]:
        is_document = block["kind"] == "instance"
        assert ("file" in block or "files" in block) is is_document
        assert is_document or block["note"]
        assert "contract" not in block or block["contract"] in ADAPTERS


def test_every_template_of_a_contract_has_a_filled_in_document() -> None:
    templates = {
        block["contract"] for block in MANIFEST["block"] if block["kind"] == "template" and "contract" in block
    }
    assert templates <= {filled["contract"] for filled in MANIFEST["filled"]}


def test_the_folder_holds_what_the_manifest_lists() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*DOCUMENTS, "manifest.toml"}


def test_every_contract_has_a_document_and_a_name_of_its_own() -> None:
    names = [entry.name for entry in AUTOPILOT]
    assert len(set(names)) == len(names) == 36
    assert set(DOCUMENTS.values()) == set(names)
    assert all(re.fullmatch(r"autopilot(-[a-z]+)+", name) for name in names)
    assert {entry.written_as for entry in AUTOPILOT} == {"json", "jsonl", "markdown"}


@pytest.mark.parametrize("file", [pytest.param(file, marks=marks(file)) for file in DOCUMENTS])
def test_an_example_is_read_and_written_again_without_loss(file: str) -> None:
    document = parse(file)
    again = ADAPTERS[DOCUMENTS[file]].validate_python(document.plain())
    assert again == document
    assert again.plain() == document.plain()


@pytest.mark.parametrize("file", DOCUMENTS)
def test_what_is_written_satisfies_the_json_schema(file: str) -> None:
    validator = jsonschema.Draft202012Validator(ADAPTERS[DOCUMENTS[file]].json_schema())
    assert not list(validator.iter_errors(parse(file).plain()))
    if "details" in load(file) or DOCUMENTS[file] != "autopilot-event":  # flat events are only read, never written
        assert not list(validator.iter_errors(load(file)))


@pytest.mark.parametrize(("name", "shape"), [(entry.name, entry.shape) for entry in AUTOPILOT])
def test_every_contract_has_a_json_schema_that_explains_itself(name: str, shape: Any) -> None:
    schema = TypeAdapter(shape).json_schema()
    for title, part in schema.get("$defs", {}).items():
        assert part.get("description"), f"{name}: {title}"


def test_agents_may_say_more_than_we_know_and_our_own_files_may_not() -> None:
    for file, name in DOCUMENTS.items():
        document = parse(file)
        for part in _parts(document):
            assert isinstance(part, AgentDocument) is (name in _OPEN), (file, type(part))


def _parts(value: Any) -> list[Contract]:
    if isinstance(value, Contract):
        return [value, *(part for name in type(value).model_fields for part in _parts(getattr(value, name)))]
    if isinstance(value, dict):
        return [part for inner in value.values() for part in _parts(inner)]
    if isinstance(value, tuple):
        return [part for inner in value for part in _parts(inner)]
    return [] if not hasattr(value, "root") else _parts(value.root)


def test_unknown_fields_of_an_agent_are_kept() -> None:
    said = load("filled-researcher-return.json") | {"mood": "hopeful"}
    kept = ADAPTERS["autopilot-researcher-return"].validate_python(said)
    assert kept.plain() == said


def _shows(value: Any, sign: str) -> bool:
    if sign.startswith("!"):
        return not _shows(value, sign[1:])
    way, _, wanted = sign.partition("=")
    reached = [value]
    for part in way.split("."):
        if part == "[]":
            reached = [inner[0] for inner in reached if isinstance(inner, list) and inner]
        elif part == "*":
            reached = [field for inner in reached if isinstance(inner, dict) for field in inner.values()]
        else:
            reached = [inner[part] for inner in reached if isinstance(inner, dict) and part in inner]
    return any(not wanted or inner == wanted for inner in reached)


def _best(value: Any) -> list[str]:
    likeness = {entry.name: sum(_shows(value, sign) for sign in entry.signs) / len(entry.signs) for entry in AUTOPILOT}
    return [name for name, share in likeness.items() if share == max(likeness.values())]


@pytest.mark.parametrize("file", DOCUMENTS)
def test_a_document_is_recognised_by_its_keys_alone(file: str) -> None:
    document = load(file)
    matching = [entry.name for entry in AUTOPILOT if all(_shows(document, sign) for sign in entry.signs)]
    assert matching == [DOCUMENTS[file]]


_NOTHING_ELSE_TELLS = {
    "autopilot-context-map": "phases",
    "autopilot-discuss-context": "phases",
    "autopilot-event": "event",
    "autopilot-phase-plan": "tasks",
}
"""Without these fields a document could be anything."""


@pytest.mark.parametrize("file", [file for file in DOCUMENTS if isinstance(load(file), dict) and len(load(file)) > 1])
def test_a_document_that_lost_a_field_is_still_recognised(file: str) -> None:
    whole = load(file)
    for lost in set(whole) - {_NOTHING_ELSE_TELLS.get(DOCUMENTS[file])}:
        assert _best({key: value for key, value in whole.items() if key != lost}) == [DOCUMENTS[file]], lost
