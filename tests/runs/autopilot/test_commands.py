"""Autopilot's commands run in a real sandbox at a known tree, once; what is said of them is how they really ended.

`python test_commands.py ROOT WORK` runs some in a process of its own.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairwitness.app.assembly.backends import runner
from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.roadmap import CommandKind
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.errors import NotReady, UsageError
from fairwitness.runs.autopilot.commands import CommandHarness, CriterionCommand
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.verify.model import VerificationStopped
from verify.subjects import RUN, World, branch, make

Opened = Callable[[], World]
NOTHING = "[verify]\nmutants = 0\n"
SLEEPS = "4321.25"
SECONDS = 2


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Opened]:
    """Opens the world of a test, once its repository is there."""
    with ExitStack() as stack:

        def opened() -> World:
            try:
                return stack.enter_context(World.open(tmp_path))
            except NotReady as error:
                pytest.skip(f"no sandbox: {error.what}")

        yield opened


def harness(here: World, *, seconds: int = SECONDS, **commands: str | None) -> CommandHarness:
    """Of the one run; with words for the project's own commands."""
    named = {CommandKind(kind): command for kind, command in commands.items()}
    return CommandHarness(AutopilotLog(here.deps.ledger, RUN), here.deps, named, seconds)


def never() -> threading.Event:
    return threading.Event()


def asked(*commands: str) -> tuple[CriterionCommand, ...]:
    return tuple(CriterionCommand(f"criterion {number}", command) for number, command in enumerate(commands, start=1))


def run(here: World, *commands: str, scope: str = "some", at: str = "main") -> tuple[ExecutionResult, ...]:
    return harness(here).run_all(scope, asked(*commands), here.side(at).tree, stop=never())


def counted(here: World) -> Mapping[str, int]:
    """How many rows stand in the ledger."""
    tables = ("executions", "observations", "chain", "events", "anvil_checks")
    return {table: len(here.rows(table)) for table in tables}


def timeless(results: tuple[ExecutionResult, ...]) -> list[dict[str, Any]]:
    return [result.plain() | {"duration_ms": 0} for result in results]


ENDS: Mapping[str, tuple[Assessment, int | None]] = {
    "test $(cat price) -gt 0": (Assessment.PASS, 0),
    "exit 3": (Assessment.FAIL, 3),
    "no-such-program": (Assessment.FAIL, 127),
    "kill -9 $$": (Assessment.FAIL, 137),
    f"sleep {SLEEPS}": (Assessment.TIMEOUT, None),
    "echo x > /etc/fairwitness-was-here": (Assessment.VIOLATION, 2),
    "echo {tmp} {root} {python}": (Assessment.PASS, 0),
    "cat <<END\nseveral\nlines\nEND": (Assessment.PASS, 0),
}


@pytest.mark.req("A15")
def test_each_command_ends_as_it_did_and_stands_in_the_ledger(tmp_path: Path, world: Opened) -> None:
    make(tmp_path)
    here = world()
    found = run(here, *ENDS)
    assert {each.command: (each.assessment, each.exit_code) for each in found} == ENDS
    assert [each.criterion for each in found] == [f"criterion {number}" for number in range(1, len(ENDS) + 1)]
    by_command = {each.command: each for each in found}
    assert by_command["echo {tmp} {root} {python}"].stdout_truncated == "{tmp} {root} {python}", "braces are its own"
    assert by_command["cat <<END\nseveral\nlines\nEND"].stdout_truncated == "several\nlines"
    late = by_command[f"sleep {SLEEPS}"]
    assert late.stderr_truncated == "[fairwitness: timeout: it did not end within 2 s]"
    assert 2000 <= late.duration_ms < 20_000
    refused = by_command["echo x > /etc/fairwitness-was-here"]
    assert refused.sandbox_violation
    assert "/etc/fairwitness-was-here" in refused.stderr_truncated.splitlines()[0]
    assert not Path("/etc/fairwitness-was-here").exists()
    rows = here.deps.ledger.observations(RUN, "execution")
    assert [row.key for row in rows] == [f"execution:some:{number}" for number in range(1, len(ENDS) + 1)]
    assert {row.tree for row in rows} == {here.side("main").tree}
    assert [row.holds for row in rows] == [each.assessment is Assessment.PASS for each in found]
    assert all(here.deps.ledger.execution(row.detail["execution"]) is not None for row in rows)
    assert here.rows("anvil_checks") == [], "a command is no check of a task"
    assert here.left() == []


@pytest.mark.req("A15")
def test_a_command_sees_its_tree_and_leaves_nothing_for_the_next(tmp_path: Path, world: Opened) -> None:
    branch(make(tmp_path), "dear", price="7\n")
    here = world()
    for name, price in (("main", "1"), ("dear", "7")):
        found = run(here, "cat price; echo 9 > price; touch made", "cat price; ls", scope=name, at=name)
        assert found[0].stdout_truncated == price
        assert found[1].stdout_truncated.split() == [price, "fairwitness.toml", "price", "tests"]
    assert (tmp_path / "repo" / "price").read_text() == "1\n"


@pytest.mark.req("A15")
def test_output_is_cut_at_its_beginning_and_made_visible(tmp_path: Path, world: Opened) -> None:
    make(tmp_path)
    many, odd, long = run(
        world(), "printf 'first\\n'; seq 1 200000; echo last", "printf 'a\\033[2Jb' >&2; exit 1", f": {'x' * 300_000}"
    )
    assert many.stdout_truncated.startswith("first\n1\n2\n")
    assert len(many.stdout_truncated) == 500
    assert "\033" not in odd.stderr_truncated
    assert odd.stderr_truncated.startswith("a")
    assert (long.assessment, long.exit_code) == (Assessment.LOST, None), "no kernel takes so long a word"
    assert "too long" in long.stderr_truncated


@pytest.mark.req("A15")
def test_a_command_reaches_no_network(tmp_path: Path, world: Opened) -> None:
    make(tmp_path)
    (found,) = run(world(), "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), timeout=1)'")
    assert found.assessment is not Assessment.PASS


@pytest.mark.req("A15", "X1")
def test_the_same_command_twice_in_a_scope_is_run_once_and_in_another_scope_again(
    tmp_path: Path, world: Opened
) -> None:
    make(tmp_path)
    here = world()
    first = run(here, "cat price", "exit 1", "cat price")
    assert len(here.rows("executions")) == 2
    assert [each.criterion for each in first] == ["criterion 1", "criterion 2", "criterion 3"]
    assert first[2].stdout_truncated == "1"
    run(here, "cat price", scope="other")
    assert len(here.rows("executions")) == 3


@pytest.mark.req("A15")
def test_who_asks_again_is_told_what_was_seen_and_another_question_is_refused(tmp_path: Path, world: Opened) -> None:
    branch(make(tmp_path), "dear", price="7\n")
    here = world()
    commands = ("date +%N", f"sleep {SLEEPS}")
    first = run(here, *commands)
    before = counted(here)
    assert run(here, *commands) == first
    assert run(here, commands[0]) == first[:1]
    assert counted(here) == before
    for other in (("true", commands[1]), ("date +%N", "true")):
        with pytest.raises(UsageError, match="another command or tree"):
            run(here, *other)
    with pytest.raises(UsageError, match="another command or tree"):
        run(here, *commands, at="dear")
    assert counted(here) == before
    assert run(here) == ()


@pytest.mark.req("A15", "X1")
def test_what_nothing_held_in_does_not_pass(tmp_path: Path, world: Opened) -> None:
    make(tmp_path, settings=f'{NOTHING}[verify.sandbox]\ntier = "none"\n')
    here = world()
    deps = replace(here.deps, runner=runner(SandboxTier.NONE, allow_unconfined=True))
    loose = CommandHarness(AutopilotLog(deps.ledger, RUN), deps, {}, SECONDS)
    passed, failed = loose.run_all("some", asked("true", "false"), here.side("main").tree, stop=never())
    assert (passed.assessment, passed.stderr_truncated) == (
        Assessment.LOST,
        "[fairwitness: lost: the sandbox was lost: tier none is weaker than uid, the weakest that will do]",
    )
    assert failed.assessment is Assessment.LOST


def worktree(tmp_path: Path, here: World) -> Path:
    folder = tmp_path / "worktree"
    here.person.git("worktree", "add", "-q", "--detach", str(folder), "main")
    return folder


@pytest.mark.req("A15")
def test_a_worktree_is_run_as_it_stands_and_stays_as_it_is(tmp_path: Path, world: Opened) -> None:
    person = make(tmp_path)
    person.commit("ignore", **{".gitignore": "*.log\n"})
    here = world()
    folder = worktree(tmp_path, here)
    (folder / "price").write_text("5\n")
    (folder / "new").write_text("new\n")
    (folder / "noise.log").write_text("noise\n")
    stop = never()
    looks = asked("cat price new", "test -e noise.log", "rm price; echo x > new; touch made")
    found = harness(here).run_in("t-1", looks, folder, stop=stop)
    assert [each.exit_code for each in found] == [0, 1, 0]
    assert found[0].stdout_truncated == "5\nnew"
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [".git", ".gitignore", "fairwitness.toml", "new", "noise.log", "price", "tests"]
    )
    assert (folder / "price").read_text() == "5\n"
    (folder / "price").write_text("6\n")
    assert harness(here).run_in("t-1", looks, folder, stop=stop) == found, "as it stood when it was asked first"
    more = harness(here).run_in("t-1", (*looks, CriterionCommand("more", "cat price # more")), folder, stop=stop)
    assert more[3].stdout_truncated == "5", "all commands of a scope see the same"
    (again,) = harness(here).run_in("t-2", looks[:1], folder, stop=stop)
    assert again.stdout_truncated == "6\nnew"
    (standing, _) = here.deps.ledger.observations(RUN, "standing")
    assert here.deps.ledger.observations(RUN, "execution")[0].tree == standing.tree
    assert harness(here).run_in("t-3", (), folder, stop=stop) == ()
    assert len(here.deps.ledger.observations(RUN, "standing")) == 2


def test_a_folder_of_another_repository_is_refused(tmp_path: Path, world: Opened) -> None:
    make(tmp_path)
    other = make(tmp_path / "elsewhere")
    here = world()
    with pytest.raises(UsageError, match="not a worktree of this repository"):
        harness(here).run_in("t-1", asked("true"), other.folder, stop=never())
    assert here.rows("observations") == []


@pytest.mark.req("A15")
def test_a_command_runs_in_the_environment_of_its_project(tmp_path: Path, world: Opened) -> None:
    person = make(tmp_path, settings=NOTHING)
    person.commit(
        "a project",
        **{
            "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n',
            "src/shop/__init__.py": "PRICE = 2\n",
            "tests/test_price.py": "import unittest\nimport shop\n\n\nclass Prices(unittest.TestCase):\n"
            "    def test_two(self) -> None:\n        self.assertEqual(shop.PRICE, 2)\n",
        },
    )
    here = world()
    imports = "python -c 'import shop; print(shop.PRICE, shop.__file__)'"
    found = harness(here, seconds=60).run_all(
        "some", asked(imports, "python -m unittest tests/test_price.py"), here.side("main").tree, stop=threading.Event()
    )
    assert [each.assessment for each in found] == [Assessment.PASS, Assessment.PASS]
    price, place = found[0].stdout_truncated.split()
    assert price == "2"
    assert not Path(place).is_relative_to(tmp_path / "repo" / "src"), "the code of the tree, not of the person"


@pytest.mark.req("A15", "X1")
def test_without_an_environment_nothing_is_run_and_the_result_says_so(tmp_path: Path, world: Opened) -> None:
    settings = f'{NOTHING}[verify.setup]\ncommands = [["fairwitness-has-no-such-program"]]\n'
    person = make(tmp_path, settings=settings)
    person.commit("a project", **{"pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n', "shop.py": ""})
    here = world()
    (found,) = run(here, "true")
    assert (found.assessment, found.exit_code, found.sandbox_violation) == (Assessment.LOST, None, False)
    assert found.stderr_truncated.startswith("[fairwitness: it was not run: fairwitness-has-no-such-program")
    assert here.rows("executions") == []
    (row,) = here.deps.ledger.observations(RUN, "execution")
    assert (row.holds, row.detail["execution"]) == (False, None)
    assert run(here, "true") == (found,)
    checks = harness(here, test="true").checks("some", here.side("main").tree, here.side("main").tree, stop=never())
    assert checks.tests is False


@pytest.mark.req("A15")
def test_the_projects_own_commands_are_true_only_where_they_pass(tmp_path: Path, world: Opened) -> None:
    person = make(tmp_path)
    branch(person, "worse", price="0\n", todo="TODO\n")
    here = world()
    base, head = here.side("main").tree, here.side("worse").tree

    def own() -> CommandHarness:
        lint, test, build = "grep -q nowhere price", "sh tests/prices.sh", "test -f price"
        return harness(here, compile=None, test=test, lint=lint, build=build)

    checks = own().checks("verify-1-1-1", head, base, stop=never())
    assert (checks.compile, checks.tests, checks.lint, checks.build) == ("n/a", False, False, True)
    assert harness(here).notes("verify-1-1-1") == (
        "test: it ended with fail; it passed before",
        "lint: it ended with fail; it did not pass before either",
    )
    before = counted(here)
    assert own().checks("verify-1-1-1", head, base, stop=never()) == checks
    assert counted(here) == before
    with pytest.raises(UsageError, match="another command or tree"):
        own().checks("verify-1-1-1", base, base, stop=never())
    executions = before["executions"]
    own().checks("verify-1-1-2", head, base, stop=never())
    assert counted(here)["executions"] == executions + 3, "what the base says is known"
    assert harness(here).notes("unknown") == ()
    assert here.deps.ledger.observations(RUN, "execution") == (), "they are no criteria"


def test_without_commands_every_check_is_absent(tmp_path: Path, world: Opened) -> None:
    make(tmp_path)
    here = world()
    tree = here.side("main").tree
    checks = harness(here).checks("some", tree, tree, stop=never())
    assert {checks.compile, checks.tests, checks.lint, checks.build} == {"n/a"}
    assert here.rows("executions") == []


def test_a_whole_suite_may_take_longer_than_a_criterion(tmp_path: Path, world: Opened) -> None:
    make(tmp_path)
    here = world()
    tree = here.side("main").tree
    assert harness(here, seconds=1, test="sleep 1.5").checks("some", tree, tree, stop=never()).tests is True


def commands_of_criteria(here: World, _root: Path) -> object:
    wanted = asked("cat price", "sleep 3", "cat price", "exit 2")
    return timeless(harness(here, seconds=1).run_all("one", wanted, here.side("main").tree, stop=never()))


def commands_in_a_worktree(here: World, root: Path) -> object:
    return timeless(harness(here).run_in("two", asked("cat price"), root / "worktree", stop=never()))


def checks_of_the_project(here: World, _root: Path) -> object:
    mine, tree = harness(here, test="cat price", lint="exit 1"), here.side("main").tree
    return mine.checks("one", tree, tree, stop=never()), mine.notes("one")


POINTS: Mapping[Callable[[World, Path], object], tuple[str, ...]] = {
    commands_of_criteria: (
        "verify.turn.taken",
        "verify.recorded.command-1",
        "autopilot.execution",
        "verify.recorded.command-2",
        "autopilot.execution#3",
    ),
    commands_in_a_worktree: ("autopilot.standing", "verify.ran.command-1", "autopilot.execution"),
    checks_of_the_project: ("autopilot.check", "autopilot.check#3", "autopilot.kept", "autopilot.checks"),
}


def spawned(root: Path, work: str, kill_at: str) -> int:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "FAIRWITNESS_KILL_AT": kill_at}
    return subprocess.run([sys.executable, __file__, str(root), work], env=environment, check=False).returncode


@pytest.mark.req("A15")
@pytest.mark.parametrize("work", POINTS)
def test_whoever_is_killed_leaves_what_a_repeat_makes_whole(
    tmp_path: Path, world: Opened, work: Callable[[World, Path], object]
) -> None:
    make(tmp_path, settings=NOTHING)
    here = world()
    worktree(tmp_path, here)
    said, rows = work(here, tmp_path), counted(here)
    for point in POINTS[work]:
        for file in here.deps.state.glob("evidence.db*"):
            file.unlink()
        assert spawned(tmp_path, work.__name__, point) == -signal.SIGKILL, point
        with World.open(tmp_path) as again:
            assert work(again, tmp_path) == said, point
            assert counted(again) == rows, point
            run(again, "true", scope="next")
            assert again.left() == [], point


def test_a_stop_ends_it_and_what_was_cut_off_is_on_no_record(tmp_path: Path, world: Opened) -> None:
    make(tmp_path)
    here = world()
    stop, ended = threading.Event(), list[BaseException]()

    def running() -> None:
        try:
            tree = here.side("main").tree
            harness(here, seconds=60).run_all("some", asked("cat price", f"sleep {SLEEPS}"), tree, stop=stop)
        except VerificationStopped as error:
            ended.append(error)

    thread = threading.Thread(target=running)
    thread.start()
    deadline = time.monotonic() + 30
    while not here.deps.ledger.observations(RUN, "execution") and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    stop.set()
    thread.join(30)
    assert len(ended) == 1
    assert [row.key for row in here.deps.ledger.observations(RUN, "execution")] == ["execution:some:1"]
    assert len(here.rows("executions")) == 1
    assert here.left() == []
    with pytest.raises(VerificationStopped):
        harness(here).run_all("other", asked("true"), here.side("main").tree, stop=stop)


def test_two_threads_that_ask_the_same_run_it_once(tmp_path: Path, world: Opened) -> None:
    make(tmp_path)
    here = world()
    found: list[tuple[ExecutionResult, ...]] = []
    threads = [threading.Thread(target=lambda: found.append(run(here, "sleep 0.3; date +%N"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 3
    assert len(set(found)) == 1
    assert len(here.rows("executions")) == 1


def main(root: str, work: str) -> None:
    """Does one of the works in a world that was made before."""
    (found,) = [each for each in POINTS if each.__name__ == work]
    with World.open(Path(root)) as here:
        found(here, Path(root))


if __name__ == "__main__":
    main(*sys.argv[1:])
