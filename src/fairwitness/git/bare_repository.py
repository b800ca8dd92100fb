"""A bare git directory of Fair Witness, with its own short configuration, no hooks and no attributes.

It reads the objects of another repository.
"""

from pathlib import Path

from fairwitness.errors import NotStored
from fairwitness.git.call import GitDir, text_of
from fairwitness.kit.files import read_given, replace_file

_DEPTH = 16
_LIMIT = 1 << 20


def lay_out(folder: Path, *, objects: Path, object_format: str, shallow: Path | None = None) -> GitDir:
    """Make the folder a bare repository that reads from an object store; existing content is kept.

    The configuration is rewritten each time, so that it holds exactly what is written here.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("objects/info", "objects/pack", "refs/heads"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    _keep(folder, "config", _config(object_format))
    _keep(folder, "HEAD", b"ref: refs/heads/none\n")
    _keep(folder, "objects/info/alternates", b"".join(_quoted(store) + b"\n" for store in stores(objects)))
    if shallow is not None and shallow.exists():
        _keep(folder, "shallow", shallow.read_bytes())
    else:
        (folder / "shallow").unlink(missing_ok=True)
    return GitDir(folder, settings={"core.fsync": "none"})


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
