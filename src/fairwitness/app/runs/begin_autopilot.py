"""Begins autopilot runs: reads roadmap, settings, flags and range once, checks them, and records the run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from pathlib import Path

from fairwitness.app.autopilot_project import AutopilotProject, read_project, refuse_dirty, stubs
from fairwitness.app.run_records.autopilot_history import (
    autopilot_runs,
    earlier_phases,
    ended_phases,
    refuse_beside_another,
    refuse_unmerged,
)
from fairwitness.app.runs.begin_feature import RunRequest, require_agents
from fairwitness.app.settings.review import review_settings
from fairwitness.app.settings.tables import read_tables
from fairwitness.app.settings.verify import verify_settings
from fairwitness.app.state import ledger_in, state_of
from fairwitness.contracts.autopilot.events_quality import FlagMutualExclusivityError
from fairwitness.contracts.autopilot.metrics import CostEstimation
from fairwitness.contracts.autopilot.order import AutopilotOrder, AutopilotSettings, EarlierPhase
from fairwitness.contracts.autopilot.vocabulary import PhaseStatus, RunFlag
from fairwitness.contracts.common.problems import Problem, ProblemLevel
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.errors import UsageError
from fairwitness.git.identity import read_identity
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.cost import cost_warning, estimated_tokens
from fairwitness.rules.phases import ALL, NEXT, phase_order, read_range
from fairwitness.rules.run_flags import Takes, flag_problems, known_flags, run_mode
from fairwitness.rules.scores import flag_conflicts, threshold_tenths
from fairwitness.runs.autopilot.log import AutopilotLog, LoggedEvent, new_event
from fairwitness.runs.feature.setup import ready

LATER = (RunFlag.MAP, RunFlag.DISCUSS, RunFlag.VISUAL)
"""Flags that are not implemented yet."""
_LOOPS = frozenset({RunFlag.QUALITY, RunFlag.GAPS})


@dataclass(frozen=True, slots=True)
class PhasesRequest:
    """The phases and options that a person asks for."""

    phases: str
    """A range such as `3-7`, `3,5,8` or `6.1`, or `all` or `next`."""
    flags: tuple[str, ...] = ()
    cycles: int | None = None
    pause_after: int | None = None
    agents: str | None = None
    cassettes: Path | None = None


@dataclass(frozen=True, slots=True)
class BegunAutopilot:
    """A run that was recorded and not started yet."""

    run_id: str
    order: AutopilotOrder
    warnings: tuple[str, ...]


def begin_autopilot(where: Path, wanted: PhasesRequest, *, clock: Clock = system_clock) -> BegunAutopilot:
    """Record a new run, which an engine can then execute.

    The settings and the roadmap are read here once and apply to the whole run.
    """
    repository = Repository.open(where)
    ledger = ledger_in(state_of(repository), repository, clock=clock)
    try:
        flags = _flags(ledger, wanted, clock)
        hygiene = ready(repository)
        project = read_project(repository, clock, discovers=True)
        settings = read_tables(AutopilotSettings, repository.top)
        refuse_beside_another(ledger)
        known = ended_phases(ledger, repository, threshold_tenths(flags | {RunFlag.GAPS}))
        earlier = earlier_phases(known, project.roadmap)
        phases, warnings = _phases(wanted, flags, project, earlier)
        _refuse_stubs(project, phases)
        needed = {other for phase in project.roadmap.phases if phase.id in phases for other in phase.depends_on}
        refuse_unmerged(repository, known, needed | set(phases), project.roadmap.ticked)
        refuse_dirty(repository, state_of(repository))
        asked = RunRequest(request=wanted.phases, agents=wanted.agents, cassettes=wanted.cassettes)
        require_agents(repository, asked, settings.budget, Workflow.AUTOPILOT)
        verify, digest = verify_settings(repository.top)
        review = review_settings(repository.top, AutopilotSettings)
        run_id = free_run_id(lambda run: bool(ledger.head(run).links), clock)
        order = AutopilotOrder(
            roadmap=project.roadmap,
            phases=phases,
            earlier=earlier,
            flags=tuple(flag for flag in RunFlag if flag in flags),
            cycles=wanted.cycles,
            pause_after=wanted.pause_after,
            base_commit=hygiene.base,
            target=f"fairwitness/{run_id}/target",
            commands=project.commands,
            ui=project.ui,
            specs=project.specs,
            spec_paths=project.spec_paths,
            requirements=project.requirements,
            limits=settings.autopilot,
            retry=settings.policy.retry,
            budget=settings.budget,
            verify=verify,
            settings_hash=f"sha256:{digest}",
            trusted_file=review.trusted_hash,
            agents=wanted.agents,
            cassettes=None if wanted.cassettes is None else str(wanted.cassettes.absolute()),
            started_by=read_identity(repository).author,
        )
        AutopilotLog(ledger, run_id, clock=clock).create(order)
    finally:
        ledger.close()
    return BegunAutopilot(run_id, order, (*review.notes, *project.warnings, *warnings, *_dear(order)))


def _dear(order: AutopilotOrder) -> Iterator[str]:
    """Yield a warning for each phase that will probably use most of its token limit."""
    cap = order.limits.breaker.cost_cap_tokens_per_phase
    for phase in order.roadmap.phases:
        warned = cost_warning(CostEstimation(), estimated_tokens(CostEstimation(), phase.type), cap)
        if phase.id in order.phases and warned is not None:
            share = f"{warned.percent:g} % of what a phase may use"
            yield f"phase {phase.id} will take about {warned.estimated:,} tokens, {share} ({warned.cap:,})"


def free_run_id(taken: Callable[[str], bool], clock: Clock) -> str:
    """Return the current second as a run id, or the next free one."""
    moment = clock().astimezone(UTC).replace(microsecond=0)
    while taken(run_id := moment.strftime("run-%Y-%m-%d-%H%M%S")):
        moment += timedelta(seconds=1)
    return run_id


def _flags(ledger: Ledger, wanted: PhasesRequest, clock: Clock) -> frozenset[RunFlag]:
    """Return the flags; refuse conflicting ones, and record the attempt in the latest run."""
    flags = known_flags(wanted.flags)
    conflicts = flag_conflicts(flags)
    if conflicts:
        one, other = (f"--{flag.value}" for flag in conflicts[0])
        runs = autopilot_runs(ledger)
        if runs:
            log = AutopilotLog(ledger, runs[-1], clock=clock)
            log.append(LoggedEvent(new_event(FlagMutualExclusivityError, log.now(), flags=(one, other))))
        raise UsageError(f"{one} and {other} exclude each other", next_step=f"remove {one} or {other}")
    later = [flag for flag in LATER if flag in flags]
    if later:
        raise UsageError(f"--{later[0].value} is not implemented yet", next_step=f"remove --{later[0].value}")
    if wanted.cycles is not None and not flags & _LOOPS:
        raise UsageError("--cycles requires --quality or --gaps", next_step="add one of them")
    return flags


def _phases(
    wanted: PhasesRequest, flags: frozenset[RunFlag], project: AutopilotProject, earlier: dict[str, EarlierPhase]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the phases of the run in their order, and warnings."""
    roadmap = project.roadmap
    statuses = dict.fromkeys((phase.id for phase in roadmap.phases), PhaseStatus.NOT_STARTED)
    statuses |= {phase: left.status for phase, left in earlier.items()}
    finished = frozenset(phase for phase, status in statuses.items() if status is PhaseStatus.COMPLETED)
    reading = read_range(wanted.phases, roadmap, finished)
    if reading.selection is None:
        raise _refused(reading.problems, "fairwitness autopilot status shows the phases")
    chosen = reading.selection
    is_named = wanted.phases.strip().casefold() not in (ALL, NEXT)
    named = (*chosen.open, *chosen.finished) if is_named else ()
    problems = flag_problems(wanted.flags, named, statuses)
    wrong = [problem for problem in problems if problem.level is ProblemLevel.ERROR]
    if wrong:
        raise _refused(wrong, "fairwitness autopilot status shows how the phases stand")
    takes = run_mode(flags).takes
    order = phase_order(roadmap.phases)
    taken = {
        Takes.UNFINISHED: {*chosen.open, *(chosen.finished if RunFlag.COMPLETE in flags else ())},
        Takes.FINISHED: {*chosen.finished},
        Takes.BOTH: {*chosen.open, *chosen.finished},
        Takes.NONE: set(),
    }[takes]
    if not taken or (takes is Takes.UNFINISHED and not chosen.open):
        raise _nothing_left(takes)
    said = [f"{problem.found} has no effect: expected {problem.expected}" for problem in problems]
    if takes is Takes.UNFINISHED and chosen.finished:
        said.append(f"completed before, and left as they are: {', '.join(chosen.finished)}")
    return tuple(phase for phase in order if phase in taken), tuple(said)


def _nothing_left(takes: Takes) -> UsageError:
    if takes is Takes.FINISHED:
        return UsageError("none of these phases is completed yet", next_step="fairwitness autopilot next")
    return UsageError(
        "all of these phases are completed", next_step="--quality or --gaps raise their scores, --force runs them again"
    )


def _refuse_stubs(project: AutopilotProject, phases: Sequence[str]) -> None:
    found = list(stubs(project, phases))
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise UsageError(f"{found[0]}{more}", next_step="fill it in, commit it, and begin again")


def _refused(problems: Sequence[Problem], next_step: str) -> UsageError:
    return UsageError("; ".join(_spelled(problems)), next_step=next_step)


def _spelled(problems: Sequence[Problem]) -> Iterator[str]:
    for problem in problems:
        where = f"phase {problem.where[1]}: " if problem.where[0] == "phases" and len(problem.where) > 1 else ""
        yield f"{where}expected {problem.expected}, found {problem.found}"
