"""TOML of others: everything that is refused raises the parser's own error."""

import tomllib

import pytest

from fairwitness.kit import toml_text
from verify.inspections.test_hostile_lines import within

BOMBS = {
    "lists": "a = " + "[" * 100_000,
    "closed lists": "a = " + "[" * 5_000 + "]" * 5_000,
    "inline tables": "a = " + "{a=" * 50_000,
    "a key of many parts": ".".join(["a"] * 100_000) + " = 1",
    "a table of many parts": "[" + ".".join(['"a"'] * 100_000) + "]",
    "digits": "a = " + "9" * 5_000,
    "a key twice": "a = 1\na = 2",
    "NUL": "\0",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_in_bounded_time(name: str) -> None:
    with within(10), pytest.raises(tomllib.TOMLDecodeError):
        toml_text.parse(BOMBS[name])


def test_an_honest_document_is_read() -> None:
    text = '[tool.a.b]\nx = "' + "word. " * 500 + '"\n'
    assert toml_text.parse(text)["tool"]["a"]["b"]["x"].startswith("word.")
