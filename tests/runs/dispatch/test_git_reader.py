"""Git's reading commands are answered about the agent's own worktree, and start nothing."""

import asyncio
import inspect

import pytest

from fairwitness.git.repository import Repository
from fairwitness.runs.dispatch.git_reader import git_reader
from git.person import picture
from runs.dispatch.world import World


def asked(world: World, *arguments: str) -> str:
    repository = Repository.open(world.person.folder)
    ask = git_reader(repository, world.shadow, world.folder, repository.commit("HEAD"))

    async def answer() -> str:
        answered = ask(("git", *arguments))
        return str(await answered if inspect.isawaitable(answered) else answered)

    return asyncio.run(answer())


def test_a_change_is_shown_as_git_shows_it(world: World) -> None:
    (world.folder / "src/shop.py").write_text("price = 2\n")
    (world.folder / "src/new.py").write_text("x\n")
    assert "-price = 1\n+price = 2\n" in asked(world, "diff")
    assert asked(world, "status", "--porcelain").splitlines() == [" M src/shop.py", "?? src/new.py"]
    assert asked(world, "diff", "--name-only", "HEAD").split() == ["src/shop.py"]


def test_history_and_names_are_there(world: World) -> None:
    world.person.git("tag", "start")
    assert asked(world, "log", "--oneline").count("\n") == 1
    assert asked(world, "show", "start:src/shop.py") == "price = 1\n"
    assert "price = 1" in asked(world, "blame", "src/shop.py")
    assert asked(world, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD\n"


def test_a_question_that_fails_is_answered(world: World) -> None:
    assert asked(world, "show", "no-such-thing").startswith("exit code 128")


@pytest.mark.req("X3")
def test_nothing_that_the_repository_or_the_agent_set_up_is_run(world: World) -> None:
    program, mark = world.person.trap(ends="exit 0")
    world.person.configure(f"[diff]\n\texternal = {program}\n[core]\n\tfsmonitor = {program}\n\tpager = {program}\n")
    world.person.configure(f'[diff "x"]\n\ttextconv = {program}\n\tcommand = {program}\n')
    (world.folder / ".gitattributes").write_text("* diff=x filter=x\n")
    (world.folder / "src/shop.py").write_text("price = 3\n")
    before = picture(world.person.folder / ".git")
    assert "+price = 3" in asked(world, "diff")
    asked(world, "status")
    asked(world, "log", "-p")
    assert not mark.exists()
    assert picture(world.person.folder / ".git") == before
