"""Settings that a repository carries: no agent follows them, and what it tries is on record."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agents.acp.kit import BUILDER, READER, Ground, report
from agents.jobs import job
from fairwitness.agents.backends.acp.permissions import unclear_denial
from fairwitness.agents.backends.acp.repo_settings import find_repo_settings
from fairwitness.agents.driver import drive
from fairwitness.agents.profiles import PROFILES
from fairwitness.contracts.agents.dispatch import Layer, OutcomeStatus, Stop
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.tools import Role, Scope
from fairwitness.sandbox import hidden
from fairwitness.sandbox.scripted import ScriptedRunner
from fairwitness.testing.scripted_agent import scripted_profile

pytestmark = pytest.mark.req("X3")
SETTINGS = ".scripted/settings.json"
roles = pytest.mark.parametrize("role", [BUILDER, READER])


def plant(ground: Ground, path: str = SETTINGS) -> None:
    """A hook that leaves a mark wherever it can."""
    hook = f"echo ran; touch {ground.worktree}/hooked; touch {ground.worktree}/src/hooked.py"
    (ground.worktree / path).parent.mkdir(parents=True, exist_ok=True)
    (ground.worktree / path).write_text(json.dumps({"hook": hook}))
    ground.before = ground.files()


@roles
@pytest.mark.parametrize("path", [".scripted", SETTINGS])
@pytest.mark.parametrize("is_told", [False, True])
def test_settings_of_a_repository_are_not_there_for_an_agent_that_would_follow_them(
    ground: Ground, role: Role, path: str, is_told: bool
) -> None:
    plant(ground)
    backend = ground.backend("hostile", repo_settings=(path, ".other"), ignores_repo_settings=is_told)
    told = report(ground.ask(backend, ground.job(role)))
    assert told["settings"] == {} if path == SETTINGS else told["settings"].startswith("failed: ")
    assert "hook" not in told
    assert ground.changed() == set()
    assert f"hidden from The scripted agent, which could take settings from it: {path}" in ground.notes()
    assert "carries" not in ground.notes()


def test_without_a_profile_that_knows_them_they_would_be_followed(ground: Ground) -> None:
    plant(ground)
    told = report(ground.ask(ground.backend("hostile")))
    assert "ran" in told["hook"]
    assert ground.changed() == {"hooked", "src/hooked.py", "src/new.py"}


@roles
def test_an_agent_cannot_get_its_settings_back(ground: Ground, role: Role) -> None:
    plant(ground)
    script = (
        "mv .scripted old; mv .scripted/settings.json old; rm -rf .scripted; ln .scripted/settings.json linked;"
        " umount .scripted/settings.json; mount -o remount,rw .scripted/settings.json;"
        " unshare -Urm umount .scripted/settings.json;"
        " cat .scripted/settings.json old old/settings.json linked /proc/self/root$PWD/.scripted/settings.json"
        " /proc/1/root$PWD/.scripted/settings.json; echo x > .scripted/settings.json"
    )
    backend = ground.backend("shell", repo_settings=(SETTINGS,), env={"SCRIPTED_COMMAND": script})
    ours = ground.job(role)
    told = report(ground.ask(backend, ours))
    assert "hooked" not in told["shell"]
    assert "{}" in told["shell"]
    assert ground.changed() <= {"old"}, "a copy of what lies over it"
    if role is BUILDER:
        tried = [denial for denial in ours.tools.denials if denial.target == f"./{SETTINGS}"]
        assert {denial.layer for denial in tried} == {Layer.SANDBOX}
        assert all(denial.reason.startswith("hidden: ") for denial in tried)
        assert tried


def test_what_the_task_is_about_stays_in_sight_and_is_noted(ground: Ground) -> None:
    plant(ground)
    plant(ground, ".scripted/other.json")
    ours = ground.job(scope=Scope(folder="docs/run", writes=(SETTINGS,)))
    told = report(ground.ask(ground.backend("hostile", repo_settings=(".scripted",)), ours))
    assert "ran" in told["hook"]
    assert f"carries {SETTINGS}, which The scripted agent may follow" in ground.notes()
    assert "settings from it: .scripted/other.json" in ground.notes()
    hidden_paths = ground.runner.asked[0].confinement.hidden
    assert hidden_paths == (".scripted/other.json",)


def test_a_reader_sees_no_settings_whatever_the_task_may_write(ground: Ground) -> None:
    plant(ground)
    ours = ground.job(READER, scope=Scope(folder="docs/run", writes=("**",)))
    assert "hook" not in report(ground.ask(ground.backend("hostile", repo_settings=(SETTINGS,)), ours))


@pytest.mark.parametrize("target", ["../src", "/proc/self/cwd/src", "src"])
def test_a_repository_cannot_lead_the_agent_there_by_a_link(ground: Ground, target: str) -> None:
    plant(ground, "src/settings.json")
    (ground.worktree / ".scripted").symlink_to(target)
    turn = ground.ask(ground.backend("hostile", repo_settings=(SETTINGS,)), ground.job(scope=Scope(writes=("**",))))
    assert (turn.stop, turn.cause) == (Stop.FAILED, ErrorCause.SANDBOX_LOST)
    assert "link" in turn.error
    assert ground.changed() - {".scripted/settings.json", ".scripted/a.py"} == set()


def test_instructions_for_agents_are_text_of_the_repository_and_stay(ground: Ground) -> None:
    (ground.worktree / "AGENTS.md").write_text("Use tabs.\n")
    plant(ground)
    backend = ground.backend("shell", repo_settings=(SETTINGS,), env={"SCRIPTED_COMMAND": "cat AGENTS.md"})
    assert "Use tabs." in report(ground.ask(backend))["shell"]


def test_violations_of_the_agents_own_process_are_denials_and_do_not_fail_the_dispatch(ground: Ground) -> None:
    ours = ground.job(Role.JUDGE)
    backend = ground.backend("rogue")
    outcome = asyncio.run(_driven(backend, ours))
    assert outcome.status is OutcomeStatus.OK
    found = [denial for denial in outcome.denials if denial.layer is Layer.SANDBOX]
    assert any(denial.target.startswith("./.git/") and "git-dir: " in denial.reason for denial in found)
    assert {denial.tool for denial in found} == {"scripted"}


async def _driven(backend: Any, ours: Any) -> Any:
    try:
        return await drive(backend, ours)
    finally:
        await ours.tools.close()


def test_a_call_that_nobody_understands_is_denied_under_the_agents_own_name(ground: Ground) -> None:
    ours = ground.job()
    ground.ask(ground.backend("kindless"), ours)
    found = {(denial.tool, denial.layer) for denial in ours.tools.denials}
    assert found == {("(no name)", Layer.DECISION), ("Read a", Layer.DECISION)}
    assert all("there is no tool" not in denial.reason for denial in ours.tools.denials)


def test_an_unclear_call_may_say_anything() -> None:
    denial = unclear_denial("\ud800\n", "\x1b[31m\0", "a\nb")
    assert (denial.tool, denial.target, denial.reason) == ("\\ud800\\n", "\\x1b[31m\\x00", "a\\nb")
    assert unclear_denial("  ", "", "why").tool == "(no name)"


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_what_every_profile_lists_can_be_hidden(name: str) -> None:
    assert [path for path in PROFILES[name].repo_settings if hidden.path_problem(path) is not None] == []


def sort(folder: Path, *writes: str, tier: SandboxTier = SandboxTier.NAMESPACES) -> Any:
    found = scripted_profile("answers", repo_settings=(".set", "one.json"))
    ours = job(folder, role=BUILDER, scope=Scope(writes=writes), runner=ScriptedRunner((), tier=tier))
    return find_repo_settings(found, ours)


def fill(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()


def test_only_what_the_task_may_write_is_left_in_sight(tmp_path: Path) -> None:
    fill(tmp_path, ".set/a.json", ".set/b.json", ".set/hooks/x.sh", ".set/hooks/y.md", "one.json")
    found = sort(tmp_path, ".set/a.json", "**/*.md")
    assert found.hidden == (".set/b.json", ".set/hooks/x.sh", "one.json")
    assert found.seen == (".set/a.json", ".set/hooks/y.md")
    assert sort(tmp_path, "src/**").hidden == (".set", "one.json")
    assert sort(tmp_path, "**").hidden == ()


def test_a_folder_with_too_many_parts_to_hide_is_hidden_as_a_whole(tmp_path: Path) -> None:
    fill(tmp_path, *(f".set/{number}.json" for number in range(60)))
    assert sort(tmp_path, ".set/*.md").hidden == (".set", "one.json")


def test_a_sandbox_that_can_hide_nothing_is_asked_only_for_what_is_there(tmp_path: Path) -> None:
    fill(tmp_path, "one.json")
    assert sort(tmp_path).hidden == (".set", "one.json")
    assert sort(tmp_path, tier=SandboxTier.LANDLOCK).hidden == ("one.json",)


def test_what_the_task_may_write_by_a_link_is_hidden_all_the_same(tmp_path: Path) -> None:
    fill(tmp_path, "src/settings.json")
    (tmp_path / ".set").symlink_to("src")
    (tmp_path / "one.json").symlink_to("src/settings.json")
    assert sort(tmp_path, "**").hidden == (".set", "one.json")
