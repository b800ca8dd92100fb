"""The self-audit: what a run built, held against the requirements it was to meet, before it ends.

An agent looks, and the harness counts (`audit_gaps`). Gaps are fixed in at most two cycles; a fix counts once the
agent, asked again, finds the requirement met. Each answer and each fix is kept, so that an audit that was cut short
goes on where it was.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from fairwitness.contracts.autopilot.audit import AuditOutcome, GapDetail, RemainingGap, SelfAuditReturn
from fairwitness.contracts.autopilot.events_audit import (
    SelfAuditCompleted,
    SelfAuditGapFixed,
    SelfAuditGapFound,
    SelfAuditStarted,
)
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.ids import Commit, PhaseId
from fairwitness.errors import UsageError
from fairwitness.rules.integrity_evidence import has_place
from fairwitness.runs.autopilot.audit_gaps import Answer, Gap, Gaps, Wanted, gaps_of, still_open, unseen, wanted_of
from fairwitness.runs.autopilot.log import AutopilotLog, Told, happened
from fairwitness.runs.graph.repo_context import run_blocking

AUDIT, ANSWER, FIX = "self-audit", "self-audit-answer", "self-audit-fix"
CYCLES = 2


class Auditor(Protocol):
    """Sends out the agent that audits."""

    async def __call__(self, number: int, phases: tuple[str, ...]) -> SelfAuditReturn | str:
        """What it returned, or why there is nothing; `number` counts the answers of a run, and asking under the same
        number again gives the same answer."""
        ...


class Fixer(Protocol):
    """Lets somebody close a gap: directly if it is small, by an executor if it is large."""

    async def __call__(self, number: int, gap: GapDetail) -> str | None:
        """The commit it landed with, None if nothing did; `number` counts the fixes of a run, and asking under the same
        number again gives the same commit."""
        ...


class Fixed(Contract):
    """What came of a fix."""

    commit: Commit | None


class Begun(Contract):
    """That the audit of these phases has begun."""

    phases: tuple[PhaseId, ...]


class SelfAudit:
    """The audit of the phases that a run completed; for the same phases there is one."""

    def __init__(
        self,
        log: AutopilotLog,
        auditor: Auditor,
        fix: Fixer,
        phases: tuple[str, ...],
        *,
        is_shown: Callable[[str], bool] = has_place,
    ) -> None:
        """`is_shown` says whether a piece of evidence names a place; whoever has the files can look if it is there."""
        strangers = [phase for phase in phases if phase not in log.order().phases]
        if strangers or not phases:
            raise UsageError(
                f"{', '.join(strangers) or 'no phase'} cannot be audited: it is not of {log.run_id}",
                next_step="audit phases that the run takes up",
            )
        self._log, self._auditor, self._fix, self._is_shown = log, auditor, fix, is_shown
        self._phases = phases
        self._scope = "-".join(phases)

    async def run(self) -> AuditOutcome:
        """Looks, fixes, looks again; what came of it is given once and for all."""
        known = await run_blocking(self._log.kept, f"{AUDIT}:{self._scope}", AuditOutcome)
        if known is not None:
            return known
        await run_blocking(self._begin)
        answer = await self._look(1, {}, {}, {})
        wanted = wanted_of(self._log.order().roadmap, self._phases, answer)
        left = gaps_of(wanted, answer, self._is_shown)
        found = _described(left)
        commits: list[str] = []
        cycles = 0
        while left and answer.returned is not None and cycles < CYCLES:
            cycles += 1
            landed = await self._fix_all(cycles, left)
            if not landed and found.keys() >= left.keys():
                break  # nothing was changed, and everything was looked at
            commits += landed.values()
            answer = await self._look(cycles + 1, left, found, landed, wanted)
            if answer.returned is None:
                left = unseen(left, answer)
            else:
                left = still_open(left, gaps_of(wanted, answer, self._is_shown), landed=bool(landed))
            found = {**_described(left), **found}
        outcome = _outcome(wanted, found, left, cycles, commits)
        return await run_blocking(self._end, outcome, {each: gap for each, gap in left.items() if each not in found})

    def _begin(self) -> None:
        def told(now: str) -> Iterator[Told]:
            spec = self._log.order().specs[0].path
            yield Told(happened(SelfAuditStarted, now, phases_to_audit=self._phases, spec_path=spec))

        key = f"{AUDIT}:{self._scope}:begun"
        self._log.keep(key, f"{AUDIT}-begun", self._scope, Begun(phases=self._phases), told)

    def _end(self, outcome: AuditOutcome, untold: Gaps) -> AuditOutcome:
        def told(now: str) -> Iterator[Told]:
            for each, gap in untold.items():
                yield _found(now, each, gap)
            said = outcome.model_dump(exclude={"remaining_gap_details", "fix_commits"})
            yield Told(happened(SelfAuditCompleted, now, **said))

        return self._log.keep(f"{AUDIT}:{self._scope}", AUDIT, self._scope, outcome, told)

    async def _look(
        self,
        look: int,
        left: Gaps,
        found: Gaps,
        landed: Mapping[Wanted, str],
        wanted: tuple[Wanted, ...] | None = None,
    ) -> Answer:
        """Asks the agent, and tells which gaps are new and which of those that were left are closed."""
        key = f"{ANSWER}:{self._scope}:{look}"
        known = await run_blocking(self._log.kept, key, Answer)
        if known is not None:
            return known
        number = len(await run_blocking(self._log.all_kept, ANSWER, Answer)) + 1
        said = await self._auditor(number, self._phases)
        answer = (
            Answer(returned=said) if not isinstance(said, str) else Answer(problem=said.strip() or "it says nothing")
        )

        def told(now: str) -> Iterator[Told]:
            if answer.returned is None:
                return
            asked = wanted_of(self._log.order().roadmap, self._phases, answer) if wanted is None else wanted
            gaps = still_open(left, gaps_of(asked, answer, self._is_shown), landed=bool(landed))
            for each in _described(left):
                if each not in gaps:
                    # where its own fix came to nothing, another gap's may have closed it
                    yield _closed(now, each, landed.get(each, [*landed.values()][-1]))
            for each, gap in _described(gaps).items():
                if each not in found:
                    yield _found(now, each, gap)

        return await run_blocking(self._log.keep, key, ANSWER, self._scope, answer, told)

    async def _fix_all(self, cycle: int, left: Gaps) -> dict[Wanted, str]:
        """Lets each gap be closed that somebody described, one after the other; the commits that landed."""
        landed = {}
        for place, (wanted, gap) in enumerate(_described(left).items(), start=1):
            key = f"{FIX}:{self._scope}:{cycle}:{place}"
            fixed = await run_blocking(self._log.kept, key, Fixed)
            if fixed is None:
                number = len(await run_blocking(self._log.all_kept, FIX, Fixed)) + 1
                commit = await self._fix(number, gap.detail)
                fixed = await run_blocking(self._log.keep, key, FIX, wanted.requirement, Fixed(commit=commit))
            if fixed.commit is not None:
                landed[wanted] = fixed.commit
        return landed


def _described(gaps: Gaps) -> dict[Wanted, Gap]:
    return {each: gap for each, gap in gaps.items() if gap.is_described}


def _found(now: str, wanted: Wanted, gap: Gap) -> Told:
    said = gap.detail.model_dump(include={"requirement_id", "phase_id", "gap_description", "fix_complexity"})
    return Told(happened(SelfAuditGapFound, now, phase=wanted.phase, **said))


def _closed(now: str, wanted: Wanted, commit: str) -> Told:
    return Told(
        happened(
            SelfAuditGapFixed,
            now,
            phase=wanted.phase,
            requirement_id=wanted.requirement,
            phase_id=wanted.phase,
            fix_commit=commit,
            re_verified=True,
        )
    )


def _outcome(wanted: tuple[Wanted, ...], found: Gaps, left: Gaps, cycles: int, commits: list[str]) -> AuditOutcome:
    """The numbers: a gap is what was described as one, and what is open at the end."""
    gaps = {*found, *left}
    return AuditOutcome(
        total_requirements_checked=len(wanted),
        passed_on_first_check=len(wanted) - len(gaps),
        gaps_found=len(gaps),
        gaps_fixed=len(gaps) - len(left),
        gaps_remaining=len(left),
        remaining_gap_details=tuple(
            RemainingGap(requirement_id=gap.detail.requirement_id, description=gap.detail.gap_description)
            for gap in left.values()
        ),
        audit_cycles=cycles,
        fix_commits=tuple(dict.fromkeys(commits)),
    )
