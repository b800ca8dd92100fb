"""Tampering of every kind is noticed and named, on ledgers of runs and of verifications; honest situations are not."""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import chdir, closing
from pathlib import Path

import pytest

from fairwitness.app.views.ends import not_in_git
from fairwitness.app.views.ledger import adopt_ledger
from fairwitness.cli.commands.ledger import verify_command
from fairwitness.cli.exit_codes import exit_code_of
from fairwitness.db.postgres import PostgresDatabase
from fairwitness.errors import FairWitnessError
from fairwitness.git.ledger_heads import KeptHead, keep_head, kept_heads
from fairwitness.kit.own_folder import claim, vouch
from fairwitness.ledger.anchors import known_anchors
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import MILESTONES
from fairwitness.ledger.verify import ledger_findings, verify_here
from ledger.samples import observation
from ledger.tampering import (
    EXPORT,
    RUNS,
    TABLE,
    Ground,
    Tampered,
    add_run,
    add_run_everywhere,
    anchors_of,
    delete_run_everywhere,
    go_on,
    lay_ground,
    roll_back_and_go_on,
)
from support.fixtures import ROOT

FEW = {"flip a result, recompute chain, anchors, refs and export", "delete a run", "edit an output"}
CASES = [
    pytest.param(kind, case, id=f"{kind}-{case.name}", marks=() if case.name in FEW else pytest.mark.width("full"))
    for kind in RUNS
    for case in TABLE
    if case.only in ("", kind)
]
Verify = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def grounds(tmp_path_factory: pytest.TempPathFactory, user_state_home: Path) -> dict[str, Path]:
    """One ground of each kind, to be copied."""
    made: dict[str, Path] = {}
    for kind in RUNS:
        folder = made[kind] = tmp_path_factory.mktemp(kind)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        lay_ground(folder / "shop", folder / "state", kind)
    os.environ["XDG_STATE_HOME"] = str(user_state_home)
    return made


@pytest.fixture
def ground_of(grounds: dict[str, Path], tmp_path: Path) -> Callable[[str], Ground]:
    """A ground of its own for each test, with the state directory of a machine of its own."""

    def copied(kind: str) -> Ground:
        folder = tmp_path / kind
        shutil.copytree(grounds[kind], folder)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        # as if it had been made there: the place is part of what this machine knows
        places = folder / "state" / "fairwitness" / "ledgers.jsonl"
        places.write_text(places.read_text().replace(str(grounds[kind]), str(folder)))
        vouch(folder / "shop" / ".fairwitness")
        return Ground(folder / "shop", folder / "state", kind)

    return copied


@pytest.fixture
def verified(capsys: pytest.CaptureFixture[str]) -> Verify:
    """Runs `fairwitness ledger verify` and returns its exit code and what it says."""

    def run(ground: Ground, *heads: str, file: Path | None = None) -> tuple[int, str]:
        capsys.readouterr()
        with chdir(ground.top):
            try:
                assert verify_command.callback is not None
                code = int(verify_command.callback(file=file, heads=heads, as_json=False))
            except FairWitnessError as error:
                code = int(exit_code_of(error))
                return code, error.what
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


@pytest.mark.req("X2")
@pytest.mark.parametrize(("kind", "case"), CASES)
def test_each_kind_of_tampering_is_named(
    ground_of: Callable[[str], Ground], verified: Verify, kind: str, case: Tampered
) -> None:
    ground = ground_of(kind)
    code, said = verified(ground)
    assert (code, "2 runs checked" in said or "3 runs checked" in said) == (0, True), said
    held = anchors_of(ground)[-1].held
    case.do(ground)
    code, said = verified(ground)
    assert code == case.code, said
    for words in case.words:
        assert words in said, said
    if case.needs and case.code == 0 and "--head" in case.needs:
        code, said = verified(ground, held)
        assert (code, "you hold" in said) == (6, True), said


@pytest.mark.req("X2")
def test_the_page_about_the_ledger_lists_every_kind() -> None:
    page = (ROOT / "docs" / "ledger.md").read_text()
    listed = re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE)
    assert {case.name for case in TABLE} <= {name.strip() for name in listed}
    assert len(TABLE) >= 25


# honest situations


def _write(ground: Ground, run_id: str, **environment: str) -> int:
    """Write or continue a run in a process of its own; return how it ended."""
    done = subprocess.run(
        [sys.executable, "-m", "ledger.anchor_writer", ground.top, ground.state, ground.kind, run_id],
        env={**os.environ, **environment, "PYTHONPATH": str(ROOT / "tests")},
        check=False,
    )
    return done.returncode


KILLS = (
    *("ledger.anchor.row", "ledger.anchor.line", "ledger.anchor.ref", "ledger.record.committed"),
    *("ledger.anchor.row#2", "ledger.anchor.line#2", "ledger.record.linked#2", "ledger.record.committed#3"),
    *("store.append.opened", "store.append.written", "store.append.synced", "store.append.written#2"),
)


@pytest.mark.req("X2", "F2")
@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize(
    "point", [*KILLS[:1], *(pytest.param(one, marks=pytest.mark.width("full")) for one in KILLS[1:])]
)
def test_a_kill_between_record_and_anchor_loses_nothing_and_raises_no_alarm(
    ground_of: Callable[[str], Ground], verified: Verify, kind: str, point: str
) -> None:
    ground = ground_of(kind)
    run_id = ground.runs[1].replace("27T", "28T")
    assert _write(ground, run_id, FAIRWITNESS_KILL_AT=point) == -signal.SIGKILL
    code, said = verified(ground)
    assert (code, "TAMPERED" in said) == (0, False), said
    with closing(Ledger.read_only(ground.database)) as ledger:
        links = ledger.head(run_id).links
    assert _write(ground, run_id) == 0
    code, said = verified(ground)
    assert (code, "TAMPERED" in said) == (0, False), said
    with closing(Ledger.read_only(ground.database)) as ledger:
        assert ledger.head(run_id).links > links


@pytest.mark.req("X2")
def test_a_run_that_is_being_written_is_intact(ground_of: Callable[[str], Ground], verified: Verify) -> None:
    ground = ground_of("verify")
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            with closing(ground.open()) as ledger:
                add_run(ground, ledger, f"verify-2026030{number % 9}T000000-{number:06}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(5):
            code, said = verified(ground)
            assert (code, "TAMPERED" in said) == (0, False), said
    finally:
        stop.set()
        writer.join()


@pytest.mark.req("X2")
@pytest.mark.parametrize("kind", RUNS)
def test_a_ledger_from_another_machine_is_foreign_until_it_is_adopted(
    ground_of: Callable[[str], Ground], verified: Verify, kind: str
) -> None:
    ground = ground_of(kind)
    held = anchors_of(ground)[-1].held
    os.environ["XDG_STATE_HOME"] = str(ground.top.parent / "another machine")
    vouch(ground.top / ".fairwitness")
    code, said = verified(ground)
    assert (code, said.count(": foreign:")) == (6, 2)
    assert "if you brought it here yourself: fairwitness adopt" in said
    with closing(ground.open()) as ledger:
        new = adopt_ledger(ground.top, ledger)
    code, said = verified(ground, held, new)
    assert (code, "TAMPERED" in said) == (0, False), said
    with closing(ground.open()) as ledger:
        add_run(ground, ledger, ground.runs[1].replace("27T", "28T"))
    code, said = verified(ground, held, new)
    assert (code, "TAMPERED" in said) == (0, False), said


@pytest.mark.req("X2")
def test_two_copies_of_a_ledger_on_one_machine_do_not_contradict_each_other_after_adopting(
    ground_of: Callable[[str], Ground], verified: Verify
) -> None:
    ground = ground_of("verify")
    copy = Ground(ground.top.parent / "copy", ground.state, "verify")
    shutil.copytree(ground.top, copy.top)
    vouch(copy.top / ".fairwitness")
    with closing(copy.open()) as ledger:
        adopt_ledger(copy.top, ledger)
    for one, day in ((ground, "28T"), (copy, "29T"), (ground, "30T")):
        with closing(one.open()) as ledger:
            add_run(one, ledger, one.runs[1].replace("27T", day))
    for one in (ground, copy):
        code, said = verified(one)
        assert (code, "TAMPERED" in said) == (0, False), said


@pytest.mark.req("X2")
@pytest.mark.parametrize(
    "do", [roll_back_and_go_on, delete_run_everywhere, add_run_everywhere], ids=lambda do: do.__name__
)
def test_what_a_person_adopts_is_the_new_state(
    ground_of: Callable[[str], Ground], verified: Verify, do: Callable[[Ground], None]
) -> None:
    ground = ground_of("verify")
    do(ground)
    assert verified(ground)[0] == 6
    with closing(ground.open()) as ledger:
        adopt_ledger(ground.top, ledger)
    code, said = verified(ground)
    assert (code, "TAMPERED" in said) == (0, False), said


@pytest.mark.req("X2")
def test_a_ledger_from_before_anchors_is_anchored_by_the_next_run(
    ground_of: Callable[[str], Ground], verified: Verify, tmp_path: Path
) -> None:
    old = Ground(tmp_path / "old", tmp_path / "state", "verify")
    os.environ["XDG_STATE_HOME"] = str(old.state)
    subprocess.run(["git", "init", "-q", old.top], check=True)
    claim(old.database.parent)
    shutil.copyfile(ROOT / "tests" / "fixtures" / "databases" / "evidence-v2.db", old.database)
    code, said = verified(old)
    assert (code, "written before there were anchors" in said) == (0, True), said
    with closing(old.open()) as ledger:
        add_run(old, ledger, old.runs[0])
    code, said = verified(old)
    assert (code, "TAMPERED" in said) == (0, False), said
    assert len(anchors_of(old)) == 4


@pytest.mark.req("X2")
def test_a_moved_repository_is_intact_and_a_new_ledger_in_an_old_place_says_so(
    ground_of: Callable[[str], Ground], verified: Verify
) -> None:
    ground = ground_of("verify")
    moved = Ground(ground.top.parent / "moved", ground.state, "verify")
    ground.top.rename(moved.top)
    code, said = verified(moved)
    assert (code, "TAMPERED" in said) == (0, False), said
    subprocess.run(["git", "init", "-q", ground.top], check=True)  # a fresh clone in the old place
    vouch(claim(ground.top / ".fairwitness").path)
    with closing(ground.open()) as ledger:
        add_run(ground, ledger, ground.runs[0])
    code, said = verified(ground)
    assert (code, "this machine kept another ledger here before" in said) == (0, True), said


@pytest.mark.req("X2")
def test_a_copy_is_checked_as_far_as_it_goes(ground_of: Callable[[str], Ground], verified: Verify) -> None:
    ground = ground_of("run")
    copy = ground.top / EXPORT
    held = anchors_of(ground)[-1].held
    assert verified(ground, held, file=copy)[0] == 0
    with closing(ground.open()) as ledger:
        add_run(ground, ledger, ground.runs[1].replace("27T", "28T"))
    shutil.copyfile(ground.top.parent / "older.db", ground.top / "older.db")
    code, said = verified(ground, file=ground.top / "older.db")
    assert (code, "this copy ends at anchor 2; this machine wrote anchor 6 since then" in said) == (0, True), said
    code, said = verified(ground, held, file=ground.top / "older.db")
    assert (code, "the ledger ends at anchor 2, but you hold anchor 4" in said) == (6, True), said
    os.environ["XDG_STATE_HOME"] = str(ground.top.parent / "another machine")
    code, said = verified(ground, file=copy)
    assert (code, "give a head that you hold with --head" in said) == (0, True), said


@pytest.mark.req("X2")
def test_where_git_refuses_a_ref_the_anchor_says_where_it_is(
    ground_of: Callable[[str], Ground], verified: Verify
) -> None:
    ground = ground_of("verify")
    shutil.rmtree(ground.top / ".git" / "refs" / "fairwitness")
    (ground.top / ".git" / "refs" / "fairwitness").write_text("in the way")
    run_id = ground.runs[1].replace("27T", "28T")
    with closing(ground.open()) as ledger:
        add_run(ground, ledger, run_id)
        anchored = ledger.anchor(run_id)
        assert "in the user's state directory only: git update-ref failed" in anchored.where
        assert not_in_git(ground.top, anchored.anchor) == "in the user's state directory only, not in git"
    code, said = verified(ground, anchored.anchor.held)
    assert (code, "TAMPERED" in said) == (0, False), said


@pytest.mark.req("X2")
def test_a_bare_repository_keeps_refs_too(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "bare.git"], check=True)
    keep_head(tmp_path / "bare.git", "run-1", KeptHead(3, "sha256:abc", 7, "sha256:def", "id"))
    assert kept_heads(tmp_path / "bare.git") == {"run-1": KeptHead(3, "sha256:abc", 7, "sha256:def", "id")}


@pytest.mark.req("X2")
def test_a_database_that_two_machines_share_blames_neither(empty_postgres: str, tmp_path: Path) -> None:
    seen = {}
    for machine in ("one", "two"):
        os.environ["XDG_STATE_HOME"] = str(tmp_path / machine)
        with closing(Ledger.open(PostgresDatabase(empty_postgres))) as ledger:
            ledger.record(machine, lambda record, run=machine: record.observation(observation(run_id=run)))  # type: ignore[misc]
            ledger.anchor(machine)
            seen[machine] = known_anchors(ledger.database)
            assert list(ledger_findings(seen[machine])) == []
            assert [finding for run in ledger.runs() for finding in verify_here(ledger.database, run)] == []
    assert [row.run_id for row in seen["two"].rows] == ["one", "one", "two", "two"]
    assert (seen["two"].is_from_elsewhere("one"), seen["two"].is_from_elsewhere("two")) == (True, False)
    assert seen["two"].is_foreign("three")


def test_every_milestone_is_an_event_of_a_workflow() -> None:
    events = "\n".join(path.read_text() for path in (ROOT / "src/fairwitness/contracts").glob("*/events*.py"))
    assert [name for name in MILESTONES if f'["{name}"]' not in events] == []


READ_ONLY = """
mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 77
cd "$1" && if touch x 2>/dev/null; then exit 78; fi
exec "$2" ledger verify
"""


@pytest.mark.req("X2")
@pytest.mark.parametrize("left", ["nothing", "log and index", "log only"])
def test_a_ledger_on_a_read_only_mount_is_verified(ground_of: Callable[[str], Ground], left: str) -> None:
    ground = ground_of("run")
    if left != "nothing":
        ledger = ground.open()  # while it is open, what was written last is in the log
        go_on(ground, ledger, ground.runs[1])
        copies = {path.name: path.read_bytes() for path in ground.database.parent.glob("evidence.db*")}
        ledger.close()
        for name, content in copies.items():
            (ground.database.parent / name).write_bytes(content)
        if left == "log only":
            (ground.database.parent / "evidence.db-shm").unlink()
    alone = [] if os.geteuid() == 0 else ["--map-root-user"]
    program = Path(sys.executable).with_name("fairwitness")
    command = ["unshare", *alone, "--mount", "sh", "-c", READ_ONLY, "sh", str(ground.top), str(program)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare on this machine")
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("this user may not mount")
    assert (done.returncode, "TAMPERED" in done.stdout) == (0, False), done.stdout + done.stderr
    with closing(sqlite3.connect(ground.database)) as connection:
        ((links,),) = connection.execute("SELECT COUNT(*) FROM chain").fetchall()
    assert sum(int(found) for found in re.findall(r"(\d+) links +\S+evidence.db$", done.stdout, re.MULTILINE)) == links
