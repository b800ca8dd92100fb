"""Paths that a command does not see: something empty lies over them, and stays there whatever the command does."""

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import End
from fairwitness.errors import UsageError
from fairwitness.sandbox import hidden
from fairwitness.sandbox.caller_paths import WriteAttempt
from fairwitness.sandbox.checked_command import check_command
from fairwitness.sandbox.observer import WriteRule
from fairwitness.sandbox.probe import probe
from fairwitness.sandbox.scripted import Reply
from sandbox.escapes.starting import IDENTITIES, Unavailable, as_user, kernel_refuses, python
from sandbox.hiding import CANARY, HIDDEN, plant
from sandbox.kit import Bench, expect, said

pytestmark = pytest.mark.req("X3")


@pytest.fixture
def confined(open_folder: Path) -> Bench:
    """A worktree with a repository's settings in it, and the one tier that can hide them."""
    worktree, outside = open_folder / "tree", open_folder / "outside"
    for folder in (worktree, outside):
        folder.mkdir(mode=0o755)
    plant(worktree)
    return Bench("ns", worktree, outside)


@pytest.fixture(params=["root", "user"])
def attacked(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Attacks a worktree of its own as somebody; answers what came of it."""
    identity = IDENTITIES[request.param]
    folders = []

    def attack(how: str) -> dict[str, Any]:
        try:
            interpreter = python(identity)
            if (reason := kernel_refuses("ns", identity)) is not None:
                raise Unavailable(reason)
        except Unavailable as unavailable:
            pytest.skip(str(unavailable))
        folder = Path(tempfile.mkdtemp(prefix="fairwitness-hidden-"))
        folders.append(folder)
        if identity.uid is not None:
            os.chown(folder, identity.uid, identity.uid)
        done = as_user(identity, [interpreter, "-P", "-m", "sandbox.hiding", str(folder), how], timeout=120)
        assert done.returncode == 0, done.stderr
        value = json.loads(done.stdout)
        assert isinstance(value, dict)
        assert value["uid"] == (identity.uid if identity.uid is not None else os.getuid())
        return value

    yield attack
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _refused(told: dict[str, Any], *words: str) -> None:
    for name, came in told.items():
        if name.split(" ")[0] in words:
            assert str(came).startswith("errno "), (name, came)


@pytest.mark.parametrize("how", ["w", "r"])
def test_nothing_a_command_tries_shows_or_changes_what_is_hidden(attacked: Any, how: str) -> None:
    came = attacked(how)
    told = came["told"]
    assert came["lost"] is None
    assert told, came["stderr"]
    assert CANARY not in json.dumps(told)
    assert came["changed"] == []
    assert set(came["top"]) - {"absent.json"} == {".agent", ".tool", "plain.cfg", "src"}
    assert told["look .agent/settings.json"] == "{}\n"
    assert (told["look .agent/deep/down/config.toml"], told["look plain.cfg"], told["look .tool"]) == ("", "", [])
    _refused(told, "rename", "exchange", "link", "chmod", "utime", "unmount", "remount", "cover", "unlink", "rmdir")
    _refused(told, "symlink", "write", "empty", "move", "remove", "make", "a")


def test_what_is_tried_on_a_hidden_path_is_a_violation_where_the_worktree_is_the_commands_own(attacked: Any) -> None:
    if not probe().notify:
        pytest.skip("this kernel tells nobody what a command tries")
    came = attacked("w")
    assert came["end"] == "violation"
    assert {kind for kind, _, _ in came["violations"]} == {"hidden"}
    assert all(blocked for _, _, blocked in came["violations"])
    assert came["told"]["new"] is None, "what is not there is not hidden, and may be made"


def test_a_read_only_worktree_may_be_tried_hidden_paths_too(attacked: Any) -> None:
    came = attacked("r")
    assert (came["end"], came["violations"]) == ("ok", [])


def test_what_is_not_hidden_is_as_ever(confined: Bench) -> None:
    script = "cat .agent/notes.txt; echo more >> .agent/notes.txt; echo b > .agent/deep/b; mv src/a.py src/b.py"
    finished = expect(confined.shell(script, hidden=HIDDEN), End.OK)
    assert finished.stdout == b"seen\n"
    assert (confined.worktree / ".agent" / "notes.txt").read_text() == "seen\nmore\n"
    assert (confined.worktree / ".agent" / "deep" / "b").read_text() == "b\n"
    assert CANARY in (confined.worktree / "plain.cfg").read_text()


def test_the_file_of_a_folder_for_reading_stays_read_only_though_something_in_it_is_hidden(confined: Bench) -> None:
    finished = confined.shell(
        "echo x > .agent/notes.txt", hidden=HIDDEN, read=(str(confined.worktree / ".agent"),), observe=False
    )
    assert finished.result.exit_code != 0
    assert (confined.worktree / ".agent" / "notes.txt").read_text() == "seen\n"


def test_a_folder_for_writing_on_the_way_stays_in_sight(confined: Bench) -> None:
    cache = confined.worktree / ".agent" / "deep" / "cache"
    cache.mkdir()
    expect(confined.shell("echo x > .agent/deep/cache/x", hidden=HIDDEN, write=(str(cache),)), End.OK)
    assert (cache / "x").read_text() == "x\n"


def test_another_way_to_the_same_worktree_shows_no_more(confined: Bench, tmp_path: Path) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(confined.worktree.parent)
    (tmp_path / "link").symlink_to(confined.worktree)
    for worktree in (confined.worktree, tmp_path / "link"):
        finished = confined.shell(
            f"cd {alias}/tree; cat {worktree}/plain.cfg plain.cfg; ls .tool; cat src/a.py",
            worktree=str(worktree),
            hidden=HIDDEN,
            read=(str(alias),),
        )
        assert expect(finished, End.OK).stdout == b"a = 1\n", said(finished)


def test_a_socket_that_is_hidden_needs_no_other_cover(confined: Bench) -> None:
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as alone:
        listening.bind(str(confined.worktree / ".tool" / "s"))
        alone.bind(str(confined.worktree / "door"))
        finished = confined.shell("ls .tool; test -f door && cat door", hidden=(".tool", "door"), writable=False)
        assert expect(finished, End.OK).stdout == b""


def test_a_hidden_path_that_lies_in_another_is_hidden_with_it(confined: Bench) -> None:
    finished = confined.shell("ls .tool", hidden=(".tool/settings.json", ".tool/", "./.tool"))
    assert expect(finished, End.OK).stdout == b""


@pytest.mark.parametrize(
    ("link", "target"),
    [
        (".mine", "src"),
        (".mine", "/proc/self/cwd/src"),
        (".mine", "../outside"),
        (".mine", "/etc"),
        (".mine", ".mine"),
        (".mine/a.py", "../src/a.py"),
        (".mine/a.py", "/dev/null"),
    ],
)
def test_a_link_in_the_way_is_a_reason_not_to_run(confined: Bench, link: str, target: str) -> None:
    place = confined.worktree / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(target)
    (confined.outside / "a.py").write_text("not yours")
    finished = expect(confined.shell("true", hidden=(".mine/a.py",)), End.SANDBOX_ERROR)
    assert "link" in str(finished.result.sandbox_error)
    assert finished.result.exit_code is None


def test_a_link_that_leads_to_nothing_in_the_worktree_hides_nothing(confined: Bench) -> None:
    (confined.worktree / ".mine").symlink_to("src")
    expect(confined.shell("cat .mine/a.py", hidden=(".mine/settings.json",)), End.OK)


def test_what_is_both_shown_and_hidden_is_a_reason_not_to_run(confined: Bench) -> None:
    inside = confined.worktree / ".tool" / "more"
    for given in ({"read": (str(inside),)}, {"write": (str(inside),)}):
        expect(confined.shell("true", hidden=(".tool",), **given), End.SANDBOX_ERROR)


def test_more_than_can_be_hidden_is_a_reason_not_to_run(confined: Bench) -> None:
    many = [f"f{number}" for number in range(hidden.MOST + 1)]
    for name in many:
        (confined.worktree / name).touch()
    expect(confined.shell("true", hidden=tuple(many)), End.SANDBOX_ERROR)
    assert expect(confined.shell("cat f*", hidden=tuple(many[1:])), End.OK).stdout == b""


@pytest.mark.parametrize(
    "path", ["..", "a/../b", "/etc/passwd", ".git", ".git/config", "sub/.GIT/hooks", ".", "./", "a\0b"]
)
def test_a_path_that_cannot_be_meant_is_refused(bench: Bench, path: str) -> None:
    with pytest.raises(UsageError):
        bench.shell("true", hidden=(path,), plays=Reply())


def test_every_other_tier_hides_nothing_and_runs_nothing(bench: Bench) -> None:
    if bench.tier == "ns":
        pytest.skip("this one can")
    finished = expect(bench.shell("true", hidden=("anything",), plays=Reply()), End.SANDBOX_ERROR)
    assert "only tier ns can" in str(finished.result.sandbox_error)


def test_what_is_hidden_is_part_of_the_policy(confined: Bench) -> None:
    def digest(*paths: str) -> str:
        return check_command(confined.command("/bin/true", hidden=paths), SandboxTier.NAMESPACES).policy_sha256

    assert digest("a", "b") == digest("b", "a")
    assert len({digest(), digest("a"), digest("b"), digest("a", "b")}) == 4


def test_a_policy_that_hides_nothing_has_the_digest_that_it_always_had(confined: Bench) -> None:
    command = confined.command("/bin/true", worktree="/work", min_tier=SandboxTier.UID)
    known = "sha256:d391bf90b508d5f9e89e8a213816361d8363bcc36c60f5a6e25d1b7e3f3e9f61"
    assert check_command(command, SandboxTier.NAMESPACES).policy_sha256 == known


TREE = "/work/tree"
RULE = WriteRule(
    SandboxTier.NAMESPACES, TREE, (TREE, "/tmp"), (), ("/usr",), hidden=(f"{TREE}/.tool", f"{TREE}/x.json")
)
CREATE = os.O_WRONLY | os.O_CREAT


@pytest.mark.parametrize(
    ("attempt", "kind"),
    [
        (WriteAttempt("openat", f"{TREE}/x.json", exists=True, flags=os.O_WRONLY), "hidden"),
        (WriteAttempt("openat", f"{TREE}/.tool/new", exists=False, flags=CREATE), "hidden"),
        (WriteAttempt("rename", f"{TREE}/.tool", exists=True, is_folder=True), "hidden"),
        (WriteAttempt("mkdir", f"{TREE}/.tool", exists=True, is_folder=True), None),
        (WriteAttempt("unlink", f"{TREE}/.tool/nothing", exists=False), None),
        (WriteAttempt("openat", f"{TREE}/x.json.new", exists=False, flags=CREATE), None),
        (WriteAttempt("openat", f"{TREE}/.toolbox", exists=False, flags=CREATE), None),
    ],
)
def test_the_observers_rule_about_hidden_paths(attempt: WriteAttempt, kind: str | None) -> None:
    assert RULE.kind(attempt) == kind


def test_what_lies_under_a_cover_is_kept_and_what_lies_beside_it_is_not() -> None:
    def is_kept(path: str) -> bool:
        return RULE.blocks(WriteAttempt("openat", f"{TREE}/{path}", exists=False, flags=CREATE))

    assert [is_kept(path) for path in (".tool", ".tool/new", "x.json")] == [True] * 3
    assert [is_kept(path) for path in (".toolbox", "x.json.new", "src/a.py")] == [False] * 3
