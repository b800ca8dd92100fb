"""Writes the roles as files for other tools, and never changes a file that a person wrote or edited.

Every exported file contains a mark with the digest of its other content. A file without the mark, or with another
digest, belongs to a person.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from fairwitness.app.export.definition import definition
from fairwitness.app.export.documents import NINE
from fairwitness.app.export.hosts import CLAUDE, VSCODE
from fairwitness.app.export.overview import overview, prompt
from fairwitness.app.export.pages import FENCE, Page
from fairwitness.app.export.references import ABOUT, REFERENCES
from fairwitness.app.export.skill import skill
from fairwitness.errors import NotStored, UsageError
from fairwitness.kit import files
from fairwitness.kit.text import visible

_OPENING = f"{FENCE}\n"
_LIMIT = 16 * 1024 * 1024
_SAYS = "written by `fairwitness agents export`; edit it and it is yours, sha256"
_MARK = re.compile(rf"(?:# |<!-- ){re.escape(_SAYS)} ([0-9a-f]{{64}})(?: -->)?\n")


@dataclass(slots=True)
class Exported:
    """The result of an export by file; with `check`, what it would do."""

    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """A sentence for each file that was kept, beginning with its path."""


class _State(Enum):
    ABSENT = "absent"
    CURRENT = "current"
    OUTDATED = "outdated"
    EDITED = "edited"
    FOREIGN = "foreign"


_KEPT: Mapping[_State, str] = {
    _State.EDITED: "was edited after it was exported and is kept; delete it to have it written anew",
    _State.FOREIGN: "was not written by this command and is kept; move it away to have ours written",
}


def export(target: str, folder: Path, *, check: bool = False) -> Exported:
    """Write every file of a target below a folder; with `check`, only report what would be written.

    All paths are checked before anything is written: a planted link stops the whole export.
    """
    if target not in TARGETS:
        raise UsageError(
            f"there is no target {visible(target)!r}", next_step=f"choose one of {', '.join(sorted(TARGETS))}"
        )
    found = [(page.path, sealed(page), _state(folder, page)) for page in TARGETS[target]()]
    done = Exported()
    for path, text, state in found:
        if state in _KEPT:
            done.kept.append(f"{path} {_KEPT[state]}")
        elif state is _State.CURRENT:
            done.unchanged.append(path)
        else:
            done.written.append(path)
            if not check:
                _write(folder, path, text.encode(), is_new=state is _State.ABSENT)
    return done


def _write(folder: Path, path: str, content: bytes, *, is_new: bool) -> None:
    if is_new:
        files.create_file(folder, path, content)  # refuses a file that was created meanwhile
    else:
        files.replace_file(folder, path, content)


def sealed(page: Page) -> str:
    """Return a page with its mark: a comment on the first line, or on the first line of the front matter."""
    text = page.text
    mark = f"{_SAYS} {_digest(text)}"
    if not page.head:
        return f"<!-- {mark} -->\n{text}"
    return f"{_OPENING}# {mark}\n{text.removeprefix(_OPENING)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def is_untouched(text: str) -> bool:
    """Return whether a text has our mark and the mark's digest matches."""
    start = len(_OPENING) if text.startswith(_OPENING) else 0
    mark = _MARK.match(text, start)
    return mark is not None and _digest(text[:start] + text[mark.end() :]) == mark[1]


def _state(folder: Path, page: Page) -> _State:
    try:
        data = files.read_plain(folder, page.path, limit=_LIMIT)
    except NotStored:
        return _State.ABSENT
    try:
        text = data.decode().replace("\r\n", "\n")  # git may have converted line ends
    except UnicodeDecodeError:
        return _State.FOREIGN
    if text == sealed(page):
        return _State.CURRENT
    if is_untouched(text):
        return _State.OUTDATED
    return _State.EDITED if _SAYS in text else _State.FOREIGN


def _vscode() -> Iterator[Page]:
    yield from (definition(role, VSCODE) for role in NINE)
    for name, text in REFERENCES.items():
        yield Page(VSCODE.reference_path(name), text(), _no_agent(f"fairwitness-{name}", ABOUT[name]))
    yield Page(
        VSCODE.reference_path("README"), overview(VSCODE), _no_agent("fairwitness-overview", "the feature pipeline")
    )
    yield prompt()


def _no_agent(name: str, about: str) -> dict[str, object]:
    """Return a head that keeps a page from being offered as an agent, for folders where every page is one."""
    return {
        "name": name,
        "description": f"A page to read and no agent: {about}.",
        "tools": [],
        "user-invocable": False,
        "disable-model-invocation": True,
    }


def _claude() -> Iterator[Page]:
    yield from (definition(role, CLAUDE) for role in NINE)
    yield from (Page(CLAUDE.reference_path(name), text()) for name, text in REFERENCES.items())
    yield Page(CLAUDE.reference_path("README"), overview(CLAUDE))


TARGETS: Mapping[str, Callable[[], Iterator[Page]]] = {"vscode": _vscode, "claude": _claude, "skill": skill}
"""The function that returns the pages of each target."""
