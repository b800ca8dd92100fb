"""The data of the demos is complete and read exactly: every file is used, and cassettes and commits never change."""

import hashlib
import subprocess
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from fairwitness.contracts.common.tools import Role, Tool
from fairwitness.demo.bundle import DATA, load, repository_files
from fairwitness.demo.sessions import RecordedSession, read_session
from fairwitness.errors import BadDocument
from fairwitness.runs.autopilot.own_files import gitignore_with
from support.fixtures import ROOT

DEMOS = ("feature", "light", "forge", "autopilot")
CASSETTES = {
    ("feature", "honest"): "04dfc5eba15e2d6ee7b8ff94a04a67e3f35d1935eb466d914f82c0166128a729",
    ("feature", "lying"): "30cb3be8739a997ad75ad012013986efd9d72ad5a9ac24a02257121459af4c40",
    ("light", "honest"): "984b5e04d39c9f1656a36858ebc187c91e0f127016a85c72da74558aff41b624",
    ("forge", "honest"): "3ca5d3ce7c928f2d95bf9efd519315edf3eae8e36e8b2b37d7c901923ddbfa3c",
    ("autopilot", "honest"): "99fd19d27e54dddce41a701515dd689e4c6f6d969f43077c764da37549375d3a",
}
"""The digest of all cassettes of a team; it changes when a session is edited."""
COMMITS = {
    "feature": "215512f2e5f47be26ba41be17138397f01e53542",
    "light": "215512f2e5f47be26ba41be17138397f01e53542",
    "forge": "585f5184a9a72665fbf585ee141ede216957adb8",
    "autopilot": "2f4342426c0a7ceb5f276c5f4bda1ca9d7350023",
}
"""The one commit of each repository: files, author, time and subject."""
SESSION_FILES = sorted(DATA.glob("*/sessions/*"))


def _digest(folder: Path) -> str:
    whole = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        whole.update(f"{path.name}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


@pytest.mark.parametrize(("name", "variant"), CASSETTES)
def test_the_cassettes_of_a_team_have_the_committed_digest(name: str, variant: str, tmp_path: Path) -> None:
    assert _digest(load(name).write_cassettes(tmp_path, variant)) == CASSETTES[name, variant]


@pytest.mark.parametrize("name", DEMOS)
def test_a_repository_is_the_committed_commit_with_every_file_tracked(name: str, tmp_path: Path) -> None:
    folder = load(name).lay_out(tmp_path / "repository")
    assert _git(folder, "rev-parse", "HEAD") == [COMMITS[name]]
    assert _git(folder, "status", "--porcelain", "--ignored") == []
    assert _git(folder, "ls-files") == sorted(load(name).files)


def _git(folder: Path, *arguments: str) -> list[str]:
    return subprocess.check_output(["git", *arguments], cwd=folder, text=True).splitlines()


@pytest.mark.parametrize("path", SESSION_FILES, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_every_session_file_is_a_session_that_begins_with_a_comment(path: Path) -> None:
    session = read_session(path)
    assert path.suffix == ".yaml"
    assert path.read_text().startswith("# ")
    assert session.closing_text
    assert all(turn.text and turn.calls for turn in session.turns)
    assert session.cassette()


@pytest.mark.parametrize("name", DEMOS)
def test_teams_name_exactly_the_sessions_that_exist(name: str) -> None:
    named = {session for team in load(name).teams.values() for session in team}
    assert named == {path.stem for path in SESSION_FILES if path.parts[-3] == name}


@pytest.mark.parametrize("name", DEMOS)
def test_every_file_of_the_data_is_read(name: str) -> None:
    """Nothing lies in `data/` that no demo uses; byte code of the bundled Python files may."""
    demo, root = load(name), DATA / name
    own = (root / "repo").exists()  # the light demo has the repository of the feature demo
    read = {f"repo/{path}" for path in demo.files if own} | {f"sessions/{session}.yaml" for session in demo.sessions}
    read |= {"team.toml"} | ({"request.txt"} if demo.request else set())
    found = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    assert {path for path in found if "__pycache__" not in path} == read
    assert (demo.autopilot is None) == bool(demo.request) == bool(demo.slug)


def test_the_wheel_has_every_file_of_the_data() -> None:
    """Also names that build tools like to leave out: `.gitignore`, `.planning/`, `tests/`."""
    packed = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    found = {path.relative_to(ROOT / "src").as_posix() for path in DATA.rglob("*") if path.is_file()}
    assert {path for path in found if "__pycache__" not in path} <= packed


def test_there_are_no_other_demos() -> None:
    assert sorted(path.name for path in DATA.iterdir()) == sorted(DEMOS)


@pytest.mark.parametrize("name", DEMOS)
def test_a_session_that_is_played_again_has_the_next_number(name: str) -> None:
    for variant in load(name).teams:
        numbers: dict[tuple[Role, str], list[int]] = {}
        for session in load(name).team(variant):
            numbers.setdefault((session.role, session.instance), []).append(session.number)
        assert all(each == list(range(1, len(each) + 1)) for each in numbers.values())


def test_a_session_is_found_by_its_name_with_its_number_in_a_variant() -> None:
    demo = load("feature")
    assert demo.session("implementer-task-04-2").number == 2
    assert demo.session("verifier-task-04-lie-2", "lying").number == 2
    assert demo.document("spec") is demo.session("spec").answer


def test_byte_code_beside_the_files_of_a_repository_is_not_part_of_it(tmp_path: Path) -> None:
    """Installers compile every Python file of a package, those of the bundled repositories included."""
    for name in ("pkg/__init__.py", "pkg/__pycache__/__init__.cpython-311.pyc", ".planning/a.md", ".gitignore"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\xff" if path.suffix == ".pyc" else b"text\n")
    assert repository_files(tmp_path) == dict.fromkeys((".gitignore", ".planning/a.md", "pkg/__init__.py"), "text\n")


def test_the_linter_of_two_repositories_is_the_same() -> None:
    assert load("feature").files["tools/lint.py"] == load("autopilot").files["tools/lint.py"]


def test_a_run_has_nothing_to_add_to_the_ignored_files_of_the_autopilot_demo() -> None:
    ignored = load("autopilot").files[".gitignore"]
    assert gitignore_with(ignored) == ignored


def test_a_session_file_says_who_is_asked_what_is_done_and_what_is_returned(tmp_path: Path) -> None:
    path = tmp_path / "session.yaml"
    path.write_text(
        "role: implementer\ninstance: task-01\n"
        "turns:\n  - text: Reading.\n    calls:\n      - read_file: {path: a.py}\n"
        "closing_text: Done.\nanswer: {a: 1}\n"
    )
    session = read_session(path)
    assert (session.role, session.instance, session.number) == (Role.IMPLEMENTER, "task-01", 1)
    assert [(call.tool, call.args) for call in session.calls] == [(Tool.READ_FILE, {"path": "a.py"})]
    assert (session.closing_text, session.answer) == ("Done.", {"a": 1})
    assert session.file_name == "implementer.task-01.1.jsonl"
    path.write_text("role: [\n")
    with pytest.raises(BadDocument, match=r"session\.yaml"):
        read_session(path)


@pytest.mark.parametrize("broken", ["role: nobody\n", "unknown: 1\n"])
def test_a_session_file_with_an_unknown_role_or_key_is_refused(broken: str, tmp_path: Path) -> None:
    path = tmp_path / "session.yaml"
    lines = {"role": "role: intake\n", "unknown": ""}
    lines[broken.partition(":")[0]] = broken
    path.write_text("".join(lines.values()) + "instance: intake\nclosing_text: Done.\nanswer: {}\n")
    with pytest.raises((ValueError, TypeError)):
        read_session(path)


def test_a_session_without_turns_is_an_answer(tmp_path: Path) -> None:
    session = RecordedSession(Role.INTAKE, "intake", 1, {"a": 1}, "Done.")
    assert session.calls == ()
    assert session.cassette().count(b"\n") == 2
