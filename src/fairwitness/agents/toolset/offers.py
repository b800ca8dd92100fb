"""The description of each tool for a model: its purpose, what its role may do with it, and its schema."""

import copy
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from fairwitness.agents.toolset.arguments import ARGUMENTS
from fairwitness.agents.toolset.model import ToolSpec
from fairwitness.agents.toolset.plain import one_line
from fairwitness.contracts.common.tools import POLICIES, Role, Scope, Tool

_WRITES = frozenset({Tool.CREATE_FILE, Tool.REPLACE_STRING, Tool.MULTI_REPLACE})
_LISTED = 30
_UNSAID = frozenset(
    {"title", "default", "additionalProperties", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"}
)

WORDS: Mapping[Tool, str] = {
    Tool.READ_FILE: "Read a text file. Line numbers and tabs are added.",
    Tool.LIST_DIR: "List a folder.",
    Tool.GREP_SEARCH: "Find lines in files that git does not ignore.",
    Tool.SEMANTIC_SEARCH: "Find code by what it is about.",
    Tool.FILE_SEARCH: "Find files that git does not ignore.",
    Tool.CREATE_FILE: "Write a whole file, new or existing.",
    Tool.REPLACE_STRING: "Replace a text that occurs exactly once in a file.",
    Tool.MULTI_REPLACE: "Make several such replacements: all or none.",
    Tool.RUN_IN_TERMINAL: "Run one program at the worktree's root. No shell: no pipe, no redirection, no variable.",
    Tool.TERMINAL_OUTPUT: "Show lines of the last command's output.",
    Tool.GET_ERRORS: "Show what the project's checkers say.",
    Tool.MEMORY: "Keep a note for later runs.",
    Tool.ASK_QUESTIONS: "Ask the person who started the run.",
    Tool.LIST_USAGES: "List where a name is used.",
    Tool.AGENT: "Start a helper and wait for its answer.",
    Tool.QUERY_LEDGER: "Query the ledger of this run with one SELECT.",
    Tool.QUERY_MAP: "Ask about the structure of the code.",
    Tool.READ_SUBTASKS: "Show the subtasks of this task.",
    Tool.WRITE_SUBTASK: "Write a subtask.",
    Tool.MERGE_BRANCHES: "Show whether branches are in your worktree, and which files are in conflict.",
    Tool.RUN_TESTS: "Run all checks of the project on your files.",
    Tool.FIX_CONFLICT: "Write a conflicting file as it should be.",
    Tool.EMIT_CR: "Ask for a change of the plan.",
    Tool.RUN_CHECK: "Run a check of the project on your files, exactly as they will be judged.",
}


def is_usable(tool: Tool, role: Role, scope: Scope) -> bool:
    """Return whether a role can do anything with a tool in this scope; a tool of no use is not offered."""
    if tool in _WRITES:
        return bool(writable(role, scope))
    if tool is Tool.RUN_CHECK:
        return bool(scope.checks)
    return scope.interactive if tool is Tool.ASK_QUESTIONS else True


def offer(tool: Tool, role: Role, scope: Scope) -> ToolSpec:
    """Return a tool as a model is shown it. What a role may write, run and start is in its prompt."""
    words = WORDS[tool]
    if tool is Tool.RUN_CHECK:
        words += f" The checks: {_listed(scope.checks)}."
    return ToolSpec(tool.value, words, schema(tool))


def writable(role: Role, scope: Scope) -> list[str]:
    """Return the globs of files that a role writes; the program writes its answer."""
    policy = POLICIES[role]
    documents = [f"{scope.folder}/{document}" for document in policy.writes if scope.folder]
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
    """Return a schema without references, titles and nulls, which some model interfaces refuse, and without limits.

    Each call is validated here: a model that exceeds a limit is told which one.
    """
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
    return {
        key: {name: _simple(field, shared) for name, field in each.items()}
        if key == "properties"
        else _simple(each, shared)
        for key, each in value.items()
        if key not in _UNSAID
    }
