"""Programs are this machine's, never the repository's; package clients are told where packages are, and no secret."""

import stat
from pathlib import Path

import pytest

from fairwitness.verify.environment.clients import clients, npm_lines
from fairwitness.verify.environment.machine import find, is_wide, needed_by, search_path, version_of, within
from verify.environment.shops import write


def program(path: Path, text: str = "#!/bin/sh\necho tool 1.2.3\n") -> Path:
    """A small program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.req("X5")
def test_a_program_inside_the_repository_is_passed_over(tmp_path: Path) -> None:
    repository, outside = tmp_path / "repository", tmp_path / "tools/bin"
    program(repository / "bin/tool")
    there = program(outside / "tool")
    (tmp_path / "links").mkdir()
    (tmp_path / "links/tool").symlink_to(repository / "bin/tool")
    path = f"{repository}/bin:relative::{tmp_path}/links:{outside}"
    search = search_path([repository], path=path)
    assert search == (tmp_path / "links", outside)
    assert find("tool", search, outside=[repository]) == there
    assert find("absent", search) is None


def test_files_that_are_no_programs_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, {"tool": "text"})
    (tmp_path / "folder").mkdir()
    assert find("tool", (tmp_path,)) is None
    assert find("folder", (tmp_path,)) is None


def test_a_stand_in_of_a_manager_is_looked_through(tmp_path: Path) -> None:
    real = program(tmp_path / "managed/versions/3/bin/python3")
    program(tmp_path / "managed/bin/pyenv", f"#!/bin/sh\n[ \"$1 $2\" = 'which python3' ] && echo {real}\n")
    program(tmp_path / "managed/shims/python3", "#!/bin/sh\nexit 1\n")
    program(tmp_path / "managed/shims/unknown", "#!/bin/sh\nexit 1\n")
    assert find("python3", (tmp_path / "managed/shims",)) == real
    assert find("unknown", (tmp_path / "managed/shims",)) is None


def test_a_tool_chain_is_bound_by_its_own_folder_and_a_lone_program_by_itself(tmp_path: Path) -> None:
    chain = program(tmp_path / "chain/bin/compiler")
    (tmp_path / "chain/lib").mkdir()
    lone = program(tmp_path / "many/bin/lone")
    assert needed_by(chain) == (tmp_path / "chain",)
    assert needed_by(lone) == (lone,)
    assert needed_by(Path("/usr/bin/env")) == ()
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (venv / "bin" / "python3").symlink_to("/usr/bin/env")
    assert needed_by(venv / "bin" / "python3") == (venv,), "made from the system's own, and still not the system's"


def test_a_home_is_never_bound() -> None:
    home = Path.home().resolve()
    assert all(
        is_wide(folder) for folder in (home, home.parent, home / ".local", home / ".cargo", Path("/opt"), Path("/"))
    )
    assert not is_wide(home / ".pyenv/versions/3.11.7")
    assert within(home / "x", (home,))


def test_a_version_is_asked_once_for_each_state_of_a_program(tmp_path: Path) -> None:
    tool = program(
        tmp_path / "tool", f"#!/bin/sh\necho x >> {tmp_path}/asked\nprintf '\\033[1mtool 1.2.3\\033[m\\nmore\\n'\n"
    )
    assert [version_of(tool), version_of(tool)] == ["tool 1.2.3", "tool 1.2.3"]
    assert (tmp_path / "asked").read_text() == "x\n"
    program(tool, "#!/bin/sh\nexit 1\n")
    assert version_of(tool) == f"tool of {tool.stat().st_size} bytes"
    assert version_of(tmp_path / "absent") == "unknown"


@pytest.mark.req("X5")
def test_clients_are_told_of_places_and_never_of_secrets(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    environ = {
        "PIP_FIND_LINKS": str(wheels),
        "PIP_INDEX_URL": "https://user:word@packages.example/simple",
        "UV_INDEX_MINE_PASSWORD": "word",
        "npm_config__authToken": "word",
        "NPM_CONFIG_REGISTRY": "https://npm.example",
        "NPM_TOKEN": "word",
        "HTTPS_PROXY": "http://proxy.example:3128",
        "HTTP_PROXY": "http://me:word@proxy.example:3128",
        "PIP_TARGET": "/somewhere",
        "AWS_SECRET_ACCESS_KEY": "word",
        "PIP_CONFIG_FILE": "/dev/null",
    }
    told = clients(environ, network=True)
    assert "word" not in repr(told)
    assert told.env["PIP_FIND_LINKS"] == str(wheels)
    assert told.env["NPM_CONFIG_REGISTRY"] == "https://npm.example"
    assert told.env["HTTPS_PROXY"] == "http://proxy.example:3128"
    assert not {"PIP_TARGET", "PIP_INDEX_URL", "AWS_SECRET_ACCESS_KEY"} & set(told.env)
    assert wheels in told.read


def test_without_network_only_folders_of_packages_remain(tmp_path: Path) -> None:
    wheels = tmp_path / "index/simple"
    wheels.mkdir(parents=True)
    config = write(tmp_path, {"config/pip/pip.conf": f"[global]\nextra-index-url = https://x/simple file://{wheels}\n"})
    environ = {"XDG_CONFIG_HOME": str(config / "config"), "HOME": str(tmp_path), "HTTPS_PROXY": "http://proxy"}
    told = clients(environ, network=False)
    assert told.env["PIP_INDEX_URL"] == f"file://{wheels}"
    assert "PIP_NO_INDEX" not in told.env
    assert "HTTPS_PROXY" not in told.env
    assert {wheels, wheels.parent} <= set(told.read)
    assert clients({"PIP_CONFIG_FILE": "/dev/null"}, network=False).env["PIP_NO_INDEX"] == "1"


@pytest.mark.req("X5")
def test_an_npmrc_gives_registries_and_nothing_else() -> None:
    text = "registry=https://r.example\n@mine:registry = https://m.example\n//r.example/:_authToken=word\n"
    text += "node-options=--require ./evil.js\nscript-shell=./evil\nproxy=http://me:word@p\n@x:registry=${SECRET}\n"
    assert npm_lines(text) == ["registry=https://r.example", "@mine:registry=https://m.example"]


def test_the_programs_that_run_inside_are_readable_by_everyone() -> None:
    folder = Path(__file__).parents[3] / "src/fairwitness/verify/environment/programs"
    assert all(file.stat().st_mode & stat.S_IROTH for file in folder.glob("*.py"))
