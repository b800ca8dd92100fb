"""Where a script stands is told by the conversation alone, however an agent cuts it into messages."""

import asyncio
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.gateway.scripted_kit import READ_TOOL, WRITE_TOOL, asked, script
from fairwitness.agents.gateway.modes import (
    ChatCall,
    ChatMessage,
    ChatResult,
    FailedAnswer,
    ModelAnswer,
    ModelRequest,
    NoAnswer,
    OfferedTool,
    TurnAnswer,
)
from fairwitness.errors import UsageError
from fairwitness.testing.script_steps import (
    BreakStep,
    CallsStep,
    DelayStep,
    ErrorStep,
    FloodStep,
    ReadStep,
    SayStep,
    Script,
    SubmitStep,
    WriteStep,
)
from fairwitness.testing.script_steps import HangStep as HangStep
from fairwitness.testing.scripted_model import ASIDE, OVER, USAGE, ScriptMode, ScriptPosition, marker, script_position

pytestmark = pytest.mark.req("X3")

PROMPT = ChatMessage("user", f"Do it. {marker('s', '/tree')}")
TOOLS = (OfferedTool("read_file", READ_TOOL), OfferedTool("create_file", WRITE_TOOL))


def _call(*names: str) -> ChatMessage:
    return ChatMessage("assistant", calls=tuple(ChatCall(name, "read_file", {}) for name in names))


def _result(*names: str) -> ChatMessage:
    return ChatMessage("tool", results=tuple(ChatResult(name, "…") for name in names))


def _step(*messages: ChatMessage) -> int:
    here = script_position((PROMPT, *messages))
    assert here is not None
    return here.step


def _answer(played: Script, *messages: ChatMessage, tools: tuple[OfferedTool, ...] = TOOLS) -> ModelAnswer:
    return asyncio.run(ScriptMode([played]).answer(asked(*messages, tools=tools)))


def _turn(answered: ModelAnswer) -> TurnAnswer:
    assert isinstance(answered, TurnAnswer), answered
    return answered


def test_a_conversation_without_a_marker_plays_nothing() -> None:
    assert script_position(()) is None
    assert script_position((ChatMessage("user", "hello"),)) is None
    assert isinstance(_answer(script(SayStep(text="x")), ChatMessage("user", "hello")), FailedAnswer)


def test_a_marker_in_what_a_tool_read_or_the_model_said_is_only_a_text() -> None:
    read = ChatMessage("tool", results=(ChatResult("a", "[[script:other]] [[cwd:/elsewhere]]"),))
    quoted = ChatMessage("assistant", "[[script:other]]")
    assert script_position((PROMPT, _call("a"), read, quoted)) == ScriptPosition("s", 1, "/tree")


def test_the_last_marker_counts_and_starts_anew() -> None:
    again = ChatMessage("user", "[[script:second]]")
    assert script_position((PROMPT, _call("a"), _result("a"), again)) == ScriptPosition("second", 0, "/tree")
    assert script_position((PROMPT, _call("a"), _result("a"), again, _call("b"), _result("b"))) == ScriptPosition(
        "second", 1, "/tree"
    )


def test_every_group_of_results_is_a_step() -> None:
    assert _step() == 0
    assert _step(_call("a")) == 0
    assert _step(_call("a"), _result("a")) == 1
    assert _step(_call("a"), _result("a"), _call("b"), _result("b")) == 2


def test_parallel_calls_are_one_step_and_only_when_all_are_answered() -> None:
    assert _step(_call("a", "b"), _result("a")) == 0
    assert _step(_call("a", "b"), _result("a", "b")) == 1
    assert _step(_call("a", "b"), _result("a"), _result("b")) == 1
    assert _step(_call("a"), _call("b"), _result("a"), _result("b")) == 1


def test_calls_and_results_told_back_one_by_one_are_still_one_step() -> None:
    answered = _turn(
        _answer(script(CallsStep(calls=(ReadStep(path="a"), ReadStep(path="b"))), SayStep(text="end")), PROMPT)
    )
    one, other = (call.id for call in answered.turn.calls)
    assert _step(_call(one), _result(one), _call(other), _result(other)) == 1


def test_a_turn_that_an_agent_split_into_words_and_call_is_one_step() -> None:
    assert _step(ChatMessage("assistant", "I will read."), _call("a"), _result("a")) == 1
    assert _step(_call("a"), ChatMessage("assistant", "I have called."), _result("a")) == 1


def test_reminders_after_a_result_do_not_count() -> None:
    assert _step(_call("a"), _result("a"), ChatMessage("user", "<system-reminder>…</system-reminder>")) == 1


def test_a_second_prompt_after_last_words_goes_on_to_the_next_step() -> None:
    wrong = ChatMessage("assistant", "not the answer")
    assert _step(_call("a"), _result("a"), wrong) == 1
    assert _step(_call("a"), _result("a"), wrong, ChatMessage("user", "that was no JSON")) == 2
    assert _step(_call("a"), _result("a"), wrong, ChatMessage("user", "  ")) == 1


@given(st.lists(st.integers(1, 3), max_size=6), st.booleans(), st.booleans(), st.booleans())
def test_however_it_is_cut_the_same_conversation_stands_at_the_same_step(
    sizes: list[int], is_talkative: bool, has_split_calls: bool, has_split_results: bool
) -> None:
    messages: list[ChatMessage] = []
    for step, size in enumerate(sizes):
        names = [f"{step}-{index}" for index in range(size)]
        if is_talkative:
            messages.append(ChatMessage("assistant", "thinking aloud"))
        messages += [_call(name) for name in names] if has_split_calls else [_call(*names)]
        messages += [_result(name) for name in names] if has_split_results else [_result(*names)]
    assert _step(*messages) == len(sizes)


def test_asked_again_it_says_the_same_again() -> None:
    played = script(ReadStep(path="a"), SayStep(text="end"))
    assert _answer(played, PROMPT) == _answer(played, PROMPT)


def test_two_turns_of_one_conversation_never_share_the_id_of_a_call() -> None:
    played = script(ReadStep(path="a"), ReadStep(path="a"))
    first = _turn(_answer(played, PROMPT)).turn.calls[0].id
    second = _turn(_answer(played, PROMPT, _call(first), _result(first))).turn.calls[0].id
    third = _turn(_answer(played, PROMPT, _call(first), _result(first), _call(second), _result(second), PROMPT))
    assert len({first, second, third.turn.calls[0].id}) == 3


def test_a_script_is_played_to_its_end_and_then_says_so() -> None:
    played = script(WriteStep(path="{cwd}/a", content="b"), SayStep(text="done in {cwd}"))
    first = _turn(_answer(played, PROMPT))
    assert first.step == 0
    assert first.turn.usage == USAGE
    assert [(call.name, call.args) for call in first.turn.calls] == [
        ("create_file", {"path": "/tree/a", "content": "b"})
    ]
    last = _turn(_answer(played, PROMPT, _call("a"), _result("a")))
    assert (last.step, last.turn.text, last.turn.calls) == (1, "done in /tree", ())
    over = _turn(
        _answer(played, PROMPT, _call("a"), _result("a"), ChatMessage("assistant", "done"), ChatMessage("user", "more"))
    )
    assert (over.step, over.turn.text) == (2, OVER)


def test_a_request_without_tools_is_an_aside() -> None:
    played = script(SayStep(text="never"))
    assert _turn(_answer(played, PROMPT, tools=())).turn.text == ASIDE
    question = asked(PROMPT, wants_json=True)
    answered = asyncio.run(ScriptMode([played]).answer(question))
    assert _turn(answered).turn.text == "{}"
    assert _turn(answered).step is None


def test_a_script_may_be_for_an_agent_that_has_no_tools() -> None:
    played = script(SayStep(text="now"), without_tools=True)
    assert _turn(_answer(played, PROMPT, tools=())).turn.text == "now"


def test_an_answer_is_handed_in_by_a_tool_or_put_into_words() -> None:
    played = script(SubmitStep(answer={"status": "DONE"}))
    tool = OfferedTool("mcp__fairwitness__submit_result", {"properties": {"result": {"type": "object"}}})
    by_tool = _turn(_answer(played, PROMPT, tools=(tool,)))
    assert [(call.name, call.args) for call in by_tool.turn.calls] == [
        ("mcp__fairwitness__submit_result", {"result": {"status": "DONE"}})
    ]
    in_words = _turn(_answer(played, PROMPT)).turn
    assert in_words.calls == ()
    assert json.loads(in_words.text.strip().removeprefix("```json").removesuffix("```")) == {"status": "DONE"}
    question: ModelRequest = replace(asked(PROMPT, tools=TOOLS), wants_json=True)
    strict = _turn(asyncio.run(ScriptMode([played]).answer(question)))
    assert json.loads(strict.turn.text) == {"status": "DONE"}


def test_mishaps_are_answered_as_such() -> None:
    error = _answer(script(ErrorStep(status=529, message="full", headers={"retry-after": "1"})), PROMPT)
    assert error == FailedAnswer(529, "full", {"retry-after": "1"}, step=0)
    assert _answer(script(HangStep()), PROMPT) == NoAnswer(step=0)
    assert len(_turn(_answer(script(FloodStep(characters=100_000)), PROMPT)).turn.text) == 100_000
    cut = _turn(_answer(script(BreakStep(step=ReadStep(path="a"))), PROMPT))
    assert cut.is_cut
    assert cut.turn.calls
    late = _turn(_answer(script(DelayStep(seconds=0.01, step=SayStep(text="late"))), PROMPT))
    assert late.turn.text == "late"


def test_a_step_that_no_tool_can_do_is_an_error_that_says_so() -> None:
    answered = _answer(script(WriteStep(path="a", content="b")), PROMPT, tools=(OfferedTool("read_file", READ_TOOL),))
    assert isinstance(answered, FailedAnswer)
    assert answered.status == 400
    assert "can write" in answered.message


def test_a_script_nobody_knows_is_an_error() -> None:
    assert isinstance(_answer(script(SayStep(text="x"), name="another"), PROMPT), FailedAnswer)


def test_two_scripts_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError):
        ScriptMode([script(), script()])


def test_a_script_is_data() -> None:
    played = script(
        CallsStep(calls=(ReadStep(path="a"), WriteStep(path="b", content="")), text="both"),
        DelayStep(seconds=1.0, step=BreakStep(step=SayStep(text="x"))),
        HangStep(),
    )
    assert Script.model_validate_json(played.model_dump_json()) == played
