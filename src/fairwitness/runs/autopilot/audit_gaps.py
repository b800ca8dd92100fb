"""What a self-audit's answer comes to, counted by the harness: which requirements are met, and which are gaps.

The answer is held against the roadmap: a requirement that it leaves out, or that it passes without naming a line of a
file, is open. Such a gap is nobody's to fix, since nobody said what is missing; it is looked at again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from fairwitness.contracts.autopilot.audit import AuditedRequirement, AuditStatus, GapDetail, SelfAuditReturn
from fairwitness.contracts.autopilot.roadmap import Roadmap
from fairwitness.contracts.autopilot.words import FixComplexity
from fairwitness.contracts.common.base import Contract, Maybe, Text

UNNAMED = "self-audit"
"""Stands for the requirements where the roadmap names none and no agent looked."""


class Answer(Contract):
    """What was heard from the agent when it was asked: what it returned, or why there is nothing."""

    returned: Maybe[SelfAuditReturn] = None
    problem: Maybe[Text] = None


class Wanted(NamedTuple):
    """A requirement, and the phase that was to meet it."""

    phase: str
    requirement: str


class Gap(NamedTuple):
    """What is missing of a requirement."""

    detail: GapDetail
    is_described: bool
    """Whether the agent said what is missing; otherwise it only did not show that nothing is."""


Gaps = Mapping[Wanted, Gap]


def wanted_of(roadmap: Roadmap, phases: Iterable[str], first: Answer) -> tuple[Wanted, ...]:
    """The requirements of the phases: what the roadmap lists, and for a phase without a list what was looked at."""
    listed = {phase.id: [each.id for each in phase.requirements] for phase in roadmap.phases}
    asked = tuple(phases)
    wanted = []
    for phase in asked:
        names = listed.get(phase) or [each.requirement_id for each in _checked(first, phase)]
        wanted += [Wanted(phase, name) for name in dict.fromkeys(names)]
    if not wanted and first.returned is None:
        wanted.append(Wanted(asked[0], UNNAMED))  # what nobody looked at is not met
    return tuple(wanted)


def gaps_of(wanted: Iterable[Wanted], answer: Answer, is_shown: Callable[[str], bool]) -> dict[Wanted, Gap]:
    """The requirements that are not met, or not shown to be."""
    found = ((each, _gap_of(each, answer, is_shown)) for each in wanted)
    return {each: gap for each, gap in found if gap is not None}


def still_open(left: Gaps, gaps: Gaps, *, landed: bool) -> dict[Wanted, Gap]:
    """What is open after another look; where nothing was changed, a gap that was described stays one."""
    stay = {} if landed else {each: gap for each, gap in left.items() if gap.is_described}
    return {**stay, **gaps}


def unseen(left: Gaps, answer: Answer) -> dict[Wanted, Gap]:
    """Gaps whose fixes nobody looked at: they are open."""
    why = f"; its fix was not looked at: {answer.problem}"
    return {
        each: gap._replace(
            detail=gap.detail.model_copy(update={"gap_description": f"{gap.detail.gap_description}{why}"})
        )
        for each, gap in left.items()
    }


def _gap_of(wanted: Wanted, answer: Answer, is_shown: Callable[[str], bool]) -> Gap | None:
    if answer.returned is None:
        return _open(wanted, f"nobody looked: {answer.problem}")
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


def _described(wanted: Wanted, entry: AuditedRequirement, returned: SelfAuditReturn) -> Gap:
    missing, complexity = entry.gap_description, entry.fix_complexity
    assert missing is not None  # as the contract of a gap says
    assert complexity is not None
    advice = next(_advice(wanted, returned), missing)
    return Gap(_detail(wanted, missing, complexity, advice), is_described=True)


def _advice(wanted: Wanted, returned: SelfAuditReturn) -> Iterator[str]:
    for each in returned.aggregate.gap_details:
        if each.phase_id == wanted.phase and _same(each.requirement_id, wanted.requirement):
            yield each.suggested_fix


def _open(wanted: Wanted, why: str) -> Gap:
    return Gap(_detail(wanted, why, FixComplexity.LARGE, why), is_described=False)


def _detail(wanted: Wanted, missing: str, complexity: FixComplexity, advice: str) -> GapDetail:
    return GapDetail(
        requirement_id=wanted.requirement,
        phase_id=wanted.phase,
        gap_description=missing,
        fix_complexity=complexity,
        suggested_fix=advice,
    )


def _checked(answer: Answer, phase: str) -> tuple[AuditedRequirement, ...]:
    results = () if answer.returned is None else answer.returned.audit_results
    return tuple(each for result in results if result.phase_id == phase for each in result.requirements_checked)


def _same(one: str, other: str) -> bool:
    return one.strip().casefold() == other.strip().casefold()
