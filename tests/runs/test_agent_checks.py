"""An agent runs the project's checks, and its own commands, in the environment that its work is judged in."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.toolset.kit import real_runner
from fairwitness.agents.toolset.model import CommandEnvironment, Surroundings, ToolFailed
from fairwitness.agents.toolset.toolbox import Toolbox
from fairwitness.app.state import scratch_root, state_of
from fairwitness.contracts.common.tools import Role, Scope, Tool
from fairwitness.contracts.verify.checks import VerifySettings
from fairwitness.contracts.verify.report import VerifySubject
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.shared.agent_checks import AgentChecks
from fairwitness.verify.cascade import project_of
from fairwitness.verify.model import CheckRequest
from fairwitness.verify.subject import VerifyDeps, harness_of, ignore_progress
from fairwitness.verify.tree_view import checks_at
from git.person import Person
from verify.environment.shops import venv

RUN = "run-2026-02-26-143000"
FILES = {
    "pyproject.toml": '[project]\nname = "till"\nversion = "1"\n[tool.setuptools.packages.find]\nwhere = ["src"]\n',
    ".gitignore": ".venv/\n",
    "src/till.py": "import greeting\n\n\ndef total(prices):\n    return sum(prices)\n",
    "tests/test_till.py": (
        "import unittest\nimport till\n\n\nclass Totals(unittest.TestCase):\n"
        "    def test_two(self):\n        self.assertEqual(till.total([1, 2]), 3)\n"
        "    def test_none(self):\n        self.assertEqual(till.total([]), 0)\n"
    ),
}

LINES = {"build": "ls src {a,b}", "test": "python3 -m unittest discover -s tests"}


class Site:
    """A repository with a library that only its own environment has, and an agent's worktree of it."""

    def __init__(self, root: Path) -> None:
        person = Person.in_folder(root)
        for path, text in FILES.items():
            person.write(path, text)
        person.commit()
        (venv(person.folder / ".venv") / "greeting.py").write_text("WORD = 'hello'\n")
        self.folder = root / "work"
        person.git("worktree", "add", "-q", "--detach", str(self.folder))
        repository, self.runner = Repository.open(person.folder), real_runner()
        state = state_of(repository)
        self.ledger = Ledger.open_file(state / "evidence.db")
        self.deps = VerifyDeps(
            repository=repository,
            runner=self.runner,
            shadow=Shadow.open(state / "git", repository),
            ledger=self.ledger,
            state=state,
            scratch=scratch_root(state, self.runner.tier),
            settings=VerifySettings(),
            digest="0" * 64,
        )
        self.checks = AgentChecks(self.deps, RUN, self.folder, repository.tree_of("HEAD"), LINES)

    def check(self, name: str, path: str | None = None) -> str:
        return asyncio.run(self.checks.run_check(name, path))

    def terminal(self, command: str, surroundings: Surroundings, role: Role = Role.IMPLEMENTER) -> str:
        async def told() -> str:
            box = Toolbox(role=role, scope=Scope(), worktree=self.folder, runner=self.runner, surroundings=surroundings)
            try:
                return (await box.call(Tool.RUN_IN_TERMINAL, {"command": command})).text
            finally:
                await box.close()

        return asyncio.run(told())


@pytest.fixture
def site(own_home: None, tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.ledger.close()


@pytest.mark.req("P7", "X3")
def test_a_check_runs_on_the_files_as_the_agent_has_them_now_and_names_what_fails(site: Site) -> None:
    assert "unittest" in site.checks.names
    assert site.check("unittest").startswith("unittest passed, 2 of 2 pass")
    (site.folder / "src/till.py").write_text(FILES["src/till.py"].replace("sum(prices)", "sum(prices) + 1"))
    told = site.check("unittest")
    assert told.startswith("unittest failed, 0 of 2 pass, exit code 1\n")
    assert "test_two" in told
    assert "AssertionError: 4 != 3" in told
    assert str(site.deps.scratch) not in told
    rows = site.ledger.database.read("SELECT COUNT(*) FROM anvil_checks")
    assert rows == [(0,)], "what an agent tries is no evidence about its task"


@pytest.mark.req("P7")
def test_an_unknown_check_lists_those_there_are_and_commands_of_the_settings_have_names(site: Site) -> None:
    with pytest.raises(ToolFailed, match=r"there is no check pytest; the checks: .*unittest.*, build"):
        site.check("pytest")
    told = site.check("build", "src")
    assert told.startswith("build cannot be narrowed, so all of it ran.\nbuild failed")
    assert "{a,b}" in told


@pytest.mark.req("P7", "A15")
def test_a_command_of_the_settings_runs_in_the_environment_of_its_project(site: Site) -> None:
    told = site.check("test")
    assert told.startswith("test passed"), told


@pytest.mark.req("P7", "X3")
@pytest.mark.parametrize("role", [Role.IMPLEMENTER, Role.VERIFIER])
def test_the_terminal_finds_the_prepared_environment(site: Site, role: Role) -> None:
    command = "python3 -m unittest discover -s tests"
    assert "No module named" in site.terminal(command, CommandEnvironment, role)
    assert "exit code 0" in site.terminal(command, site.checks.surroundings, role)
    assert "hello" in site.terminal("python -c 'import till; print(till.greeting.WORD)'", site.checks.surroundings)


@pytest.mark.req("P5", "X3")
def test_the_harness_does_not_take_over_what_an_agent_ran(site: Site) -> None:
    site.check("unittest")
    tree = site.deps.repository.tree_of("HEAD")
    found = checks_at(site.deps.shadow, tree, site.deps.settings)
    spec = next(spec for spec in found.checks if spec.id == "unittest")
    subject = VerifySubject(task_id="task-01")
    with harness_of(
        site.deps, subject, found, found, run_id=RUN, work=site.deps.scratch, on_progress=ignore_progress
    ) as harness:
        ran = [harness.run(CheckRequest(spec, project_of(spec, found), tree, "after")).cached for _ in range(2)]
    assert ran == [False, True], "the harness runs the check itself, once"
