"""What a phase left on the target is taken back by one commit; nothing is lost, and nobody else's work is touched."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.autopilot.order import AutopilotOrder
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.events import MergeFinished, TaskVerified
from fairwitness.contracts.graph.orders import AttemptStart
from fairwitness.errors import InternalError, NotReady, UsageError
from fairwitness.git.candidates import Candidates, Stacked, StackMember
from fairwitness.git.commits import commit_tree
from fairwitness.git.identity import FALLBACK, Identity
from fairwitness.git.merge import merged_tree
from fairwitness.git.objects import FILE, Objects, TreeEntry
from fairwitness.git.reachability import lost
from fairwitness.git.shadow import Shadow
from fairwitness.git.worktrees import Worktrees
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.runs.autopilot.revert import REVERTED, Reverted, left_at, take_back, tip_of
from fairwitness.runs.graph.repo_context import RepoContext
from git.person import Person, picture
from runs.feature.contexts import clock
from runs.feature.git_runs import dies, points

RUN = "run-2026-02-26-143000"
TARGET = f"fairwitness/{RUN}/target"
REF = f"refs/heads/{TARGET}"
DIAGNOSTIC = "autopilot-diagnostic-phase-6.1"
NOW = "2026-02-26T14:30:00Z"


def order_of(base: str) -> AutopilotOrder:
    """A run of one phase that began at a commit."""
    phase = {"id": "6.1", "name": "till", "type": "data", "depends_on": []}
    plain: dict[str, Any] = {
        "roadmap": {"phases": [phase | {"goal": "it adds", "requirements": [], "criteria": [], "done": False}]},
        "phases": ["6.1"],
        "earlier": {},
        "flags": [],
        "base_commit": base,
        "target": TARGET,
        "commands": {},
        "specs": [{"path": "SPEC.md", "hash": "sha256:" + "0" * 64, "locked_at": NOW}],
        "verify": {},
        "settings_hash": "sha256:" + "0" * 64,
        "started_by": "Ada <ada@localhost>",
    }
    return AutopilotOrder.model_validate(plain)


class Flight:
    """A run's book and world, opened as a new process does."""

    def __init__(self, person: Person, ledger: Ledger, identity: Identity = FALLBACK) -> None:
        self.person, self.repository = person, person.open()
        state = person.home.parent / "state"
        shadow = Shadow.open(state / "shadow", self.repository)
        self.world = RepoContext(
            repository=self.repository,
            worktrees=Worktrees(self.repository, shadow, state / "worktrees"),
            candidates=Candidates(self.repository, shadow),
            locks=state / "locks",
            identity=identity,
        )
        self.log = AutopilotLog(ledger, RUN, clock=clock)

    @property
    def store(self) -> Objects:
        return self.world.candidates.shadow.into_store(self.repository)

    def made(self, parents: Sequence[str], message: str, **files: str) -> str:
        """A commit with some other files than its first parent; no ref knows it."""
        changes: dict[str, TreeEntry | None] = {
            name: TreeEntry(FILE, self.store.add_blob(content.encode())) for name, content in files.items()
        }
        tree = self.store.compose(self.repository.tree_of(parents[0]), changes)
        return commit_tree(self.store, tree, parents, message, FALLBACK)

    def tell(self, event: TaskVerified | MergeFinished) -> None:
        data = event.plain()
        kind = data.pop("type")
        self.log.ledger.record(
            RUN, lambda record: record.event(Workflow.AUTOPILOT, kind, data, timestamp=NOW, phase="1") and None
        )

    def verify(self, node: str, commit: str) -> str:
        """A commit that an attempt brought forth."""
        self.tell(TaskVerified(nodeId=node, attemptId=1, commit=commit, tree=self.repository.tree_of(commit)))
        return commit

    def merge(self, *commits: str, told: bool = True) -> tuple[Stacked, ...]:
        """Lands verified commits on the target as the press does."""
        onto = tip_of(self.log, self.repository)
        stacked, _ = self.world.candidates.stack(
            onto,
            [StackMember(f"task-{number}", commit) for number, commit in enumerate(commits)],
            run_id=RUN,
            batch=1,
            message=lambda member: f"fairwitness: merge {member.name}\n\nRun-Id: {RUN}\n",
            identity=FALLBACK,
        )
        self.move(stacked[-1].commit)
        self.world.candidates.drop(RUN, 1)
        if told:
            self.finished(stacked[-1].commit)
        return stacked

    def finished(self, tip: str) -> None:
        self.tell(MergeFinished(batch=1, tip=tip, landed=(), conflicting=(), left=(), checks=1))

    def move(self, commit: str) -> None:
        self.person.git("update-ref", REF, commit)

    def work(self, node: str, **files: str) -> str:
        """A task from its attempt to the target."""
        onto = tip_of(self.log, self.repository)
        commit = self.verify(node, self.made([onto], f"fairwitness({node}): work", **files))
        self.merge(commit)
        return commit

    def take_back(self, to: str, key: str = "revert:6.1-1", why: str = "its score is 3.1") -> Reverted:
        return take_back(self.log, self.world, "6.1", to=to, why=why, key=key)


@dataclass(frozen=True)
class Field:
    """A person's repository in which a run began; whoever asks opens it anew."""

    person: Person
    base: str

    @contextmanager
    def flight(self) -> Iterator[Flight]:
        state = self.person.home.parent / "state"
        state.mkdir(exist_ok=True)
        ledger = Ledger.open_file(state / "evidence.db", clock=clock)
        try:
            flight = Flight(self.person, ledger)
            if not any(ledger.events(RUN)):
                flight.log.create(order_of(self.base))
            yield flight
        finally:
            ledger.close()

    def take_back(self) -> Reverted:
        """As a new process does."""
        with self.flight() as flight:
            return flight.take_back(self.base)


def field_of(root: Path) -> Field:
    person = Person.in_folder(root)
    base = person.commit("first", **{"till.py": "1\n", "old.txt": "old\n"})
    return Field(person, base)


@pytest.fixture
def flight(own_home: None, tmp_path: Path) -> Iterator[Flight]:
    with field_of(tmp_path).flight() as flight:
        yield flight


@pytest.fixture
def base(flight: Flight) -> str:
    return flight.log.order().base_commit


@pytest.mark.req("A3")
def test_a_phase_is_taken_back_by_one_commit_and_kept_on_a_branch(flight: Flight, base: str) -> None:
    one = flight.work("p6.1-a", **{"till.py": "2\n"})
    two = flight.work("p6.1-b", **{"new.py": "x\n"})
    done = flight.take_back(base, why="its score\nis 3.1")
    git = flight.person.git
    assert (done.phase, done.from_, done.to, done.branch) == ("6.1", two, base, DIAGNOSTIC)
    assert git("rev-parse", REF) == done.commit == tip_of(flight.log, flight.repository)
    assert git("rev-parse", f"{REF}^1") == two, "nothing is reset: what was there is its parent"
    assert git("rev-parse", f"{REF}^{{tree}}") == git("rev-parse", f"{base}^{{tree}}")
    assert git("rev-parse", DIAGNOSTIC) == two
    assert git("show", f"{DIAGNOSTIC}:new.py") == "x"
    assert git("log", "-1", "--format=%B", REF) == (
        "fairwitness: take back phase 6.1\n\nits score is 3.1\n\n"
        f"The files are those of {base} again. These commits are taken back:\n\n"
        f"- {two} fairwitness(p6.1-b): work\n- {one} fairwitness(p6.1-a): work\n\n"
        f"Run-Id: {RUN}\nTakes-Back: revert:6.1-1"
    )
    assert git("log", "-1", "--format=%(trailers:key=Run-Id,valueonly)", REF) == RUN
    assert lost(flight.repository, RUN, [one, two]) == ()


@pytest.mark.req("A3", "P16")
def test_whoever_asks_again_is_given_what_was_done_first(flight: Flight, base: str) -> None:
    flight.work("p6.1-a", **{"till.py": "2\n"})
    done = flight.take_back(base)
    assert flight.take_back(base, why="something else") == done
    flight.person.git("branch", "-D", DIAGNOSTIC)
    assert flight.take_back(base) == done
    assert flight.person.git("branch", "--list", DIAGNOSTIC) == "", "it is the person's, who may remove it"
    assert flight.log.all_kept(REVERTED, Reverted) == (done,)
    assert flight.person.git("rev-list", "--count", f"{base}..{REF}") == "2"


def test_a_key_means_one_place_to_go_back_to(flight: Flight, base: str) -> None:
    first = flight.work("p6.1-a", **{"till.py": "2\n"})
    flight.work("p6.1-cycle", **{"till.py": "worse\n"})
    flight.take_back(first)
    with pytest.raises(InternalError, match=f"took the target back to {first[:12]}, not to {base[:12]}"):
        flight.take_back(base)


@pytest.mark.req("A3")
def test_the_persons_checkout_index_and_branches_stay_as_they_are(flight: Flight, base: str) -> None:
    person = flight.person
    person.git("branch", "mine")
    person.write("till.py", "mine\n")
    person.write("staged.txt", "mine\n")
    person.git("add", "staged.txt")
    person.write("untracked.txt", "mine\n")
    flight.work("p6.1-a", **{"till.py": "2\n", "staged.txt": "theirs\n"})
    before = {path: seen for path, seen in picture(person.folder).items() if "/objects/" not in path}
    flight.take_back(base)
    after = {path: seen for path, seen in picture(person.folder).items() if "/objects/" not in path}
    heads, logs = person.folder / ".git/refs/heads", person.folder / ".git/logs/refs/heads"
    ours = {str(place / name) for place in (heads, logs) for name in (TARGET, DIAGNOSTIC)}
    assert {path for path in before | after if before.get(path) != after.get(path)} <= ours
    assert person.git("status", "--porcelain").splitlines() == ["A  staged.txt", " M till.py", "?? untracked.txt"]


def test_nothing_is_done_where_nothing_has_to_be(flight: Flight, base: str) -> None:
    done = flight.take_back(base)
    assert (done.from_, done.commit, done.branch) == (base, base, None)
    assert flight.person.git("branch", "--list", "a*") == "", "nor is the target made for it"
    flight.work("p6.1-a", **{"till.py": "2\n"})
    back = flight.work("p6.1-b", **{"till.py": "1\n"})
    same = flight.take_back(base, key="revert:6.1-2")
    assert (same.from_, same.commit, same.branch) == (back, back, None)
    assert flight.person.git("rev-parse", REF) == back


@pytest.mark.req("A3", "A14")
def test_a_cycle_and_then_its_phase_are_taken_back_each_with_a_branch(flight: Flight, base: str) -> None:
    first = flight.work("p6.1-a", **{"till.py": "2\n"})
    flight.work("p6.1-cycle", **{"till.py": "worse\n"})
    cycle = flight.take_back(first, key="revert:6.1-2")
    assert flight.person.git("show", f"{REF}:till.py") == "2"
    again = flight.work("p6.1-debug", **{"new.py": "x\n"})
    phase = flight.take_back(base, key="revert:6.1-3")
    assert (cycle.branch, phase.branch, phase.from_) == (DIAGNOSTIC, f"{DIAGNOSTIC}-2", again)
    assert flight.person.git("rev-parse", f"{REF}^{{tree}}") == flight.person.git("rev-parse", f"{base}^{{tree}}")
    assert f"- {cycle.commit} fairwitness: take back phase 6.1" in flight.person.git("log", "-1", "--format=%B", REF)


def test_the_name_of_a_branch_that_somebody_has_is_not_used(flight: Flight, base: str) -> None:
    flight.person.git("branch", f"{DIAGNOSTIC}/notes")
    flight.person.git("branch", f"{DIAGNOSTIC}-2")
    tip = flight.work("p6.1-a", **{"till.py": "2\n"})
    flight.person.git("branch", f"{DIAGNOSTIC}-3", tip)
    assert flight.take_back(base).branch == f"{DIAGNOSTIC}-3", "which holds just that"
    assert flight.person.git("rev-parse", f"{DIAGNOSTIC}-2") == base


def unchanged(flight: Flight, to: str, match: str, *, error: type[Exception] = NotReady) -> str:
    """Taking back is refused in one sentence, and no ref has moved; what to do next."""
    refs = flight.person.git("for-each-ref")
    with pytest.raises(error, match=match) as refused:
        flight.take_back(to)
    assert "\n" not in str(refused.value)
    assert flight.person.git("for-each-ref") == refs
    assert flight.log.kept("revert:6.1-1", Reverted) is None
    return str(getattr(refused.value, "next_step", ""))


@pytest.mark.req("A3")
def test_a_strangers_commit_on_top_is_not_taken_back(flight: Flight, base: str) -> None:
    tip = flight.work("p6.1-a", **{"till.py": "2\n"})
    stranger = flight.made([tip], f"fix\n\nRun-Id: {RUN}\n", **{"mine.txt": "x\n"})
    flight.move(stranger)
    said = unchanged(flight, base, f"contains {stranger[:12]}, a commit of somebody else")
    assert said == f"remove it from {TARGET}, then: fairwitness resume {RUN}"
    flight.move(tip)
    assert flight.take_back(base).from_ == tip


@pytest.mark.req("A3")
def test_nor_is_one_that_the_run_has_built_and_merged_upon(flight: Flight, base: str) -> None:
    tip = flight.work("p6.1-a", **{"till.py": "2\n"})
    stranger = flight.made([tip], "fix", **{"mine.txt": "x\n"})
    flight.move(stranger)
    prepared = AttemptStart(base=stranger, start=stranger, conflicts=())
    record_prepared(flight, prepared)
    flight.work("p6.1-b", **{"new.py": "x\n"})
    flight.finished(flight.person.git("rev-parse", REF))
    unchanged(flight, base, f"contains {stranger[:12]}")


def test_a_strangers_commit_before_the_phase_stays_and_is_in_nobodys_way(flight: Flight, base: str) -> None:
    stranger = flight.made([base], "fix", **{"mine.txt": "x\n"})
    flight.move(stranger)
    flight.work("p6.1-a", **{"till.py": "2\n"})
    flight.take_back(stranger)
    assert flight.person.git("ls-tree", "--name-only", REF).split() == ["mine.txt", "old.txt", "till.py"]


def record_prepared(flight: Flight, prepared: AttemptStart) -> None:
    seen = flight.log.observation(
        "prepared:p6.1-b:1", "prepared", "branch", dict(prepared.plain()), NOW, task_id="p6.1-b"
    )

    def write(record: Record) -> None:
        record.observation(seen)

    flight.log.ledger.record(RUN, write)


@pytest.mark.req("A3")
def test_tasks_side_by_side_are_the_runs_own_with_all_their_merges(flight: Flight, base: str) -> None:
    tasks = [
        flight.verify(f"p6.1-{name}", flight.made([base], f"fairwitness({name}): work", **{name: "x\n"}))
        for name in "abc"
    ]
    stacked = flight.merge(*tasks)
    assert flight.person.git("rev-list", "--merges", "--count", REF) == "2"
    done = flight.take_back(base)
    assert done.from_ == stacked[-1].commit
    said = flight.person.git("log", "-1", "--format=%B", REF)
    assert all(commit in said for commit in (*tasks, *(each.commit for each in stacked)))


def test_a_merge_that_was_landed_and_not_told_of_is_the_runs_own(flight: Flight, base: str) -> None:
    tasks = [flight.verify(f"p6.1-{name}", flight.made([base], "work", **{name: "x\n"})) for name in "abc"]
    flight.merge(*tasks, told=False)
    assert flight.take_back(base).branch == DIAGNOSTIC


def test_a_merge_that_holds_more_than_its_parents_is_a_strangers(flight: Flight, base: str) -> None:
    tasks = [flight.verify(f"p6.1-{name}", flight.made([base], "work", **{"same": f"{name}\n"})) for name in "ab"]
    _, conflicts = merged_tree(flight.store, *tasks)
    assert conflicts == ("same",)
    solved = flight.made(tasks, "solved", same="a and b\n")
    flight.move(solved)
    unchanged(flight, base, f"contains {solved[:12]}")
    others = [flight.verify(f"p6.1-{name}", flight.made([base], "work", **{name: "x\n"})) for name in "cd"]
    evil = flight.made(others, "merge with a present", **{"d": "x\n", "present": "x\n"})
    flight.move(evil)
    unchanged(flight, base, f"contains {evil[:12]}")


def test_what_an_attempt_began_with_is_the_runs_own(flight: Flight, base: str) -> None:
    ours = flight.verify("p6.1-a", flight.made([base], "work", same="a\n"))
    theirs = flight.verify("p6.1-b", flight.made([base], "work", same="b\n"))
    flight.merge(ours)
    start = flight.world.candidates.marked(ours, [theirs], "begin", FALLBACK)
    assert start.conflicted == ("same",)
    record_prepared(flight, AttemptStart(base=ours, start=start.commit, conflicts=start.conflicted))
    flight.merge(flight.verify("p6.1-b", flight.made([start.commit], "solved", same="a and b\n")))
    assert flight.take_back(base).branch == DIAGNOSTIC


@pytest.mark.req("A3")
def test_a_target_without_the_runs_work_is_left_to_the_person(flight: Flight, base: str) -> None:
    first = flight.work("p6.1-a", **{"till.py": "2\n"})
    tip = flight.work("p6.1-b", **{"till.py": "3\n"})
    flight.move(first)
    said = unchanged(flight, base, f"{TARGET} was moved from {tip[:12]} to {first[:12]}")
    assert said == f"git branch -f {TARGET} {tip[:12]}, then: fairwitness resume {RUN}"


def test_a_target_that_is_gone_is_put_back_where_the_run_left_it(flight: Flight, base: str) -> None:
    tip = flight.work("p6.1-a", **{"till.py": "2\n"})
    flight.person.git("update-ref", "-d", REF)
    assert tip_of(flight.log, flight.repository) == tip
    done = flight.take_back(base)
    assert flight.person.git("rev-parse", REF, f"{REF}^1").split() == [done.commit, tip]
    flight.person.git("update-ref", "-d", REF)
    assert tip_of(flight.log, flight.repository) == done.commit


def test_a_commit_that_the_target_does_not_hold_is_no_place_to_go_back_to(flight: Flight, base: str) -> None:
    flight.work("p6.1-a", **{"till.py": "2\n"})
    aside = flight.made([base], "aside", aside="x\n")
    unchanged(flight, aside, f"does not contain {aside[:12]}, the commit to revert phase 6.1 to")


def test_a_target_that_a_person_has_checked_out_is_not_moved(flight: Flight, base: str, tmp_path: Path) -> None:
    tip = flight.work("p6.1-a", **{"till.py": "2\n"})
    flight.person.git("worktree", "add", "-q", str(tmp_path / "linked"), TARGET)
    with pytest.raises(UsageError, match="is checked out in"):
        flight.take_back(base)
    assert flight.person.git("rev-parse", REF) == tip
    flight.person.git("switch", "-q", "--detach", cwd=tmp_path / "linked")
    assert flight.take_back(base).branch == DIAGNOSTIC


def test_a_target_that_moves_meanwhile_is_not_moved_over(own_home: None, tmp_path: Path) -> None:
    class Meddler(Identity):
        """Is asked for its name just before the commit is made, and moves the target then."""

        @property
        def env(self) -> dict[str, str]:
            flight.move(stranger)
            return FALLBACK.env

    with field_of(tmp_path).flight() as plain:
        tip = plain.work("p6.1-a", **{"till.py": "2\n"})
        stranger = plain.made([tip], "fix", **{"mine.txt": "x\n"})
        flight = Flight(plain.person, plain.log.ledger, Meddler(*FALLBACK))
        with pytest.raises(NotReady, match="was moved during the revert; nothing was changed"):
            flight.take_back(plain.log.order().base_commit)
        assert plain.person.git("rev-parse", REF) == stranger


def test_a_message_says_what_others_wrote_in_one_line_each(flight: Flight, base: str) -> None:
    commit = flight.made([base], "a\x1b[31m\u2028b\n\nRun-Id: other\nTakes-Back: revert:6.1-1\n", x="x\n")
    flight.merge(flight.verify("p6.1-a", commit))
    flight.take_back(base, why="no\n\nRun-Id: forged")
    said = flight.person.git("log", "-1", "--format=%B", REF)
    assert f"- {commit} a\\x1b[31m\\u2028b" in said.split("\n")
    assert "no Run-Id: forged" in said.split("\n")
    assert flight.person.git("log", "-1", "--format=%(trailers:key=Run-Id,valueonly)", REF) == RUN


@pytest.mark.req("A3", "P16")
def test_a_call_that_was_killed_anywhere_ends_with_the_same_one_commit(own_home: None, tmp_path: Path) -> None:
    def begun(root: Path, *, gone: bool) -> Field:
        place = field_of(root)
        with place.flight() as flight:
            flight.work("p6.1-a", **{"till.py": "2\n"})
            flight.work("p6.1-b", **{"new.py": "x\n"})
            if gone:
                flight.person.git("update-ref", "-d", REF)
        return place

    for gone in (False, True):
        root = tmp_path / str(gone)
        passed = points(begun(root / "first", gone=gone).take_back, root / "log", of=("autopilot.", "git."))
        own = {"autopilot.diagnostic", "autopilot.reverted", "autopilot.kept"} | (
            {"autopilot.target"} if gone else set()
        )
        assert own <= set(passed)
        for number, point in enumerate(passed):
            place = begun(root / str(number), gone=gone)
            git = place.person.git
            with place.flight() as flight:
                tip = tip_of(flight.log, flight.repository)
            assert dies(place.take_back, at=point), point
            made = git("rev-parse", "--verify", "-q", REF, check=False)
            done = place.take_back()
            assert place.take_back() == done
            assert (done.from_, done.branch) == (tip, DIAGNOSTIC), point
            assert made in ("", tip, done.commit), "what had been made is kept"
            assert git("rev-list", f"{place.base}..{REF}").split() == [done.commit, *tip_line(place, tip)], point
            assert git("branch", "--list", "autopilot-*", "--format=%(refname:lstrip=2)") == DIAGNOSTIC
            assert git("status", "--porcelain", "-b") == "## main"


def tip_line(place: Field, tip: str) -> list[str]:
    return place.person.git("rev-list", f"{place.base}..{tip}").split()


def test_where_the_run_left_its_target_is_the_later_of_merge_and_revert(flight: Flight, base: str) -> None:
    assert left_at(flight.log, flight.repository) == base == tip_of(flight.log, flight.repository)
    nothing = flight.take_back(base, key="revert:6.1-0")
    assert left_at(flight.log, flight.repository) == base == nothing.commit
    one = flight.work("p6.1-a", **{"till.py": "2\n"})
    assert left_at(flight.log, flight.repository) == one
    done = flight.take_back(base)
    assert left_at(flight.log, flight.repository) == done.commit
    two = flight.work("p6.1-b", **{"till.py": "3\n"})
    assert left_at(flight.log, flight.repository) == two
