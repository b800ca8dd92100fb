"""What a command cannot reach or use up by a side door: sockets in view, files without size, folders of the dead."""

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fairwitness.contracts.common.sandbox import End
from fairwitness.sandbox import locked_tmp, sockets
from fairwitness.sandbox.scripted import Reply
from fairwitness.sandbox.watchdog import DiskGrowth, DiskUsage
from sandbox.kit import CONFINING, REAL, Bench, eventually, expect, living, said

real = pytest.mark.parametrize("bench", REAL, indirect=True)
confining = pytest.mark.parametrize("bench", CONFINING, indirect=True)
in_namespaces = pytest.mark.parametrize("bench", ["ns"], indirect=True)

_CONNECT = """
import os, socket, sys
for path in {paths!r}:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            with socket.socket(socket.AF_UNIX, kind) as caller:
                caller.connect(path)
                caller.send(b"do my will")
        except OSError as error:
            print(error)
    try:
        os.write(os.open(path, os.O_RDWR | os.O_NONBLOCK), b"do my will")
    except OSError as error:
        print(error)
"""


@contextmanager
def _listening(*paths: Path) -> Iterator[list[str]]:
    """Sockets of this machine, and what they heard."""
    heard: list[str] = []
    listeners = []
    for path in paths:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM if "datagram" in path.name else socket.SOCK_STREAM)
        listener.bind(str(path))
        path.chmod(0o777)
        if listener.type == socket.SOCK_STREAM:
            listener.listen()
        listeners.append(listener)
    try:
        yield heard
        for listener, path in zip(listeners, paths, strict=True):
            listener.setblocking(False)
            with suppress(BlockingIOError):
                what = listener.accept() if listener.type == socket.SOCK_STREAM else listener.recv(99)
                heard.append(f"{path} {what!r}")
    finally:
        for listener in listeners:
            listener.close()


@confining
@pytest.mark.req("A15")
@pytest.mark.parametrize("spelled", ["as it is", "by a link", "read-only worktree", "its .git"])
def test_no_socket_or_pipe_in_a_folder_for_reading_is_reached(bench: Bench, spelled: str) -> None:
    given = bench.outside
    if spelled == "its .git" and bench.tier != "ns":
        pytest.skip("only a view of its own keeps the worktree's .git")
    if spelled == "by a link":
        given = bench.outside.parent / "link"
        given.symlink_to(bench.outside)
    elif spelled == "read-only worktree":
        given = bench.worktree
    elif spelled == "its .git":
        given = bench.worktree / ".git"
        given.mkdir()
    (given / "deep").mkdir(mode=0o755)
    pipe = given / "pipe"
    os.mkfifo(pipe)
    pipe.chmod(0o600)
    paths = [given / "stream", given / "deep" / "datagram"]
    with _listening(*paths) as heard:
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            program = _CONNECT.format(paths=[str(path) for path in (*paths, pipe)])
            read = (str(given),) if given not in (bench.worktree, bench.worktree / ".git") else ()
            finished = bench.python(program, read=read, writable=spelled == "its .git")
            assert finished.result.end in (End.OK, End.VIOLATION), said(finished)
            with suppress(BlockingIOError):
                heard.append(os.read(reader, 99).decode())
        finally:
            os.close(reader)
    assert [what for what in heard if what] == []


@in_namespaces
def test_a_socket_that_a_command_makes_itself_works(bench: Bench) -> None:
    """Also where it may write inside a folder that it may read."""
    own = bench.outside / "own"
    own.mkdir()
    with _listening(own / "stream"):
        pass
    program = (
        "import os, socket\n"
        f"for path in ('mine', {str(own)!r} + '/mine', {str(own)!r} + '/stream'):\n"
        "    if os.path.exists(path): os.unlink(path)\n"
        "    server = socket.socket(socket.AF_UNIX); server.bind(path); server.listen()\n"
        "    socket.socket(socket.AF_UNIX).connect(path)\n"
        "    print('met')\n"
    )
    finished = expect(bench.python(program, read=(str(bench.outside),), write=(str(own),)), End.OK)
    assert finished.stdout == b"met\n" * 3


def test_a_socket_or_pipe_given_for_reading_runs_nothing(bench: Bench) -> None:
    path = bench.outside / "stream"
    os.mkfifo(bench.outside / "pipe")
    (bench.outside / "link").symlink_to("stream")
    with _listening(path):
        for name in ("stream", "pipe", "link"):
            finished = bench.shell("touch ran", read=(f"{bench.outside}/{name}",), plays=Reply(files={"ran": b""}))
            assert finished.result.end is End.SANDBOX_ERROR
            assert "is a socket or a pipe" in str(finished.result.sandbox_error)
            finished = bench.shell("touch ran", write=(f"{bench.outside}/{name}",), plays=Reply(files={"ran": b""}))
            assert finished.result.end is End.SANDBOX_ERROR
    assert not (bench.worktree / "ran").exists()


def test_doors_are_found_once_and_again_when_the_folder_changed(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    os.mkfifo(tmp_path / "deep" / "pipe")
    (tmp_path / "link").symlink_to("deep/pipe")
    assert sockets.sockets_and_pipes(str(tmp_path)) == sockets.SocketsAndPipes(
        (str(tmp_path / "deep" / "pipe"),), complete=True
    )
    os.mkfifo(tmp_path / "pipe")
    assert len(sockets.sockets_and_pipes(str(tmp_path)).paths) == 2
    (tmp_path / "deep" / "pipe").unlink()  # what is gone needs no cover, and could have none
    assert sockets.sockets_and_pipes(str(tmp_path)).paths == (str(tmp_path / "pipe"),)


def test_a_folder_too_large_to_be_looked_through_is_said(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for number in range(20):
        (tmp_path / "a" / f"{number}").touch()
    assert not sockets.sockets_and_pipes(str(tmp_path), entries=10).complete
    assert sockets.too_large({"/shown": str(tmp_path)}) == ["/shown"]


def test_too_many_doors_cannot_be_shut(tmp_path: Path) -> None:
    for number in range(sockets.MOST + 1):
        os.mkfifo(tmp_path / f"{number}")
    with pytest.raises(OSError, match="more than"):
        sockets.to_cover({"/shown": str(tmp_path)}, ())


def test_only_what_was_written_since_counts(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"x" * 100_000)
    os.utime(tmp_path / "old", (1, 1))
    growth = DiskGrowth((str(tmp_path),), 1 << 20, 1000)
    growth._since += 2_000_000_000  # the slack would cover the file just made
    assert growth.written([]) == DiskUsage(0, 0)
    growth._since -= 2_000_000_000
    (tmp_path / "new").write_bytes(os.urandom(200_000))
    os.link(tmp_path / "new", tmp_path / "same")
    assert 200_000 <= growth.written([]).size < 500_000
    assert growth.written([]).files == 2
    assert not growth.is_over([])


_MANY = """
import os, time
folder = os.environ.get({where!r}, '.')
for number in range(3000):
    os.close(os.open(f'{{folder}}/{{number}}', os.O_CREAT | os.O_WRONLY))
    if number % 100 == 99:
        time.sleep(0.01)
time.sleep(30)
"""


@real
@pytest.mark.parametrize("where", ["worktree", "TMPDIR", "HOME"])
def test_too_many_empty_files_end_the_command(bench: Bench, where: str) -> None:
    result = bench.python(_MANY.format(where=where), limits={"files": 500}).result
    assert (result.end, result.limit_hit) == (End.LIMIT, "disk")


@pytest.mark.req("X2")
def test_files_are_counted_though_others_delete_as_many(tmp_path: Path) -> None:
    others, own = tmp_path / "others", tmp_path / "own"
    others.mkdir()
    own.mkdir()
    for number in range(3000):
        (others / f"{number}").touch()
    growth = DiskGrowth((str(own),), 1 << 30, 500)
    for number in range(1000):
        (own / f"{number}").touch()
    shutil.rmtree(others)
    assert eventually(lambda: growth.is_over([]))


@real
def test_a_limit_of_files_that_others_make_is_not_the_commands(bench: Bench) -> None:
    over = threading.Event()

    def busy() -> None:
        number = 0
        while not over.is_set() and number < 5000:
            (bench.outside / f"{number}").touch()
            number += 1

    other = threading.Thread(target=busy)
    other.start()
    try:
        expect(bench.shell("sleep 0.5", limits={"files": 2000}), End.OK)
    finally:
        over.set()
        other.join()


def _made(place: Path, kind: str) -> Path:
    folder = place / f"{locked_tmp.PREFIX}{kind}-abc"
    (folder / "home" / "shut").mkdir(parents=True)
    (folder / "home" / "shut").chmod(0)
    return folder


def test_folders_of_the_dead_are_swept_and_only_those(tmp_path: Path) -> None:
    left = [_made(tmp_path, kind) for kind in locked_tmp.KINDS]
    others = [tmp_path / "fairwitness-world-x", tmp_path / "other", tmp_path / "fairwitness-run-file"]
    for folder in others[:2]:
        folder.mkdir()
    others[2].touch()
    (tmp_path / "target").mkdir()
    (tmp_path / "fairwitness-run-link").symlink_to("target")
    assert locked_tmp.sweep(str(tmp_path)) == []  # they are young
    assert sorted(locked_tmp.sweep(str(tmp_path), young_s=-1)) == sorted(map(str, left))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "fairwitness-run-file", "fairwitness-run-link", "fairwitness-world-x", "other", "target",
    ]  # fmt: skip


def test_a_folder_that_is_held_is_never_swept(tmp_path: Path) -> None:
    own = locked_tmp.make("run")
    moved = tmp_path / own.path.name
    own.path.rename(moved)
    assert locked_tmp.sweep(str(tmp_path), young_s=-1) == []
    own.let_go()
    assert locked_tmp.sweep(str(tmp_path), young_s=-1) == [str(moved)]


@real
def test_with_a_killed_runner_its_commands_die_and_what_it_left_is_swept(bench: Bench, open_folder: Path) -> None:
    place = open_folder / "tmp"
    place.mkdir(mode=0o755)
    mark = f"35{os.getpid()}.5"
    program = (
        "from pathlib import Path\n"
        "from sandbox.kit import Bench\n"
        f"bench = Bench({bench.tier!r}, Path({str(bench.worktree)!r}), Path({str(bench.outside)!r}))\n"
        f"bench.shell('(setsid sleep {mark} &) ; sleep {mark}')\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(place)}
    with subprocess.Popen([sys.executable, "-c", program], env=env) as runner:
        started = eventually(lambda: len(living(f"sleep\0{mark}")) == 2, 60)
        swept = locked_tmp.sweep(str(place), young_s=-1)
        runner.kill()
    assert started
    assert swept == []  # it lived
    assert eventually(lambda: not living(f"sleep\0{mark}"), 30)
    left = sorted(map(str, place.iterdir()))
    assert left
    assert sorted(locked_tmp.sweep(str(place), young_s=-1)) == left
    shutil.rmtree(place)
