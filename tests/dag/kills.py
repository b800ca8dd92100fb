"""Runs that are killed and begun again: where that happens, one life after the other, and every point there is."""

import contextlib
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dag import program
from dag.remains import Content, assert_clean, content_of
from fairwitness.runs.dispatch.budget_account import STARTED
from support.graph.team import Task
from support.state import take_for_the_same

KILLED = -9
LIFE_S = 180.0
TESTS = Path(__file__).parent.parent

SOMETIMES = ("engine.lease.beat", "engine.body.beat", "git.pool.displaced")
"""Points that not every run passes: signs of life come every few seconds, and the pool is full or is not."""

POINTS = (
    *(
        "dispatch.started",
        "dispatch.driven",
        "dispatch.answered",
        "dispatch.audited",
        "dispatch.kept",
        "dispatch.finished",
    ),
    *("engine.file.made", "engine.tables.made", "engine.queue.made", "engine.lease.joined", "engine.lease.left"),
    *("engine.queued", "engine.taken", "engine.body.entered", "engine.step.recorded", "engine.body.left"),
    "engine.outcome.written",
    *("forge.locked", "forge.walkthrough.stored", "forge.walkthrough", "forge.ended"),
    *("git.candidate.stacked", "git.candidate.held", "git.landed", "git.commit.made", "git.commit.written"),
    *("git.pool.brought", "git.pool.marked", "git.pool.parked", "git.pool.taken", "git.ref.moved", "git.ref.deleted"),
    *("git.admin.begun", "git.worktree.added", "git.worktree.branched", "git.worktree.filled", "git.worktree.ready"),
    *("git.worktree.quarantined", "git.worktree.unmarked", "git.worktree.forgetting", "git.worktree.forgotten"),
    *("graph.target", "graph.prepared", "graph.committed"),
    *("ledger.record.inserted", "ledger.record.linked", "ledger.record.committed"),
    *("ledger.anchor.row", "ledger.anchor.line", "ledger.anchor.ref"),
    *("store.write.opened", "store.write.written", "store.write.synced", "store.write.renamed"),
    *("store.append.opened", "store.append.written", "store.append.synced"),
    *("verify.turn.taken", "verify.begun", "verify.checked-out", "verify.concluded", "verify.turn.left"),
    *("verify.ran.baseline", "verify.ran.after", "verify.ran.again"),
    *("verify.recorded.baseline", "verify.recorded.after", "verify.recorded.again"),
)
"""Every point that a run passes for sure which nobody kills; a test holds it to that."""


class Life(NamedTuple):
    """One process, from its start to its end."""

    code: int
    said: str
    seconds: float
    lingered_s: float
    """How long anything outlived it that it had started."""
    left: Sequence[str]
    """What did so for too long."""
    unborn: int
    """Sandboxes that wait for ever to begin; the warden says why this is no failure of a run."""
    is_seen: bool
    """Whether the command was seen at which it was to be killed."""

    @property
    def is_killed(self) -> bool:
        """Whether it died as it was told to."""
        return self.code == KILLED


class Warden:
    """See `dag.warden`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dag.warden"], cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def life(self, root: Path, environment: Mapping[str, str], *, kill_when: str | None = None) -> Life:
        """One life of the run in a folder."""
        order = {"root": str(root), "environment": environment, "kill_when": kill_when, "timeout_s": LIFE_S}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(order)}\n")
        self._process.stdin.flush()
        return Life(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """Ends it."""
        self._process.communicate()


@dataclass
class Drill:
    """One run in one folder, from its first life to its last."""

    warden: Warden
    root: Path
    lives: list[Life] = field(default_factory=list)

    @property
    def state(self) -> Path:
        """Where Fair Witness keeps what it knows of the repository."""
        return self.root / "repo" / ".fairwitness"

    @property
    def kills(self) -> int:
        """How often it was killed."""
        return sum(life.is_killed for life in self.lives)

    def live(self, kill_at: str = "", *, log: Path | None = None, kill_when: str | None = None) -> Life:
        """One more life, killed at a point or when a command is seen, or left alone."""
        folder = self.root / "tmp"
        folder.mkdir(exist_ok=True)
        environment = {
            "TMPDIR": str(folder),
            "FAIRWITNESS_KILL_AT": kill_at,
            "FAIRWITNESS_KILL_LOG": "" if log is None else str(log),
        }
        life = self.warden.life(self.root, environment, kill_when=kill_when)
        self.lives.append(life)
        assert life.code in (0, KILLED), life.said
        assert not life.left, f"outlived its parent: {life.left}"
        return life

    def end(self) -> Content:
        """Lets it come to its end, which must be a good one that leaves nothing behind; tells what it left."""
        said = json.loads(self.live().said)
        assert said["status"] == "done", said
        assert said["value"]["completed"], said
        assert_clean(self.root)
        return content_of(self.root)

    def die_often(self, at: int) -> Iterator[int]:
        """Lives that each die at their so-many-th point, until one does not; gives each life's point.

        It is put off by one when a life has left nothing new on record, and drawn nearer when it has: so each life
        does hardly more than what cannot be left out.
        """
        before = self._on_record()
        while self.live(f"#{at}").is_killed:
            yield at
            now = self._on_record()
            at = at + 1 if now == before else max(1, at - 1)
            before = now

    def _on_record(self) -> int:
        """Links of the ledger, steps and children of the engine; that a dispatch was begun again is no progress."""
        evidence, engine = self.state / "evidence.db", self.state / "engine.db"
        begun = _count(evidence, f"observations WHERE kind = '{STARTED}'")
        steps, children = (_count(engine, table) for table in ("operation_outputs", "workflow_status"))
        return _count(evidence, "chain") - begun + steps + children


def _count(file: Path, rows: str) -> int:
    if not file.exists():
        return 0
    with contextlib.closing(sqlite3.connect(file)) as connection:
        return int(connection.execute(f"SELECT COUNT(*) FROM {rows}").fetchone()[0])


class Reference(NamedTuple):
    """A run that nobody killed."""

    content: Content
    passed: Sequence[str]
    """The points, in order."""


class Grounds:
    """Where drills take place: always in the same folder, since commands on record name it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._warden = Warden()
        self._templates: dict[tuple[tuple[Task, ...], str | None, str | None], Path] = {}
        self._references: dict[tuple[Task, ...], Reference] = {}

    def drill(self, tasks: tuple[Task, ...], *, check: str | None = None, runs: str | None = None) -> Drill:
        """A run that was begun and not worked on yet; see `program.lay`."""
        key = (tasks, check, runs)
        if key not in self._templates:
            template = self._folder / f"template-{len(self._templates)}"
            program.lay(template, tasks, check=check, runs=runs)
            program.begin(template, tasks)
            self._templates[key] = template
        root = self._folder / "root"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(self._templates[key], root, symlinks=True)
        take_for_the_same(root)
        return Drill(self._warden, root)

    def reference(self, tasks: tuple[Task, ...]) -> Reference:
        """What a run leaves that nobody kills, and the points it passes."""
        if tasks not in self._references:
            drill, log = self.drill(tasks), self._folder / "log"
            log.unlink(missing_ok=True)
            drill.live(log=log)
            self._references[tasks] = Reference(drill.end(), log.read_text().split())
        return self._references[tasks]

    def close(self) -> None:
        """Ends the warden."""
        self._warden.close()
