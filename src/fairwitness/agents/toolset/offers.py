"""The description of each tool for a model: its purpose, what its role may do with it, and its schema."""

import copy
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from fairwitness.agents.toolset.arguments import ARGUMENTS
from fairwitness.agents.toolset.model import ToolSpec
from fairwitness.agents.toolset.plain import one_line
from fairwitness.contracts.common.tools import POLICIES, Role, Scope, Tool
from fairwitness.rules.tool_policy import runnable

_WRITES = frozenset({Tool.CREATE_FILE, Tool.REPLACE_STRING, Tool.MULTI_REPLACE})
_LISTED = 30

WORDS: Mapping[Tool, str] = {
    Tool.READ_FILE: "Read a text file. Each line is shown with its number and a tab, which are not part of the file.",
    Tool.LIST_DIR: "List the names in a folder.",
    Tool.GREP_SEARCH: "Find lines by a text or a regular expression. Files that git ignores are passed over.",
    Tool.SEMANTIC_SEARCH: "Find code by what it is about.",
    Tool.FILE_SEARCH: "Find files by a glob. Files that git ignores are passed over.",
    Tool.CREATE_FILE: "Write a whole file, with the folders it needs; what stood there before is replaced.",
    Tool.REPLACE_STRING: "Replace a text that occurs exactly once in a file.",
    Tool.MULTI_REPLACE: "Make several replacements, each of a text that occurs exactly once: all of them or none.",
    Tool.RUN_IN_TERMINAL: (
        "Run one program with its arguments at the worktree's root. There is no shell: no pipes, no redirection, "
        "no variables, no second command."
    ),
    Tool.TERMINAL_OUTPUT: "Show lines of the last command's output.",
    Tool.GET_ERRORS: "Show what the project's own checkers say about files, or about everything.",
    Tool.MEMORY: "Keep a note for later runs.",
    Tool.ASK_QUESTIONS: "Ask the person who started this.",
    Tool.LIST_USAGES: "List where a name is used.",
    Tool.AGENT: "Start a helper and wait for its answer.",
    Tool.QUERY_LEDGER: "Ask the ledger of evidence with one SELECT.",
    Tool.QUERY_MAP: "Ask the map of the repository about its structure.",
    Tool.READ_SUBTASKS: "Show the subtasks of this task.",
    Tool.WRITE_SUBTASK: "Write a subtask.",
    Tool.MERGE_BRANCHES: "Merge branches into the one under work, in order.",
    Tool.RUN_TESTS: "Run the project's tests on the merged tree.",
    Tool.FIX_CONFLICT: "Write a conflicting file as it should be.",
    Tool.EMIT_CR: "Ask for a change of the plan.",
    Tool.RUN_CHECK: (
        "Run a check of this project on the files as they are now, exactly as your work will be judged, and show what "
        "fails."
    ),
}


def offer(tool: Tool, role: Role, scope: Scope) -> ToolSpec:
    """Return a tool with what this role may do with it in this scope."""
    words = WORDS[tool]
    if tool in _WRITES:
        words += f" You may write: {_listed(writable(role, scope))}."
    elif tool is Tool.RUN_IN_TERMINAL:
        words += f" You may run: {', '.join(runnable(POLICIES[role]))}."
    elif tool is Tool.RUN_CHECK:
        words += f" The checks: {_listed(scope.checks)}."
    elif tool is Tool.AGENT:
        words += f" You may start: {_listed(sorted(POLICIES[role].spawns))}."
    return ToolSpec(tool.value, words, schema(tool))


def writable(role: Role, scope: Scope) -> list[str]:
    """Return the globs of files that a role may write."""
    policy = POLICIES[role]
    documents = [f"{scope.folder}/{output}" for output in policy.outputs if scope.folder]
    return [*documents, *(scope.writes if policy.source else ())]


def _listed(items: Iterable[str]) -> str:
    all_of_them = [one_line(item, 200) for item in items]
    more = len(all_of_them) - _LISTED
    shown = ", ".join(all_of_them[:_LISTED]) or "nothing"
    return f"{shown} and {more} more" if more > 0 else shown


def schema(tool: Tool) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments; a copy that is the caller's own."""
    return copy.deepcopy(_schema(tool))


@cache
def _schema(tool: Tool) -> dict[str, Any]:
    whole = ARGUMENTS[tool].model_json_schema()
    simple = _simple(whole, whole.get("$defs", {}))
    simple.pop("$defs", None)
    simple.pop("description", None)  # it says for us what the arguments are; the tool says it for the model
    assert isinstance(simple, dict)
    return simple


def _simple(value: Any, shared: Mapping[str, Any]) -> Any:
    """Return a schema without references, titles and nulls: some model interfaces refuse them, none needs them."""
    if isinstance(value, list):
        return [_simple(each, shared) for each in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        target = dict(shared[str(value["$ref"]).rsplit("/", 1)[-1]])
        target.pop("description", None)
        return _simple(target, shared)
    choices = [choice for choice in value.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        value = {**{key: each for key, each in value.items() if key not in ("anyOf", "default")}, **choices[0]}
    return {key: _simple(each, shared) for key, each in value.items() if not (key == "title" and isinstance(each, str))}
