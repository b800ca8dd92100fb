"""The flags of an autopilot run: what they mean together, which conflict, and how often the run asks a person.

`scores` holds the exclusive pairs, the thresholds and the arithmetic of deferrals.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from fairwitness.contracts.autopilot.state import Meta
from fairwitness.contracts.autopilot.vocabulary import Grade, HumanWord, ImprovementLoop, PhaseStatus, RunFlag
from fairwitness.contracts.common.base import Contract, Count, Flag, Fraction
from fairwitness.contracts.common.problems import Problem, ProblemLevel
from fairwitness.rules.scores import (
    DEFERRAL_START,
    GAP_ITERATIONS,
    QUALITY_CYCLES,
    QUALITY_TENTHS,
    REMEDIATION_CYCLES,
    adjusted_limit,
    flag_conflicts,
    threshold_tenths,
    too_many_deferred,
)

CYCLES: Mapping[ImprovementLoop, int] = {
    ImprovementLoop.REMEDIATION: REMEDIATION_CYCLES,
    ImprovementLoop.QUALITY: QUALITY_CYCLES,
    ImprovementLoop.GAPS: GAP_ITERATIONS,
}
"""The maximum number of cycles of each loop."""


class Takes(StrEnum):
    """Which phases a run selects by itself."""

    UNFINISHED = "unfinished"
    FINISHED = "finished"
    BOTH = "both"
    NONE = "none"


class LoopPlan(Contract):
    """A loop with its target score and its maximum number of cycles."""

    loop: ImprovementLoop
    target_tenths: Count
    cycles: Count


class RunMode(Contract):
    """The combined effect of a run's flags."""

    takes: Takes
    threshold_tenths: Count
    """The score that a phase needs to pass its gate."""
    loops: tuple[LoopPlan, ...]
    """The loops for a phase below its target, in order: gaps continue beyond the quality target."""
    fresh: Flag
    """Whether finished phases go through the whole pipeline again (`--force`)."""
    goes_on: Flag
    """Whether the run continues after a failed phase (`--complete`)."""
    maps: Flag
    discusses: Flag
    visual: Flag


def run_mode(flags: frozenset[RunFlag]) -> RunMode:
    """Return what a run with these flags does; `flag_problems` checks whether they may be combined.

    >>> both = run_mode(frozenset({RunFlag.QUALITY, RunFlag.GAPS}))
    >>> both.threshold_tenths, [(plan.loop.value, plan.target_tenths, plan.cycles) for plan in both.loops]
    (95, [('quality', 95, 3), ('gaps', 98, 5)])
    """
    return RunMode(
        takes=_takes(flags),
        threshold_tenths=threshold_tenths(flags - {RunFlag.GAPS} if RunFlag.QUALITY in flags else flags),
        loops=tuple(
            LoopPlan(loop=loop, target_tenths=_target(loop, flags), cycles=CYCLES[loop]) for loop in _loops(flags)
        ),
        fresh=RunFlag.FORCE in flags,
        goes_on=RunFlag.COMPLETE in flags,
        maps=RunFlag.MAP in flags,
        discusses=RunFlag.DISCUSS in flags,
        visual=RunFlag.VISUAL in flags,
    )


def _takes(flags: frozenset[RunFlag]) -> Takes:
    if flags == {RunFlag.MAP}:
        return Takes.NONE
    if RunFlag.COMPLETE in flags:  # finished phases are skipped regardless of their score
        return Takes.UNFINISHED
    if RunFlag.QUALITY in flags:
        return Takes.BOTH
    return Takes.FINISHED if flags & {RunFlag.FORCE, RunFlag.GAPS} else Takes.UNFINISHED


def _loops(flags: frozenset[RunFlag]) -> tuple[ImprovementLoop, ...]:
    asked = tuple(loop for loop in (ImprovementLoop.QUALITY, ImprovementLoop.GAPS) if RunFlag(loop.value) in flags)
    if asked:
        return asked
    return () if RunFlag.LENIENT in flags else (ImprovementLoop.REMEDIATION,)


def _target(loop: ImprovementLoop, flags: frozenset[RunFlag]) -> int:
    return QUALITY_TENTHS if loop is ImprovementLoop.QUALITY else threshold_tenths(flags)


def known_flags(names: Sequence[str]) -> frozenset[RunFlag]:
    """Return the flags among some names, with or without their dashes.

    >>> known_flags(["--force", "fast"])
    frozenset({<RunFlag.FORCE: 'force'>})
    """
    bare = {name.removeprefix("--") for name in names}
    return frozenset(flag for flag in RunFlag if flag.value in bare)


def flag_problems(
    names: Sequence[str], wanted: Sequence[str], statuses: Mapping[str, PhaseStatus]
) -> tuple[Problem, ...]:
    """Return all problems of the flags and the phases named with them; a warning stops nothing."""
    return tuple(_flag_problems(names, wanted, statuses))


def _flag_problems(
    names: Sequence[str], wanted: Sequence[str], statuses: Mapping[str, PhaseStatus]
) -> Iterator[Problem]:
    where = ("flags",)
    words = {flag.value for flag in RunFlag}
    flags = known_flags(names)
    for name in dict.fromkeys(names):
        if name.removeprefix("--") not in words:
            expected = f"one of {', '.join(f'--{flag.value}' for flag in RunFlag)}"
            yield Problem(where=where, expected=expected, found=name.strip() or "nothing")
    for one, other in flag_conflicts(flags):
        expected = f"--{one.value} or --{other.value}, not both"
        yield Problem(where=where, expected=expected, found=f"--{one.value} --{other.value}")
    if RunFlag.LENIENT in flags and _loops(flags):
        yield Problem(
            where=where,
            expected="--lenient without --quality and --gaps, beside which it has no effect",
            found="--lenient",
            level=ProblemLevel.WARNING,
        )
    takes = _takes(flags)
    for phase in dict.fromkeys(wanted):
        status = statuses.get(phase)
        if status is None:
            yield Problem(where=("phases",), expected="a phase of the roadmap", found=phase.strip() or "nothing")
        elif takes is Takes.FINISHED and status is not PhaseStatus.COMPLETED:
            yield Problem(where=("phases", phase), expected="a phase that is completed", found=status.value)


class DeferralRate(Contract):
    """How often a run deferred phases to a person, and the confidence limit after their verdicts."""

    deferred: Count
    processed: Count
    rate: Fraction
    too_often: Flag
    verdicts: Count
    passed: Count
    limit: Grade
    new_limit: Grade


def deferral_rate(meta: Meta) -> DeferralRate:
    """Return the deferral rate of a run; the limit moves one step per call, so call this once after each verdict.

    The share that causes a warning and the confidence that avoids a deferral are two fields of the state.
    """
    said = [deferral.human_verdict for deferral in meta.deferral_history if deferral.human_verdict is not None]
    passed = said.count(HumanWord.PASS)
    limit = DEFERRAL_START if meta.deferral_confidence is None else meta.deferral_confidence
    deferred, processed = meta.human_deferred_count, meta.total_phases_processed
    return DeferralRate(
        deferred=deferred,
        processed=processed,
        rate=round(deferred / processed, 4) if processed else 0.0,
        too_often=too_many_deferred(deferred, processed, meta.deferral_threshold),
        verdicts=len(said),
        passed=passed,
        limit=limit,
        new_limit=adjusted_limit(limit, passed, len(said)),
    )
