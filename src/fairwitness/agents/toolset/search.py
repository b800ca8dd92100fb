"""The tools that find files by name and lines by content, in bounded time for any pattern.

A model's pattern can keep Python's `re` busy for ever, and a thread cannot be stopped. So the files are opened here,
safely, and their bytes are passed to a process (`matcher`) that opens nothing and can be killed. The sandbox could do
the same, but searches are the most frequent calls, and must work where commands are scripted.
"""

import contextlib
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairwitness.agents.toolset import matcher
from fairwitness.agents.toolset.arguments import FileSearch, GrepSearch
from fairwitness.agents.toolset.globs import matches
from fairwitness.agents.toolset.model import ToolCancelled, ToolFailed
from fairwitness.agents.toolset.plain import one_line, spelled
from fairwitness.agents.toolset.tree import Walk, WorktreeFiles
from fairwitness.kit.redaction import redact_forms

SEARCH_S = 10.0
"""Seconds that one search may take."""
SEARCHED_FILE = 1 << 20
"""Bytes of a file that is searched; a larger one is skipped, and the result says so."""
SEARCHED_BYTES = 48 << 20
"""Bytes that one search reads, at most."""
_LOOK_S = 0.05


def file_search(tree: WorktreeFiles, asked: FileSearch, cancel: threading.Event) -> str:
    """Return the paths that match a glob."""
    walk = tree.walk(".", cancel)
    found: list[str] = []
    more = False
    for path in walk:
        if matches(asked.pattern, path):
            more = len(found) == asked.max_results
            if more:
                break
            found.append(path)
    notes = [f"there are more than these {len(found)}"] if more else []
    return listing([spelled(path) for path in found], f"no file fits {one_line(asked.pattern)}", notes, walk)


def grep_search(tree: WorktreeFiles, asked: GrepSearch, cancel: threading.Event, *, seconds: float = SEARCH_S) -> str:
    """Return the lines that contain a text or match a pattern."""
    if tree.kind(asked.path) == "none":
        raise ToolFailed(f"there is no file or folder {asked.path}")
    walk = tree.walk(asked.path, cancel)
    is_one = tree.kind(asked.path) == "file"
    texts = _Texts(tree, asked, cancel)
    order = {
        "pattern": asked.query if asked.is_regex else re.escape(asked.query),
        "ignore_case": asked.ignore_case,
        "most": asked.max_results,
    }
    told = [json.dumps(order).encode() + b"\n", *texts.of([asked.path] if is_one else walk)]
    answer = matched(b"".join(told), cancel, seconds)
    if "error" in answer:
        raise ToolFailed(f"the pattern cannot be used: {one_line(str(answer['error']))}")
    lines = [f"{name}:{number}: {spelled(line)}" for name, number, line in answer["found"]]
    notes = list(texts.notes)
    if answer["more"]:
        notes.append(f"there are more than these {len(lines)} matches")
    return listing(lines, "no match", notes, walk)


def listing(lines: list[str], nothing: str, notes: list[str], walk: Walk) -> str:
    """Return the results, a line each, and the notes about them."""
    if walk.cut_short:
        notes.append(f"only the first {walk.most} names were looked at")
    tail = [f"[{note}]" for note in notes]
    return "\n".join([*(lines or [nothing]), *tail])


class _Texts:
    """The files of one search, as input of the matcher."""

    def __init__(self, tree: WorktreeFiles, asked: GrepSearch, cancel: threading.Event) -> None:
        self.notes: list[str] = []
        self._tree, self._asked, self._cancel = tree, asked, cancel

    def of(self, paths: "list[str] | Walk") -> Iterator[bytes]:
        total = passed = 0
        for path in paths:
            if self._asked.include and not matches(self._asked.include, path):
                continue
            try:
                data = self._tree.read(path, SEARCHED_FILE)
            except ToolFailed:
                passed += 1
                continue
            total += len(data)
            if total > SEARCHED_BYTES:
                self.notes.append(f"only the first {SEARCHED_BYTES >> 20} MiB were searched; name a folder or a glob")
                break
            shown = redact_forms(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
            yield f"{path}\t{len(shown)}\n".encode()
            yield shown
        if passed:
            self.notes.append(f"{passed} files could not be searched: too large, links, or gone")


def matched(told: bytes, cancel: threading.Event, seconds: float) -> dict[str, Any]:
    """Run the matcher and return its result; its process has ended when this returns or raises."""
    command = [sys.executable, "-I", "-S", "-X", "utf8", str(Path(matcher.__file__))]
    with tempfile.TemporaryFile() as source:  # a pipe would have to be written while waiting
        source.write(told)
        source.seek(0)
        with subprocess.Popen(
            command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}, cwd="/"
        ) as process:
            try:
                output = _output(process, cancel, seconds)
            finally:
                with contextlib.suppress(OSError):
                    process.kill()
    if process.returncode != 0:
        raise ToolFailed("the search failed; try a simpler pattern")
    answer: dict[str, Any] = json.loads(output)
    return answer


def _output(process: "subprocess.Popen[bytes]", cancel: threading.Event, seconds: float) -> bytes:
    until = time.monotonic() + seconds
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=_LOOK_S)[0]
        if cancel.is_set():
            raise ToolCancelled
        if time.monotonic() > until:
            raise ToolFailed(f"the search took longer than {seconds:g} s and was stopped; try a simpler pattern")
