"""One record in a process of its own, to be killed or refused in the middle.

usage: ledger_writer.py SRC SITE TESTS DATABASE KEY; prints, as JSON, what became of the record and of a second one.
"""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

sys.path[:0] = sys.argv[1:4]

from db.ledger_jobs import write  # noqa: E402
from fairwitness.ledger.ledger import Ledger  # noqa: E402  (the path must be set first: this runs without site)

MARKER = "/the-next-part-starts-here"


def mark() -> None:
    """Leaves a trace of its own between two parts."""
    with suppress(FileNotFoundError):
        os.close(os.open(MARKER, os.O_RDONLY))


def main(path: str, key: str) -> list[str]:
    """The record, a second one, and letting go of the file, which moves the log into the database."""
    ledger = Ledger.open_file(Path(path))
    mark()
    first = write(ledger, key)
    mark()
    second = write(ledger, f"{key}-second")
    ledger.close()
    return [first, second]


if __name__ == "__main__":
    os.write(1, json.dumps(main(sys.argv[4], sys.argv[5])).encode())
