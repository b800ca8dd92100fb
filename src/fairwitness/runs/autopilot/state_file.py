"""`.autopilot/state.json`: the state of a run in one file that a person can read without the ledger.

The file is a fold of the ledger's events and nothing else. `checkpoint_written` is recorded first, in one record with
the events that it follows, so that the ledger is never behind the file and a kill changes no count; then the current
file becomes the backup; then the new file replaces it atomically. After a crash in between, the next refresh writes
what is missing. During a long step a checkpoint is also recorded every 45 seconds as a sign of life.
"""

import threading
from enum import StrEnum
from typing import NamedTuple

from pydantic import ValidationError

from fairwitness.contracts.autopilot.events_run import CheckpointWritten
from fairwitness.contracts.autopilot.facts import AutopilotState
from fairwitness.contracts.autopilot.state import State
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus
from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.errors import BadDocument, EventsBroken, NotStored, StoreError, UsageError
from fairwitness.kit.documents import Format, read
from fairwitness.kit.killpoints import killpoint
from fairwitness.rules.fold_autopilot import fold_autopilot
from fairwitness.rules.next_run_move import waits_for_a_person
from fairwitness.runs.autopilot.log import AutopilotLog, LoggedEvent, new_event
from fairwitness.runs.autopilot.page_words import json_file
from fairwitness.store.artifacts import Store
from fairwitness.store.layout import autopilot


class StateSource(StrEnum):
    """Where a state comes from, in the order in which the sources are tried."""

    FILE = "state.json"
    BACKUP = "state.json.backup"


class StateReading(NamedTuple):
    """A state and its source."""

    state: State
    source: StateSource


_PATHS = {StateSource.FILE: autopilot.STATE, StateSource.BACKUP: autopilot.STATE_BACKUP}


def read_state(files: Store, *, run_id: str | None = None) -> StateReading | None:
    """Return the state from its file, or from the backup if the file cannot be read; None if neither can.

    With `run_id`, a file about another run is ignored.
    """
    for source, path in _PATHS.items():
        try:
            state = _state_of(files.get(path))
        except (BadDocument, StoreError):
            continue
        if run_id in (None, state.meta.run_id):
            return StateReading(state, source)
    return None


def _state_of(data: bytes) -> State:
    """Return the state in a file's bytes; `BadDocument` if there is none."""
    document = read(data, Format.JSON)
    try:
        return State.model_validate(document.value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = spell_path(first["loc"])
        position = document.positions([first["loc"]])[0]
        raise BadDocument(f"{place}: {first['msg']}", position) from None


def shown(log: AutopilotLog, state: State) -> State:
    """Return the state as its file shows it: a run that only waits for a person is paused."""
    statuses = {phase: record.status for phase, record in state.phases.items()}
    if state.meta.status is not AutopilotRunStatus.RUNNING or not waits_for_a_person(log.order(), statuses):
        return state
    return state.model_copy(update={"meta": state.meta.model_copy(update={"status": AutopilotRunStatus.PAUSED})})


def rendered(state: State) -> bytes:
    """Return the bytes of a state file."""
    return json_file(state.plain()).encode()


class StateFile:
    """The state file of one run; all writers in this process share this object."""

    def __init__(self, log: AutopilotLog, files: Store) -> None:
        self._log, self._files = log, files
        self._known = b""
        """What this process wrote last, which is known to be a valid state."""
        self._guard = threading.Lock()

    def refresh(self, *, is_sign_of_life: bool = False) -> AutopilotState:
        """Bring the file up to date with the ledger; write nothing if it is.

        A sign of life records a new checkpoint in any case.
        """
        with self._guard:
            folded = self._log.state()
            if is_archived(folded.state, self._files):
                return folded
            if is_sign_of_life or not isinstance(folded.state.event_log[-1], CheckpointWritten):
                events = new_event(CheckpointWritten, self._log.now(), path=autopilot.STATE)
                self._log.append(LoggedEvent(events))
                killpoint("autopilot.checkpoint")
                folded = self._log.state()
            self._write(rendered(shown(self._log, folded.state)))
            return folded

    def _write(self, content: bytes) -> None:
        present = self._present()
        if present != content:
            if present is not None and self._is_state(present):
                self._files.put(autopilot.STATE_BACKUP, present)
                killpoint("autopilot.backup")
            self._files.put(autopilot.STATE, content)
            killpoint("autopilot.state")
        self._known = content

    def _present(self) -> bytes | None:
        try:
            return self._files.get(autopilot.STATE)
        except NotStored:
            return None

    def _is_state(self, content: bytes) -> bool:
        """Return whether the content deserves a backup: a damaged file must not replace a valid one."""
        if content == self._known:
            return True
        try:
            _state_of(content)
        except BadDocument:
            return False
        return True


def is_archived(state: State, files: Store) -> bool:
    """Return whether the state of a completed run was moved to the archive."""
    done = state.meta.status is AutopilotRunStatus.COMPLETED
    return done and files.exists(autopilot.archived_state(state.meta.run_id))


def archive(log: AutopilotLog, files: Store) -> str:
    """Move the state file of a completed run to the archive, with all its events; return its path.

    The backup then says that the run is completed, so that nothing takes it for a running one.
    """
    state = log.state().state
    if state.meta.status is not AutopilotRunStatus.COMPLETED:
        raise UsageError(
            f"{log.run_id} is {state.meta.status.value}, and only a completed run is archived",
            next_step=f"fairwitness status {log.run_id}",
        )
    path = autopilot.archived_state(log.run_id)
    found = read_state(files, run_id=log.run_id)
    if not files.exists(path) and found is not None and found.source is StateSource.FILE:
        files.put(autopilot.STATE_BACKUP, rendered(state))
        killpoint("autopilot.backup")
        files.move(autopilot.STATE, path)
        killpoint("autopilot.archive")
    whole = rendered(whole_state(log))
    if not files.exists(path) or files.get(path) != whole:
        files.put(path, whole)
        killpoint("autopilot.archived")
    return path


def archive_beside(log: AutopilotLog, files: Store) -> str:
    """Copy the state of a failed run at the end of its roadmap to the archive, with all events; return the path.

    The state file stays, because the run can be resumed.
    """
    path, whole = autopilot.archived_state(log.run_id), rendered(whole_state(log))
    if not files.exists(path) or files.get(path) != whole:
        files.put(path, whole)
        killpoint("autopilot.archived")
    return path


def whole_state(log: AutopilotLog) -> State:
    """Return the run's state with all its events."""
    folded = fold_autopilot(log.ledger.events(log.run_id), log.order().setup(None))
    if isinstance(folded, Problem):
        raise EventsBroken(
            f"run {log.run_id}: {spell_path(folded.where)}: expected {folded.expected}; found {folded.found}",
            next_step="fairwitness ledger verify",
        )
    return folded.state
