"""Roles and tools: the rights of each role, tool calls, their scope, and the answer to a call."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, NamedTuple

from fairwitness.contracts.common.base import Contract, Flag, Maybe, Text


class Role(StrEnum):
    """All agent roles of the three workflows."""

    ORCHESTRATOR = "orchestrator"
    INTAKE = "intake"
    RESEARCHER = "researcher"
    SPEC = "spec"
    DESIGNER = "designer"
    REVIEWER = "adversarial-reviewer"
    PLANNER = "planner"
    IMPLEMENTER = "implementer"
    VERIFIER = "verifier"
    KNOWLEDGE = "knowledge-agent"
    PHASE_RESEARCHER = "phase-researcher"
    PHASE_PLANNER = "phase-planner"
    PLAN_CHECKER = "plan-checker"
    EXECUTOR = "executor"
    MINI_VERIFIER = "mini-verifier"
    PHASE_VERIFIER = "phase-verifier"
    JUDGE = "judge"
    RATER = "rater"
    DEBUGGER = "debugger"
    QUESTIONING = "questioning"
    SELF_AUDIT = "self-audit"
    CAPTAIN = "captain"
    THROWAWAY = "worker-1"
    WORKER = "worker-2"
    SUB_EXECUTOR = "worker-3"
    REFINERY = "refinery"


class Tool(StrEnum):
    """All tools: the fourteen of the published matrix, and those added by the built-in agent runtime and by forge."""

    READ_FILE = "read_file"
    LIST_DIR = "list_dir"
    GREP_SEARCH = "grep_search"
    SEMANTIC_SEARCH = "semantic_search"
    FILE_SEARCH = "file_search"
    CREATE_FILE = "create_file"
    REPLACE_STRING = "replace_string_in_file"
    MULTI_REPLACE = "multi_replace_string_in_file"
    RUN_IN_TERMINAL = "run_in_terminal"
    TERMINAL_OUTPUT = "get_terminal_output"
    GET_ERRORS = "get_errors"
    MEMORY = "memory"
    ASK_QUESTIONS = "ask_questions"
    LIST_USAGES = "list_code_usages"
    AGENT = "agent"
    QUERY_LEDGER = "query_ledger"
    QUERY_MAP = "query_map"
    READ_SUBTASKS = "read_subtasks"
    WRITE_SUBTASK = "write_subtask"
    MERGE_BRANCHES = "merge_branches"
    RUN_TESTS = "run_tests"
    FIX_CONFLICT = "fix_conflict"
    EMIT_CR = "emit_cr"
    RUN_CHECK = "run_check"


MATRIX_TOOLS: tuple[Tool, ...] = tuple(Tool)[:14]
"""The tools of the published matrix."""


class Access(StrEnum):
    """The access of a role to a tool: always, only within a scope, or never."""

    ALLOWED = "allowed"
    SCOPED = "scoped"
    DENIED = "denied"


class ToolCall(Contract):
    """A tool call to be judged; it is refused if data needed for the judgement is missing."""

    tool: str
    paths: tuple[str, ...] = ()
    argv: Maybe[tuple[str, ...]] = None
    sql: Maybe[str] = None
    agent: Maybe[str] = None


class Scope(Contract):
    """The scope of one dispatch; an empty scope allows the least."""

    folder: str = ""
    """The folder of the run's documents; without it no role writes documents."""
    writes: tuple[str, ...] = ()
    """Globs of the source files that the task declared; `*` matches within one folder, `**` across folders."""
    checks: tuple[str, ...] = ()
    """The names of the project's checks that `run_check` runs; filled in when the dispatch begins."""
    interactive: Flag = False
    """Whether a person can be asked."""


class Allowed(Contract):
    """The call is allowed."""

    answer: Literal["allowed"] = "allowed"


class ToolRefusal(Contract):
    """The call is refused, with the reason."""

    answer: Literal["refused"] = "refused"
    reason: Text


_LOOK = frozenset({Tool.READ_FILE, Tool.LIST_DIR})
_SEARCH = _LOOK | {Tool.GREP_SEARCH, Tool.SEMANTIC_SEARCH, Tool.FILE_SEARCH, Tool.QUERY_MAP}
_WRITE = frozenset({Tool.CREATE_FILE, Tool.REPLACE_STRING})
_RUN = frozenset({Tool.RUN_IN_TERMINAL, Tool.TERMINAL_OUTPUT, Tool.GET_ERRORS, Tool.RUN_CHECK})
_SEVEN = _LOOK | _WRITE | {Tool.GREP_SEARCH, Tool.RUN_IN_TERMINAL, Tool.GET_ERRORS, Tool.RUN_CHECK}
_REFINE = frozenset({Tool.MERGE_BRANCHES, Tool.RUN_TESTS, Tool.FIX_CONFLICT, Tool.EMIT_CR})
_SUBTASKS = frozenset({Tool.READ_SUBTASKS, Tool.WRITE_SUBTASK})


class ToolPolicy(NamedTuple):
    """The rights of a role."""

    tools: frozenset[Tool]
    outputs: tuple[str, ...] = ()
    """Globs of the documents that are made of its work, below the run's folder."""
    writes: tuple[str, ...] = ()
    """Those that it writes itself; the program writes the others from its answer."""
    source: bool = False
    """Whether it may write the files that its task declared."""
    programs: tuple[tuple[str, ...], ...] = ()
    """Prefixes of the commands that it may run."""
    project_commands: bool = False
    """Whether it may also run the programs of the project's toolchain, whichever these are."""
    spawns: frozenset[Role] = frozenset()


_GIT_LOOK = (("git", "diff"), ("git", "show"), ("git", "log"))
_GIT_READ = (*_GIT_LOOK, ("git", "status"), ("git", "blame"), ("git", "ls-files"), ("git", "rev-parse"))
_BUILDER = (*_GIT_READ, ("rm",), ("mv",))

_DISPATCHED = frozenset(
    {
        Role.INTAKE,
        Role.RESEARCHER,
        Role.SPEC,
        Role.DESIGNER,
        Role.REVIEWER,
        Role.PLANNER,
        Role.IMPLEMENTER,
        Role.VERIFIER,
        Role.KNOWLEDGE,
    }
)

POLICIES: Mapping[Role, ToolPolicy] = {
    Role.ORCHESTRATOR: ToolPolicy(
        _LOOK
        | {
            Tool.RUN_IN_TERMINAL,
            Tool.TERMINAL_OUTPUT,
            Tool.MEMORY,
            Tool.ASK_QUESTIONS,
            Tool.AGENT,
            Tool.QUERY_LEDGER,
        },
        programs=_GIT_READ,
        spawns=_DISPATCHED,
    ),
    Role.INTAKE: ToolPolicy(_LOOK | {Tool.GREP_SEARCH, Tool.FILE_SEARCH}),
    Role.RESEARCHER: ToolPolicy(_SEARCH | {Tool.CREATE_FILE}, outputs=("research/*.yaml",)),
    Role.SPEC: ToolPolicy(_SEARCH | _WRITE | {Tool.ASK_QUESTIONS}, outputs=("spec-output.yaml", "feature.md")),
    Role.DESIGNER: ToolPolicy(_SEARCH | _WRITE, outputs=("design-output.yaml", "design.md")),
    Role.PLANNER: ToolPolicy(
        _SEARCH | _WRITE, outputs=("plan-output.yaml", "plan.md", "tasks/*.yaml"), writes=("tasks/*.yaml",)
    ),
    Role.IMPLEMENTER: ToolPolicy(
        _SEARCH | _WRITE | _RUN | {Tool.MULTI_REPLACE, Tool.LIST_USAGES},
        outputs=("implementation-reports/*.yaml",),
        source=True,
        programs=_BUILDER,
        project_commands=True,
    ),
    Role.VERIFIER: ToolPolicy(
        (_SEARCH - {Tool.SEMANTIC_SEARCH}) | _RUN | {Tool.CREATE_FILE},
        outputs=("verification-reports/*.yaml",),
        programs=_GIT_READ,
        project_commands=True,
    ),
    Role.REVIEWER: ToolPolicy(
        _SEARCH | {Tool.CREATE_FILE, Tool.RUN_IN_TERMINAL, Tool.RUN_CHECK},
        outputs=("review-findings/*.md", "review-verdicts/*.yaml"),
        programs=_GIT_LOOK,
    ),
    Role.KNOWLEDGE: ToolPolicy(
        _SEARCH | _WRITE | {Tool.MEMORY, Tool.QUERY_LEDGER},
        outputs=(
            "knowledge-output.yaml",
            "decisions.yaml",
            "evidence-bundle.md",
            "agent-metrics/*.md",
            "post-mortems/*.md",
        ),
    ),
    Role.PHASE_RESEARCHER: ToolPolicy(_SEARCH | {Tool.CREATE_FILE}, outputs=("RESEARCH.md",)),
    Role.PHASE_PLANNER: ToolPolicy(_SEARCH),  # its plan is a typed document that the harness writes, scripts included
    Role.PLAN_CHECKER: ToolPolicy(_SEARCH),
    Role.EXECUTOR: ToolPolicy(
        _SEARCH | _WRITE | _RUN | {Tool.MULTI_REPLACE, Tool.LIST_USAGES},
        source=True,
        programs=_BUILDER,
        project_commands=True,
    ),
    Role.MINI_VERIFIER: ToolPolicy(_SEARCH | _RUN, programs=_GIT_READ, project_commands=True),
    Role.PHASE_VERIFIER: ToolPolicy(_SEARCH | _RUN, programs=_GIT_READ, project_commands=True),
    Role.JUDGE: ToolPolicy(_SEARCH | _RUN, programs=_GIT_READ, project_commands=True),
    Role.RATER: ToolPolicy(frozenset()),  # it sees only the criteria and the diff that it is given
    Role.DEBUGGER: ToolPolicy(
        _SEARCH | _WRITE | _RUN | {Tool.MULTI_REPLACE, Tool.LIST_USAGES},
        source=True,
        programs=_BUILDER,
        project_commands=True,
    ),
    Role.QUESTIONING: ToolPolicy(_SEARCH),
    Role.SELF_AUDIT: ToolPolicy(_SEARCH),
    Role.CAPTAIN: ToolPolicy(_SEARCH | {Tool.ASK_QUESTIONS}),  # its plan is a typed document that the harness writes
    Role.THROWAWAY: ToolPolicy(_SEVEN, source=True, programs=_BUILDER, project_commands=True),
    Role.WORKER: ToolPolicy(
        _SEVEN | {Tool.AGENT},
        source=True,
        programs=_BUILDER,
        project_commands=True,
        spawns=frozenset({Role.THROWAWAY}),
    ),
    Role.SUB_EXECUTOR: ToolPolicy(
        _SEVEN | {Tool.AGENT} | _SUBTASKS,
        source=True,
        programs=_BUILDER,
        project_commands=True,
        spawns=frozenset({Role.THROWAWAY, Role.WORKER}),
    ),
    Role.REFINERY: ToolPolicy(
        _SEVEN | {Tool.AGENT} | _SUBTASKS | _REFINE,
        source=True,
        programs=_BUILDER,
        project_commands=True,
        spawns=frozenset({Role.THROWAWAY, Role.WORKER, Role.SUB_EXECUTOR}),
    ),
}
