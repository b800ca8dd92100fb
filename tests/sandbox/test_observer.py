"""The rule of what is a violation and what is only noise, and how calls are resolved to paths."""

import os
from pathlib import Path

import pytest

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import End
from fairwitness.sandbox.caller_paths import TARGETS, WriteAttempt
from fairwitness.sandbox.observer import WriteRule
from fairwitness.sandbox.seccomp import WATCHED, program
from fairwitness.sandbox.syscalls import ARCHITECTURES, numbers
from sandbox.kit import CONFINING, PYTHON, Bench, said

RULE = WriteRule(
    tier=SandboxTier.NAMESPACES,
    worktree="/work/tree",
    own=("/work/tree", "/tmp", "/home/sandbox"),
    shut=("/tmp/shown",),
    tools=("/usr", "/opt/env"),
)
NEW = os.O_WRONLY | os.O_CREAT
CHANGE = os.O_RDWR


@pytest.mark.parametrize(
    ("call", "path", "exists", "flags", "kind"),
    [
        ("openat", "/work/tree/src/a.py", False, NEW, None),
        ("openat", "/tmp/x", False, NEW, None),
        ("openat", "/home/sandbox/.cache/x", False, NEW, None),
        ("openat", "/tmp/shown/x", False, NEW, "write"),
        ("openat", "/home/person/.bashrc", False, NEW, "write"),
        ("openat", "/etc/passwd", True, NEW, "write"),
        ("unlinkat", "/etc/passwd", True, 0, "write"),
        ("openat", "/work/tree-2/x", False, NEW, "write"),
        ("openat", "/work/tree/.git", True, NEW, "git-dir"),
        ("openat", "/work/tree/.git/config", True, NEW, "git-dir"),
        ("openat", "/work/tree/.gitignore", True, NEW, None),
        ("renameat2", "/work/tree/.git", True, 0, "git-dir"),
        ("openat", "/work/tree/.git/index.lock", True, NEW, None),
        ("mkdir", "/work/tree/.git", True, 0, None),
        ("openat", "/dev/null", True, NEW, None),
        ("openat", "/dev/tty", True, CHANGE, None),
        ("openat", "/dev/sda", True, CHANGE, "write"),
        ("openat", "pipe:[123]", True, NEW, None),
        ("openat", "/proc/self/oom_score_adj", True, os.O_WRONLY, None),
        ("openat", "/proc/7/comm", True, os.O_WRONLY, None),
        ("openat", "/proc/7/mem", True, CHANGE, "process"),
        ("openat", "/proc/9/mem", True, CHANGE, None),
        ("openat", "/proc/sys/kernel/core_pattern", True, os.O_WRONLY, "write"),
        ("openat", "/opt/env/lib/m/__pycache__/m.cpython-311.pyc.140", False, NEW, None),
        ("mkdir", "/opt/env/lib/m/__pycache__", False, 0, None),
        ("openat", "/opt/env/lib/m/mod.py", True, NEW | os.O_TRUNC, "write"),
        ("openat", "/opt/env/lib/m/mod.py", True, CHANGE, None),
        ("openat", "/opt/env/lib/m/mod.py", True, os.O_WRONLY, "write"),
        ("openat", "/opt/env/.lock", False, NEW, None),
        ("openat", "/opt/env/.cargo/.package-cache-mutate", True, NEW, None),
        ("mkdir", "/opt/env/node_modules/.vite/vitest", False, 0, None),
        ("openat", "/home/person/.cache/x", False, NEW, "write"),
        ("openat", "/opt/env/bin/pytest", False, NEW, "write"),
        ("linkat", "/opt/env/lib/m/mod.py", True, 0, None),
        ("linkat", "/home/person/secret", True, 0, "link"),
        ("mkdir", "/usr/lib", True, 0, None),
        ("mkdir", "/usr/lib/mine", False, 0, "write"),
        ("unlink", "/nowhere/at-all", False, 0, None),
        ("chmod", "/nowhere/at-all", False, 0, None),
        ("unlink", "/etc", False, 0, "write"),
        ("symlink", "/nowhere/link", False, 0, "write"),
    ],
)
def test_the_rule_tells_a_violation_from_noise(
    call: str, path: str, exists: bool, flags: int, kind: str | None
) -> None:
    assert RULE.kind(WriteAttempt(call, path, exists, flags=flags, own=frozenset({9}))) == kind


def test_a_read_only_worktree_may_be_tried_but_not_its_git() -> None:
    rule = WriteRule(SandboxTier.NAMESPACES, "/work/tree", ("/tmp",), (), ())
    assert rule.kind(WriteAttempt("openat", "/work/tree/.mypy_cache/x", False, flags=NEW)) is None
    assert rule.kind(WriteAttempt("openat", "/work/tree/.git/config", True, flags=NEW)) == "git-dir"


def test_what_a_tier_does_not_stop_is_not_called_stopped() -> None:
    def blocked(tier: SandboxTier, call: str, path: str) -> bool:
        rule = WriteRule(tier, "/work/tree", ("/work/tree",), (), ())
        return rule.blocks(WriteAttempt(call, path, True))

    assert blocked(SandboxTier.NAMESPACES, "chmod", "/etc/passwd")
    assert not blocked(SandboxTier.LANDLOCK, "chmod", "/etc/passwd")
    assert not blocked(SandboxTier.LANDLOCK, "fsetxattr", "/etc/passwd")
    assert blocked(SandboxTier.LANDLOCK, "openat", "/etc/passwd")
    assert not blocked(SandboxTier.LANDLOCK, "renameat2", "/work/tree/.git")
    assert not blocked(SandboxTier.UID, "openat", "/tmp")
    assert blocked(SandboxTier.UID, "openat", "/etc/passwd")


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_every_watched_call_has_its_paths_and_every_filter_is_whole(machine: str) -> None:
    watched = {*WATCHED.split(), "open", "openat", "chmod", "fchmod", "fchmodat", "fchmodat2", "mknod", "mknodat"}
    assert watched == set(TARGETS)
    assert set(numbers(machine)) <= set(numbers("x86_64"))
    assert len(set(numbers(machine).values())) == len(numbers(machine))
    filters = [
        program((), watch=watch, alone=alone, machine=machine) for watch in (True, False) for alone in (True, False)
    ]
    assert all(len(code) % 8 == 0 and len(code) // 8 < 4096 for code in filters)


_HOSTILE = """
import os
out = {out!r}
def tried(call):
    try: call()
    except OSError: pass
os.chdir('sub')
tried(lambda: os.open('../../outside/a', os.O_WRONLY | os.O_CREAT))
tried(lambda: os.rename('file', out + '/b'))
tried(lambda: os.link(out + '/victim', 'linked'))
tried(lambda: os.symlink('x', out + '/c'))
tried(lambda: os.mkdir(out + '/d'))
tried(lambda: os.unlink(out + '/victim'))
tried(lambda: os.chmod(out + '/victim', 0o777))
tried(lambda: os.utime(out + '/victim'))
tried(lambda: os.truncate(out + '/victim', 0))
tried(lambda: os.setxattr(out + '/victim', 'user.a', b'b'))
os.symlink(out + '/e', 'dangling')
tried(lambda: os.open('dangling', os.O_WRONLY | os.O_CREAT))
os.symlink('/proc/self/root' + out, 'root')
tried(lambda: os.open('/proc/self/root' + out + '/f', os.O_WRONLY | os.O_CREAT))
folder = os.open('/', os.O_PATH)
tried(lambda: os.open(out.lstrip('/') + '/g', os.O_WRONLY | os.O_CREAT, dir_fd=folder))
tried(lambda: os.mkfifo(out + '/h'))
"""


@pytest.mark.req("A15")
@pytest.mark.parametrize("bench", CONFINING, indirect=True)
def test_every_way_of_changing_a_file_outside_is_named(bench: Bench) -> None:
    (bench.outside / "victim").write_text("untouched")
    (bench.worktree / "sub").mkdir()
    (bench.worktree / "sub" / "file").write_text("x")
    finished = bench.python(_HOSTILE.format(out=str(bench.outside)))
    assert finished.result.end is End.VIOLATION, said(finished)
    named = {Path(one.path).name for one in finished.result.violations}
    assert named >= {"a", "b", "c", "d", "e", "f", "g", "h", "victim"}
    calls = {one.call for one in finished.result.violations if one.path.endswith("/victim")}
    assert {"chmod", "truncate", "setxattr"} <= calls
    assert any(call.startswith("link") for call in calls)
    assert any(call.startswith("unlink") for call in calls)
    assert any(call.startswith("utime") for call in calls)
    assert (bench.outside / "victim").read_text() == "untouched"
    assert [path.name for path in bench.outside.iterdir()] == ["victim"]


@pytest.mark.parametrize("bench", CONFINING, indirect=True)
def test_what_happens_often_is_named_once_and_counted(bench: Bench) -> None:
    finished = bench.shell(f"for i in 1 2 3; do echo x > {bench.outside}/new; done; true")
    (violation,) = finished.result.violations
    assert violation.count == 3


@pytest.mark.parametrize("bench", CONFINING, indirect=True)
def test_a_name_that_is_no_text_is_shown_safely(bench: Bench) -> None:
    finished = bench.python(f"import os; os.open({os.fsencode(bench.outside)!r} + b'/\\xff\\x1b[31m', 65)")
    assert finished.result.violations[0].path.endswith("/\\xff\\x1b[31m"), said(finished)
    assert finished.result.model_dump_json()


@pytest.mark.parametrize("bench", CONFINING, indirect=True)
def test_who_cannot_be_looked_into_is_not_called_observed(bench: Bench) -> None:
    program = (
        "import ctypes, os\n"
        "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"
        f"try: os.open({str(bench.outside / 'new')!r}, os.O_WRONLY | os.O_CREAT)\n"
        "except OSError: pass\n"
    )
    result = bench.run(PYTHON, "-I", "-c", program).result
    assert (result.observation == "none") is ("observer-blind" in {warned.code for warned in result.warnings})
    assert result.observation == "none" or result.end is End.VIOLATION
    assert not (bench.outside / "new").exists()
