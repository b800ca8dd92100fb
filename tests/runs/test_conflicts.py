"""Who resolves a conflict reads each place with both sides and the tasks that made them."""

from pathlib import Path

import pytest

from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart, Collision, MergeMember
from fairwitness.git.candidates import Candidates
from fairwitness.git.identity import FALLBACK
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.runs.shared.conflicts import conflict_text
from git.person import Person

RUN = "run-2026-02-26-143000"
LINES = [f"line {number}\n" for number in range(1, 31)]


class Merged:
    """Two tasks that changed the same line of one file and another line each, merged with marks."""

    def __init__(self, root: Path, path: str = "src/shop.py") -> None:
        person = Person.in_folder(root)
        person.write(path, "".join(LINES))
        self.base = person.commit("first")
        self.path, self.person = path, person
        self.commits = {task: self._work(task) for task in ("task-001", "task-002")}
        self.repository = Repository.open(person.folder)
        self.candidates = Candidates(self.repository, Shadow.open(root / "state" / "git", self.repository))

    def _work(self, task: str) -> str:
        self.person.git("checkout", "-q", "-B", task, self.base)
        lines = [*LINES[:14], f"price = {task!r}\n", *LINES[15:]]
        self.person.write(self.path, "".join(lines))
        return self.person.commit(f"fairwitness({task}): work\n\nRun-Id: {RUN}\nTask: {task}\nAttempt: 1\n")

    def start(self, onto: str, *commits: str) -> AttemptStart:
        marked = self.candidates.marked(onto, commits, "begin", FALLBACK)
        return AttemptStart(base=onto, start=marked.commit, conflicts=marked.conflicted)


def order(**more: object) -> AttemptOrder:
    fixed = {"run_id": RUN, "node": "task-002", "attempt": 1, "branch": f"fairwitness/{RUN}/x", "target": "t"}
    return AttemptOrder.model_validate(fixed | more)


@pytest.mark.req("F5", "P9")
def test_a_conflict_with_merged_work_shows_both_sides_under_the_names_of_their_tasks(tmp_path: Path) -> None:
    made = Merged(tmp_path)
    target, own = made.commits["task-001"], made.commits["task-002"]
    start = made.start(target, own)
    collision = Collision(commit=own, onto=target, paths=("src/shop.py",))
    told = conflict_text(made.repository, order(conflict=collision), start)
    assert told == (
        "src/shop.py: changed by task-001 and task-002\nlines 15 to 19:\n"
        "    line 12\n    line 13\n    line 14\n"
        "    <<<<<<< task-001\n    price = 'task-001'\n    =======\n    price = 'task-002'\n    >>>>>>> task-002\n"
        "    line 16\n    line 17\n    line 18"
    )


@pytest.mark.req("F5")
def test_a_refinery_gets_the_conflict_of_the_branches_that_it_joins(tmp_path: Path) -> None:
    made = Merged(tmp_path)
    members = tuple(MergeMember(node=task, attempt=1, commit=commit) for task, commit in made.commits.items())
    start = made.start(made.base, *made.commits.values())
    told = conflict_text(made.repository, order(node="refinery-01", includes=members), start)
    assert "changed by task-001 and task-002" in told
    assert "<<<<<<< task-001" in told
    assert ">>>>>>> task-002" in told


def test_a_file_that_one_side_removed_has_no_place_and_long_conflicts_are_named(tmp_path: Path) -> None:
    made = Merged(tmp_path)
    made.person.git("checkout", "-q", "-B", "gone", made.base)
    made.person.git("rm", "-q", "src/shop.py")
    gone = made.person.commit("removed\n\nTask: task-003\n")
    start = made.start(gone, made.commits["task-002"])
    collision = Collision(commit=made.commits["task-002"], onto=gone, paths=("src/shop.py",))
    told = conflict_text(made.repository, order(conflict=collision), start)
    assert told.startswith("src/shop.py: changed by ")
    assert "one side removed or replaced the whole file" in told
    assert conflict_text(made.repository, order(), AttemptStart(base=gone, start=gone, conflicts=())) == ""
    many = AttemptStart(base=gone, start=start.start, conflicts=tuple(f"src/{n:04}.py" for n in range(400)))
    assert "(not shown, open them: " in conflict_text(made.repository, order(), many)
