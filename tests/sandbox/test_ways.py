"""The only way out: a port on a command's own loopback that leads to one socket of this machine, and nowhere else."""

import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fairwitness.contracts.common.sandbox import End, Network, Way
from fairwitness.errors import UsageError
from fairwitness.sandbox import forwarder
from fairwitness.sandbox.scripted import Reply
from sandbox.escapes.listeners import Listeners
from sandbox.escapes.starting import IDENTITIES, Unavailable, as_user, kernel_refuses, python
from sandbox.kit import Bench, Live, eventually, expect, living

pytestmark = [pytest.mark.req("X3"), pytest.mark.req("A15")]

in_namespaces = pytest.mark.parametrize("bench", ["ns"], indirect=True)
elsewhere = pytest.mark.parametrize("bench", ["ll", "uid", "none", "scripted"], indirect=True)

PORT = 4711
_TOO_MUCH = 512 << 20
"""More than any kernel keeps for one connection."""
_CALL = f"""
import hashlib, os, socket, sys, threading, time
def call(port={PORT}, timeout=50):
    return socket.create_connection(('127.0.0.1', port), timeout)
def hear_out(caller):
    pieces = []
    while piece := caller.recv(1 << 16): pieces.append(piece)
    return b''.join(pieces)
"""

Answer = Callable[[socket.socket], None]


class Server:
    """Somebody outside who answers at a socket, each caller in a thread of its own."""

    def __init__(self, path: Path, answer: Answer, *, backlog: int = 128) -> None:
        self.path = path
        self.calls = 0
        self.errors: list[str] = []
        self._answer = answer
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(backlog)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                self.calls += 1
                threading.Thread(target=self._one, args=(caller,), daemon=True).start()

    def _one(self, caller: socket.socket) -> None:
        with caller:
            try:
                self._answer(caller)
            except OSError as error:
                self.errors.append(type(error).__name__)

    def close(self) -> None:
        """Nobody answers any more; the socket's name stays."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextmanager
def serving(bench: Bench, answer: Answer, **options: Any) -> Iterator[Server]:
    server = Server(bench.outside / "gateway", answer, **options)
    try:
        yield server
    finally:
        server.close()


def _hear_out(caller: socket.socket) -> bytes:
    pieces = []
    while piece := caller.recv(1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


def echo(caller: socket.socket) -> None:
    """Says the same again, as it comes."""
    while piece := caller.recv(1 << 16):
        caller.sendall(piece)


def _ways(bench: Bench, *, port: int = PORT, name: str = "gateway") -> dict[str, Any]:
    return {"ways": (Way(port=port, socket=str(bench.outside / name)),)}


@in_namespaces
@pytest.mark.parametrize("network", [Network.OFF, Network.LOOPBACK])
def test_a_command_reaches_the_socket_through_its_own_loopback(bench: Bench, network: Network) -> None:
    program = _CALL + "caller = call(); caller.sendall(b'hello'); caller.shutdown(1); print(hear_out(caller))"
    with serving(bench, echo) as server:
        finished = expect(bench.python(program, network=network, **_ways(bench)), End.OK)
    assert finished.stdout == b"b'hello'\n"
    assert server.calls == 1
    assert (finished.result.survivors_killed, finished.result.peak_processes) == (0, 1)
    assert finished.result.violations == ()


@in_namespaces
def test_each_port_leads_to_its_own_socket(bench: Bench) -> None:
    servers = [
        Server(bench.outside / name, lambda caller, name=name: caller.sendall(name.encode()))  # type: ignore[misc]  # a default in a lambda
        for name in ("one", "two")
    ]
    program = (
        _CALL + "print(hear_out(call(4001)), hear_out(call(4002)))\ntry: call(4003)\nexcept OSError as e: print(e)"
    )
    ways = [Way(port=port, socket=str(server.path)) for port, server in zip((4001, 4002), servers, strict=True)]
    finished = expect(bench.python(program, ways=tuple(ways)), End.OK)
    assert finished.stdout == b"b'one' b'two'\n[Errno 111] Connection refused\n"


@in_namespaces
def test_twenty_at_once_carry_five_megabytes_each_in_both_directions(bench: Bench) -> None:
    def answer(caller: socket.socket) -> None:
        caller.sendall(hashlib.sha256(heard := _hear_out(caller)).digest() + heard[::-1])

    program = _CALL + (
        "answers = []\n"
        "def one(number):\n"
        "    words = hashlib.shake_128(bytes([number])).digest(5 << 20)\n"
        "    caller = call(); caller.sendall(words); caller.shutdown(socket.SHUT_WR)\n"
        "    heard = hear_out(caller)\n"
        "    answers.append(heard == hashlib.sha256(words).digest() + words[::-1])\n"
        "callers = [threading.Thread(target=one, args=(number,)) for number in range(20)]\n"
        "for caller in callers: caller.start()\n"
        "for caller in callers: caller.join()\n"
        "print(sum(answers))\n"
    )
    with serving(bench, answer) as server:
        finished = expect(bench.python(program, **_ways(bench)), End.OK)
    assert (finished.stdout, server.calls, server.errors) == (b"20\n", 20, [])


@in_namespaces
def test_words_go_on_as_they_come(bench: Bench) -> None:
    """Each side says one byte only after it has heard one: whoever kept any back would stop both."""

    def answer(caller: socket.socket) -> None:
        for number in range(200):
            caller.sendall(bytes([number]))
            assert caller.recv(1) == bytes([number])

    program = _CALL + (
        "caller = call()\n"
        "for number in range(200):\n"
        "    assert caller.recv(9) == bytes([number])\n"
        "    caller.sendall(bytes([number]))\n"
        "print('all')\n"
    )
    with serving(bench, answer) as server:
        finished = expect(bench.python(program, **_ways(bench)), End.OK)
    assert (finished.stdout, server.errors) == (b"all\n", [])


@in_namespaces
def test_either_side_may_have_said_its_last_while_the_other_goes_on(bench: Bench) -> None:
    def answer(caller: socket.socket) -> None:
        caller.sendall(b"first")
        caller.shutdown(socket.SHUT_WR)
        server_heard.append(_hear_out(caller))

    server_heard: list[bytes] = []
    program = _CALL + (
        "caller = call()\nprint(hear_out(caller))\nfor _ in range(50): caller.sendall(b'x' * 10_000)\ncaller.close()\n"
    )
    with serving(bench, answer):
        finished = expect(bench.python(program, **_ways(bench)), End.OK)
        assert finished.stdout == b"b'first'\n"
        assert eventually(lambda: server_heard == [b"x" * 500_000])


@in_namespaces
def test_who_is_slow_slows_down_who_is_quick(bench: Bench) -> None:
    """In both directions: what nobody takes is not piled up on the way, so that at some point no more is taken."""
    may_read = threading.Event()
    given: list[int] = []

    def answer(caller: socket.socket) -> None:
        pushed = 0
        caller.settimeout(0.7)
        with suppress(TimeoutError):
            while pushed < _TOO_MUCH:
                pushed += caller.send(b"x" * 65_536)
        given.append(pushed)
        caller.settimeout(None)
        caller.shutdown(socket.SHUT_WR)
        may_read.wait(50)
        given.append(len(_hear_out(caller)))

    program = _CALL + (
        "caller, pushed = call(timeout=0.7), 0\n"
        "try:\n"
        f"    while pushed < {_TOO_MUCH}: pushed += caller.send(b'y' * 65536)\n"
        "except TimeoutError: pass\n"
        "print('stalled', flush=True); input()\n"
        "caller.settimeout(50); caller.shutdown(socket.SHUT_WR)\n"
        "print(pushed, len(hear_out(caller)), flush=True)\n"
        "input()\n"
    )
    with serving(bench, answer), Live(bench, *bench.python_words(program), **_ways(bench)) as live:
        assert live.hear_line() == b"stalled\n"
        assert eventually(lambda: len(given) == 1)
        live.say(b"\n")
        line = live.hear_line()
        may_read.set()
        assert eventually(lambda: len(given) == 2)
        live.say(b"\n")
        expect(live.finished(), End.OK)
    pushed, heard = map(int, line.split())
    assert (heard, pushed) == (given[0], given[1])
    assert 0 < pushed < _TOO_MUCH
    assert 0 < heard < _TOO_MUCH


@in_namespaces
def test_an_answer_that_comes_before_the_question_was_heard_arrives(bench: Bench) -> None:
    """A server that refuses closes with the rest unread; what it said must not be lost with that."""

    def answer(caller: socket.socket) -> None:
        caller.recv(10)
        caller.sendall(b"refused" * 1000)

    program = _CALL + (
        "caller = call()\n"
        "try:\n"
        "    for _ in range(400): caller.sendall(b'x' * 10_000)\n"
        "except OSError as error: print(error)\n"
        "print(hear_out(caller) == b'refused' * 1000)\n"
    )
    with serving(bench, answer):
        assert expect(bench.python(program, **_ways(bench)), End.OK).stdout == b"True\n"


@in_namespaces
def test_a_server_without_room_is_waited_for(bench: Bench) -> None:
    program = _CALL + (
        "heard = []\n"
        "def one():\n"
        "    caller = call(); caller.sendall(b'x'); caller.shutdown(1); heard.append(hear_out(caller))\n"
        "callers = [threading.Thread(target=one) for _ in range(20)]\n"
        "for caller in callers: caller.start()\n"
        "for caller in callers: caller.join()\n"
        "print(heard.count(b'x'))\n"
    )
    path = bench.outside / "gateway"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(0)

        def serve() -> None:
            with suppress(OSError):
                while True:
                    time.sleep(0.02)
                    with listener.accept()[0] as caller:
                        echo(caller)

        threading.Thread(target=serve, daemon=True).start()
        assert expect(bench.python(program, **_ways(bench)), End.OK).stdout == b"20\n"
        listener.shutdown(socket.SHUT_RDWR)


@in_namespaces
def test_more_callers_than_there_is_room_for_come_one_after_another(bench: Bench) -> None:
    program = _CALL + (
        f"callers = [call() for _ in range({forwarder.MOST})]\n"
        "for caller in callers:\n"
        "    caller.sendall(b'x'); assert caller.recv(1) == b'x'\n"
        "late = [call() for _ in range(60)]\n"
        "for caller in late: caller.sendall(b'y')\n"
        "late[0].settimeout(0.3)\n"
        "try: print(late[0].recv(1))\n"
        "except TimeoutError: print('waits')\n"
        "for caller in callers: caller.close()\n"
        "for caller in late:\n"
        "    caller.settimeout(30); assert caller.recv(1) == b'y'\n"
        "print('served')\n"
    )
    with serving(bench, echo) as server:
        finished = expect(bench.python(program, **_ways(bench)), End.OK)
    assert finished.stdout == b"waits\nserved\n"
    assert server.calls == forwarder.MOST + 60


@in_namespaces
def test_when_the_server_goes_away_the_command_is_told(bench: Bench) -> None:
    """In the middle by the end of the words, and afterwards by a reset: never by an answer that looks empty."""
    program = _CALL + (
        "caller = call(); caller.sendall(b'x'); print(hear_out(caller), flush=True); caller.close()\n"
        "input()\n"
        "for _ in range(3):\n"
        "    try: print(call().recv(9), flush=True)\n"
        "    except ConnectionError as error: print(type(error).__name__, flush=True)\n"
    )
    with (
        serving(bench, lambda caller: caller.sendall(caller.recv(1))) as server,
        Live(bench, *bench.python_words(program), **_ways(bench)) as live,
    ):
        assert live.hear_line() == b"b'x'\n"
        server.close()
        server.path.unlink()
        live.say(b"\n")
        assert live.hear_out() == b"ConnectionResetError\n" * 3
        expect(live.finished(), End.OK)


@in_namespaces
def test_a_caller_that_dies_is_told_to_the_server(bench: Bench) -> None:
    ended: list[float] = []

    def answer(caller: socket.socket) -> None:
        with suppress(OSError):
            while True:
                caller.sendall(b"x" * 1000)
        ended.append(time.monotonic())

    program = _CALL + (
        "if os.fork() == 0:\n"
        "    call().recv(9); os.kill(os.getpid(), 9)\n"
        "os.wait(); print('dead', flush=True); input()\n"
    )
    with serving(bench, answer), Live(bench, *bench.python_words(program), **_ways(bench)) as live:
        assert live.hear(5) == b"dead\n"
        assert eventually(lambda: len(ended) == 1)
        live.say(b"\n")
        expect(live.finished(), End.OK)


@in_namespaces
def test_last_words_go_out(bench: Bench) -> None:
    heard: list[bytes] = []
    program = _CALL + "call().sendall(b'x' * (1 << 20)); os._exit(0)"
    with serving(bench, lambda caller: heard.append(_hear_out(caller))):
        expect(bench.python(program, **_ways(bench)), End.OK)
        assert eventually(lambda: bool(heard))
    assert heard == [b"x" * (1 << 20)]


@in_namespaces
def test_last_words_that_nobody_takes_keep_nobody_waiting(bench: Bench) -> None:
    over = threading.Event()
    program = _CALL + "call().sendall(b'x' * (1 << 20)); os._exit(0)"
    with serving(bench, lambda _: (over.wait(60), None)[1]):
        began = time.monotonic()
        expect(bench.python(program, **_ways(bench)), End.OK)
        assert time.monotonic() - began < 20
        over.set()


@in_namespaces
@pytest.mark.parametrize("how", ["cancelled", "too long", "by itself"])
def test_with_the_command_its_way_ends(bench: Bench, how: str) -> None:
    left: list[bytes] = []

    def answer(caller: socket.socket) -> None:
        caller.sendall(b"up")
        left.append(_hear_out(caller))

    mark = f"38{os.getpid()}.5"
    program = _CALL + f"c = call(); c.sendall(b'up'); os.write(1, c.recv(2)); time.sleep(float({mark!r}))"
    if how == "by itself":
        program = program.replace("time.sleep(", "(")
    with serving(bench, answer):
        limits = {"wall_s": 2.0 if how == "too long" else 60.0}
        with Live(bench, *bench.python_words(program), limits=limits, **_ways(bench)) as live:
            assert live.hear(2) == b"up"
            if how == "cancelled":
                live.cancel.set()
            end = live.finished().result.end
        assert end is {"cancelled": End.CANCELLED, "too long": End.TIMEOUT, "by itself": End.OK}[how]
        assert eventually(lambda: left == [b"up"])
    assert living(mark) == []


@elsewhere
def test_without_a_network_of_its_own_there_is_no_way_and_nothing_runs(bench: Bench) -> None:
    with serving(bench, echo):
        result = bench.shell("touch ran", plays=Reply(files={"ran": b""}), **_ways(bench)).result
    assert result.end is End.SANDBOX_ERROR
    assert "only tier ns" in str(result.sandbox_error)
    assert not (bench.worktree / "ran").exists()


@in_namespaces
def test_a_way_that_cannot_be_kept_runs_nothing(bench: Bench) -> None:
    (bench.outside / "file").touch()
    os.mkfifo(bench.outside / "pipe")
    with serving(bench, echo), _listening(bench.worktree / "inner"):
        (bench.worktree / "link").symlink_to(bench.outside / "gateway")
        for options, why in (
            (_ways(bench, name="none"), "there is no socket"),
            (_ways(bench, name="file"), "there is no socket"),
            (_ways(bench, name="pipe"), "there is no socket"),
            (_ways(bench) | {"network": Network.OPEN}, "open network"),
            (_ways(bench) | {"write": (str(bench.outside),)}, "something else in its place"),
            ({"ways": (Way(port=PORT, socket=f"{bench.worktree}/inner"),)}, "something else in its place"),
        ):
            result = bench.shell("touch ran", **options).result
            assert result.end is End.SANDBOX_ERROR
            assert why in str(result.sandbox_error)
        assert not (bench.worktree / "ran").exists()
        # a link is only another name for where it leads
        expect(bench.shell("touch ran", ways=(Way(port=PORT, socket=f"{bench.worktree}/link"),)), End.OK)


@contextmanager
def _listening(path: Path) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        yield


def test_ways_that_cannot_be_meant_are_refused(bench: Bench) -> None:
    way = Way(port=PORT, socket="/a")
    with pytest.raises(UsageError, match="same port"):
        bench.run("/bin/true", ways=(way, Way(port=PORT, socket="/b")), plays=Reply())
    with pytest.raises(UsageError, match="absolute"):
        bench.run("/bin/true", ways=(Way(port=PORT, socket="a"),), plays=Reply())
    for port in (0, 80, 1023, 65_536, True, "4000"):
        with pytest.raises(ValidationError):
            Way.model_validate({"port": port, "socket": "/a"})


@in_namespaces
def test_the_record_says_the_port_and_not_where_the_socket_lay(bench: Bench) -> None:
    with serving(bench, echo), _listening(bench.outside / "other"):
        plain = bench.run("/bin/true").result.policy_sha256
        with_way = bench.run("/bin/true", **_ways(bench)).result.policy_sha256
        other_socket = bench.run("/bin/true", **_ways(bench, name="other")).result.policy_sha256
        other_port = bench.run("/bin/true", **_ways(bench, port=PORT + 1)).result.policy_sha256
    assert with_way == other_socket
    assert len({plain, with_way, other_port}) == 3


_ESCAPES = """
import ctypes, json, os, signal, socket, sys
orders = json.loads(sys.argv[1])
said, libc, supervisor = [], ctypes.CDLL(None, use_errno=True), os.getppid()

def attempt(name, action, *words):
    try: action(*words)
    except OSError as error: said.append(f'{name}: {type(error).__name__}')
    else: said.append(f'{name}: DONE')

def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as caller:
        caller.settimeout(2); caller.connect(address); caller.send(orders['scene'].encode())

def checked(result):
    if result: raise OSError(ctypes.get_errno(), 'refused')

def listen(address, *options):
    thief = socket.socket()
    for option in options: thief.setsockopt(socket.SOL_SOCKET, option, 1)
    thief.bind((address, orders['port'])); thief.listen()

def answers(caller, word):
    caller.sendall(word)
    return caller.recv(1) == word

def read(name):
    with open(f'/proc/{supervisor}/{name}', 'rb') as file: file.read(1)

held = socket.create_connection(('127.0.0.1', orders['port']))
assert answers(held, b'1')

attempt('tcp of the machine', connect, socket.AF_INET, ('127.0.0.1', orders['tcp']))
attempt('outside', connect, socket.AF_INET, ('192.0.2.1', 80))
attempt('outside by datagrams', connect, socket.AF_INET, ('198.51.100.1', 9), socket.SOCK_DGRAM)
attempt('outside by IPv6', connect, socket.AF_INET6, ('2001:db8::1', 80))
attempt('an abstract socket', connect, socket.AF_UNIX, chr(0) + orders['abstract'])
attempt('another socket', connect, socket.AF_UNIX, orders['other'])
attempt('the socket itself', connect, socket.AF_UNIX, orders['gateway'])
for number in range(64):
    attempt(f'handle {number}', connect, socket.AF_UNIX, f'/proc/{supervisor}/fd/{number}')

mine = socket.socket(socket.AF_UNIX); mine.bind('mine'); mine.listen()
gateway = orders['gateway']
attempt('unlink', os.unlink, gateway)
attempt('rename over', os.rename, 'mine', gateway)
attempt('link over', os.link, 'mine', gateway)
attempt('chmod', os.chmod, gateway, 0)
attempt('mount over', lambda: checked(libc.mount(b'mine', gateway.encode(), None, 4096, None)))
attempt('listen there', listen, '127.0.0.1')
attempt('listen there too', listen, '127.0.0.1', socket.SO_REUSEADDR, socket.SO_REUSEPORT)
attempt('listen everywhere', listen, '0.0.0.0', socket.SO_REUSEADDR, socket.SO_REUSEPORT)

for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGUSR1):
    attempt(f'signal {number}', os.kill, supervisor, number)
    attempt(f'signal {number} to its thread', lambda: checked(libc.tgkill(supervisor, supervisor, number)))
    attempt(f'signal {number} to all', os.kill, -1, number)
for name in ('mem', 'environ', 'maps', *(f'fd/{number}' for number in range(16))):
    attempt(name, read, name)
    attempt(f'look at {name}', os.readlink, f'/proc/{supervisor}/{name}')
attempt('ptrace', lambda: checked(libc.ptrace(16, supervisor, 0, 0)))

assert answers(held, b'2')
assert answers(socket.create_connection(('127.0.0.1', orders['port'])), b'3')
print('\\n'.join([*said, 'the way works']))
"""


def escape(folder: Path) -> None:
    """Run as whoever it is: a command with a way tries everything else, and what came of it is printed."""
    tree, outside = folder / "tree", folder / "outside"
    tree.mkdir()
    outside.mkdir()
    bench = Bench("ns", tree, outside)
    listeners = Listeners()
    scene = "a command that got out"
    try:
        with serving(bench, echo) as server:
            orders = {"scene": scene, "port": PORT, "tcp": listeners.tcp, "abstract": listeners.abstract}
            orders |= {"other": f"{listeners.file}.stream", "gateway": str(server.path)}
            words = (*bench.python_words(_ESCAPES), json.dumps(orders))
            finished = bench.run(*words, **_ways(bench))
            is_socket = server.path.is_socket()
        heard = listeners.heard(scene, patience_s=0.5)
    finally:
        listeners.close()
    result = finished.result
    facts = {
        "end": result.end, "error": result.sandbox_error, "stderr": finished.stderr.decode(), "heard": heard,
        "lines": finished.stdout.decode().splitlines(), "calls": server.calls, "is_socket": is_socket,
        "violations": [[one.path, one.blocked] for one in result.violations], "gateway": str(server.path),
    }  # fmt: skip
    sys.stdout.write(json.dumps(facts))


@pytest.mark.parametrize("who", IDENTITIES)
def test_no_other_way_is_found_and_this_one_cannot_be_spoiled(who: str, open_folder: Path) -> None:
    identity = IDENTITIES[who]
    open_folder.chmod(0o777)
    program = f"from pathlib import Path; from sandbox.test_ways import escape; escape(Path({str(open_folder)!r}))"
    try:
        interpreter = python(identity)
        if reason := kernel_refuses("ns", identity):
            raise Unavailable(reason)
        done = as_user(identity, [interpreter, "-P", "-c", program], timeout=100)
    except Unavailable as unavailable:
        pytest.skip(str(unavailable))
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    lines = facts["lines"]
    assert lines[-1:] == ["the way works"], facts
    assert [line for line in lines if "DONE" in line] == [], facts
    assert not facts["heard"]
    assert facts["calls"] == 2
    assert facts["is_socket"]
    assert facts["end"] == End.VIOLATION  # to try is one, even if nothing comes of it
    assert [facts["gateway"], True] in facts["violations"]
    assert all(blocked for _, blocked in facts["violations"])


@in_namespaces
def test_with_few_handles_callers_wait_for_each_other(bench: Bench) -> None:
    """The forwarder has as many as whoever runs the sandbox, and needs two for each caller."""
    program = _CALL + (
        "callers = [call() for _ in range(40)]\n"
        "for caller in callers: caller.sendall(b'x'); caller.shutdown(1)\n"
        "def one(caller): heard.append(hear_out(caller)); caller.close()\n"
        "heard, listening = [], [threading.Thread(target=one, args=(caller,)) for caller in callers]\n"
        "for one in listening: one.start()\n"
        "for one in listening: one.join()\n"
        "print(heard.count(b'x'))\n"
    )
    outer = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from sandbox.kit import Bench\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))\n"
        f"bench = Bench('ns', Path({str(bench.worktree)!r}), Path({str(bench.outside)!r}))\n"
        f"ways = ({{'port': {PORT}, 'socket': {str(bench.outside / 'gateway')!r}}},)\n"
        f"print(bench.python({program!r}, ways=ways))\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with serving(bench, echo) as server:
        done = subprocess.run([sys.executable, "-c", outer], env=env, capture_output=True, check=False, timeout=100)
    assert b"stdout=b'40\\n'" in done.stdout, done
    assert server.calls == 40
