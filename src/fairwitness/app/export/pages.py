"""Exported files and their Markdown: tables, lists, and templates with values."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FENCE = "---"
WORDS = Path(__file__).parent / "words"
_PLACE = re.compile(r"\{\{([a-z_]+)\}\}")


@dataclass(frozen=True, slots=True)
class Page:
    """An exported file without the mark of its origin."""

    path: str
    body: str
    head: Mapping[str, Any] = field(default_factory=dict)
    """The front matter; a page without any has no head."""

    @property
    def text(self) -> str:
        """Return head and body. Each field of the head is one line of JSON, which every YAML reader understands."""
        if not self.head:
            return self.body
        lines = (f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in self.head.items())
        return "\n".join((FENCE, *lines, FENCE, self.body))


def worded(name: str, **values: str) -> str:
    """Return `words/<name>.md` with every `{{place}}` filled in; no place and no value may be left over."""
    text = (WORDS / f"{name}.md").read_text(encoding="utf-8")
    places = set(_PLACE.findall(text))
    if places != set(values):
        raise AssertionError(f"{name}.md has the places {sorted(places)} and was given {sorted(values)}")
    return _PLACE.sub(lambda place: values[place[1]].strip("\n"), text)


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table."""
    names = list(head)
    lines = [names, ["---"] * len(names), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(cell: object) -> str:
    return str(cell).replace("|", "\\|") or "–"


def code(names: Iterable[str]) -> str:
    """Return names as code, separated by commas.

    >>> code(("a.md", "b.md"))
    '`a.md`, `b.md`'
    """
    return ", ".join(f"`{name}`" for name in names)


def item(text: str) -> str:
    """Return a paragraph as a list item."""
    first, *rest = text.strip().splitlines()
    return "\n".join((f"- {first}", *(f"  {line}" for line in rest)))
