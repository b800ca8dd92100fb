"""The self-audit: at the end of a run, an agent compares what was built with the requirements.

The agent looks and the harness counts. A requirement that the answer leaves out, or passes without naming a line of a
file, is open; such a gap is not fixed, because nothing says what is missing, but looked at again. Described gaps are
fixed in at most two cycles, and a fix counts once the agent finds the requirement met. Every answer and every fix is
recorded, so an interrupted audit resumes where it was.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from fairwitness.contracts.autopilot.audit import (
    AuditedRequirement,
    AuditOutcome,
    AuditStatus,
    GapDetail,
    RemainingGap,
    SelfAuditReturn,
)
from fairwitness.contracts.autopilot.events_audit import (
    SelfAuditCompleted,
    SelfAuditGapFixed,
    SelfAuditGapFound,
    SelfAuditStarted,
)
from fairwitness.contracts.autopilot.facts import StepFailureCause
from fairwitness.contracts.autopilot.roadmap import Roadmap
from fairwitness.contracts.autopilot.vocabulary import FixComplexity, PhaseStatus
from fairwitness.contracts.common.base import Contract, Maybe, Text
from fairwitness.contracts.common.ids import Commit, PhaseId
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.graph.orders import GraphEnd
from fairwitness.errors import UsageError
from fairwitness.rules.integrity_evidence import has_place
from fairwitness.runs.autopilot.context import AutopilotContext
from fairwitness.runs.autopilot.log import AutopilotLog, LoggedEvent, new_event
from fairwitness.runs.autopilot.step_result import answer
from fairwitness.runs.autopilot.task_graphs import TaskNode, begin_graph, commit_of, graph_of
from fairwitness.runs.dispatch import DispatchPosition
from fairwitness.runs.dispatch.blocking import run_blocking

UNNAMED = "self-audit"
"""Stands for the requirements if the roadmap names none and no agent looked."""


class AuditAnswer(Contract):
    """The answer of the agent: what it returned, or why there is no answer."""

    returned: Maybe[SelfAuditReturn] = None
    problem: Maybe[Text] = None


class PhaseRequirement(NamedTuple):
    """A requirement and the phase that should meet it."""

    phase: str
    requirement: str


class Gap(NamedTuple):
    """What is missing of a requirement."""

    detail: GapDetail
    is_described: bool
    """Whether the agent said what is missing; if not, it only failed to show that nothing is."""


Gaps = Mapping[PhaseRequirement, Gap]


def wanted_of(roadmap: Roadmap, phases: Iterable[str], first: AuditAnswer) -> tuple[PhaseRequirement, ...]:
    """Return the requirements of the phases from the roadmap; for a phase without a list, those the answer checked."""
    listed = {phase.id: [each.id for each in phase.requirements] for phase in roadmap.phases}
    phase_ids = tuple(phases)
    wanted = []
    for phase in phase_ids:
        names = listed.get(phase) or [each.requirement_id for each in _checked(first, phase)]
        wanted += [PhaseRequirement(phase, name) for name in dict.fromkeys(names)]
    if not wanted and first.returned is None:
        wanted.append(PhaseRequirement(phase_ids[0], UNNAMED))  # an unchecked requirement is not met
    return tuple(wanted)


def gaps_of(
    wanted: Iterable[PhaseRequirement], answer: AuditAnswer, is_shown: Callable[[str], bool]
) -> dict[PhaseRequirement, Gap]:
    """Return the requirements that are not met, or not shown to be met."""
    found = ((each, _gap_of(each, answer, is_shown)) for each in wanted)
    return {each: gap for each, gap in found if gap is not None}


def still_open(left: Gaps, gaps: Gaps, *, landed: bool) -> dict[PhaseRequirement, Gap]:
    """Return the gaps after another look; if nothing changed, a described gap stays open."""
    stay = {} if landed else {each: gap for each, gap in left.items() if gap.is_described}
    return {**stay, **gaps}


def unseen(left: Gaps, answer: AuditAnswer) -> dict[PhaseRequirement, Gap]:
    """Return the gaps as open, because no agent looked at their fixes."""
    why = f"; its fix was not looked at: {answer.problem}"
    return {
        each: gap._replace(
            detail=gap.detail.model_copy(update={"gap_description": f"{gap.detail.gap_description}{why}"})
        )
        for each, gap in left.items()
    }


def _gap_of(wanted: PhaseRequirement, answer: AuditAnswer, is_shown: Callable[[str], bool]) -> Gap | None:
    if answer.returned is None:
        return _open(wanted, f"not checked: {answer.problem}")
    entries = [each for each in _checked(answer, wanted.phase) if _same(each.requirement_id, wanted.requirement)]
    if not entries:
        return _open(wanted, "the audit does not say whether it is met")
    for entry in entries:
        if entry.status is AuditStatus.GAP:
            return _described(wanted, entry, answer.returned)
    for entry in entries:
        if not is_shown(entry.file_line_evidence):
            return _open(wanted, f"it is called met, but no line of a file shows it: {entry.file_line_evidence}")
    return None


def _described(wanted: PhaseRequirement, entry: AuditedRequirement, returned: SelfAuditReturn) -> Gap:
    missing, complexity = entry.gap_description, entry.fix_complexity
    assert missing is not None  # the contract of a gap requires both
    assert complexity is not None
    advice = next(_advice(wanted, returned), missing)
    return Gap(_detail(wanted, missing, complexity, advice), is_described=True)


def _advice(wanted: PhaseRequirement, returned: SelfAuditReturn) -> Iterator[str]:
    for each in returned.aggregate.gap_details:
        if each.phase_id == wanted.phase and _same(each.requirement_id, wanted.requirement):
            yield each.suggested_fix


def _open(wanted: PhaseRequirement, why: str) -> Gap:
    return Gap(_detail(wanted, why, FixComplexity.LARGE, why), is_described=False)


def _detail(wanted: PhaseRequirement, missing: str, complexity: FixComplexity, advice: str) -> GapDetail:
    return GapDetail(
        requirement_id=wanted.requirement,
        phase_id=wanted.phase,
        gap_description=missing,
        fix_complexity=complexity,
        suggested_fix=advice,
    )


def _checked(answer: AuditAnswer, phase: str) -> tuple[AuditedRequirement, ...]:
    results = () if answer.returned is None else answer.returned.audit_results
    return tuple(each for result in results if result.phase_id == phase for each in result.requirements_checked)


def _same(one: str, other: str) -> bool:
    return one.strip().casefold() == other.strip().casefold()


AUDIT, ANSWER, FIX = "self-audit", "self-audit-answer", "self-audit-fix"
CYCLES = 2


class Auditor(Protocol):
    """Calls the agent that audits."""

    async def __call__(self, number: int, phases: tuple[str, ...]) -> SelfAuditReturn | str:
        """Return the agent's answer, or why there is none.

        `number` counts the answers of a run; the same number gives the same answer.
        """
        ...


class Fixer(Protocol):
    """Closes a gap."""

    async def __call__(self, number: int, gap: GapDetail) -> str | None:
        """Return the commit of the fix, or None if there is none.

        `number` counts the fixes of a run; the same number gives the same commit.
        """
        ...


class GapFix(Contract):
    """The result of a fix."""

    commit: Commit | None


class AuditBegun(Contract):
    """Records that the audit of these phases started."""

    phases: tuple[PhaseId, ...]


class SelfAudit:
    """The audit of the phases that a run completed; there is one audit for the same phases."""

    def __init__(
        self,
        log: AutopilotLog,
        auditor: Auditor,
        fix: Fixer,
        phases: tuple[str, ...],
        *,
        is_shown: Callable[[str], bool] = has_place,
    ) -> None:
        """`is_shown` says whether evidence names a place; a caller with the files can check that it exists."""
        strangers = [phase for phase in phases if phase not in log.order().phases]
        if strangers or not phases:
            raise UsageError(
                f"{', '.join(strangers) or 'no phase'} cannot be audited: not a phase of {log.run_id}",
                next_step="audit phases of the run",
            )
        self._log, self._auditor, self._fix, self._is_shown = log, auditor, fix, is_shown
        self._phases = phases
        self._scope = "-".join(phases)

    async def run(self) -> AuditOutcome:
        """Look, fix and look again; the outcome is recorded once."""
        known = await run_blocking(self._log.kept, f"{AUDIT}:{self._scope}", AuditOutcome)
        if known is not None:
            return known
        await run_blocking(self._begin)
        answer = await self._look(1, {}, {}, {})
        wanted = wanted_of(self._log.order().roadmap, self._phases, answer)
        left = gaps_of(wanted, answer, self._is_shown)
        found = _described_gaps(left)
        commits: list[str] = []
        cycles = 0
        while left and answer.returned is not None and cycles < CYCLES:
            cycles += 1
            landed = await self._fix_all(cycles, left)
            if not landed and found.keys() >= left.keys():
                break  # nothing changed since the last look
            commits += landed.values()
            answer = await self._look(cycles + 1, left, found, landed, wanted)
            if answer.returned is None:
                left = unseen(left, answer)
            else:
                left = still_open(left, gaps_of(wanted, answer, self._is_shown), landed=bool(landed))
            found = {**_described_gaps(left), **found}
        outcome = _outcome(wanted, found, left, cycles, commits)
        return await run_blocking(self._end, outcome, {each: gap for each, gap in left.items() if each not in found})

    def _begin(self) -> None:
        def events(now: str) -> Iterator[LoggedEvent]:
            spec = self._log.order().specs[0].path
            yield LoggedEvent(new_event(SelfAuditStarted, now, phases_to_audit=self._phases, spec_path=spec))

        key = f"{AUDIT}:{self._scope}:begun"
        self._log.keep(key, f"{AUDIT}-begun", self._scope, AuditBegun(phases=self._phases), events)

    def _end(self, outcome: AuditOutcome, untold: Gaps) -> AuditOutcome:
        def events(now: str) -> Iterator[LoggedEvent]:
            for each, gap in untold.items():
                yield _gap_found(now, each, gap)
            said = outcome.model_dump(exclude={"remaining_gap_details", "fix_commits"})
            yield LoggedEvent(new_event(SelfAuditCompleted, now, **said))

        return self._log.keep(f"{AUDIT}:{self._scope}", AUDIT, self._scope, outcome, events)

    async def _look(
        self,
        look: int,
        left: Gaps,
        found: Gaps,
        landed: Mapping[PhaseRequirement, str],
        wanted: tuple[PhaseRequirement, ...] | None = None,
    ) -> AuditAnswer:
        """Call the agent, and report which gaps are new and which are closed."""
        key = f"{ANSWER}:{self._scope}:{look}"
        known = await run_blocking(self._log.kept, key, AuditAnswer)
        if known is not None:
            return known
        number = len(await run_blocking(self._log.all_kept, ANSWER, AuditAnswer)) + 1
        said = await self._auditor(number, self._phases)
        answer = (
            AuditAnswer(returned=said)
            if not isinstance(said, str)
            else AuditAnswer(problem=said.strip() or "it says nothing")
        )

        def events(now: str) -> Iterator[LoggedEvent]:
            if answer.returned is None:
                return
            requirements = wanted_of(self._log.order().roadmap, self._phases, answer) if wanted is None else wanted
            gaps = still_open(left, gaps_of(requirements, answer, self._is_shown), landed=bool(landed))
            for each in _described_gaps(left):
                if each not in gaps:
                    # without a fix of its own, the fix of another gap closed it
                    yield _gap_closed(now, each, landed.get(each, [*landed.values()][-1]))
            for each, gap in _described_gaps(gaps).items():
                if each not in found:
                    yield _gap_found(now, each, gap)

        return await run_blocking(self._log.keep, key, ANSWER, self._scope, answer, events)

    async def _fix_all(self, cycle: int, left: Gaps) -> dict[PhaseRequirement, str]:
        """Fix each described gap, one after the other; return the commits."""
        landed = {}
        for place, (wanted, gap) in enumerate(_described_gaps(left).items(), start=1):
            key = f"{FIX}:{self._scope}:{cycle}:{place}"
            fixed = await run_blocking(self._log.kept, key, GapFix)
            if fixed is None:
                number = len(await run_blocking(self._log.all_kept, FIX, GapFix)) + 1
                commit = await self._fix(number, gap.detail)
                fixed = await run_blocking(self._log.keep, key, FIX, wanted.requirement, GapFix(commit=commit))
            if fixed.commit is not None:
                landed[wanted] = fixed.commit
        return landed


def _described_gaps(gaps: Gaps) -> dict[PhaseRequirement, Gap]:
    return {each: gap for each, gap in gaps.items() if gap.is_described}


def _gap_found(now: str, wanted: PhaseRequirement, gap: Gap) -> LoggedEvent:
    said = gap.detail.model_dump(include={"requirement_id", "phase_id", "gap_description", "fix_complexity"})
    return LoggedEvent(new_event(SelfAuditGapFound, now, phase=wanted.phase, **said))


def _gap_closed(now: str, wanted: PhaseRequirement, commit: str) -> LoggedEvent:
    return LoggedEvent(
        new_event(
            SelfAuditGapFixed,
            now,
            phase=wanted.phase,
            requirement_id=wanted.requirement,
            phase_id=wanted.phase,
            fix_commit=commit,
            re_verified=True,
        )
    )


def _outcome(
    wanted: tuple[PhaseRequirement, ...], found: Gaps, left: Gaps, cycles: int, commits: list[str]
) -> AuditOutcome:
    """Return the numbers; a gap is what was described as one, or is open at the end."""
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


RunGraph = Callable[[int], Awaitable[GraphEnd]]


async def audit_run(context: AutopilotContext, run_graph: RunGraph) -> AuditOutcome | None:
    """Audit the completed phases of a run; None if the audit is off or no phase is completed."""
    state = (await run_blocking(context.log.state)).state
    phases = tuple(
        phase
        for phase in context.order.phases
        if phase in state.phases and state.phases[phase].status is PhaseStatus.COMPLETED
    )
    if not phases or not context.order.limits.audit:
        return None

    async def look(number: int, phases: tuple[str, ...]) -> SelfAuditReturn | str:
        about = [context.phase(phase) for phase in phases]
        brief = context.briefs.self_audit(number, about, await run_blocking(_locked_specs, context))
        done = await context.agent_caller.ask_at(
            brief, DispatchPosition("self-audit", dispatch_count=number), await run_blocking(context.tip)
        )
        found = answer(done, SelfAuditReturn)
        return found.first_line if isinstance(found, StepFailureCause) else found

    async def fix(number: int, gap: GapDetail) -> str | None:
        node = TaskNode(id=f"audit-{number}", role=Role.EXECUTOR, gap=gap, writes=context.briefs.anywhere())
        graph = await run_blocking(
            begin_graph, context.log, None, f"audit-{number}", (node,), await run_blocking(context.tip)
        )
        end = await run_graph(graph)
        if not end.completed:
            return None
        attempt = (await run_blocking(graph_of, context.log, graph)).attempt
        return await run_blocking(commit_of, context.log, node.id, attempt)

    return await SelfAudit(context.log, look, fix, phases).run()


def _locked_specs(context: AutopilotContext) -> dict[str, str]:
    """Return the texts of the specifications; preflight guarantees that they are as locked."""
    return {lock.path: context.files.get(lock.path).decode(errors="replace") for lock in context.order.specs}
