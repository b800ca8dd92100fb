"""Repositories with a roadmap, and autopilot runs in them that nobody carries: what happens is told by the test."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairwitness.app.autopilot_project import read_project
from fairwitness.app.run_records.autopilot_history import earlier_phases, ended_phases
from fairwitness.app.state import ledger_in, state_of
from fairwitness.contracts.autopilot.breaker import BreakerSettings
from fairwitness.contracts.autopilot.event_base import AutopilotEventBase
from fairwitness.contracts.autopilot.events_phase import (
    PhaseCompleted,
    PhaseFailed,
    PhaseStarted,
    PhaseStepStarted,
    StepCompleted,
)
from fairwitness.contracts.autopilot.events_run import AutopilotRunCompleted, RunHalted
from fairwitness.contracts.autopilot.facts import DeferralFacts, EventFacts
from fairwitness.contracts.autopilot.order import AutopilotOrder, AutopilotTable
from fairwitness.contracts.autopilot.phase_record import HumanVerifyJustification
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, RunFlag, StepName
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import Clock
from fairwitness.runs.autopilot.log import AutopilotLog, LoggedEvent, new_event

RUN = "run-2026-02-26-143000"
MOMENT = datetime(2026, 2, 26, 14, 30, tzinfo=UTC)
ROADMAP = """\
# Roadmap

## Phases

- [ ] **Phase 1: Sign in** - people get in
- [ ] **Phase 2: Shop** - people find things
- [ ] **Phase 3: Pay** - people pay
- [ ] **Phase 3.1: Vouchers** - inserted

## Phase Details

### Phase 1: Sign in

**Goal**: People can sign in.
**Depends on**: Nothing
**Success Criteria**:

1. The README says how, verified by `grep -q sign README.md`

### Phase 2: Shop

**Goal**: People find things.
**Depends on**: Phase 1
**Success Criteria**:

1. There is a list, verified by `true`

### Phase 3: Pay

**Goal**: TBD
**Depends on**: Phase 1
**Success Criteria**: [To be defined]

### Phase 3.1: Vouchers

**Goal**: People pay with vouchers.
**Depends on**: Nothing
**Success Criteria**:

1. It works
2. It looks right
"""


def fixed(moment: datetime = MOMENT) -> Clock:
    """A clock that stands."""
    return lambda: moment


def git(folder: Path, *arguments: str) -> str:
    """What git says."""
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def lay_out(folder: Path, roadmap: str | None = ROADMAP) -> Path:
    """A small repository, with a roadmap if one is given."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    (folder / "README.md").write_text("how to sign in\n")
    (folder / "Makefile").write_text("test:\n\ttrue\n")
    if roadmap is not None:
        (folder / ".planning").mkdir()
        (folder / ".planning" / "ROADMAP.md").write_text(roadmap)
    commit(folder)
    return folder


def commit(folder: Path, message: str = "more") -> str:
    """Everything that stands there, committed."""
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def order_of(top: Path, phases: tuple[str, ...], *flags: RunFlag, run_id: str = RUN, **differs: Any) -> AutopilotOrder:
    """What a run over these phases would be begun with."""
    repository = Repository.open(top)
    ground = read_project(repository, fixed())
    ledger = ledger_in(state_of(repository), repository)
    try:
        earlier = earlier_phases(ended_phases(ledger, repository, 95), ground.roadmap)
    finally:
        ledger.close()
    said: dict[str, Any] = {
        "roadmap": ground.roadmap,
        "phases": phases,
        "earlier": earlier,
        "flags": flags,
        "base_commit": git(top, "rev-parse", "HEAD"),
        "target": f"fairwitness/{run_id}/target",
        "commands": ground.commands,
        "specs": ground.specs,
        "limits": AutopilotTable(breaker=BreakerSettings()),
        "verify": {},
        "settings_hash": "sha256:" + "0" * 64,
        "started_by": "Ada <ada@example.org>",
    }
    return AutopilotOrder.model_validate(said | differs)


@contextmanager
def opened(top: Path, run_id: str = RUN, *, clock: Clock | None = None) -> Iterator[AutopilotLog]:
    """The book of a run."""
    repository = Repository.open(top)
    ledger = ledger_in(state_of(repository), repository)
    try:
        yield AutopilotLog(ledger, run_id) if clock is None else AutopilotLog(ledger, run_id, clock=clock)
    finally:
        ledger.close()


def begun(top: Path, phases: tuple[str, ...] = ("1", "2"), *flags: RunFlag, run_id: str = RUN, **differs: Any) -> str:
    """A run that was written down; its id."""
    order = order_of(top, phases, *flags, run_id=run_id, **differs)
    with opened(top, run_id) as log:
        log.create(order)
    return run_id


Happening = Callable[[str], LoggedEvent]
"""Something that happens at a moment."""


def tell(top: Path, *happenings: Happening, run_id: str = RUN, clock: Clock | None = None) -> None:
    """Things happen in a run that nobody carries."""
    with opened(top, run_id, clock=clock) as log:
        for one in happenings:
            log.append(one(log.now()))


def event(kind: type[AutopilotEventBase], facts: EventFacts | None = None, **said: Any) -> Happening:
    """An event, with what it says beside itself."""
    return lambda now: LoggedEvent(new_event(kind, now, **said), facts)


def started(phase: str) -> Happening:
    """A phase begins."""
    return event(PhaseStarted, phase=phase, phase_name=f"number {phase}")


def at_step(phase: str, step: StepName) -> Happening:
    """A step begins."""
    return event(PhaseStepStarted, phase=phase, step=step)


def completed(phase: str, score: float = 9.3, **said: Any) -> Happening:
    """A phase passes."""
    return event(PhaseCompleted, phase=phase, alignment_score=score, **said)


def failed(phase: str) -> Happening:
    """A phase fails."""
    return event(PhaseFailed, phase=phase, reason="it was not there", category="executor_incomplete")


def deferred(phase: str) -> Happening:
    """A phase is put to a person."""
    why = HumanVerifyJustification(
        checkpoint_task_id="t2", task_description="look at the page", auto_tasks_passed=1, auto_tasks_total=2
    )
    facts = DeferralFacts(reason="no command can see it", autonomous_confidence=4.0, justification=why)
    return event(StepCompleted, EventFacts(deferral=facts), phase=phase, step=StepName.RATE)


def paused(reason: str = "three steps without progress") -> Happening:
    """The run is paused."""
    return event(RunHalted, reason=reason, status=AutopilotRunStatus.PAUSED)


def halted(reason: str = "phase 1 failed, and phase 2 rests on it") -> Happening:
    """The run fails."""
    return event(RunHalted, reason=reason, status=AutopilotRunStatus.FAILED)


def over() -> Happening:
    """The run ends well."""
    return event(AutopilotRunCompleted, phases_completed=2)


def types_of(top: Path, run_id: str = RUN) -> list[str]:
    """What happened, by its kind."""
    with opened(top, run_id) as log:
        return [envelope.type for envelope in log.ledger.events(run_id)]
