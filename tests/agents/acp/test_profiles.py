"""Every profile is complete, is rendered as it was reviewed, and shows no secret on a command line."""

import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from agents.jobs import job
from fairwitness.agents.backends.acp import agent_process
from fairwitness.agents.backends.acp.installation import InstalledAgent
from fairwitness.agents.backends.acp.profile_fill import profile_values, role_kind, tools_of
from fairwitness.agents.base import Endpoint
from fairwitness.agents.profiles import FOLDER, PROFILES, read_profiles
from fairwitness.app.assembly.backends import backend
from fairwitness.contracts.agents.dispatch import EnforcementTier
from fairwitness.contracts.agents.profile import PLACEHOLDERS, AgentProfile
from fairwitness.contracts.agents.settings import AgentsSettings
from fairwitness.contracts.common.sandbox import Command, Network
from fairwitness.contracts.common.tools import POLICIES, Role, Tool
from fairwitness.errors import UsageError
from fairwitness.sandbox.private_folders import PrivateFolders
from fairwitness.testing.scripted_agent import scripted_profile

pytestmark = pytest.mark.req("X3")
GOLDEN = Path(__file__).with_name("golden")
TOKEN, MODEL = "token-good-for-one-dispatch", "maker/model-1.5:latest"
each = pytest.mark.parametrize("name", sorted(PROFILES))
OWN = PrivateFolders("/private", "/private/home", "/private/tmp")


def rendered(found: AgentProfile, role: Role, folder: Path) -> tuple[Command, dict[str, str], Any]:
    endpoint = Endpoint(found.dialect, TOKEN, MODEL, socket=Path("/gateway.sock"))
    ours = job(folder, role=role, endpoint=endpoint)
    fill = agent_process.values_of(found, ours, OWN)
    installed = InstalledAgent(f"/bin/{found.program}", f"/opt/{found.program}", (f"/opt/{found.program}",), ("/opt",))
    files = {file.path: fill.text(file.text) for file in found.files}
    return (
        agent_process.agent_command(found, ours, installed, fill, OWN),
        files,
        fill.value(found.meta.get(role_kind(role), {})),
    )


def golden(found: AgentProfile, folder: Path) -> dict[str, Any]:
    """All that a profile comes to, for one role of each kind."""
    seen: dict[str, Any] = {}
    for role in (Role.IMPLEMENTER, Role.REVIEWER):
        command, files, meta = rendered(found, role, folder)
        seen[role.value] = {
            "argv": list(command.argv),
            "env": dict(sorted(command.confinement.env.items())),
            "files": files,
            "meta": meta,
            "mode": found.modes.get(role_kind(role)),
            "writable": command.confinement.writable,
        }
    return seen


@each
def test_a_profile_is_rendered_as_it_was_reviewed(name: str, tmp_path: Path) -> None:
    found = golden(PROFILES[name], tmp_path)
    assert found == json.loads((GOLDEN / f"{name}.json").read_text())


def test_the_profile_files_hold_the_values_that_were_reviewed() -> None:
    reviewed = json.loads(Path(__file__).with_name("profiles.json").read_text())
    assert {name: found.plain() for name, found in PROFILES.items()} == reviewed


def test_a_broken_profile_file_gives_one_clear_sentence(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "profiles")
    text = (folder / "goose.toml").read_text()
    (folder / "goose.toml").write_text(text.replace('shell = "run_in_terminal"', 'shell = "run_anything"'))
    with pytest.raises(UsageError, match=r"^profiles/goose.toml tools.shell: expected ") as refused:
        read_profiles(folder)
    assert "\n" not in refused.value.what


def test_there_are_the_nine_agents_that_were_measured() -> None:
    names = {"claude", "codex", "copilot", "gemini", "goose", "kimi-code", "opencode", "qwen", "vibe"}
    assert set(PROFILES) == names
    assert {found.name for found in PROFILES.values()} == names
    assert len({found.program for found in PROFILES.values()}) == len(names)
    assert {path.stem for path in GOLDEN.iterdir()} == names


def test_an_agent_that_nobody_knows_is_refused_with_the_names_of_those_we_know() -> None:
    with pytest.raises(UsageError) as refused:
        backend("cline", AgentsSettings())
    assert "claude" in refused.value.next_step


@each
def test_no_secret_stands_on_a_command_line(name: str, tmp_path: Path) -> None:
    for role in (Role.IMPLEMENTER, Role.REVIEWER):
        command, _, meta = rendered(PROFILES[name], role, tmp_path)
        assert TOKEN not in " ".join(command.argv)
        assert TOKEN not in json.dumps(meta)


def test_a_profile_with_a_token_among_its_arguments_cannot_be_made() -> None:
    with pytest.raises(ValidationError, match="no token on a command line"):
        scripted_profile("answers", args=("--key", "{token}"))


@each
def test_the_agent_gets_its_token_and_the_way_to_its_model(name: str, tmp_path: Path) -> None:
    command, files, _ = rendered(PROFILES[name], Role.REVIEWER, tmp_path)
    told = "\n".join((*command.confinement.env.values(), *files.values()))
    assert TOKEN in told
    assert f"http://127.0.0.1:{agent_process.PORT}" in told
    assert MODEL in told


@each
def test_no_placeholder_is_left_over(name: str, tmp_path: Path) -> None:
    command, files, meta = rendered(PROFILES[name], Role.IMPLEMENTER, tmp_path)
    told = "\n".join((*command.argv, *command.confinement.env.values(), *files.values(), json.dumps(meta)))
    assert not re.search(rf"\{{({'|'.join(PLACEHOLDERS)})\}}", told)


@each
def test_settings_files_can_be_read_by_whom_they_are_for(name: str, tmp_path: Path) -> None:
    for role in (Role.IMPLEMENTER, Role.REVIEWER, Role.RATER):
        command, files, _ = rendered(PROFILES[name], role, tmp_path)
        for path, text in files.items():
            readers: dict[str, Any] = {".json": json.loads, ".toml": tomllib.loads, ".yaml": yaml.safe_load}
            assert isinstance(readers[Path(path).suffix](text), dict)
        if "OPENCODE_CONFIG_CONTENT" in command.confinement.env:
            settings = json.loads(command.confinement.env["OPENCODE_CONFIG_CONTENT"])
            assert settings["agent"]["build"]["tools"] is not None


@each
def test_everything_an_agent_needs_to_be_told_is_there(name: str) -> None:
    found = PROFILES[name]
    assert found.tools
    assert all(isinstance(tool, Tool) for tool in found.tools.values())
    assert Tool.RUN_IN_TERMINAL in found.tools.values()
    assert found.tested
    assert found.package in found.install
    assert not set(found.submit_names) & set(found.tools)
    assert not found.submit_names or found.submit


@each
def test_only_the_tools_of_the_role_are_offered(name: str) -> None:
    found = PROFILES[name]
    for role in Role:
        offered = tools_of(found, role)
        assert {found.tools[tool] for tool in offered} <= POLICIES[role].tools
    assert tools_of(found, Role.RATER) == ()


@each
def test_the_sandbox_is_as_tight_as_the_role(name: str, tmp_path: Path) -> None:
    for role in Role:
        if role is Role.ORCHESTRATOR:
            continue
        confinement = rendered(PROFILES[name], role, tmp_path)[0].confinement
        assert confinement.writable is POLICIES[role].source
        assert confinement.write == ("/private",)
        assert confinement.network is Network.LOOPBACK
        assert [(way.port, way.socket) for way in confinement.ways] == [(agent_process.PORT, "/gateway.sock")]
        assert confinement.env["HOME"] == "/private/home"
        assert not confinement.env["HOME"].startswith(confinement.env["TMPDIR"])


def test_tiers_are_as_they_were_measured() -> None:
    assert {name: found.tier for name, found in PROFILES.items()} == {
        "claude": EnforcementTier.C,
        "codex": EnforcementTier.D,
        "copilot": EnforcementTier.C,
        "gemini": EnforcementTier.C,
        "goose": EnforcementTier.B,
        "kimi-code": EnforcementTier.B,
        "opencode": EnforcementTier.C,
        "qwen": EnforcementTier.C,
        "vibe": EnforcementTier.C,
    }


def test_claude_takes_no_settings_from_the_repository(tmp_path: Path) -> None:
    for role in (Role.IMPLEMENTER, Role.REVIEWER):
        options = rendered(PROFILES["claude"], role, tmp_path)[2]["claudeCode"]["options"]
        assert options["settingSources"] == ["user"]
        assert ("Edit" in options["tools"]) is (role is Role.IMPLEMENTER)


def test_an_agent_whose_own_sandbox_cannot_work_inside_ours_is_not_left_to_it() -> None:
    assert set(PROFILES["codex"].modes.values()) == {"agent-full-access"}
    assert PROFILES["codex"].tier is EnforcementTier.D


def test_gemini_asks_about_every_tool_that_changes_something() -> None:
    (settings,) = PROFILES["gemini"].files
    asked = json.loads(settings.text.replace("{tools_json}", "[]"))["tools"]["confirmationRequired"]
    changing = {Tool.CREATE_FILE, Tool.REPLACE_STRING, Tool.RUN_IN_TERMINAL}
    assert set(asked) == {name for name, tool in PROFILES["gemini"].tools.items() if tool in changing}


@pytest.mark.parametrize("model", ['x", "evil": "', "a\nb", "$(id)", "back\\slash"])
def test_a_value_that_would_break_out_of_its_place_is_refused(model: str) -> None:
    with pytest.raises(UsageError, match="model"):
        profile_values(PROFILES["opencode"], Role.REVIEWER, model=model)
