"""What the sandbox's tests stand on: a runner of each tier that works here, and a folder for it to work in."""

import os
import select
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fairwitness.app.assembly import backends
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command, Confinement, End, SandboxLimits
from fairwitness.sandbox.probe import probe
from fairwitness.sandbox.runner import Attached, Finished, Runner
from fairwitness.sandbox.scripted import Reply, ScriptedAnswer, ScriptedRunner

REQUIRED = "FAIRWITNESS_REQUIRE_SANDBOX"
"""Set in CI: a tier that the kernel would allow but that does not work here is then a failure, not a skip."""
SCRIPTED = "scripted"
CONFINING = ("ns", "ll", "uid")
REAL = (*CONFINING, "none")
ALL = (*REAL, SCRIPTED)
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin:/bin") or ""
"""An interpreter that every user may run."""

_PATIENCE_S = 60.0


def is_kernel_able(tier: SandboxTier) -> bool:
    """Return whether the kernel alone would allow a tier, whatever is installed."""
    features = probe()
    if tier is SandboxTier.NAMESPACES:
        return features.seccomp and features.userns and Path("/proc/self/ns/pid").exists()
    return tier in features.tiers


def require(tier: str) -> None:
    """Skips, by name, what the kernel refuses; fails where it is only not installed and CI wants it."""
    wanted = SandboxTier(tier)
    if wanted in probe().tiers:
        return
    why = "; ".join(warned.text for warned in probe().warnings)
    if os.environ.get(REQUIRED) and is_kernel_able(wanted):
        pytest.fail(f"tier {tier} does not work though the kernel allows it: {why}")
    pytest.skip(f"tier {tier} does not work here: {why}")


@dataclass
class Bench:
    """One runner and the folders of one test."""

    tier: str
    worktree: Path
    outside: Path
    """A folder beside the worktree that commands may not touch."""
    answers: list[ScriptedAnswer] = field(default_factory=list)
    runner: Runner = field(init=False)

    def __post_init__(self) -> None:
        if self.tier == SCRIPTED:
            self.runner = ScriptedRunner([ScriptedAnswer("*", self._reply)])
        else:
            require(self.tier)
            self.runner = backends.runner(SandboxTier(self.tier), allow_unconfined=True)
        self._replies: list[Reply] = []

    def _reply(self, _command: Command) -> Reply:
        return self._replies.pop(0)

    def run(
        self,
        *argv: str,
        plays: Reply | None = None,
        stdin: bytes = b"",
        cancel: threading.Event | None = None,
        attached: Attached | None = None,
        limits: dict[str, Any] | None = None,
        **confinement: Any,
    ) -> Finished:
        """Runs a command; a scripted runner plays what it is told."""
        if self.tier == SCRIPTED:
            assert plays is not None
            self._replies.append(plays)
        command = self.command(*argv, limits=limits, **confinement)
        return self.runner.run(command, stdin=stdin, cancel=cancel, attached=attached)

    def command(self, *argv: str, limits: dict[str, Any] | None = None, **confinement: Any) -> Command:
        """A command in the test's worktree, writable unless said otherwise."""
        others = {name: confinement.pop(name) for name in ("cwd", "observe") if name in confinement}
        given: dict[str, Any] = {
            "worktree": str(self.worktree),
            "writable": True,
            "env": {},
            "min_tier": SandboxTier.NONE,
        }
        return Command(
            argv=argv,
            confinement=Confinement(**(given | confinement)),
            limits=SandboxLimits(**({"wall_s": 60.0} | (limits or {}))),
            purpose="test",
            **others,
        )

    def shell(self, script: str, **options: Any) -> Finished:
        """Runs a script of the shell."""
        return self.run("/bin/sh", "-c", script, **options)

    def python(self, program: str, **options: Any) -> Finished:
        """Runs a Python program."""
        return self.run(*self.python_words(program), **options)

    def python_words(self, program: str) -> tuple[str, ...]:
        """The command line of a Python program."""
        if not PYTHON and self.tier != SCRIPTED:
            pytest.skip("there is no Python that every user may run")
        return (PYTHON or "/usr/bin/python3", "-I", "-S", "-c", program)


class Live:
    """A command that is talked with while it runs, in a thread of its own."""

    def __init__(self, bench: Bench, *argv: str, **options: Any) -> None:
        self.cancel = threading.Event()
        theirs, self.stdin = os.pipe()
        self.stdout, answers = os.pipe()
        self.attached = Attached(theirs, answers)
        self._came: list[Finished | BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(bench, argv, options), daemon=True)
        self._thread.start()

    def _run(self, bench: Bench, argv: tuple[str, ...], options: dict[str, Any]) -> None:
        try:
            self._came.append(bench.run(*argv, attached=self.attached, cancel=self.cancel, **options))
        except BaseException as error:  # noqa: BLE001 -- raised where it is asked for
            self._came.append(error)

    def __enter__(self) -> "Live":
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel.set()
        self.close_stdin()
        self._thread.join(_PATIENCE_S)
        os.close(self.stdout)

    def say(self, words: bytes) -> None:
        """All of it, however slowly it is taken."""
        view = memoryview(words)
        while view:
            view = view[os.write(self.stdin, view) :]

    def hear(self, size: int) -> bytes:
        """So many bytes, or fewer if there are no more."""
        heard = bytearray()
        while len(heard) < size and (piece := self._next(size - len(heard))):
            heard += piece
        return bytes(heard)

    def hear_line(self) -> bytes:
        """Everything up to the end of a line."""
        line = b""
        while not line.endswith(b"\n") and (piece := self._next(1)):
            line += piece
        return line

    def hear_out(self) -> bytes:
        """Everything until nobody can say more."""
        return self.hear(1 << 62)

    def _next(self, most: int) -> bytes:
        assert select.select([self.stdout], [], [], _PATIENCE_S)[0], "nothing was said for a long time"
        return os.read(self.stdout, min(most, 1 << 16))

    def close_stdin(self) -> None:
        """There is nothing more to say."""
        stdin, self.stdin = self.stdin, -1
        if stdin >= 0:
            os.close(stdin)

    def finished(self) -> Finished:
        """What came of it, once it is over."""
        self._thread.join(_PATIENCE_S)
        (came,) = self._came
        if isinstance(came, BaseException):
            raise came
        return came


def is_over(handle: int) -> bool:
    """Whether nobody holds the other end of a pipe: whoever reads comes to its end, whoever writes is told."""
    poll = select.poll()
    poll.register(handle, 0)
    return bool(poll.poll(0))


def said(finished: Finished) -> str:
    """What a failing test shows."""
    result = finished.result
    words = (result.end, result.exit_code, result.sandbox_error, result.violations, finished.stdout, finished.stderr)
    return "\n".join(map(str, words))


def expect(finished: Finished, end: End) -> Finished:
    """The same, if it ended so."""
    assert finished.result.end is end, said(finished)
    return finished


def living(mark: str) -> list[int]:
    """Processes of this machine whose command line holds a mark."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and mark.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def eventually(holds: Callable[[], bool], within_s: float = 30.0) -> bool:
    """Whether something comes to hold soon."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if holds():
            return True
        time.sleep(0.01)
    return holds()
