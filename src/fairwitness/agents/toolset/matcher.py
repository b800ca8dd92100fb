"""Searches texts for a pattern; runs as a program of its own, since a model's pattern may never end.

It reads everything from standard input and opens nothing: a line of JSON, then for each file a line with its name and
size, and its bytes. It writes the result as one JSON document to standard output.
"""

import json
import re
import sys
from typing import IO, Any

MEMORY = 1 << 30
CPU_S = 20
_LINE = 10_000
_SHOWN = 300
_BINARY_HEAD = 8_000


def main(source: IO[bytes], target: IO[str]) -> None:
    """Run one search."""
    asked = json.loads(source.readline())
    try:
        pattern = re.compile(asked["pattern"], re.IGNORECASE if asked["ignore_case"] else 0)
        answer = search(pattern, source, asked["most"])
    except re.error as error:
        answer = {"error": str(error)}
    except (RecursionError, OverflowError, MemoryError):
        answer = {"error": "it is too large"}
    json.dump(answer, target)


def search(pattern: re.Pattern[str], source: IO[bytes], most: int) -> dict[str, Any]:
    """Return the matching lines up to a number; `more` tells that there was another one."""
    found: list[tuple[str, int, str]] = []
    while header := source.readline():
        name, _, size = header.decode().rstrip("\n").rpartition("\t")
        data = source.read(int(size))
        if b"\0" in data[:_BINARY_HEAD]:
            continue
        for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), start=1):
            line = line.rstrip("\r")
            if pattern.search(line[:_LINE]) is None:
                continue
            if len(found) == most:
                return {"found": found, "more": True}
            found.append((name, number, line[:_SHOWN] + ("…" if len(line) > _SHOWN else "")))
    return {"found": found, "more": False}


def _bound() -> None:
    """Limit this process, so that it ends even if it is left behind."""
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _bound()
    main(sys.stdin.buffer, sys.stdout)
