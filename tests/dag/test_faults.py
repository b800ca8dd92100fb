"""What people and the machine do to a running graph: contained, told, tried again, and nothing is lost."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.graph.orders import GraphOptions
from fairwitness.git.reachability import lost
from fairwitness.git.repository import Repository
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.verify import verify
from fairwitness.sandbox.probe import probe
from git.person import Person
from support.graph.begin import begin_graph
from support.graph.team import RUN, Task, dag_of, documents_of, lay_out, record

TARGET = "fairwitness/target"
PATIENCE_S = 60.0

pytestmark = [
    pytest.mark.skipif(not probe().tiers, reason="nothing here can keep a command in"),
    pytest.mark.timeout(180),
]


class Ground:
    """A repository with a run in it, the person it belongs to, and the process that carries the run."""

    def __init__(self, root: Path, *tasks: Task, max_attempts: int = 3) -> None:
        self.root = root
        self.folder = lay_out(root / "repo")
        (root / "home").mkdir(parents=True, exist_ok=True)
        self.person = Person(self.folder, root / "home")
        begin_graph(
            self.folder,
            dag_of(tasks),
            documents_of(tasks),
            request="Fill the catalogue.",
            options=GraphOptions(target=TARGET, look_s=0.1, max_attempts=max_attempts),
            agents="cassette",
            cassettes=record(root / "recordings", tasks),
        )
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Carries the run in a process of its own."""
        environment = {**os.environ, "HOME": str(self.root / "home"), "NO_COLOR": "1"}
        self._process = subprocess.Popen(
            [str(Path(sys.executable).with_name("fairwitness")), "resume", RUN],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def ended(self) -> int:
        """Waits for its end; the exit code."""
        assert self._process is not None
        self.printed, _ = self._process.communicate(timeout=PATIENCE_S)
        return self._process.returncode

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def events(self, type_: str | None = None) -> list[Envelope]:
        ledger = Ledger.read_only(self.folder / ".fairwitness" / "evidence.db")
        try:
            return [event for event in ledger.events(RUN) if type_ in (None, event.type)]
        finally:
            ledger.close()

    def wait_for(self, what: Callable[[], Any]) -> Any:
        """Until something is so."""
        give_up = time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up:
            found = what()
            if found:
                return found
            time.sleep(0.02)
        self.stop()
        raise AssertionError(f"it did not come: {[event.type for event in self.events()]}")

    def worktree(self, node: str, attempt: int = 1) -> Path:
        """The folder of an attempt, once its agent is at work in it."""
        folder = self.folder / ".fairwitness" / "worktrees" / f"{RUN}--{node}--attempt-{attempt}"
        self.wait_for(lambda: (folder / "slow").is_file())
        return folder

    def tip(self, ref: str = TARGET) -> str:
        return self.person.git("rev-parse", "--verify", f"{ref}^{{commit}}")

    def files(self) -> set[str]:
        return set(self.person.git("ls-tree", "-r", "--name-only", TARGET).splitlines())

    def changes(self, node: str) -> list[tuple[str, str | None]]:
        """The states a node went through, with the reasons that were told."""
        found = [event.data for event in self.events("node.changed") if event.data["nodeId"] == node]
        return [(data["newStatus"], data.get("reason")) for data in found]

    def assert_whole(self) -> None:
        """The ledger is as it was written, no commit that an event named is lost, and nothing lies about."""
        repository = Repository.open(self.folder)
        named = {event.data[key] for event in self.events() for key in ("commit", "tip") if key in event.data}
        assert lost(repository, RUN, named) == ()
        ledger = Ledger.read_only(self.folder / ".fairwitness" / "evidence.db")
        try:
            assert verify(ledger.database, RUN) == []
        finally:
            ledger.close()
        assert len(self.person.git("worktree", "list").splitlines()) == 1
        assert self.person.git("for-each-ref", "refs/fairwitness/candidates") == ""


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Callable[..., Ground]]:
    made: list[Ground] = []

    def make(*tasks: Task, root: Path | None = None, **options: Any) -> Ground:
        made.append(Ground(root or tmp_path / "ground", *tasks, **options))
        return made[-1]

    (tmp_path / "ground").mkdir()
    yield make
    for each in made:
        each.stop()


@pytest.mark.req("F10", "P16")
def test_a_worktree_that_is_deleted_under_its_agent_costs_one_attempt(ground: Callable[..., Ground]) -> None:
    here = ground(Task("task-01", slow=True), Task("task-02"))
    here.start()
    shutil.rmtree(here.worktree("task-01"))
    assert here.ended() == 0, here.printed
    states = here.changes("task-01")
    assert [state for state, _ in states[:4]] == ["RUNNING", "FAILED", "PENDING", "RUNNING"]
    assert states[1][1]
    assert {"parts/task-01", "parts/task-02"} <= here.files()
    here.assert_whole()


@pytest.mark.req("F10")
def test_an_attempts_branch_that_somebody_moves_is_not_merged_and_their_commit_is_kept(
    ground: Callable[..., Ground],
) -> None:
    here = ground(Task("task-01", slow=True))
    here.start()
    here.worktree("task-01")
    branch = f"refs/heads/fairwitness/{RUN}/task-01/attempt-1"
    tree = here.person.git("rev-parse", "main^{tree}")
    theirs = here.person.git("commit-tree", "-p", "main", "-m", "mine", tree)
    here.person.git("update-ref", branch, theirs)
    assert here.ended() == 0, here.printed
    assert "moved by another process" in str(here.changes("task-01")[1][1])
    assert "parts/task-01" in here.files()
    assert here.person.is_quarantined(theirs)
    here.assert_whole()


@pytest.mark.req("F10", "P16")
def test_a_commit_that_a_person_adds_to_the_target_stays_in_it(ground: Callable[..., Ground]) -> None:
    here = ground(Task("task-01"), Task("task-02", ("task-01",), slow=True), Task("task-03", ("task-02",)))
    here.start()
    here.worktree("task-02")
    here.wait_for(lambda: here.events("merge.finished"))
    before = here.tip()
    theirs_file = here.root / "theirs"
    theirs_file.write_text("theirs\n")
    blob = here.person.git("hash-object", "-w", str(theirs_file))
    index = str(here.root / "index")
    here.person.git("read-tree", before, GIT_INDEX_FILE=index)
    here.person.git("update-index", "--add", "--cacheinfo", f"100644,{blob},theirs", GIT_INDEX_FILE=index)
    theirs = here.person.git(
        "commit-tree", "-p", before, "-m", "mine", here.person.git("write-tree", GIT_INDEX_FILE=index)
    )
    here.person.git("update-ref", f"refs/heads/{TARGET}", theirs, before)
    assert here.ended() == 0, here.printed
    moved = [event.data for event in here.events("target.moved")]
    assert [(data["expected"], data["found"]) for data in moved] == [(before, theirs)]
    assert {"theirs", "parts/task-01", "parts/task-02", "parts/task-03"} <= here.files()
    here.assert_whole()


@pytest.mark.req("F10", "P16")
def test_merged_work_that_is_taken_out_of_the_target_stops_the_run_until_it_is_back(
    ground: Callable[..., Ground],
) -> None:
    here = ground(Task("task-01"), Task("task-02", ("task-01",), slow=True))
    here.start()
    here.worktree("task-02")
    merged = here.wait_for(lambda: [event.data["tip"] for event in here.events("merge.finished")])[0]
    here.person.git("update-ref", f"refs/heads/{TARGET}", "main")
    assert here.ended() == 1, here.printed
    assert f"merged work was removed from {TARGET}" in here.printed
    assert here.person.is_quarantined(merged)
    here.person.git("branch", "-f", TARGET, merged)
    here.start()
    assert here.ended() == 0, here.printed
    assert {"parts/task-01", "parts/task-02"} <= here.files()
    here.assert_whole()


@pytest.mark.req("F10")
def test_a_target_that_is_deleted_is_put_back_with_all_that_was_merged(ground: Callable[..., Ground]) -> None:
    here = ground(Task("task-01"), Task("task-02", ("task-01",), slow=True))
    here.start()
    here.worktree("task-02")
    here.wait_for(lambda: here.events("merge.finished"))
    here.person.git("update-ref", "-d", f"refs/heads/{TARGET}")
    assert here.ended() == 0, here.printed
    assert {"parts/task-01", "parts/task-02"} <= here.files()
    here.assert_whole()


@pytest.mark.req("F10")
def test_a_main_that_advances_meanwhile_is_left_alone(ground: Callable[..., Ground]) -> None:
    here = ground(Task("task-01", slow=True))
    here.start()
    here.worktree("task-01")
    theirs = here.person.commit("their own work", notes="n\n")
    assert here.ended() == 0, here.printed
    assert here.tip("main") == theirs
    assert here.person.git("status", "--porcelain") == ""
    assert "notes" not in here.files()
    here.assert_whole()


@pytest.mark.req("F10", "P12")
def test_a_task_without_attempts_left_ends_the_run_and_its_dependents_stay_pending(
    ground: Callable[..., Ground],
) -> None:
    here = ground(Task("task-01", bad_attempts=9), Task("task-02", ("task-01",)), Task("task-03"), max_attempts=2)
    here.start()
    assert here.ended() == 1, here.printed
    assert [state for state, _ in here.changes("task-01")].count("RUNNING") == 2
    assert here.changes("task-02") == []
    assert "parts/task-03" in here.files()
    state = json.loads((here.folder / ".fairwitness" / "artifacts" / RUN / "run-state.json").read_text())
    assert (state["status"], state["failedTasks"], state["completedTasks"]) == ("failed", 1, 1)
    here.assert_whole()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 80 megabytes: a run wants 32 of them free."""
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", str(mount)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine lets nobody mount a small disk")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


@pytest.mark.req("P16", "F10")
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_full_disk_holds_a_run_up_and_with_room_again_it_goes_on(
    ground: Callable[..., Ground], small_disk: Path, is_killed: bool
) -> None:
    here = ground(
        Task("task-01"),
        Task("task-02", ("task-01",), slow=True),
        Task("task-03", ("task-02",)),
        root=small_disk / "ground",
    )
    here.start()
    here.worktree("task-02")
    ballast = small_disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    time.sleep(4)
    assert not here.events("run.completed")
    if is_killed:
        here.stop()
    ballast.unlink()
    if is_killed:
        here.start()
    assert here.ended() == 0, here.printed
    assert "Traceback" not in here.printed
    assert {"parts/task-01", "parts/task-02", "parts/task-03"} <= here.files()
    for node in ("task-01", "task-02", "task-03"):
        assert [state for state, _ in here.changes(node)].count("RUNNING") == 1, here.changes(node)
    here.assert_whole()
