"""Attempts to change something outside the worktree."""

import ctypes
import errno
import os
import sqlite3
import stat
import struct
from contextlib import suppress
from pathlib import Path

from sandbox.escapes.attacks.calls import Attack, Orders, attempt, child, hold, run, say, system_call

_ESCAPED = b"escaped\n"
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
_NEWNS, _NEWUSER = 0x00020000, 0x10000000
_SETUID = 0o4755
EXIT_CODE = 7
"""With which an attack on the runner's own channels leaves; if another is reported, it was believed."""


def _append(path: str | Path) -> None:
    with Path(path).open("ab") as file:
        file.write(_ESCAPED)


def _insist(path: str) -> None:
    """Write there, with the folders on the way."""

    def action() -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        _append(path)

    attempt(f"append to {path}", action)


def append_to_bashrc(orders: Orders) -> None:
    _insist(f"{orders.home}/.bashrc")


def create_in_etc(orders: Orders) -> None:
    _insist(f"/etc/{Path(orders.temporary).name}")


def write_in_tmp(orders: Orders) -> None:
    _insist(f"{orders.temporary}/escaped")


def climb_out(orders: Orders) -> None:
    for folder in (orders.outside, orders.visible):
        _insist(f"./../../{Path(folder).name}/climbed")
        _insist(f"{Path.cwd()}/../../{Path(folder).name}/climbed-from-the-root")


def follow_symlinks(orders: Orders) -> None:
    for number, folder in enumerate((orders.outside, orders.visible)):
        for kind, target in (("link", "file.txt"), ("dangling", "new.txt")):
            link = Path(f"{kind}-{number}")
            attempt(f"plant {link}", link.symlink_to, f"{folder}/{target}")
            attempt(f"append through {link}", _append, link)
        through = Path(f"folder-{number}")
        attempt(f"plant {through}", through.symlink_to, folder)
        attempt(f"append through {through}", _append, through / "through-a-folder")


def link_in(orders: Orders) -> None:
    for number, folder in enumerate((orders.outside, orders.visible)):
        name = Path(f"hard-{number}")
        attempt(f"link {folder}/file.txt", name.hardlink_to, f"{folder}/file.txt")
        if name.exists():
            attempt(f"append to {name}", _append, name)


def rename_out(orders: Orders) -> None:
    for folder in (orders.outside, orders.visible):
        Path("payload").write_bytes(_ESCAPED)
        attempt(f"rename into {folder}", Path("payload").rename, f"{folder}/renamed")
        attempt(f"replace a file of {folder}", Path("payload").rename, f"{folder}/file.txt")
        attempt(f"link into {folder}", Path(f"{folder}/linked").hardlink_to, "payload")


def edit_git_config(orders: Orders) -> None:
    pointed = Path(".git").read_text().removeprefix("gitdir:").strip()
    for path in (f"{orders.git}/config", f"{pointed}/../../config", f"{pointed}/config.worktree"):
        _insist(path)


def plant_hook(orders: Orders) -> None:
    hook = f"{orders.git}/hooks/post-checkout"
    _insist(hook)
    attempt("make it a program", lambda: Path(hook).chmod(0o755))


def replace_git_pointer(_: Orders) -> None:
    attempt("rename .git", lambda: Path(".git").rename(".git-before"))
    attempt("unlink .git", lambda: Path(".git").unlink())
    attempt("overwrite .git", lambda: Path(".git").write_bytes(b"gitdir: hostile\n"))
    attempt("unlink .git again", lambda: Path(".git").unlink(missing_ok=True))

    def plant() -> None:
        for folder in (".git/objects", ".git/refs/heads"):
            Path(folder).mkdir(parents=True)
        Path(".git/HEAD").write_text("ref: refs/heads/main\n")
        Path(".git/config").write_text(f'[core]\n\tfsmonitor = "touch {Path.cwd()}/fsmonitor-ran; false"\n')

    attempt("plant a repository", plant)


def insert_into_evidence(orders: Orders) -> None:
    def action() -> None:
        try:
            with sqlite3.connect(orders.database, timeout=0.2) as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS evidence (claim TEXT)")
                connection.execute("INSERT INTO evidence VALUES ('forged')")
        except sqlite3.Error as error:
            raise OSError(errno.EACCES, str(error)) from error

    attempt("insert a row", action)
    _insist(orders.database)


def change_metadata(orders: Orders) -> None:
    for folder in (orders.outside, orders.visible):
        file = Path(folder) / "file.txt"
        attempt(f"chmod {file}", file.chmod, 0o666)
        attempt(f"utime {file}", os.utime, file, (1, 1))
        attempt(f"setxattr {file}", os.setxattr, file, "user.escaped", b"1")
        attempt(f"fchmodat2 {file}", system_call, "fchmodat2", -100, os.fsencode(file), 0o777, 0)

        def by_handle(file: Path = file) -> None:
            handle = os.open(file, os.O_RDONLY)
            attempt(f"fchmod {file}", os.fchmod, handle, 0o600)
            attempt(f"futimens {file}", os.utime, handle, (2, 2))
            attempt(f"fsetxattr {file}", os.setxattr, handle, "user.by-handle", b"1")
            os.close(handle)

        attempt(f"open {file}", by_handle)


def truncate_by_path(orders: Orders) -> None:
    for folder in (orders.outside, orders.visible):
        attempt(f"truncate in {folder}", os.truncate, f"{folder}/file.txt", 0)
        attempt(f"O_TRUNC in {folder}", os.open, f"{folder}/file.txt", os.O_RDONLY | os.O_TRUNC)


def open_block_device(orders: Orders) -> None:
    for path in (orders.device, "/dev/loop0", "/dev/mem"):
        attempt(f"open {path}", os.open, path, os.O_WRONLY | os.O_NONBLOCK)
    hold(orders)


def use_inherited_handles(orders: Orders) -> None:
    forged = b'{ "exit-code": 0 }\n'
    for handle in range(3, 256):
        try:
            mode = os.fstat(handle).st_mode
        except OSError:
            continue
        if stat.S_ISDIR(mode):
            attempt(f"create beneath {handle}", os.open, "by-handle", os.O_WRONLY | os.O_CREAT, dir_fd=handle)
        else:
            with suppress(OSError):
                os.set_blocking(handle, False)
            attempt(f"write to {handle}", os.write, handle, forged)
    say(f"ended {orders.id}")
    os._exit(EXIT_CODE)


def write_by_proc_root(orders: Orders) -> None:
    # unconfined it succeeds, so there only whoever stands in a folder of ours is tried
    pids = (orders.decoy, orders.orchestrator, *((os.getppid(), 1) if orders.confined else ()))
    for pid in pids:
        for step in ("root", "cwd"):
            folder = orders.outside if step == "root" else ""
            path = f"/proc/{pid}/{step}{folder}/{Path(orders.temporary).name}-by-proc-{step}"
            attempt(f"append to {path}", _append, path)


def remount(orders: Orders) -> None:
    # with MS_BIND only the flags of the mount itself change, so that even a success breaks nothing
    for path in ("/", "/etc", "/usr", orders.visible, orders.git):
        target = os.fsencode(path)
        attempt(f"remount {path}", system_call, "mount", b"none", target, None, _MS_REMOUNT | _MS_BIND, None)
    _insist(f"/etc/{Path(orders.temporary).name}")
    _insist(f"{orders.visible}/remounted")


def mount_in_nested_namespace(orders: Orders) -> None:
    def action() -> None:
        identity = (os.getuid(), os.getgid())
        attempt("unshare user and mount", system_call, "unshare", _NEWUSER | _NEWNS)
        attempt("setgroups", lambda: Path("/proc/self/setgroups").write_text("deny"))
        for name, number in zip(("uid_map", "gid_map"), identity, strict=True):
            attempt(name, Path(f"/proc/self/{name}").write_text, f"0 {number} 1")
        here = os.fsencode(orders.visible)
        attempt("make private", system_call, "mount", b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
        attempt("bind", system_call, "mount", here, here, None, _MS_BIND | _MS_REC, None)
        attempt("remount", system_call, "mount", b"none", here, None, _MS_REMOUNT | _MS_BIND, None)
        if orders.confined:
            _insist(f"{orders.visible}/mounted")
        hold(orders)

    os.waitpid(child(action), 0)


def open_by_handle(orders: Orders) -> None:
    where = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    for inode, below in ((orders.outside_inode, "by-inode"), (2, f"{orders.outside[1:]}/by-inode-2")):
        handle = struct.pack("IiII", 8, 1, inode, 0)

        def action(handle: bytes = handle, below: str = below) -> None:
            buffer = ctypes.create_string_buffer(handle, len(handle))
            folder = system_call("open_by_handle_at", where, buffer, os.O_RDONLY | os.O_DIRECTORY)
            os.close(os.open(below, os.O_WRONLY | os.O_CREAT, dir_fd=folder))

        attempt(f"open inode {inode}", action)


def open_core_pattern(orders: Orders) -> None:
    # opened and never written: that it can be opened is enough
    kernel = "/proc/sys/kernel"
    for path in (f"{kernel}/core_pattern", f"{kernel}/modprobe", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper"):
        attempt(f"open {path}", os.open, path, os.O_WRONLY)
    hold(orders)


def write_in_shared_places(orders: Orders) -> None:
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run/lock"):
        attempt(f"create in {folder}", _append, f"{folder}/{Path(orders.temporary).name}-shared")
    hold(orders)  # what is removed afterwards was there all the same


def make_device(orders: Orders) -> None:
    mode = stat.S_IFBLK | 0o666
    attempt("mknod", lambda: os.mknod("device", mode, orders.device_number))
    attempt("open it", lambda: os.open("device", os.O_WRONLY | os.O_NONBLOCK))
    hold(orders)


def set_setuid(_: Orders) -> None:
    def by_openat2() -> None:
        how = struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, _SETUID, 0)
        os.close(system_call("openat2", -100, b"by-openat2", ctypes.create_string_buffer(how, 24), 24))

    def by_handle() -> None:
        handle = os.open("by-handle", os.O_CREAT | os.O_WRONLY)
        os.fchmod(handle, _SETUID)

    def by_open() -> None:
        os.umask(0)
        os.close(os.open("by-open", os.O_CREAT | os.O_WRONLY, _SETUID))

    Path("tool").write_bytes(b"#!/bin/sh\n")
    attempt("chmod", lambda: Path("tool").chmod(_SETUID))
    attempt("chmod setgid", lambda: Path("tool").chmod(0o2755))
    attempt("fchmodat2", lambda: system_call("fchmodat2", -100, b"tool", _SETUID, 0))
    attempt("fchmod", by_handle)
    attempt("open", by_open)
    attempt("openat2", by_openat2)
    attempt("mknod", lambda: os.mknod("by-mknod", stat.S_IFREG | _SETUID))
    capability = struct.pack("<IIIII", 0x02000001, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0)
    attempt("capability", lambda: os.setxattr("tool", "security.capability", capability))


ATTACKS: dict[str, Attack] = {
    "W01": append_to_bashrc,
    "W02": create_in_etc,
    "W03": write_in_tmp,
    "W04": climb_out,
    "W05": follow_symlinks,
    "W06": link_in,
    "W07": rename_out,
    "W08": edit_git_config,
    "W09": plant_hook,
    "W10": replace_git_pointer,
    "W11": insert_into_evidence,
    "W12": change_metadata,
    "W13": truncate_by_path,
    "W14": open_block_device,
    "W15": use_inherited_handles,
    "W16": write_by_proc_root,
    "W17": remount,
    "W18": mount_in_nested_namespace,
    "W19": open_by_handle,
    "W20": open_core_pattern,
    "W21": write_in_shared_places,
    "W22": make_device,
    "W23": set_setuid,
}

if __name__ == "__main__":
    run(ATTACKS)
