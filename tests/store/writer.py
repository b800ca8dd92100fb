"""One store operation in a process of its own, to be killed or refused in the middle.

usage: writer.py SRC SITE ROOT OPERATION RELATIVE CONTENT_FILE; prints the error as JSON, or "done".
"""

import ctypes  # noqa: F401  (loaded now: the user we may become cannot read every Python installation)
import fcntl  # noqa: F401
import json
import os
import sys
from contextlib import suppress
from pathlib import Path

sys.path[:0] = sys.argv[1:3]

from fairwitness.errors import StoreError  # noqa: E402  (the path must be set first: this runs without site)
from fairwitness.kit import files  # noqa: E402
from fairwitness.store.artifacts import Store  # noqa: E402

MARKER = "/the-operation-starts-here"


def main(root: str, operation: str, relative: str, content: bytes) -> str:
    store = Store(Path(root))
    if os.environ.get("WRITER_DROPS_ROOT"):
        os.setgroups([])
        os.setuid(65534)
    with suppress(FileNotFoundError):
        os.close(os.open(MARKER, os.O_RDONLY))
    try:
        match operation:
            case "put":
                store.put(relative, content)
            case "put with backup":
                store.put(relative, content, backup=True)
            case "create":
                store.create(relative, content)
            case "create, portable":
                files.create_file(store.root, relative, content, portable=True)
            case "append":
                store.append(relative, content.decode().removesuffix("\n"))
            case "grow":
                store.grow(relative, content)
            case _:
                raise SystemExit(f"no such operation: {operation}")
    except StoreError as error:
        return json.dumps({"type": type(error).__name__, "what": error.what, "next_step": error.next_step})
    return "done"


if __name__ == "__main__":
    root, operation, relative, content = sys.argv[3:]
    answer = main(root, operation, relative, Path(content).read_bytes())
    os.write(1, answer.encode())
