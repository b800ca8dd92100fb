"""Tools: the matrix is total, what is unknown is refused, and no trick with paths, commands or SQL gets through."""
# the rows of the matrix stay whole

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.common.tools import (
    MATRIX_TOOLS,
    POLICIES,
    Access,
    Allowed,
    Role,
    Scope,
    Tool,
    ToolCall,
    ToolRefusal,
)
from fairwitness.rules.tool_policy import access, may_call, path_problem, sql_problem

FOLDER = "docs/feature/login"
SCOPE = Scope(
    folder=FOLDER,
    writes=("src/auth/*.py", "tests/**"),
    interactive=True,
)
WIDE = SCOPE.model_copy(update={"writes": ("**",)})
BUILDERS = [role for role in Role if POLICIES[role].source]
GENERATED = settings(max_examples=300)

GOOD: dict[Tool, ToolCall] = {
    Tool.RUN_IN_TERMINAL: ToolCall(tool="run_in_terminal", argv=("git", "diff")),
    Tool.QUERY_LEDGER: ToolCall(tool="query_ledger", sql="SELECT 1"),
}


def _allowed(role: Role, call: ToolCall, scope: Scope = SCOPE) -> bool:
    return isinstance(may_call(role, call, scope), Allowed)


def _runs(role: Role, *argv: str, scope: Scope = SCOPE) -> bool:
    return _allowed(role, ToolCall(tool="run_in_terminal", argv=argv), scope)


def _writes(role: Role, *paths: str, tool: Tool = Tool.CREATE_FILE, scope: Scope = SCOPE) -> bool:
    return _allowed(role, ToolCall(tool=tool, paths=paths), scope)


def _reason(role: str, call: ToolCall, scope: Scope = SCOPE) -> str:
    answer = may_call(role, call, scope)
    assert isinstance(answer, ToolRefusal)
    return answer.reason


@pytest.mark.req("X3")
def test_every_role_has_a_policy_and_every_field_of_the_matrix_a_word() -> None:
    assert set(POLICIES) == set(Role)
    for role, tool in product(Role, Tool):
        granted = access(role, tool)
        assert (granted is Access.DENIED) == (tool not in POLICIES[role].tools)
        answer = may_call(role, GOOD.get(tool, ToolCall(tool=tool, paths=("src/auth/a.py",))), SCOPE)
        if granted is Access.DENIED:
            assert answer == ToolRefusal(reason=f"{role.value} does not have {tool.value}")


_SIGNS = {Access.ALLOWED: "+", Access.SCOPED: "o", Access.DENIED: "-"}


@pytest.mark.req("X3")
def test_the_whole_published_matrix() -> None:
    assert len(MATRIX_TOOLS) == 14
    nine = [role for role in tuple(Role)[:10] if role is not Role.INTAKE]
    table = [f"{tool.value}: {' '.join(_SIGNS[access(role, tool)] for role in nine)}" for tool in MATRIX_TOOLS]
    assert [role.value for role in nine] == snapshot(
        [
            "orchestrator",
            "researcher",
            "spec",
            "designer",
            "adversarial-reviewer",
            "planner",
            "implementer",
            "verifier",
            "knowledge-agent",
        ]
    )
    assert table == snapshot(
        [
            "read_file: + + + + + + + + +",
            "list_dir: + + + + + + + + +",
            "grep_search: - + + + + + + + +",
            "semantic_search: - + + + + + + - +",
            "file_search: - + + + + + + + +",
            "create_file: - o o o o o o o o",
            "replace_string_in_file: - - o o - o o - o",
            "multi_replace_string_in_file: - - - - - - o - -",
            "run_in_terminal: o - - - o - o o -",
            "get_terminal_output: + - - - - - + + -",
            "get_errors: - - - - - - + + -",
            "memory: + - - - - - - - +",
            "ask_questions: o - o - - - - - -",
            "list_code_usages: - - - - - - + - -",
        ]
    )


@pytest.mark.req("X3", "F8")
def test_the_whole_list_of_tools_by_role() -> None:
    table = [f"{role.value}: {', '.join(tool.value for tool in Tool if tool in POLICIES[role].tools)}" for role in Role]
    assert table == snapshot(
        [
            "orchestrator: read_file, list_dir, run_in_terminal, get_terminal_output, memory, ask_questions, agent, query_ledger",  # noqa: E501
            "intake: read_file, list_dir, grep_search, file_search",
            "researcher: read_file, list_dir, grep_search, semantic_search, file_search, create_file, query_map",
            "spec: read_file, list_dir, grep_search, semantic_search, file_search, create_file, replace_string_in_file, ask_questions, query_map",  # noqa: E501
            "designer: read_file, list_dir, grep_search, semantic_search, file_search, create_file, replace_string_in_file, query_map",  # noqa: E501
            "adversarial-reviewer: read_file, list_dir, grep_search, semantic_search, file_search, create_file, run_in_terminal, query_map, run_check",  # noqa: E501
            "planner: read_file, list_dir, grep_search, semantic_search, file_search, create_file, replace_string_in_file, query_map",  # noqa: E501
            "implementer: read_file, list_dir, grep_search, semantic_search, file_search, create_file, replace_string_in_file, multi_replace_string_in_file, run_in_terminal, get_terminal_output, get_errors, list_code_usages, query_map, run_check",  # noqa: E501
            "verifier: read_file, list_dir, grep_search, file_search, create_file, run_in_terminal, get_terminal_output, get_errors, query_map, run_check",  # noqa: E501
            "knowledge-agent: read_file, list_dir, grep_search, semantic_search, file_search, create_file, replace_string_in_file, memory, query_ledger, query_map",  # noqa: E501
            "phase-researcher: read_file, list_dir, grep_search, semantic_search, file_search, create_file, query_map",
            "phase-planner: read_file, list_dir, grep_search, semantic_search, file_search, query_map",
            "plan-checker: read_file, list_dir, grep_search, semantic_search, file_search, query_map",
            "executor: read_file, list_dir, grep_search, semantic_search, file_search, create_file, replace_string_in_file, multi_replace_string_in_file, run_in_terminal, get_terminal_output, get_errors, list_code_usages, query_map, run_check",  # noqa: E501
            "mini-verifier: read_file, list_dir, grep_search, semantic_search, file_search, run_in_terminal, get_terminal_output, get_errors, query_map, run_check",  # noqa: E501
            "phase-verifier: read_file, list_dir, grep_search, semantic_search, file_search, run_in_terminal, get_terminal_output, get_errors, query_map, run_check",  # noqa: E501
            "judge: read_file, list_dir, grep_search, semantic_search, file_search, run_in_terminal, get_terminal_output, get_errors, query_map, run_check",  # noqa: E501
            "rater: ",
            "debugger: read_file, list_dir, grep_search, semantic_search, file_search, create_file, replace_string_in_file, multi_replace_string_in_file, run_in_terminal, get_terminal_output, get_errors, list_code_usages, query_map, run_check",  # noqa: E501
            "questioning: read_file, list_dir, grep_search, semantic_search, file_search, query_map",
            "self-audit: read_file, list_dir, grep_search, semantic_search, file_search, query_map",
            "captain: read_file, list_dir, grep_search, semantic_search, file_search, ask_questions, query_map",
            "worker-1: read_file, list_dir, grep_search, create_file, replace_string_in_file, run_in_terminal, get_errors, run_check",  # noqa: E501
            "worker-2: read_file, list_dir, grep_search, create_file, replace_string_in_file, run_in_terminal, get_errors, agent, run_check",  # noqa: E501
            "worker-3: read_file, list_dir, grep_search, create_file, replace_string_in_file, run_in_terminal, get_errors, agent, read_subtasks, write_subtask, run_check",  # noqa: E501
            "refinery: read_file, list_dir, grep_search, create_file, replace_string_in_file, run_in_terminal, get_errors, agent, read_subtasks, write_subtask, merge_branches, run_tests, fix_conflict, emit_cr, run_check",  # noqa: E501
        ]
    )


@pytest.mark.req("F8")
def test_forge_agents_have_seven_eight_ten_and_fourteen_tools_and_run_check() -> None:
    forge = (Role.THROWAWAY, Role.WORKER, Role.SUB_EXECUTOR, Role.REFINERY)
    assert [len(POLICIES[role].tools - {Tool.RUN_CHECK}) for role in forge] == [7, 8, 10, 14]


@pytest.mark.req("F8")
def test_the_whole_table_of_who_may_start_whom() -> None:
    table = {
        role.value: [other.value for other in Role if _allowed(role, ToolCall(tool="agent", agent=other))]
        for role in Role
        if Tool.AGENT in POLICIES[role].tools
    }
    assert table == snapshot(
        {
            "orchestrator": [
                "intake",
                "researcher",
                "spec",
                "designer",
                "adversarial-reviewer",
                "planner",
                "implementer",
                "verifier",
                "knowledge-agent",
            ],
            "worker-2": ["worker-1"],
            "worker-3": ["worker-1", "worker-2"],
            "refinery": ["worker-1", "worker-2", "worker-3"],
        }
    )
    assert _reason(Role.WORKER, ToolCall(tool="agent", agent="worker-3")) == "this role may not start worker-3"
    assert _reason(Role.WORKER, ToolCall(tool="agent")) == "this role may not start (nothing)"


@pytest.mark.req("X3")
@pytest.mark.parametrize(
    ("role", "tool", "reason"),
    [
        ("hacker", "read_file", "there is no role hacker"),
        ("", "read_file", "there is no role (nothing)"),
        ("judge", "delete_everything", "there is no tool delete_everything"),
        ("judge", "", "there is no tool (nothing)"),
        ("Judge", "read_file", "there is no role Judge"),
    ],
)
def test_an_unknown_role_or_tool_means_no(role: str, tool: str, reason: str) -> None:
    assert _reason(role, ToolCall(tool=tool, paths=("a.py",))) == reason


@pytest.mark.req("A20")
def test_the_rater_has_nothing_but_what_it_is_handed() -> None:
    assert POLICIES[Role.RATER].tools == frozenset()


@pytest.mark.req("X3")
@pytest.mark.parametrize(
    ("role", "path"),
    [
        (Role.PLANNER, f"{FOLDER}/tasks/task-01.yaml"),
        (Role.PLANNER, f"{FOLDER}//tasks/./task-02.yaml"),
        (Role.IMPLEMENTER, "src/auth/login.py"),
        (Role.EXECUTOR, "tests/deep/down/test_a.py"),
        (Role.EXECUTOR, "tests/test_a.py"),
    ],
)
def test_a_role_writes_its_own_documents_and_a_builder_the_declared_files(role: Role, path: str) -> None:
    assert _writes(role, path)


@pytest.mark.req("X3")
@pytest.mark.parametrize(
    ("role", "path"),
    [
        (Role.RESEARCHER, f"{FOLDER}/research/patterns.yaml"),
        (Role.SPEC, f"{FOLDER}/spec-output.yaml"),
        (Role.DESIGNER, f"{FOLDER}/./design.md"),
        (Role.PLANNER, f"{FOLDER}/plan-output.yaml"),
        (Role.VERIFIER, f"{FOLDER}/verification-reports/task-01.yaml"),
        (Role.REVIEWER, f"{FOLDER}/review-verdicts/code-security-sentinel.yaml"),
        (Role.KNOWLEDGE, f"{FOLDER}//decisions.yaml"),
        (Role.IMPLEMENTER, f"{FOLDER}/implementation-reports/task-01.yaml"),
        (Role.PLANNER, f"{FOLDER}/tasks/deep/task-01.yaml"),
        (Role.PLANNER, f"{FOLDER}/tasks/task-01.md"),
        (Role.PLANNER, "tasks/task-01.yaml"),
        (Role.PLANNER, "docs/feature/other/tasks/task-01.yaml"),
        (Role.PLANNER, f"x/{FOLDER}/tasks/task-01.yaml"),
        (Role.SPEC, "src/auth/login.py"),
        (Role.VERIFIER, "src/auth/login.py"),
        (Role.REVIEWER, "src/auth/login.py"),
        (Role.IMPLEMENTER, "src/auth/deep/login.py"),
        (Role.IMPLEMENTER, "src/auth/login.pyc"),
        (Role.IMPLEMENTER, "src/other.py"),
        (Role.IMPLEMENTER, "tests"),
        (Role.IMPLEMENTER, f"{FOLDER}/spec-output.yaml"),
    ],
)
def test_everything_else_is_not_theirs_to_write(role: Role, path: str) -> None:
    reason = _reason(role, ToolCall(tool="create_file", paths=(path,)))
    assert reason.startswith(f"{path} is not among the files this role may write: ")


@pytest.mark.req("X3")
def test_without_a_scope_nothing_is_written_and_every_path_of_a_call_is_judged() -> None:
    for role in Role:
        for tool in (Tool.CREATE_FILE, Tool.REPLACE_STRING, Tool.MULTI_REPLACE):
            assert not _writes(role, f"{FOLDER}/feature.md", tool=tool, scope=Scope())
            assert not _writes(role, "research/patterns.yaml", tool=tool, scope=Scope())
    two = ToolCall(tool="multi_replace_string_in_file", paths=("src/auth/a.py", "src/b.py"))
    assert _reason(Role.IMPLEMENTER, two).startswith("src/b.py is not among the files this role may write: ")
    assert _reason(Role.IMPLEMENTER, ToolCall(tool="create_file")) == "it names no path"
    assert _reason(Role.JUDGE, ToolCall(tool="read_file")) == "it names no path"
    assert _reason(Role.JUDGE, ToolCall(tool="list_dir")) == "it names no path"
    assert _allowed(Role.JUDGE, ToolCall(tool="grep_search"))
    assert (
        _reason(Role.JUDGE, ToolCall(tool="get_terminal_output", paths=("a",))) == "get_terminal_output takes no path"
    )


@pytest.mark.req("X3")
@pytest.mark.parametrize(
    "path",
    [
        "../outside.py",
        "src/../../outside.py",
        "/etc/passwd",
        "~/.ssh/id_rsa",
        "C:/windows",
        "src\\a.py",
        "src/\x00a.py",
        "",
        ".git/config",
        ".git",
        "./.git/hooks/pre-commit",
        "sub/module/.git/config",
        ".GIT/config",
        ".git./config",
        ".git /config",
        ".git::$INDEX_ALLOCATION/config",
        ".g\u200cit/config",
        "GIT~1/config",
        ".fairwitness/evidence.db",
        ".FairWitness/evidence.db",
        "x/.fairwitness/engine.db",
    ],
)
def test_no_role_reads_or_writes_outside_the_work_tree_or_in_the_harness_own_folders(path: str) -> None:
    assert path_problem(path) is not None
    for role, tool in product(Role, Tool):
        assert not _allowed(role, ToolCall(tool=tool, paths=(path,)), WIDE)
    for role in BUILDERS:
        assert not _runs(role, "rm", "-rf", path, scope=WIDE)


@pytest.mark.req("X3")
@GENERATED
@given(
    st.lists(st.sampled_from(["..", ".", "", ".git", ".GiT", ".fairwitness", "src", "a.py", "~", "."]), max_size=5),
    st.sampled_from(BUILDERS),
)
def test_no_spelling_of_a_path_reaches_git_or_leaves_the_tree(segments: list[str], role: Role) -> None:
    path = "/".join(segments)
    dangerous = ".." in segments or any(part.lower() in (".git", ".fairwitness") for part in segments)
    if dangerous or path.startswith(("/", "~")):
        assert not _writes(role, path, scope=WIDE)
        assert not _allowed(role, ToolCall(tool="read_file", paths=(path,)), WIDE)


@pytest.mark.req("X3")
def test_files_that_only_look_like_git_are_files() -> None:
    assert [path_problem(path) for path in (".gitignore", "src/git/a.py", ".github/x.yml", ".gitX")] == [None] * 4


@pytest.mark.req("X3")
@pytest.mark.parametrize(
    "argv",
    [
        ("git", "diff"),
        ("git", "diff", "--staged", "--stat"),
        ("git", "diff", "main...HEAD", "--", "src/a.py"),
        ("git", "show", "HEAD:src/a.py"),
        ("git", "show", "HEAD~1", "--name-only"),
        ("git", "log", "-n", "5", "--oneline"),
        ("git", "log", "-5", "--format=%H %s"),
        ("git", "diff", "-U0", "-w", "pipeline-baseline-2026-02-26T14-30-00Z"),
    ],
)
def test_a_reviewer_looks_at_changes(argv: tuple[str, ...]) -> None:
    assert _runs(Role.REVIEWER, *argv)


TRICKS = [
    (),
    ("",),
    ("ls",),
    ("pytest",),
    ("git",),
    ("git", "commit", "-m", "x"),
    ("git", "push"),
    ("git", "checkout", "main"),
    ("git", "status"),
    ("git", "-c", "core.pager=sh", "diff"),
    ("git", "-C", "/", "diff"),
    ("git", "--exec-path=/tmp", "diff"),
    ("git", "diff", "--output=src/a.py"),
    ("git", "diff", "--outp=src/a.py"),
    ("git", "diff", "--ext-diff"),
    ("git", "show", "--textconv"),
    ("git", "diff", "--no-index", "a", "b"),
    ("git", "diff", "/etc/passwd", "/etc/hosts"),
    ("git", "diff", "../other", "a"),
    ("git", "diff", "~/x"),
    ("git", "show", "HEAD:../../x"),
    ("git", "log", "-L1,5:a.py"),
    ("git", "log", "-O/tmp/x"),
    ("git", "diff", ";", "rm", "-rf", "."),
    ("git", "diff", "&&", "sh"),
    ("git", "diff", "|", "tee", "x"),
    ("git", "diff", ">", "x"),
    ("git", "diff", "$(touch x)"),
    ("git", "diff", "`touch x`"),
    ("git", "diff", "$HOME"),
    ("git", "diff\n"),
    ("git", "diff", "a\nb"),
    ("git diff",),
    ("/usr/bin/git", "diff"),
    ("./git", "diff"),
    ("bin/../git", "diff"),
    ("GIT_PAGER=sh", "git", "diff"),
    ("env", "GIT_PAGER=sh", "git", "diff"),
    ("/usr/bin/env", "git", "diff"),
    ("sh", "-c", "git diff"),
    ("bash", "-lc", "git diff"),
    ("sudo", "git", "diff"),
    ("xargs", "git", "diff"),
    ("timeout", "5", "git", "diff"),
    ("command", "git", "diff"),
    (".", "x.sh"),
    ("busybox", "sh"),
    ("Git", "diff"),
]


@pytest.mark.req("X3")
@pytest.mark.parametrize("argv", TRICKS, ids=repr)
def test_a_reviewer_does_nothing_else(argv: tuple[str, ...]) -> None:
    assert not _runs(Role.REVIEWER, *argv)


@pytest.mark.req("X3")
@pytest.mark.parametrize("role", [role for role in Role if Tool.RUN_IN_TERMINAL in POLICIES[role].tools])
def test_no_role_at_all_changes_the_repository_or_hides_a_command_in_another(role: Role) -> None:
    for argv in TRICKS:
        if argv not in (("pytest",), ("git", "status"), ("ls",), ("git diff",)):  # the last names no program
            assert not _runs(role, *argv), argv


@pytest.mark.req("X3")
def test_a_builder_runs_what_the_toolchain_offers_looks_at_git_and_handles_its_own_files() -> None:
    for role in BUILDERS:
        for argv in (
            ("pytest",),
            ("pytest", "-q", "tests/test_a.py", "-k", "a or b"),
            ("python3", "-m", "pytest", "-q"),
            ("python", "-c", "import shop; print(shop.price(1) > 0 & 1)"),
            ("npm", "test"),
            ("npx", "tsc", "--noEmit"),
            ("make", "-s", "all"),
            ("cargo", "test"),
            (".venv/bin/ruff", "check", "src"),
            ("bash", "tests/task-01.sh"),
            ("timeout", "60", "pytest"),
            ("env", "A=1", "pytest"),
            ("sed", "-n", "1,5p;", "src/auth/a.py"),
            ("git", "status", "--porcelain"),
            ("rm", "src/auth/old.py"),
            ("rm", "-f", "--", "tests/test_old.py"),
            ("mv", "src/auth/a.py", "src/auth/b.py"),
        ):
            assert _runs(role, *argv) == (argv[0] != "sed"), argv  # a part that ends with ";" looks like a second line
        for argv in (
            ("npm", "install"),
            ("npm", "--silent", "ci"),
            ("pip", "install", "x"),
            ("python3.11", "-m", "pip", "install", "x"),
            ("curl", "http://x"),
            ("pytest", "&&", "curl"),
            ("pytest", "2>&1"),
            ("pytest", ">", "out.txt"),
            ("pytest", ">out.txt"),
            ("cd", "src"),
            ("cd", "src;", "pytest"),
            ("A=1", "pytest"),
            ("sh", "-c", "pytest"),
            ("env", "sh", "-c", "pytest"),
            ("timeout", "5", "sudo", "x"),
            ("rm",),
            ("rm", "-rf"),
            ("rm", "src/other.py"),
            ("rm", "--no-preserve-root", "tests/a.py"),
            ("mv", "src/auth/a.py", "src/b.py"),
            ("rm", ".git/index"),
        ):
            assert not _runs(role, *argv), argv


@pytest.mark.req("X3")
@GENERATED
@given(st.lists(st.text(st.characters(codec="ascii"), max_size=12), max_size=6), st.sampled_from(list(Role)))
def test_every_command_line_has_an_answer_and_a_refusal_quotes_what_is_allowed(words: list[str], role: Role) -> None:
    answer = may_call(role, ToolCall(tool="run_in_terminal", argv=tuple(words)), SCOPE)
    if isinstance(answer, ToolRefusal) and Tool.RUN_IN_TERMINAL in POLICIES[role].tools:
        allowed = answer.reason.rpartition("; you may run: ")[2]
        assert "git diff/show/log" in allowed
        assert ("any program of the project" in allowed) == POLICIES[role].project_commands


@pytest.mark.req("X3")
def test_checkers_run_checks_and_change_nothing() -> None:
    for role in (Role.VERIFIER, Role.MINI_VERIFIER, Role.PHASE_VERIFIER, Role.JUDGE):
        assert _runs(role, "pytest", "-q", scope=Scope())
        assert _runs(role, "git", "blame", "src/a.py")
        assert not _runs(role, "rm", "src/auth/a.py")
    assert not _runs(Role.ORCHESTRATOR, "pytest")
    assert not _runs(Role.REVIEWER, "pytest")
    assert not _runs(Role.KNOWLEDGE, "git", "diff")


@pytest.mark.req("X3")
def test_a_refusal_says_why() -> None:
    def why(*argv: str) -> str:
        return _reason(Role.EXECUTOR, ToolCall(tool="run_in_terminal", argv=argv)).partition("; you may run: ")[0]

    told = [
        why(),
        why("git", "diff\x1b"),
        why("sh", "-c", "x"),
        why("pytest", ";"),
        why("git", "push", "origin"),
        why("git", "diff", "--output=x"),
        why("git", "diff", "/x"),
        why("curl", "x"),
        why("rm", "-f"),
        why("rm", "--force"),
        why("rm", "../x"),
        why("rm", "src/x.py"),
        _reason(Role.KNOWLEDGE, ToolCall(tool="query_ledger")),
        _reason(Role.REVIEWER, ToolCall(tool="run_in_terminal")),
        _reason(Role.EXECUTOR, ToolCall(tool="create_file", paths=("x.py",))),
    ]
    assert told == snapshot(
        [
            "it names no command",
            "it has a control character",
            "sh is not allowed with a command as text: call the program itself",
            "there is no shell here, which ; needs: one program and its arguments",
            "git push is not allowed",
            "--output=x is not on the list of options",
            "/x is outside the work tree",
            "curl is not allowed: there is no network here",
            "it names no file",
            "--force is not on the list of options",
            "../x: it has a '..' segment",
            "src/x.py is not among the files this role may write: src/auth/*.py, tests/**",
            "it does not ask (SELECT)",
            "it names no command; you may run: git diff/show/log",
            "x.py is not among the files this role may write: src/auth/*.py, tests/**",
        ]
    )


@pytest.mark.req("X3", "P10")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM anvil_checks",
        "  select 1 ;  ",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "SELECT 'it''s an insert; -- really' FROM t WHERE a = \"update\"",
        "PRAGMA busy_timeout = 5000;",
        "pragma busy_timeout",
        "SELECT last_update FROM t",
    ],
)
def test_the_knowledge_agent_asks_the_ledger(sql: str) -> None:
    assert sql_problem(sql) is None
    assert _allowed(Role.KNOWLEDGE, ToolCall(tool="query_ledger", sql=sql))
    assert not _allowed(Role.REVIEWER, ToolCall(tool="query_ledger", sql=sql))


@pytest.mark.req("X3", "P10")
@pytest.mark.parametrize(
    "sql",
    [
        "",
        "INSERT INTO anvil_checks VALUES (1)",
        "INSERT INTO instruction_updates VALUES (1)",
        "UPDATE t SET a = 1",
        "selectx 1",
        "SELECT 1; DELETE FROM t",
        "SELECT 1;;",
        "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
        "WITH x AS (SELECT 1) UPDATE t SET a = 1",
        "SELECT load_extension('x')",
        "SELECT writefile('x', 'y')",
        "SELECT 1 -- '\n; DELETE FROM t --'",
        "SELECT /* ' */ 1; DELETE FROM t /* ' */",
        "SELECT [ ' ] ; DELETE FROM t WHERE a=[ ' ]",
        "SELECT ` ' ` ; DELETE FROM t WHERE a=` ' `",
        "SELECT 'open",
        "PRAGMA writable_schema = 1",
        "PRAGMA busy_timeout = 5000; DROP TABLE t",
        "ATTACH 'x' AS y",
        "CREATE TABLE t (a)",
        "EXPLAIN SELECT 1",
        "VACUUM INTO 'x'",
        "select replace(a, 'x', 'y') from t",
    ],
)
def test_nobody_changes_the_ledger_by_asking(sql: str) -> None:
    assert sql_problem(sql) is not None
    assert sql_problem("SELECT 1; DELETE FROM t") == "it has ; in it"
    assert sql_problem("WITH x AS (SELECT 1) DELETE FROM t") == "it has delete in it"
    for role in Role:
        assert not _allowed(role, ToolCall(tool="query_ledger", sql=sql))


@pytest.mark.req("P5")
def test_questions_are_asked_only_when_someone_is_there() -> None:
    asks = [role for role in Role if Tool.ASK_QUESTIONS in POLICIES[role].tools]
    assert asks == [Role.ORCHESTRATOR, Role.SPEC, Role.CAPTAIN]
    for role in asks:
        assert _allowed(role, ToolCall(tool="ask_questions"))
        assert _reason(role, ToolCall(tool="ask_questions"), Scope()) == "no person can be asked in this run"


@pytest.mark.req("X3")
@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/a/b.py", False),
        ("src/**", "src/a/b.py", True),
        ("src/**", "src", False),
        ("src/**/b.py", "src/b.py", True),
        ("src/**/b.py", "src/x/y/b.py", True),
        ("src/?.py", "src/a.py", True),
        ("src/?.py", "src/ab.py", False),
        ("src/a.py", "src/aXpy", False),
        ("./src//a.py", "src/a.py", True),
        ("src/[ab].py", "src/a.py", False),
        ("**", "a", True),
    ],
)
def test_a_star_stays_in_its_folder_and_two_do_not(glob: str, path: str, matches: bool) -> None:
    assert _writes(Role.EXECUTOR, path, scope=Scope(writes=(glob,))) is matches
