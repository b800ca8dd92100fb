"""Looking at files and folders, and writing whole files.

Lines are shown with their numbers, since findings name lines; the tools that edit notice a number that was copied.
"""

from fairwitness.agents.toolset.arguments import CreateFile, ListDir, ReadFile
from fairwitness.agents.toolset.model import TEXT_LIMIT, Unable
from fairwitness.agents.toolset.plain import one_line, short_line, spelled
from fairwitness.agents.toolset.tree import Tree, name_problem

LINES_LIMIT = 1_000
"""Lines of one answer."""
ENTRIES_LIMIT = 500
"""Names of one listing."""
_ROOM = TEXT_LIMIT - 1_000
"""What is left for lines when everything else is said."""


def read_file(tree: Tree, asked: ReadFile) -> str:
    """Lines of a file with their numbers."""
    text = tree.read_text(asked.path)
    if not text:
        return f"{asked.path} is empty"
    lines = split_lines(text)
    shown, first, last = window(lines, asked.start_line, asked.end_line, asked.path)
    notes = []
    if "\r\n" in text:
        notes.append("line ends are CRLF")
    if last == len(lines) and not text.endswith("\n"):
        notes.append("the last line has no line end")
    if last < min(asked.end_line or len(lines), len(lines)):
        notes.append(f"go on with start_line {last + 1}")
    head = f"{asked.path}, lines {first} to {last} of {len(lines)}{''.join(f'; {note}' for note in notes)}"
    return "\n".join([head, *(f"{first + index}\t{line}" for index, line in enumerate(shown))])


def split_lines(text: str) -> list[str]:
    """The lines of a text, without their ends; only a newline ends one."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def window(lines: list[str], start: int, end: int | None, what: str) -> tuple[list[str], int, int]:
    """As many of the wanted lines as fit, and the numbers of the first and the last."""
    if start > len(lines):
        raise Unable(f"{what} has only {len(lines)} lines")
    if end is not None and end < start:
        raise Unable(f"end_line {end} is before start_line {start}")
    shown: list[str] = []
    space = _ROOM
    for line in lines[start - 1 : min(end or len(lines), start - 1 + LINES_LIMIT)]:
        plain = spelled(short_line(line))
        space -= len(plain) + 8
        if space < 0 and shown:
            break
        shown.append(plain)
    return shown, start, start + len(shown) - 1


def list_dir(tree: Tree, asked: ListDir) -> str:
    """Names in a folder; folders end with a slash."""
    tree.require(asked.path, "folder")
    lines = []
    for entry in tree.entries(asked.path):
        problem = name_problem(entry.name)
        note = f" (closed: {problem})" if problem is not None else ""
        if entry.kind == "other" and not note:
            note = " (a link or no plain file: closed)"
        lines.append(f"{one_line(entry.name)}{'/' if entry.kind == 'folder' else ''}{note}")
    more = len(lines) - ENTRIES_LIMIT
    if more > 0:
        lines[ENTRIES_LIMIT:] = [f"[{more} more]"]
    return "\n".join(lines) or f"{asked.path} is empty"


def create_file(tree: Tree, asked: CreateFile) -> str:
    """Writes a file, new or over what stands there; a role that may write a file may also rewrite it."""
    before = tree.kind(asked.path)
    if before == "folder":
        raise Unable(f"{asked.path} is a folder")
    data = to_bytes(asked.content)
    tree.write(asked.path, data)
    lines = len(split_lines(asked.content)) if asked.content else 0
    return f"{'replaced' if before == 'file' else 'created'} {asked.path} ({lines} {'line' if lines == 1 else 'lines'})"


def to_bytes(text: str) -> bytes:
    """A text as it is stored."""
    if "\0" in text:
        raise Unable("the text has a NUL character")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise Unable("the text has half of a surrogate pair, which no file can hold") from None
