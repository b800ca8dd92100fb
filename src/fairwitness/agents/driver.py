"""Drives one dispatch: opens a session, sends the prompt, validates the answer, retries once, and returns the outcome.

The driver trusts neither the backend nor the agent: it owns the wall clock and decides whether an answer is valid. It
always leaves the session, and leaving it ends everything that the session started. The time that a dispatch waits for
its provider does not count, and a fault of the provider is not taken for the agent's.
"""

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass
from typing import Any

from fairwitness.agents.answer import ReadAnswer, read_answer
from fairwitness.agents.base import AgentJob, AgentTurn, Backend, Session
from fairwitness.agents.prompt_text import retry_prompt
from fairwitness.contracts.agents.dispatch import DispatchOutcome, Kind, OutcomeStatus, Stop, Usage
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.errors import FairWitnessError, NotReady, ProviderAway, UsageError, is_machine_fault
from fairwitness.kit.redaction import redact_forms, redact_values
from fairwitness.kit.text import visible, visible_lines
from fairwitness.rules.provider_faults import FaultAction, ModelTrouble, ProviderFault

CANCEL_S = 5.0
"""Seconds that a session has to stop after `cancel`."""
REAP_S = 30.0
"""Seconds that it then has to end all its processes."""
ASKED_AT_MOST = 2
_NOTHING = ReadAnswer(None, ())
_KEPT = 64_000
_LISTED = 20
"""Problems that the agent is shown and the outcome keeps, at most."""


class DispatchCut:
    """A signal from the gateway that ends a dispatch; it may be given from any thread."""

    def __init__(self) -> None:
        self.reason = ""
        """Why the budget is spent."""
        self.away: ProviderAway | None = None
        """Why the provider cannot be used: the dispatch has not failed, and the run is interrupted."""
        self.trouble: ModelTrouble | None = None
        """A fault of the provider that passes, at which the agent gave up: the dispatch is to be repeated."""
        self.made = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def over_budget(self, reason: str) -> None:
        """End the dispatch because its budget is spent; only the first reason is kept."""
        self.reason = self.reason or reason
        self._loop.call_soon_threadsafe(self.made.set)

    def interrupt(self, error: ProviderAway) -> None:
        """End the dispatch because of its provider; only the first error is kept."""
        self.away = self.away or error
        self._loop.call_soon_threadsafe(self.made.set)


@dataclass(slots=True)
class _Conversation:
    """The state of the conversation."""

    cut: DispatchCut | None = None
    session: Session | None = None
    asked: int = 0
    turn: AgentTurn | None = None
    read: ReadAnswer = _NOTHING


async def drive(
    backend: Backend, job: AgentJob, *, stop: asyncio.Event | None = None, cut: DispatchCut | None = None
) -> DispatchOutcome:
    """Run a dispatch and return its outcome; `stop` and `cut` end it early. A failing agent or model never raises."""
    talk = _Conversation(cut=cut)
    talking = asyncio.ensure_future(_converse(backend, job, talk))
    events = [event for event in (stop, cut.made if cut is not None else None) if event is not None]
    ends = {asyncio.ensure_future(event.wait()) for event in events}
    try:
        await _first_of({talking, *ends}, job)
        if cut is not None and cut.reason:
            early: _Ending = (OutcomeStatus.OVER_BUDGET, None, (visible(cut.reason),))
        elif cut is not None and cut.away is not None:
            early = (OutcomeStatus.CANCELLED, None, (visible(cut.away.what),))
        elif talking.done():
            return _outcome(job, talk, talking.result())
        elif stop is not None and stop.is_set():
            early = (OutcomeStatus.CANCELLED, None, ("it was cancelled",))
        else:
            problem = f"it did not end within {job.limits.wall_s:g} s"
            early = (OutcomeStatus.TIMED_OUT, ErrorCause.TIMEOUT, (problem,))
        job.report(Kind.NOTE, early[2][0])
        await _end(talk, talking)
        return _outcome(job, talk, early)
    finally:
        for end in ends:
            end.cancel()
        if not talking.done():
            await asyncio.shield(_end(talk, talking))


async def _first_of(awaited: set[asyncio.Future[Any]], job: AgentJob) -> None:
    """Wait for the first of them, or for the end of the dispatch's time."""
    while (left := job.began + job.limits.wall_s + job.waited() - time.monotonic()) > 0:
        done, _ = await asyncio.wait(awaited, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if done:
            return


_Ending = tuple[OutcomeStatus, ErrorCause | None, tuple[str, ...]]


async def _converse(backend: Backend, job: AgentJob, talk: _Conversation) -> _Ending:
    try:
        async with backend.open(job) as session:
            talk.session = session
            return await _ask(session, job, talk)
    except UsageError as error:  # the dispatch itself is not allowed
        return OutcomeStatus.REFUSED, ErrorCause.PERMISSION_DENIED, (_said(error),)
    except NotReady as error:
        return OutcomeStatus.AGENT_ERROR, ErrorCause.NOT_FOUND, (_said(error),)
    except Exception as error:  # any failure of a backend becomes an outcome that names it
        if is_machine_fault(error):
            raise  # no fault of the agent: the call is repeated when the machine is well
        problem = visible(f"{backend.name} failed: {type(error).__name__}: {error}")[:_KEPT]
        return OutcomeStatus.AGENT_ERROR, ErrorCause.AGENT_ERROR, (problem,)


async def _ask(session: Session, job: AgentJob, talk: _Conversation) -> _Ending:
    prompt = redact_forms(job.prompt)
    while True:
        job.report(Kind.PROMPT, prompt)
        talk.asked += 1
        turn = talk.turn = await session.ask(prompt)
        trouble = job.trouble()
        if turn.stop is not Stop.DONE:
            is_named = trouble is not None and turn.stop in (Stop.FAILED, Stop.REFUSED)
            return _by_model(trouble, talk) if trouble is not None and is_named else _not_done(turn)
        brief = job.brief
        talk.read = read_answer(turn.text, turn.submitted, job.form.name, brief.known, job.spec.statuses)
        if talk.read.document is not None:  # all problems are told at once
            talk.read = talk.read._replace(problems=(*talk.read.problems, *await job.check(talk.read.document)))
        if not talk.read.problems:
            return OutcomeStatus.OK, None, ()
        if trouble is not None:
            return _by_model(trouble, talk)  # the agent ended its turn because its model failed
        if talk.asked >= ASKED_AT_MOST:
            return OutcomeStatus.INVALID_ANSWER, ErrorCause.SCHEMA_VIOLATION, talk.read.problems[:_LISTED]
        prompt = redact_forms(retry_prompt(talk.read.problems[:_LISTED], submits=turn.submitted is not None))


def _by_model(trouble: ModelTrouble, talk: _Conversation) -> _Ending:
    """Return the end of a dispatch whose agent got no answer from its model."""
    problem = visible(f"its model failed: {trouble.text}")[:_KEPT]
    if trouble.meaning.action is FaultAction.FAIL or talk.cut is None:
        refused = trouble.fault is ProviderFault.REFUSED
        status = OutcomeStatus.REFUSED if refused else OutcomeStatus.AGENT_ERROR
        more = f"; {trouble.meaning.next_step}" if trouble.meaning.next_step else ""
        return status, trouble.meaning.cause, (f"{problem}{more}",)
    talk.cut.trouble = trouble
    return OutcomeStatus.CANCELLED, None, (problem,)


def _not_done(turn: AgentTurn) -> _Ending:
    said = visible(turn.error)[:_KEPT]
    match turn.stop:
        case Stop.LIMIT:
            return OutcomeStatus.OVER_BUDGET, turn.cause, (said or "a limit of turns, tokens or money is reached",)
        case Stop.REFUSED:
            return OutcomeStatus.REFUSED, turn.cause or ErrorCause.AGENT_ERROR, (said or "it would not go on",)
        case Stop.CANCELLED:
            cause = turn.cause or ErrorCause.AGENT_ERROR
            return OutcomeStatus.AGENT_ERROR, cause, (said or "it cancelled the turn by itself",)
        case _:
            cause = turn.cause or ErrorCause.AGENT_ERROR
            return OutcomeStatus.AGENT_ERROR, cause, (said or "it failed without a word",)


async def _end(talk: _Conversation, talking: "asyncio.Future[_Ending]") -> None:
    """Cancel the session, then the task that runs it; its context manager ends what it started."""
    if talk.session is not None:
        with contextlib.suppress(Exception):
            await asyncio.wait_for(talk.session.cancel(), CANCEL_S)
    talking.cancel()
    await asyncio.wait({talking}, timeout=REAP_S)
    if talking.done() and not talking.cancelled():
        talking.exception()  # mark it as retrieved; it no longer matters


def _outcome(job: AgentJob, talk: _Conversation, ending: _Ending) -> DispatchOutcome:
    status, cause, problems = ending
    turn = talk.turn
    return DispatchOutcome(
        status=status,
        answer=talk.read.value if status is OutcomeStatus.OK else None,
        raw_text=visible_lines(_words(turn, status))[-_KEPT:] if turn is not None else "",
        problems=tuple(problem or "nothing was said" for problem in problems),
        asked=talk.asked,
        usage=turn.usage if turn is not None else Usage(),
        denials=job.tools.denials,
        cause=cause,
        model=turn.model if turn is not None else None,
        duration_ms=max(0, int((time.monotonic() - job.began - job.waited()) * 1000)),
    )


def _words(turn: AgentTurn, status: OutcomeStatus) -> str:
    """Return the last text of an agent, with the answer that it submitted if that was not accepted."""
    if turn.submitted is None or status is OutcomeStatus.OK:
        return turn.text
    try:
        submitted = json.dumps(redact_values(turn.submitted), ensure_ascii=False, indent=1)
    except RecursionError:  # nested too deep to be shown; the problem says so
        return turn.text
    return f"{turn.text}\n\n{submitted}".strip()


def _said(error: FairWitnessError) -> str:
    return visible(f"{error.what} ({error.next_step})" if error.next_step else error.what)
