"""CONTEXT.md: what a person decided about a phase before it was planned; it outranks what an agent would assume."""

from collections.abc import Iterator

from fairwitness.contracts.autopilot.discuss import DiscussedPhase, DiscussedQuestion
from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.common.base import Contract, Text, Texts
from fairwitness.kit.markdown import Markdown, item, items, line, page, prose, texts
from fairwitness.runs.autopilot.wording import title
from fairwitness.store.layout import autopilot


class Discussion(Contract):
    """A conversation about a phase: its bounds, what was asked and answered, and what came up beside it."""

    boundary: Text
    """What the roadmap says the phase is about."""
    talked: DiscussedPhase
    specific_ideas: Texts
    deferred_ideas: Texts
    """What belongs into other phases."""


def context_page(phase: RoadmapPhase, discussion: Discussion) -> str:
    """`CONTEXT.md`."""
    return page(_context(phase, discussion), whole=f"`{autopilot.DISCUSS_CONTEXT}`")


def _context(phase: RoadmapPhase, discussion: Discussion) -> Iterator[Markdown]:
    talked = discussion.talked
    yield title("Context", phase)
    yield Markdown(f"**Gathered:** {talked.discussed_at}")
    yield Markdown(f"**Status:** {_status(talked)}")
    yield Markdown("## Phase Boundary")
    yield prose(discussion.boundary)
    yield Markdown("## Implementation Decisions")
    if not talked.gray_areas_discussed:
        yield Markdown("No area was talked about.")
    for area in dict.fromkeys(talked.gray_areas_discussed):
        yield Markdown(f"### {line(area)}")
        answered = [question for question in talked.questions if question.area == area and question.answer is not None]
        yield items([_decision(question) for question in answered], "Nothing was decided.")
    yield Markdown("## Left to the agents")
    left = tuple(f"{question.area}: {question.question}" for question in talked.questions if question.answer is None)
    yield texts(left, "Nothing: every question was answered.")
    yield Markdown("## Specific Ideas")
    yield texts(discussion.specific_ideas, "None: any usual way will do.")
    yield Markdown("## Deferred Ideas")
    yield texts(discussion.deferred_ideas, "None: the conversation stayed within the phase.")


def _status(talked: DiscussedPhase) -> str:
    answered = sum(question.answer is not None for question in talked.questions)
    return f"ready for planning, {answered} of {len(talked.questions)} questions answered"


def _decision(question: DiscussedQuestion) -> Markdown:
    return item(Markdown(f"{line(question.question)} ({question.category.value}):"), question.answer or "")
