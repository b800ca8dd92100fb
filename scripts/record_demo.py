"""Records `fairwitness demo` in a terminal of 80 columns as docs/img/demo.svg; run it when the screens change."""

import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "img" / "demo.svg"
COLUMNS = 80
INDENT = " " * 21
FIRST, LAST = 12, 32
"""How many lines of the beginning and of the end the picture shows."""


def played(folder: Path) -> list[str]:
    """Return the lines that the demo prints, as wide as a terminal of 80 columns."""
    command = [str(Path(sys.executable).with_name("fairwitness")), "demo", "--dir", str(folder / "demo")]
    environment = {**os.environ, "COLUMNS": str(COLUMNS)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the demo failed with exit code {done.returncode}: {done.stderr}")
    lines = done.stdout.replace(str(folder), "/tmp").splitlines()
    return [part for line in lines for part in (textwrap.wrap(line, COLUMNS, subsequent_indent=INDENT) or [""])]


def main() -> int:
    """Write the picture."""
    with tempfile.TemporaryDirectory(prefix="fairwitness-record-") as folder:
        lines = played(Path(folder))
    shown = [*lines[:FIRST], "[…]", *lines[-LAST:]] if len(lines) > FIRST + LAST else lines
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        console.print("$ make demo", highlight=False)
        for line in shown:
            console.print(Text.from_ansi(line), highlight=False, soft_wrap=True)
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        # a picture that loads no font from elsewhere
        PICTURE.write_text(
            re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title="Fair Witness"), flags=re.DOTALL)
        )
    print(f"{PICTURE.relative_to(ROOT)}: {len(lines)} lines printed, {len(shown)} shown")
    return 0


if __name__ == "__main__":
    sys.exit(main())
