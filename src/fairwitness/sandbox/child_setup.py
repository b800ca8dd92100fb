"""The launcher: confine a process, run the command in it, and kill everything the command leaves behind.

This file runs as a script, with the standard library alone: `python -I -S LAUNCHER CONTROL PLAN`. CONTROL is the
descriptor of a socket to the runner, PLAN the descriptor of a file that holds the plan. Both sides run the same
interpreter, so plan and messages use `marshal`: reading JSON would double the start time. For the same reason it
imports only the small C modules that `os`, `ctypes`, `signal` and `socket` are built on: those four would take a third
of every start.

The launcher remains the ancestor of every process that the command starts (of daemons too, as their sub-reaper). They
can neither inspect nor signal it. It reports the command's end only when none of them is alive.
"""

import _ctypes
import _signal  # type: ignore[import-not-found]  # it has no stubs
import _socket
import _stat
import marshal
import posix as os
import resource
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairwitness.sandbox.forwarder import Forwarder

LINUX = sys.platform == "linux"
STOP = b"s"
SUPERVISOR = 0x7FFFFFF1
"""Placeholder in a filter for the launcher's pid, known only once it runs; the next one is for its process group."""
SUPERVISOR_GROUP = 0x7FFFFFF2
_NUMBERS = {"x86_64": 317, "aarch64": 277}
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_PDEATHSIG, _DUMPABLE, _CAPBSET_DROP, _SUBREAPER, _NO_NEW_PRIVS, _CAP_AMBIENT = 1, 4, 24, 36, 38, 47
_NEW_LISTENER, _WAIT_KILLABLE = 8, 32
_CLEAR_S = 10.0


class _Long(_ctypes._SimpleCData):  # type: ignore[type-arg]  # generic only for the checker
    _type_ = "l"


class _Char(_ctypes._SimpleCData):  # type: ignore[type-arg]  # likewise
    _type_ = "c"


class _Function(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = _Long


class _Library:
    """The libraries that this process has loaded, the C library among them."""

    _handle = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None means the process itself


def _function(name: str) -> _Function:
    return _Function((name, _Library))  # type: ignore[arg-type]  # ctypes only needs the library's handle


def main() -> int:
    """Run the plan, report over the control socket and return the exit code."""
    control = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)
    plan = _read_plan(int(sys.argv[2]))
    if LINUX:
        _prctl(_DUMPABLE, 0)
        _prctl(_SUBREAPER, 1)
        _prctl(_PDEATHSIG, _signal.SIGTERM)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    _signal.set_wakeup_fd(wake)
    for number in (_signal.SIGCHLD, _signal.SIGTERM):
        _signal.signal(number, _wake)
    failure, tell = os.pipe()
    supervisor = os.getpid()
    try:
        forwarder = _forwarder(plan["ways"])  # before the command starts, which expects the ports to be open
    except OSError as error:
        _send(control, {"failed": f"cannot open a way out: {error}".encode()})
        return 1
    pid = os.fork()
    if pid == 0:
        _become(plan, control, tell, supervisor)
    for handle in (tell, *_attached(plan)):  # an open copy here would keep readers from seeing the end of the pipe
        os.close(handle)
    words = _read_all(failure)
    if words:
        _clear(pid)  # it has reported but may not have ended, and would still hold the command's streams
        _send(control, {"failed": words})
        return 1
    if plan["segments"]:
        _send_segments(control)
    _send(control, {"started": pid})
    status = _wait(pid, control, woken, forwarder)
    survivors = _clear(pid)
    if forwarder is not None and status is not None:
        forwarder.finish()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = {"status": status, "survivors": len(survivors - {pid}), "unkillable": _reap()}
    _send(control, {"ended": answer | {"cpu": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss}})
    return 0


def _wake(_number: int, _frame: object) -> None:
    """Do nothing: the handler exists so that Python writes a byte to the wake-up pipe."""


def _read_plan(handle: int) -> dict[str, object]:
    plan: dict[str, object] = marshal.loads(_read_all(handle))  # noqa: S302 -- written by the runner
    return plan


def _read_all(handle: int) -> bytes:
    pieces = []
    while piece := os.read(handle, 65536):
        pieces.append(piece)
    os.close(handle)
    return b"".join(pieces)


def _send(control: _socket.socket, message: dict[str, object], *handles: int) -> None:
    body = marshal.dumps(message)
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, b"".join(h.to_bytes(4, sys.byteorder) for h in handles))]
    control.sendmsg([len(body).to_bytes(4, "big") + body], rights if handles else [])


def _send_segments(control: _socket.socket) -> None:
    """Pass on the list of System V segments, which shows those of the namespace in which it was opened."""
    try:
        segments = os.open("/proc/sysvipc/shm", os.O_RDONLY)
    except OSError:
        return
    _send(control, {"segments": True}, segments)
    os.close(segments)


def _attached(plan: dict[str, object]) -> tuple[int, ...]:
    """Return the pipes that become the command's stdin and stdout, if any are attached."""
    handles = plan["attached"]
    return handles if isinstance(handles, tuple) else ()


def _forwarder(ways: object) -> "Forwarder | None":
    """Open the ways out; the forwarder's code is loaded only for commands that have one."""
    if not isinstance(ways, dict):
        return None
    scope: dict[str, type[Forwarder]] = {}
    exec(ways["code"], scope)  # noqa: S102 -- code of `forwarder`, from the runner
    return scope["Forwarder"](ways["ports"])


def _wait(pid: int, control: _socket.socket, woken: int, forwarder: "Forwarder | None") -> int | None:
    """Return the command's wait status, or None if the runner asked to stop or has died."""
    parent = os.getppid()
    sources = [control.fileno(), woken, *([] if forwarder is None else [forwarder.fileno()])]
    while True:
        while True:
            try:
                found, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if found == pid:
                return status
            if found == 0:
                break
        ready = select.select(sources, [], [], None if forwarder is None else forwarder.patience_s)[0]
        if control.fileno() in ready or os.getppid() != parent:
            return None
        if woken in ready:
            os.read(woken, 512)
        if forwarder is not None:
            forwarder.turn()


def _clear(first: int) -> set[int]:
    """Kill and reap all remaining processes; return the pids that were still alive."""
    found: set[int] = set()
    rounds = 0
    while _reap() and rounds < _CLEAR_S * 500:
        for pid in descendants(os.getpid()) if LINUX else [-first]:
            found.add(abs(pid))
            _kill(pid)
        rounds += 1
        select.select([], [], [], 0.0005 if rounds < 20 else 0.002)
    return found


def _reap() -> bool:
    """Reap every child that has ended; return whether other children remain."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return True
        except ChildProcessError:
            return False


def _kill(pid: int) -> None:
    try:
        os.kill(pid, _signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # some systems raise the second for a group of dead processes
        return


def descendants(root: int) -> list[int]:
    """Return the living descendants of a process; zombies are left out."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if LINUX else []:
        if name.isdigit():
            try:
                handle = os.open(f"/proc/{name}/stat", os.O_RDONLY)
                fields = os.read(handle, 1024).rpartition(b")")[2].split()
                os.close(handle)
            except OSError:
                continue
            if fields and fields[0] not in (b"Z", b"X"):
                parents.setdefault(int(fields[1]), []).append(int(name))
            elif fields:
                # a zombie's remaining threads may have living children
                parents.setdefault(int(fields[1]), []).append(-int(name))
    found: list[int] = []
    front = [root]
    while front:
        below = parents.get(front.pop(), [])
        front.extend(abs(pid) for pid in below)
        found.extend(pid for pid in below if pid > 0)
    return found


def _become(plan: dict[str, object], control: _socket.socket, tell: int, supervisor: int) -> None:
    """Turn this child process into the command; report any failure to the parent and run nothing in that case."""
    step = "start"
    try:
        argv, env, cwd = plan["argv"], plan["env"], plan["cwd"]
        assert isinstance(argv, list) and isinstance(env, dict) and isinstance(cwd, bytes)  # noqa: PT018
        os.setsid()
        os.umask(0o022)
        for number, handle in enumerate(_attached(plan)):
            os.dup2(handle, number)
            os.close(handle)
        _default_signals()
        step = "enter the memory group"
        if isinstance(plan["group"], int):
            os.write(plan["group"], b"0")
        step = "set the limits"
        _limit(plan["limits"])
        if LINUX and plan["confined"]:
            step = "give up privileges"
            _give_up(plan["uid"])
        if LINUX:
            _prctl(_PDEATHSIG, _signal.SIGKILL)
        if os.getppid() != supervisor:  # the launcher died before the parent-death signal was set
            os._exit(127)
        step = "enter the folder"
        os.chdir(cwd)
        if LINUX and plan["confined"]:
            step = "restrict files"
            _restrict(plan["landlock"])
            step = "filter system calls"
            _filter(plan, control, supervisor)
        os.dup2(tell, 3, inheritable=False)
        os.closerange(4, 1 << 16)
        tell = 3
        step = "run " + argv[0].decode(errors="replace")
        os.execve(argv[0], argv, env)
    except BaseException as error:  # noqa: BLE001 -- this process must not run on as a second supervisor
        os.write(tell, f"cannot {step}: {error}".encode(errors="backslashreplace"))
    os._exit(127)


def _default_signals() -> None:
    _signal.set_wakeup_fd(-1)
    for number in range(1, _signal.NSIG):
        try:
            _signal.signal(number, _signal.SIG_DFL)
        except (OSError, ValueError):  # SIGKILL and SIGSTOP, and the signals that the C library reserves
            continue
    _signal.pthread_sigmask(_signal.SIG_SETMASK, [])


def _limit(limits: object) -> None:
    assert isinstance(limits, list)
    for kind, soft, hard in limits:
        most = resource.getrlimit(kind)[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.setrlimit(kind, (soft, hard))


def _prctl(option: int, *values: int) -> int:
    return int(_function("prctl")(*(_Long(value) for value in (option, *values, 0, 0, 0, 0)[:5])))


def _call(number: int, *values: object) -> int:
    words = [_Long(value) if isinstance(value, int) else value for value in (number, *values)]
    result = int(_function("syscall")(*words))
    if result < 0:
        code = _ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _give_up(uid: object) -> None:
    """Drop all capabilities for good, and switch to another user if one is given."""
    _prctl(_CAP_AMBIENT, 4)
    capability = 0
    while _prctl(_CAPBSET_DROP, capability) == 0:
        capability += 1
    if isinstance(uid, int):
        for handle in (0, 1, 2):
            if _stat.S_ISFIFO(os.fstat(handle).st_mode):
                os.fchown(handle, uid, -1)  # otherwise the command could not reopen its output through /proc or /dev
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    header = (0x20080522).to_bytes(4, sys.byteorder) + bytes(4)
    if _function("capset")(header, bytes(24)) != 0:
        raise OSError(_ctypes.get_errno(), "capabilities stay")
    if _prctl(_NO_NEW_PRIVS, 1) != 0:
        raise OSError(_ctypes.get_errno(), "new privileges stay possible")


def _restrict(rules: object) -> None:
    if not isinstance(rules, dict):
        return
    words = [rules["fs"], rules["net"], rules["scope"]][: rules["words"]]
    attributes = b"".join(word.to_bytes(8, sys.byteorder) for word in words)
    ruleset = _call(_LANDLOCK_CREATE, attributes, len(attributes), 0)
    for path, access in rules["paths"]:
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # a path that does not exist needs no rule
        rule = access.to_bytes(8, sys.byteorder) + handle.to_bytes(4, sys.byteorder)
        _call(_LANDLOCK_ADD, ruleset, 1, rule, 0)
        os.close(handle)
    _call(_LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)


def _filter(plan: dict[str, object], control: _socket.socket, supervisor: int) -> None:
    """Install the filter, with a listener for the runner if it asked for one and the kernel supports it."""
    watched, bare = plan["watched"], plan["filter"]
    if isinstance(watched, bytes):
        for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
            try:
                listener = _install(watched, flags, supervisor)
            except OSError:
                continue
            _send(control, {"watched": True}, listener)
            return
    assert isinstance(bare, bytes)
    _install(bare, 0, supervisor)


def _install(program: bytes, flags: int, supervisor: int) -> int:
    names = {SUPERVISOR: supervisor, SUPERVISOR_GROUP: -supervisor & 0xFFFFFFFF}
    steps = [program[at : at + 8] for at in range(0, len(program), 8)]
    filled = b"".join(
        step[:4] + names.get(value, value).to_bytes(4, sys.byteorder)
        for step in steps
        for value in (int.from_bytes(step[4:], sys.byteorder),)
    )
    buffer = type("_Buffer", (_ctypes.Array,), {"_type_": _Char, "_length_": len(filled)})()
    buffer.raw = filled
    size = len(steps).to_bytes(8, sys.byteorder)
    return _call(_NUMBERS[os.uname().machine], 1, flags, size + _ctypes.addressof(buffer).to_bytes(8, sys.byteorder))


if __name__ == "__main__":
    os._exit(main())
