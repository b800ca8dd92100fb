"""Records `fairwitness demo` in a terminal of 80 columns as docs/img/demo.svg; run it when the screens change."""

import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "img" / "demo.svg"
COLUMNS = 80
FIRST, LAST = 10, 34
"""How many lines of the beginning and of the end the picture shows."""


def played(folder: Path) -> str:
    """Return what the demo prints at a terminal."""
    leader, follower = pty.openpty()
    command = [str(Path(sys.executable).with_name("fairwitness")), "demo", "--dir", str(folder / "demo")]
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "LINES": "50", "TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    printed = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # Linux says so when the other side is closed
            break
        if not piece:
            break
        printed += piece
    os.close(leader)
    if process.wait() != 0:
        raise SystemExit(f"the demo failed with exit code {process.returncode}")
    return printed.decode().replace("\r\n", "\n").replace(str(folder), "/tmp")


def main() -> int:
    """Write the picture."""
    with tempfile.TemporaryDirectory(prefix="fairwitness-record-") as folder:
        lines = played(Path(folder)).splitlines()
    shown = [*lines[:FIRST], "[…]", *lines[-LAST:]] if len(lines) > FIRST + LAST else lines
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        console.print("$ make demo", highlight=False)
        for line in shown:
            console.print(Text.from_ansi(line), highlight=False, soft_wrap=True)
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        PICTURE.write_text(console.export_svg(title="Fair Witness"))
    print(f"{PICTURE.relative_to(ROOT)}: {len(lines)} lines printed, {len(shown)} shown")
    return 0


if __name__ == "__main__":
    sys.exit(main())
