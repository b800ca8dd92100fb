"""The parts of a runner by themselves: what is kept of a stream, private folders, the probe, the scripted runner."""

import hashlib
import os
import shutil
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.app.assembly import backends
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import TIERS, End
from fairwitness.errors import NotReady, UsageError
from fairwitness.sandbox import scratch
from fairwitness.sandbox.capture import Capture
from fairwitness.sandbox.private_folders import private_folders
from fairwitness.sandbox.probe import probe
from fairwitness.sandbox.scripted import Reply, ScriptedAnswer, ScriptedRunner
from fairwitness.sandbox.watchdog import tree
from sandbox.kit import Bench, expect, is_kernel_able, require


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(1, 60))
def test_a_capture_keeps_head_and_tail_however_the_pieces_fall(pieces: list[bytes], kept: int) -> None:
    capture = Capture(kept)
    for piece in pieces:
        capture.take(piece)
    whole = b"".join(pieces)
    tail = kept // 2
    cut = whole[: kept - tail] + (whole[-tail:] if tail else b"")
    assert capture.raw() == (whole if len(whole) <= kept else cut)
    stream = capture.stream()
    assert stream.sha256 == f"sha256:{hashlib.sha256(whole).hexdigest()}"
    assert (stream.total, stream.truncated) == (len(whole), len(whole) > kept)


def test_a_private_folder_goes_even_if_it_was_shut() -> None:
    with private_folders() as own:
        inner = Path(own.home, "a", "b")
        inner.mkdir(parents=True)
        (inner / "file").write_text("x")
        inner.chmod(0)
        inner.parent.chmod(0)
        above = Path(own.folder).parent
        mode = above.stat().st_mode
    assert not Path(own.folder).exists()
    assert above.stat().st_mode == mode


def test_the_private_folder_may_be_gone_already_without_harm() -> None:
    with private_folders() as own:
        above = Path(own.folder).parent
        mode = above.stat().st_mode
        shutil.rmtree(own.folder)
    assert above.stat().st_mode == mode


def test_a_tree_of_processes_is_counted_with_its_dead() -> None:
    assert tree(os.getpid()) == [] or all(process.pid != os.getpid() for process in tree(os.getpid()))
    child = os.fork()
    if child == 0:
        os._exit(0)
    try:
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        (dead,) = [process for process in tree(os.getpid()) if process.pid == child]
        assert not dead.lives
    finally:
        os.waitpid(child, 0)


def test_the_probe_answers_once_and_leaves_nothing() -> None:
    features = probe()
    assert features is probe()
    assert features.tier is features.tiers[0]
    assert list(features.tiers) == sorted(features.tiers, key=TIERS.index)
    assert features.tiers[-1] is SandboxTier.NONE
    assert all(is_kernel_able(tier) for tier in features.tiers)
    codes = [warned.code for warned in features.warnings]
    assert len(codes) == len(set(codes))
    assert ("landlock-absent" in codes) is (features.landlock_abi == 0)


@pytest.mark.parametrize("tier", ["ns", "ll", "uid"])
def test_a_tier_that_the_kernel_allows_works(tier: str) -> None:
    require(tier)
    assert backends.runner(SandboxTier(tier)).tier == tier


def test_the_strongest_tier_is_taken_unless_one_is_named() -> None:
    if probe().tier is SandboxTier.NONE:
        with pytest.raises(NotReady) as refused:
            backends.runner()
        assert refused.value.next_step
    else:
        assert backends.runner().tier is probe().tier


def test_unconfined_is_refused_unless_it_is_allowed() -> None:
    with pytest.raises(UsageError, match="without a sandbox"):
        backends.runner(SandboxTier.NONE)
    assert backends.runner(SandboxTier.NONE, allow_unconfined=True).tier is SandboxTier.NONE


@pytest.mark.parametrize("bench", ["none"], indirect=True)
def test_what_runs_unconfined_says_so(bench: Bench) -> None:
    result = expect(bench.run("/bin/true"), End.OK).result
    assert result.degraded
    assert "unsandboxed" in {warned.code for warned in result.warnings}
    refused = bench.run("/bin/true", min_tier=SandboxTier.UID).result
    assert refused.end is End.SANDBOX_ERROR


@pytest.mark.parametrize("bench", ["ns"], indirect=True)
def test_the_small_etc_is_made_again_if_somebody_removed_it(bench: Bench) -> None:
    expect(bench.run("/bin/true"), End.OK)
    shutil.rmtree(scratch.folder())
    expect(bench.run("/bin/true"), End.OK)
    assert not (scratch.etc() / "shadow").exists()


@pytest.mark.parametrize("bench", ["uid"], indirect=True)
def test_a_lent_worktree_is_given_back_with_its_owners(bench: Bench) -> None:
    theirs, linked = bench.worktree / "theirs", bench.worktree / "linked"
    theirs.write_text("x")
    os.chown(theirs, 12345, 12346)
    (bench.outside / "file").write_text("x")
    os.link(bench.outside / "file", linked)
    expect(bench.shell("echo y >> theirs; mkdir new; [ -O theirs ]; ! [ -O linked ]"), End.OK)
    owners = {path.name: (path.stat().st_uid, path.stat().st_gid) for path in bench.worktree.iterdir()}
    assert owners == {"theirs": (12345, 12346), "linked": (0, 0), "new": (0, 0)}


@pytest.mark.parametrize("bench", ["uid"], indirect=True)
def test_another_user_that_cannot_reach_the_worktree_is_told(bench: Bench) -> None:
    bench.worktree.parent.chmod(stat.S_IRWXU)
    result = bench.run("/bin/true").result
    assert result.end is End.SANDBOX_ERROR
    assert "cannot reach" in str(result.sandbox_error)


def test_a_script_answers_writes_and_remembers(tmp_path: Path) -> None:
    bench = Bench("scripted", tmp_path, tmp_path)
    answers = [
        ScriptedAnswer("*pytest*", Reply(exit_code=1, stdout=b"1 failed", files={"report.xml": b"<r/>"})),
        ScriptedAnswer("*ruff*", lambda command: Reply(stdout=" ".join(command.argv).encode())),
    ]
    runner = ScriptedRunner(answers, tier=SandboxTier.NAMESPACES)
    tested = runner.run(bench.command("/bin/sh", "pytest"), cancel=threading.Event())
    assert (tested.result.end, tested.stdout) == (End.FAILED, b"1 failed")
    assert (tmp_path / "report.xml").read_bytes() == b"<r/>"
    assert runner.run(bench.command("/bin/sh", "ruff")).stdout == b"/bin/sh ruff"
    assert runner.run(bench.command("/bin/sh", "mypy")).result.end is End.SANDBOX_ERROR
    assert [command.argv[1] for command in runner.commands] == ["pytest", "ruff", "mypy"]


def test_a_script_cannot_write_where_the_command_may_not(tmp_path: Path) -> None:
    bench = Bench("scripted", tmp_path, tmp_path)
    runner = ScriptedRunner([ScriptedAnswer("*", Reply(files={"../x": b""}))])
    with pytest.raises(UsageError, match="may not"):
        runner.run(bench.command("/bin/sh"))
