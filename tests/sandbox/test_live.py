"""Commands that are talked with while they run: their pipes end on both sides, and nobody else keeps them."""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import pytest

from fairwitness.contracts.common.sandbox import End
from fairwitness.errors import UsageError
from fairwitness.sandbox.runner import Attached
from fairwitness.sandbox.scripted import Reply
from sandbox.kit import REAL, Bench, Live, eventually, expect, is_over, living, said

pytestmark = [pytest.mark.req("X3"), pytest.mark.req("A15")]

real = pytest.mark.parametrize("bench", REAL, indirect=True)
in_namespaces = pytest.mark.parametrize("bench", ["ns"], indirect=True)

_NOTHING = f"sha256:{hashlib.sha256(b'').hexdigest()}"
_ECHO = """
import sys
print("ready", file=sys.stderr, flush=True)
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(line.upper())
    sys.stdout.buffer.flush()
print("over", file=sys.stderr)
"""


def _echo(stdin: BinaryIO, stdout: BinaryIO) -> None:
    for line in stdin:
        stdout.write(line.upper())
        stdout.flush()


_PLAYED = Reply(talks=_echo, stderr=b"ready\nover\n")


def _live(bench: Bench, program: str = _ECHO, **options: object) -> Live:
    return Live(bench, *bench.python_words(program), plays=_PLAYED, **options)


def test_frames_of_any_size_go_to_and_fro(bench: Bench) -> None:
    with _live(bench) as live:
        for number in range(10):
            frame = json.dumps({"id": number, "text": "x" * 200_000}).encode() + b"\n"
            live.say(frame)
            assert live.hear(len(frame)) == frame.upper()
        live.close_stdin()
        assert live.hear_out() == b""
        finished = expect(live.finished(), End.OK)
    assert finished.stderr == b"ready\nover\n"


def test_what_was_said_to_the_caller_is_not_captured(bench: Bench) -> None:
    with _live(bench, limits={"output_killed": 1000}) as live:
        live.say(b"x" * 99_999 + b"\n")
        assert len(live.hear(100_000)) == 100_000
        live.close_stdin()
        finished = expect(live.finished(), End.OK)
    stream = finished.result.stdout
    assert (finished.stdout, stream.total, stream.sha256, stream.truncated) == (b"", 0, _NOTHING, False)
    assert finished.result.stderr.total == len(b"ready\nover\n")


def test_a_command_ends_when_the_caller_has_nothing_more_to_say(bench: Bench) -> None:
    with _live(bench) as live:
        live.close_stdin()
        result = expect(live.finished(), End.OK).result
        assert live.hear_out() == b""
    assert result.exit_code == 0


def test_cancelling_ends_a_command_that_waits_for_a_word(bench: Bench) -> None:
    with _live(bench) as live:
        live.say(b"hello\n")
        assert live.hear(6) == b"HELLO\n"
        live.cancel.set()
        finished = live.finished()
        assert (finished.result.end, finished.result.exit_code) == (End.CANCELLED, None), said(finished)
        assert live.hear_out() == b""
        with pytest.raises(BrokenPipeError):
            live.say(b"anybody?")


@real
def test_who_ignores_everything_is_gone_after_cancelling(bench: Bench) -> None:
    mark = f"36{os.getpid()}.5"
    program = (
        "import os, signal, sys, time\n"
        "for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE): "
        "signal.signal(number, signal.SIG_IGN)\n"
        "sys.stdin.buffer.read()\n"
        "os.write(1, b'deaf')\n"
        f"time.sleep(float({mark!r}))\n"
    )
    with _live(bench, program) as live:
        live.close_stdin()
        assert live.hear(4) == b"deaf"
        assert living(mark)
        live.cancel.set()
        assert live.finished().result.end is End.CANCELLED
        assert living(mark) == []
        assert live.hear_out() == b""


@real
def test_when_it_has_ended_both_ends_are_told(bench: Bench) -> None:
    with Live(bench, "/bin/sh", "-c", "echo last; exit 3") as live:
        assert live.hear_out() == b"last\n"
        assert eventually(lambda: is_over(live.stdin))
        with pytest.raises(BrokenPipeError):
            live.say(b"x")
        assert live.finished().result.exit_code == 3


@real
def test_nobody_but_the_command_holds_its_streams(bench: Bench) -> None:
    """So that closing one of them is heard at once, while it lives."""
    with Live(bench, "/bin/sh", "-c", "exec <&- >&-; sleep 600") as live:
        assert live.hear_out() == b""
        assert eventually(lambda: is_over(live.stdin))
        live.cancel.set()
        assert live.finished().result.end is End.CANCELLED


@real
def test_a_daemon_keeps_no_stream_open_after_the_end(bench: Bench) -> None:
    mark = f"37{os.getpid()}.5"
    script = f"(setsid sh -c '(trap \"\" TERM HUP; sleep {mark}) &') & sleep 0.2; echo up; exit 0"
    with Live(bench, "/bin/sh", "-c", script) as live:
        assert live.hear(3) == b"up\n"
        finished = expect(live.finished(), End.OK)
        assert is_over(live.stdin)
        assert live.hear_out() == b""
    assert finished.result.survivors_killed
    assert living(mark) == []


@real
def test_the_limits_hold_as_ever(bench: Bench) -> None:
    with _live(bench, limits={"wall_s": 0.5}) as live:
        assert live.hear_out() == b""
        assert (live.finished().result.end, live.finished().result.limit_hit) == (End.TIMEOUT, "wall")
    with Live(bench, "/bin/sh", "-c", "yes >&2", limits={"output_killed": 1 << 20}) as live:
        assert live.hear_out() == b""
        assert (live.finished().result.end, live.finished().result.limit_hit) == (End.LIMIT, "output")


@real
def test_a_command_may_open_its_streams_by_name(bench: Bench) -> None:
    with Live(bench, "/bin/sh", "-c", "cat /dev/stdin > /dev/stdout") as live:
        live.say(b"by name")
        live.close_stdin()
        assert live.hear_out() == b"by name"
        expect(live.finished(), End.OK)


@real
def test_streams_that_do_not_wait_are_made_to(bench: Bench) -> None:
    """As every program expects of its own; the caller's ends stay as they were."""
    theirs, mine = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    heard, answers = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(bench.run, "/bin/cat", attached=Attached(theirs, answers))
        try:
            assert not eventually(coming.done, 0.3)  # it waits
            assert not os.get_blocking(mine)
        finally:
            os.close(mine)
        expect(coming.result(), End.OK)
    assert os.read(heard, 9) == b""
    os.close(heard)


@real
def test_parallel_conversations_do_not_meet(bench: Bench) -> None:
    def talk(number: int) -> bytes:
        words = f"{number}\n".encode() * 20_000
        with Live(bench, "/bin/cat") as live, ThreadPoolExecutor(1) as pool:
            hearing = pool.submit(live.hear, len(words))
            live.say(words)
            heard = hearing.result()
            live.close_stdin()
            expect(live.finished(), End.OK)
            return heard

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(talk, range(12)))
    assert answers == [f"{number}\n".encode() * 20_000 for number in range(12)]


def test_where_nothing_is_run_both_ends_are_told(bench: Bench) -> None:
    missing = {"worktree": str(bench.outside / "none")}
    for options in (missing, {"guards": ("/proc",)}, {"read": (str(bench.outside / "pipe"),)}):
        (bench.outside / "pipe").unlink(missing_ok=True)
        os.mkfifo(bench.outside / "pipe")
        with Live(bench, "/bin/cat", plays=_PLAYED, **options) as live:
            assert live.hear_out() == b""
            assert is_over(live.stdin)
            assert live.finished().result.end is End.SANDBOX_ERROR
    with Live(bench, "/bin/no-such-program", plays=_PLAYED) as live:
        assert live.hear_out() == b""
        assert live.finished().result.end is End.SANDBOX_ERROR
        assert is_over(live.stdin)


@real
def test_a_program_that_cannot_be_started_leaves_both_ends_told(bench: Bench) -> None:
    with Live(bench, "/etc/hostname") as live:
        assert live.hear_out() == b""
        assert "/etc/hostname" in str(live.finished().result.sandbox_error)
        assert is_over(live.stdin)


@pytest.fixture
def pipes() -> Iterator[tuple[int, int, int, int]]:
    """Theirs to read from, ours to say, ours to hear, theirs to answer; ours are closed afterwards."""
    theirs, mine = os.pipe()
    heard, answers = os.pipe()
    yield theirs, mine, heard, answers
    os.close(mine)
    os.close(heard)


def test_bytes_and_a_pipe_cannot_both_be_read(bench: Bench, pipes: tuple[int, int, int, int]) -> None:
    theirs, mine, heard, answers = pipes
    with pytest.raises(UsageError, match="either bytes or"):
        bench.run("/bin/cat", stdin=b"x", attached=Attached(theirs, answers), plays=_PLAYED)
    assert is_over(mine)
    assert is_over(heard)


def test_what_cannot_be_meant_is_refused_and_still_let_go(bench: Bench, pipes: tuple[int, int, int, int]) -> None:
    theirs, mine, heard, answers = pipes
    with pytest.raises(UsageError, match="absolute"):
        bench.run("cat", attached=Attached(theirs, answers), plays=_PLAYED)
    assert is_over(mine)
    assert is_over(heard)


@pytest.mark.parametrize("wrong", ["turned round", "a file", "a socket", "twice", "closed"])
def test_only_pipes_are_attached_each_in_its_direction(bench: Bench, wrong: str) -> None:
    reads, writes = os.pipe()
    other = 0
    if wrong == "turned round":
        attached = Attached(writes, reads)
    elif wrong == "a file":
        (bench.outside / "file").touch()
        other = os.open(bench.outside / "file", os.O_RDWR)
        os.close(writes)
        attached = Attached(reads, other)
    elif wrong == "a socket":
        near, far = socket.socketpair()
        far.close()
        other = near.detach()
        os.close(reads)
        attached = Attached(other, writes)
    elif wrong == "twice":
        os.close(writes)
        attached = Attached(reads, reads)
    else:
        other = os.open(os.devnull, os.O_RDONLY)
        os.close(other)
        os.close(writes)
        attached = Attached(reads, other)
    with pytest.raises(UsageError) as refused:
        bench.run("/bin/cat", attached=attached, plays=_PLAYED)
    assert refused.value.next_step
    for handle in {attached.stdin, attached.stdout}:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(handle)


@real
def test_no_handle_is_left_open(bench: Bench) -> None:
    expect(bench.run("/bin/true"), End.OK)  # whatever is made once is made now
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(3):
        with _live(bench) as live:
            live.say(b"x\n")
            assert live.hear(2) == b"X\n"
            if number:
                live.cancel.set()
            else:
                live.close_stdin()
            live.finished()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_caller_whose_own_streams_are_closed_can_attach_others(open_folder: Path) -> None:
    """Then pipes get the numbers of standard streams, and must not be taken for them."""
    for name in ("tree", "outside"):
        (open_folder / name).mkdir()
    program = (
        "import os\n"
        "from pathlib import Path\n"
        "from sandbox.kit import Bench, Live\n"
        f"folder = Path({str(open_folder)!r})\n"
        "bench = Bench('none', folder / 'tree', folder / 'outside')\n"
        "os.close(0); os.close(1)\n"
        "live = Live(bench, '/bin/cat')\n"
        "live.say(b'hello'); live.close_stdin()\n"
        "assert live.attached.stdin == 0 and live.hear_out() == b'hello'\n"
        "assert live.finished().result.exit_code == 0\n"
        "os.write(2, b'fine')\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=False, timeout=60)
    assert done.stderr == b"fine"


def test_a_script_without_a_conversation_says_so(tmp_path: Path) -> None:
    bench = Bench("scripted", tmp_path, tmp_path)
    with Live(bench, "/bin/cat", plays=Reply()) as live:
        assert live.hear_out() == b""
        assert "has no conversation" in str(live.finished().result.sandbox_error)
    result = bench.run("/bin/cat", plays=_PLAYED).result
    assert "no program is attached" in str(result.sandbox_error)


def test_a_script_may_hang_up_on_its_caller(tmp_path: Path) -> None:
    def rude(stdin: BinaryIO, stdout: BinaryIO) -> None:
        stdout.write(stdin.read(3))

    bench = Bench("scripted", tmp_path, tmp_path)
    with Live(bench, "/bin/cat", plays=Reply(talks=rude, exit_code=1)) as live:
        live.say(b"abcdef")
        assert live.hear_out() == b"abc"
        assert live.finished().result.exit_code == 1


_AGENT = """
const fs = require('fs'), net = require('net'), readline = require('readline');
const home = process.env.HOME;
const { Worker } = require('worker_threads');
fs.mkdirSync(home + '/.config/agent', { recursive: true });
fs.writeFileSync(home + '/.config/agent/lock', String(process.pid), { flag: 'wx' });
let seen = 0, workers = 0;
fs.watch(home, () => { seen += 1; });
const server = net.createServer(caller => caller.end('from a socket')).listen(home + '/agent.sock', () => {
  net.connect(home + '/agent.sock').on('data', words => say({ socket: String(words) }));
});
for (let turn = 0; turn < 16; turn += 1)
  new Worker("require('worker_threads').parentPort.postMessage(1); setInterval(() => {}, 1000)", { eval: true })
    .on('message', () => { workers += 1; if (workers === 16) say({ workers }); });
const memory = new WebAssembly.Memory({ initial: 1, maximum: 65536 });
function say(words) { process.stdout.write(JSON.stringify(words) + '\\n'); }
readline.createInterface({ input: process.stdin }).on('line', line => {
  fs.writeFileSync(home + '/' + line, 'x');
  const temporary = fs.mkdtempSync(require('os').tmpdir() + '/agent-');
  fs.writeFileSync(temporary + '/big', Buffer.alloc(64 << 20));
  setTimeout(() => say({ heard: line, seen: seen > 0, home: require('os').homedir() === home }), 100);
}).on('close', () => process.exit(0));
"""


@in_namespaces
def test_an_agent_on_node_has_a_home_sockets_locks_watches_and_workers(bench: Bench) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    home = bench.outside / "home"
    home.mkdir()
    prefix = str(Path(node).resolve().parent.parent)
    options = {"read": (prefix,), "write": (str(home),), "env": {"HOME": str(home)}}
    with Live(bench, str(Path(node).resolve()), "-e", _AGENT, **options) as live:
        live.say(b"a-file\n")
        lines = [live.hear_line() for _ in range(3)]
        live.close_stdin()
        finished = expect(live.finished(), End.OK)
    assert {key: value for line in lines for key, value in json.loads(line).items()} == {
        "socket": "from a socket", "workers": 16, "heard": "a-file", "seen": True, "home": True,
    }  # fmt: skip
    assert finished.result.violations == ()
    assert (home / "a-file").read_text() == "x"  # a home that was given stays


@in_namespaces
def test_an_agent_may_run_commands_in_terminals_of_its_own(bench: Bench) -> None:
    program = (
        "import os, pty\n"
        "for _ in range(2):\n"
        "    pid, terminal = pty.fork()\n"
        "    if pid == 0: os.execv('/bin/sh', ['sh', '-c', 'tty; [ -t 0 ] && echo up > /dev/tty'])\n"
        "    try:\n"
        "        while piece := os.read(terminal, 999): os.write(1, piece)\n"
        "    except OSError: pass\n"
        "    os.waitpid(pid, 0)\n"
    )
    finished = expect(bench.python(program), End.OK)
    assert finished.stdout.split() == [b"/dev/pts/0", b"up", b"/dev/pts/1", b"up"]
    assert finished.result.violations == ()


@real
def test_stopping_itself_does_not_save_a_command_from_being_cancelled(bench: Bench) -> None:
    with _live(bench, f"import os\nos.write(1, b'x')\nos.kill(os.getpid(), {int(signal.SIGSTOP)})") as live:
        assert live.hear(1) == b"x"
        live.cancel.set()
        assert live.finished().result.end is End.CANCELLED
        assert live.hear_out() == b""
