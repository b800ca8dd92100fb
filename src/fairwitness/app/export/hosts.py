"""The programs that read agent files: their folders, names of tools, and front matter.

Tools without a name in a program are omitted, so a role has fewer tools there and never more.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fairwitness.agents.roles import ROLES
from fairwitness.app.export.documents import NINE
from fairwitness.contracts.common.tools import POLICIES, Role, Tool


class Host(NamedTuple):
    """A program and its conventions."""

    name: str
    agents: str
    """The folder of its agents."""
    ending: str
    references: str
    """The folder of reference documents."""
    tools: Mapping[Tool, str]
    """The program's names of our tools; a missing tool does not exist there."""
    head: Callable[[Role, tuple[str, ...], str], dict[str, Any]]

    def agent_path(self, role: Role) -> str:
        """Return the path of a role's definition."""
        return f"{self.agents}/{role.value}{self.ending}"

    def reference_path(self, name: str) -> str:
        """Return the path of a reference document."""
        return f"{self.references}/{name}.md"

    def link(self, name: str) -> str:
        """Return a Markdown link from a definition to a reference document."""
        way = "" if self.references == self.agents else f"../{self.references.rsplit('/', 1)[-1]}/"
        return f"[{name}.md]({way}{name}.md)"

    def tools_of(self, role: Role) -> tuple[str, ...]:
        """Return the program's names of a role's tools."""
        has = POLICIES[role].tools
        return tuple(dict.fromkeys(self.tools[tool] for tool in Tool if tool in has and tool in self.tools))


def started_by(role: Role) -> tuple[str, ...]:
    """Return the roles of the published set that a role may start."""
    return tuple(other.value for other in NINE if other in POLICIES[role].spawns)


def _vscode_head(role: Role, tools: tuple[str, ...], description: str) -> dict[str, Any]:
    head: dict[str, Any] = {"name": role.value, "description": description}
    if ROLES[role].parameters:
        head["argument-hint"] = ", ".join(f"{name}=…" for name in ROLES[role].parameters)
    head["tools"] = list(tools)
    if started_by(role):
        head |= {"agents": list(started_by(role)), "disable-model-invocation": True}
    return head


def _claude_head(role: Role, tools: tuple[str, ...], description: str) -> dict[str, Any]:
    starts = f"({', '.join(started_by(role))})"
    named = ", ".join(f"{tool}{starts}" if tool == CLAUDE.tools[Tool.AGENT] else tool for tool in tools)
    head: dict[str, Any] = {"name": role.value, "description": description, "tools": named}
    if ROLES[role].is_dispatched:
        head["maxTurns"] = ROLES[role].turns
    return head


VSCODE = Host(
    name="VS Code",
    agents=".github/agents",
    ending=".agent.md",
    references=".github/agents",
    tools={
        Tool.READ_FILE: "read/readFile",
        Tool.LIST_DIR: "search/listDirectory",
        Tool.GREP_SEARCH: "search/textSearch",
        Tool.SEMANTIC_SEARCH: "search/codebase",
        Tool.FILE_SEARCH: "search/fileSearch",
        Tool.CREATE_FILE: "edit/createFile",
        Tool.REPLACE_STRING: "edit/editFiles",
        Tool.MULTI_REPLACE: "edit/editFiles",
        Tool.RUN_IN_TERMINAL: "execute/runInTerminal",
        Tool.TERMINAL_OUTPUT: "execute/getTerminalOutput",
        Tool.GET_ERRORS: "read/problems",
        Tool.MEMORY: "vscode/memory",
        Tool.ASK_QUESTIONS: "vscode/askQuestions",
        Tool.LIST_USAGES: "search/usages",
        Tool.AGENT: "agent",
    },
    head=_vscode_head,
)

CLAUDE = Host(
    name="Claude Code",
    agents=".claude/agents",
    ending=".md",
    references=".claude/fairwitness",  # the program treats every file below its agents folder as an agent
    tools={
        Tool.READ_FILE: "Read",
        Tool.LIST_DIR: "Glob",
        Tool.GREP_SEARCH: "Grep",
        Tool.SEMANTIC_SEARCH: "Grep",
        Tool.FILE_SEARCH: "Glob",
        Tool.CREATE_FILE: "Write",
        Tool.REPLACE_STRING: "Edit",
        Tool.MULTI_REPLACE: "Edit",
        Tool.RUN_IN_TERMINAL: "Bash",
        Tool.TERMINAL_OUTPUT: "Bash",
        Tool.GET_ERRORS: "LSP",
        Tool.ASK_QUESTIONS: "AskUserQuestion",
        Tool.LIST_USAGES: "LSP",
        Tool.AGENT: "Agent",
    },
    head=_claude_head,
)
