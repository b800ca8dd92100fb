"""A run's book with a small roadmap and a clock that goes on by a minute at each look, for the tests of its ending.

`python -m runs.autopilot.logbook ROOT DEED` does a deed in a process of its own, to be killed.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from fairwitness.contracts.autopilot.events_phase import (
    DebugAttempt,
    PhaseCompleted,
    PhaseFailed,
    PhaseStarted,
    PhaseStepStarted,
    StepCompleted,
    StepFailed,
    TaskCompleted,
    TaskFailed,
)
from fairwitness.contracts.autopilot.order import AutopilotOrder, AutopilotTable
from fairwitness.contracts.autopilot.passes import PassKind, PhasePass
from fairwitness.contracts.autopilot.roadmap import Criterion, DetailedPhase, Requirement, Roadmap
from fairwitness.contracts.autopilot.state import SpecLock
from fairwitness.contracts.autopilot.vocabulary import FailureCategory, PhaseType, RunFlag, StepName
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.kit.clock import Clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.runs.autopilot.initial_files import ignore_runtime_files
from fairwitness.runs.autopilot.learnings import Learnings
from fairwitness.runs.autopilot.log import AutopilotLog, LoggedEvent, new_event
from fairwitness.runs.autopilot.post_mortems import PhaseFailure, write_post_mortem
from fairwitness.runs.autopilot.run_end import RunCloser
from fairwitness.runs.autopilot.state_file import StateFile
from fairwitness.store.artifacts import Store, Stored

RUN = "run-2026-02-09-143052"
AT = "2026-02-09T14:30:52Z"
HASH = "sha256:" + "a" * 64
COMMIT = "abc1234"

T = TypeVar("T")


def roadmap_phase(phase_id: str, *depends_on: str, requirements: str = "") -> DetailedPhase:
    return DetailedPhase(
        id=phase_id,
        name=f"Part {phase_id}",
        type=PhaseType.DATA,
        depends_on=depends_on,
        goal="it works",
        requirements=tuple(Requirement(id=one) for one in requirements.split()),
        criteria=(Criterion(text="it runs", command="true"),),
        done=False,
    )


PHASES = (roadmap_phase("5", requirements="REQ-01 REQ-02"), roadmap_phase("6", "5"), roadmap_phase("7"))


def order(*flags: RunFlag, **changes: Any) -> AutopilotOrder:
    lock = SpecLock(path="SPEC.md", hash=HASH, locked_at=AT)
    said: dict[str, Any] = {
        "roadmap": Roadmap(phases=PHASES),
        "phases": ("5", "6", "7"),
        "earlier": {},
        "flags": flags,
        "base_commit": COMMIT,
        "target": f"fairwitness/{RUN}/target",
        "commands": {},
        "specs": (lock,),
        "limits": AutopilotTable(kept_events=8),
        "verify": {},
        "settings_hash": HASH,
        "started_by": "ada",
    }
    return AutopilotOrder(**said | changes)


def clock(first: int = 0) -> Clock:
    """A minute later each time it is asked."""
    minutes = count(first)
    begun = datetime(2026, 2, 9, 14, 30, 52, tzinfo=UTC)
    return lambda: begun + timedelta(minutes=next(minutes))


@dataclass
class Logbook:
    """A run in a folder, with the files a person sees."""

    log: AutopilotLog
    files: Store
    root: Path

    @classmethod
    def create(cls, root: Path, *flags: RunFlag, run_id: str = RUN, **changes: Any) -> "Logbook":
        logbook = cls._at(root, run_id, 0)
        logbook.log.create(order(*flags, **changes))
        return logbook

    @classmethod
    def open(cls, root: Path, *, minute: int = 500, run_id: str = RUN) -> "Logbook":
        """As another process finds it, some hours later."""
        return cls._at(root, run_id, minute)

    @classmethod
    def _at(cls, root: Path, run_id: str, minute: int) -> "Logbook":
        root.mkdir(exist_ok=True, parents=True)
        ledger = Ledger.open_file(root / "evidence.db")
        return cls(AutopilotLog(ledger, run_id, clock=clock(minute)), Store(root / "checkout"), root)

    def tell(self, kind: Any, phase: str | None = None, step: StepName | None = None, **details: Any) -> None:
        self.log.append(LoggedEvent(new_event(kind, self.log.now(), phase=phase, step=step, **details)))

    def begins(self, phase: str) -> None:
        self.tell(PhaseStarted, phase, estimated_tokens=1000)
        self.tell(PhaseStepStarted, phase, StepName.RESEARCH)

    def passes(self, phase: str, score: float = 9.2) -> None:
        self.begins(phase)
        self.tell(PhaseCompleted, phase, alignment_score=score)

    def fails(self, phase: str, reason: str = "two criteria are not met") -> None:
        self.begins(phase)
        self.tell(PhaseFailed, phase, reason=reason, category=FailureCategory.EXECUTOR_INCOMPLETE)

    def goes_wrong(self, phase: str) -> PhasePass:
        """A task is mended, the verification fails, and debugging does not help."""
        self.begins(phase)
        self.tell(TaskFailed, phase, task="t-1", error="exit 2", category=FailureCategory.BUILD_FAILURE)
        self.tell(TaskCompleted, phase, task="t-1", commit=COMMIT)
        self.tell(StepCompleted, phase, StepName.EXECUTE)
        unmet = FailureCategory.ACCEPTANCE_CRITERIA_UNMET
        self.tell(StepFailed, phase, StepName.VERIFY, error="the total is wrong", category=unmet)
        self.tell(DebugAttempt, phase, attempt=1, issues=("the total is wrong", "no test"))
        self.tell(TaskCompleted, phase, task="debug", commit="def5678")
        lint = FailureCategory.LINT_FAILURE
        self.tell(StepFailed, phase, StepName.VERIFY, error="line too long", category=lint)
        self.tell(DebugAttempt, phase, attempt=2, issues=("the total is wrong",))
        return a_pass(phase)

    def events(self) -> list[str]:
        return [envelope.type for envelope in self.log.ledger.events(self.log.run_id)]

    def fill(self, number: int) -> None:
        """So many events in one record."""
        now = self.log.now()

        def write(record: Any) -> None:
            for _ in range(number):
                record.event(Workflow.AUTOPILOT, "circuit_breaker_closed", {"reason": "it cooled down"}, timestamp=now)

        self.log.ledger.record(self.log.run_id, write)

    def ending(self) -> RunCloser:
        return RunCloser(self.log, self.files, StateFile(self.log, self.files), lambda: ("src/a.py", "src/b.py"))

    def tree(self) -> dict[str, bytes]:
        """Every file that a person sees."""
        return {
            str(path.relative_to(self.files.root)): path.read_bytes()
            for path in sorted(self.files.root.rglob("*"))
            if path.is_file() and not path.name.startswith(".fairwitness-tmp")
        }

    def close(self) -> None:
        self.log.ledger.close()


class Dead(BaseException):
    """What a process that is killed does: nothing more."""


class Life:
    """How many durable writes are left to a process."""

    def __init__(self, left: int) -> None:
        self._left = left

    def write(self) -> None:
        """One write more, or none any more."""
        if self._left == 0:
            raise Dead
        self._left -= 1


class MortalStore(Store):
    """A store whose process dies before it writes too often."""

    def __init__(self, root: Path, life: Life) -> None:
        super().__init__(root)
        self._life = life

    def put(self, relative: str, content: bytes, *, backup: bool = False) -> Stored:
        self._life.write()
        return super().put(relative, content, backup=backup)

    def grow(self, relative: str, content: bytes) -> Stored:
        self._life.write()
        return super().grow(relative, content)

    def move(self, source: str, target: str) -> None:
        self._life.write()
        super().move(source, target)


class MortalLedger(Ledger):
    """The same for a ledger; its clock and its database are another one's."""

    def __init__(self, ledger: Ledger, life: Life) -> None:
        super().__init__(ledger.database)
        self._life = life

    def record(self, run_id: str, work: Callable[[Record], T]) -> T:
        self._life.write()
        return super().record(run_id, work)


def killed_everywhere(logbook: Logbook, deed: str, tmp_path: Path) -> Iterator[Logbook]:
    """The run as another process finds it after the deed was killed before its first, its second, ... write."""
    logbook.close()
    for left in count():
        place = tmp_path / f"killed-{left}"
        shutil.copytree(logbook.root, place)
        life = Life(left)
        mortal = Logbook.open(place, minute=100)
        mortal.files = MortalStore(mortal.files.root, life)
        mortal.log = AutopilotLog(MortalLedger(mortal.log.ledger, life), mortal.log.run_id, clock=mortal.log.clock)
        try:
            DEEDS[deed](mortal)
        except Dead:
            mortal.close()
            found = Logbook.open(place)
            yield found
            found.close()
        else:
            mortal.close()
            assert left > 0
            return


def a_pass(phase: str, number: int = 1) -> PhasePass:
    return PhasePass(phase=phase, number=number, kind=PassKind.WHOLE, start=COMMIT, checkpoint=COMMIT)


FAILED = PhaseFailure("debugging is exhausted", FailureCategory.EXECUTOR_INCOMPLETE, StepName.VERIFY)


def _begin(logbook: Logbook) -> None:
    ignore_runtime_files(logbook.files)
    Learnings(logbook.log, logbook.files).begin()


def _fail(logbook: Logbook) -> None:
    write_post_mortem(logbook.log, logbook.files, a_pass("5"), FAILED)


DEEDS: dict[str, Callable[[Logbook], object]] = {
    "refresh": lambda logbook: StateFile(logbook.log, logbook.files).refresh(),
    "complete": lambda logbook: logbook.ending().complete(None),
    "fail": lambda logbook: logbook.ending().fail("phase 5 failed"),
    "pause": lambda logbook: logbook.ending().pause("the breaker is open"),
    "begin": _begin,
    "post-mortem": _fail,
}


def killed(root: Path, deed: str, point: str) -> None:
    """Does the deed up to a point, and not beyond."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "FAIRWITNESS_KILL_AT": point}
    command = [sys.executable, "-m", "runs.autopilot.logbook", str(root), deed]
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL


if __name__ == "__main__":
    found = Logbook.open(Path(sys.argv[1]), minute=100)
    DEEDS[sys.argv[2]](found)
    found.close()
