"""The gateway as an ASGI application: it serves the paths of the four dialects and requires a token.

Needs starlette, so it is imported only where a gateway is started.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from fairwitness.agents.gateway.auth import Grants, granted, is_local, without_key, without_secrets
from fairwitness.agents.gateway.dialects import CODECS
from fairwitness.agents.gateway.dialects.base import InvalidJson, load
from fairwitness.agents.gateway.log import Log, Logged
from fairwitness.agents.gateway.modes import (
    FailedAnswer,
    Grant,
    Mode,
    ModelAnswer,
    ModelRequest,
    NoAnswer,
    RawAnswer,
    TurnAnswer,
)
from fairwitness.agents.gateway.token_estimate import BYTES_FOR_A_TOKEN
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.kit.redaction import redact_values

T = TypeVar("T")

GONE = 499
"""Never sent: the agent has closed the connection."""
_DROPPED_HEADERS = frozenset(
    {"connection", "content-length", "keep-alive", "proxy-connection", "set-cookie", "transfer-encoding", "upgrade"}
)


async def gone(receive: Receive) -> None:
    """Wait until the agent disconnects; the whole request must have been read before."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_gone(receive: Receive, work: Awaitable[T]) -> T | None:
    """Return the result of the work; None if the agent disconnected first, which cancels the work."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(gone(receive))
    first: set[asyncio.Future[Any]] = {working, leaving}
    try:
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in first - {done for done in first if done.done()}:
            task.cancel()
        await asyncio.wait(first)
    return None if working.cancelled() else working.result()


class StreamResponse(Response):
    """A streamed response; its source is closed when the agent disconnects."""

    def __init__(self, pieces: AsyncIterator[bytes], status: int, headers: Mapping[str, str]) -> None:
        super().__init__(status_code=status)
        self._pieces = pieces
        kept = {name.lower(): value for name, value in headers.items() if name.lower() not in _DROPPED_HEADERS}
        self.raw_headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in kept.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response; a stream that breaks off breaks the connection, so that it is not taken for complete."""
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            with suppress(ConnectionError):
                await unless_gone(receive, self._pump(send))
        finally:
            aclose = getattr(self._pieces, "aclose", None)
            if aclose is not None:
                await aclose()

    async def _pump(self, send: Send) -> None:
        async for piece in self._pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def in_pieces(frames: Iterable[bytes]) -> AsyncIterator[bytes]:
    """A stream of our own making; others get their turn between two pieces."""
    for frame in frames:
        yield frame
        await asyncio.sleep(0)


async def in_half(body: bytes) -> AsyncIterator[bytes]:
    """The first half of an answer, and then a broken connection."""
    yield body[: len(body) // 2]
    raise ConnectionAbortedError


LONGEST = 32 * 1024 * 1024
"""Bytes of a request; no provider takes a longer one."""
# some agents have the version in their base URL, some leave it out
_VERSIONS = ("/v1", "")
_GEMINI_VERSIONS = ("/v1beta", "/v1", "")
_logger = logging.getLogger(__name__)


class _BadRequest(Exception):
    """A request that the gateway refuses itself."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def gateway(mode: Mode, grants: Grants, *, models: Sequence[str] = (), longest: int = LONGEST) -> "Gateway":
    """Return the application for a mode; `models` are the ones that it lists."""
    return Gateway(mode, grants, models, longest)


class Gateway:
    """An ASGI application with a log."""

    def __init__(self, mode: Mode, grants: Grants, models: Sequence[str], longest: int) -> None:
        self.log = Log()
        self._mode = mode
        self._grants = grants
        self._models = tuple(models)
        self._longest = longest
        self._app = Starlette(
            routes=[
                *(Route(v + "/messages", self._messages, methods=["POST"]) for v in _VERSIONS),
                *(Route(v + "/messages/count_tokens", self._counted, methods=["POST"]) for v in _VERSIONS),
                *(Route(v + "/chat/completions", self._chat, methods=["POST"]) for v in _VERSIONS),
                *(Route(v + "/responses", self._responses, methods=["POST"]) for v in _VERSIONS),
                *(Route(v + "/models/{model}:{verb}", self._gemini, methods=["POST"]) for v in _GEMINI_VERSIONS),
                *(Route(v + "/models", self._listed) for v in _GEMINI_VERSIONS),
            ],
            exception_handlers={
                _BadRequest: _bad_request,
                HTTPException: self._unknown,
                ClientDisconnect: _left,
                Exception: _crashed,
            },
        )
        self._app.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request: refuse it without a local host name and a valid token."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "this gateway speaks plain HTTP"})
            return
        if scope["type"] == "http":
            request = Request(scope)
            if not is_local(request.headers.get("host", "")):
                await self._turned_away(request, 403, "not addressed to this machine")(scope, receive, send)
                return
            grant = granted(request.headers, request.url.query, self._grants)
            if grant is None:
                await self._turned_away(request, 401, "no token, or none that is good here")(scope, receive, send)
                return
            scope["grant"] = grant
        await self._app(scope, receive, send)

    def _turned_away(self, request: Request, status: int, message: str) -> Response:
        self.log.refused.append(f"{status} {request.method} {request.url.path}")
        return _spelled(_dialect_of(request), status, message)

    async def _unknown(self, request: Request, error: Exception) -> Response:
        self.log.unknown.append(f"{request.method} {request.url.path}")
        status = error.status_code if isinstance(error, HTTPException) else 404
        return _spelled(_dialect_of(request), status, "the gateway knows no such path")

    async def _messages(self, request: Request) -> Response:
        return await self._answer(request, ApiDialect.ANTHROPIC, "/v1/messages")

    async def _chat(self, request: Request) -> Response:
        return await self._answer(request, ApiDialect.OPENAI_CHAT, "/v1/chat/completions")

    async def _responses(self, request: Request) -> Response:
        return await self._answer(request, ApiDialect.OPENAI_RESPONSES, "/v1/responses")

    async def _gemini(self, request: Request) -> Response:
        model, verb = request.path_params["model"], request.path_params["verb"]
        if verb == "countTokens":
            return JSONResponse({"totalTokens": _estimate(await self._body(request))})
        if verb not in ("generateContent", "streamGenerateContent"):
            raise HTTPException(404)
        return await self._answer(
            request,
            ApiDialect.GEMINI,
            f"/v1beta/models/{model}:{verb}",
            model=model,
            stream=verb == "streamGenerateContent",
        )

    async def _counted(self, request: Request) -> Response:
        """Return an estimate in every mode: counting tokens is not worth a network request."""
        return JSONResponse({"input_tokens": _estimate(await self._body(request))})

    async def _listed(self, _request: Request) -> Response:
        """Return the models in one document that clients of all dialects accept: they use the same path."""
        dated = {"created": 0, "created_at": "1970-01-01T00:00:00Z"}
        fixed = {"object": "model", "type": "model", "owned_by": "fairwitness"} | dated
        found = [{"id": model, "display_name": model} | fixed for model in self._models]
        ends = {"first_id": self._models[0], "last_id": self._models[-1]} if self._models else {}
        verbs = {"supportedGenerationMethods": ["generateContent", "countTokens"]}
        named = [{"name": f"models/{model}", "displayName": model} | verbs for model in self._models]
        return JSONResponse({"object": "list", "data": found, "has_more": False, "models": named} | ends)

    async def _body(self, request: Request) -> bytes:
        if request.headers.get("content-encoding", "identity") != "identity":
            raise _BadRequest(415, "the gateway reads plain bodies only")
        said = request.headers.get("content-length", "")
        if said.isdecimal() and int(said) > self._longest:
            raise _BadRequest(413, f"a request may have {self._longest} bytes")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self._longest:
                raise _BadRequest(413, f"a request may have {self._longest} bytes")
        return bytes(body)

    async def _answer(
        self, request: Request, dialect: ApiDialect, path: str, *, model: str | None = None, stream: bool | None = None
    ) -> Response:
        raw = await self._body(request)
        asked = _read(raw, request, dialect, path, model, stream)
        answered = await unless_gone(request.receive, self._mode.answer(asked))
        self._note(asked, answered)
        match answered:
            case None:
                return Response(status_code=GONE)
            case NoAnswer():
                await gone(request.receive)
                return Response(status_code=GONE)
            case FailedAnswer():
                return _spelled(dialect, answered.status, answered.message, dict(answered.headers))
            case RawAnswer():
                return StreamResponse(answered.body, answered.status, answered.headers)
            case TurnAnswer():
                return _said(answered, asked)

    def _note(self, asked: ModelRequest, answered: ModelAnswer | None) -> None:
        self.log.requests.append(
            Logged(
                dispatch_id=asked.grant.dispatch_id,
                dialect=asked.dialect,
                path=asked.path,
                model=asked.model,
                stream=asked.stream,
                tools=tuple(offer.name for offer in asked.tools),
                size=len(asked.raw),
                status=_status(answered),
                step=answered.step if answered else None,
            )
        )


def _read(
    raw: bytes, request: Request, dialect: ApiDialect, path: str, model: str | None, stream: bool | None
) -> ModelRequest:
    try:
        body: Any = load(raw.decode())
    except (InvalidJson, UnicodeDecodeError) as error:
        raise _BadRequest(400, f"the request is not JSON: {error}") from None
    try:
        body = redact_values(body)  # the last place before a model: an agent sends what its own tools saw
    except RecursionError:
        raise _BadRequest(400, "the request is nested too deeply") from None
    if not isinstance(body, dict):
        raise _BadRequest(400, "the request is not a JSON object")
    heard = CODECS[dialect].read(body)
    name = heard.model if model is None else model
    if not name.strip():
        raise _BadRequest(400, "the request names no model")
    grant: Grant = request.scope["grant"]
    return ModelRequest(
        dialect=dialect,
        model=name,
        stream=heard.stream if stream is None else stream,
        body=body,
        raw=raw,
        path=path,
        headers=without_secrets(request.headers),
        grant=grant,
        tools=heard.tools,
        messages=heard.messages,
        max_tokens=heard.max_tokens,
        query=without_key(request.url.query),
        system=heard.system,
        wants_json=heard.wants_json,
    )


def _status(answered: ModelAnswer | None) -> int | None:
    match answered:
        case None | NoAnswer():
            return None
        case RawAnswer() | FailedAnswer():
            return answered.status
        case TurnAnswer():
            return 200


def _said(answered: TurnAnswer, asked: ModelRequest) -> Response:
    codec = CODECS[asked.dialect]
    if asked.stream:
        frames = codec.frames(answered.turn, asked)
        kind = {"content-type": codec.stream_type(asked), "cache-control": "no-cache"}
        return StreamResponse(in_half(b"".join(frames)) if answered.is_cut else in_pieces(frames), 200, kind)
    whole = JSONResponse(codec.plain(answered.turn, asked))
    return (
        StreamResponse(in_half(bytes(whole.body)), 200, {"content-type": "application/json"})
        if answered.is_cut
        else whole
    )


def _estimate(body: bytes) -> int:
    return len(body) // BYTES_FOR_A_TOKEN + 1


def _dialect_of(request: Request) -> ApiDialect:
    """Return the dialect of a client that is refused before its request was read."""
    path = request.url.path
    if path.startswith("/v1beta") or ":" in path.rpartition("/")[2] or "x-goog-api-key" in request.headers:
        return ApiDialect.GEMINI
    if "/messages" in path or "anthropic-version" in request.headers:
        return ApiDialect.ANTHROPIC
    return ApiDialect.OPENAI_RESPONSES if path.endswith("/responses") else ApiDialect.OPENAI_CHAT


def _spelled(dialect: ApiDialect, status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse(CODECS[dialect].failure(status, message), status, headers)


async def _bad_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, _BadRequest)
    return _spelled(_dialect_of(request), error.status, error.message)


async def _left(_request: Request, _error: Exception) -> Response:
    return Response(status_code=GONE)


async def _crashed(request: Request, error: Exception) -> Response:
    """Answer an internal error with 500 and log it."""
    _logger.error("the gateway failed at %s", request.url.path, exc_info=error)
    return _spelled(_dialect_of(request), 500, "the gateway itself failed")
