"""The memory limit counts what a command hides: in sockets, in segments, in mappings, in several private folders."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairwitness.contracts.common.sandbox import End
from fairwitness.sandbox import memory_group
from fairwitness.sandbox.memory_group import GroupLocation, find_place
from fairwitness.sandbox.probe import probe
from sandbox.as_somebody import Somebody, somebody  # noqa: F401 -- a fixture
from sandbox.escapes.starting import IDENTITIES, Unavailable, as_user, python
from sandbox.kit import Bench, eventually, expect, require, said

pytestmark = [pytest.mark.req("A15"), pytest.mark.timeout(240)]

MIB = 1 << 20
LIMIT = 192 * MIB
LIMITS = {"memory": LIMIT, "memory_process": LIMIT, "temporary": LIMIT}

_FILL = """
import array, ctypes, os, socket, time
C = ctypes.CDLL(None, use_errno=True)
C.mmap.restype = C.shmat.restype = ctypes.c_void_p
C.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
def memfd():
    handle = os.memfd_create("x")
    for _ in range(16): os.write(handle, b"x" * (1 << 20))
    time.sleep(0.01)
    return handle
"""
EVASIONS = {
    "memfds in flight over a socket pair": """
a, b = socket.socketpair()
for _ in range(24):
    handle = memfd()
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [handle]))])
    os.close(handle)
""",
    "detached System V segments": """
for _ in range(24):
    segment = C.shmget(0, 16 << 20, 0o1600)
    if segment < 0: raise SystemExit("refused")
    place = C.shmat(segment, None, 0)
    ctypes.memset(place, 1, 16 << 20)
    C.shmdt(ctypes.c_void_p(place))
    time.sleep(0.01)
""",
    "memfds mapped by one page and closed": """
for _ in range(24):
    handle = memfd()
    assert C.mmap(None, 4096, 1, 1, handle, 0)
    os.close(handle)
""",
    "memfds of a process that cannot be inspected": """
C.prctl(4, 0, 0, 0, 0)
held = [memfd() for _ in range(24)]
""",
    "all private folders at once": """
import errno
full = 0
for top in ("/tmp", "/dev/shm", os.environ["HOME"], "/dev", "/var/tmp"):
    for number in range(11):  # none of them is quite full
        try:
            with open(f"{top}/big{number}", "wb") as file:
                for _ in range(16): file.write(b"x" * (1 << 20)); full += 1
        except OSError as error: break
        time.sleep(0.01)
if full < 192: raise SystemExit("refused")
""",
    "shared anonymous memory in many processes": """
import mmap
for _ in range(6):
    held = mmap.mmap(-1, 64 << 20)
    if os.fork() == 0:
        for at in range(0, 64 << 20, 4096): held[at] = 1
        time.sleep(60); os._exit(0)
""",
}
_REST = """
print("has it all", flush=True)
time.sleep(20)
"""


_SAMPLED = "memfds in flight over a socket pair"


@pytest.mark.parametrize(
    "name",
    [pytest.param(_SAMPLED, marks=pytest.mark.width("sample")), *(name for name in EVASIONS if name != _SAMPLED)],
)
def test_memory_that_a_command_hides_counts(somebody: Somebody, name: str) -> None:  # noqa: F811
    came = somebody.run(_FILL + EVASIONS[name] + _REST, limits=LIMITS)
    if "refused" in came.stderr:
        return  # the tier does not have this kind of memory at all
    if name == "all private folders at once" and somebody.tier != "ns":
        pytest.skip("the private folders are on the disk, and the limit of the disk holds for them")
    assert came.result.end in (End.LIMIT, End.VIOLATION), str(came)
    assert came.result.limit_hit in ("memory", "disk"), str(came)
    assert "has it all" not in came.stdout or came.result.wall_ms < 19_000


@contextlib.contextmanager
def _other_program(size: int) -> Iterator[subprocess.Popen[bytes]]:
    """A program beside the command that holds memory in files until it is ended."""
    program = f"import os, sys\nh = os.memfd_create('x')\nfor _ in range({size >> 20}): os.write(h, b'x' * {MIB})\n"
    other = subprocess.Popen(
        [sys.executable, "-c", f"{program}print(flush=True); sys.stdin.read()"], stdin=-1, stdout=-1
    )
    assert other.stdout is not None
    other.stdout.readline()
    try:
        yield other
    finally:
        other.kill()
        other.communicate()


@pytest.mark.parametrize("bench", ["ns", "ll", "uid", "none"], indirect=True)
def test_memory_that_others_free_meanwhile_hides_nothing(bench: Bench) -> None:
    """The cause of the 768 MiB that once passed: the host's in-memory files were the only trigger of a count."""
    with _other_program(384 * MIB) as other:
        program = (
            "import os, time\n"
            "while not os.path.exists('freed'): time.sleep(0.01)\n"
            "held = []\n"
            "for _ in range(20):\n"
            "    held.append(os.memfd_create('x'))\n"
            "    for _ in range(16): os.write(held[-1], b'x' * (1 << 20))\n"
            "time.sleep(30)\n"
        )

        def free() -> None:
            other.kill()
            other.wait()
            (bench.worktree / "freed").touch()

        threading.Timer(1.5, free).start()
        result = bench.python(program, limits={"memory": LIMIT, "wall_s": 60.0}).result
    assert (result.end, result.limit_hit) == (End.LIMIT, "memory")


@pytest.mark.parametrize("bench", ["ns", "ll", "uid", "none"], indirect=True)
def test_shared_memory_of_an_honest_command_is_counted_once(bench: Bench) -> None:
    program = (
        "import mmap, os, time\n"
        "file = os.memfd_create('x'); os.ftruncate(file, 100 << 20)\n"
        "held = mmap.mmap(file, 100 << 20)\n"
        "for at in range(0, 100 << 20, 4096): held[at] = 1\n"
        "for _ in range(4):\n"
        "    if os.fork() == 0:\n"
        "        sum(held[at] for at in range(0, 100 << 20, 4096)); time.sleep(1.5); os._exit(0)\n"
        "for _ in range(4): os.wait()\n"
    )
    finished = bench.python(program, limits={"memory": LIMIT})
    expect(finished, End.OK)


def _groups() -> list[Path]:
    place = memory_group.group_place(os.getpid())
    return [] if place is None else list(Path(place.folder).glob(f"{memory_group.PREFIX}{os.getpid()}-*"))


def _require_groups() -> None:
    if not probe().cgroup:
        pytest.skip("this user may not make memory groups here")


@pytest.mark.parametrize("bench", ["ns", "ll", "uid", "none"], indirect=True)
def test_socket_buffers_count_where_the_kernel_limits_memory(bench: Bench) -> None:
    _require_groups()
    program = (
        "import socket, time\n"
        "held = []\n"
        "for _ in range(400):\n"
        "    held += socket.socketpair()\n"
        "    for one in held[-2:]:\n"
        "        one.setblocking(False)\n"
        "        try:\n"
        "            while True: one.send(b'x' * 65536)\n"
        "        except BlockingIOError: pass\n"
        "time.sleep(30)\n"
    )
    result = bench.python(program, limits={"memory": 64 * MIB}).result
    assert (result.end, result.limit_hit) == (End.LIMIT, "memory")
    assert _groups() == []


@pytest.mark.parametrize("bench", ["ns", "ll", "uid", "none"], indirect=True)
def test_an_end_by_the_kernel_is_a_limit_also_if_the_command_goes_on(bench: Bench) -> None:
    _require_groups()
    program = (
        "import os\n"
        "if os.fork() == 0:\n"
        "    held = [os.memfd_create('x') for _ in range(40)]\n"
        "    for handle in held: os.write(handle, b'x' * (4 << 20))\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    finished = bench.python(program, limits={"memory": 48 * MIB})
    assert (finished.result.end, finished.result.limit_hit) == (End.LIMIT, "memory"), said(finished)


def test_groups_of_a_killed_process_are_removed_by_the_next(tmp_path: Path) -> None:
    _require_groups()
    require("ll")
    program = (
        "import os, sys\n"
        "from fairwitness.sandbox import memory_group\n"
        "group = memory_group.make(64 << 20)\n"
        "print(group.folder, flush=True)\n"
        "sys.stdin.read()\n"
    )
    words = [sys.executable, "-c", program]
    killed = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    folder = Path(killed.stdout.readline().strip())
    after = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    assert folder.exists(), "a group in use was removed"
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert Path(after.stdout.strip()).exists()  # it ended without removing its own
    subprocess.run([sys.executable, "-c", "from fairwitness.sandbox.memory_group import is_available; is_available()"])
    assert eventually(lambda: not folder.exists() and not Path(after.stdout.strip()).exists())


_FIRST = "29 20 0:25 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
_OTHER = "30 20 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu"


@pytest.mark.parametrize(
    ("groups", "mounts", "place"),
    [
        ("4:memory:/a/b\n1:cpu:/\n0::/", f"{_OTHER}\n{_FIRST.format(root='/')}", "/sys/fs/cgroup/memory/a/b"),
        ("4:memory:/docker/x\n", _FIRST.format(root="/docker/x"), "/sys/fs/cgroup/memory"),
        ("4:memory:/\n", _FIRST.format(root="/"), "/sys/fs/cgroup/memory"),
        ("4:memory:/\n", _OTHER, None),
        ("", "", None),
    ],
)
def test_the_place_of_groups_is_below_the_own_group(groups: str, mounts: str, place: str | None) -> None:
    assert find_place(groups, mounts) == (None if place is None else GroupLocation(place, 1))


@pytest.mark.parametrize(
    ("own", "handed_on", "limit", "place"),
    [
        ("/", {"/": "memory pids"}, None, "/"),
        ("/app/one", {"/app": "memory"}, "max", "/app"),
        ("/app/one", {"/app": "memory"}, "1000", None),  # a group beside it would evade its limit
        ("/app/one", {"/app": "pids"}, "max", None),
        ("/app/one", {"/app/one": "memory"}, "1000", "/app/one"),
    ],
)
def test_the_second_version_needs_a_group_that_hands_memory_on(
    tmp_path: Path, own: str, handed_on: dict[str, str], limit: str | None, place: str | None
) -> None:
    folder = tmp_path / own.strip("/")
    folder.mkdir(parents=True, exist_ok=True)
    for path, controllers in handed_on.items():
        (tmp_path / path.strip("/") / "cgroup.subtree_control").write_text(controllers)
    if limit is not None:
        (folder / "memory.max").write_text(f"{limit}\n")
    found = find_place(f"0::{own}\n", f"29 20 0:25 / {tmp_path} rw - cgroup2 cgroup2 rw")
    assert found == (None if place is None else GroupLocation(str(tmp_path / place.strip("/")), 2))


def test_what_looks_cannot_count_is_a_figure_for_the_person() -> None:
    """`doctor` shows the warnings of the probe."""
    identity = IDENTITIES["user"]
    program = "from fairwitness.sandbox.probe import probe\nfor one in probe().warnings: print(one.code, one.text)"
    try:
        done = as_user(identity, [python(identity), "-P", "-c", program], timeout=60)
    except Unavailable as unavailable:
        pytest.skip(str(unavailable))
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    if "no-cgroup" not in found:
        pytest.skip("the kernel counts the memory of this user's commands")
    assert "50 ms" in found["no-cgroup"]
    assert "2048 MiB" in found["no-cgroup"]
