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

    >>> may_call("adversarial-reviewer", ToolCall(tool="run_in_terminal", argv=("git", "push")), Scope()).reason
    'git push is not allowed; you may run: git diff/show/log'
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
            yield _not_writable(policy, path, scope)
        elif tool not in _WRITING | _READING:
            yield f"{tool.value} takes no path"
    if tool is Tool.RUN_IN_TERMINAL:
        problem = command_problem(policy, call.argv or (), scope)
        if problem is not None:
            yield f"{problem}; you may run: {', '.join(runnable(policy)) or 'nothing'}"
    if tool is Tool.QUERY_LEDGER:
        problem = sql_problem(call.sql or "")
        if problem is not None:
            yield problem
    if tool is Tool.AGENT and call.agent not in {role.value for role in policy.spawns}:
        yield f"this role may not start {call.agent or '(nothing)'}"
    if tool is Tool.ASK_QUESTIONS and not scope.interactive:
        yield "no person can be asked in this run"


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


_QUOTED = 10
_EVIDENCE = frozenset({"evidence-bundle.md", "verification-ledger.db"})
"""The files in the folder of a feature that only Fair Witness writes."""


def may_write(policy: ToolPolicy, path: str, scope: Scope) -> bool:
    """Return True if a path is one of a role's documents or, for a building role, one of the task's declared files.

    No plan makes evidence writable for a role whose changes are committed:

    >>> policy, scope = POLICIES[Role.IMPLEMENTER], Scope(writes=("docs/**",))
    >>> [may_write(policy, f"docs/feature/login/{name}", scope) for name in ("notes.md", "Evidence-Bundle.md")]
    [True, False]
    """
    there = _plain(path).split("/")
    folded = [_folded(segment) for segment in there]
    if policy.source and folded[:2] == ["docs", "feature"] and folded[-1] in _EVIDENCE:
        return False
    return any(covers(glob, there) for glob in _write_globs(policy, scope))


def _not_writable(policy: ToolPolicy, path: str, scope: Scope) -> str:
    globs = ["/".join(glob) for glob in _write_globs(policy, scope)]
    more = f" and {len(globs) - _QUOTED} more" if len(globs) > _QUOTED else ""
    return f"{path} is not among the files this role may write: {', '.join(globs[:_QUOTED]) or 'none'}{more}"


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
    globs = [f"{scope.folder}/{output}" for output in policy.writes if scope.folder]
    globs += scope.writes if policy.source else ()
    return [_plain(glob).split("/") for glob in globs]


_OPERATORS = re.compile(r"[;|&<>`\\]|\$[({A-Za-z_]")
_SHELL_WORD = re.compile(r"(?:\d?(?:>>?|<<?)(?:&?\d|.*)|&>.*|\|\|?|&&?|;|[^;]*[^;\\];)")
"""A word by which a shell would join commands or redirect their output."""
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish", "csh", "tcsh"})
_WRAPPERS = frozenset({"env", "timeout", "time", "nice", "stdbuf", "xargs", "find", "parallel"})
_RUNS_TEXT = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")
_DENIED = {
    **dict.fromkeys(("sudo", "doas", "su", "chroot", "unshare", "nsenter", "mount", "umount", "setpriv"), "no rights"),
    **dict.fromkeys(("docker", "podman", "kubectl", "systemctl", "service", "crontab", "at"), "no services"),
    **dict.fromkeys(("ssh", "scp", "rsync", "curl", "wget", "nc", "telnet", "ftp"), "no network"),
    **dict.fromkeys(("nohup", "setsid", "screen", "tmux", "watch", "script", "disown"), "nothing after your command"),
    **dict.fromkeys(("strace", "ltrace", "gdb", "ld.so", "busybox"), "no tracing"),
    **dict.fromkeys(("eval", "exec", "command", "builtin", "source", ".", "cd", "export"), "no shell"),
}
"""Programs that no agent runs, each with what is missing for it here. What runs is held by the sandbox and the audit
of the worktree; this list tells an agent early what would be of no use."""
_INSTALLERS = {
    **dict.fromkeys(("pip", "pip3"), ("install", "download", "uninstall")),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("install", "i", "ci", "add", "publish", "update", "up")),
    **dict.fromkeys(("uv", "poetry", "pdm", "conda"), ("add", "install", "sync", "publish", "update")),
    **dict.fromkeys(("cargo", "gem", "go", "brew", "apt", "apt-get"), ("install", "add", "publish", "get")),
}
_PYTHON = re.compile(r"python[0-9.]*")


def runnable(policy: ToolPolicy) -> list[str]:
    """Return what a role may run, in words."""
    own = ["any program of the project"] if policy.project_commands else []
    programs = list(dict.fromkeys(argv[0] for argv in policy.programs))
    parts = {name: [argv[1] for argv in policy.programs if argv[0] == name and len(argv) > 1] for name in programs}
    return [*own, *(f"{name} {'/'.join(parts[name])}".rstrip() for name in programs)]


def command_problem(policy: ToolPolicy, argv: tuple[str, ...], scope: Scope) -> str | None:
    """Return why a role may not run a command line, or None; it is judged as written, without a shell."""
    if not argv or not argv[0]:
        return "it names no command"
    if any(ord(sign) < 32 or ord(sign) == 127 for part in argv for sign in part):
        return "it has a control character"
    program = argv[0]
    if program == "git" or program.endswith("/git"):
        return _git_problem(policy, argv)
    if (program,) in policy.programs:
        return _shell_problem(argv) or _file_command_problem(policy, argv, scope)
    if not policy.project_commands:
        return f"{program} is not allowed"
    if not policy.source and program in _CHANGES_FILES:
        return f"{program} is not allowed: this role changes nothing"
    return _toolchain_problem(argv)


_CHANGES_FILES = frozenset({"rm", "mv", "cp", "touch", "mkdir", "tee", "truncate", "chmod"})


def _toolchain_problem(argv: tuple[str, ...]) -> str | None:
    """Return why a command is of no use to a role that may run the project's programs, or None.

    >>> _toolchain_problem(("python3", "-m", "pytest", "-q", "-k", "a or b")) is None
    True
    >>> _toolchain_problem(("pytest", "-q", "2>&1", "|", "tail"))
    'there is no shell here, which 2>&1 needs: one program and its arguments'
    >>> _toolchain_problem(("python3", "-m", "pip", "install", "x"))
    'pip install needs a network, and there is none here'
    """
    problem = _shell_problem(argv)
    if problem is not None:
        return problem
    name, rest = _name(argv[0]), argv[1:]
    if _PYTHON.fullmatch(name) and rest[:1] == ("-m",):
        name, rest = (rest[1] if len(rest) > 1 else name), rest[2:]
    if name in _DENIED:
        return f"{name} is not allowed: there is {_DENIED[name]} here"
    if name in _SHELLS and any(_RUNS_TEXT.fullmatch(part) for part in rest):
        return f"{name} is not allowed with a command as text: call the program itself"
    hidden = {_name(part) for part in rest} if name in _WRAPPERS else {name}
    if hidden & {"git", *_DENIED, *(_SHELLS if name in _WRAPPERS else ())}:
        return f"{name} is not allowed to start that: call the program itself"
    installs = next((part for part in rest if not part.startswith("-")), "")
    if installs in _INSTALLERS.get(name, ()):
        return f"{name} {installs} needs a network, and there is none here"
    return None


def _name(program: str) -> str:
    return program.rsplit("/", 1)[-1].casefold()


def _shell_problem(argv: tuple[str, ...]) -> str | None:
    found = argv[0] if "=" in argv[0] else next((part for part in argv if _SHELL_WORD.fullmatch(part)), None)
    return None if found is None else f"there is no shell here, which {found} needs: one program and its arguments"


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
        return f"{' '.join(argv[:2])} is not allowed"
    if any(_OPERATORS.search(part) for part in argv):
        return "it has a sign that only a shell understands"
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
            return _not_writable(policy, path, scope)
    return None


_SQL_TEXT = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_SQL_FORBIDDEN = re.compile(
    r"\b(insert|update|delete|replace|upsert|drop|alter|create|attach|detach|pragma|vacuum|reindex|analyze|begin|commit"
    r"|rollback|savepoint|release|into|load_extension|readfile|writefile|edit|fts3_tokenizer)\b|--|/\*|['\"`\[;]",
    re.IGNORECASE,
)
_SQL_TIMEOUT = re.compile(r"pragma busy_timeout ?(= ?\d{1,6} ?)?;?", re.IGNORECASE)


def sql_problem(statement: str) -> str | None:
    """Return why a statement may not be run on the ledger, or None: a single SELECT that cannot change anything is
    allowed.

    >>> sql_problem("SELECT count(*) FROM anvil_checks WHERE verdict = 'insert'") is None
    True
    >>> sql_problem("WITH x AS (SELECT 1) DELETE FROM anvil_checks")
    'it has delete in it'
    """
    if _SQL_TIMEOUT.fullmatch(" ".join(statement.split())):
        return None
    bare = _SQL_TEXT.sub(" ", statement).strip().removesuffix(";").strip()
    if re.match(r"(select|with)\b", bare, re.IGNORECASE) is None:
        return "it does not ask (SELECT)"
    found = _SQL_FORBIDDEN.search(bare)
    return None if found is None else f"it has {found.group().lower()} in it"
