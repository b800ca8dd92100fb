"""Both directions of the Agent Client Protocol: our requests to an agent, and our answers to its requests."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from acp import AGENT_METHODS, CLIENT_METHODS, PROTOCOL_VERSION, RequestError
from acp.core import Connection
from acp.schema import (
    AuthenticateRequest,
    CancelNotification,
    ClientCapabilities,
    FileSystemCapabilities,
    Implementation,
    InitializeRequest,
    McpServerStdio,
    NewSessionRequest,
    PromptRequest,
    SetSessionConfigOptionSelectRequest,
    SetSessionModeRequest,
    TextContentBlock,
)
from pydantic import BaseModel

from fairwitness import __version__
from fairwitness.agents.backends.acp.files import REFUSED, Files
from fairwitness.agents.backends.acp.permissions import CANCELLED, Permissions
from fairwitness.agents.backends.acp.terminals import Terminals
from fairwitness.agents.backends.acp.updates import Updates
from fairwitness.agents.backends.acp.usage import UsageCounter
from fairwitness.agents.base import AgentJob
from fairwitness.agents.toolset.plain import PathVeil
from fairwitness.contracts.agents.profile import AgentProfile
from fairwitness.errors import FairWitnessError
from fairwitness.kit.text import visible


class ProfileMismatch(FairWitnessError):
    """The agent does not behave as its profile says, so it is not used."""


class AgentConnection:
    """Sends requests to one agent."""

    def __init__(self, connection: Connection, profile: AgentProfile) -> None:
        self._connection, self._profile = connection, profile

    async def initialize(self) -> None:
        """Announce our capabilities, and authenticate if the profile says so."""
        told = await self._ask(
            "initialize",
            InitializeRequest(
                protocol_version=PROTOCOL_VERSION,
                client_capabilities=ClientCapabilities(
                    fs=FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
                ),
                client_info=Implementation(name="fairwitness", title="Fair Witness", version=__version__),
            ),
        )
        version = told.get("protocolVersion")
        if version != PROTOCOL_VERSION:
            raise ProfileMismatch(f"it speaks version {version!r} of the protocol, and we speak {PROTOCOL_VERSION}")
        if self._profile.authenticate is not None:
            await self._ask("authenticate", AuthenticateRequest(method_id=self._profile.authenticate))

    async def new_session(self, cwd: str, meta: dict[str, Any], server: McpServerStdio | None, mode: str | None) -> str:
        """Create a session in a folder, set its mode, and return its id."""
        servers = [] if server is None else [server]
        request = NewSessionRequest(cwd=cwd, mcp_servers=[*servers], field_meta=meta or None)
        told = await self._ask("session_new", request)
        session = told.get("sessionId")
        if not isinstance(session, str) or not session:
            raise ProfileMismatch("it gave its session no id")
        if mode is not None:
            await self._set_mode(session, mode, told)
        return session

    async def _set_mode(self, session: str, mode: str, told: Mapping[str, Any]) -> None:
        """Set the session's mode; raise `ProfileMismatch` if the agent does not have it."""
        modes = _object(told.get("modes"))
        available = modes.get("availableModes")
        ids = [_object(each).get("id") for each in available] if isinstance(available, list) else []
        if mode in ids:
            if modes.get("currentModeId") != mode:
                await self._ask("session_set_mode", SetSessionModeRequest(session_id=session, mode_id=mode))
            return
        options = told.get("configOptions")
        for option in options if isinstance(options, list) else ():
            if "mode" in (_object(option).get("category"), _object(option).get("id")):
                if option.get("currentValue") != mode:
                    config = str(option.get("id"))
                    request = SetSessionConfigOptionSelectRequest(config_id=config, session_id=session, value=mode)
                    await self._ask("session_set_config_option", request)
                return
        known = ", ".join(str(each) for each in ids) or "none"
        raise ProfileMismatch(f"it has no session mode {mode!r} (it knows: {known})")

    async def prompt(self, session: str, text: str) -> Mapping[str, Any]:
        """Send a prompt and return the agent's response at the end of the turn."""
        block = TextContentBlock(type="text", text=text)
        return await self._ask("session_prompt", PromptRequest(session_id=session, prompt=[block]))

    async def cancel(self, session: str) -> None:
        """Ask the agent to stop; it may not comply."""
        params = _dumped(CancelNotification(session_id=session))
        await self._connection.send_notification(AGENT_METHODS["session_cancel"], params)

    async def _ask(self, method: str, request: BaseModel) -> Mapping[str, Any]:
        return _object(await self._connection.send_request(AGENT_METHODS[method], _dumped(request)))


def _dumped(request: BaseModel) -> dict[str, Any]:
    return request.model_dump(mode="json", by_alias=True, exclude_none=True)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


Answer = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
_PERMISSION = CLIENT_METHODS["session_request_permission"]
_UPDATE = CLIENT_METHODS["session_update"]


class Client:
    """The client's side of the protocol: answers the requests of one agent and refuses what its role may not do."""

    def __init__(self, profile: AgentProfile, job: AgentJob) -> None:
        relative = PathVeil(job.worktree).relative
        self.counted = UsageCounter(profile.usage)
        self.updates = Updates(job, self.counted)
        self.terminals = Terminals(job, relative)
        self.session_id: str | None = None
        self.is_cancelled = False
        """After this nothing is allowed."""
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
        """Answer a request or take a notification of the agent; raises only `RequestError`."""
        told = params if isinstance(params, Mapping) else {}
        if is_notification:
            self._notified(method, told)
            return None
        self.updates.flush()
        answer = self._answers.get(method)
        if answer is None:
            self.updates.note(f"refused an unknown method: {visible(method)[:100]}")
            raise RequestError.method_not_found(method[:100])
        if self.is_cancelled and method != _PERMISSION:
            raise RequestError(REFUSED, "the turn was cancelled")
        try:
            return dict(await answer(told))
        except (RequestError, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 -- any failure is a refusal
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
        except Exception as error:  # noqa: BLE001 -- an invalid update is only noted
            self.updates.note(f"an update failed: {type(error).__name__}: {visible(str(error))[:500]}")
