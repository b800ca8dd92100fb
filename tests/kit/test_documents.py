"""One door for all formats: bytes in, a document or one kind of error out."""

import pytest

from fairwitness.errors import BadDocument, FairWitnessError, Position
from fairwitness.kit.documents import SUFFIXES, Format, read, render
from fairwitness.kit.limits import DocumentLimits

EXAMPLES = {
    Format.YAML: (b"a:\n  b: [1, x]\n", {"a": {"b": [1, "x"]}}),
    Format.JSON: (b'{"a": {"b": [1, "x"]}}', {"a": {"b": [1, "x"]}}),
    Format.JSONL: (b'{"a": {"b": [1, "x"]}}\n{"a": 2}\n', [{"a": {"b": [1, "x"]}}, {"a": 2}]),
    Format.MARKDOWN: (b"---\na: {b: [1, x]}\n---\ntext\n", {"a": {"b": [1, "x"]}, "body": "text\n"}),
}


@pytest.mark.parametrize("form", Format)
def test_every_format_is_read_into_plain_values(form: Format) -> None:
    data, value = EXAMPLES[form]
    document = read(data, form)
    assert document.value == value
    assert document.format is form
    assert document.text == data.decode()


@pytest.mark.parametrize("form", Format)
def test_every_format_is_written_as_it_is_read(form: Format) -> None:
    _, value = EXAMPLES[form]
    assert read(render(value, form).encode(), form).value == value


@pytest.mark.parametrize("form", Format)
def test_mark_and_line_ends_of_other_systems_change_nothing(form: Format) -> None:
    data, value = EXAMPLES[form]
    assert read(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"), form).value == value


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize("data", [b"\xff", b"a\x00", b"[" * 1000, b"{\x1b}", b"\xef\xbb\xbf\xef\xbb\xbf{", b"@"])
def test_every_format_refuses_by_the_one_error_only(form: Format, data: bytes) -> None:
    with pytest.raises(BadDocument) as caught:
        read(data, form)
    assert caught.value.position.line >= 1
    assert caught.value.position.column >= 1
    assert caught.value.reason


def test_a_refusal_names_its_source_and_place() -> None:
    with pytest.raises(BadDocument, match=r"^plan\.yaml:2:1: the key 'a' appears twice$") as caught:
        read(b"a: 1\na: 2\n", Format.YAML, source="plan.yaml")
    assert (caught.value.source, caught.value.position) == ("plan.yaml", Position(2, 1))
    assert isinstance(caught.value, FairWitnessError)


def test_a_refusal_without_a_source_still_names_its_place() -> None:
    with pytest.raises(BadDocument, match=r"^line 1, column 4: the bytes here are not UTF-8$"):
        read(b"a: \xff", Format.YAML)


@pytest.mark.parametrize("form", Format)
def test_limits_are_settings_of_every_format(form: Format) -> None:
    data, _ = EXAMPLES[form]
    for limits in (
        DocumentLimits(bytes=10),
        DocumentLimits(depth=1),
        DocumentLimits(nodes=3),
        DocumentLimits(integer=0),
    ):
        with pytest.raises(BadDocument):
            read(data, form, limits=limits)


def test_the_defaults_are_two_mebibytes_64_levels_and_100_000_values() -> None:
    limits = DocumentLimits()
    assert (limits.bytes, limits.depth, limits.nodes, limits.integer) == (2_097_152, 64, 100_000, 2**63 - 1)


@pytest.mark.parametrize(
    ("form", "places"),
    [
        (Format.YAML, [(1, 1), (2, 3), (2, 10), (2, 3), (1, 1)]),
        (Format.JSON, [(1, 2), (1, 8), (1, 17), (1, 8), (1, 1)]),
        (Format.MARKDOWN, [(2, 1), (2, 5), (2, 12), (2, 5), (1, 1)]),
    ],
)
def test_a_value_that_is_missing_is_placed_at_its_nearest_parent(form: Format, places: list[tuple[int, int]]) -> None:
    document = read(EXAMPLES[form][0], form)
    ways: list[tuple[str | int, ...]] = [
        ("a",),
        ("a", "b"),
        ("a", "b", 1),
        ("a", "b", 7, "deeper"),
        ("missing", "deeper"),
    ]
    assert document.positions(ways) == [Position(*place) for place in places]


def test_places_in_lines_and_of_a_body() -> None:
    lines = read(EXAMPLES[Format.JSONL][0], Format.JSONL)
    assert lines.positions([(1, "a"), (1, "missing"), (9,)]) == [Position(2, 2), Position(2, 1), Position(1, 1)]
    markdown = read(EXAMPLES[Format.MARKDOWN][0], Format.MARKDOWN)
    assert markdown.positions([("body",), ()]) == [Position(4, 1), Position(1, 1)]


def test_places_are_found_in_a_document_read_under_wider_limits() -> None:
    wide = DocumentLimits(depth=200, nodes=1_000_000)
    for form in (Format.YAML, Format.JSON):
        document = read(b"[" * 100 + b"]" * 100, form, limits=wide)
        assert document.positions([(0,) * 99]) == [Position(1, 100)]


def test_the_end_of_a_name_tells_the_format() -> None:
    assert {suffix: form.value for suffix, form in SUFFIXES.items()} == {
        ".yaml": "yaml",
        ".yml": "yaml",
        ".json": "json",
        ".jsonl": "jsonl",
        ".md": "markdown",
    }
