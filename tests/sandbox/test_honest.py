"""What honest test suites do works in every tier, as root and as a user, or the tier says that it cannot run it."""

import os
import stat
from pathlib import Path

import pytest

from fairwitness.contracts.common.sandbox import End
from sandbox.as_somebody import Somebody, somebody  # noqa: F401 -- a fixture
from support.fixtures import ROOT

pytestmark = [pytest.mark.req("A15"), pytest.mark.timeout(240)]

NO_NETWORK = frozenset({"ll", "uid"})
NO_PLACES = frozenset({"ll"})
HABITS: dict[str, tuple[str, frozenset[str]]] = {
    "a queue between processes": (
        "import multiprocessing as m\nq = m.Queue(); p = m.Process(target=q.put, args=(7,)); p.start()\n"
        "assert q.get(timeout=60) == 7; p.join(); assert p.exitcode == 0",
        frozenset(),
    ),
    "a pool of processes": (
        "import multiprocessing as m\nwith m.Pool(2) as pool: assert pool.map(abs, [-1, -2]) == [1, 2]",
        frozenset(),
    ),
    "an executor of processes": (
        "from concurrent.futures import ProcessPoolExecutor as P\n"
        "with P(2) as pool: assert list(pool.map(abs, [-1, -2])) == [1, 2]",
        frozenset(),
    ),
    "shared memory": (
        "from multiprocessing import shared_memory as s\n"
        "a = s.SharedMemory(create=True, size=4096); b = s.SharedMemory(a.name); a.buf[0] = 7\n"
        "assert b.buf[0] == 7; b.close(); a.close(); a.unlink()",
        frozenset(),
    ),
    "shared values and locks": (
        "import multiprocessing as m\nv = m.Value('i', 0); e = m.Event()\n"
        "def work(v, e):\n    with v.get_lock(): v.value += 1\n    e.set()\n"
        "p = m.Process(target=work, args=(v, e)); p.start(); assert e.wait(60); p.join(); assert v.value == 1",
        frozenset(),
    ),
    "a manager of shared objects": (
        "import multiprocessing as m\nwith m.Manager() as g: d = g.dict(a=1); assert d['a'] == 1",
        NO_NETWORK,
    ),
    "temporary files": (
        "import tempfile, os\n"
        "with tempfile.TemporaryDirectory() as d, tempfile.NamedTemporaryFile(dir=d) as f: f.write(b'x')\n"
        "h, p = tempfile.mkstemp(); os.close(h); os.unlink(p)",
        frozenset(),
    ),
    "a file in /tmp by name": (
        "import os\nopen('/tmp/fairwitness-honest', 'w').close(); os.unlink('/tmp/fairwitness-honest')",
        NO_PLACES,
    ),
    "a unix socket": (
        "import socket, threading\n"
        "s = socket.socket(socket.AF_UNIX); s.bind('sock'); s.listen()\n"
        "threading.Thread(target=lambda: s.accept()[0].sendall(b'hi')).start()\n"
        "c = socket.socket(socket.AF_UNIX); c.connect('sock'); assert c.recv(9) == b'hi'",
        NO_NETWORK,
    ),
    "a pair of sockets": (
        "import socket\na, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'",
        frozenset(),
    ),
    "asyncio": ("import asyncio\nassert asyncio.run(asyncio.sleep(0, 7)) == 7", frozenset()),
    "a server on the loopback": (
        "import http.server, threading, urllib.request\n"
        "s = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n"
        "threading.Thread(target=s.serve_forever, daemon=True).start()\n"
        "assert urllib.request.urlopen(f'http://127.0.0.1:{s.server_port}/').status == 200",
        NO_NETWORK,
    ),
    "sqlite": (
        "import sqlite3\nc = sqlite3.connect('x.db'); c.execute('pragma journal_mode=wal')\n"
        "c.execute('create table t (a)'); c.execute('insert into t values (1)'); c.commit(); c.execute('vacuum')\n"
        "assert c.execute('select a from t').fetchall() == [(1,)]; c.close()",
        frozenset(),
    ),
    "a subprocess": (
        "import subprocess as s\nassert s.run('echo $((6*7))|cat', shell=True, capture_output=True).stdout == b'42\\n'",
        frozenset(),
    ),
    "a terminal": (
        "import os, pty\np, f = pty.fork()\nif p == 0: os.write(1, b'hi'); os._exit(0)\nassert os.read(f, 9) == b'hi'",
        NO_PLACES,
    ),
    "links": (
        "import os\nopen('a', 'w').close(); os.symlink('a', 'b'); os.link('a', 'c'); os.rename('c', 'd')\n"
        "assert os.path.samefile('b', 'd'); os.mkfifo('p')",
        frozenset(),
    ),
    "modes, times and attributes in its own folder": (
        "import os\nopen('m', 'w').close(); os.chmod('m', 0o640); assert os.stat('m').st_mode & 0o777 == 0o640\n"
        "os.utime('m', (1, 2)); assert os.stat('m').st_mtime == 2; os.utime('m', ns=(5, 7)); os.utime('m')\n"
        "f = os.open('m', os.O_RDWR); os.fchmod(f, 0o600); os.utime(f, (3, 4)); assert os.fstat(f).st_mtime == 4\n"
        "os.setxattr('m', 'user.a', b'v'); assert os.getxattr(f, 'user.a') == b'v'; os.removexattr(f, 'user.a')\n"
        "os.chown('m', os.getuid(), os.getgid()); os.fchown(f, -1, -1); os.symlink('m', 'l')\n"
        "os.utime('l', (1, 1), follow_symlinks=False); assert os.lstat('l').st_mtime == 1\n"
        "os.mkdir('d'); h = os.open('d', os.O_RDONLY); open('d/e', 'w').close(); os.chmod('e', 0o600, dir_fd=h)\n"
        "assert os.stat('d/e').st_mode & 0o777 == 0o600\n"
        "import errno\n"
        "for call, code in ((lambda: os.chmod('none', 0), errno.ENOENT), (lambda: os.fchmod(99, 0), errno.EBADF),\n"
        "                   (lambda: os.setxattr('m', 'trusted.a', b''), errno.EPERM)):\n"
        "    try: call()\n"
        "    except OSError as error: assert error.errno == code, error\n"
        "    else: raise AssertionError(code)",
        frozenset(),
    ),
    "copies with metadata": (
        "import os, shutil\nos.mkdir('s'); open('s/f', 'w').close(); os.chmod('s/f', 0o700)\n"
        "shutil.copytree('s', 't'); assert os.stat('t/f').st_mode & 0o777 == 0o700\n"
        "shutil.make_archive('z', 'gztar', 's')\n"
        "import subprocess; subprocess.run(['cp', '-a', 's', 'u'], check=True)\n"
        "subprocess.run(['tar', 'xzf', 'z.tar.gz', '--no-same-owner'], check=True)",
        frozenset(),
    ),
    "locales and time zones": (
        "import locale, time, zoneinfo\nlocale.setlocale(locale.LC_ALL, 'C.UTF-8'); time.tzset()\n"
        "assert 'é'.encode() == b'\\xc3\\xa9'",
        frozenset(),
    ),
    "a home": (
        "import os, pathlib, pwd\nh = pathlib.Path.home(); (h / '.config').mkdir(); (h / '.config/x').write_text('1')\n"
        "assert str(h) == os.environ['HOME']",
        frozenset(),
    ),
    "threads, signals and timers": (
        "import os, signal, threading\nt = threading.Thread(target=lambda: None); t.start(); t.join()\n"
        "signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 0.01); signal.pause()\n"
        "p = os.fork()\nif p == 0: signal.pause()\nos.kill(p, 9); os.waitpid(p, 0)",
        frozenset(),
    ),
}
"""What suites do, and the tiers that cannot run it."""


_SAMPLED = ("a pool of processes", "a server on the loopback")


@pytest.mark.parametrize(
    "habit", [pytest.param(habit, marks=[pytest.mark.width("sample")] * (habit in _SAMPLED)) for habit in HABITS]
)
def test_what_honest_suites_do_works_or_the_tier_says_so(somebody: Somebody, habit: str) -> None:  # noqa: F811
    program, refused = HABITS[habit]
    came = somebody.run(program)
    if somebody.tier in refused:
        assert came.result.end is End.SANDBOX_ERROR, str(came)
        assert f"tier {somebody.tier} cannot run it: it needs" in str(came.result.sandbox_error)
        return
    assert came.result.end is End.OK, str(came)
    assert came.result.violations == ()


@pytest.mark.parametrize("observe", [True, False])
def test_metadata_of_files_outside_stays_as_it_is(somebody: Somebody, observe: bool) -> None:  # noqa: F811
    victim = somebody.outside / "victim"
    victim.write_text("x")
    victim.chmod(0o644)
    os.utime(victim, (1, 1))
    somebody.own(victim)
    (somebody.worktree / "link").symlink_to(victim)
    program = (
        "import ctypes, os, threading\n"
        f"victim = {str(victim)!r}\n"
        "def attempt(call, *words, **more):\n"
        "    try: call(*words, **more)\n"
        "    except OSError as error: print(call.__name__, error)\n"
        "for path in (victim, 'link', f'/proc/self/root{victim}', f'../outside/victim'):\n"
        "    attempt(os.chmod, path, 0o777)\n"
        "    attempt(os.utime, path, (9, 9))\n"
        "    attempt(os.setxattr, path, 'user.a', b'v')\n"
        "    attempt(os.chown, path, os.getuid(), 0)\n"
        "f = -1\n"
        "for flags in (os.O_PATH, os.O_RDONLY):\n"
        "    try: f = os.open(victim, flags)\n"
        "    except OSError as error: print(error)\n"
        "attempt(os.fchmod, f, 0o777); attempt(os.chmod, f'/proc/self/fd/{f}', 0o777)\n"
        "attempt(os.utime, f, (9, 9)); attempt(os.fchown, f, os.getuid(), 0)\n"
        # the name changes between the check and the use, thousands of times
        "name = ctypes.create_string_buffer(b'link\\0', 5); own = ctypes.create_string_buffer(b'mine\\0', 5)\n"
        "open('mine', 'w').close()\n"
        "over = threading.Event()\n"
        "def flip():\n"
        "    while not over.is_set(): name.raw = b'mine\\0'; name.raw = b'link\\0'\n"
        "t = threading.Thread(target=flip); t.start()\n"
        "C = ctypes.CDLL(None)\n"
        "for _ in range(1500): C.chmod(name, 0o777)\n"
        "over.set(); t.join(); os.chmod('mine', 0o777)\n"
    )
    before = (victim.stat().st_mode, victim.stat().st_mtime, victim.stat().st_gid, os.listxattr(victim))
    came = somebody.run(program, observe=observe)
    after = (victim.stat().st_mode, victim.stat().st_mtime, victim.stat().st_gid, os.listxattr(victim))
    assert after == before, str(came)
    assert stat.S_IMODE((somebody.worktree / "mine").stat().st_mode) == 0o777
    if observe:
        assert came.result.end is End.VIOLATION, str(came)
        assert all(one.blocked for one in came.result.violations), str(came)


def test_shared_memory_of_other_programs_is_not_reached(somebody: Somebody) -> None:  # noqa: F811
    name = f"/dev/shm/fairwitness-other-{os.getpid()}"
    handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(handle, b"canary")
        program = (
            "import os\n"
            f"for path in ({name!r}, {name.replace('/dev/shm/', '/dev/shm//')!r}, '/dev/shm/../shm/' + {name[9:]!r}):\n"
            "    try: print(os.read(os.open(path, os.O_RDWR), 9))\n"
            "    except OSError as error: print(error)\n"
            "    try: os.unlink(path)\n"
            "    except OSError as error: print(error)\n"
            "os.symlink('/etc/passwd', '/dev/shm/fairwitness-link') if os.access('/dev/shm', os.W_OK) else None\n"
        )
        came = somebody.run(program)
        assert "canary" not in came.stdout, str(came)
        assert Path(name).exists()
    finally:
        os.close(handle)
        Path(name).unlink()


def test_the_page_shows_what_each_tier_can_run() -> None:
    page = (ROOT / "docs" / "sandbox.md").read_text()
    for habit, (_, refused) in HABITS.items():
        cells = ["says that it cannot" if tier in refused else "works" for tier in ("ns", "ll", "uid")]
        assert f"| {habit} | {' | '.join(cells)} |" in page
