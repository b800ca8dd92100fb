"""Files are opened without trust: whatever somebody planted is refused, at once, and nothing outside is touched."""

import fcntl
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairwitness.errors import AlreadyWritten, DiskRefused, NotStored, StoreError, UnsafePath, UsageError
from fairwitness.kit import files

SECRET = b"secret"
LIMIT = 1000

pytestmark = pytest.mark.timeout(20)  # a refusal that waits is no refusal


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that no path inside the root may reach."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_bytes(SECRET)
    return folder


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    """A root with one honest file, and beside it what an agent might plant."""
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (root / "folder/file").write_bytes(b"content")
    (root / "link").symlink_to(outside / "secret")
    (root / "inner-link").symlink_to(root / "folder/file")
    (root / "dangling").symlink_to(outside / "nothing")
    (root / "magic").symlink_to("/proc/self/environ")
    (root / "linked-folder").symlink_to(outside, target_is_directory=True)
    (root / "folder/linked-folder").symlink_to("../../outside", target_is_directory=True)
    (root / "hard").hardlink_to(outside / "secret")
    os.mkfifo(root / "pipe")
    return root


PLANTED = [
    "link",
    "inner-link",
    "dangling",
    "magic",
    "linked-folder/secret",
    "linked-folder/new",
    "folder/linked-folder/secret",
    "folder/linked-folder/deep/new",
    "hard",
    "pipe",
    "folder",
    "folder/file/below",
]
OUTWARD = [
    "../outside/secret",
    "folder/../../outside/secret",
    "/etc/passwd",
    "",
    ".",
    "folder/.",
    "a\0b",
    "a//b",
    "\ud800",
]

READERS: dict[str, Callable[[Path, str], object]] = {
    "read": lambda root, path: files.read_plain(root, path, limit=LIMIT),
    "read, portable": lambda root, path: files.read_plain(root, path, limit=LIMIT, portable=True),
}
WRITERS: dict[str, Callable[[Path, str], object]] = {
    "replace": lambda root, path: files.replace_file(root, path, b"mine"),
    "create": lambda root, path: files.create_file(root, path, b"mine"),
    "create, portable": lambda root, path: files.create_file(root, path, b"mine", portable=True),
    "append": lambda root, path: files.append_line(root, path, b"mine"),
    "revise": lambda root, path: files.revise_file(root, path, lambda _: b"mine", limit=LIMIT),
    "move to": lambda root, path: files.move(root, "folder/file", f"{path}/below" if path == "folder" else path),
}


@pytest.mark.parametrize("path", [*PLANTED, *OUTWARD])
@pytest.mark.parametrize("reader", READERS)
def test_what_was_planted_is_not_read(root: Path, reader: str, path: str) -> None:
    with pytest.raises((UnsafePath, NotStored)) as caught:
        READERS[reader](root, path)
    assert caught.value.next_step
    missing = path == "folder/linked-folder/deep/new"
    assert isinstance(caught.value, UnsafePath) or missing


@pytest.mark.parametrize("path", [*PLANTED, *OUTWARD])
@pytest.mark.parametrize("writer", [name for name in WRITERS if name != "move to"])
def test_what_was_planted_is_not_written_through(root: Path, outside: Path, writer: str, path: str) -> None:
    before = snapshot(root)
    with pytest.raises(UnsafePath):
        WRITERS[writer](root, path)
    assert snapshot(root) == before
    assert snapshot(outside) == {"secret": "file"}
    assert (outside / "secret").read_bytes() == SECRET


@pytest.mark.parametrize("path", [*PLANTED, *OUTWARD])
def test_nothing_is_moved_to_or_from_what_was_planted(root: Path, outside: Path, path: str) -> None:
    for source, target in (("folder/file", path), (path, "folder/new")):
        if path == "folder" and source == path:
            continue  # a folder is an honest thing to move, though not into itself
        with pytest.raises(StoreError):
            files.move(root, source, target)
    assert (root / "folder/file").read_bytes() == b"content"
    assert snapshot(outside) == {"secret": "file"}


def snapshot(folder: Path) -> dict[str, str]:
    """Every name below and what it is."""
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link", stat.S_IFIFO: "pipe"}
    found = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): kinds[stat.S_IFMT(path.lstat().st_mode)] for path in found}


@pytest.fixture
def socket_path(root: Path) -> Iterator[str]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
        yield "socket"


def test_a_socket_is_refused(root: Path, socket_path: str) -> None:
    for action in (*READERS.values(), *WRITERS.values()):
        with pytest.raises((UnsafePath, AlreadyWritten)):
            action(root, socket_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a device file")
def test_a_device_is_refused(root: Path) -> None:
    try:
        os.mknod(root / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except OSError as error:
        pytest.skip(f"this file system holds no devices: {error}")
    for action in (*READERS.values(), *WRITERS.values()):
        with pytest.raises((UnsafePath, AlreadyWritten)):
            action(root, "zero")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no other file system to walk into")
@pytest.mark.parametrize("portable", [False, True])
def test_another_file_system_is_not_entered(portable: bool) -> None:
    with pytest.raises(UnsafePath, match="file system"):
        files.read_plain(Path("/"), "proc/version", limit=LIMIT, portable=portable)


def test_an_honest_file_is_read_both_ways(root: Path) -> None:
    for portable in (False, True):
        assert files.read_plain(root, "folder/file", limit=7, portable=portable) == b"content"


def test_a_root_that_is_itself_a_link_is_the_persons_choice(root: Path, tmp_path: Path) -> None:
    (tmp_path / "choice").symlink_to(root, target_is_directory=True)
    assert files.read_plain(tmp_path / "choice", "folder/file", limit=LIMIT) == b"content"


def test_a_file_larger_than_the_limit_is_refused_unread(root: Path) -> None:
    with (root / "sparse").open("wb") as file:
        file.truncate(2**40)
    (root / "one-too-many").write_bytes(b"x" * (LIMIT + 1))
    (root / "just-right").write_bytes(b"x" * LIMIT)
    for path in ("sparse", "one-too-many"):
        with pytest.raises(UnsafePath, match=f"larger than the {LIMIT} bytes"):
            files.read_plain(root, path, limit=LIMIT)
        with pytest.raises(UnsafePath, match="larger"):
            files.read_given(root / path, limit=LIMIT)
    assert len(files.read_plain(root, "just-right", limit=LIMIT)) == LIMIT


def test_a_file_that_a_person_named_may_be_a_link_but_no_pipe_or_device(root: Path) -> None:
    assert files.read_given(root / "link", limit=LIMIT) == SECRET
    assert files.read_given(root / "hard", limit=LIMIT) == SECRET
    for path in (root / "pipe", root / "folder", Path("/dev/zero"), Path("a\0b")):
        with pytest.raises(UnsafePath):
            files.read_given(path, limit=LIMIT)
    with pytest.raises(NotStored):
        files.read_given(root / "nothing", limit=LIMIT)
    with pytest.raises(UnsafePath, match="larger"):
        files.read_given(Path("/proc/self/environ" if Path("/proc").is_dir() else sys.executable), limit=0)


def test_looking_for_a_file_tells_honest_from_missing_and_refuses_the_rest(root: Path) -> None:
    assert files.is_file(root, "folder/file")
    assert not files.is_file(root, "folder")
    assert not files.is_file(root, "nothing")
    for path in ("link", "dangling", "hard", "pipe", "linked-folder/secret"):
        with pytest.raises(UnsafePath):
            files.is_file(root, path)


def test_a_listing_says_what_each_name_is_and_enters_no_link(root: Path) -> None:
    found = {entry.name: entry.kind for entry in files.list_folder(root, "")}
    assert found["folder"] == "folder"
    assert found["hard"] == "file"
    assert {found[name] for name in ("link", "linked-folder", "dangling", "pipe")} == {"other"}
    assert list(found) == sorted(found)
    with pytest.raises(UnsafePath):
        files.list_folder(root, "linked-folder")


def test_a_replaced_file_has_only_the_new_content(root: Path) -> None:
    files.replace_file(root, "folder/file", b"new")
    files.replace_file(root, "a/b/c/file", b"deep")
    assert (root / "folder/file").read_bytes() == b"new"
    assert (root / "a/b/c/file").read_bytes() == b"deep"
    assert [path.name for path in (root / "a/b/c").iterdir()] == ["file"]


@pytest.mark.parametrize("portable", [False, True])
def test_a_created_file_is_written_once(root: Path, portable: bool) -> None:
    assert files.create_file(root, "a/once", b"one", portable=portable) is True
    assert files.create_file(root, "a/once", b"one", portable=portable) is False
    for other in (b"two", b"o", b"one more"):
        with pytest.raises(AlreadyWritten):
            files.create_file(root, "a/once", other, portable=portable)
    assert [path.name for path in (root / "a").iterdir()] == ["once"]
    assert (root / "a/once").stat().st_nlink == 1


def test_a_root_that_is_missing_is_made_by_the_first_write_and_by_no_read(tmp_path: Path) -> None:
    root = tmp_path / "not/yet/there"
    assert files.list_folder(root, "") == ()
    assert not files.is_file(root, "file")
    assert not root.exists()
    files.replace_file(root, "file", b"x")
    assert (root / "file").read_bytes() == b"x"


@pytest.mark.parametrize(
    ("before", "dropped", "kept"),
    [
        (b"", 0, b""),
        (b"one\n", 0, b"one\n"),
        (b"one\ntwo", 3, b"one\n"),
        (b"torn from the start", 19, b""),
        (b"one\n" + b"x" * 200_000, 200_000, b"one\n"),
    ],
)
def test_a_torn_last_line_is_dropped_before_the_next(root: Path, before: bytes, dropped: int, kept: bytes) -> None:
    (root / "lines").write_bytes(before)
    assert files.append_line(root, "lines", b"next") == dropped
    assert (root / "lines").read_bytes() == kept + b"next\n"


def test_a_line_with_a_newline_in_it_is_not_one_line(root: Path) -> None:
    with pytest.raises(UsageError):
        files.append_line(root, "lines", b"a\nb")
    assert not (root / "lines").exists()


def test_a_line_that_did_not_fit_is_taken_back(root: Path) -> None:
    files.append_line(root, "lines", b"first")
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from fairwitness.errors import DiskRefused\n"
        "from fairwitness.kit import files\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50, hard))\n"
        "try:\n"
        "    files.append_line(Path(sys.argv[1]), 'lines', b'x' * 100)\n"
        "except DiskRefused as error:\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))\n"
        "    print(error.what)\n"
    )
    result = subprocess.run([sys.executable, "-c", script, str(root)], capture_output=True, text=True, check=False)
    assert "EFBIG" in result.stdout, result.stderr
    assert (root / "lines").read_bytes() == b"first\n"


def test_an_append_waits_for_the_lock_and_then_finds_the_file_that_replaced_the_old(root: Path) -> None:
    files.append_line(root, "lines", b"old")
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from fairwitness.kit import files\n"
        "files.append_line(Path(sys.argv[1]), 'lines', b'late')\n"
    )
    with (root / "lines").open("rb") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        process = subprocess.Popen([sys.executable, "-c", script, str(root)])
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        files.replace_file(root, "lines", b"new\n")
    assert process.wait(10) == 0
    assert (root / "lines").read_bytes() == b"new\nlate\n"


def test_a_lock_that_is_never_given_up_is_an_error_and_no_endless_wait(root: Path) -> None:
    files.append_line(root, "lines", b"old")
    with (root / "lines").open("rb") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(DiskRefused, match="another process holds the lock"):
            files.append_line(root, "lines", b"new", patience_s=0.05)
    handle = os.open(root, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(DiskRefused, match="ETIMEDOUT"):
        files.revise_file(root, "lines", lambda _: b"new", limit=LIMIT, patience_s=0.05)
    os.close(handle)
    assert (root / "lines").read_bytes() == b"old\n"


def test_a_revision_sees_the_present_bytes_and_an_error_in_it_changes_nothing(root: Path) -> None:
    assert files.revise_file(root, "folder/file", lambda old: (old or b"") + b"!", limit=LIMIT) == b"content!"
    assert files.revise_file(root, "folder/other", lambda old: repr(old).encode(), limit=LIMIT) == b"None"

    def refuse(_: bytes | None) -> bytes:
        raise AlreadyWritten("no")

    with pytest.raises(AlreadyWritten):
        files.revise_file(root, "folder/file", refuse, limit=LIMIT)
    assert (root / "folder/file").read_bytes() == b"content!"


def test_only_plain_temporary_files_of_some_age_are_swept(root: Path) -> None:
    names = [f".file.{number:016x}.tmp" for number in range(4)]
    for name in names[:2]:
        (root / "folder" / name).write_bytes(b"half")
    (root / "folder" / names[2]).mkdir()
    (root / "folder" / names[3]).symlink_to("file")
    os.utime(root / "folder" / names[0], (1, 1))
    assert files.sweep(root, "folder", older_than_s=60) == (names[0],)
    assert files.sweep(root, "folder", older_than_s=0) == (names[1],)
    assert (root / "folder/file").read_bytes() == b"content"


def test_what_is_older_than_this_process_is_swept_and_nothing_that_it_writes_itself(root: Path) -> None:
    dead, ours = (f".file.{number:016x}.tmp" for number in range(2))
    for name in (dead, ours):
        (root / "folder" / name).write_bytes(b"half")
    os.utime(root / "folder" / dead, (1, 1))
    assert files.sweep(root, "folder") == (dead,)
    assert files.sweep(root, "folder") == ()


@pytest.mark.parametrize(
    ("name", "temporary"),
    [
        (".state.json.0123456789abcdef.tmp", True),
        ("state.json", False),
        (".state.json.tmp", False),
        ("state.json.0123456789abcdef.tmp", False),
        (".state.json.0123456789ABCDEF.tmp", False),
        (".state.json.0123456789abcdef.tmp.md", False),
    ],
)
def test_a_temporary_name_is_told_from_a_persons(name: str, temporary: bool) -> None:
    assert files.is_temporary(name) is temporary


def test_a_name_too_long_for_the_disk_is_refused_by_the_disk(root: Path) -> None:
    with pytest.raises(DiskRefused, match="ENAMETOOLONG") as caught:
        files.replace_file(root, "x" * 250, b"x")
    assert "shorter" in caught.value.next_step


def test_no_handle_stays_open(root: Path) -> None:
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no list of open handles here")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in [*PLANTED, *OUTWARD, "folder/file", "new/folder/file"]:
        for action in (*READERS.values(), *WRITERS.values()):
            try:
                action(root, path)
            except StoreError:
                continue
    assert len(list(Path("/proc/self/fd").iterdir())) == before
