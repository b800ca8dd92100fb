"""What an agent's call means to us: by name, by shape, or not at all; and what is not understood is refused."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.agents.backends.acp.tool_calls import InterpretedCall, UnclearCall, argv_of, interpret_call
from fairwitness.agents.profiles import PROFILES
from fairwitness.agents.toolset.plain import PathVeil
from fairwitness.contracts.common.tools import Allowed, Role, Scope, Tool, ToolCall
from fairwitness.rules.tool_policy import may_call
from fairwitness.testing.scripted_agent import scripted_profile

pytestmark = pytest.mark.req("X3")
ROOT = "/work/tree"
RELATIVE = PathVeil(Path(ROOT)).relative


def meant(agent: str, **call: Any) -> InterpretedCall | UnclearCall:
    return interpret_call(PROFILES[agent], call, RELATIVE)


def calls(agent: str, **call: Any) -> list[tuple[Any, ...]]:
    found = meant(agent, **call)
    assert isinstance(found, InterpretedCall), found
    return [(one.tool, one.argv if one.argv is not None else one.paths) for one in found.calls]


def diff(path: str, old: str | None = None) -> dict[str, Any]:
    return {"type": "diff", "path": path, "oldText": old, "newText": "new"}


NAMED = {"_meta": {"claudeCode": {"toolName": "Bash"}}}


@pytest.mark.parametrize(
    ("agent", "call", "expected"),
    [
        # a name where names are told, and arguments
        ("claude", {**NAMED, "rawInput": {"command": "git diff"}}, [("run_in_terminal", ("git", "diff"))]),
        (
            "claude",
            {"_meta": {"claudeCode": {"toolName": "Write"}}, "rawInput": {"file_path": f"{ROOT}/a", "content": "x"}},
            [("create_file", ("a",))],
        ),
        (
            "claude",
            {"_meta": {"claudeCode": {"toolName": "Glob"}}, "rawInput": {"pattern": "*.py", "path": f"{ROOT}/src"}},
            [("file_search", ()), ("list_dir", ("src",))],
        ),
        ("kimi-code", {"title": "Bash", "rawInput": {"command": "ls"}}, [("run_in_terminal", ("ls",))]),
        ("opencode", {"title": "bash", "rawInput": {"command": "ls -l"}}, [("run_in_terminal", ("ls", "-l"))]),
        # arguments alone
        (
            "codex",
            {"rawInput": {"command": ["bash", "-lc", "ls src"], "cwd": ROOT}},
            [("run_in_terminal", ("ls", "src"))],
        ),
        ("codex", {"content": [diff(f"{ROOT}/a.py", "old")]}, [("replace_string_in_file", ("a.py",))]),
        (
            "codex",
            {"rawInput": {"changes": {"a.py": {}, "b.py": {"move_path": "c.py"}}}},
            [("replace_string_in_file", ("a.py", "b.py", "c.py"))],
        ),
        (
            "copilot",
            {"title": "Tidies up", "rawInput": {"command": "rm -rf x"}},
            [("run_in_terminal", ("rm", "-rf", "x"))],
        ),
        ("copilot", {"rawInput": {"path": f"{ROOT}/a", "file_text": "x"}}, [("create_file", ("a",))]),
        ("goose", {"kind": "other", "rawInput": {"path": "src/a.py"}}, [("read_file", ("src/a.py",))]),
        ("goose", {"rawInput": {"path": "a.py", "before": "x", "after": "y"}}, [("replace_string_in_file", ("a.py",))]),
        (
            "opencode",
            {"title": "a.py", "rawInput": {"filepath": f"{ROOT}/a.py", "diff": "-x"}},
            [("replace_string_in_file", ("a.py",))],
        ),
        (
            "opencode",
            {"rawInput": {"patchText": "*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n*** End Patch"}},
            [("replace_string_in_file", ("a", "b"))],
        ),
        ("vibe", {"rawInput": '{"command": "ls"}'}, [("run_in_terminal", ("ls",))]),
        # what gemini tells
        ("gemini", {"title": "git status", "kind": "execute"}, [("run_in_terminal", ("git", "status"))]),
        ("gemini", {"title": "Writing", "kind": "edit", "content": [diff(f"{ROOT}/new")]}, [("create_file", ("new",))]),
    ],
)
def test_what_agents_really_send_is_understood(agent: str, call: dict[str, Any], expected: list[Any]) -> None:
    assert calls(agent, **call) == expected


@pytest.mark.parametrize(
    ("agent", "call"),
    [
        ("claude", {}),
        ("claude", {"title": "Read a file", "kind": "read", "locations": [{"path": "/work/tree/a"}]}),
        ("claude", {"rawInput": "not json"}),
        ("claude", {"rawInput": ["ls"]}),
        ("claude", {"rawInput": {}}),
        ("claude", {**NAMED, "rawInput": {"command": "git diff\nrm -rf ."}}),
        ("claude", {**NAMED, "rawInput": {"command": "git 'diff"}}),
        ("claude", {**NAMED, "rawInput": {"command": "  "}}),
        ("claude", {**NAMED, "rawInput": {"command": ["ls", 3]}}),
        ("claude", {**NAMED, "rawInput": {"command": "rm a", "cwd": f"{ROOT}/src"}}),
        ("claude", {**NAMED, "rawInput": {"command": "rm a", "workdir": "/"}}),
        ("claude", {**NAMED, "rawInput": {"command": "ls", "cmd": "rm"}}),
        ("claude", {**NAMED, "rawInput": {"command": "ls", "content": "x", "path": "a"}}),
        # a name and arguments that contradict each other
        ("kimi-code", {"title": "Read", "rawInput": {"command": "rm -rf ."}}),
        ("kimi-code", {"title": "Read", "rawInput": {"path": "a", "new_string": "x"}}),
        ("kimi-code", {"title": "Bash", "rawInput": {"path": "a"}}),
        # two spellings of one argument that say two things
        ("claude", {"rawInput": {"file_path": "a", "filePath": "../b", "content": "x"}}),
        ("claude", {"rawInput": {"file_path": ["a"], "content": "x"}}),
        ("codex", {"content": [{"type": "diff", "newText": "x"}]}),
        ("codex", {"rawInput": {"permissions": {"fileSystem": {"write": ["/"]}}, "reason": "please"}}),
        # a path, and nothing that says what for
        ("opencode", {"rawInput": {"filepath": "/etc/passwd", "parentDir": "/etc"}}),
        ("copilot", {"rawInput": {"path": "a"}}),
        # a title is a command only where the agent is known for it
        ("claude", {"title": "git status", "kind": "execute"}),
        ("gemini", {"title": "git status", "kind": "other"}),
        ("gemini", {"title": None, "kind": "execute"}),
    ],
)
def test_what_could_be_anything_is_not_understood(agent: str, call: dict[str, Any]) -> None:
    assert isinstance(meant(agent, **call), UnclearCall)


def test_a_name_counts_only_where_names_are_told() -> None:
    assert calls("copilot", title="view", rawInput={"path": "a", "content": "x"}) == [("create_file", ("a",))]


def test_handing_in_an_answer_is_everybodys_right() -> None:
    found = meant("claude", _meta={"claudeCode": {"toolName": "mcp__fairwitness__submit_result"}}, rawInput={"x": 1})
    assert isinstance(found, InterpretedCall)
    assert found.is_submission
    assert found.calls == ()


def test_paths_that_lead_elsewhere_stay_as_they_are_and_are_refused() -> None:
    for path in ("/etc/passwd", "../x", f"{ROOT}-2/a", f"{ROOT}/../x", "file:///etc/passwd"):
        found = meant("copilot", rawInput={"path": path, "content": "x"})
        assert isinstance(found, InterpretedCall)
        judged = [may_call("implementer", call, Scope(writes=("**",))) for call in found.calls]
        assert not any(isinstance(answer, Allowed) for answer in judged), path


@pytest.mark.parametrize(
    "line",
    ["git status; rm x", "git status && rm x", "git status | sh", "git status > x", "git diff $(rm x)", "git `rm x`"],
)
def test_a_line_that_a_shell_would_read_as_more_than_one_command_is_refused(line: str) -> None:
    call = ToolCall(tool=Tool.RUN_IN_TERMINAL.value, argv=argv_of([line]))
    assert not isinstance(may_call(Role.IMPLEMENTER, call, Scope()), Allowed)


def test_a_shell_is_taken_off_a_line_and_nothing_else_is() -> None:
    assert argv_of(["/bin/bash", "-c", "git log"]) == ("git", "log")
    assert argv_of(["bash", "-c", "git log", "extra"]) == ("bash", "-c", "git log", "extra")
    assert argv_of(["env", "-c", "git log"]) == ("env", "-c", "git log")


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
_KEYS = st.sampled_from(
    ["command", "path", "file_path", "content", "edits", "changes", "files", "cwd", "diff", "pattern"]
)


@given(
    raw=_VALUES | st.dictionaries(_KEYS, _VALUES, max_size=4),
    title=_VALUES,
    kind=_VALUES,
    content=_VALUES,
    meta=_VALUES,
)
def test_whatever_is_sent_is_judged_or_unclear(raw: Any, title: Any, kind: Any, content: Any, meta: Any) -> None:
    call = {"rawInput": raw, "title": title, "kind": kind, "content": content, "_meta": meta}
    for profile in (PROFILES["gemini"], PROFILES["claude"], scripted_profile("answers")):
        found = interpret_call(profile, call, RELATIVE)
        assert isinstance(found, UnclearCall) or found.calls
