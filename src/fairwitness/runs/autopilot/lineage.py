"""Which passes belong together: those of a phase, and a repeated pass with the pass whose steps it repeats."""

from typing import Final

from fairwitness.contracts.autopilot.passes import PassKind, PhasePass, StepResult
from fairwitness.contracts.common.evidence import Observation
from fairwitness.runs.autopilot.log import AutopilotLog, pass_name

RATING: Final = "rating"
"""The kind of observation that holds a rating; its subject is the phase."""


def passes_of(log: AutopilotLog, phase: str) -> tuple[PhasePass, ...]:
    """Return the passes of a phase, in order."""
    return tuple(each for each in log.passes() if each.phase == phase)


def lineage(log: AutopilotLog, phase_pass: PhasePass) -> tuple[PhasePass, ...]:
    """Return a pass with the earlier passes whose steps it repeats; the first one repeats nothing."""
    found: list[PhasePass] = []
    for each in passes_of(log, phase_pass.phase):
        if each.number <= phase_pass.number:
            found = [*found, each] if each.kind is PassKind.AGAIN else [each]
    return tuple(found)


def origin(log: AutopilotLog, phase_pass: PhasePass) -> PhasePass:
    """Return the pass whose steps this pass repeats; for any other pass, the pass itself."""
    return next(iter(lineage(log, phase_pass)), phase_pass)


def tasks_of(log: AutopilotLog, phase_pass: PhasePass) -> tuple[str, ...]:
    """Return the tasks of a part, also if it repeats steps; empty for other passes, which have all tasks."""
    return origin(log, phase_pass).tasks


def results_of(log: AutopilotLog, phase_pass: PhasePass) -> tuple[StepResult, ...]:
    """Return the results of all steps of a lineage, in order."""
    return tuple(result for each in lineage(log, phase_pass) for result in log.results(each))


def revert_key(phase_pass: PhasePass) -> str:
    """Return the key under which a revert of a pass is recorded."""
    return f"reverted:{pass_name(phase_pass)}"


def current_rating(log: AutopilotLog, phase: str) -> Observation | None:
    """Return the last rating of a phase whose work was not reverted, or None."""
    gone = {
        pass_name(each)
        for phase_pass in passes_of(log, phase)
        if log.ledger.observation(log.run_id, revert_key(phase_pass)) is not None
        for each in lineage(log, phase_pass)
    }
    rows = [row for row in log.ledger.observations(log.run_id, RATING) if row.subject == phase]
    return next((row for row in reversed(rows) if row.key.split(":")[1] not in gone), None)
