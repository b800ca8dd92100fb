"""The phases of an autopilot run in plain values: their statuses, and the board with scores, tokens and breaker."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from fairwitness.ledger.summary_event import Plain, SummaryEvent, SummaryLine

NOT_STARTED, IN_PROGRESS, COMPLETED, FAILED = "not_started", "in_progress", "completed", "failed"
DEFERRED, SKIPPED = "needs_human_verification", "skipped"
ALREADY = "already_completed"
"""The reason of skipping a phase that an earlier run completed."""


class PhaseStatuses:
    """The phases of an autopilot run and their statuses after the applied events."""

    def __init__(self) -> None:
        self.wanted: tuple[str, ...] = ()
        """The phases of this run."""
        self.statuses: dict[str, str] = {}
        self.needs: Mapping[str, Sequence[str]] = {}
        """The dependencies of each phase, from the order of the run; events do not contain them."""
        self._done_before: set[str] = set()

    def apply_event(self, event: SummaryEvent) -> None:
        """Apply one event."""
        if event.type == "run_started":
            self.wanted = tuple(map(str, event.data.get("phases") or ()))
            self.statuses = dict.fromkeys(self.wanted, NOT_STARTED)
        phase = event.phase
        if phase is None:
            return
        match event.type:
            case "phase_started":
                self.statuses[phase] = IN_PROGRESS
            case "phase_completed":
                self.statuses[phase] = COMPLETED
            case "phase_failed":
                self.statuses[phase] = FAILED
            case "phase_skipped" if self.statuses.get(phase, NOT_STARTED) == NOT_STARTED:
                self.statuses[phase] = SKIPPED
                if event.data.get("reason") == ALREADY:
                    self._done_before.add(phase)
            case "human_verdict_recorded" if event.data.get("verdict") is not None:
                self.statuses[phase] = COMPLETED if event.data["verdict"] == "pass" else FAILED
            case _:
                pass
        facts = event.data.get("facts")
        if isinstance(facts, dict) and facts.get("deferral") is not None:
            self.statuses[phase] = DEFERRED

    def at(self, status: str) -> tuple[str, ...]:
        """Return the phases in a status, in the order of the run; parts of split phases come last."""
        order = (*self.wanted, *(phase for phase in self.statuses if phase not in self.wanted))
        return tuple(phase for phase in order if self.statuses[phase] == status)

    def counts(self) -> dict[str, int]:
        """Return how many phases of this run there are, are completed, failed, and deferred to a person."""
        of = [self.statuses[phase] for phase in self.wanted]
        return {
            "total": len(of),
            "completed": of.count(COMPLETED) + sum(phase in self._done_before for phase in self.wanted),
            "failed": of.count(FAILED),
            "deferred": of.count(DEFERRED),
        }

    @property
    def is_held(self) -> bool:
        """Whether no phase can continue before a verdict."""
        return bool(self.at(DEFERRED)) and not self.at(IN_PROGRESS) and not any(map(self._can_begin, self.wanted))

    def _can_begin(self, phase: str) -> bool:
        if self.statuses[phase] != NOT_STARTED:
            return False
        return all(self._is_done(other) for other in self.needs.get(phase, ()) if other in self.wanted)

    def _is_done(self, phase: str) -> bool:
        return self.statuses[phase] == COMPLETED or phase in self._done_before

    def plain(self) -> Plain:
        """Return the phases as plain JSON values; statuses are pairs, because their order counts."""
        return {
            "wanted": list(self.wanted),
            "statuses": list(map(list, self.statuses.items())),
            "needs": {phase: list(others) for phase, others in self.needs.items()},
            "done_before": sorted(self._done_before),
        }

    def restore(self, plain: Plain) -> None:
        """Set everything from plain values."""
        self.wanted, self.statuses = tuple(plain["wanted"]), dict(plain["statuses"])
        self.needs, self._done_before = plain["needs"], set(plain["done_before"])


PASS, DEFERRAL_CONFIDENCE = 9.0, 6.0
"""The score that a phase needs and the confidence below which a person is asked, unless events set others."""
_LINE = (
    *("tokens", "score", "scores", "cycles", "debugged", "replanned", "is_incomplete", "quality_exhausted"),
    *("gaps_exhausted", "is_suspect", "verdict", "is_scored", "type"),
)


class PhaseSummary(SummaryLine):
    """What the board shows of a phase beside its status."""

    __slots__ = _LINE

    def __init__(self) -> None:
        self.scores: list[float] = []
        self.type: str | None = None
        """The type of the phase if its start named one; otherwise that of the roadmap holds."""
        self.is_suspect = self.is_scored = False
        """`is_scored` says whether the phase has a score since it started."""
        self.begin()

    def begin(self) -> None:
        """Forget what only an earlier pass over the phase said."""
        self.tokens = self.cycles = self.debugged = self.replanned = 0
        self.score: float | None = None
        self.is_incomplete = self.quality_exhausted = self.gaps_exhausted = False
        self.verdict: str | None = None

    def rate(self, score: float | None, *, best: float | None = None) -> None:
        """Add a score, and set the current one; `best` differs after a cycle that lowered it and was reverted."""
        if score is not None:
            self.scores.append(score)
        if best is not None:
            self.score = best


_BOARD = (
    *("threshold", "started", "last", "current_phase", "current_step", "tokens", "breaker", "cooldown_until"),
    *("last_error", "confidence_limit"),
)


class BoardSummary:
    """The board of an autopilot run after the applied events."""

    def __init__(self, phases: PhaseStatuses) -> None:
        """`phases` are the statuses before each event that is applied."""
        self._phases = phases
        self.lines: dict[str, PhaseSummary] = {}
        """Every phase that an event mentions."""
        self.threshold, self.confidence_limit = PASS, DEFERRAL_CONFIDENCE
        self.started: str | None = None
        self.last: str | None = None
        """When the run started, and the time of its last event."""
        self.current_phase: str | None = None
        self.current_step: str | None = None
        self.tokens = 0
        self.breaker = "closed"
        self.cooldown_until: str | None = None
        self.last_error: str | None = None
        """Why the breaker opened."""

    def apply_event(self, event: SummaryEvent) -> None:
        """Apply one event, before the statuses of the phases follow it."""
        if "." in event.type:
            return  # an event of the graph; the phase's own events record what it means for the phase
        self.last = event.timestamp
        self._apply_to_run(event)
        if event.phase is not None:
            line = self.lines.setdefault(event.phase, PhaseSummary())
            before = line.tokens
            self._apply_to_phase(line, event, event.phase)
            self.tokens += max(0, line.tokens - before)  # a phase that runs again counts from zero; the run does not

    def _apply_to_run(self, event: SummaryEvent) -> None:
        data = event.data
        match event.type:
            case "run_started":
                self.started, self.threshold = event.timestamp, float(data.get("pass_threshold") or PASS)
            case "run_completed":
                self.current_phase = self.current_step = None
            case "run_resumed" if self.breaker == "open" and not self._cools(event.timestamp):
                self.breaker, self.cooldown_until = "half_open", None
            case "circuit_breaker_opened":
                self.breaker, self.cooldown_until = "open", data.get("cooldown_until")
                self.last_error = data.get("last_error") or self.last_error
            case "circuit_breaker_closed":
                self.breaker, self.cooldown_until, self.last_error = "closed", None, None
            case "deferral_threshold_adjusted" if data.get("new_confidence") is not None:
                self.confidence_limit = float(data["new_confidence"])
            case "rubber_stamp_critical":
                for phase in data.get("phases") or ():
                    if phase in self.lines:
                        self.lines[phase].is_suspect = True
            case _:
                pass

    def _cools(self, now: str) -> bool:
        until = self.cooldown_until
        return until is not None and datetime.fromisoformat(now) < datetime.fromisoformat(until)

    def _apply_to_phase(self, line: PhaseSummary, event: SummaryEvent, phase: str) -> None:
        data = event.data
        match event.type:
            case "phase_started":
                if self._phases.statuses.get(phase) != IN_PROGRESS:
                    line.begin()
                    line.type = data.get("phase_type") or line.type
                self.current_phase, self.current_step, line.is_scored = phase, None, False
            case "step_started":
                self.current_phase, self.current_step = phase, str(data["step"])
            case "phase_completed":
                used = data.get("tokens_used")
                line.tokens = line.tokens if used is None else int(used)
                score = data.get("alignment_score")
                line.rate(None if line.is_scored else score, best=score)
                line.is_scored = True
            case "debug_attempt":
                line.debugged += 1
            case "replan_attempt":
                line.replanned += 1
            case "human_verdict_recorded" if data.get("verdict") is not None:
                line.verdict = str(data["verdict"])
            case "remediation_started" | "quality_remediation_started" | "gaps_iteration_started":
                if not line.is_scored:
                    line.rate(data.get("current_score"))
                line.is_scored = True
            case "force_reexecution_started" if not line.scores:
                line.rate(data.get("previous_score"))
            case "remediation_completed" | "quality_remediation_completed" | "gaps_iteration_completed":
                line.cycles = int(data.get("cycle", line.cycles))
                score = data.get("new_score")
                line.rate(score, best=max(data["old_score"], score or 0.0))
                line.is_scored = line.is_scored or event.type == "remediation_completed"
            case "force_incomplete_marked":
                line.is_incomplete = True
            case "quality_exhausted":
                line.quality_exhausted = True
            case "gaps_exhausted":
                line.gaps_exhausted = True
            case _:
                pass
        self._add_facts(line, data.get("facts") or {})
        if event.type in ("phase_completed", "phase_failed"):
            self.current_phase = self.current_step = None

    def _add_facts(self, line: PhaseSummary, facts: Plain) -> None:
        rated = (facts.get("steps") or {}).get("rate")
        if rated is not None:
            line.score = rated.get("alignment_score")
        line.tokens += facts.get("tokens") or 0
        if facts.get("deferral") is not None:  # it is a person's now
            self.current_phase = self.current_step = None

    def plain(self) -> Plain:
        """Return the board as plain JSON values."""
        return {
            **{name: getattr(self, name) for name in _BOARD},
            "lines": [[phase, line.plain()] for phase, line in self.lines.items()],
        }

    def restore(self, plain: Plain) -> None:
        """Set everything from plain values."""
        for name in _BOARD:
            setattr(self, name, plain[name])
        self.lines = {phase: PhaseSummary.restored(line) for phase, line in plain["lines"]}
