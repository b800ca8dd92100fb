"""Pages of reports, taken apart."""

import re
from html.parser import HTMLParser
from pathlib import Path

from cli.runner import fairwitness

SECTIONS = [
    *("What was asked", "What changed", "What was proven", "What reviewers said", "Open issues", "What it cost"),
    *("Timeline", "Raw evidence"),
]
VOID = {"meta", "br", "hr"}
ALLOWED = {
    *("html", "head", "title", "style", "body", "header", "nav", "main", "footer", "section", "div", "span", "p", "b"),
    *(
        "h1",
        "h2",
        "h3",
        "a",
        "ul",
        "li",
        "ins",
        "del",
        "i",
        "dl",
        "dt",
        "dd",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "code",
        "pre",
    ),
    *("details", "summary", "blockquote", *VOID),
}
ATTRIBUTES = {
    *("class", "id", "href", "lang", "charset", "name", "content", "http-equiv", "style", "title", "scope", "role"),
    *("aria-label", "data-of", "open"),
}


class Page(HTMLParser):
    """A page taken apart: what is open, what is in it, and everything that is not as it should be."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.words: list[str] = []
        self.titles: list[str] = []
        """The headings of the sections, in their order."""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ALLOWED:
            self.wrong.append(f"<{tag}>")
        for name, value in attrs:
            if name not in ATTRIBUTES or name.startswith("on"):
                self.wrong.append(f"{tag} {name}={value}")
            if name == "id":
                self.ids.add(value or "")
            if name == "href":
                self.links.add(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.words.append(data)
        if self.open and self.open[-1] == "h2":
            self.titles.append(data)

    @property
    def text(self) -> str:
        """All that is to be read."""
        return " ".join(self.words)

    @property
    def header(self) -> str:
        """What is said before the first section."""
        return " ".join(self.text.split("What was asked")[0].split())


def is_sound(page: Page) -> bool:
    """Whether the page is balanced and holds nothing but what a report is made of."""
    return not page.open and not page.wrong and {link.removeprefix("#") for link in page.links} <= page.ids


def reaches_nothing(source: str, page: Page) -> bool:
    """Whether the page refers to nothing outside itself."""
    is_local = all(link.startswith("#") for link in page.links)
    return is_local and not re.search(r"(?:src|srcset|action)=|@import|url\(|<script|javascript:", source)


def demo_page(repository: Path) -> tuple[str, Page]:
    """The report of the last run, which is what every report of a demo has to be: source, and taken apart."""
    done = fairwitness("report", "last", cwd=repository)
    source = Path(done.stdout.splitlines()[0]).read_text()
    page = Page(source)
    assert is_sound(page), page.wrong
    assert reaches_nothing(source, page)
    assert page.titles == SECTIONS
    assert len(source.encode()) < 400_000
    return source, page
