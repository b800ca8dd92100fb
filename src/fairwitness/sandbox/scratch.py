"""What this process prepares once for all its sandboxes: a small /etc, the launcher as byte code, empty files.

All of it is in one folder, which is removed when the process ends, or by a later process if this one is killed.
"""

import atexit
import functools
import os
import py_compile
import shutil
import sys
import threading
from pathlib import Path

from fairwitness.sandbox import locked_tmp

HOME = "/home/sandbox"
LAUNCHER = "fairwitness-child-setup.pyc"
COPIED = (
    "alternatives ca-certificates ca-certificates.conf fonts host.conf java-* ld.so.cache ld.so.conf ld.so.conf.d"
    " localtime locale.alias magic magic.mime maven mime.types mke2fs.conf networks os-release debian_version perl"
    " pki/tls/certs pki/ca-trust/extracted protocols python3* rpc services ssl/certs ssl/openssl.cnf ssl/cert.pem"
    " terminfo timezone xml"
)
_EMPTY = "empty"
_MOST_BYTES = 4 << 20
_NSSWITCH = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n"
_lock = threading.Lock()


@functools.cache
def _made(owner: int) -> Path:
    locked_tmp.sweep()
    own = locked_tmp.make("sandbox")
    folder = own.path
    atexit.register(_remove, own, owner)
    etc = folder / "etc"
    etc.mkdir(mode=0o755)
    for pattern in COPIED.split():
        for source in sorted(Path("/etc").glob(pattern)):
            _copy(source, etc / source.relative_to("/etc"))
    (etc / "passwd").write_text(_accounts(f"{HOME}:/bin/sh"))
    (etc / "group").write_text(_groups())
    (etc / "nsswitch.conf").write_text(_NSSWITCH)
    (etc / "hosts").write_text("127.0.0.1 localhost sandbox\n::1 localhost\n")
    (etc / "hostname").write_text("sandbox\n")
    (etc / "resolv.conf").write_text("")
    nothing = folder / _EMPTY
    (nothing / "folder").mkdir(parents=True)
    (nothing / "file").write_text("")
    (nothing / "file.json").write_text("{}\n")
    for path, mode in (("folder", 0o555), ("file", 0o444), ("file.json", 0o444), ("", 0o755)):
        (nothing / path).chmod(mode)
    py_compile.compile(str(Path(__file__).with_name("child_setup.py")), str(etc / LAUNCHER), doraise=True)
    (etc / LAUNCHER).chmod(0o644)
    folder.chmod(0o755)  # nothing in it is secret, and in the uid tier another user must read the launcher
    return folder


def folder() -> Path:
    """Return the private folder of this process; a forked child creates its own."""
    with _lock:
        made = _made(os.getpid())
        if not (made / "etc" / LAUNCHER).exists():  # another program cleaned up the temporary folders
            _made.cache_clear()
            made = _made(os.getpid())
        return made


def etc() -> Path:
    """Return the path of the small /etc."""
    return folder() / "etc"


def empty(name: str) -> Path:
    """Return the path of what replaces a hidden path: `folder`, `file` or `file.json`."""
    return folder() / _EMPTY / name


def interpreter() -> str:
    """Return the Python interpreter outside any virtual environment; the launcher needs nothing else."""
    base = getattr(sys, "_base_executable", "") or sys.executable
    return str(Path(base).resolve())


def mount_point(path: str) -> None:
    """Make sure that a path of the small /etc exists, so that something can be mounted over it."""
    target = etc() / Path(path).relative_to("/etc")
    with _lock:
        if Path(path).is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()


def _copy(source: Path, target: Path) -> None:
    """Copy what everybody may read; links are copied as links."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(source.readlink())
        elif source.is_dir():
            shutil.copytree(source, target, symlinks=True, ignore=_unfit, ignore_dangling_symlinks=True)
        elif not _unfit(str(source.parent), [source.name]):
            shutil.copyfile(source, target)
    except OSError:  # the command can work without a file of /etc that cannot be copied
        return


def _unfit(parent: str, names: list[str]) -> list[str]:
    unfit = []
    for name in names:
        path = Path(parent, name)
        if path.is_symlink():
            continue
        status = path.stat()
        if not status.st_mode & 0o004 or not (path.is_dir() or path.is_file()) or status.st_size > _MOST_BYTES:
            unfit.append(name)
    return unfit


def _accounts(rest: str) -> str:
    lines = ["root:x:0:0:root:" + rest]
    if os.getuid():
        lines.append(f"sandbox:x:{os.getuid()}:{os.getgid()}:sandbox:{rest}")
    return "\n".join([*lines, "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin", ""])


def _groups() -> str:
    lines = ["root:x:0:", "tty:x:5:"]
    if os.getgid():
        lines.append(f"sandbox:x:{os.getgid()}:")
    return "\n".join([*lines, "nogroup:x:65534:", ""])


def _remove(own: locked_tmp.LockedFolder, owner: int) -> None:
    if os.getpid() == owner:
        own.remove()
