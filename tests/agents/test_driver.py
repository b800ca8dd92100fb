"""One dispatch, driven: the clock, the one retry and the outcome are ours, whatever a backend does."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from agents.jobs import GOOD, Kept, job
from fairwitness.agents.base import AgentJob, AgentTurn, Backend, Session
from fairwitness.agents.driver import DispatchCut, drive
from fairwitness.contracts.agents.dispatch import (
    DispatchOutcome,
    EnforcementTier,
    Kind,
    OutcomeStatus,
    Probe,
    Stop,
    Usage,
    UsageSource,
)
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.errors import NotReady, UsageError

USED = Usage(source=UsageSource.AGENT, tokens_in=1000, tokens_out=50, turns=1)


def said(value: dict[str, Any] | str) -> AgentTurn:
    text = value if isinstance(value, str) else f"```json\n{json.dumps(value)}\n```"
    return AgentTurn(text=text, stop=Stop.DONE, usage=USED, model="scripted")


Reply = AgentTurn | BaseException | Callable[[], Any]


@dataclass
class Talker:
    """A backend that says what it was given to say; a reply may also raise, or wait."""

    replies: list[Reply]
    refuses: BaseException | None = None
    slow_to_cancel: bool = False
    name: str = "talker"
    prompts: list[str] = field(default_factory=list)
    cancelled: int = 0
    closed: int = 0

    def probe(self) -> Probe:
        return Probe(name=self.name, kind="cassette", found=True, tier=EnforcementTier.A)

    def open(self, job: AgentJob) -> AbstractAsyncContextManager[Session]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Session]:
        if self.refuses is not None:
            raise self.refuses
        try:
            yield self
        finally:
            self.closed += 1

    async def ask(self, prompt: str) -> AgentTurn:
        self.prompts.append(prompt)
        reply = self.replies.pop(0)
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, AgentTurn):
            return reply
        turn: AgentTurn = await reply()
        return turn

    async def cancel(self) -> None:
        self.cancelled += 1
        if self.slow_to_cancel:
            await asyncio.sleep(60)


def driven(backend: Talker, given: AgentJob, *, stop_after: float | None = None) -> DispatchOutcome:
    async def run() -> DispatchOutcome:
        checked: Backend = backend
        stop = asyncio.Event()
        if stop_after is not None:
            asyncio.get_running_loop().call_later(stop_after, stop.set)
        return await drive(checked, given, stop=stop)

    return asyncio.run(run())


@pytest.mark.req("X3")
def test_a_good_answer_is_an_ok_and_asked_for_once(tmp_path: Path) -> None:
    kept = Kept()
    backend = Talker([said(GOOD)])
    outcome = driven(backend, job(tmp_path, kept=kept))
    assert (outcome.status, outcome.answer, outcome.asked) == (OutcomeStatus.OK, GOOD, 1)
    assert (outcome.usage, outcome.model, outcome.cause) == (USED, "scripted", None)
    assert kept.texts(Kind.PROMPT) == ["Judge it."]
    assert backend.closed == 1


@pytest.mark.req("X3")
def test_a_bad_answer_is_asked_for_once_more_with_what_is_wrong(tmp_path: Path) -> None:
    backend = Talker([said({**GOOD, "concerns": []}), said(GOOD)])
    outcome = driven(backend, job(tmp_path))
    assert (outcome.status, outcome.asked) == (OutcomeStatus.OK, 2)
    assert "concerns" in backend.prompts[1]


@pytest.mark.req("X3")
def test_an_answer_that_fits_its_contract_and_cannot_be_used_is_asked_for_once_more(tmp_path: Path) -> None:
    async def objects(answer: Contract) -> tuple[str, ...]:
        return () if answer.plain()["notes"] == "mended" else ("notes: `python3 -c` cannot be run",)

    mended = {**GOOD, "notes": "mended"}
    backend = Talker([said(GOOD), said(mended)])
    outcome = driven(backend, replace(job(tmp_path), check=objects))
    assert (outcome.status, outcome.answer) == (OutcomeStatus.OK, mended)
    assert "notes: `python3 -c` cannot be run" in backend.prompts[1]
    stubborn = driven(Talker([said(GOOD), said(GOOD)]), replace(job(tmp_path), check=objects))
    assert (stubborn.status, stubborn.answer) == (OutcomeStatus.INVALID_ANSWER, None)
    assert stubborn.problems == ("notes: `python3 -c` cannot be run",)


@pytest.mark.req("X3")
def test_what_is_wrong_twice_is_an_invalid_answer_that_says_why(tmp_path: Path) -> None:
    outcome = driven(Talker([said("All tests pass."), said("They really do.")]), job(tmp_path))
    assert (outcome.status, outcome.cause) == (OutcomeStatus.INVALID_ANSWER, ErrorCause.SCHEMA_VIOLATION)
    assert outcome.answer is None
    assert outcome.problems == ("there is no JSON or YAML block in it",)
    assert outcome.raw_text == "They really do."


@pytest.mark.parametrize(
    ("turn", "status", "cause"),
    [
        (AgentTurn("", Stop.FAILED, USED, cause=ErrorCause.SERVER_ERROR, error="529"), "agent_error", "server_error"),
        (AgentTurn("", Stop.FAILED, USED), "agent_error", "agent_error"),
        (AgentTurn("", Stop.LIMIT, USED, error="no money left"), "over_budget", None),
        (AgentTurn("", Stop.REFUSED, USED), "refused", "agent_error"),
        (AgentTurn("", Stop.CANCELLED, USED), "agent_error", "agent_error"),
    ],
)
@pytest.mark.req("P12")
def test_a_turn_that_failed_is_an_outcome_with_its_cause(
    tmp_path: Path, turn: AgentTurn, status: str, cause: str | None
) -> None:
    outcome = driven(Talker([turn]), job(tmp_path))
    assert (outcome.status.value, outcome.cause) == (status, cause)
    assert outcome.problems
    assert outcome.usage == USED


@pytest.mark.parametrize(
    ("error", "status", "cause"),
    [
        (UsageError("an agent of tier D needs the sandbox"), OutcomeStatus.REFUSED, ErrorCause.PERMISSION_DENIED),
        (NotReady("goose is not installed"), OutcomeStatus.AGENT_ERROR, ErrorCause.NOT_FOUND),
        (RuntimeError("broken"), OutcomeStatus.AGENT_ERROR, ErrorCause.AGENT_ERROR),
    ],
)
@pytest.mark.req("P12")
def test_a_session_that_cannot_be_opened_is_an_outcome(
    tmp_path: Path, error: Exception, status: OutcomeStatus, cause: ErrorCause
) -> None:
    outcome = driven(Talker([], refuses=error), job(tmp_path))
    assert (outcome.status, outcome.cause, outcome.asked) == (status, cause, 0)
    assert str(error) in outcome.problems[0]


@pytest.mark.req("P12")
def test_whatever_a_backend_trips_over_is_an_outcome_that_names_it(tmp_path: Path) -> None:
    backend = Talker([ValueError("a frame \x1b[31m in red")])
    outcome = driven(backend, job(tmp_path))
    assert outcome.status is OutcomeStatus.AGENT_ERROR
    assert outcome.problems == ("talker failed: ValueError: a frame \\x1b[31m in red",)
    assert backend.closed == 1


async def never() -> AgentTurn:
    await asyncio.sleep(3600)
    raise AssertionError


@pytest.mark.req("P12")
def test_the_wall_clock_ends_a_session_that_does_not(tmp_path: Path) -> None:
    backend = Talker([never])
    outcome = driven(backend, job(tmp_path, wall_s=0.2))
    assert (outcome.status, outcome.cause) == (OutcomeStatus.TIMED_OUT, ErrorCause.TIMEOUT)
    assert (backend.cancelled, backend.closed) == (1, 1)


@pytest.mark.req("P12")
def test_a_second_answer_has_no_more_time_than_was_left(tmp_path: Path) -> None:
    backend = Talker([said("nothing"), never])
    outcome = driven(backend, job(tmp_path, wall_s=0.3))
    assert (outcome.status, outcome.asked) == (OutcomeStatus.TIMED_OUT, 2)
    assert outcome.usage == USED, "what was used before counts"


@pytest.mark.req("P12")
def test_a_stop_from_outside_cancels_and_leaves_nothing_open(tmp_path: Path) -> None:
    backend = Talker([never])
    outcome = driven(backend, job(tmp_path), stop_after=0.1)
    assert (outcome.status, outcome.cause) == (OutcomeStatus.CANCELLED, None)
    assert (backend.cancelled, backend.closed) == (1, 1)


@pytest.mark.req("P12")
def test_whoever_cancels_the_driver_itself_closes_the_session_too(tmp_path: Path) -> None:
    backend = Talker([never])

    async def run() -> None:
        driving = asyncio.create_task(drive(backend, job(tmp_path)))
        await asyncio.sleep(0.1)
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving

    asyncio.run(run())
    assert (backend.cancelled, backend.closed) == (1, 1)


@pytest.mark.req("P12")
def test_a_session_that_does_not_stop_when_asked_is_taken_down(tmp_path: Path) -> None:
    backend = Talker([never], slow_to_cancel=True)
    outcome = driven(backend, job(tmp_path, wall_s=0.1))
    assert outcome.status is OutcomeStatus.TIMED_OUT
    assert backend.closed == 1


@pytest.mark.req("P12")
def test_a_spent_budget_ends_the_dispatch_whatever_the_agent_answers(tmp_path: Path) -> None:
    async def run(reply: Reply) -> DispatchOutcome:
        cut = DispatchCut()
        asyncio.get_running_loop().call_later(0.1, cut.over_budget, "of 1000 tokens, 1000 are used")
        return await drive(Talker([reply]), job(tmp_path), cut=cut)

    async def late() -> AgentTurn:
        await asyncio.sleep(0.1)
        return said(GOOD)

    for reply in (never, late):
        outcome = asyncio.run(run(reply))
        assert (outcome.status, outcome.answer) == (OutcomeStatus.OVER_BUDGET, None)
        assert outcome.problems == ("of 1000 tokens, 1000 are used",)


@pytest.mark.req("P12")
def test_the_time_that_a_dispatch_waits_for_its_provider_is_not_its_own(tmp_path: Path) -> None:
    async def late() -> AgentTurn:
        await asyncio.sleep(0.6)
        return said(GOOD)

    made = job(tmp_path, wall_s=0.3)
    assert driven(Talker([late]), made).status is OutcomeStatus.TIMED_OUT
    made = replace(job(tmp_path, wall_s=0.3), waited=lambda: 60.0)
    outcome = driven(Talker([late]), made)
    assert (outcome.status, outcome.duration_ms) == (OutcomeStatus.OK, 0)


@pytest.mark.req("X3")
def test_what_the_rules_and_the_check_object_to_is_told_at_once_and_a_refused_submission_is_kept(
    tmp_path: Path,
) -> None:
    """The check runs although the rules object, and not where the answer has not the shape of its contract."""
    seen: list[str] = []

    async def objects(answer: Contract) -> tuple[str, ...]:
        seen.append(str(answer.plain()["recommendation"]))
        return ("notes: `make verify` cannot be run",)

    shapeless = {**GOOD, "concerns": "none"}
    backend = Talker([AgentTurn("Done.", Stop.DONE, USED, submitted=each) for each in (shapeless, GOOD)])
    outcome = driven(backend, replace(job(tmp_path), check=objects))
    assert "concerns" in backend.prompts[1]
    assert seen == [GOOD["recommendation"]]
    assert outcome.status is OutcomeStatus.INVALID_ANSWER
    assert outcome.raw_text.startswith("Done.\n\n{")
    assert f'"recommendation": "{GOOD["recommendation"]}"' in outcome.raw_text


@pytest.mark.req("X3")
def test_a_submission_that_is_nested_without_end_is_an_invalid_answer(tmp_path: Path) -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    backend = Talker([AgentTurn("Done.", Stop.DONE, USED, submitted=deep)] * 2)
    outcome = driven(backend, job(tmp_path))
    assert (outcome.status, outcome.raw_text) == (OutcomeStatus.INVALID_ANSWER, "Done.")
    assert outcome.problems == ("the submitted answer is nested deeper than 64 levels",)
