"""Sections of briefs that all workflows use: lists, documents, and the change under review."""

from collections.abc import Iterable
from typing import Final

from fairwitness.contracts.agents.dispatch import PromptSection
from fairwitness.contracts.common.base import Contract
from fairwitness.git.shadow import Shadow
from fairwitness.kit import yaml_text

CHANGE: Final = 40_000
"""How many characters of a diff are shown."""
_UNSHOWN: Final = 40
"""How many files are named where a diff is cut."""
_NOTHING: Final = "(nothing was changed)"
_PLAINLY: Final = ("--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "-r", "-M")


def document_section(title: str, document: Contract) -> PromptSection:
    """Return a document as YAML."""
    return PromptSection(title=title, text=yaml_text.render(document.plain()))


def list_section(title: str, texts: Iterable[str]) -> tuple[PromptSection, ...]:
    """Return the texts as one section, or no section if there are none; further lines of a text are indented."""
    lines = ["- " + text.replace("\n", "\n  ") for text in texts]
    return (PromptSection(title=title, text="\n".join(lines)),) if lines else ()


def text_section(title: str, text: str) -> tuple[PromptSection, ...]:
    """Return the text as a section, or no section if it is empty."""
    return (PromptSection(title=title, text=text),) if text.strip() else ()


def change_text(shadow: Shadow, base: str, head: str, limit: int = CHANGE) -> str:
    """Return the diff between two trees, cut at `limit` characters with a note of what is missing.

    The diff is made in our own repository, so attributes that the change itself brings cannot hide parts of it.
    """
    text = shadow.git.run("diff-tree", "-p", *_PLAINLY, base, head).decode(errors="replace")
    if len(text) <= limit:
        return text or _NOTHING
    rest = text[limit:]
    names = shadow.git.run("diff-tree", "--name-only", "-z", *_PLAINLY, base, head).split(b"\0")[:-1]
    shown = text[:limit].count("\ndiff --git ") + text.startswith("diff --git ")
    missing = [name.decode(errors="replace") for name in names[shown:]]
    notes = [f"(cut here: {len(rest)} more letters are not shown; what you have not seen you cannot vouch for)"]
    if missing:
        more = f" and {len(missing) - _UNSHOWN} more" if len(missing) > _UNSHOWN else ""
        notes.append(f"(files of which nothing is shown: {', '.join(missing[:_UNSHOWN])}{more})")
    return "\n".join((text[:limit], *notes))
