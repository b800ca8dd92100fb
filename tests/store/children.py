"""Starting the writer process, also under strace, which kills it or refuses it a system call."""

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pydantic

import fairwitness

_WRITER = Path(__file__).with_name("writer.py")
_SRC = Path(fairwitness.__file__).parents[1]
_SITE = Path(pydantic.__file__).parents[1]
_CALLS = "openat,openat2,write,fsync,rename,renameat,renameat2,linkat,unlinkat,ftruncate,flock"


@dataclass(frozen=True)
class Operation:
    """What the writer is to do."""

    name: str
    root: Path
    relative: str
    content: bytes

    def run(self, *, before: Sequence[str] = (), **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run the writer; `before` is the command that runs it in turn."""
        handed_over = self.root.parent / "content-for-the-writer"
        handed_over.write_bytes(self.content)
        python = [sys.executable, "-S", "-s", "-P"]
        arguments = [str(_WRITER), str(_SRC), str(_SITE), str(self.root), self.name, self.relative, str(handed_over)]
        # a fixed hash seed and compiled modules of our own, which no other test process adds to while we count:
        # the number of files opened while importing must be the same in each run
        env = {"PYTHONHASHSEED": "0", "PYTHONPYCACHEPREFIX": _compiled(), "PATH": os.environ["PATH"], **environment}
        command = [*before, *python, *arguments]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)

    def system_calls(self) -> list[tuple[str, int]]:
        """The system calls of the operation proper, each with its number among all calls of that name."""
        log = self.root.parent / "strace.log"
        result = self.run(before=["strace", "-f", "-o", str(log), "-e", f"trace={_CALLS}"])
        assert result.stdout == "done", result
        counts: Counter[str] = Counter()
        found: list[tuple[str, int]] = []
        started = False
        for line in log.read_text(errors="replace").splitlines():
            match = re.match(r"\d+ +(\w+)\(", line)
            if match is None:
                continue
            counts[match.group(1)] += 1
            if started:
                found.append((match.group(1), counts[match.group(1)]))
            started = started or "the-operation-starts-here" in line
        assert found.pop()[0] == "write"  # the writer's own answer
        return found

    def run_with(self, fault: str, call: str, number: int) -> "subprocess.CompletedProcess[str]":
        """Run the writer with a fault put into one of its system calls."""
        fault = f"inject={call}:{fault}:when={number}"
        return self.run(before=["strace", "-f", "-o", os.devnull, "-e", f"trace={call}", "-e", fault])


@cache
def _compiled() -> str:
    """A folder of this test process with everything compiled that the writer imports."""
    folder = tempfile.mkdtemp(prefix="compiled-for-the-writer-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    Path(folder).chmod(0o755)  # the writer may become another user
    python = [sys.executable, "-S", "-s", "-P", str(_WRITER), str(_SRC), str(_SITE)]
    with tempfile.TemporaryDirectory() as root:
        (Path(root) / "content").write_bytes(b"any")
        command = [*python, f"{root}/store", "put", "warm/up", f"{root}/content"]
        subprocess.run(command, env={"PYTHONPYCACHEPREFIX": folder}, check=True, capture_output=True, timeout=60)
    return folder


@cache
def strace_works() -> bool:
    """True if strace is installed and this process may trace another."""
    if shutil.which("strace") is None:
        return False
    command = ["strace", "-f", "-o", os.devnull, "-e", "inject=fsync:error=EIO", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
