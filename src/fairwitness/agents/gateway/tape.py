"""Records the turns of a model that pass through the gateway, and plays them again to the same agent.

A tape is a cassette: one header, one line for each turn, in words of our own and not of any dialect. Requests beside
the conversation (titles, summaries, probes) are neither recorded nor played; they are known by offering no tools and
not holding the prompt.
"""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fairwitness.agents.cassette_file import LIMITS, Cassette, packed, prompt_digest, seen, summary_of_results, unpacked
from fairwitness.agents.gateway.dialects import observe
from fairwitness.agents.gateway.dialects.observer import TurnObserver
from fairwitness.agents.gateway.flow import AnswerStream, HeldEnd, StreamBroken, close
from fairwitness.agents.gateway.modes import FailedAnswer, Grant, Mode, ModelAnswer, ModelRequest, RawAnswer, TurnAnswer
from fairwitness.agents.redaction import Redactor
from fairwitness.contracts.agents.cassette import CassetteCall, CassetteHeader, CassetteTurn
from fairwitness.contracts.agents.model import ModelTurn, ModelUsage, ToolUse
from fairwitness.contracts.common.tools import Role
from fairwitness.errors import FairWitnessError, UsageError
from fairwitness.kit import json_text
from fairwitness.kit.files import append_line, create_file, revise_file

_NOT_SAID = (0, 0)
"""No turn takes no tokens at all, so this stands for a turn of which nobody said what it took."""
_FOR_GOOD = {"x-should-retry": "false"}


@dataclass(frozen=True, slots=True)
class Tape:
    """Where the turns of one dispatch are written, and what is known of it beforehand."""

    folder: Path
    name: str
    root: Path
    """The worktree, as the agent spells it."""
    prompt: str
    """What the agent is asked first."""
    role: Role
    instance: str
    model: str
    answer: str | None = None
    schema_digest: str | None = None


@dataclass(slots=True)
class _Written:
    turns: int = 0
    last: str = ""
    """The request that the last turn answers: asked once more, its new answer takes the place of the old one."""


class RecordMode:
    """Another mode, with its turns written down."""

    name = "record"

    def __init__(self, inner: Mode, tape: Callable[[Grant], Tape | None], redactor: Redactor) -> None:
        """The redactor is to know whatever secret the caller holds; others it knows by their form."""
        self._inner = inner
        self._tape = tape
        self._redactor = redactor
        self._written: dict[str, _Written] = {}

    async def answer(self, asked: ModelRequest) -> ModelAnswer:
        """The inner mode's answer; the agent reads the end of it when it is written down."""
        tape = self._tape(asked.grant)
        if tape is None:
            return FailedAnswer(403, "nobody said where this dispatch is to be recorded", _FOR_GOOD)
        if _is_aside(asked, tape.prompt):
            return await self._inner.answer(asked)
        began = time.monotonic()
        answered = await self._inner.answer(asked)
        match answered:
            case TurnAnswer(turn=turn, is_cut=False):
                try:
                    self._write(tape, asked, turn, began)
                except FairWitnessError as error:
                    return FailedAnswer(500, f"the turn could not be recorded: {error.what}", _FOR_GOOD)
            case RawAnswer(status=status) if status < 400:
                observer = observe(asked.dialect)
                pieces = self._pieces(tape, asked, answered, observer, began)
                return RawAnswer(
                    status, answered.headers, AnswerStream(pieces, lambda: close(answered.body)), answered.step
                )
            case _:
                pass
        return answered

    async def _pieces(
        self, tape: Tape, asked: ModelRequest, raw: RawAnswer, observer: TurnObserver, began: float
    ) -> AsyncIterator[bytes]:
        end = HeldEnd(raw.headers, observer)
        async for piece in raw.body:
            if not end.holds(piece):
                yield piece
        turn = observer.turn() if observer.is_complete else None
        if turn is not None:
            try:
                self._write(tape, asked, turn, began)
            except FairWitnessError as error:
                raise StreamBroken(f"the turn could not be recorded: {error.what}") from None
        for piece in end.held:
            yield piece

    def _write(self, tape: Tape, asked: ModelRequest, turn: ModelTurn, began: float) -> None:
        written = self._written.setdefault(asked.grant.dispatch_id, _Written())
        request = hashlib.sha256(asked.raw).hexdigest()
        again = written.turns > 0 and request == written.last
        number = written.turns - 1 if again else written.turns
        ms = int((time.monotonic() - began) * 1000)
        line = _line(recorded(turn, number, ms, shown_in(asked, tape.root), tape.root, self._redactor))
        if again:
            revise_file(
                tape.folder, tape.name, lambda old: _without_last(old or b"") + line + b"\n", limit=LIMITS.bytes
            )
        else:
            if not written.turns:
                create_file(tape.folder, tape.name, _line(header_of(tape)) + b"\n")
            append_line(tape.folder, tape.name, line)
            written.turns += 1
        written.last = request


@dataclass(frozen=True, slots=True)
class Played:
    """A recorded session, and what it is played to."""

    cassette: Cassette
    root: Path
    """The worktree, as the agent spells it."""
    prompt: str


@dataclass(slots=True)
class _At:
    next: int = 0
    last: str = ""


class ReplayMode:
    """Plays recorded turns: the same turn for the same request, and the next for the next."""

    name = "replay"

    def __init__(
        self,
        played: Callable[[Grant], Played | None],
        *,
        strict: bool,
        warn: Callable[[str], None],
        pace: float = 0.0,
    ) -> None:
        """`pace` 1 is as fast as the model was, 0 at once; not `strict`, a divergence only warns."""
        self._played = played
        self._strict = strict
        self._warn = warn
        self._pace = pace
        self._at: dict[str, _At] = {}

    async def answer(self, asked: ModelRequest) -> ModelAnswer:
        """The turn that was recorded here, or an error that names it."""
        played = self._played(asked.grant)
        if played is None:
            return FailedAnswer(403, "no recording belongs to this dispatch", _FOR_GOOD)
        if _is_aside(asked, played.prompt):
            nothing = ModelUsage(tokens_in=0, tokens_out=0)
            return TurnAnswer(ModelTurn(text="{}" if asked.wants_json else "OK", usage=nothing))
        at = self._at.setdefault(asked.grant.dispatch_id, _At())
        request = hashlib.sha256(asked.raw).hexdigest()
        number = at.next - 1 if at.next and request == at.last else at.next
        turns = played.cassette.turns
        if number >= len(turns):
            return FailedAnswer(
                400, f"the recording is over after {len(turns)} turns, and was asked for one more", _FOR_GOOD
            )
        if number == 0 and prompt_digest(played.prompt, played.root) != played.cassette.header.prompt:
            self._warn("the prompt is another than when this was recorded")
        turn = turns[number]
        if turn.seen != shown_in(asked, played.root):
            shown = summary_of_results(_results(asked), played.root)
            problem = f"diverged at turn {number}: the model is shown something else than was recorded ({shown})"
            if self._strict:
                return FailedAnswer(400, problem, _FOR_GOOD, step=number)
            self._warn(problem)
        at.next, at.last = number + 1, request
        if self._pace > 0:
            await asyncio.sleep(turn.ms / 1000 * self._pace)
        return TurnAnswer(replayed(turn, played.cassette.header.model, played.root), step=number)


def recorded(turn: ModelTurn, number: int, ms: int, shown: str, root: Path, redactor: Redactor) -> CassetteTurn:
    """A turn as it is written: without secrets, and without the name of this machine's worktree."""
    said, *args = redactor.redact_all(_readable(packed([turn.text, *(call.args for call in turn.calls)], root)))
    return CassetteTurn(
        turn=number,
        text=said,
        calls=tuple(CassetteCall(tool=call.name, args=each) for call, each in zip(turn.calls, args, strict=True)),
        usage=_NOT_SAID if turn.usage is None else (turn.usage.tokens_in, turn.usage.tokens_out),
        ms=ms,
        seen=shown,
    )


def replayed(turn: CassetteTurn, model: str, root: Path) -> ModelTurn:
    """A written turn as a model's again, in another worktree."""
    calls = tuple(
        ToolUse(id=f"call_{turn.turn}_{number}", name=call.tool, args=unpacked(call.args, root))
        for number, call in enumerate(turn.calls)
    )
    sent, said = turn.usage
    usage = None if turn.usage == _NOT_SAID else ModelUsage(tokens_in=sent, tokens_out=said)
    return ModelTurn(text=unpacked(turn.text, root), calls=calls, usage=usage, model=model)


def _is_aside(asked: ModelRequest, prompt: str) -> bool:
    words = prompt.strip()
    return not asked.tools and not (words and any(words in said.text for said in asked.messages if said.role == "user"))


def _results(asked: ModelRequest) -> list[tuple[bool, str]]:
    """What the model is shown of its calls since its last turn; whether they went well, a dialect does not say."""
    shown: list[tuple[bool, str]] = []
    for said in reversed(asked.messages):
        if said.role == "assistant":
            break
        shown[:0] = [(True, result.text) for result in said.results]
    return shown


def shown_in(asked: ModelRequest, root: Path) -> str:
    """The digest of that, the same on every machine and every day."""
    return seen(_results(asked), root)


def header_of(tape: Tape) -> CassetteHeader:
    """The first line of a tape."""
    return CassetteHeader(
        cassette=1,
        role=tape.role,
        instance=tape.instance,
        model=tape.model,
        prompt=prompt_digest(tape.prompt, tape.root),
        answer=tape.answer,
        schema_digest=tape.schema_digest,
    )


def _line(content: CassetteHeader | CassetteTurn) -> bytes:
    """One line of the file; what could not be read again is not written."""
    try:
        line = json_text.render_line(content.plain()).strip()
        type(content).model_validate(json_text.parse(line, LIMITS))
        return line.encode()
    except (ValueError, ValidationError, FairWitnessError):
        raise UsageError("it holds what cannot be read again", next_step="record it again") from None


def _without_last(content: bytes) -> bytes:
    return content[: content.rstrip(b"\n").rfind(b"\n") + 1]


def _readable(value: Any) -> Any:
    """The value without what no document of ours may hold."""
    match value:
        case str():
            return value.replace("\0", "�")
        case dict():
            return {_readable(key): _readable(item) for key, item in value.items()}
        case list():
            return [_readable(item) for item in value]
        case _:
            return value
