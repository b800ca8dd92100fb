"""Earlier autopilot runs of a repository: which one is unfinished, and which phases are completed.

Whether a phase is completed depends on the current commit: what an earlier run completed on a branch that is not
merged is missing for a run that begins elsewhere.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fairwitness.contracts.autopilot.order import EarlierPhase
from fairwitness.contracts.autopilot.rating import Deficiency, RatingReturn
from fairwitness.contracts.autopilot.roadmap import Roadmap
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, PhaseStatus
from fairwitness.contracts.common.ids import AutopilotRunId
from fairwitness.errors import UsageError
from fairwitness.git.repository import Repository
from fairwitness.kit.text import visible
from fairwitness.ledger.kept import recorded
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.cost import standing_score
from fairwitness.rules.rating import deficiencies
from fairwitness.runs.autopilot.lineage import current_rating
from fairwitness.runs.autopilot.log import ORDER, AutopilotLog

_ENDED = (PhaseStatus.COMPLETED, PhaseStatus.FAILED)
_RUN_ID: TypeAdapter[str] = TypeAdapter(AutopilotRunId)


@dataclass(frozen=True, slots=True)
class EndedPhase:
    """A phase with its result in the last run that ended it."""

    run_id: str
    phase: EarlierPhase
    target: str
    """The branch of that run."""
    commit: str | None
    """The commit of the branch after the phase, if recorded."""


def autopilot_runs(ledger: Ledger) -> tuple[str, ...]:
    """Return the autopilot runs of a ledger, the oldest first."""
    return tuple(run for run in ledger.runs() if _is_run_id(run) and _has_order(ledger, run))


def _is_run_id(run_id: str) -> bool:
    try:
        _RUN_ID.validate_python(run_id)
    except ValidationError:
        return False
    return True


def _has_order(ledger: Ledger, run_id: str) -> bool:
    row = ledger.observation(run_id, ORDER)
    return row is not None and isinstance(row.detail.get("order"), dict) and "roadmap" in row.detail["order"]


def latest_run(ledger: Ledger, wanted: str | None = None) -> str:
    """Return the id of the named run, or of the latest one."""
    runs = autopilot_runs(ledger)
    if wanted is not None and wanted != "last":
        if wanted not in runs:
            raise UsageError(
                f"{visible(wanted)} is not an autopilot run", next_step="fairwitness status lists the runs"
            )
        return wanted
    if not runs:
        raise UsageError("there is no autopilot run here yet", next_step="fairwitness autopilot next")
    return runs[-1]


def refuse_beside_another(ledger: Ledger) -> None:
    """Raise `UsageError` if a run is unfinished: two runs would share one state file."""
    for run_id in autopilot_runs(ledger):
        status = AutopilotLog(ledger, run_id).state().state.meta.status
        if status in (AutopilotRunStatus.RUNNING, AutopilotRunStatus.PAUSED):
            raise UsageError(
                f"{run_id} is {status.value}, and only one autopilot run may be active",
                next_step=f"fairwitness autopilot resume {run_id}, or fairwitness cancel {run_id}",
            )


def ended_phases(ledger: Ledger, repository: Repository, target_tenths: int) -> dict[str, EndedPhase]:
    """Return every phase that a run ended, with its last result; its criteria should reach `target_tenths`."""
    known: dict[str, EndedPhase] = {}
    listed = repository.git.run("ls-tree", "-r", "-z", "--name-only", "HEAD").decode(errors="replace")
    paths = frozenset(listed.split("\0"))
    for run_id in autopilot_runs(ledger):
        log = AutopilotLog(ledger, run_id)
        commits = _commits(log)
        for phase, record in log.state().state.phases.items():
            if record.status in _ENDED:
                found = _deficiencies(log, phase, paths, target_tenths)
                if found is None:  # without a rating of that run the earlier deficiencies still apply
                    found = known[phase].phase.deficiencies if phase in known else ()
                left = EarlierPhase(
                    status=record.status,
                    alignment_score=standing_score(record),
                    deficiencies=found,
                    completed_at=record.completed_at,
                )
                known[phase] = EndedPhase(run_id, left, log.order().target, commits.get(phase))
    return known


def _commits(log: AutopilotLog) -> dict[str, str]:
    """Return the commit of the branch after each completed phase."""
    said = (event for event in log.ledger.events(log.run_id) if event.type == "phase_completed")
    return {event.phase: str(event.data["checkpoint_sha"]) for event in said if event.phase and _said(event.data)}


def _said(data: dict[str, Any]) -> bool:
    return data.get("checkpoint_sha") is not None


def _deficiencies(log: AutopilotLog, phase: str, known: Collection[str], target: int) -> tuple[Deficiency, ...] | None:
    """Return the criteria below the target of `--gaps` in the last rating of a phase; None without a rating."""
    row = current_rating(log, phase)
    if row is None:
        return None
    rating = recorded(RatingReturn, row, "document", "settled", "rating")
    return deficiencies(rating, {}, known, target)


def earlier_phases(known: dict[str, EndedPhase], roadmap: Roadmap) -> dict[str, EarlierPhase]:
    """Return the earlier results of a roadmap's phases; a ticked box means that a phase is completed."""
    found = {phase.id: known[phase.id].phase for phase in roadmap.phases if phase.id in known}
    for phase in roadmap.ticked:
        if phase not in found or found[phase].status is not PhaseStatus.COMPLETED:
            found[phase] = EarlierPhase(status=PhaseStatus.COMPLETED, alignment_score=None, deficiencies=())
    return found


def refuse_unmerged(
    repository: Repository, known: dict[str, EndedPhase], needed: set[str], ticked: frozenset[str]
) -> None:
    """Raise `UsageError` if a completed phase is not merged here; a branch that no longer exists is ignored."""
    for phase in sorted(needed & known.keys()):
        left = known[phase]
        tip = repository.ref(f"refs/heads/{left.target}")
        if left.phase.status is not PhaseStatus.COMPLETED or phase in ticked or tip is None:
            continue
        if not repository.is_ancestor(left.commit or tip, "HEAD"):
            raise UsageError(
                f"phase {phase} was completed by {left.run_id} on a branch that is not merged here",
                next_step=f"git merge {left.target}, or tick the phase in the roadmap",
            )
