"""The client's side of the protocol: answers what an agent asks of us, and refuses what it must not have."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from acp import CLIENT_METHODS, RequestError

from fairwitness.agents.backends.acp.files import REFUSED, Files
from fairwitness.agents.backends.acp.permissions import CANCELLED, Permissions
from fairwitness.agents.backends.acp.terminals import Terminals
from fairwitness.agents.backends.acp.updates import Updates
from fairwitness.agents.backends.acp.usage import Counted
from fairwitness.agents.base import Job
from fairwitness.agents.toolset.plain import Veil
from fairwitness.contracts.agents.profile import AgentProfile
from fairwitness.kit.text import visible

Answer = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
_PERMISSION = CLIENT_METHODS["session_request_permission"]
_UPDATE = CLIENT_METHODS["session_update"]


class Client:
    """Everything that one agent may ask, and the way its questions are answered."""

    def __init__(self, profile: AgentProfile, job: Job) -> None:
        relative = Veil(job.worktree).relative
        self.counted = Counted(profile.usage)
        self.updates = Updates(job, self.counted)
        self.terminals = Terminals(job, relative)
        self.session_id: str | None = None
        self.is_cancelled = False
        """From then on nothing is allowed any more."""
        self._permissions = Permissions(profile, job, self.updates, relative)
        files = Files(profile, job, relative)
        self._answers: dict[str, Answer] = {
            _PERMISSION: self._permission,
            CLIENT_METHODS["fs_read_text_file"]: files.read,
            CLIENT_METHODS["fs_write_text_file"]: files.write,
            CLIENT_METHODS["terminal_create"]: self.terminals.create,
            CLIENT_METHODS["terminal_output"]: self.terminals.output,
            CLIENT_METHODS["terminal_wait_for_exit"]: self.terminals.wait,
            CLIENT_METHODS["terminal_kill"]: self.terminals.kill,
            CLIENT_METHODS["terminal_release"]: self.terminals.release,
        }

    async def handle(self, method: str, params: Any, is_notification: bool) -> Any:
        """One request or notification of the agent; nothing but a `RequestError` is ever raised."""
        told = params if isinstance(params, Mapping) else {}
        if is_notification:
            self._notified(method, told)
            return None
        self.updates.flush()
        answer = self._answers.get(method)
        if answer is None:
            self.updates.note(f"refused, since nobody here knows {visible(method)[:100]}")
            raise RequestError.method_not_found(method[:100])
        if self.is_cancelled and method != _PERMISSION:
            raise RequestError(REFUSED, "the turn was cancelled")
        try:
            return dict(await answer(told))
        except (RequestError, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 -- whatever a question trips over, the answer is no
            self.updates.note(f"{method} failed: {type(error).__name__}: {visible(str(error))[:500]}")
            raise RequestError.internal_error() from None

    async def _permission(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        return CANCELLED if self.is_cancelled else self._permissions.decide(params)

    def _notified(self, method: str, params: Mapping[str, Any]) -> None:
        update = params.get("update")
        if method != _UPDATE or not isinstance(update, Mapping):
            self.updates.note(f"told, and not understood: {visible(method)[:100]}")
            return
        try:
            self.updates.take(update, is_ours=self.session_id in (None, params.get("sessionId")))
        except Exception as error:  # noqa: BLE001 -- an odd update is worth a note and no more
            self.updates.note(f"an update failed: {type(error).__name__}: {visible(str(error))[:500]}")
