"""The board of an autopilot run: its phases with scores, tokens and remarks, and the breaker.

Everything comes from the summary of the run and from its order; no contract is loaded.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairwitness.app.views.detail import open_database, resolve_run
from fairwitness.app.views.run import RunView, phase_status_text
from fairwitness.errors import EventsBroken, UsageError
from fairwitness.kit.durations import seconds_between
from fairwitness.ledger.phase_summary import COMPLETED, DEFERRED, FAILED, NOT_STARTED, PhaseSummary
from fairwitness.ledger.run_summary import AUTOPILOT
from fairwitness.ledger.summary import order_of, summary_of

if TYPE_CHECKING:
    from fairwitness.db.base import Database

RUNNING = "running"
_PROCESSED = (COMPLETED, FAILED, DEFERRED)


@dataclass(frozen=True, slots=True)
class PhaseLine:
    """A phase on the board."""

    id: str
    name: str
    type: str
    status: str
    step: str | None
    """The current step; None unless the phase is in progress."""
    score: float | None
    scores: tuple[float, ...]
    """All scores so far, in order."""
    tokens: int
    token_cap: int
    notes: tuple[str, ...]
    """Remarks of a few words each, such as `remediated 2x`."""

    @property
    def word(self) -> str:
        """The status in words."""
        return phase_status_text(self.status)


@dataclass(frozen=True, slots=True)
class AutopilotView:
    """The current state of an autopilot run."""

    run_id: str
    status: str
    flags: tuple[str, ...]
    threshold: float
    target: str
    phases: tuple[PhaseLine, ...]
    current_phase: str | None
    current_step: str | None
    tokens: int
    token_cap: int
    minutes: float
    minute_cap: int
    breaker: str
    cooldown_until: str | None
    last_error: str | None
    waiting: tuple[str, ...]
    """Phases that wait for a verdict."""
    deferred: int
    processed: int
    """How many phases were deferred to a person, and how many ended."""
    resolution_rate: float
    confidence_limit: float | None

    def plain(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)

    def counts(self) -> dict[str, int]:
        """Return the number of phases per status, for the statuses that occur."""
        statuses = [phase.status for phase in self.phases]
        return {status: statuses.count(status) for status in dict.fromkeys(statuses)}


def view_of_summary(database: "Database", run_id: str) -> AutopilotView:
    """Return the state of a run from its summary and its order."""
    view = summary_of(database, run_id, RunView)
    view.refuse_broken()
    order = order_of(database, run_id)
    if "roadmap" not in order:
        raise UsageError(f"{run_id} is no autopilot run", next_step="fairwitness status lists the runs")
    return board_of(view, order)


def view_of_run(root: Path, wanted: str | None) -> AutopilotView:
    """Return the current state of a run; of the latest if none is named."""
    with open_database(root) as database:
        return view_of_summary(database, resolve_run(database, wanted or "last", workflow=AUTOPILOT))


def board_of(view: RunView, order: dict[str, Any]) -> AutopilotView:
    """Return the board of a run; `order` is what the run was started with, in plain values."""
    try:
        return _board(view, order)
    except (KeyError, TypeError):
        raise EventsBroken(
            f"run {view.run_id}: its order cannot be read", next_step="fairwitness ledger verify"
        ) from None


def _board(view: RunView, order: dict[str, Any]) -> AutopilotView:
    board, statuses, caps = view.board, view.phases.statuses, order["limits"]["breaker"]
    names = {str(phase["id"]): phase for phase in order["roadmap"]["phases"]}
    lines = []
    for phase in dict.fromkeys((*view.phases.wanted, *statuses, *board.lines)):
        named = names[phase if phase in names else phase[:-1]]
        line = board.lines.get(phase) or PhaseSummary()
        lines.append(
            PhaseLine(
                id=phase,
                name=str(named["name"]),
                type=line.type or str(named["type"]),
                status=statuses.get(phase, NOT_STARTED),
                step=board.current_step if phase == board.current_phase else None,
                score=line.score,
                scores=tuple(line.scores),
                tokens=line.tokens,
                token_cap=caps["cost_cap_tokens_per_phase"],
                notes=tuple(_notes(line)),
            )
        )
    processed = sum(line.status in _PROCESSED for line in lines)
    waiting = tuple(line.id for line in lines if line.status == DEFERRED)
    answered = [phase for phase, line in board.lines.items() if line.verdict is not None and phase not in waiting]
    deferred = len(waiting) + len(answered)
    seconds = seconds_between(board.started, board.last) if board.started and board.last else 0.0
    return AutopilotView(
        run_id=view.run_id,
        status=RUNNING if view.status in ("executing", "waiting") else view.status,
        flags=tuple(map(str, order["flags"])),
        threshold=board.threshold,
        target=str(order["target"]),
        phases=tuple(lines),
        current_phase=board.current_phase,
        current_step=board.current_step,
        tokens=board.tokens,
        token_cap=caps["cost_cap_tokens_total"],
        minutes=max(0.0, round(seconds / 60, 2)),
        minute_cap=caps["wall_clock_timeout_minutes_total"],
        breaker=board.breaker,
        cooldown_until=board.cooldown_until,
        last_error=None if board.breaker == "closed" else board.last_error,
        waiting=waiting,
        deferred=deferred,
        processed=processed,
        resolution_rate=round((processed - deferred) / processed, 4) if processed else 0.0,
        confidence_limit=board.confidence_limit,
    )


def _notes(line: PhaseSummary) -> Iterator[str]:
    if line.cycles:
        yield f"remediated {line.cycles}x"
    if line.debugged:
        yield f"debugged {line.debugged}x"
    if line.replanned:
        yield "planned anew"
    if line.is_incomplete:
        yield "below the threshold"
    if line.quality_exhausted:
        yield "quality exhausted"
    if line.gaps_exhausted:
        yield "gaps exhausted"
    if line.is_suspect:
        yield "scores hardly differ"
    if line.verdict is not None:
        yield f"a person said {line.verdict.replace('_', ' ')}"
