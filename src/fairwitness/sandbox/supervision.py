"""Run the launcher for one command: collect output, enforce limits, and return when no process of it is alive."""

import array
import contextlib
import marshal
import os
import selectors
import signal
import socket
import subprocess
import threading
import time
from typing import Any

from fairwitness.contracts.common.sandbox import SandboxLimits
from fairwitness.sandbox import memory_group
from fairwitness.sandbox.capture import Capture
from fairwitness.sandbox.child_setup import STOP
from fairwitness.sandbox.launch import CommandFacts, Launch
from fairwitness.sandbox.streams import Streams, sealed
from fairwitness.sandbox.watchdog import INTERVAL_S, LimitName, tree

SETUP_S = 30.0
"""The time limit for building a sandbox; after it the run is lost."""
_ASK_S = 0.5
"""How long the launcher has to end the process tree by itself."""
_GONE_S = 15.0
_PIECE = 1 << 16
_BARE = {"PATH": "/usr/bin:/bin", "LANG": "C"}


def supervise(launch: Launch, limits: SandboxLimits, streams: Streams, cancel: threading.Event | None) -> CommandFacts:
    """Run a launch to its end; return when none of its processes is alive."""
    return _Supervision(launch, limits, cancel).run(streams)


class _Supervision:
    def __init__(self, launch: Launch, limits: SandboxLimits, cancel: threading.Event | None) -> None:
        self.launch, self.limits, self.cancel = launch, limits, cancel
        self.ended = CommandFacts(Capture(limits.output_kept), Capture(limits.output_kept))
        self.selector = selectors.DefaultSelector()
        self.handles: list[int] = []
        self.messages = b""
        self.status_text = b""
        self.began = time.monotonic()
        self.started: float | None = None
        self.reported = False
        self.asked_at: float | None = None
        self.first: int | None = None
        """The first process of the sandbox, if it has its own pid namespace."""
        self.first_handle: int | None = None
        self.root: int | None = None
        """The launcher's pid on the host."""
        self.control: socket.socket
        self.group = memory_group.make(limits.memory)
        self.passed: list[int] = []
        """Descriptors that came with a message whose text has not come yet."""

    def run(self, streams: Streams) -> CommandFacts:
        try:
            self._spawn(streams)
        except OSError as error:
            self.ended.lost = f"the launcher cannot be started: {error}"
            self._close()
            return self.ended
        try:
            self._attend()
        finally:
            self._end_all()
            self._sum_up()
            self._close()
        return self.ended

    def _spawn(self, streams: Streams) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        out, out_end = os.pipe()
        self.handles.append(out)
        err, err_end = os.pipe()
        self.handles.append(err)
        status, status_end = os.pipe()
        self.handles.append(status)
        with contextlib.ExitStack() as stack:
            for end in (out_end, err_end, status_end):
                stack.callback(os.close, end)
            stack.enter_context(theirs)
            pipes = streams.pipes
            stack.callback(streams.close)
            group = None if self.group is None else self.group.entrance
            plan = sealed(marshal.dumps(self.launch.plan | {"attached": pipes, "group": group}))
            stack.callback(os.close, plan)
            source = sealed(streams.stdin) if streams.stdin else subprocess.DEVNULL
            if streams.stdin:
                stack.callback(os.close, source)
            kept = (theirs.fileno(), plan, *((status_end,) if self.launch.namespaced else ()))
            self.process = subprocess.Popen(
                [*self.launch.argv(status_end), str(theirs.fileno()), str(plan)],
                stdin=source,
                stdout=out_end,
                stderr=err_end,
                env=_BARE,
                cwd="/",
                pass_fds=(*kept, *(pipes or ()), *self.launch.handles, *(() if group is None else (group,))),
                start_new_session=True,
            )
        if not self.launch.namespaced:
            self.root = self.process.pid
        for handle, name in ((out, "stdout"), (err, "stderr"), (status, "status")):
            os.set_blocking(handle, False)
            self.selector.register(handle, selectors.EVENT_READ, name)
        self.control.setblocking(False)
        self.selector.register(self.control, selectors.EVENT_READ, "control")

    def _attend(self) -> None:
        """Handle events until the launcher has closed its socket, or must be killed."""
        next_look = self.began
        while True:
            now = time.monotonic()
            deadline = self._deadline()
            if now >= deadline and not self._overdue(now):
                return
            if now >= next_look:
                next_look = now + INTERVAL_S
                self._look()
            wait = max(0.0, min(next_look, self._deadline()) - time.monotonic())
            for key, _ in self.selector.select(wait):
                if key.data == "control" and not self._hear():
                    return
                if key.data == "status":
                    self._read_status(key.fd)
                if key.data in ("stdout", "stderr"):
                    self._take(key.fd, key.data)

    def _deadline(self) -> float:
        if self.asked_at is not None:
            return self.asked_at + _ASK_S
        return self.began + SETUP_S if self.started is None else self.started + self.limits.wall_s

    def _overdue(self, now: float) -> bool:
        """Handle a passed deadline; return False if there is nothing left to wait for."""
        if self.asked_at is not None:
            return False
        if self.started is None:
            self.ended.lost = self.ended.lost or f"the sandbox was not ready within {SETUP_S:.0f} s"
            return False
        if not self.reported:
            self._stop("wall")
        self.asked_at = now
        return True

    def _look(self) -> None:
        if self.cancel is not None and self.cancel.is_set() and not self.ended.cancelled and not self.reported:
            self.ended.cancelled = True
            self._ask()
        if self.launch.watchdog is None or self.started is None or self.reported or self.asked_at is not None:
            return
        if self.root is None and self.first is not None:
            self.root = next((process.pid for process in tree(self.first)), None)
        if self.group is not None and self.group.has_overflowed():
            self._stop("memory")
        elif self.root is not None and (passed := self.launch.watchdog.look(self.root)) is not None:
            self._stop(passed)

    def _stop(self, limit: LimitName) -> None:
        if self.ended.stopped is None and not self.ended.cancelled:
            self.ended.stopped = limit
            self._ask()

    def _ask(self) -> None:
        """Ask the launcher to end the process tree; if it does not respond in time, it is killed."""
        self.asked_at = time.monotonic()
        with contextlib.suppress(OSError):
            self.control.send(STOP)

    def _take(self, handle: int, name: str) -> bool:
        """Read one piece of a stream; return False if none is available."""
        capture = self.ended.stdout if name == "stdout" else self.ended.stderr
        try:
            piece = os.read(handle, _PIECE)
        except BlockingIOError:
            return False
        if not piece:
            self.selector.unregister(handle)
            return False
        capture.take(piece)
        if capture.total > self.limits.output_killed:
            self._stop("output")
        return True

    def _read_status(self, handle: int) -> None:
        try:
            piece = os.read(handle, _PIECE)
        except BlockingIOError:
            return
        if not piece:
            self.selector.unregister(handle)
        self.status_text += piece
        line = self.status_text.partition(b"\n")[0] if b"\n" in self.status_text else b""
        if self.first is None and b'"child-pid":' in line:
            self.first = int(line.partition(b'"child-pid":')[2].split(b",")[0].strip(b" }"))
            with contextlib.suppress(ProcessLookupError):
                self.first_handle = os.pidfd_open(self.first)
                self.handles.append(self.first_handle)

    def _hear(self) -> bool:
        """Read messages from the launcher; return False when it has closed its socket."""
        space = socket.CMSG_SPACE(array.array("i").itemsize)
        try:
            piece, rights, _, _ = self.control.recvmsg(_PIECE, space)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False
        for _, kind, data in rights:
            if kind == socket.SCM_RIGHTS:
                self.passed.append(array.array("i", data)[0])
        self.messages += piece
        while len(self.messages) >= 4:
            size = int.from_bytes(self.messages[:4], "big")
            if len(self.messages) < 4 + size:
                break
            self._understand(marshal.loads(self.messages[4 : 4 + size]))  # noqa: S302 -- sent by this runner's launcher
            self.messages = self.messages[4 + size :]
        return bool(piece)

    def _observe(self, listener: int) -> None:
        if self.launch.observer is None:
            os.close(listener)
            return
        self.ended.observer = self.launch.observer(listener)
        self.ended.observer.start()

    def _count_segments(self, handle: int) -> None:
        self.handles.append(handle)
        if self.launch.watchdog is not None:
            self.launch.watchdog.segments = handle

    def _understand(self, message: dict[str, Any]) -> None:
        now = time.monotonic()
        if "watched" in message:
            self._observe(self.passed.pop(0))
        if "segments" in message:
            self._count_segments(self.passed.pop(0))
        if "failed" in message:
            self.ended.lost = message["failed"].decode(errors="replace")
        if "started" in message:
            self.started = now
            self.ended.setup_s = now - self.began
        if "ended" in message:
            answer = message["ended"]
            self.reported = True
            self.ended.wall_s = now - (self.started or now)
            self.ended.wait_status = answer["status"]
            self.ended.survivors = answer["survivors"]
            self.ended.cpu_s = answer["cpu"]
            self.ended.peak_memory = answer["memory"] * 1024
            if answer["unkillable"]:
                self.ended.lost = "a process could not be killed"

    def _end_all(self) -> None:
        """Make sure that no process of the tree is alive."""
        until = time.monotonic() + _GONE_S
        for key in list(self.selector.get_map().values()):
            if key.data == "status":
                self._read_status(key.fd)
        if not self.reported:
            self._kill_hard()
        if self.first_handle is not None:
            self._await_first(until)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_ASK_S)
        if self.process.poll() is None:
            self._kill_hard()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(max(0.1, until - time.monotonic()))
        for key in list(self.selector.get_map().values()):
            while key.data in ("stdout", "stderr") and self._take(key.fd, key.data):
                pass
        if self.ended.observer is not None:
            self.ended.observer.finish()

    def _await_first(self, until: float) -> None:
        """Wait for the namespace's first process: the kernel reports its end only after all others have ended."""
        assert self.first_handle is not None
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.first_handle, selectors.EVENT_READ)
            if not waiting.select(_ASK_S):
                self._kill_hard()
                if not waiting.select(max(0.1, until - time.monotonic())):
                    self.ended.lost = "a process could not be killed"

    def _kill_hard(self) -> None:
        if self.first_handle is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.first_handle, signal.SIGKILL)
        elif self.root is not None:
            for _ in range(100):  # the launcher is alive but does not respond, so all processes are still below it
                below = tree(self.root)
                for process in below:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process.pid, signal.SIGKILL)
                if not below:
                    break
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    def _sum_up(self) -> None:
        ended, watchdog = self.ended, self.launch.watchdog
        now = time.monotonic()
        if not self.reported:
            ended.wall_s = now - (self.started or now)
            if ended.lost is None and ended.stopped is None and not ended.cancelled:
                words = ended.stderr.stored().decode(errors="replace").strip().splitlines()
                ended.lost = words[-1] if self.started is None and words else "the sandbox ended without a report"
        if self.group is not None and self.group.has_overflowed() and not ended.cancelled:
            ended.stopped = ended.stopped or "memory"
            if not self.reported:
                ended.lost = None  # the kernel may have chosen the launcher
        if watchdog is not None:
            left = ended.survivors or 0
            if left > self.limits.processes and not ended.cancelled:  # started between two looks of the watchdog
                ended.stopped = ended.stopped or "processes"
            ended.peak_memory = max(ended.peak_memory, watchdog.peak_memory)
            ended.peak_processes = max(1 if self.started else 0, left, watchdog.peak_processes)
            ended.cpu_s = max(ended.cpu_s, watchdog.cpu_s)

    def _close(self) -> None:
        self.selector.close()
        with contextlib.suppress(AttributeError):
            self.control.close()
        for handle in (*self.handles, *self.passed):
            os.close(handle)
        if self.group is not None:
            self.group.remove()
