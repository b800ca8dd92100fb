"""Interprets an agent's tool call as calls that a policy can decide on, or says why it is unclear.

The name of a tool counts only where the profile says that names are reported; otherwise the arguments decide. A call
that looks like two things at once, or like nothing known, is unclear, and an unclear call is refused.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairwitness.contracts.agents.profile import AgentProfile
from fairwitness.contracts.common.tools import Tool, ToolCall

MakeRelative = Callable[[str], str]
"""Makes a path relative to the worktree; a path that leads elsewhere is not changed."""
_PATHS = frozenset(
    {"path", "filepath", "absolutepath", "abspath", "targetfile", "file", "filename", "notebookpath", "relativepath"}
    | {"dirpath", "directory", "dir", "folder", "movepath", "newpath", "destination", "source", "parentdir", "uri"}
)
_LISTS_OF_PATHS = frozenset({"paths", "files", "filepaths", "directories", "edits", "changes", "replacements"})
_FOLDERS = frozenset({"cwd", "workdir", "workingdirectory", "directory", "dir", "folder"})
_COMMANDS = frozenset({"command", "cmd", "commandline"})
_WHOLE_TEXT = frozenset({"content", "contents", "filetext"})
_NEW_TEXT = _WHOLE_TEXT | {
    "newstring",
    "newstr",
    "newtext",
    "oldstring",
    "oldstr",
    "oldtext",
    "newsource",
    "inserttext",
}
_CHANGES = _NEW_TEXT | {"diff", "patch", "patchtext", "edits", "changes", "replacements"}
_MAYBE_CHANGES = _CHANGES | {"text", "before", "after"}
"""The last three are also arguments of tools that only read."""
_SOUGHT = frozenset({"pattern", "query", "regex", "glob"})
_PATCHES = frozenset({"patch", "patchtext", "input", "diff"})
_PATCHED = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$", re.MULTILINE)
_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})
_RUNS_TEXT = re.compile(r"-l?i?l?c")
_WRITING = frozenset({Tool.CREATE_FILE, Tool.REPLACE_STRING, Tool.MULTI_REPLACE})
_LOOKING = frozenset({Tool.READ_FILE, Tool.LIST_DIR, Tool.GREP_SEARCH, Tool.FILE_SEARCH})
_DEPTH = 6


@dataclass(frozen=True, slots=True)
class InterpretedCall:
    """A call that a policy can decide on."""

    name: str
    """The agent's name of the tool, or ours."""
    calls: tuple[ToolCall, ...]
    """All of these must be allowed."""
    is_submission: bool = False
    """Whether it only submits an answer, which every role may do."""


@dataclass(frozen=True, slots=True)
class UnclearCall:
    """A call that no policy can decide on."""

    name: str
    why: str


def interpret_call(
    profile: AgentProfile, call: Mapping[str, Any], relative: MakeRelative
) -> InterpretedCall | UnclearCall:
    """Return the meaning of a call, from everything that was reported about it."""
    name = _name(profile, call)
    if name is not None and name in profile.submit_names:
        return InterpretedCall(name, (), is_submission=True)
    arguments = _arguments(call.get("rawInput"))
    if arguments is None and _diffs(call):
        arguments = {}
    if arguments is None and profile.quirks.command_in_title and call.get("kind") == "execute":
        arguments = {"command": call.get("title")}
    said = name or _shown(call)
    if arguments is None:
        return UnclearCall(said, "it does not say what it would do")
    tool = profile.tools[name] if name is not None else _by_shape(profile, arguments, call)
    if tool is None:
        return UnclearCall(said, "what it would do cannot be told from its arguments")
    problem = _contradiction(tool, arguments)
    if problem is not None:
        return UnclearCall(said, problem)
    try:
        return InterpretedCall(name or tool.value, tuple(_calls(tool, arguments, call, relative)))
    except ValueError as error:
        return UnclearCall(said, str(error))


def argv_of(words: Iterable[str]) -> tuple[str, ...]:
    """Return the one command that a line or a call of a shell would run; `ValueError` if it could be several.

    >>> argv_of(["bash", "-lc", "git diff 'a b'"]), argv_of(["git log"])
    (('git', 'diff', 'a b'), ('git', 'log'))
    """
    argv = tuple(words)
    if len(argv) == 1:
        return _split(argv[0])
    if len(argv) == 3 and argv[0].rsplit("/", 1)[-1] in _SHELLS and _RUNS_TEXT.fullmatch(argv[1]):
        return _split(argv[2])
    return argv


def _split(line: str) -> tuple[str, ...]:
    # for a shell each of these characters can begin another command, while shlex takes some for white space
    if any(ord(sign) < 32 for sign in line.strip()):
        raise ValueError("a command line must be one line")
    try:
        argv = tuple(shlex.split(line))
    except ValueError as error:
        raise ValueError(f"the command line cannot be read: {str(error).lower()}") from None
    if not argv:
        raise ValueError("it names no command")
    return argv


def _name(profile: AgentProfile, call: Mapping[str, Any]) -> str | None:
    """Return the name of the tool, if a known one is where the profile says names are."""
    for way in profile.names:
        value: Any = call
        for part in way.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if isinstance(value, str) and (value in profile.tools or value in profile.submit_names):
            return value
    return None


def _shown(call: Mapping[str, Any]) -> str:
    title = call.get("title")
    return title[:200] if isinstance(title, str) and title.strip() else "(no name)"


def _arguments(raw: Any) -> dict[str, Any] | None:
    """Return the arguments with normalized names: `file_path`, `filePath` and `filepath` are one."""
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except (ValueError, RecursionError):
            return None
    if not isinstance(raw, dict) or not raw:
        return None
    return _alike(raw)


def _alike(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return None if two spellings of one name have different values."""
    found: dict[str, Any] = {}
    for name, value in raw.items():
        plain = name.replace("_", "").replace("-", "").lower()
        if plain in found and found[plain] != value:
            return None
        found[plain] = value
    return found


def _diffs(call: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the file changes that a call shows."""
    content = call.get("content")
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, Mapping) and block.get("type") == "diff"]


def _by_shape(profile: AgentProfile, arguments: Mapping[str, Any], call: Mapping[str, Any]) -> Tool | None:
    """Return the tool that arguments are for, if no name is known."""
    keys = set(arguments)
    if keys & _COMMANDS:
        return Tool.RUN_IN_TERMINAL
    diffs = _diffs(call)
    if diffs or keys & _MAYBE_CHANGES or _patched(arguments):
        is_new = bool(keys & _WHOLE_TEXT) or (bool(diffs) and not any(diff.get("oldText") for diff in diffs))
        return Tool.CREATE_FILE if is_new else Tool.REPLACE_STRING
    if keys & _SOUGHT:
        return Tool.GREP_SEARCH
    return profile.bare_path if keys & _PATHS else None


def _contradiction(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """Return why arguments cannot be those of a tool, or None."""
    keys = set(arguments)
    commands = keys & _COMMANDS
    if tool is Tool.RUN_IN_TERMINAL:
        if len(commands) != 1:
            return "it does not name one command"
        return "it both runs a command and writes a text" if keys & _CHANGES else None
    if commands:
        return f"{tool.value} runs no command"
    if tool in _LOOKING and (keys & _CHANGES or _patched(arguments)):
        return f"{tool.value} writes nothing"
    return None


def _calls(
    tool: Tool, arguments: dict[str, Any], call: Mapping[str, Any], relative: MakeRelative
) -> Iterable[ToolCall]:
    if tool is Tool.RUN_IN_TERMINAL:
        _refuse_elsewhere(arguments, relative)
        command = next(arguments[key] for key in _COMMANDS & set(arguments))
        words = [command] if isinstance(command, str) else command
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            raise ValueError("its command is neither a line nor a list of words")
        yield ToolCall(tool=tool.value, argv=argv_of(words))
        return
    paths = [relative(path) for path in (*_paths(arguments), *_patched(arguments), *_diff_paths(call))]
    told = tuple(dict.fromkeys(paths))
    if tool in _WRITING and not told:
        raise ValueError("it names no file that it would write")
    if tool is Tool.FILE_SEARCH:
        yield ToolCall(tool=tool.value)
        tool = Tool.LIST_DIR
    if tool is Tool.LIST_DIR:
        told = told or (".",)
    yield ToolCall(tool=tool.value, paths=told if tool in _WRITING | _LOOKING else ())


def _refuse_elsewhere(arguments: Mapping[str, Any], relative: MakeRelative) -> None:
    """Raise `ValueError` for a command in another folder: its paths would mean other files."""
    for key in _FOLDERS & set(arguments):
        folder = arguments[key]
        if folder is not None and (not isinstance(folder, str) or relative(folder) not in ("", ".")):
            raise ValueError("a command is only run in the worktree itself")


def _paths(arguments: Mapping[str, Any], depth: int = 0) -> list[str]:
    """Return every path in the arguments, also in nested ones."""
    if depth > _DEPTH:
        raise ValueError("its arguments are nested too deep")
    found: list[str] = []
    for name, value in arguments.items():
        if name in _PATHS and value is not None:
            if not isinstance(value, str):
                raise ValueError(f"its {name} is no path")
            found.append(value.removeprefix("file://"))
        elif name in _LISTS_OF_PATHS:
            found += _listed(value, depth + 1)
    return found


def _listed(value: Any, depth: int) -> list[str]:
    found: list[str] = []
    if isinstance(value, dict):  # changes, by path
        found += value
        value = list(value.values())
        return found + [path for item in value if isinstance(item, dict) for path in _inner(item, depth)]
    for item in value if isinstance(value, list) else ():
        if isinstance(item, str):
            found.append(item.removeprefix("file://"))
        elif isinstance(item, dict):
            found += _inner(item, depth)
    return found


def _inner(item: dict[str, Any], depth: int) -> list[str]:
    alike = _alike(item)
    if alike is None:
        raise ValueError("its arguments say two things at once")
    return _paths(alike, depth + 1)


def _patched(arguments: Mapping[str, Any]) -> list[str]:
    """Return the files that a patch names."""
    texts = [arguments[key] for key in sorted(_PATCHES & set(arguments)) if isinstance(arguments[key], str)]
    return [path.strip() for text in texts for path in _PATCHED.findall(text)]


def _diff_paths(call: Mapping[str, Any]) -> list[str]:
    found = []
    for diff in _diffs(call):
        path = diff.get("path")
        if not isinstance(path, str) or not path:
            raise ValueError("it shows a change of a file without a name")
        found.append(path)
    return found
