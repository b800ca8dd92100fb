"""Tool policy: whether a role may call a tool on a path or run a command. What is unknown is refused.

The rights of each role are data in `contracts.common.tools`; the sandbox enforces these answers, and an agent sees only
the tools of its role.
"""

import re
import unicodedata
from collections.abc import Iterator

from fairwitness.contracts.common.ids import relative_path_problem
from fairwitness.contracts.common.tools import (
    POLICIES,
    Access,
    Allowed,
    Role,
    Scope,
    Tool,
    ToolCall,
    ToolPolicy,
    ToolRefusal,
)
from fairwitness.rules.globs import covers

_WRITING = frozenset({Tool.CREATE_FILE, Tool.REPLACE_STRING, Tool.MULTI_REPLACE})
_READING = frozenset({Tool.READ_FILE, Tool.LIST_DIR, Tool.GREP_SEARCH, Tool.GET_ERRORS})
_NAMING_A_FILE = _WRITING | {Tool.READ_FILE, Tool.LIST_DIR}
_SCOPED = _WRITING | {Tool.RUN_IN_TERMINAL, Tool.QUERY_LEDGER, Tool.AGENT, Tool.ASK_QUESTIONS}


def access(role: Role, tool: Tool) -> Access:
    """Return the access of a role to a tool.

    >>> access(Role.REVIEWER, Tool.RUN_IN_TERMINAL).value, access(Role.PLANNER, Tool.RUN_IN_TERMINAL).value
    ('scoped', 'denied')
    """
    if tool not in POLICIES[role].tools:
        return Access.DENIED
    return Access.SCOPED if tool in _SCOPED else Access.ALLOWED


def may_call(role: str, call: ToolCall, scope: Scope) -> Allowed | ToolRefusal:
    """Return whether this role may make this call in this scope.

    >>> may_call("judge", ToolCall(tool="run_in_terminal", argv=("git", "push")), Scope()).reason
    'git push is not on the list of this role'
    """
    reason = _refusal(role, call, scope)
    return Allowed() if reason is None else ToolRefusal(reason=reason)


def _refusal(role_name: str, call: ToolCall, scope: Scope) -> str | None:
    if role_name not in {role.value for role in Role}:
        return f"there is no role {role_name or '(nothing)'}"
    if call.tool not in {tool.value for tool in Tool}:
        return f"there is no tool {call.tool or '(nothing)'}"
    role, tool = Role(role_name), Tool(call.tool)
    policy = POLICIES[role]
    if tool not in policy.tools:
        return f"{role.value} does not have {tool.value}"
    return next(_objections(policy, tool, call, scope), None)


def _objections(policy: ToolPolicy, tool: Tool, call: ToolCall, scope: Scope) -> Iterator[str]:
    if tool in _NAMING_A_FILE and not call.paths:
        yield "it names no path"
    for path in call.paths:
        problem = path_problem(path)
        if problem is not None:
            yield f"{path}: {problem}"
        elif tool in _WRITING and not may_write(policy, path, scope):
            yield f"{path} is not among the files this role may write"
        elif tool not in _WRITING | _READING:
            yield f"{tool.value} takes no path"
    if tool is Tool.RUN_IN_TERMINAL:
        problem = command_problem(policy, call.argv or (), scope)
        if problem is not None:
            yield problem
    if tool is Tool.QUERY_LEDGER:
        problem = sql_problem(call.sql or "")
        if problem is not None:
            yield problem
    if tool is Tool.AGENT and call.agent not in {role.value for role in policy.spawns}:
        yield f"this role may not start {call.agent or '(nothing)'}"
    if tool is Tool.ASK_QUESTIONS and not scope.interactive:
        yield "nobody is there to be asked"


_CLOSED_FOLDERS = frozenset({".git", "git~1", ".fairwitness"})


def path_problem(path: str) -> str | None:
    """Return why no agent may touch a path, or None.

    >>> [path_problem(path) for path in ("src/a.py", "src/../a.py", "sub/.GIT/config", ".gitignore")]
    [None, "it has a '..' segment", 'it is in .git', None]
    """
    problem = relative_path_problem(path)
    if problem is not None:
        return problem
    for segment in path.split("/"):
        closed = _folded(segment)
        if closed in _CLOSED_FOLDERS:
            return f"it is in {closed}"
    return None


def _folded(segment: str) -> str:
    """Return a path segment as the most lenient file system reads it: without case, invisible characters, streams,
    trailing dots.
    """
    seen = "".join(sign for sign in segment if unicodedata.category(sign) != "Cf")
    return seen.split(":", 1)[0].rstrip(". ").casefold()


def _plain(path: str) -> str:
    return "/".join(segment for segment in path.split("/") if segment not in ("", "."))


def may_write(policy: ToolPolicy, path: str, scope: Scope) -> bool:
    """Return True if a path is one of a role's documents or, for a building role, one of the task's declared files."""
    return any(covers(glob, _plain(path).split("/")) for glob in _write_globs(policy, scope))


def may_write_within(policy: ToolPolicy, folder: str, scope: Scope) -> bool:
    """Return True if a role could write a path at or below a folder, including paths that do not exist yet.

    >>> policy, scope = POLICIES[Role.IMPLEMENTER], Scope(writes=(".github/*/x.json", "src/**"))
    >>> [may_write_within(policy, folder, scope) for folder in (".github", ".github/hooks", "src/deep", ".qwen")]
    [True, True, True, False]
    """
    there = _plain(folder).split("/")
    globs = _write_globs(policy, scope)
    return any(covers(glob[:end], there) for glob in globs for end in range(1, len(glob) + 1))


def _write_globs(policy: ToolPolicy, scope: Scope) -> list[list[str]]:
    globs = [f"{scope.folder}/{output}" for output in policy.outputs if scope.folder]
    globs += scope.writes if policy.source else ()
    return [_plain(glob).split("/") for glob in globs]


_OPERATORS = re.compile(r"[;|&<>`\\]|\$[({A-Za-z_]")
_WRAPPERS = frozenset(
    {"sh", "bash", "dash", "zsh", "ksh", "fish", "csh", "tcsh", "busybox", "env", "sudo", "doas", "su", "xargs"}
    | {"nohup", "setsid", "timeout", "time", "nice", "stdbuf", "eval", "exec", "command", "builtin", "source", "."}
    | {"watch", "script", "ssh", "chroot", "unshare", "nsenter", "find", "parallel", "strace", "ld.so"}
)
_RUNS_TEXT = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")


def command_problem(policy: ToolPolicy, argv: tuple[str, ...], scope: Scope) -> str | None:
    """Return why a role may not run a command line, or None; it is judged as written, without a shell."""
    if not argv or not argv[0]:
        return "it names no command"
    if any(ord(sign) < 32 or ord(sign) == 127 for part in argv for sign in part):
        return "it has a control character"
    program = argv[0]
    projects = scope.commands if policy.project_commands else ()
    if program.rsplit("/", 1)[-1] in _WRAPPERS:
        # the first words of a line do not show what a shell or a wrapper runs
        listed = argv in projects and not any(_RUNS_TEXT.fullmatch(part) for part in argv)
        return None if listed else f"{program} runs other commands"
    if any(_OPERATORS.search(part) for part in argv):
        return "it has a sign that only a shell understands"
    if program == "git" or program.endswith("/git"):
        return _git_problem(policy, argv)
    if any(argv[: len(start)] == start for start in projects):
        return None
    if (program,) in policy.programs:
        return _file_command_problem(policy, argv, scope)
    return f"{program} is not on the list of this role"


_GIT_OPTIONS = re.compile(
    r"--(stat|numstat|shortstat|summary|name-only|name-status|cached|staged|patch|no-patch|oneline|no-color|no-ext-diff"
    r"|no-textconv|follow|graph|no-decorate|merges|no-merges|first-parent|reverse|all|abbrev-commit|word-diff|porcelain"
    r"|short|branch|abbrev-ref|show-toplevel|verify|minimal|histogram|find-renames|ignore-all-space|quiet|exit-code)"
    r"|--(unified|max-count|since|until|author|grep|format|pretty|diff-filter|date|abbrev|stat)=.*"
    r"|-(p|s|q|w|b|z|M|C|R|n|U\d+|n?\d+)|--"
)


def _git_problem(policy: ToolPolicy, argv: tuple[str, ...]) -> str | None:
    """Return why a git command is refused: only reading, with options that neither write a file nor start a program."""
    if argv[:2] not in policy.programs:
        return f"{' '.join(argv[:2])} is not on the list of this role"
    for part in argv[2:]:
        if part.startswith("-"):
            if _GIT_OPTIONS.fullmatch(part) is None:
                return f"{part} is not on the list of options"
        elif part.startswith(("/", "~")) or ".." in part.split("/"):
            return f"{part} is outside the work tree"
    return None


_FILE_OPTIONS = frozenset({"-f", "-r", "-rf", "-fr", "--"})


def _file_command_problem(policy: ToolPolicy, argv: tuple[str, ...], scope: Scope) -> str | None:
    operands = [part for part in argv[1:] if part not in _FILE_OPTIONS]
    if not operands:
        return "it names no file"
    for path in operands:
        if path.startswith("-"):
            return f"{path} is not on the list of options"
        problem = path_problem(path)
        if problem is not None:
            return f"{path}: {problem}"
        if not may_write(policy, path, scope):
            return f"{path} is not among the files this role may write"
    return None


_SQL_TEXT = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_SQL_FORBIDDEN = re.compile(
    r"\b(insert|update|delete|replace|upsert|drop|alter|create|attach|detach|pragma|vacuum|reindex|analyze|begin|commit"
    r"|rollback|savepoint|release|into|load_extension|readfile|writefile|edit|fts3_tokenizer)\b|--|/\*|['\"`\[;]",
    re.IGNORECASE,
)
_SQL_TIMEOUT = re.compile(r"\s*pragma\s+busy_timeout\s*(=\s*\d{1,6}\s*)?;?\s*", re.IGNORECASE)


def sql_problem(statement: str) -> str | None:
    """Return why a statement may not be run on the ledger, or None: a single SELECT that cannot change anything is
    allowed.

    >>> sql_problem("SELECT count(*) FROM anvil_checks WHERE verdict = 'insert'") is None
    True
    >>> sql_problem("WITH x AS (SELECT 1) DELETE FROM anvil_checks")
    'it has delete in it'
    """
    if _SQL_TIMEOUT.fullmatch(statement):
        return None
    bare = _SQL_TEXT.sub(" ", statement).strip().removesuffix(";").strip()
    if re.match(r"(select|with)\b", bare, re.IGNORECASE) is None:
        return "it does not ask (SELECT)"
    found = _SQL_FORBIDDEN.search(bare)
    return None if found is None else f"it has {found.group().lower()} in it"
