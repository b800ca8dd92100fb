"""What every runner promises: how a command ends, what is kept of it, and that nothing of it is left."""

import hashlib
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fairwitness.contracts.common.sandbox import End
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.errors import UsageError
from fairwitness.sandbox.scripted import Reply
from sandbox.kit import CONFINING, REAL, Bench, expect, living, said

real = pytest.mark.parametrize("bench", REAL, indirect=True)
confining = pytest.mark.parametrize("bench", CONFINING, indirect=True)
in_namespaces = pytest.mark.parametrize("bench", ["ns"], indirect=True)


@pytest.mark.req("A15")
@pytest.mark.req("X1")
@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_exit_code_decides(bench: Bench, code: int) -> None:
    result = bench.shell(f"exit {code}", plays=Reply(exit_code=code)).result
    assert (result.exit_code, result.signal) == (code, None)
    assert result.end is (End.OK if code == 0 else End.FAILED)
    assert result.assessment is (Assessment.PASS if code == 0 else Assessment.FAIL)


@pytest.mark.req("A15")
def test_a_signal_is_a_failure_and_is_named(bench: Bench) -> None:
    result = bench.shell("kill -SEGV $$", plays=Reply(signal=signal.SIGSEGV)).result
    assert (result.end, result.exit_code, result.signal) == (End.FAILED, None, signal.SIGSEGV)


@pytest.mark.req("A15")
@pytest.mark.parametrize("script", ["sleep 60", "trap '' TERM INT HUP; while :; do sleep 1; done", "kill -STOP $$"])
def test_at_the_time_limit_it_is_over(bench: Bench, script: str) -> None:
    began = time.monotonic()
    result = bench.shell(script, limits={"wall_s": 0.4}, plays=Reply(wall_s=60)).result
    assert (result.end, result.limit_hit, result.assessment) == (End.TIMEOUT, "wall", Assessment.TIMEOUT)
    assert result.exit_code is None
    assert 400 <= result.wall_ms < 30_000
    assert time.monotonic() - began < 30


@pytest.mark.req("A15")
def test_sixty_seconds_is_the_limit_unless_said_otherwise(bench: Bench) -> None:
    assert type(bench.command("/bin/true").limits).model_fields["wall_s"].default == 60


@pytest.mark.req("X1")
def test_what_was_printed_is_kept_and_hashed(bench: Bench) -> None:
    finished = bench.shell("printf out; printf err >&2", plays=Reply(stdout=b"out", stderr=b"err"))
    assert (finished.stdout, finished.stderr) == (b"out", b"err")
    assert finished.result.stdout.sha256 == f"sha256:{hashlib.sha256(b'out').hexdigest()}"
    assert (finished.result.stdout.total, finished.result.stdout.truncated) == (3, False)


def test_of_much_output_head_and_tail_are_kept_and_all_is_hashed(bench: Bench) -> None:
    lines = "".join(f"{number}\n" for number in range(60_000)).encode()
    limits = {"output_kept": 1000}
    program = "import sys; sys.stdout.write(''.join(f'{n}\\n' for n in range(60_000)))"
    finished = expect(bench.python(program, limits=limits, plays=Reply(stdout=lines)), End.OK)
    mark = f"\n[… {len(lines) - 1000} bytes left out …]\n".encode()
    assert finished.stdout == lines[:500] + mark + lines[-500:]
    stream = finished.result.stdout
    assert (stream.total, stream.truncated) == (len(lines), True)
    assert stream.sha256 == f"sha256:{hashlib.sha256(lines).hexdigest()}"


def test_who_prints_without_end_is_stopped(bench: Bench) -> None:
    limits = {"output_killed": 1 << 20}
    result = bench.shell("yes", limits=limits, plays=Reply(stdout=b"y\n" * (1 << 20))).result
    assert (result.end, result.limit_hit) == (End.LIMIT, "output")


def test_a_folder_that_is_not_there_is_a_lost_sandbox(bench: Bench) -> None:
    result = bench.run("/bin/true", worktree=str(bench.outside / "none"), plays=Reply()).result
    assert (result.end, result.assessment) == (End.SANDBOX_ERROR, Assessment.LOST)
    assert "there is no folder" in str(result.sandbox_error)


@pytest.mark.parametrize("program", ["/bin/no-such-program", "/etc/hostname"])
def test_a_program_that_cannot_be_run_is_a_lost_sandbox(bench: Bench, program: str) -> None:
    result = bench.run(program, plays=Reply(lost=f"cannot run {program}")).result
    assert (result.end, result.exit_code) == (End.SANDBOX_ERROR, None)
    assert program in str(result.sandbox_error)


def test_a_tier_below_the_wanted_one_runs_nothing(bench: Bench) -> None:
    if bench.tier == "ns":
        pytest.skip("there is nothing above")
    result = bench.run("/bin/true", min_tier="ns", plays=Reply()).result
    assert result.end is End.SANDBOX_ERROR
    assert "weaker" in str(result.sandbox_error)


def test_what_cannot_be_meant_is_refused(bench: Bench) -> None:
    with pytest.raises(UsageError, match="absolute"):
        bench.run("true", plays=Reply())
    with pytest.raises(UsageError, match="inside the worktree"):
        bench.run("/bin/true", cwd="../x", plays=Reply())
    with pytest.raises(UsageError, match="belongs to the system"):
        bench.run("/bin/true", worktree="/", plays=Reply())


@pytest.mark.req("X1")
def test_the_record_says_what_ran_and_how(bench: Bench) -> None:
    result = bench.run("/bin/sh", "-c", "true", env={"A": "1"}, plays=Reply()).result
    assert result.exe == os.path.realpath("/bin/sh")
    assert result.exe_sha256 == f"sha256:{hashlib.sha256(Path(result.exe).read_bytes()).hexdigest()}"
    assert set(result.env_keys) == {"A", "HOME", "TMPDIR", "PATH", "LANG"}
    assert result.tier_wanted == "ns"
    assert result.degraded is (bench.tier != "ns")
    again = bench.run("/bin/sh", "-c", "true", env={"A": "1"}, plays=Reply()).result
    assert (again.env_sha256, again.policy_sha256) == (result.env_sha256, result.policy_sha256)
    other = bench.run("/bin/sh", "-c", "true", env={"A": "2"}, writable=False, plays=Reply()).result
    assert other.env_sha256 != result.env_sha256
    assert other.policy_sha256 != result.policy_sha256


def test_a_cancelled_command_is_no_evidence(bench: Bench) -> None:
    cancel = threading.Event()
    if bench.tier == "scripted":
        cancel.set()
    else:
        threading.Timer(0.2, cancel.set).start()
    began = time.monotonic()
    result = bench.shell("sleep 30", cancel=cancel, plays=Reply()).result
    assert (result.end, result.assessment, result.exit_code) == (End.CANCELLED, Assessment.LOST, None)
    assert time.monotonic() - began < 20


def test_threads_may_share_a_runner(bench: Bench) -> None:
    def one(number: int) -> bytes:
        return bench.shell(f"printf {number}", plays=Reply(stdout=b"?")).stdout

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(one, range(8)))
    if bench.tier != "scripted":
        assert answers == [str(number).encode() for number in range(8)]


@real
def test_the_environment_is_exactly_what_was_given(bench: Bench) -> None:
    os.environ["FAIRWITNESS_TEST_SECRET"] = "hidden"
    try:
        finished = bench.run("/usr/bin/env", "-0", env={"ONE": "1", "PATH": "/bin", "ODD": "é\n"})
    finally:
        del os.environ["FAIRWITNESS_TEST_SECRET"]
    found = dict(word.split("=", 1) for word in finished.stdout.decode().split("\0") if word)
    private = {name: found.pop(name) for name in ("HOME", "TMPDIR")}
    assert found == {"ONE": "1", "PATH": "/bin", "ODD": "é\n", "LANG": "C.UTF-8"}
    assert all(private.values())


@real
def test_home_and_temporary_folder_are_private_and_gone_afterwards(bench: Bench) -> None:
    finished = expect(bench.shell('echo x > "$HOME/a" && echo x > "$TMPDIR/b" && echo "$HOME" "$TMPDIR"'), End.OK)
    home, temporary = finished.stdout.decode().split()
    assert not Path(home, "a").exists()
    assert not Path(temporary, "b").exists()


@real
def test_it_starts_in_its_folder_with_what_it_is_given_to_read(bench: Bench) -> None:
    (bench.worktree / "inner").mkdir()
    finished = bench.shell("pwd; cat; umask; ls /proc/self/fd | wc -l", cwd="inner", stdin=b"given\n")
    where, given, mask, handles = finished.stdout.decode().split()
    assert (where, given, mask) == (str(bench.worktree / "inner"), "given", "0022")
    assert int(handles) == 4
    assert bench.shell("cat").stdout == b""
    assert bench.shell("echo more >&0; cat", stdin=b"given\n").stdout == b"given\n"


@confining
def test_a_worktree_is_writable_only_if_it_was_said(bench: Bench) -> None:
    (bench.worktree / "old").write_text("old")
    refused = bench.shell("echo new > old; echo new > new; rm -f old", writable=False)
    assert refused.result.end is not End.OK
    assert sorted(path.name for path in bench.worktree.iterdir()) == ["old"]
    assert (bench.worktree / "old").read_text() == "old"
    allowed = expect(bench.shell("echo new > old; echo new > new; mkdir d; mv new d/"), End.OK)
    assert allowed.result.violations == ()
    assert (bench.worktree / "d" / "new").read_text() == "new\n"
    assert (bench.worktree / "old").stat().st_uid == os.getuid()
    assert (bench.worktree / "d" / "new").stat().st_uid == os.getuid()


@confining
def test_a_folder_given_for_writing_is_writable(bench: Bench) -> None:
    expect(bench.shell(f"echo x > {bench.outside}/report", write=(str(bench.outside),)), End.OK)
    assert (bench.outside / "report").read_text() == "x\n"


@real
def test_a_daemon_does_not_outlive_its_command(bench: Bench) -> None:
    mark = f"31{os.getpid()}.5"
    late = bench.worktree / "late"
    script = f"(setsid sh -c '(trap \"\" TERM HUP; sleep 1; echo late > {late}; sleep {mark}) &') & sleep 0.2; exit 0"
    result = expect(bench.shell(script), End.OK).result
    assert living(mark) == []
    assert result.survivors_killed
    time.sleep(1.2)
    assert not late.exists()


@real
def test_a_daemon_does_not_outlive_the_time_limit(bench: Bench) -> None:
    mark = f"32{os.getpid()}.5"
    result = bench.shell(f"(setsid sh -c '(sleep {mark}) &') & sleep {mark}", limits={"wall_s": 0.4}).result
    assert result.end is End.TIMEOUT
    assert living(mark) == []


@real
def test_a_background_child_that_holds_the_output_keeps_nobody_waiting(bench: Bench) -> None:
    began = time.monotonic()
    finished = expect(bench.shell("sleep 30 & echo done"), End.OK)
    assert finished.stdout == b"done\n"
    assert time.monotonic() - began < 20


@real
def test_too_many_processes_end_the_command(bench: Bench) -> None:
    mark = f"33{os.getpid()}.5"
    script = f"i=0; while [ $i -lt 200 ]; do sleep {mark} & i=$((i+1)); done; wait"
    result = bench.shell(script, limits={"processes": 20}).result
    assert (result.end, result.limit_hit) == (End.LIMIT, "processes")
    assert result.peak_processes > 20
    assert living(mark) == []


@real
def test_too_many_that_were_left_between_two_looks_are_too_many(bench: Bench) -> None:
    mark = f"34{os.getpid()}.5"
    program = (
        "import os, time\n"
        "for _ in range(12):\n"
        "    if os.fork() == 0:\n"
        f"        os.execvp('sleep', ['sleep', '{mark}'])\n"
    )  # a few milliseconds, and the command itself ends well
    result = bench.python(program, limits={"processes": 8}).result
    assert (result.end, result.limit_hit) == (End.LIMIT, "processes")
    assert result.peak_processes > 8
    assert living(mark) == []


@real
def test_too_much_memory_of_the_tree_ends_the_command(bench: Bench) -> None:
    program = (
        "import os, time\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        held = b'x' * (60 << 20); time.sleep(20); os._exit(0)\n"
        "time.sleep(20)\n"
    )
    result = bench.python(program, limits={"memory": 128 << 20}).result
    assert (result.end, result.limit_hit) == (End.LIMIT, "memory")


@real
def test_memory_that_forks_share_is_counted_once(bench: Bench) -> None:
    program = (
        "import os, time\n"
        "held = b'x' * (60 << 20)\n"
        "for _ in range(4):\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(0.4); os._exit(0)\n"
        "for _ in range(4): os.wait()\n"
    )
    expect(bench.python(program, limits={"memory": 160 << 20}), End.OK)


@real
def test_a_process_gets_no_more_memory_than_its_own_limit(bench: Bench) -> None:
    finished = bench.python("b'x' * (300 << 20)", limits={"memory_process": 100 << 20})
    assert finished.result.end is End.FAILED
    assert b"MemoryError" in finished.stderr


@real
def test_too_much_on_disk_ends_the_command(bench: Bench) -> None:
    program = (
        "import os, time\n"
        "for number in range(40):\n"
        "    with open(f'big{number}', 'wb') as file:\n"
        "        file.write(os.urandom(1 << 20) * 4)\n"
        "    time.sleep(0.01)\n"
        "time.sleep(30)\n"
    )
    result = bench.python(program, limits={"disk": 64 << 20}).result
    assert (result.end, result.limit_hit) == (End.LIMIT, "disk")


@real
def test_one_file_may_not_be_larger_than_allowed(bench: Bench) -> None:
    finished = bench.shell("exec head -c 3000000 /dev/zero > big", limits={"file_size": 1 << 20})
    assert (finished.result.end, finished.result.limit_hit) == (End.LIMIT, "disk"), said(finished)
    assert (bench.worktree / "big").stat().st_size <= 1 << 20


@real
def test_too_much_processor_time_ends_the_command(bench: Bench) -> None:
    result = bench.python("while True: pass", limits={"cpu_s": 1}).result
    assert (result.end, result.limit_hit) == (End.LIMIT, "cpu")
    assert result.cpu_ms > 500


@real
def test_time_and_memory_are_measured(bench: Bench) -> None:
    result = bench.python("held = b'x' * (40 << 20)\nfor _ in range(3_000_000): pass").result
    assert result.cpu_ms > 0
    assert 40 << 20 < result.peak_memory < 400 << 20
    assert result.peak_processes == 1


@confining
@pytest.mark.req("A15")
def test_a_write_outside_is_stopped_and_named(bench: Bench) -> None:
    victim = bench.outside / "victim"
    victim.write_text("untouched")
    (bench.worktree / "link").symlink_to(victim)
    finished = bench.shell(f"echo gone > link; echo x > {bench.outside}/new; true")
    assert (finished.result.end, finished.result.assessment) == (End.VIOLATION, Assessment.VIOLATION), said(finished)
    assert victim.read_text() == "untouched"
    assert not (bench.outside / "new").exists()
    named = {(one.kind, one.path, one.blocked) for one in finished.result.violations}
    assert named == {("write", str(victim), True), ("write", f"{bench.outside}/new", True)}
    assert all(one.call.startswith("open") and one.source == "observer" for one in finished.result.violations)


@confining
def test_unobserved_a_write_outside_is_stopped_but_not_named(bench: Bench) -> None:
    finished = bench.shell(f"echo x > {bench.outside}/new", observe=False)
    assert finished.result.observation == "none"
    assert finished.result.end is not End.OK or bench.tier == "ns"
    assert not (bench.outside / "new").exists()


@real
@pytest.mark.parametrize("place", [".git", "vendor/.git"])
def test_a_new_repository_in_the_worktree_is_a_violation(bench: Bench, place: str) -> None:
    finished = bench.shell(f"mkdir -p {place}; echo x > {place}/config")
    assert (finished.result.end, finished.result.dotgit_ok) == (End.VIOLATION, False), said(finished)
    assert ("git-dir", f"{bench.worktree}/{place}") in {(one.kind, one.path) for one in finished.result.violations}


@confining
def test_the_git_pointer_of_the_worktree_cannot_be_changed_unseen(bench: Bench) -> None:
    (bench.worktree / ".git").write_text("gitdir: /elsewhere\n")
    finished = bench.shell("rm -f .git; echo 'gitdir: /mine' > .git")
    assert finished.result.end is End.VIOLATION, said(finished)
    assert "git-dir" in {one.kind for one in finished.result.violations}
    if bench.tier == "ns":
        assert finished.result.dotgit_ok
        assert (bench.worktree / ".git").read_text() == "gitdir: /elsewhere\n"


@confining
def test_a_command_cannot_end_or_imitate_its_supervisor(bench: Bench) -> None:
    program = (
        "import os, signal\n"
        "me = os.getppid()\n"
        "for target in (me, -me, -1):\n"
        "    try: os.kill(target, signal.SIGKILL)\n"
        "    except OSError as error: print(type(error).__name__, flush=True)\n"
        "for name in ('mem', 'environ', 'fd/1'):\n"
        "    try: open(f'/proc/{me}/{name}', 'rb').read(1)\n"
        "    except OSError as error: print(type(error).__name__, flush=True)\n"
        "os._exit(3)\n"
    )
    finished = expect(bench.python(program), End.FAILED)
    assert finished.result.exit_code == 3
    assert finished.stdout.split() == [b"PermissionError"] * 6


@in_namespaces
def test_a_server_and_its_client_meet_on_the_commands_own_loopback(bench: Bench) -> None:
    program = (
        "import socket, threading\n"
        "server = socket.create_server(('127.0.0.1', 8080))\n"
        "threading.Thread(target=lambda: server.accept()[0].sendall(b'hello')).start()\n"
        "print(socket.create_connection(('127.0.0.1', 8080)).recv(9))\n"
        "try: socket.create_connection(('192.0.2.1', 80), 1)\n"
        "except OSError as error: print(error.errno)\n"
    )
    finished = expect(bench.python(program), End.OK)
    assert finished.stdout == b"b'hello'\n101\n"


@pytest.mark.parametrize("bench", ["ll", "uid"], indirect=True)
def test_without_a_network_of_its_own_it_gets_no_socket(bench: Bench) -> None:
    finished = expect(bench.python("import socket; socket.socket()"), End.SANDBOX_ERROR)
    words = "cannot run it: it needs a network of its own, which only tier ns has"
    assert finished.result.sandbox_error == f"tier {bench.tier} {words}"
    assert b"PermissionError" in finished.stderr
    expect(bench.python("import socket\ntry: socket.socket()\nexcept PermissionError: pass"), End.OK)
    expect(bench.python("import pwd, os; pwd.getpwuid(os.getuid() - os.getuid()); os._exit(1)"), End.FAILED)
    assert "net-all-blocked" in {warned.code for warned in finished.result.warnings}
