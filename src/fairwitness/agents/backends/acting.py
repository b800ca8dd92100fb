"""Carries out what a model asked for: each call goes through the toolbox, is told, and is answered in order.

Models and recordings of models share it, so that a replay does and tells exactly what was done and told.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairwitness.agents.base import Job
from fairwitness.contracts.agents.dispatch import Kind

SUBMIT = "submit_result"
"""The tool that takes the answer; every other one is the toolbox's."""
SUBMIT_WORDS = "Hands in the answer. Call it once, when everything is done; the session ends with it."
UNPARSED = "unparsed_arguments"
"""Arguments that are no JSON object are kept as `{UNPARSED: the text of them}`, which fits no tool."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A tool that the model asked for."""

    id: str
    tool: str
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answered:
    """What the model is shown of one call."""

    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class Acted:
    """What came of a turn's calls."""

    answers: tuple[Answered, ...]
    """One for each call, in order: a model must be told of all of them."""
    submitted: dict[str, Any] | None
    """The answer, if it was handed in; the last one if it was handed in twice."""


async def act(job: Job, calls: Sequence[Asked]) -> Acted:
    """Carries out a turn's calls, one after the other; refused and impossible ones are answered with a text."""
    answers, submitted = [], None
    for call in calls:
        named: dict[str, Any] = {"tool": call.tool.strip() or "(nothing)", "call": call.id.strip() or None}
        job.happened(Kind.CALL, args=call.args, **named)
        answer = await _answer(job, call)
        if call.tool == SUBMIT and answer.ok:
            submitted = call.args
        answers.append(answer)
        job.happened(Kind.RESULT, answer.text, ok=answer.ok, **named)
    return Acted(tuple(answers), submitted)


async def _answer(job: Job, call: Asked) -> Answered:
    if call.tool != SUBMIT:
        result = await job.tools.call(call.tool, call.args)
        return Answered(result.ok, result.text)
    if UNPARSED in call.args:
        return Answered(False, "not taken: the arguments are not a JSON object")
    return Answered(True, "taken")
