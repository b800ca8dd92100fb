"""Where the phases of an autopilot run stand, told by its events one by one; no contract is loaded for it.

What it says of a phase is what a fold of the same events says; a test holds the two equal.
"""

from collections.abc import Mapping, Sequence

from fairwitness.ledger.glance import Event

AUTOPILOT = "autopilot"
NOT_STARTED, IN_PROGRESS, COMPLETED, FAILED = "not_started", "in_progress", "completed", "failed"
DEFERRED, SKIPPED = "needs_human_verification", "skipped"
ALREADY = "already_completed"
"""Why a phase is skipped that an earlier run completed."""
_WORDS = {DEFERRED: "waits for you", IN_PROGRESS: "in progress", NOT_STARTED: "not started"}


def phase_word(status: str) -> str:
    """A phase's status as a person reads it.

    >>> [phase_word(status) for status in ("needs_human_verification", "completed")]
    ['waits for you', 'completed']
    """
    return _WORDS.get(status, status)


class PhaseCourse:
    """The phases of a run after the events it was told of."""

    def __init__(self) -> None:
        self.wanted: tuple[str, ...] = ()
        """The phases that the run takes up."""
        self.statuses: dict[str, str] = {}
        self.needs: Mapping[str, Sequence[str]] = {}
        """Which phases each rests on, if whoever looks knows; events do not tell it."""
        self._done_before: set[str] = set()

    def take_in(self, event: Event) -> None:
        """Goes one event on."""
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
        """The phases in a status, in the order of the run; the parts of a split one after the others."""
        order = (*self.wanted, *(phase for phase in self.statuses if phase not in self.wanted))
        return tuple(phase for phase in order if self.statuses[phase] == status)

    def counts(self) -> dict[str, int]:
        """How many of the wanted phases there are, are done, failed, and wait for a person."""
        of = [self.statuses[phase] for phase in self.wanted]
        return {
            "total": len(of),
            "completed": of.count(COMPLETED) + sum(phase in self._done_before for phase in self.wanted),
            "failed": of.count(FAILED),
            "deferred": of.count(DEFERRED),
        }

    @property
    def is_held(self) -> bool:
        """Whether nothing can go on before a person has said something."""
        return bool(self.at(DEFERRED)) and not self.at(IN_PROGRESS) and not any(map(self._can_begin, self.wanted))

    def _can_begin(self, phase: str) -> bool:
        if self.statuses[phase] != NOT_STARTED:
            return False
        return all(self._is_done(other) for other in self.needs.get(phase, ()) if other in self.wanted)

    def _is_done(self, phase: str) -> bool:
        return self.statuses[phase] == COMPLETED or phase in self._done_before
