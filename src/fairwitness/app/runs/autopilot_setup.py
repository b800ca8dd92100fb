"""Autopilot set-up: `init` writes missing files, `lock` accepts changed specifications.

The order of a run locks its specifications; it is in the ledger and never changes. A person who changed a specification
on purpose, and wants a run that stopped because of it to continue, locks again: an observation of kind `relock` under
the key `relock:<n>`, whose detail `specs` holds all locks that apply from then on. The preflight of a phase uses the
last of them, or the order if there is none. The order also holds the goals of all phases, so a roadmap that changes an
unfinished phase cannot be locked: a run follows one roadmap.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairwitness.app.autopilot_project import (
    GITIGNORE,
    checkout_of,
    current_locks,
    discovered_checks,
    manifests,
    read_config,
)
from fairwitness.app.run_records.autopilot import RELOCK, open_autopilot_run, write_once
from fairwitness.app.run_records.autopilot_history import latest_run
from fairwitness.app.state import ledger_in, state_of
from fairwitness.contracts.autopilot.roadmap import DetailedPhase
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, PhaseStatus
from fairwitness.errors import StoreError, UsageError
from fairwitness.git.repository import Repository
from fairwitness.kit import files as kit_files
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.killpoints import killpoint
from fairwitness.rules.project_commands import detect_commands, with_checks
from fairwitness.rules.roadmap import ROADMAP_TEMPLATE, config_template, read_roadmap
from fairwitness.rules.spec_lock import SpecChange, spec_changes, spec_paths
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.runs.autopilot.own_files import gitignore_with
from fairwitness.store.artifacts import Store
from fairwitness.store.layout import autopilot as layout

WRITTEN, KEPT, GROWN = "written", "kept", "grown"
_LARGEST = 1_000_000
_DONE = (PhaseStatus.COMPLETED, PhaseStatus.FAILED, PhaseStatus.SKIPPED)


@dataclass(frozen=True, slots=True)
class SetUp:
    """A file and what was done to it."""

    path: str
    what: str


def init(root: Path) -> tuple[SetUp, ...]:
    """Write a roadmap template, the project's settings and lines for .gitignore; existing content is kept."""
    repository = Repository.open(root)
    files = checkout_of(repository)
    detected = with_checks(detect_commands(manifests(files)), discovered_checks(repository))
    if detected.problems:
        first = detected.problems[0]
        raise UsageError(f"{first.where[0]} cannot be read: {first.found}", next_step=f"fix {first.where[0]}")
    return (
        _written(files, layout.ROADMAP, ROADMAP_TEMPLATE),
        _written(files, layout.CONFIG, config_template(detected)),
        _ignored(files.root),
    )


def _written(files: Store, path: str, text: str) -> SetUp:
    try:
        if files.exists(path) or not kit_files.create_file(files.root, path, text.encode()):
            return SetUp(path, KEPT)
    except StoreError as error:
        raise UsageError(error.what, next_step=error.next_step) from None
    killpoint("autopilot.set_up")
    return SetUp(path, WRITTEN)


def _ignored(top: Path) -> SetUp:
    """Add missing lines to the person's .gitignore; remove none."""
    before: list[bytes | None] = []

    def grown(old: bytes | None) -> bytes:
        before.append(old)
        return gitignore_with((old or b"").decode()).encode()

    try:
        kit_files.revise_file(top, GITIGNORE, grown, limit=_LARGEST)
    except UnicodeDecodeError:
        raise UsageError(f"{GITIGNORE} is not UTF-8", next_step="save it as UTF-8") from None
    except StoreError as error:
        raise UsageError(error.what, next_step=error.next_step) from None
    killpoint("autopilot.set_up")
    old = before[-1]
    if old is None:
        return SetUp(GITIGNORE, WRITTEN)
    return SetUp(GITIGNORE, KEPT if gitignore_with(old.decode()).encode() == old else GROWN)


@dataclass(frozen=True, slots=True)
class Locked:
    """The specifications that were locked again for a run; no changes if all locks were up to date."""

    run_id: str
    changes: tuple[SpecChange, ...]
    paths: tuple[str, ...]
    """All locked paths."""


def lock(root: Path, wanted: str | None, *, clock: Clock = system_clock) -> Locked:
    """Lock the current specifications for the named run, or for the latest one."""
    with open_autopilot_run(root, _meant(root, wanted), clock=clock) as context:
        log = context.log
        status = log.state().state.meta.status
        if status is AutopilotRunStatus.COMPLETED:
            raise UsageError(
                f"{log.run_id} is completed; the next run locks the current specifications",
                next_step="fairwitness autopilot next",
            )
        config = read_config(context.files)
        while True:
            now = log.now()
            held = log.ledger.observations(log.run_id, RELOCK)
            before = context.locks()
            locks = current_locks(context.files, config, now)
            changes = spec_changes(before, spec_paths(config), {each.path: each.hash for each in locks})
            if not changes:
                return Locked(log.run_id, (), tuple(each.path for each in before))
            if any(change.path == layout.ROADMAP for change in changes):
                _refuse_other_roadmap(log, context.files)
            row = log.observation(
                f"{RELOCK}:{len(held) + 1}", RELOCK, log.run_id, {"specs": [each.plain() for each in locks]}, now
            )
            if not write_once(log, row):
                continue  # another process locked first: compare again
            killpoint("autopilot.relocked")
            return Locked(log.run_id, changes, tuple(each.path for each in locks))


def _meant(root: Path, wanted: str | None) -> str:
    repository = Repository.open(root)
    ledger = ledger_in(state_of(repository), repository)
    try:
        return latest_run(ledger, wanted)
    finally:
        ledger.close()


def _refuse_other_roadmap(log: AutopilotLog, files: Store) -> None:
    reading = read_roadmap(files.get(layout.ROADMAP, limit=_LARGEST).decode(errors="replace"))
    found = {} if reading.roadmap is None else {phase.id: phase for phase in reading.roadmap.phases}
    for phase in _ahead(log):
        if phase.id not in found or _said(found[phase.id]) != _said(phase):
            raise UsageError(
                f"{layout.ROADMAP} differs in phase {phase.id} from the roadmap that {log.run_id} was begun with",
                next_step=f"restore it, or fairwitness cancel {log.run_id} and begin a new run",
            )


def _ahead(log: AutopilotLog) -> Iterator[DetailedPhase]:
    """Return the phases of the run that have not ended."""
    order, records = log.order(), log.state().state.phases
    for phase in order.roadmap.phases:
        if phase.id in order.phases and records[phase.id].status not in _DONE:
            yield phase


def _said(phase: DetailedPhase) -> DetailedPhase:
    """Return the goals of a phase, without its tick box."""
    return phase.model_copy(update={"done": False})
