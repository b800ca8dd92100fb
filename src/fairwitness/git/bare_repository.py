"""A bare git directory of Fair Witness, with its own short configuration, no hooks and no attributes.

It reads the objects of another repository. Whatever is found in the folder, git sees only what is written here and the
objects that Fair Witness made: every other file that git could read is removed each time the folder is opened.
"""

import os
import re
from pathlib import Path

from fairwitness.errors import NotStored, StoreError
from fairwitness.git.call import RUN_FSCK, GitDir, GitFailed, text_of
from fairwitness.git.folders import remove
from fairwitness.kit.files import is_temporary, read_given, replace_file
from fairwitness.kit.text import visible

_DEPTH = 16
_LIMIT = 1 << 20
_SHALLOW_LIMIT = 64 << 20
_NOTHING = re.compile(r"(?!)")
_OBJECT_ID = r"[0-9a-f]{40}(?:[0-9a-f]{24})?"
_CONTENT = (
    ("", re.compile(rf"config|HEAD|shallow|sharedindex\.{_OBJECT_ID}"), re.compile("objects|refs|passing|locks")),
    ("objects", re.compile("tmp_.*"), re.compile("[0-9a-f]{2}|info|pack")),
    ("objects/info", re.compile("alternates"), _NOTHING),
    ("objects/pack", re.compile(rf"pack-{_OBJECT_ID}\.(?:pack|idx|rev)|tmp_.*"), _NOTHING),
    ("refs", _NOTHING, re.compile("heads")),
    ("refs/heads", _NOTHING, _NOTHING),
)
"""The folders that git reads, each with the files and folders that may be in it."""
_SHALLOW = re.compile(rf"(?:{_OBJECT_ID}\n)*".encode())


def lay_out(folder: Path, *, objects: Path, object_format: str, shallow: Path | None = None) -> GitDir:
    """Make the folder a bare repository that reads from an object store; only objects in it are kept.

    The configuration is rewritten each time, so that it holds exactly what is written here.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, files, folders in _CONTENT:
        (folder / name).mkdir(exist_ok=True)
        _purge(folder / name, files, folders)
    _keep(folder, "config", _config(object_format))
    _keep(folder, "HEAD", b"ref: refs/heads/none\n")
    _keep(folder, "objects/info/alternates", b"".join(_quoted(store) + b"\n" for store in stores(objects)))
    ends = _shallow_ends(shallow) if shallow is not None else b""
    if ends:
        _keep(folder, "shallow", ends)
    else:
        (folder / "shallow").unlink(missing_ok=True)
    settings = {"core.fsync": "none", "core.commitGraph": "false", "core.multiPackIndex": "false"}
    return GitDir(folder, settings=settings, is_ours=True)


def _shallow_ends(file: Path) -> bytes:
    """Return the commits at which a shallow clone ends, as its file lists them; empty if it is not shallow."""
    try:
        listed = read_given(file, limit=_SHALLOW_LIMIT)
    except NotStored:
        return b""
    except StoreError as error:
        raise GitFailed(f"{visible(str(file))} cannot be read: {error.what}", next_step=RUN_FSCK) from None
    if not _SHALLOW.fullmatch(listed):
        raise GitFailed(f"{visible(str(file))} is not a list of commits", next_step=RUN_FSCK)
    return listed


def _purge(folder: Path, files: re.Pattern[str], folders: re.Pattern[str]) -> None:
    """Remove everything from a folder that is not a plain file or a folder with one of these names.

    Temporary files of other processes stay; git reads no file of such a name.
    """
    with os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                is_known = folders.fullmatch(entry.name) is not None
            else:
                is_plain = entry.is_file(follow_symlinks=False)
                is_known = is_plain and (files.fullmatch(entry.name) is not None or is_temporary(entry.name))
            if not is_known:
                remove(folder / entry.name)


def stores(objects: Path) -> list[Path]:
    """Return an object store and all stores that it reads from: git follows relative names only one level deep."""
    found: list[Path] = []
    ahead = [(objects.resolve(), 0)]
    while ahead:
        store, depth = ahead.pop(0)
        if store in found or depth > _DEPTH or not store.is_dir():
            continue
        found.append(store)
        try:
            listed = read_given(store / "info" / "alternates", limit=_LIMIT)
        except NotStored:
            continue
        for line in listed.split(b"\n"):
            if line and not line.startswith(b"#"):
                name = _unquoted(line)
                ahead.append(((store / text_of(name)).resolve(), depth + 1))
    return found


def _config(object_format: str) -> bytes:
    lines = ["[core]", "\tbare = true", "\tlogAllRefUpdates = false"]
    if object_format == "sha1":
        lines.append("\trepositoryFormatVersion = 0")
    else:
        lines += ["\trepositoryFormatVersion = 1", "[extensions]", f"\tobjectFormat = {object_format}"]
    return ("\n".join(lines) + "\n").encode()


def _keep(folder: Path, name: str, content: bytes) -> None:
    """Write a file unless it already has this content: several processes may have the folder open."""
    file = folder / name
    if not file.is_symlink() and file.is_file() and file.read_bytes() == content:
        return
    replace_file(folder, name, content)


def _quoted(store: Path) -> bytes:
    """Return a path in the quoting of git's list of alternates."""
    raw = str(store).encode("utf-8", "surrogateescape")
    if raw.isascii() and b"\n" not in raw and b'"' not in raw and b"\\" not in raw:
        return raw
    return b'"' + b"".join(bytes([sign]) if _is_plain(sign) else b"\\%03o" % sign for sign in raw) + b'"'


def _is_plain(sign: int) -> bool:
    return 32 <= sign < 127 and sign not in b'"\\'


def _unquoted(line: bytes) -> bytes:
    if not (line.startswith(b'"') and line.endswith(b'"') and len(line) > 1):
        return line
    # Git quotes like C; Python's escape sequences cover that.
    return line[1:-1].decode("latin-1").encode("latin-1").decode("unicode_escape").encode("latin-1")
