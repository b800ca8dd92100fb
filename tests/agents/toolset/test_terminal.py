"""Commands: judged as they stand, run in the sandbox without a shell, and gone when nobody waits for them."""

import asyncio
import os
import re
import time
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from agents.toolset.kit import SCOPE, Bench, plant, real_runner
from fairwitness.agents.normalization import digest, normalize
from fairwitness.agents.toolset.model import TEXT_LIMIT, CommandEnvironment
from fairwitness.agents.toolset.toolbox import COMMANDS_AT_ONCE
from fairwitness.contracts.agents.dispatch import Layer
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Network, SandboxLimits
from fairwitness.contracts.common.tools import Role
from fairwitness.errors import UsageError
from fairwitness.sandbox.scripted import Reply, ScriptedAnswer, ScriptedRunner
from sandbox.kit import eventually, living

ANY = "*"


def _python(root: Path, program: str) -> str:
    """The command line of a program; on a line of its own it could have no semicolon."""
    (root / "src/program.py").write_text(program)
    return "python3 src/program.py"


def _scripted(worktree: Path, reply: Reply, **more: object) -> Bench:
    runner = ScriptedRunner([ScriptedAnswer(ANY, reply)], tier=SandboxTier.UID)
    return Bench(worktree, runner=runner, **more)  # type: ignore[arg-type]  # whatever a bench takes


def test_a_command_is_told_with_its_exit_code_and_its_output(shell: Bench) -> None:
    assert shell.good("run_in_terminal", command="python3 src/a.py") == "exit code 0, no output"
    (shell.root / "src/say.py").write_text(
        "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"
    )
    assert shell.good("run_in_terminal", command="python3 'src/say.py'") == snapshot(
        """\
exit code 3
stdout:
out
stderr:
err\
"""
    )
    assert shell.good("run_in_terminal", command="sh tests/task-01.sh").startswith("exit code ")


@pytest.mark.req("X3")
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("curl http://example.com", "curl is not allowed: there is no network here"),
        ("python3 src/a.py | tee x", "there is no shell here, which | needs: one program and its arguments"),
        ("python3 src/a.py > x", "there is no shell here, which > needs: one program and its arguments"),
        ("python3 a.py && rm -rf .", "there is no shell here, which && needs: one program and its arguments"),
        ("git diff '$(id)'", "it has a sign that only a shell understands"),
        ("bash -c 'rm -rf .'", "bash is not allowed with a command as text: call the program itself"),
        ("sh -c tests/task-01.sh", "sh is not allowed with a command as text: call the program itself"),
        ("env git diff", "env is not allowed to start that: call the program itself"),
        ("git push", "git push is not allowed"),
        ("git commit -m x", "git commit is not allowed"),
        ("git -c core.pager=id diff", "git -c is not allowed"),
        ("git diff --output=x", "--output=x is not on the list of options"),
        ("rm README.md", "README.md is not among the files this role may write: src"),
        ("rm -rf /", "/: it is absolute"),
        ("mv src/a.py .git/hooks/pre-commit", ".git/hooks/pre-commit: it is in .git"),
        ("A=1 python3 x", "there is no shell here, which A=1 needs: one program and its arguments"),
        ("python3 'a\x07b'", "it has a control character"),
        ("''", "it names no command"),
        ("   ", "it names no command"),
    ],
)
def test_what_is_not_on_the_list_is_not_run(bench: Bench, command: str, reason: str) -> None:
    told = bench.refused("run_in_terminal", command=command)
    assert told.startswith(reason)
    assert "; you may run: any program of the project, git diff/show/log" in told


def test_a_line_that_is_no_command_is_said(bench: Bench) -> None:
    assert bench.bad("run_in_terminal", command="python3 'a") == "the command line cannot be read: no closing quotation"
    assert bench.bad("run_in_terminal", command="python3 a\nrm -rf b") == "one command at a time, on one line"
    assert "command: string should have at least 1 character" in bench.bad("run_in_terminal", command="")
    assert bench.box.denials == ()


@pytest.mark.req("X3")
def test_only_a_role_that_builds_can_change_the_worktree(worktree: Path) -> None:
    write = _python(worktree, "open('src/new.txt', 'w').write('x')")
    judge = Bench(worktree, role=Role.JUDGE, runner=real_runner())
    said = judge.good("run_in_terminal", command=write)
    assert said.startswith("exit code 1\n")
    assert "OSError" in said or "PermissionError" in said
    assert not (worktree / "src/new.txt").exists()
    builder = Bench(worktree, runner=real_runner())
    assert builder.good("run_in_terminal", command=write) == "exit code 0, no output"
    assert (worktree / "src/new.txt").read_text() == "x"
    assert builder.good("run_in_terminal", command="rm src/new.txt") == "exit code 0, no output"
    assert not (worktree / "src/new.txt").exists()


@pytest.mark.req("X3")
def test_not_even_a_builder_changes_the_repository_or_anything_outside(shell: Bench) -> None:
    outside = shell.root.parent / "outside.txt"
    result = shell.call("run_in_terminal", command=_python(shell.root, f"open('{outside}', 'w')"))
    assert not outside.exists()
    in_git = shell.call("run_in_terminal", command=_python(shell.root, "open('.git/config', 'w')"))
    is_whole = shell.text(".git/config") == "[core]\n\tone = 1\n"
    assert is_whole if shell.runner.tier is SandboxTier.NAMESPACES else is_whole or not in_git.ok
    if shell.runner.features.notify:
        assert not result.ok
        assert not in_git.ok
        assert "the sandbox stopped write: " in result.text
        layers = {denial.layer for denial in shell.box.denials}
        assert layers == {Layer.SANDBOX}
        assert any(denial.target.endswith("/outside.txt") for denial in shell.told)


@pytest.mark.req("X3")
def test_a_command_sees_no_variable_and_no_secret_of_ours(worktree: Path) -> None:
    around = CommandEnvironment(env={"GREETING": "hello", "TERM": "vt100"}, network=Network.OFF)
    bench = Bench(worktree, runner=real_runner(), surroundings=lambda: around)
    program = _python(worktree, "import os; print(sorted(os.environ), os.environ['GREETING'], os.environ['TERM'])")
    said = bench.good("run_in_terminal", command=program)
    names = set(re.findall(r"'(\w+)'", said))
    assert names - {"LC_CTYPE", "PWD"} == {
        *("GREETING", "HOME", "LANG", "NO_COLOR", "PATH", "PYTHONDONTWRITEBYTECODE", "TERM", "TMPDIR")
    }
    assert said.rstrip().endswith("hello vt100")


def test_a_program_is_found_on_the_path_and_never_in_the_worktree_by_chance(shell: Bench) -> None:
    for place in ("python3", "src/python3"):
        (shell.root / place).write_text("#!/bin/sh\necho planted\n")
        (shell.root / place).chmod(0o755)
    assert "planted" not in shell.good("run_in_terminal", command=_python(shell.root, "print(1)"))
    around = CommandEnvironment(env={"PATH": f".:src::{shell.root}/src"})
    own = Bench(shell.root, runner=shell.runner, surroundings=lambda: around)
    assert "planted" in own.good("run_in_terminal", command=_python(shell.root, "print(1)"))
    nowhere = Bench(shell.root, runner=shell.runner, surroundings=lambda: CommandEnvironment(env={"PATH": "src:."}))
    assert (
        nowhere.bad("run_in_terminal", command="python3 x")
        == "there is no program python3 here; it is looked for in src:."
    )


def test_a_project_may_have_a_program_of_its_own(shell: Bench) -> None:
    assert shell.bad("run_in_terminal", command="./build.py --fast").startswith("there is no program ./build.py here")
    plant(shell.root, {"build.py": "#!/bin/sh\necho built $1\n"})
    assert shell.bad("run_in_terminal", command="./build.py --fast").startswith("there is no program ./build.py here")
    (shell.root / "build.py").chmod(0o755)
    assert shell.good("run_in_terminal", command="./build.py --fast") == "exit code 0\nstdout:\nbuilt --fast"


def test_output_is_shown_without_codes_and_without_what_was_overwritten(shell: Bench) -> None:
    (shell.root / "src/say.py").write_text(
        r"""
import os, sys
sys.stdout.buffer.write(b"\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 10%\r50%\r100%\r\nbell\x07 \xff\n")
print(os.getcwd())
print(os.path.abspath("src/say.py") + ":1: warning")
"""
    )
    assert shell.good("run_in_terminal", command="python3 src/say.py") == snapshot(
        """\
exit code 0
stdout:
100%
bell\\x07 �
.
./src/say.py:1: warning\
"""
    )


def test_a_long_output_is_cut_in_the_middle_and_can_be_paged(shell: Bench) -> None:
    assert shell.bad("get_terminal_output") == "no command was run yet"
    said = shell.good("run_in_terminal", command=_python(shell.root, "[print('line', n) for n in range(5000)]"))
    assert said.startswith("exit code 0\nstdout:\nline 0\n")
    assert said.endswith("line 4999")
    assert re.search(r"\n\[… \d{4} lines left out …\]\n", said)
    assert len(said) < TEXT_LIMIT
    page = shell.good("get_terminal_output", start_line=2001, end_line=2002)
    assert page == "lines 2001 to 2002 of 5000\nline 2000\nline 2001"
    assert shell.bad("get_terminal_output", start_line=5001) == "the output has only 5000 lines"
    shell.good("run_in_terminal", command="python3 src/a.py")
    assert shell.good("get_terminal_output") == "no output"


def test_more_output_than_is_kept_has_a_mark_where_it_is_missing(worktree: Path) -> None:
    around = CommandEnvironment(limits=SandboxLimits(output_kept=2000))
    bench = Bench(worktree, runner=real_runner(), surroundings=lambda: around)
    said = bench.good("run_in_terminal", command=_python(worktree, "print('a' * 5000 + 'z' * 5000)"))
    assert re.search(r"aaa\n\[… 8001 bytes left out …\]\nzzz", said)


def test_a_command_that_takes_too_long_is_stopped(worktree: Path) -> None:
    around = CommandEnvironment(wall_s=1, limits=SandboxLimits(wall_s=50))
    bench = Bench(worktree, runner=real_runner(), surroundings=lambda: around)
    program = "import time; print('begun', flush=True); time.sleep(60)"
    result = bench.call("run_in_terminal", command=_python(worktree, program))
    assert not result.ok
    assert result.text == "stopped: it ran longer than the 1 s it may\nstdout:\nbegun"
    assert bench.good("get_terminal_output") == "lines 1 to 1 of 1\nbegun"


def test_a_command_that_a_signal_ends_is_told_so(shell: Bench) -> None:
    said = shell.good("run_in_terminal", command=_python(shell.root, "import os; os.kill(os.getpid(), 11)"))
    assert said.startswith("ended by signal 11 (SIGSEGV)") or "exit code" in said


def _sleeper(mark: str) -> str:
    """A program that starts another one, which does not want to go."""
    child = f"import signal,time,sys\\nsignal.signal(15, signal.SIG_IGN)\\nsys.argv.append('{mark}')\\ntime.sleep(300)"
    return (
        "import subprocess, sys, time\n"
        f'subprocess.Popen([sys.executable, "-c", "{child}", "{mark}"], start_new_session=True)\n'
        "time.sleep(300)\n"
    )


@pytest.mark.req("X3")
def test_a_cancelled_call_has_killed_its_whole_tree_before_it_returns(shell: Bench) -> None:
    mark = f"fairwitness-mark-{os.getpid()}-cancel"
    (shell.root / "src/sleeper.py").write_text(_sleeper(mark))

    async def give_up() -> None:
        work = asyncio.ensure_future(shell.box.call("run_in_terminal", {"command": f"python3 src/sleeper.py {mark}"}))
        assert await asyncio.to_thread(eventually, lambda: len(living(mark)) >= 2)
        work.cancel()
        await asyncio.sleep(0)
        work.cancel()  # impatient callers change nothing
        with pytest.raises(asyncio.CancelledError):
            await work
        assert living(mark) == []

    asyncio.run(asyncio.wait_for(give_up(), 60))
    assert shell.good("run_in_terminal", command="python3 src/a.py") == "exit code 0, no output"


def test_closing_ends_what_runs_and_nothing_runs_afterwards(shell: Bench) -> None:
    mark = f"fairwitness-mark-{os.getpid()}-close"
    (shell.root / "src/sleeper.py").write_text(_sleeper(mark))

    async def close() -> None:
        command = {"command": f"python3 src/sleeper.py {mark}"}
        works = [asyncio.ensure_future(shell.box.call("run_in_terminal", command)) for _ in range(COMMANDS_AT_ONCE + 1)]
        assert await asyncio.to_thread(eventually, lambda: len(living(mark)) >= 2 * COMMANDS_AT_ONCE)
        await shell.box.close()
        assert living(mark) == []
        said = [(await work).text for work in works]
        assert said == ["it was stopped"] * COMMANDS_AT_ONCE + ["the dispatch is over"]

    asyncio.run(asyncio.wait_for(close(), 60))
    assert eventually(lambda: living(mark) == [])
    assert shell.bad("run_in_terminal", command="python3 src/a.py") == "the dispatch is over"
    assert shell.bad("read_file", path="src/a.py") == "the dispatch is over"
    asyncio.run(shell.box.close())


def test_files_can_be_read_while_a_command_runs(shell: Bench) -> None:
    async def both() -> None:
        began = time.monotonic()
        command = _python(shell.root, "import time; time.sleep(60)")
        work = asyncio.ensure_future(shell.box.call("run_in_terminal", {"command": command}))
        await asyncio.sleep(0)
        result = await shell.box.call("read_file", {"path": "src/a.py"})
        assert result.ok
        assert time.monotonic() - began < 30
        assert not work.done()
        work.cancel()
        await asyncio.wait({work})

    asyncio.run(both())


def test_git_is_answered_where_the_repository_is(worktree: Path) -> None:
    asked: list[tuple[str, ...]] = []

    async def git(argv: tuple[str, ...]) -> str:
        asked.append(argv)
        if argv[1] == "show":
            raise UsageError("there is no such commit", next_step="")
        return f"\x1b[1mdiff --git {worktree}/a b\x1b[m\n"

    bench = Bench(worktree, role=Role.REVIEWER, git=git)
    assert bench.good("run_in_terminal", command="git diff --stat HEAD") == "diff --git ./a b\n"
    assert bench.bad("run_in_terminal", command="git show deadbeef") == "there is no such commit"
    assert (
        bench.refused("run_in_terminal", command="git push")
        == "git push is not allowed; you may run: git diff/show/log"
    )
    assert "/usr/bin/git diff is not allowed" in bench.refused("run_in_terminal", command="/usr/bin/git diff")
    assert asked == [("git", "diff", "--stat", "HEAD"), ("git", "show", "deadbeef")]
    quick = Bench(worktree, git=lambda _argv: "")
    assert quick.good("run_in_terminal", command="git status") == "no output"
    assert quick.good("get_terminal_output") == "no output"


def test_without_anybody_to_ask_git_runs_like_any_other_command(shell: Bench) -> None:
    assert "exit code " in shell.good("run_in_terminal", command="git status")


def test_a_lost_sandbox_is_no_result(worktree: Path) -> None:
    bench = Bench(worktree)
    assert bench.bad("run_in_terminal", command="python3 src/a.py") == (
        "it has no result: the sandbox was lost: tier none is weaker than uid, the weakest that will do"
    )
    lost = _scripted(worktree, Reply(lost="the launcher is gone"))
    assert lost.bad("run_in_terminal", command="python3 src/a.py") == (
        "it has no result: the sandbox was lost: the launcher is gone"
    )


def test_a_limit_and_a_signal_are_named(worktree: Path) -> None:
    limited = _scripted(worktree, Reply(stopped="memory", stderr=b"big\n")).call("run_in_terminal", command="python3 x")
    assert (limited.ok, limited.text) == (False, "stopped: it went beyond its limit of memory\nstderr:\nbig")
    killed = _scripted(worktree, Reply(signal=9)).call("run_in_terminal", command="python3 x")
    assert (killed.ok, killed.text) == (True, "ended by signal 9 (SIGKILL), no output")
    odd = _scripted(worktree, Reply(signal=63)).call("run_in_terminal", command="python3 x")
    assert odd.text == "ended by signal 63, no output"


def test_surroundings_that_cannot_be_meant_are_said(worktree: Path) -> None:
    bench = Bench(worktree, runner=real_runner(), surroundings=lambda: CommandEnvironment(read=("relative",)))
    assert bench.bad("run_in_terminal", command="python3 x") == "it was not run: 'relative' is not an absolute path"


@pytest.mark.req("X3")
def test_roles_without_a_terminal_run_nothing(worktree: Path) -> None:
    for role in (Role.SPEC, Role.PLANNER, Role.RATER, Role.CAPTAIN):
        bench = Bench(worktree, role=role, scope=SCOPE)
        assert bench.refused("run_in_terminal", command="git diff") == f"{role} does not have run_in_terminal"


def test_the_same_command_in_another_worktree_on_another_day_is_the_same_to_a_recording(worktree: Path) -> None:
    test = "import time, unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        time.sleep({}); {}\n"
    seen: dict[str, list[str]] = {}
    for name, wait, body in (("one", 0, "pass"), ("two", 0.2, "pass"), ("bad", 0, "self.fail('odd')")):
        root = plant(worktree.parent / name, {"test_a.py": test.format(wait, body)})
        said = Bench(root, runner=real_runner()).good("run_in_terminal", command="python3 -m unittest -v")
        seen.setdefault(digest([normalize(said, root=str(root))]), []).append(name)
    assert sorted(seen.values()) == [["bad"], ["one", "two"]]
