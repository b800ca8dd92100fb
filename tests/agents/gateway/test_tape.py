"""What a model said through the gateway is written down once, and said again to whoever does the same."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from agents.gateway.pass_kit import (
    GRANT,
    MODEL,
    SECRET,
    asked_of,
    body_of,
    fronted,
    passing,
    path_of,
    scripted,
    turn_in,
)
from fairwitness.agents.cassette_file import Cassette, load, name_of
from fairwitness.agents.gateway.dialects import CODECS
from fairwitness.agents.gateway.modes import (
    UNPARSED,
    FailedAnswer,
    Grant,
    ModelAnswer,
    ModelRequest,
    NoAnswer,
    RawAnswer,
    TurnAnswer,
)
from fairwitness.agents.gateway.tape import (
    Played,
    RecordMode,
    ReplayMode,
    Tape,
    header_of,
    recorded,
    replayed,
    shown_in,
)
from fairwitness.agents.redaction import Redactor
from fairwitness.contracts.agents.cassette import CassetteTurn
from fairwitness.contracts.agents.model import ApiDialect, ModelTurn, ModelUsage, ToolUse
from fairwitness.contracts.common.tools import Role
from fairwitness.testing.script_steps import CallsStep, GarbageStep, ReadStep, SayStep, Script
from fairwitness.testing.scripted_model import ScriptMode, marker

EVERY = pytest.mark.parametrize("dialect", list(ApiDialect))
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
NAME = name_of(Role.IMPLEMENTER, "task-01", 1)
PROMPT = f"Do as the script says. {marker('work', '{cwd}')}"
WORK = Script(
    name="work",
    steps=(
        ReadStep(path="{cwd}/a.py"),
        CallsStep(calls=(ReadStep(path="{cwd}/b.py"), ReadStep(path="{cwd}/c.py")), text="Two more."),
        GarbageStep(call=ReadStep(path="d.py")),
        SayStep(text="Done in {cwd}, and {root} is only a word."),
    ),
)


def _prompt(root: Path) -> str:
    return PROMPT.replace("{cwd}", str(root))


def _tape(folder: Path, root: Path) -> Tape:
    return Tape(folder, NAME, root, _prompt(root), Role.IMPLEMENTER, "task-01", MODEL)


def _recording(inner: Any, folder: Path, root: Path, *known: str) -> RecordMode:
    tape = _tape(folder, root)
    return RecordMode(inner, lambda _: tape, Redactor(known))


def _replaying(cassette: Cassette, root: Path, *, strict: bool = True) -> tuple[ReplayMode, list[str]]:
    warned: list[str] = []
    played = Played(cassette, root, _prompt(root))
    return ReplayMode(lambda _: played, strict=strict, warn=warned.append), warned


def _shown(turn: ModelTurn, root: Path) -> list[tuple[ToolUse, str]]:
    return [(call, f"content of {call.args.get('path', 'nothing')}, {root}/x") for call in turn.calls]


def _went_on(dialect: ApiDialect, body: dict[str, Any], turn: ModelTurn, shown: list[tuple[ToolUse, str]]) -> None:
    """Adds a turn and its results to a conversation, as an agent does."""
    match dialect:
        case ApiDialect.ANTHROPIC:
            said: list[Any] = [{"type": "text", "text": turn.text}] if turn.text else []
            said += [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.args} for call in turn.calls]
            results = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in shown]
            body["messages"] += [{"role": "assistant", "content": said}, {"role": "user", "content": results}]
        case ApiDialect.OPENAI_CHAT:
            calls = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.args)}}
                for call in turn.calls
            ]
            body["messages"].append({"role": "assistant", "content": turn.text or None, "tool_calls": calls})
            body["messages"] += [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in shown]
        case ApiDialect.OPENAI_RESPONSES:
            body["input"] += [{"role": "assistant", "content": turn.text}] if turn.text else []
            for call, text in shown:
                arguments = json.dumps(call.args)
                bound = {"call_id": call.id, "name": call.name, "arguments": arguments}
                body["input"].append({"type": "function_call"} | bound)
                body["input"].append({"type": "function_call_output", "call_id": call.id, "output": text})
        case ApiDialect.GEMINI:
            parts: list[Any] = [{"text": turn.text}] if turn.text else []
            parts += [{"functionCall": {"id": call.id, "name": call.name, "args": call.args}} for call in turn.calls]
            given = [
                {"functionResponse": {"id": call.id, "name": call.name, "response": {"output": text}}}
                for call, text in shown
            ]
            body["contents"] += [{"role": "model", "parts": parts}, {"role": "user", "parts": given}]


Show = Callable[[ModelTurn, Path], list[tuple[ToolUse, str]]]


async def _agent(
    client: httpx.AsyncClient, dialect: ApiDialect, root: Path, *, stream: bool, show: Show = _shown
) -> list[ModelTurn]:
    """An agent that does what it is told until it is told nothing more."""
    body = body_of(dialect, _prompt(root), stream=stream)
    turns: list[ModelTurn] = []
    while True:
        response = await client.post(path_of(dialect, stream=stream), json=body)
        assert response.status_code == 200, response.text
        turn = turn_in(dialect, response.content)
        assert turn is not None
        turns.append(turn)
        if not turn.calls:
            return turns
        _went_on(dialect, body, turn, show(turn, root))


def _abstract(turns: list[ModelTurn], root: Path) -> list[bytes]:
    """The turns without what a provider makes up: ids, and how it calls itself."""
    plain = [
        turn.model_copy(update={"model": None, "calls": tuple(c.model_copy(update={"id": "x"}) for c in turn.calls)})
        for turn in turns
    ]
    return [json.dumps(turn.plain()).replace(str(root), "{here}").encode() for turn in plain]


@pytest.mark.req("X3")
@pytest.mark.enable_socket
@EVERY
@BOTH
def test_what_was_recorded_from_a_provider_is_replayed_turn_by_turn_in_another_worktree(
    tmp_path: Path, dialect: ApiDialect, stream: bool
) -> None:
    first, second, sockets = tmp_path / "first" / "tree", tmp_path / "second-tree", tmp_path / "sockets"
    for folder in (first, second, sockets):
        folder.mkdir(mode=0o700, parents=True)

    async def record() -> list[ModelTurn]:
        async with (
            passing(scripted(WORK), dialect) as mode,
            fronted(_recording(mode, tmp_path, first), sockets) as client,
        ):
            return await _agent(client, dialect, first, stream=stream)

    async def replay(mode: ReplayMode) -> list[ModelTurn]:
        async with fronted(mode, sockets) as client:
            return await _agent(client, dialect, second, stream=stream)

    recorded_turns = asyncio.run(record())
    cassette = load(tmp_path / NAME)
    assert (cassette.header.role, cassette.header.model, len(cassette.turns)) == (Role.IMPLEMENTER, MODEL, 4)
    assert str(first) not in (tmp_path / NAME).read_text()
    mode, warned = _replaying(cassette, second)
    replayed_turns = asyncio.run(replay(mode))
    assert _abstract(replayed_turns, second) == _abstract(recorded_turns, first)
    assert recorded_turns[2].calls[0].args.keys() == {UNPARSED} or dialect in (ApiDialect.ANTHROPIC, ApiDialect.GEMINI)
    assert warned == []


def test_a_recording_of_a_replay_is_the_same_file_but_for_the_time_it_took(tmp_path: Path) -> None:
    async def play(inner: Any, folder: Path) -> list[bytes]:
        mode = _recording(inner, folder, tmp_path)
        body = body_of(ApiDialect.ANTHROPIC, _prompt(tmp_path))
        for _ in WORK.steps:
            answered = await mode.answer(asked_of(ApiDialect.ANTHROPIC, body))
            assert isinstance(answered, TurnAnswer)
            _went_on(ApiDialect.ANTHROPIC, body, answered.turn, _shown(answered.turn, tmp_path))
        lines = [json.loads(line) for line in (folder / NAME).read_text().splitlines()]
        return [json.dumps({key: value for key, value in line.items() if key != "ms"}).encode() for line in lines]

    first = asyncio.run(play(ScriptMode([WORK]), tmp_path / "first"))
    mode, _ = _replaying(load(tmp_path / "first" / NAME), tmp_path)
    assert asyncio.run(play(mode, tmp_path / "second")) == first


def _turns(*seen: str) -> Cassette:
    root = Path("/work")
    body = body_of(ApiDialect.ANTHROPIC, _prompt(root))
    lines: list[CassetteTurn] = []
    for number, text in enumerate(seen):
        asked = asked_of(ApiDialect.ANTHROPIC, body)
        call = ToolUse(id="1", name="read_file", args={"path": f"/work/{number}"})
        turn = ModelTurn(calls=(call,), usage=ModelUsage(tokens_in=1, tokens_out=1))
        lines.append(recorded(turn, number, 5, shown_in(asked, root), root, Redactor()))
        _went_on(ApiDialect.ANTHROPIC, body, replayed(lines[-1], MODEL, root), [(call, text)])
    return Cassette(header_of(_tape(root, root)), tuple(lines))


def _played(mode: ReplayMode, *shown: str, root: Path = Path("/work")) -> list[ModelAnswer]:
    """What an agent gets that is shown these results, one after the other."""

    async def play() -> list[ModelAnswer]:
        body = body_of(ApiDialect.ANTHROPIC, _prompt(root))
        answers: list[ModelAnswer] = []
        for text in (*shown, ""):
            answers.append(await mode.answer(asked_of(ApiDialect.ANTHROPIC, body)))
            if not isinstance(answers[-1], TurnAnswer):
                break
            _went_on(ApiDialect.ANTHROPIC, body, answers[-1].turn, [(answers[-1].turn.calls[0], text)])
        return answers

    return asyncio.run(play())


@pytest.mark.req("X3")
def test_a_strict_replay_stops_where_the_model_is_shown_something_else_and_names_the_turn() -> None:
    mode, warned = _replaying(_turns("one", "two", "three"), Path("/work"))
    answers = _played(mode, "one", "another", "three")
    assert [type(answer) for answer in answers] == [TurnAnswer, TurnAnswer, FailedAnswer]
    assert isinstance(answers[-1], FailedAnswer)
    assert answers[-1].message.startswith("diverged at turn 2")
    assert "another" in answers[-1].message
    assert (answers[-1].status, answers[-1].headers["x-should-retry"], answers[-1].step) == (400, "false", 2)
    assert warned == []


def test_a_lenient_replay_warns_and_goes_on() -> None:
    mode, warned = _replaying(_turns("one", "two", "three"), Path("/work"), strict=False)
    answers = _played(mode, "one", "another")
    assert [type(answer) for answer in answers] == [TurnAnswer, TurnAnswer, TurnAnswer]
    assert len(warned) == 1
    assert warned[0].startswith("diverged at turn 2")


def test_what_differs_by_machine_or_day_is_no_divergence() -> None:
    cassette = _turns("read /work/a in 0.12s", "two")
    mode, _ = _replaying(cassette, Path("/srv/other"))
    answers = _played(mode, "read /srv/other/a in 3.40s", root=Path("/srv/other"))
    assert [type(answer) for answer in answers] == [TurnAnswer, TurnAnswer]
    assert isinstance(answers[1], TurnAnswer)
    assert answers[1].turn.calls[0].args == {"path": "/srv/other/1"}


def test_a_request_that_is_sent_again_gets_the_same_turn_again() -> None:
    async def play() -> None:
        mode, _ = _replaying(_turns("one", "two"), Path("/work"))
        body = body_of(ApiDialect.ANTHROPIC, _prompt(Path("/work")))
        first = await mode.answer(asked_of(ApiDialect.ANTHROPIC, body))
        assert await mode.answer(asked_of(ApiDialect.ANTHROPIC, body)) == first
        assert isinstance(first, TurnAnswer)
        _went_on(ApiDialect.ANTHROPIC, body, first.turn, [(first.turn.calls[0], "one")])
        second = await mode.answer(asked_of(ApiDialect.ANTHROPIC, body))
        assert isinstance(second, TurnAnswer)
        assert second.step == 1

    asyncio.run(play())


def test_a_recording_that_is_over_says_so() -> None:
    mode, _ = _replaying(_turns("one"), Path("/work"))
    answers = _played(mode, "one", "two")
    assert isinstance(answers[-1], FailedAnswer)
    assert "over after 1 turns" in answers[-1].message


def test_another_prompt_is_reported_and_does_not_stop_a_replay() -> None:
    warned: list[str] = []
    played = Played(_turns("one", "two"), Path("/work"), "Other words.")
    mode = ReplayMode(lambda _: played, strict=True, warn=warned.append)
    assert [type(answer) for answer in _played(mode, "one")] == [TurnAnswer, TurnAnswer]
    assert warned == ["the prompt is another than when this was recorded"]


def test_without_a_tape_nothing_is_recorded_and_nothing_played() -> None:
    asked = asked_of(ApiDialect.ANTHROPIC, body_of(ApiDialect.ANTHROPIC, "hello"))
    modes = (
        RecordMode(ScriptMode([WORK]), lambda _: None, Redactor()),
        ReplayMode(lambda _: None, strict=True, warn=lambda _: None),
    )
    for mode in modes:
        failed = asyncio.run(mode.answer(asked))
        assert isinstance(failed, FailedAnswer)
        assert failed.status == 403


class Answers:
    """A mode that answers as it is told."""

    name = "test"

    def __init__(self, *answers: ModelAnswer) -> None:
        self._answers = iter(answers)

    async def answer(self, asked: ModelRequest) -> ModelAnswer:
        """The next."""
        return next(self._answers)


def _said(text: str, **args: Any) -> TurnAnswer:
    calls = (ToolUse(id="1", name="run", args=args),) if args else ()
    return TurnAnswer(ModelTurn(text=text, calls=calls, usage=ModelUsage(tokens_in=3, tokens_out=4)))


async def _broken() -> Any:
    yield b'data: {"type": "message_start", "message": {}}\n\n'


@pytest.mark.req("X3")
def test_secrets_are_taken_out_before_anything_is_written(tmp_path: Path) -> None:
    github = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    mode = _recording(
        Answers(_said(f"the key is {SECRET}", command=f"curl -H 'x: {github}'")), tmp_path, tmp_path, SECRET
    )
    asyncio.run(mode.answer(asked_of(ApiDialect.ANTHROPIC, body_of(ApiDialect.ANTHROPIC, "hello"))))
    written = (tmp_path / NAME).read_text()
    assert SECRET not in written
    assert github not in written
    assert load(tmp_path / NAME).turns[0].calls[0].args["command"].startswith("curl -H")


def test_a_request_that_is_sent_again_has_its_last_answer_recorded(tmp_path: Path) -> None:
    async def play() -> None:
        mode = _recording(Answers(_said("one"), _said("two"), _said("three")), tmp_path, tmp_path)
        for prompt in ("a", "b", "b"):
            await mode.answer(asked_of(ApiDialect.ANTHROPIC, body_of(ApiDialect.ANTHROPIC, prompt)))

    asyncio.run(play())
    assert [(turn.turn, turn.text) for turn in load(tmp_path / NAME).turns] == [(0, "one"), (1, "three")]


def test_only_whole_turns_of_the_conversation_are_recorded(tmp_path: Path) -> None:
    stream = {"content-type": "text/event-stream"}
    answers: tuple[ModelAnswer, ...] = (
        FailedAnswer(529, "busy"),
        NoAnswer(),
        RawAnswer(500, {}, _broken()),
        RawAnswer(200, stream, _broken()),
        TurnAnswer(ModelTurn(text="half"), is_cut=True),
        _said("a title"),
        _said("whole"),
    )

    async def play() -> None:
        mode = _recording(Answers(*answers), tmp_path, tmp_path)
        for number, answer in enumerate(answers):
            beside = isinstance(answer, TurnAnswer) and answer.turn.text == "a title"
            body = body_of(ApiDialect.ANTHROPIC, f"prompt {number}", tools=not beside)
            answered = await mode.answer(asked_of(ApiDialect.ANTHROPIC, body))
            if isinstance(answered, RawAnswer):
                assert [piece async for piece in answered.body]

    asyncio.run(play())
    assert [turn.text for turn in load(tmp_path / NAME).turns] == ["whole"]


def test_a_conversation_without_tools_is_known_by_its_prompt(tmp_path: Path) -> None:
    async def play() -> None:
        mode = _recording(Answers(_said("title"), _said("an answer")), tmp_path, tmp_path)
        for prompt in ("Name this chat.", f"<wrapped>{_prompt(tmp_path)}</wrapped>"):
            await mode.answer(asked_of(ApiDialect.ANTHROPIC, body_of(ApiDialect.ANTHROPIC, prompt, tools=False)))

    asyncio.run(play())
    cassette = load(tmp_path / NAME)
    assert [turn.text for turn in cassette.turns] == ["an answer"]
    mode, _ = _replaying(cassette, tmp_path)
    body = body_of(ApiDialect.OPENAI_CHAT, "Name this chat.", tools=False)
    title = asyncio.run(mode.answer(asked_of(ApiDialect.OPENAI_CHAT, body)))
    as_json = asyncio.run(
        mode.answer(asked_of(ApiDialect.OPENAI_CHAT, body | {"response_format": {"type": "json_object"}}))
    )
    assert isinstance(title, TurnAnswer)
    assert isinstance(as_json, TurnAnswer)
    assert (title.turn.text, as_json.turn.text) == ("OK", "{}")


def test_a_turn_of_which_nobody_said_what_it_took_is_not_one_that_took_nothing() -> None:
    root = Path("/work")
    line = recorded(ModelTurn(text="x"), 0, 1, "sha256:" + "0" * 64, root, Redactor())
    assert line.usage == (0, 0)
    assert replayed(line, MODEL, root).usage is None


@pytest.mark.parametrize("text", ["a\0b", "{root}", "{root=}", "\u2028\x85", "\ufffd", "[redacted: x]", "ü漢🟢"])
def test_any_text_can_be_recorded_and_comes_back(tmp_path: Path, text: str) -> None:
    mode = _recording(Answers(_said(text, command=text)), tmp_path, tmp_path)
    asyncio.run(mode.answer(asked_of(ApiDialect.ANTHROPIC, body_of(ApiDialect.ANTHROPIC, "hello"))))
    turn = replayed(load(tmp_path / NAME).turns[0], MODEL, tmp_path)
    assert turn.text == turn.calls[0].args["command"] == text.replace("\0", "\ufffd")


def test_what_cannot_be_written_down_is_an_error_and_no_turn(tmp_path: Path) -> None:
    asked = asked_of(ApiDialect.ANTHROPIC, body_of(ApiDialect.ANTHROPIC, "hello"))
    huge = _recording(Answers(_said("x", number=10**100)), tmp_path, tmp_path)
    failed = asyncio.run(huge.answer(asked))
    assert isinstance(failed, FailedAnswer)
    assert "recorded" in failed.message
    assert not (tmp_path / NAME).exists()
    (tmp_path / NAME).write_text("something else")
    taken = asyncio.run(_recording(Answers(_said("x")), tmp_path, tmp_path).answer(asked))
    assert isinstance(taken, FailedAnswer)
    assert (tmp_path / NAME).read_text() == "something else"


def test_a_stream_that_cannot_be_recorded_breaks_before_its_end(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("something else")
    frames = list(
        CODECS[ApiDialect.ANTHROPIC].frames(_said("words").turn, asked_of(ApiDialect.ANTHROPIC, {"model": "m"}))
    )

    async def streamed() -> Any:
        for frame in frames:
            yield frame

    async def play() -> bytes:
        raw = RawAnswer(200, {"content-type": "text/event-stream"}, streamed())
        mode = _recording(Answers(raw), tmp_path, tmp_path)
        answered = await mode.answer(
            asked_of(ApiDialect.ANTHROPIC, body_of(ApiDialect.ANTHROPIC, "hello"), stream=True)
        )
        assert isinstance(answered, RawAnswer)
        read = b""
        try:
            async for piece in answered.body:
                read += piece
        except ConnectionError:
            return read
        pytest.fail("it was read to its end")

    assert b"message_stop" not in asyncio.run(play())


def test_dispatches_do_not_share_a_position() -> None:
    async def play() -> None:
        mode, _ = _replaying(_turns("one", "two"), Path("/work"))
        body = body_of(ApiDialect.ANTHROPIC, _prompt(Path("/work")))
        for name in ("d-1", "d-2"):
            answered = await mode.answer(asked_of(ApiDialect.ANTHROPIC, body, grant=Grant("t", name)))
            assert isinstance(answered, TurnAnswer)
            assert answered.step == 0

    asyncio.run(play())


def test_a_replay_may_take_as_long_as_the_model_did() -> None:
    async def play(pace: float) -> float:
        played = Played(_turns("one"), Path("/work"), _prompt(Path("/work")))
        slow = Cassette(played.cassette.header, (played.cassette.turns[0].model_copy(update={"ms": 100}),))
        mode = ReplayMode(lambda _: Played(slow, played.root, played.prompt), strict=True, warn=print, pace=pace)
        began = asyncio.get_running_loop().time()
        await mode.answer(
            asked_of(ApiDialect.ANTHROPIC, body_of(ApiDialect.ANTHROPIC, _prompt(Path("/work"))), grant=GRANT)
        )
        return asyncio.get_running_loop().time() - began

    assert asyncio.run(play(1.0)) >= 0.1 > asyncio.run(play(0.0))
