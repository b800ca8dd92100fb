"""Ordinary work goes on as ever in the ns tier: compilers, pools, servers, git, Node, Java."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from fairwitness.contracts.common.sandbox import End, Network
from sandbox.kit import PYTHON, Bench, expect

pytestmark = pytest.mark.parametrize("bench", ["ns"], indirect=True)

Tool = Callable[[str], tuple[str, tuple[str, ...]]]


@pytest.fixture
def tool() -> Tool:
    """Where a program is and what it needs to be read, or a skip that names it."""

    def find(name: str) -> tuple[str, tuple[str, ...]]:
        path = shutil.which(name)
        if path is None:
            pytest.skip(f"{name} is not installed")
        real = Path(path).resolve()
        return str(real), (str(real.parent.parent),)

    return find


@pytest.mark.req("A15")
def test_a_c_program_is_built_and_run(bench: Bench, tool: Tool) -> None:
    gcc, read = tool("gcc")
    (bench.worktree / "main.c").write_text('#include <stdio.h>\nint main(void) { puts("built"); return 0; }\n')
    finished = expect(bench.shell(f"{gcc} -O1 -o main main.c && chmod +x main && ./main", read=read), End.OK)
    assert finished.stdout == b"built\n"


def test_a_pool_of_processes_works(bench: Bench) -> None:
    program = "from multiprocessing import Pool\nif __name__ == '__main__':\n    print(Pool(2).map(abs, [-1, -2]))\n"
    (bench.worktree / "pool.py").write_text(program)
    finished = expect(bench.run(PYTHON, "pool.py"), End.OK)
    assert finished.stdout == b"[1, 2]\n"


def test_node_runs_a_script_with_workers(bench: Bench, tool: Tool) -> None:
    node, read = tool("node")
    (bench.worktree / "main.js").write_text(
        "const { Worker } = require('worker_threads');\n"
        "const fs = require('fs');\n"
        "fs.writeFileSync('made.txt', 'x'); fs.mkdirSync('a/b', { recursive: true });\n"
        "new Worker(\"require('worker_threads').parentPort.postMessage('from a worker')\", { eval: true })\n"
        "  .on('message', console.log);\n"
    )
    finished = expect(bench.run(node, "main.js", read=read), End.OK)
    assert finished.stdout == b"from a worker\n"


def test_java_starts(bench: Bench, tool: Tool) -> None:
    java, read = tool("java")
    expect(bench.run(java, "-version", read=read, limits={"memory": 2 << 30, "memory_process": 1 << 30}), End.OK)


def test_git_reads_a_repository_whose_folder_it_may_not_change(bench: Bench, tool: Tool) -> None:
    git, read = tool("git")

    def run(*words: str) -> None:
        subprocess.run([git, "-C", str(bench.worktree), *words], check=True, capture_output=True)

    run("init", "-q")
    (bench.worktree / "file").write_text("one\n")
    run("add", ".")
    run("-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "-m", "first")
    (bench.worktree / "file").write_text("two\n")
    finished = expect(bench.shell(f"{git} status --short && {git} log --oneline | wc -l", read=read), End.OK)
    assert finished.stdout == b" M file\n1\n"
    refused = bench.shell(f"{git} -c user.name=A -c user.email=a@b commit -qam second", read=read)
    assert (refused.result.end, refused.result.dotgit_ok) == (End.FAILED, True)


def test_a_unix_socket_in_the_worktree_works(bench: Bench) -> None:
    program = (
        "import socket, threading\n"
        "server = socket.socket(socket.AF_UNIX); server.bind('s'); server.listen()\n"
        "threading.Thread(target=lambda: server.accept()[0].sendall(b'hello')).start()\n"
        "client = socket.socket(socket.AF_UNIX); client.connect('s'); print(client.recv(9))\n"
    )
    assert expect(bench.python(program), End.OK).stdout == b"b'hello'\n"


def test_tests_that_hard_code_tmp_and_var_tmp_find_them(bench: Bench) -> None:
    expect(bench.shell("echo x > /tmp/fairwitness-y && cat /var/tmp/fairwitness-y && mktemp && mktemp -d"), End.OK)
    assert not Path("/tmp/fairwitness-y").exists()


@pytest.mark.parametrize("place", ["/var/tmp", "/dev/shm", "/tmp"])
def test_a_worktree_may_lie_where_private_places_are(bench: Bench, place: str) -> None:
    with tempfile.TemporaryDirectory(dir=place) as folder:
        finished = expect(bench.shell("pwd -P; echo x > made; echo x > /tmp/y", worktree=folder), End.OK)
        assert finished.stdout.decode().strip() == folder
        assert Path(folder, "made").exists()
        outside = bench.shell("echo x > ../fairwitness-outside", worktree=folder)
        assert outside.result.end is End.OK  # the place itself is private
        assert not Path(place, "fairwitness-outside").exists()


def test_a_user_has_a_name_and_a_home(bench: Bench) -> None:
    program = "import getpass, os; print(os.path.expanduser('~') == os.environ['HOME'], getpass.getuser())"
    assert expect(bench.python(program), End.OK).stdout.startswith(b"True ")


def test_byte_code_of_a_read_only_library_may_be_tried(bench: Bench) -> None:
    library = bench.outside / "site-packages"
    library.mkdir()
    (library / "helper.py").write_text("answer = 42\n")
    command = f"import sys; sys.path.insert(0, {str(library)!r}); import helper; print(helper.answer)"
    finished = expect(bench.run(PYTHON, "-I", "-c", command, read=(str(library),)), End.OK)
    assert (finished.stdout, finished.result.violations) == (b"42\n", ())
    assert not (library / "__pycache__").exists()


def test_only_what_was_named_can_be_seen(bench: Bench) -> None:
    (bench.outside / "secret").write_text("x")
    (bench.outside / "shown").mkdir()
    (bench.outside / "shown" / "file").write_text("shown")
    shown = str(bench.outside / "shown")
    finished = bench.shell(
        f"ls {bench.outside}; cat {shown}/file; ls -a ~ /home /root /var/log /run 2>&1", read=(shown,)
    )
    assert b"shown" in finished.stdout
    assert b"secret" not in finished.stdout
    assert b"No such file" in finished.stdout


def test_a_link_among_the_paths_leads_where_it_leads_outside(bench: Bench) -> None:
    (bench.outside / "real").mkdir()
    (bench.outside / "real" / "file").write_text("found")
    link = bench.outside / "link"
    link.symlink_to("real")
    finished = expect(bench.shell(f"cat {link}/file {bench.outside}/real/file", read=(str(link),)), End.OK)
    assert finished.stdout == b"foundfound"
    tree = bench.outside / "tree"
    tree.symlink_to(bench.worktree)
    finished = expect(bench.shell(f"pwd -P; echo x > {tree}/here", worktree=str(tree)), End.OK)
    assert finished.stdout.decode().strip() == str(bench.worktree)
    assert (bench.worktree / "here").exists()


def test_files_of_etc_can_be_shown(bench: Bench) -> None:
    finished = bench.shell("cat /etc/hosts; ls /etc/shadow", network=Network.OPEN, read=("/etc/adduser.conf",))
    assert b"127.0.0.1" in finished.stdout
    assert b"shadow'" in finished.stderr


def test_full_temporary_space_is_a_limit(bench: Bench) -> None:
    program = (
        "import time\n"
        "try:\n"
        "    with open('/tmp/big', 'wb') as file:\n"
        "        while True: file.write(b'x' * 65536)\n"
        "except OSError: time.sleep(30)\n"
    )
    result = bench.python(program, limits={"temporary": 4 << 20}).result
    assert (result.end, result.limit_hit) == (End.LIMIT, "disk")
