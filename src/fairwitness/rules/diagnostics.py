"""The diagnostic of a phase with a score below 9.0: the improvements it may name, and the result of a cycle."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum

from fairwitness.contracts.autopilot.facts import PathItem, PathProblems
from fairwitness.contracts.autopilot.phase_return import PhaseOutcome
from fairwitness.contracts.autopilot.vocabulary import ImprovementLoop, Recommendation
from fairwitness.contracts.common.base import Contract, Count, Flag, Text
from fairwitness.rules.scores import (
    PASS_TENTHS,
    UNNAMED_FILE,
    GapMove,
    PhaseGateFacts,
    PhaseGateMove,
    after_gaps,
    kept_tenths,
    path_problems,
    phase_gate,
)

VAGUE_PHRASES: tuple[str, ...] = (
    "appropriate",
    "as needed",
    "best practice",
    "best practices",
    "better",
    "cleaner",
    "could be",
    "etc",
    "generally",
    "in general",
    "more robust",
    "needs work",
    "nicer",
    "not ideal",
    "overall",
    "properly",
    "some issues",
    "somehow",
    "suboptimal",
    "various",
)
"""Phrases that ask for more without saying what is missing."""

_VAGUE = re.compile(rf"\b({'|'.join(re.escape(phrase) for phrase in VAGUE_PHRASES)})\b", re.IGNORECASE)
_CONCRETE = re.compile(r"\b(lines?|criteri(on|a)|task) *\d|[`'\"“‘][^`'\"”’]{2,}[`'\"”’]|\w_\w|\w\(\)|[a-z][A-Z]")
"""Patterns that make a vague phrase concrete: a line, a criterion, a quoted name, an identifier."""
_AMOUNT = re.compile(r"(?<![\w.])(?<!line )(?<!lines )(?<!criterion )(?<!task )\d{1,2}(?=\s+[a-z])")
"""A number that only counts: “3 tests” is no more specific than “some tests”."""
_VAGUE_DEFICIENCY = "the deficiency is vague"


def needs_diagnostic(score_tenths: int) -> bool:
    """Return True if a completed phase needs a diagnostic, regardless of the run's threshold.

    >>> needs_diagnostic(89), needs_diagnostic(90)
    (True, False)
    """
    return score_tenths < PASS_TENTHS


def item_problems(item: PathItem, paths: Collection[str]) -> PathProblems | None:
    """Return why an item is unusable, or None: its file must be one of `paths`, and its text must say more than the
    file name.

    >>> item = PathItem(file="a.py", deficiency="improve the code of a.py", impact="resolves 1 of 2 concerns")
    >>> item_problems(item, {"a.py"}).problems
    ('the deficiency is vague',)
    """
    problems = tuple(_problems(item, paths))
    return PathProblems(item=item, problems=problems) if problems else None


def _problems(item: PathItem, paths: Collection[str]) -> Iterator[str]:
    names = "|".join(re.escape(name) for name in (item.file, item.file.rsplit("/", 1)[-1]))
    plain = _AMOUNT.sub("some", re.sub(rf"(?<![\w./])({names})(?![\w/])", " ", item.deficiency))
    found = path_problems(item.model_copy(update={"deficiency": plain}))
    said = () if found is None else found.problems
    yield from (problem for problem in said if problem != UNNAMED_FILE or item.file not in paths)
    vague = _VAGUE.search(plain)
    if vague is not None and _CONCRETE.search(plain) is None and _VAGUE_DEFICIENCY not in said:
        yield f"{_VAGUE_DEFICIENCY}: “{vague.group().lower()}”"
    if item.file not in paths:
        yield "the file is neither in the project nor in the plan"


class ImprovementPaths(Contract):
    """The usable items of a diagnostic, and the refused ones with their reasons."""

    usable: tuple[PathItem, ...]
    refused: tuple[PathProblems, ...]


def usable_paths(items: Sequence[PathItem], paths: Collection[str]) -> ImprovementPaths:
    """Sort the items into usable and refused ones, without duplicates."""
    once = tuple(dict.fromkeys(items))
    told = {item: item_problems(item, paths) for item in once}
    return ImprovementPaths(
        usable=tuple(item for item in once if told[item] is None),
        refused=tuple(problems for problems in told.values() if problems is not None),
    )


def diagnostic_problems(score_tenths: int, items: Sequence[PathItem] | None, paths: Collection[str]) -> tuple[str, ...]:
    """Return all problems of a phase's diagnostic; `items` is None if the diagnostic is missing."""
    if not needs_diagnostic(score_tenths):
        return ()
    if items is None:
        return ("a score below 9.0 needs a diagnostic, and there is none",)
    if not items:
        return ("the diagnostic names no way up",)
    return tuple(
        f"{refused.item.file}: {problem}"
        for refused in usable_paths(items, paths).refused
        for problem in refused.problems
    )


class CycleResult(Contract):
    """The result of a cycle: the score kept, whether it rose, and whether the change is reverted."""

    score_tenths: Count
    gained: Flag
    revert: Flag


def after_cycle(before_tenths: int, after_tenths: int | None) -> CycleResult:
    """Return the result of a cycle: a change that lowers the score, or leaves none, is reverted; an equal score is
    kept.

    >>> after_cycle(88, 85).revert, after_cycle(88, None).revert, after_cycle(88, 88).revert
    (True, True, False)
    """
    if after_tenths is None:
        return CycleResult(score_tenths=before_tenths, gained=False, revert=True)
    return CycleResult(
        score_tenths=kept_tenths(before_tenths, after_tenths),
        gained=after_tenths > before_tenths,
        revert=after_tenths < before_tenths,
    )


class LoopMove(StrEnum):
    """What follows a cycle; three values are also fields of the phase's record."""

    REACHED = "reached"
    AGAIN = "again"
    FORCE_INCOMPLETE = "force_incomplete"
    QUALITY_EXHAUSTED = "quality_exhausted"
    GAPS_EXHAUSTED = "gaps_exhausted"
    FAILED = "failed"


class LoopFacts(Contract):
    """The state of an improvement loop over a completed phase."""

    loop: ImprovementLoop
    target_tenths: Count
    score_tenths: Count
    """The best score kept so far."""
    cycles: Count
    """Cycles run so far; for gaps, deficiencies worked on."""
    gained: Flag
    """Whether the last cycle raised the score; true before the first."""
    remaining: Count
    """Improvements or deficiencies not worked on yet."""


class LoopAnswer(Contract):
    """The next move and its reason."""

    move: LoopMove
    because: Text


_AT_THE_GATE: Mapping[PhaseGateMove, LoopMove] = {
    PhaseGateMove.PASS: LoopMove.REACHED,
    PhaseGateMove.REMEDIATE: LoopMove.AGAIN,
    PhaseGateMove.PASS_INCOMPLETE: LoopMove.FORCE_INCOMPLETE,
    PhaseGateMove.PASS_EXHAUSTED: LoopMove.QUALITY_EXHAUSTED,
    PhaseGateMove.FAIL_AND_GO_ON: LoopMove.FAILED,
}
"""The gate's moves for a completed phase that nothing waits for."""

_GAPS: Mapping[GapMove, LoopAnswer] = {
    GapMove.REACHED: LoopAnswer(move=LoopMove.REACHED, because="it reached the target"),
    GapMove.NEXT: LoopAnswer(move=LoopMove.AGAIN, because="a deficiency is left"),
    GapMove.EXHAUSTED: LoopAnswer(move=LoopMove.GAPS_EXHAUSTED, because="no iteration or no deficiency is left"),
}


def after_loop(facts: LoopFacts) -> LoopAnswer:
    """Return whether a completed phase gets another cycle; the phase gate decides, except for gaps.

    >>> gaps = ImprovementLoop.GAPS
    >>> facts = LoopFacts(loop=gaps, target_tenths=95, score_tenths=93, cycles=5, gained=True, remaining=1)
    >>> after_loop(facts).move.value
    'gaps_exhausted'
    """
    if facts.loop is ImprovementLoop.GAPS:
        return _GAPS[after_gaps(facts.score_tenths, facts.target_tenths, facts.cycles, facts.remaining)]
    answer = phase_gate(
        PhaseGateFacts(
            outcome=PhaseOutcome.COMPLETED,
            recommendation=Recommendation.PROCEED,
            score_tenths=facts.score_tenths,
            threshold_tenths=facts.target_tenths,
            cycles=facts.cycles,
            gained=facts.gained,
            quality=facts.loop is ImprovementLoop.QUALITY,
            has_dependents=False,
            complete=False,
        )
    )
    return LoopAnswer(move=_AT_THE_GATE[answer.move], because=answer.because)
