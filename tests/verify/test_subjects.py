"""Attempts and merges of one run are verified each on its own: at once, again after a kill, and until a stop."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from fairwitness.app.views.evidence import read_execution
from fairwitness.app.views.gates import one_gate, run_gates
from fairwitness.contracts.common.evidence import Observation, Phase
from fairwitness.contracts.common.gates import Blocked, Open
from fairwitness.contracts.verify.report import VerifySubject
from fairwitness.errors import NotReady, UsageError
from fairwitness.kit.clock import spell, system_clock
from fairwitness.ledger.record import Record
from fairwitness.ledger.verify import verify
from fairwitness.verify.folder_lock import locked_folder
from fairwitness.verify.gate_answer import gate_answer
from fairwitness.verify.model import ProposedChange, VerificationStopped
from fairwitness.verify.subject import SubjectOutcome, verify_subject
from fairwitness.verify.tree_view import checks_at
from fairwitness.verify.verification import VerificationResult
from verify.subjects import PRICES, RUN, SETTINGS, World, branch, make

SLEEPS = f"4321.{os.getpid()}"  # other test processes sleep as well
Opened = Callable[[], World]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Opened]:
    """Opens the world of a test, once its repository is there."""
    with ExitStack() as stack:

        def opened() -> World:
            try:
                return stack.enter_context(World.open(tmp_path))
            except NotReady as error:
                pytest.skip(f"no sandbox: {error.what}")

        yield opened


def answer(world: World, task: str, round_: int) -> Open | Blocked | None:
    return gate_answer(world.deps.ledger, RUN, VerifySubject(task_id=task, round=round_))


@pytest.mark.req("P9", "F6")
def test_two_tasks_with_two_rounds_each_have_gates_of_their_own(tmp_path: Path, world: Opened) -> None:
    person = make(tmp_path)
    branch(person, "good", price="2\n")
    branch(person, "red", price="0\n")
    branch(person, "other", of="good", notes="nothing\n")
    here = world()
    wanted = {
        ("task-01", 1): ("main", "red", False),
        ("task-01", 2): ("main", "good", True),
        ("task-02", 1): ("main", "other", True),
        ("task-02", 2): ("good", "red", False),
    }
    for (task, round_), (base, head, holds) in wanted.items():
        proved = here.prove(task, round_, base=base, head=head)
        assert (proved.holds, proved.tree, proved.adopted) == (holds, here.side(head).tree, False), proved
        assert (proved.reasons == ()) is holds
    for (task, round_), (base, head, holds) in wanted.items():
        found = answer(here, task, round_)
        assert found is not None
        assert found.answer == ("open" if holds else "blocked"), found
        assert found.query.values == (RUN, task, "after", round_)
        before = here.deps.ledger.tally(RUN, task, Phase.BASELINE, round_ - 1)
        assert {row.tree for row in before.rows} == {here.side(base).tree}
        after = here.deps.ledger.tally(RUN, task, Phase.AFTER, round_)
        assert {row.tree for row in after.rows} == {here.side(head).tree}
    views = run_gates(here.deps.ledger, RUN)
    assert [(view.name, view.round) for view in views] == [("verify:task-01", 2), ("verify:task-02", 2)]
    assert one_gate(RUN, views, "verify:task-01").answer == answer(here, "task-01", 2)
    assert answer(here, "task-03", 1) is None
    assert gate_answer(here.deps.ledger, RUN) is None
    assert verify(here.deps.ledger.database, RUN) == []
    assert here.left() == []


@pytest.mark.req("P9", "X1")
def test_a_red_tree_is_refused_with_what_stands_against_it(tmp_path: Path, world: Opened) -> None:
    person = make(tmp_path)
    branch(person, "red", price="TODO\n")
    here = world()
    proved = here.prove("task-01", 1, head="red")
    assert not proved.holds
    assert {"tests tests (regressed)", "lint lint (regressed)", "regressions tests (failed)"} <= set(proved.reasons)
    kept = here.deps.ledger.observation(RUN, "verified:task-01:1")
    assert kept is not None
    assert (kept.holds, kept.tree, kept.detail["base"]) == (False, proved.tree, here.side("main").tree)
    assert tuple(kept.detail["missing"]) == proved.reasons
    found = answer(here, "task-01", 1)
    assert isinstance(found, Blocked)
    assert found.missing == proved.reasons


@pytest.mark.req("P16")
def test_the_same_subject_twice_runs_nothing_and_adds_no_row(tmp_path: Path, world: Opened) -> None:
    person = make(tmp_path)
    branch(person, "good", price="2\n")
    here = world()
    first = here.prove("task-01", 1, head="good")
    before, head = here.content(), here.deps.ledger.head(RUN)
    assert here.prove("task-01", 1, head="good") == first._replace(adopted=True)
    assert (here.content(), here.deps.ledger.head(RUN)) == (before, head)


@pytest.mark.req("X1")
def test_a_subject_that_was_verified_stands_for_no_other_change(tmp_path: Path, world: Opened) -> None:
    person = make(tmp_path)
    branch(person, "good", price="2\n")
    branch(person, "better", price="3\n")
    here = world()
    assert here.prove("task-01", 1, head="good").holds
    before = here.content()
    with pytest.raises(UsageError, match="task-01:1 was verified for another tree"):
        here.prove("task-01", 1, head="better")
    with pytest.raises(UsageError, match="task-01:1 was verified against another base"):
        here.prove("task-01", 1, base="better", head="good")
    assert here.content() == before
    assert here.prove("task-01", 2, head="better").holds


@pytest.mark.req("X1")
def test_a_repeat_of_a_killed_try_is_about_the_same_change_and_goes_by_the_same_settings(
    tmp_path: Path, world: Opened
) -> None:
    person = make(tmp_path)
    branch(person, "good", price="2\n")
    branch(person, "better", price="3\n")
    here = world()
    assert spawned(tmp_path, "task-01", "good", kill_at="verify.begun") == -signal.SIGKILL
    with pytest.raises(UsageError, match="task-01:1 was verified for another tree"):
        here.prove("task-01", 1, head="better")
    with pytest.raises(UsageError, match="task-01:1 was verified by other settings"):
        here.prove("task-01", 1, head="good", digest="0" * 64)
    assert here.prove("task-01", 1, head="good").holds
    assert here.left() == []


@pytest.mark.req("X5")
def test_the_one_change_of_a_run_keeps_its_plain_keys(tmp_path: Path, world: Opened) -> None:
    person = make(tmp_path)
    branch(person, "good", price="2\n")
    here = world()
    assert here.prove("task-01", 1, head="good").holds
    assert here.prove("change", 1, head="good").holds
    rows = here.rows("observations", "key, kind, detail", "task_id = 'change'")
    assert {kind: key for key, kind, _ in rows if kind not in ("run", "proof")} == {
        "settings": "settings",
        "asked": "asked",
        "verified": "verified",
    }
    assert "proof:regressions:tests" in {key for key, _, _ in rows}
    assert {key.partition("#")[2] for key, kind, _ in rows if kind == "run"} == {"baseline", "after"}
    assert not any("subject" in json.loads(detail) for _, _, detail in rows)
    found = gate_answer(here.deps.ledger, RUN)
    assert found is not None
    assert found.query.values == (RUN, "change", "after")
    assert ("verify:change", 1) in [(view.name, view.round) for view in run_gates(here.deps.ledger, RUN)]


@pytest.mark.req("P16")
def test_a_change_that_was_proven_to_its_end_is_only_told(tmp_path: Path, world: Opened) -> None:
    person = make(tmp_path)
    branch(person, "red", price="0\n")
    here = world()
    deps, subject = here.deps, VerifySubject(task_id="task-01", round=1)
    base, head = here.side("main"), here.side("red")
    change = ProposedChange(base, head, deps.shadow.diff(base.tree, head.tree))
    before, after = (checks_at(deps.shadow, side.tree, deps.settings) for side in (base, head))

    def proven() -> VerificationResult:
        work = deps.scratch / "work" / "verify-by-hand"
        return verify_subject(
            deps, subject, change, before, after, run_id=RUN, work=work, actor="Ada", on_progress=lambda _progress: None
        )

    first, content = proven(), here.content()
    again = proven()
    assert (again.answer, again.notes) == (first.answer, first.notes)
    assert first.checks
    assert again.checks == ()
    assert here.content() == content


@pytest.mark.req("P9")
def test_what_another_subject_was_answered_is_not_run_again_and_has_rows_of_its_own(
    tmp_path: Path, world: Opened
) -> None:
    person = make(tmp_path)
    branch(person, "good", price="2\n")
    here = world()
    here.prove("task-01", 1, head="good")
    ran = here.rows("executions", "id, started_at, key")
    here.prove("task-02", 1, head="good")
    copies = here.rows("executions", "id, started_at, key")[len(ran) :]
    assert sorted(started for _, started, _ in copies) == sorted(started for _, started, _ in ran)
    assert {key.partition("#")[2] for _, _, key in copies} == {"task-02:1#baseline", "task-02:1#after"}
    columns = "check_name, phase, passed, round, instance"
    of_both = [here.rows("anvil_checks", columns, f"task_id = 'task-0{number}'") for number in (1, 2)]
    assert sorted(of_both[0], key=repr) == sorted(of_both[1], key=repr)
    told = [detail for (detail,) in here.rows("observations", "detail", "task_id = 'task-02' AND kind = 'run'")]
    assert {json.loads(detail)["taken_from"]["run"] for detail in told} == {RUN}
    shown = [read_execution(person.folder, here.deps.state, number).stdout for number, _, _ in copies]
    assert sorted(shown) == ["", "", "looking at the price\n", "looking at the price\n"]


@pytest.mark.req("X1")
def test_answers_of_a_run_that_is_being_written_to_are_no_forgery(tmp_path: Path, world: Opened) -> None:
    person = make(tmp_path)
    heads = [f"good-{price}" for price in range(2, 6)]
    for head in heads:
        branch(person, head, price=head.partition("-")[2])
    here = world()
    assert all(here.prove(head, 1, head=head).holds for head in heads)
    ledger, enough = here.deps.ledger, threading.Event()

    def busy() -> None:
        for number in count():
            if enough.is_set():
                return
            ledger.record(RUN, _noting(number))

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        assert all(here.prove(head, 1, head=head, run_id=f"run-of-{head}").holds for head in heads)
    finally:
        enough.set()
        thread.join(30)
    for run_id in ledger.runs():
        assert verify(ledger.database, run_id) == []


def _noting(number: int) -> Callable[[Record], int]:
    note = Observation(
        run_id=RUN,
        task_id=None,
        key=f"note-{number}",
        kind="note",
        subject="note",
        holds=True,
        detail={},
        tree=None,
        observed_at=spell(system_clock()),
    )
    return lambda record: record.observation(note)


@pytest.mark.req("P9", "X1")
def test_what_gives_no_evidence_is_asked_as_often_as_it_takes(tmp_path: Path, world: Opened) -> None:
    hangs = f'[verify]\nmutants = 0\n[[verify.check]]\nname = "tests"\nargv = ["sleep", "{SLEEPS}"]\ntimeout_s = 0.2\n'
    person = make(tmp_path, settings=hangs)
    branch(person, "good", price="2\n")
    here = world()
    for task in ("task-01", "task-02"):
        for round_ in (1, 2):
            assert not here.prove(task, round_, head="good").holds
    # a try that was killed just before its end leaves what it ran, and nothing of it is evidence
    killed = [spawned(tmp_path, "task-03", "good", kill_at="verify.ran.after") for _ in range(3)]
    assert killed == [-signal.SIGKILL] * 3
    assert not here.prove("task-03", 1, head="good").holds
    ends = [key.partition("#")[2] for (key,) in here.rows("executions", "key", "task_id = 'task-03'")]
    assert [end for end in ends if "baseline" in end] == [
        f"task-03:1#baseline{tail}" for tail in ("", "#2", "#3", "#4")
    ]
    assert verify(here.deps.ledger.database, RUN) == []


def spawned(root: Path, task: str, head: str, *, kill_at: str | None = None, base: str = "main") -> int:
    """A verification in a process of its own; how it ended."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if kill_at is not None:
        environment["FAIRWITNESS_KILL_AT"] = kill_at
    command = [sys.executable, "-m", "verify.subjects", str(root), task, "1", base, head]
    return subprocess.run(command, env=environment, check=False, stdout=subprocess.DEVNULL).returncode


KILLED = {
    "good": (
        "ledger.record.linked",
        "verify.begun",
        "verify.ran.baseline",
        "verify.recorded.after",
        "verify.recorded.protected",
        "verify.concluded",
    ),
    "red": ("verify.recorded.baseline", "verify.ran.after", "verify.ran.again", "verify.recorded.again"),
}


@pytest.mark.req("P16")
@pytest.mark.parametrize("head", KILLED)
def test_whoever_is_killed_leaves_what_a_repeat_makes_whole(tmp_path: Path, world: Opened, head: str) -> None:
    person = make(tmp_path)
    for name, price in (("good", "2\n"), ("red", "0\n")):
        branch(person, name, price=price, **{"tests/prices.sh": f"# more than nothing\n{PRICES}"})
    here = world()
    content, links, proved = _alone(here, head)
    for point in KILLED[head]:
        for file in here.deps.state.glob("evidence.db*"):
            file.unlink()
        assert spawned(tmp_path, "task-01", head, kill_at=point) == -signal.SIGKILL, point
        with World.open(tmp_path) as again:
            was_done = point == "verify.concluded"
            assert again.prove("task-01", 1, head=head) == proved._replace(adopted=was_done), point
            assert again.content() == content, point
            assert again.deps.ledger.head(RUN).links == links, point
            assert verify(again.deps.ledger.database, RUN) == []
            assert again.left() == [], point


def _alone(here: World, head: str) -> tuple[list[str], int, SubjectOutcome]:
    """What an unkilled verification leaves."""
    proved = here.prove("task-01", 1, head=head)
    assert proved.holds is (head == "good"), proved
    return here.content(), here.deps.ledger.head(RUN).links, proved


@pytest.mark.req("F6")
def test_several_subjects_are_verified_at_once(tmp_path: Path, world: Opened) -> None:
    setup = '\n[verify.setup]\ncommands = [["python3", "-m", "venv", "--without-pip", "{env}"]]\n'
    person = make(tmp_path, settings=SETTINGS + setup)
    person.commit("a python project", **{"pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n'})
    branch(person, "good", price="2\n")
    branch(person, "red", price="0\n")
    here = world()
    orders = [("task-01", 1, "good"), ("task-02", 1, "red"), ("task-03", 1, "good"), ("task-01", 2, "red")]
    with ThreadPoolExecutor(len(orders)) as pool:
        proved = list(pool.map(lambda order: here.prove(order[0], order[1], head=order[2], parallel=2), orders))
    assert [each.holds for each in proved] == [True, False, True, False], proved
    for (task, round_, _), each in zip(orders, proved, strict=True):
        found = answer(here, task, round_)
        assert found is not None
        assert (found.answer == "open") is each.holds
    assert here.left() == []
    assert verify(here.deps.ledger.database, RUN) == []


@pytest.mark.req("F6", "P16")
def test_two_who_verify_the_same_subject_take_turns_and_the_second_finds_it_done(tmp_path: Path, world: Opened) -> None:
    person = make(tmp_path)
    branch(person, "good", price="2\n")
    here = world()
    alone = _alone(here, "good")
    with ThreadPoolExecutor(2) as pool:
        other = pool.submit(spawned, tmp_path, "task-02", "good")
        proved = list(pool.map(lambda _: here.prove("task-02", 1, head="good"), range(2)))
        assert other.result() == 0
    assert [each.holds for each in proved] == [True, True]
    assert sum(not each.adopted for each in proved) <= 1
    assert here.deps.ledger.head(RUN).links == 2 * alone[1]


def asleep() -> list[int]:
    """The processes that sleep for as long as only these tests do."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if SLEEPS.encode() in words:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.req("P16", "F6")
@pytest.mark.parametrize("where", ["a check", "the setup"])
def test_a_stop_ends_it_within_a_second_and_leaves_no_process(tmp_path: Path, world: Opened, where: str) -> None:
    settings = f'[verify]\nmutants = 0\n[[verify.check]]\nname = "tests"\nargv = ["sleep", "{SLEEPS}"]\n'
    if where == "the setup":
        settings += f'[verify.setup]\ncommands = [["sleep", "{SLEEPS}"]]\n'
    person = make(tmp_path, settings=settings)
    person.commit("a python project", **{"pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n'})
    branch(person, "good", price="2\n")
    here = world()
    stop, ended = threading.Event(), list[float | BaseException]()

    def proving() -> None:
        try:
            here.prove("task-01", 1, head="good", stop=stop, parallel=2)
        except VerificationStopped as error:
            ended.append(error)
        ended.append(time.monotonic())

    thread = threading.Thread(target=proving)
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while not asleep() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert asleep(), "it never began"
    finally:
        asked = time.monotonic()
        stop.set()
        thread.join(30)
    error, moment = ended
    assert isinstance(error, VerificationStopped), error
    assert isinstance(moment, float)
    assert moment - asked < 1
    assert asleep() == []
    assert here.left() == []
    assert here.rows("executions") == [], "what was cut off is on no record"
    assert [kind for (kind,) in here.rows("observations", "kind")] == ["settings"]
    with pytest.raises(VerificationStopped):
        here.prove("task-01", 1, head="good", stop=stop)


def test_who_waits_for_a_turn_can_be_stopped_and_what_the_dead_left_is_swept(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    (tmp_path / "dead").mkdir()
    (tmp_path / "dead.turn").touch()
    with locked_folder(tmp_path, "one") as folder:
        (folder / "file").touch()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "one.turn"]
        with pytest.raises(VerificationStopped), locked_folder(tmp_path, "one", stop):
            pytest.fail("two at a time")
        with locked_folder(tmp_path, "another"):
            assert (folder / "file").exists()
    assert list(tmp_path.iterdir()) == []
