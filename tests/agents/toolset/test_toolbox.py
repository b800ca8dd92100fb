"""One policy for every call: judged, told, answered in a text, and never an exception for what a model did."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.toolset.kit import Bench, plant
from fairwitness.agents.toolset.model import TEXT_LIMIT, ToolResult
from fairwitness.contracts.agents.dispatch import Denial, Layer
from fairwitness.contracts.common.tools import Allowed, Role, Scope, Tool, ToolCall, ToolRefusal
from fairwitness.errors import NotReady

GENERATED = settings(max_examples=100)


@pytest.mark.req("X3")
def test_a_tool_that_does_not_exist_or_is_not_the_roles_is_refused(worktree: Path) -> None:
    bench = Bench(worktree, role=Role.JUDGE)
    assert bench.refused("delete_everything") == "there is no tool delete_everything"
    assert bench.refused("") == "there is no tool (nothing)"
    assert bench.refused("create_file", path="x", content="x") == "judge does not have create_file"
    assert bench.refused("Read_File", path="src/a.py") == "there is no tool Read_File"
    assert [(denial.layer, denial.tool) for denial in bench.told] == [
        (Layer.DECISION, "delete_everything"),
        (Layer.DECISION, "(nothing)"),
        (Layer.DECISION, "create_file"),
        (Layer.DECISION, "Read_File"),
    ]


def test_a_tool_that_nobody_answers_here_is_said_and_is_no_denial(bench: Bench) -> None:
    assert bench.bad("get_errors") == "get_errors is not available here"
    assert bench.box.denials == ()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "path: field required"),
        ({"path": 3}, "path: input should be a valid string"),
        ({"path": "src/a.py", "cwd": "/"}, "cwd: extra inputs are not permitted"),
        ({"path": "src/a.py", "start_line": 0}, "start_line: input should be greater than or equal to 1"),
        ({"path": "src/a.py", "start_line": "x"}, "start_line: input should be a valid integer"),
        ({"path": None}, "path: input should be a valid string"),
        ({"path": "x" * 5000}, "path: string should have at most 4096 characters"),
        ({"path": "\ud800"}, "path: input should be a valid string"),
    ],
)
def test_arguments_that_do_not_fit_are_named(bench: Bench, args: dict[str, Any], said: str) -> None:
    assert said in bench.bad("read_file", **args)
    assert bench.box.denials == ()


def test_arguments_that_are_no_object_are_said(bench: Bench) -> None:
    odd: Any = ["src/a.py"]
    result = asyncio.run(bench.box.call("read_file", odd))
    assert (result.ok, result.text.startswith("the arguments of read_file do not fit: they: ")) == (False, True)


def test_null_stands_for_what_was_left_out(bench: Bench) -> None:
    assert bench.good("read_file", path="src/a.py", end_line=None) == bench.good("read_file", path="src/a.py")


@pytest.mark.req("X3")
def test_a_judgement_is_the_rules_and_a_refusal_is_kept_and_told(bench: Bench) -> None:
    assert bench.box.judge(ToolCall(tool="read_file", paths=("src/a.py",))) == Allowed()
    assert not bench.told
    refused = bench.box.judge(ToolCall(tool="create_file", paths=("README.md", "b\n.md")))
    assert isinstance(refused, ToolRefusal)
    assert refused.reason.startswith("README.md is not among the files this role may write: ")
    bench.box.judge(ToolCall(tool="odd\x1b[31m"), target=f"{bench.root}/x\ny")
    bench.box.judge(ToolCall(tool="run_in_terminal", argv=("git", "push")))
    assert bench.box.denials == (
        Denial(
            layer=Layer.DECISION,
            tool="create_file",
            target="README.md b\\n.md",
            reason=refused.reason,
        ),
        Denial(layer=Layer.DECISION, tool="odd\\x1b[31m", target="./x\\ny", reason="there is no tool odd\\x1b[31m"),
        Denial(
            layer=Layer.DECISION,
            tool="run_in_terminal",
            target="git push",
            reason="git push is not allowed; you may run: any program of the project, "
            "git diff/show/log/status/blame/ls-files/rev-parse, rm, mv",
        ),
    )
    assert tuple(bench.told) == bench.box.denials


def test_a_source_answers_with_the_arguments_it_was_given(worktree: Path) -> None:
    async def later(query: str) -> str:
        await asyncio.sleep(0)
        return f"about {query}: {worktree}/src/a.py \x1b[1m"

    def usages(symbol: str) -> str:
        return f"{symbol}\n" * 100_000

    bench = Bench(worktree, sources={Tool.SEMANTIC_SEARCH: later, Tool.LIST_USAGES: usages})
    assert bench.good("semantic_search", query="login") == "about login: ./src/a.py \\x1b[1m"
    many = bench.good("list_code_usages", symbol="one")
    assert len(many) < TEXT_LIMIT + 100
    assert "lines left out" in many
    assert "symbol: field required" in bench.bad("list_code_usages")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (NotReady("there is no map yet", next_step="make one"), "there is no map yet"),
        (KeyError("one\ntwo"), "it failed: KeyError: 'one\\ntwo'"),
        (ValueError("odd"), "it failed: ValueError: odd"),
        (FileNotFoundError(2, "gone"), "it failed: FileNotFoundError: [Errno 2] gone"),
    ],
)
def test_a_source_that_cannot_answer_says_so(worktree: Path, error: Exception, said: str) -> None:
    def fail(**_: object) -> str:
        raise error

    bench = Bench(worktree, sources={Tool.QUERY_MAP: fail})
    assert bench.bad("query_map", question="callers", name="one") == said


@pytest.mark.req("A20")
def test_what_ran_is_recorded_with_the_part_of_a_check(worktree: Path) -> None:
    scope = Scope(checks=("pytest",))
    bench = Bench(worktree, role=Role.MINI_VERIFIER, scope=scope, sources={Tool.RUN_CHECK: lambda **_: "3 passed"})
    bench.good("run_check", check="pytest")
    bench.good("run_check", check="pytest", path="tests/a.py")
    assert bench.box.ran == ("run_check pytest", "run_check pytest tests/a.py")


@pytest.mark.req("X3")
def test_sources_are_judged_like_any_other_tool(worktree: Path) -> None:
    asked: list[Any] = []

    def keep(**values: object) -> str:
        asked.append(values)
        return "done"

    sources = dict.fromkeys((Tool.QUERY_LEDGER, Tool.AGENT, Tool.ASK_QUESTIONS, Tool.FIX_CONFLICT), keep)
    ledger = Bench(worktree, role=Role.KNOWLEDGE, sources=sources)
    assert ledger.good("query_ledger", sql="SELECT count(*) FROM anvil_checks") == "done"
    assert ledger.refused("query_ledger", sql="DELETE FROM anvil_checks") == "it does not ask (SELECT)"
    assert ledger.box.denials[-1].target == "DELETE FROM anvil_checks"
    worker = Bench(worktree, role=Role.WORKER, sources=sources)
    assert worker.good("agent", agent="worker-1", task="count the lines") == "done"
    assert worker.refused("agent", agent="refinery", task="merge") == "this role may not start refinery"
    captain = Bench(worktree, role=Role.CAPTAIN, sources=sources, scope=Scope())
    assert captain.refused("ask_questions", question="Which one?") == "no person can be asked in this run"
    refinery = Bench(worktree, role=Role.REFINERY, sources=sources)
    assert refinery.good("fix_conflict", path="./src/a.py", content="x\n") == "done"
    assert refinery.refused("fix_conflict", path=".git/hooks/x", content="x") == ".git/hooks/x: it is in .git"
    assert [tuple(values) for values in asked] == [("sql",), ("agent", "task"), ("path", "content")]
    assert asked[-1]["path"] == "src/a.py"


def test_a_source_that_waits_holds_up_nobody_and_can_be_cancelled(worktree: Path) -> None:
    ended: list[str] = []

    async def wait(**_: object) -> str:
        try:
            await asyncio.sleep(600)
        finally:
            ended.append("cancelled")
        return ""

    bench = Bench(worktree, sources={Tool.SEMANTIC_SEARCH: wait})

    async def both() -> None:
        waiting = asyncio.ensure_future(bench.box.call("semantic_search", {"query": "x"}))
        await asyncio.sleep(0)
        assert (await bench.box.call("read_file", {"path": "src/a.py"})).ok
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(asyncio.wait_for(both(), 30))
    assert ended == ["cancelled"]


def test_calls_that_come_at_once_are_all_answered(bench: Bench) -> None:
    async def many() -> list[ToolResult]:
        edits = [{"path": f"src/{number}.py", "content": f"x = {number}\n"} for number in range(20)]
        return await asyncio.gather(*(bench.box.call("create_file", edit) for edit in edits))

    assert all(result.ok for result in asyncio.run(many()))
    assert bench.text("src/19.py") == "x = 19\n"


_NAMES = st.one_of(st.sampled_from([tool.value for tool in Tool]), st.text(max_size=20))
_TEXTS = st.one_of(
    st.sampled_from(["src/a.py", ".", "src", "..", "/", ".git", "git diff", "(a|b", "**", "one", ""]),
    st.text(max_size=30),
)
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), _TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)
_ARGUMENTS = st.dictionaries(
    st.one_of(
        st.sampled_from(
            [
                *("path", "content", "query", "pattern", "command", "old_string", "new_string", "is_regex"),
                *("start_line", "end_line", "include", "replacements", "max_results", "ignore_case"),
            ]
        ),
        st.text(max_size=5),
    ),
    _VALUES,
    max_size=5,
)


@pytest.mark.req("X3")
@GENERATED
@given(st.lists(st.tuples(_NAMES, _ARGUMENTS), min_size=1, max_size=3))
def test_whatever_a_model_asks_for_it_gets_a_text_and_nothing_outside_changes(
    calls: list[tuple[str, dict[str, Any]]],
) -> None:
    with tempfile.TemporaryDirectory(prefix="fairwitness-test-") as folder:
        root = plant(Path(folder) / "tree")
        (Path(folder) / "beside.txt").write_text("beside\n")
        bench = Bench(root, scope=Scope(writes=("src/**",)))

        async def ask() -> list[ToolResult]:
            return [await bench.box.call(tool, args) for tool, args in calls]

        for result in asyncio.run(ask()):
            assert str(root) not in result.text
            assert result.text.encode()
        assert sorted(path.name for path in Path(folder).iterdir()) == ["beside.txt", "tree"]
        assert (root / ".git/config").read_text() == "[core]\n\tone = 1\n"
        assert (root / "README.md").read_text() == "# Login\n"
