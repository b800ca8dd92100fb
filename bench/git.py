"""How soon an attempt has its workspace, and what a merge costs that is only tried, beside git's usual way.

Everything happens on a generated repository of 5,000 files and 26 MB, in memory where there is a file system for that:
there git itself is at its fastest. It is measured twice: as it was committed, and packed as a clone is. Git writes a
packed commit out in little more than half the time, while our share stays the same, so the ratios are worse there; the
goals are held to the first, and the second is shown beside it.
"""

import itertools
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.measure import report
from fairwitness.git.merge import Clean, merge_test
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.git.worktrees import Worktrees

MEMORY = Path("/dev/shm")
FILES, BYTES = 5000, 5200
ROUNDS = 5
TESTS = 50
"""Merges tried in one go: one of them is too short to be told from noise."""
ADD = "git worktree add"
MERGE = "git worktree add, then git merge in it"
Timed = tuple[Callable[[], object], Callable[[], object]]
"""What is timed, and what clears up after it."""


def run() -> bool:
    """Prints ready workspaces and tried merges against git's own commands in the same run."""
    context = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fairwitness-bench-", dir=context) as folder:
        sample = Sample(Path(folder))
        print(f"\ngit: {FILES} files, {FILES * BYTES // 10**6} MB, {'in memory' if context else 'on disk'}: {folder}")
        met = _measure(sample, "as committed", is_goal=True)
        sample.pack()
        _measure(sample, "packed", is_goal=False)
    return met


def _measure(sample: "Sample", state: str, *, is_goal: bool) -> bool:
    pooled, tests = "pooled worktree, same commit", f"merge test, {TESTS} times"
    workspaces = _medians(
        {
            ADD: (sample.add, sample.remove_added),
            pooled: (lambda: sample.create(sample.base), sample.release),
            "pooled worktree, 20 files elsewhere": (lambda: sample.create(sample.ahead), sample.release),
            "new worktree": (sample.create_new, sample.release),
        }
    )
    merges = _medians(
        {MERGE: (sample.merge, sample.remove_added), tests: (sample.try_merges, lambda: None)},
    )
    ready = report(f"workspace ready, {state}", workspaces, ADD, {pooled: 1 / 10} if is_goal else {})
    tried = report(f"merge test, {state}", merges, MERGE, {tests: TESTS / 200} if is_goal else {})
    return ready and tried


def _medians(candidates: Mapping[str, Timed]) -> dict[str, float]:
    """Median seconds of each, all of them once in every round; the first round only warms up."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(ROUNDS + 1):
        for name, (timed, clear_up) in candidates.items():
            began = time.perf_counter()
            timed()
            taken = time.perf_counter() - began
            clear_up()
            if number:
                times[name].append(taken)
    return {name: statistics.median(taken) for name, taken in times.items()}


class Sample:
    """The repository, its worktrees, and git as a person calls it."""

    def __init__(self, folder: Path) -> None:
        self._top, self._added = folder / "repository", folder / "added"
        _write_files(self._top)
        self._git("init", "-q", "-b", "main")
        self.base = self._commit("base")
        self.ahead = self._commit("ahead", *(f"p{number:02d}/m00/k0/new" for number in range(20)))
        for branch, place in (("one", "p00/m01/k1"), ("two", "p01/m01/k1")):
            self._git("checkout", "-q", "-b", branch, self.base)
            self._commit(branch, *(f"{place}/{name}" for name in ("a", "b", "c")))
        self._git("checkout", "-q", "main")
        repository = Repository.open(self._top)
        self._shadow = Shadow.open(folder / "state" / "shadow", repository)
        self._worktrees = Worktrees(repository, self._shadow, folder / "state" / "worktrees")
        self._one, self._two = repository.commit("one"), repository.commit("two")
        self._numbers = itertools.count(1)
        self.create_new()
        self.release()

    def pack(self) -> None:
        """Puts all objects into one file, as a clone has them."""
        self._git("gc", "-q")

    def add(self) -> None:
        """A worktree as git makes it."""
        self._git("worktree", "add", "-q", "--detach", str(self._added), self.base)

    def merge(self) -> None:
        """The same with a merge in it."""
        self._git("worktree", "add", "-q", "--detach", str(self._added), self._one)
        self._git("merge", "-q", "--no-edit", self._two, folder=self._added)

    def remove_added(self) -> None:
        """Takes it away again."""
        shutil.rmtree(self._added)
        self._git("worktree", "prune")

    def create(self, commit: str) -> None:
        """A worktree as an attempt gets it; there is one in the pool, of the commit `base`."""
        if not any(self._worktrees.pool.folder.iterdir()):
            raise SystemExit("bench: nothing waits in the pool")
        self._current = self._worktrees.create("bench", "task", next(self._numbers), commit)

    def create_new(self) -> None:
        """One for which no other is used."""
        unpooled = Worktrees(self._worktrees.repository, self._shadow, self._worktrees.root, pooled=0)
        self._current = unpooled.create("bench", "task", next(self._numbers), self.base)

    def release(self) -> None:
        """An agent has changed something and built something, and goes."""
        (self._current.folder / "p00" / "m00" / "k0" / "f0.txt").write_text("changed\n")
        (self._current.folder / "built").mkdir()
        self._worktrees.release(self._current, self.base)

    def try_merges(self) -> None:
        """The merge without a worktree."""
        for _ in range(TESTS):
            if not isinstance(merge_test(self._shadow, self._one, self._two), Clean):
                raise SystemExit("bench: the sample branches do not fit together")

    def _commit(self, message: str, *paths: str) -> str:
        for path in paths:
            (self._top / path).write_text(f"{message}\n" * 100)
        self._git("add", "-A")
        self._git("commit", "-q", "-m", message)
        return self._git("rev-parse", "HEAD")

    def _git(self, *arguments: str, folder: Path | None = None) -> str:
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        done = subprocess.run(
            ["git", *who, *arguments], cwd=folder or self._top, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()


def _write_files(top: Path) -> None:
    """Lines of numbers, the same in every run, about eight files to a folder."""
    draw = random.Random(1)
    for number in range(FILES):
        folder = top / f"p{number % 20:02d}" / f"m{number // 20 % 10:02d}" / f"k{number // 200 % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        text = "".join(
            f"{draw.getrandbits(64):020d}{chr(32) if column % 4 else chr(10)}" for column in range(1 + BYTES // 21)
        )
        (folder / f"f{number}.txt").write_text(text)
