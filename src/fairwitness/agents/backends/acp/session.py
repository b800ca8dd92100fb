"""A conversation with an external agent in the sandbox; closing it always ends the agent's processes."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from acp import RequestError
from acp.core import Connection

from fairwitness.agents.backends.acp.agent_process import AgentProcess
from fairwitness.agents.backends.acp.answer_tool import AnswerTool
from fairwitness.agents.backends.acp.frames import Frames
from fairwitness.agents.backends.acp.protocol import AgentConnection, Client, ProfileMismatch
from fairwitness.agents.backends.acp.usage import model_of
from fairwitness.agents.base import AgentJob, AgentTurn
from fairwitness.contracts.agents.dispatch import Denial, Kind, Layer, Stop
from fairwitness.contracts.agents.profile import AgentProfile
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.sandbox import End
from fairwitness.kit.text import visible
from fairwitness.rules.provider_faults import MEANINGS, ProviderAnswer, fault_of
from fairwitness.sandbox.runner import Finished

POLITE_S = 3.0
"""Seconds that an agent has to stop after `session/cancel`."""
_CLOSE_S = 1.0
"""Seconds that it has to end after its input is closed."""
_DIED_S = 10.0
_QUIET_S = 0.1
_QUIET_MOST = 10
_OVER_BUDGET = 402
"""The gateway's status when the budget is spent, if the agent passes it on."""
_SHOWN = 500
_VIOLATIONS = 20
_STOPS = {"end_turn": Stop.DONE, "refusal": Stop.REFUSED, "cancelled": Stop.CANCELLED}
_LOG_IN = -32_000
"""The protocol's code for "log in first"."""
_ENDS = {End.SANDBOX_ERROR: ErrorCause.SANDBOX_LOST, End.TIMEOUT: ErrorCause.TIMEOUT}


class AcpSession:
    """A session (`agents.base.Session`) over the Agent Client Protocol."""

    def __init__(
        self,
        profile: AgentProfile,
        job: AgentJob,
        process: AgentProcess,
        meta: dict[str, Any],
        mode: str | None,
        hand: AnswerTool | None,
    ) -> None:
        self._profile, self._job, self._process = profile, job, process
        self._meta, self._mode, self._hand = meta, mode, hand
        self._client = Client(profile, job)
        self._frames = Frames(process.reader, process.writer, self._client.updates.note)
        self._connection = Connection(self._client.handle, self._frames)
        self._protocol = AgentConnection(self._connection, profile)
        self._asking: asyncio.Task[AgentTurn] | None = None

    async def ask(self, prompt: str) -> AgentTurn:
        """Send a prompt and return the finished turn."""
        if self._client.is_cancelled:
            return self._turn(Stop.CANCELLED)
        self._asking = asyncio.ensure_future(self._ask(prompt))
        try:
            await asyncio.wait({self._asking})
        finally:
            if not self._asking.done():  # our caller was cancelled
                self._asking.cancel()
        return self._turn(Stop.CANCELLED) if self._asking.cancelled() else self._asking.result()

    async def _ask(self, prompt: str) -> AgentTurn:
        self._client.updates.begin()
        refused = len(self._job.tools.denials)
        try:
            async with asyncio.timeout(self._profile.limits.start_s):
                session = await self._ready()
        except TimeoutError:
            return self._failed(ErrorCause.TIMEOUT, f"it was not ready within {self._profile.limits.start_s:g} s")
        except (ConnectionError, RequestError, ProfileMismatch) as error:
            return await self._broken(error)
        try:
            response = await self._protocol.prompt(session, prompt)
        except (ConnectionError, RequestError) as error:
            return await self._broken(error)
        await self._late()
        self._client.updates.flush()
        self._client.counted.answered(response)
        usage = self._client.counted.usage
        if usage.tokens is not None:
            self._job.report(Kind.USAGE, f"{usage.tokens_in} tokens in, {usage.tokens_out} out")
        return self._ended(response, was_refused=len(self._job.tools.denials) > refused)

    async def _ready(self) -> str:
        """Return the session's id; the first call initializes the agent and creates the session."""
        if self._client.session_id is None:
            await self._protocol.initialize()
            server = self._hand.server if self._hand is not None else None
            folder = str(self._job.worktree)
            self._client.session_id = await self._protocol.new_session(folder, self._meta, server, self._mode)
        return self._client.session_id

    async def _late(self) -> None:
        """Wait for the rest of a turn: some agents end it before they have sent its last text."""
        for _ in range(_QUIET_MOST):
            seen = self._frames.received
            await asyncio.sleep(_QUIET_S)
            if self._frames.received == seen:
                return

    def _ended(self, response: Mapping[str, Any], *, was_refused: bool) -> AgentTurn:
        reason = response.get("stopReason")
        stop = _STOPS.get(reason, Stop.FAILED) if isinstance(reason, str) else Stop.FAILED
        if self._client.is_cancelled:
            stop = Stop.CANCELLED
        elif stop is Stop.CANCELLED and was_refused and self._profile.quirks.turn_ends_on_refusal:
            stop = Stop.DONE  # it gave up after a refused call; the driver can still ask for its answer
        if stop is Stop.FAILED:
            return self._failed(ErrorCause.AGENT_ERROR, f"it stopped by itself: {visible(str(reason))[:_SHOWN]}")
        return self._turn(
            stop, submitted=self._hand.take_answer() if self._hand is not None else None, model=model_of(response)
        )

    async def _broken(self, error: Exception) -> AgentTurn:
        """Return the turn for a request that failed or got no answer."""
        if self._client.is_cancelled:
            return self._turn(Stop.CANCELLED)
        if isinstance(error, RequestError) and error.code == _OVER_BUDGET:
            return replace(self._turn(Stop.LIMIT), error=f"its model said: {visible(str(error))[:_SHOWN]}")
        if isinstance(error, RequestError):
            return self._failed(_cause(error), f"it failed: {visible(str(error))[:_SHOWN]}{_details(error)}")
        if isinstance(error, ProfileMismatch):
            return self._failed(ErrorCause.NOT_FOUND, error.what)
        if self._frames.broken is None:
            await asyncio.wait({self._process.finished}, timeout=_DIED_S)
        if not self._process.finished.done():
            return self._failed(ErrorCause.AGENT_ERROR, self._frames.broken or "it closed its output and lives on")
        try:
            ended = self._process.finished.result()
        except Exception as lost:  # noqa: BLE001 -- any error of the runner
            return self._failed(ErrorCause.SANDBOX_LOST, f"it was not run: {visible(str(lost))[:_SHOWN]}")
        return self._failed(_ENDS.get(ended.result.end, ErrorCause.AGENT_ERROR), self._exit_text(ended))

    def _exit_text(self, ended: Finished) -> str:
        result = ended.result
        if result.sandbox_error is not None:
            return f"the sandbox was lost: {visible(result.sandbox_error)[:_SHOWN]}"
        how = f"exit code {result.exit_code}" if result.signal is None else f"signal {result.signal}"
        if result.limit_hit is not None:
            how = f"it went beyond its limit of {result.limit_hit}"
        token = self._job.endpoint.token if self._job.endpoint is not None else ""
        said = ended.stderr.decode(errors="replace")
        lines = (said.replace(token, "[token]") if token else said).strip().splitlines()
        return f"it ended in the middle ({how}){': ' + visible(lines[-1])[:_SHOWN] if lines else ''}"

    def _turn(self, stop: Stop, *, submitted: dict[str, Any] | None = None, model: str | None = None) -> AgentTurn:
        updates = self._client.updates
        return AgentTurn(updates.last_message, stop, self._client.counted.usage, submitted=submitted, model=model)

    def _failed(self, cause: ErrorCause, error: str) -> AgentTurn:
        updates = self._client.updates
        return AgentTurn(updates.last_message, Stop.FAILED, self._client.counted.usage, cause=cause, error=error)

    async def cancel(self) -> None:
        """Ask the agent to stop, wait briefly, close its input, and kill it with everything it started."""
        self._client.is_cancelled = True
        if self._asking is not None and not self._asking.done():
            if self._client.session_id is not None and self._frames.broken is None:
                await self._ask_to_stop(self._client.session_id)
            self._asking.cancel()
        await self._client.terminals.close()
        await self._kill(0.2)

    async def _ask_to_stop(self, session: str) -> None:
        assert self._asking is not None
        with contextlib.suppress(ConnectionError, TimeoutError):
            await asyncio.wait_for(self._protocol.cancel(session), 0.5)
        await self._client.terminals.close()  # it may wait for a command
        patience = 0.1 if self._profile.quirks.ignores_cancel else POLITE_S
        await asyncio.wait({self._asking}, timeout=patience)

    async def _kill(self, patience: float) -> None:
        await self._frames.close()
        await asyncio.wait({self._process.finished}, timeout=patience)
        self._process.stop()
        await self._process.reaped()

    async def close(self) -> None:
        """End the agent and everything it started, whatever fails on the way."""
        self._client.is_cancelled = True
        try:
            await self._client.terminals.close()
        finally:
            with contextlib.suppress(Exception):
                await self._connection.close()
            await self._kill(_CLOSE_S)
            self._process.hang_up()
        self._client.updates.flush()
        self._report_violations()

    def _report_violations(self) -> None:
        if self._process.finished.exception() is not None:
            return
        for each in self._process.finished.result().result.violations[:_VIOLATIONS]:
            reason = f"{each.kind}: {each.call}{'' if each.blocked else ', which nothing stopped'}"
            denial = Denial(layer=Layer.SANDBOX, tool=self._profile.name, target=visible(each.path), reason=reason)
            self._job.tools.deny(denial)


def _details(error: RequestError) -> str:
    return f" ({visible(str(error.data))[:_SHOWN]})" if error.data else ""


def _cause(error: RequestError) -> ErrorCause:
    """Return the cause for an error code; some agents pass on the HTTP status of their model."""
    if error.code == _LOG_IN:
        return ErrorCause.PERMISSION_DENIED
    if 400 <= error.code < 600:
        return MEANINGS[fault_of(ProviderAnswer(error.code, message=str(error)))].cause
    return ErrorCause.AGENT_ERROR
