"""The glossary is complete: it defines every class suffix that is used often and every uncommon noun in a help text."""

import ast
import re
from collections import Counter

import architecture
import pytest
from docs import DOCS

from support.fixtures import ROOT

ROW = re.compile(r"^\| (?!word |---)([^|]+) \| ([^|]+) \| `(\w+)` \|$", re.MULTILINE)
PLAIN = ROOT / "tests" / "fixtures" / "plain-words.txt"
"""Words of help texts that a dictionary explains well enough."""
PARTICIPLES = ("ed", "broken", "written", "begun")
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+")


def _rows() -> list[tuple[str, str, str]]:
    return [(row[1], row[2], row[3]) for row in ROW.finditer((DOCS / "glossary.md").read_text())]


def _defined() -> set[str]:
    """Every single word that an entry defines, in lower case."""
    return {
        part.lower() for words, _, _ in _rows() for entry in words.split(", ") for part in (entry, entry.split()[-1])
    }


def _suffixes() -> Counter[str]:
    """How many public classes of the package end in each word; events end in a participle and are not counted."""
    suffixes: Counter[str] = Counter()
    for path in architecture.source_files():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                suffixes[_WORD.findall(node.name)[-1].lower()] += 1
    return Counter({suffix: count for suffix, count in suffixes.items() if not suffix.endswith(PARTICIPLES)})


def _is_defined(word: str, defined: set[str]) -> bool:
    return bool({word, word.removesuffix("s"), f"{word}s", re.sub("ies$", "y", word)} & defined)


def test_every_entry_is_short_and_names_a_package_that_exists() -> None:
    rows = _rows()
    packages = {package.name for package in architecture.packages()}
    assert 70 <= len(rows) <= 115
    for word, meaning, package in rows:
        assert package in packages, word
        assert len(meaning) <= 160, word


def test_no_word_is_defined_twice() -> None:
    words = [entry for words, _, _ in _rows() for entry in words.split(", ")]
    assert [word for word, count in Counter(words).items() if count > 1] == []


def test_every_class_suffix_that_is_used_three_times_is_defined() -> None:
    defined = _defined()
    missing = [suffix for suffix, count in _suffixes().items() if count >= 3 and not _is_defined(suffix, defined)]
    assert missing == []


def test_every_word_of_a_help_text_is_defined_or_plain_english() -> None:
    text = (DOCS / "commands.md").read_text().replace("```", "")
    prose = re.sub(r"`[^`]*`|\bfairwitness\b|--?[\w-]+|\b[A-Z_]{2,}\b|<[^>]+>|[\w./-]+\.\w+", " ", text)
    words = {word.lower() for word in re.findall(r"(?<![\w/.-])[A-Za-z]{3,}(?![\w/]|\.\w)", prose)}
    known = _defined() | set(PLAIN.read_text().split())
    assert sorted(word for word in words if not _is_defined(word, known)) == []


def test_plain_words_are_used_and_not_in_the_glossary() -> None:
    plain = PLAIN.read_text().split()
    assert plain == sorted(set(plain))
    assert [word for word in plain if word in _defined()] == []


@pytest.mark.parametrize("word", ["desk", "book", "room", "press", "shelf"])
def test_words_that_were_given_up_do_not_come_back(word: str) -> None:
    pattern = re.compile(rf"\bclass \w*{word.capitalize()}\b")
    found = [str(path.relative_to(ROOT)) for path in architecture.source_files() if pattern.search(path.read_text())]
    assert found == []
