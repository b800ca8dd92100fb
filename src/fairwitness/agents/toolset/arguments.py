"""The arguments of each tool: validated before the policy decides, and shown to the model as JSON Schema."""

import shlex
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo

from fairwitness.agents.toolset.model import FILE_LIMIT, ToolFailed
from fairwitness.agents.toolset.plain import one_line
from fairwitness.contracts.common.tools import Tool, ToolCall

MakeRelative = Callable[[str], str]
"""Makes a path relative to the worktree."""
_SHOWN_PROBLEMS = 3


def _relative(path: str, info: ValidationInfo) -> str:
    return str(info.context(path)) if info.context is not None else path


PathArgument = Annotated[str, Field(max_length=4096), AfterValidator(_relative)]
Body = Annotated[str, Field(max_length=FILE_LIMIT)]
Words = Annotated[str, Field(min_length=1, max_length=20_000)]
Line = Annotated[int, Field(ge=1)]
Results = Annotated[int, Field(ge=1, le=200)]


class Arguments(BaseModel):
    """The arguments of one tool; an unknown argument is an error, since the model meant something by it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def judged(self) -> dict[str, Any]:
        """Return the fields of a `ToolCall` that the policy needs."""
        return {}


class _OnPath(Arguments):
    path: PathArgument

    def judged(self) -> dict[str, Any]:
        return {"paths": (self.path,)}


class ReadFile(_OnPath):
    """A file, or some lines of it."""

    start_line: Line = 1
    end_line: Line | None = None


class ListDir(_OnPath):
    """A folder."""

    path: PathArgument = "."


class GrepSearch(_OnPath):
    """A text or a pattern, and where to look."""

    query: Annotated[str, Field(min_length=1, max_length=1000)]
    is_regex: bool = Field(default=False, description="Python syntax.")
    ignore_case: bool = False
    path: PathArgument = "."
    include: str = Field(default="", max_length=500, description="A glob, such as *.py.")
    max_results: Results = 100


class FileSearch(Arguments):
    """A glob."""

    pattern: Annotated[str, Field(min_length=1, max_length=500, description="A glob: src/**/*.py")]
    max_results: Results = 200


class CreateFile(_OnPath):
    """A file and all of its text."""

    content: Body


class ReplaceString(_OnPath):
    """One place in one file."""

    old_string: Annotated[Body, Field(min_length=1)]
    new_string: Body


class MultiReplace(Arguments):
    """Several places, in one file or in many."""

    replacements: Annotated[tuple[ReplaceString, ...], Field(min_length=1, max_length=50)]

    def judged(self) -> dict[str, Any]:
        return {"paths": tuple(dict.fromkeys(each.path for each in self.replacements))}


class RunInTerminal(Arguments):
    """A command line."""

    command: Annotated[str, Field(min_length=1, max_length=10_000)]

    @property
    def argv(self) -> tuple[str, ...]:
        """The words of the command line; only quotes are interpreted."""
        if "\n" in self.command.strip():
            raise ToolFailed("one command at a time, on one line")
        try:
            return tuple(shlex.split(self.command))
        except ValueError as error:
            raise ToolFailed(f"the command line cannot be read: {str(error).lower()}") from None

    def judged(self) -> dict[str, Any]:
        return {"argv": self.argv}


class RunCheck(Arguments):
    """One of the project's checks, or a part of it."""

    check: Annotated[str, Field(min_length=1, max_length=120)]
    path: Annotated[str | None, Field(max_length=500, description="Only this file, folder or test.")] = None


class TerminalOutput(Arguments):
    """Lines of the last command's output."""

    start_line: Line = 1
    end_line: Line | None = None


class GetErrors(Arguments):
    """Files, or everything."""

    paths: Annotated[tuple[PathArgument, ...], Field(max_length=100)] = ()

    def judged(self) -> dict[str, Any]:
        return {"paths": self.paths}


class SearchQuery(Arguments):
    """What is looked for, in words."""

    query: Words


class Symbol(Arguments):
    """A name in the code."""

    symbol: Annotated[str, Field(min_length=1, max_length=300)]


class MapQuestion(Arguments):
    """One of the six questions about the structure of the code."""

    question: Literal["importers", "callers", "callees", "definition", "exists", "exports"]
    name: Annotated[str, Field(min_length=1, max_length=500, description="A function, a class, or a file.")]


class Sql(Arguments):
    """One statement."""

    sql: Words

    def judged(self) -> dict[str, Any]:
        return {"sql": self.sql}


class AskQuestions(Arguments):
    """A question for a person."""

    question: Words
    options: Annotated[tuple[Words, ...], Field(max_length=10)] = ()


class Note(Arguments):
    """Something to remember."""

    text: Words


class StartAgent(Arguments):
    """A helper and its task."""

    agent: Annotated[str, Field(min_length=1, max_length=100)]
    task: Words

    def judged(self) -> dict[str, Any]:
        return {"agent": self.agent}


class Nothing(Arguments):
    """No arguments."""


class WriteSubtask(Arguments):
    """A part of the task, for another agent."""

    id: Annotated[str, Field(min_length=1, max_length=128)]
    title: Words
    type: Literal[1, 2, 3]
    body: Body
    depends_on: Annotated[tuple[str, ...], Field(max_length=50)] = ()


class Branches(Arguments):
    """Branches to bring together."""

    branches: Annotated[tuple[str, ...], Field(min_length=1, max_length=50)]


class ConflictResolution(Arguments):
    """A conflicting file as it should be."""

    path: PathArgument
    content: Body


class EmitChangeRequest(Arguments):
    """Why the plan should change, and how."""

    title: Words
    reason: Words
    affected_tasks: Annotated[tuple[str, ...], Field(max_length=100)] = ()
    suggested_changes: Words
    body: Body


ARGUMENTS: Mapping[Tool, type[Arguments]] = {
    Tool.READ_FILE: ReadFile,
    Tool.LIST_DIR: ListDir,
    Tool.GREP_SEARCH: GrepSearch,
    Tool.SEMANTIC_SEARCH: SearchQuery,
    Tool.FILE_SEARCH: FileSearch,
    Tool.CREATE_FILE: CreateFile,
    Tool.REPLACE_STRING: ReplaceString,
    Tool.MULTI_REPLACE: MultiReplace,
    Tool.RUN_IN_TERMINAL: RunInTerminal,
    Tool.TERMINAL_OUTPUT: TerminalOutput,
    Tool.GET_ERRORS: GetErrors,
    Tool.MEMORY: Note,
    Tool.ASK_QUESTIONS: AskQuestions,
    Tool.LIST_USAGES: Symbol,
    Tool.AGENT: StartAgent,
    Tool.QUERY_LEDGER: Sql,
    Tool.QUERY_MAP: MapQuestion,
    Tool.READ_SUBTASKS: Nothing,
    Tool.WRITE_SUBTASK: WriteSubtask,
    Tool.MERGE_BRANCHES: Branches,
    Tool.RUN_TESTS: Nothing,
    Tool.FIX_CONFLICT: ConflictResolution,
    Tool.EMIT_CR: EmitChangeRequest,
    Tool.RUN_CHECK: RunCheck,
}


def read_arguments(tool: Tool, given: Mapping[str, Any], relative: MakeRelative) -> Arguments:
    """Return the arguments of a call; `ToolFailed` says what is wrong with them."""
    try:
        return ARGUMENTS[tool].model_validate(given, context=relative)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, each['loc'])) or 'they'}: {each['msg'][:1].lower()}{each['msg'][1:]}"
            for each in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        shown = "; ".join(one_line(problem, 200) for problem in problems[:_SHOWN_PROBLEMS])
        raise ToolFailed(f"the arguments of {tool.value} do not fit: {shown}") from None


def as_judged(tool: Tool, arguments: Arguments) -> ToolCall:
    """Return the call for the policy."""
    return ToolCall(tool=tool.value, **arguments.judged())
