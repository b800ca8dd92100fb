"""What an agent tells: messages joined, calls put together, usage read where it can be; nothing without a bound."""

from pathlib import Path
from typing import Any

import pytest

from agents.jobs import Kept, job
from fairwitness.agents.backends.acp import updates as module
from fairwitness.agents.backends.acp.updates import Updates
from fairwitness.agents.backends.acp.usage import UsageCounter, model_of
from fairwitness.agents.profiles import PROFILES
from fairwitness.contracts.agents.dispatch import Kind, Usage, UsageSource
from fairwitness.contracts.agents.profile import UsageFrom, UsageWay

pytestmark = pytest.mark.req("X3")


class Bench:
    """Updates of one session."""

    def __init__(self, folder: Path, way: UsageWay | None = None) -> None:
        self.kept = Kept()
        self.counted = UsageCounter(way or UsageWay(found=UsageFrom.RESPONSE, cost=True))
        self.updates = Updates(job(folder, kept=self.kept), self.counted)

    def tell(self, update: str, is_ours: bool = True, **fields: Any) -> None:
        self.updates.take({"sessionUpdate": update, **fields}, is_ours=is_ours)

    def say(self, text: str, kind: str = "agent_message_chunk", **more: Any) -> None:
        self.tell(kind, content={"type": "text", "text": text}, **more)

    def kinds(self) -> list[tuple[Kind, str]]:
        return [(one.kind, one.text) for one in self.kept.happenings]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_pieces_are_joined_to_messages(bench: Bench) -> None:
    for piece in ("Let ", "me ", "see."):
        bench.say(piece, "agent_thought_chunk")
    for piece in ("It ", "is ", "done."):
        bench.say(piece)
    assert bench.updates.last_message == "It is done."
    assert bench.kinds() == [(Kind.THOUGHT, "Let me see."), (Kind.TEXT, "It is done.")]


def test_the_last_message_is_what_was_said_after_the_last_call(bench: Bench) -> None:
    bench.say("I shall read.")
    bench.tell("tool_call", toolCallId="1", title="Read", rawInput={"path": "a"}, status="completed")
    bench.say("The answer.")
    assert bench.updates.last_message == "The answer."


def test_a_call_after_the_answer_does_not_hide_it(bench: Bench) -> None:
    bench.say("The answer.")
    bench.tell("tool_call", toolCallId="1", title="todo", status="completed")
    bench.say("\n")
    assert bench.updates.last_message == "The answer."


def test_another_message_id_is_another_message(bench: Bench) -> None:
    bench.say("one", messageId="1")
    bench.say("two", messageId="2")
    assert bench.updates.last_message == "two"


def test_a_new_turn_forgets_what_was_said_before(bench: Bench) -> None:
    bench.say("old answer")
    bench.updates.begin()
    assert bench.updates.last_message == ""


def test_words_of_a_session_within_the_session_are_no_answer(bench: Bench) -> None:
    bench.say("I am a helper's answer", is_ours=False)
    assert bench.updates.last_message == ""
    assert bench.kinds() == [(Kind.THOUGHT, "I am a helper's answer")]


def test_a_call_is_told_once_with_its_arguments_and_its_result_once(bench: Bench) -> None:
    bench.tell("tool_call", toolCallId="1", title="Bash", status="pending", rawInput={})
    bench.tell("tool_call_update", toolCallId="1", rawInput={"command": "ls"}, status="in_progress")
    done = [{"type": "content", "content": {"type": "text", "text": "a.py"}}]
    for _ in range(2):
        bench.tell("tool_call_update", toolCallId="1", status="completed", content=done)
    call, result = bench.kept.happenings
    assert (call.kind, call.tool, call.args) == (Kind.CALL, "Bash", {"command": "ls"})
    assert (result.kind, result.text, result.ok, result.call) == (Kind.RESULT, "a.py", True, "1")


def test_a_call_that_failed_says_so(bench: Bench) -> None:
    bench.tell("tool_call", toolCallId="1", kind="edit", status="failed", rawOutput={"error": "no"})
    assert bench.kept.happenings[-1].ok is False
    assert "no" in bench.kept.happenings[-1].text


def test_other_updates_are_noted_and_a_flood_of_them_is_not(bench: Bench) -> None:
    bench.tell("plan", entries=[{"content": "step one"}])
    assert "step one" in bench.kinds()[0][1]
    for number in range(1000):
        bench.tell("current_mode_update", currentModeId=str(number))
    assert len(bench.kept.happenings) < 300


def test_of_a_very_long_message_the_end_is_kept(bench: Bench) -> None:
    for _ in range(40):
        bench.say("x" * 100_000)
    bench.say("the end")
    assert len(bench.updates.last_message) <= module.MESSAGE_LIMIT
    assert bench.updates.last_message.endswith("the end")
    bench.updates.begin()
    bench.say("y" * (module.MESSAGE_LIMIT + 5))
    assert len(bench.updates.last_message) == module.MESSAGE_LIMIT


def test_calls_are_forgotten_before_they_are_too_many(bench: Bench) -> None:
    for number in range(module.CALLS_KEPT + 10):
        bench.tell("tool_call", toolCallId=str(number), rawInput={"command": "ls"})
    assert "rawInput" not in bench.updates.call({"toolCallId": "0"})
    assert "rawInput" in bench.updates.call({"toolCallId": str(module.CALLS_KEPT)})


def test_very_long_arguments_are_told_in_part(bench: Bench) -> None:
    bench.tell("tool_call", toolCallId="1", rawInput={"content": "x" * 1_000_000})
    args = bench.kept.happenings[0].args
    assert args is not None
    assert len(str(args)) < 50_000


# usage


def answered(way: UsageWay, *responses: dict[str, Any]) -> Usage:
    counted = UsageCounter(way)
    for response in responses:
        counted.answered(response)
    return counted.usage


def told(fresh: int, said: int, cached: int | None = None, total: int | None = None) -> dict[str, Any]:
    usage = {"inputTokens": fresh, "outputTokens": said, "totalTokens": total or fresh + said + (cached or 0)}
    return {"usage": usage | ({"cachedReadTokens": cached} if cached is not None else {})}


OF_TURN = UsageWay(found=UsageFrom.RESPONSE)


def test_turns_are_added_up() -> None:
    usage = answered(OF_TURN, told(1000, 50), told(500, 20))
    assert (usage.source, usage.tokens_in, usage.tokens_out) == (UsageSource.AGENT, 1500, 70)


def test_a_count_of_the_whole_session_is_not_added_up() -> None:
    usage = answered(UsageWay(found=UsageFrom.RESPONSE, is_of_session=True), told(1000, 50), told(1500, 70))
    assert (usage.tokens_in, usage.tokens_out) == (1500, 70)


def test_what_came_from_a_cache_is_part_of_what_was_sent_however_it_is_told() -> None:
    beside, inside = answered(OF_TURN, told(100, 50, 900)), answered(OF_TURN, told(1000, 50, 900, total=1050))
    assert (beside.tokens_in, beside.tokens_cached) == (1000, 900)
    assert (inside.tokens_in, inside.tokens_cached) == (1000, 900)


def test_a_count_of_the_last_call_alone_is_no_total() -> None:
    usage = answered(UsageWay(found=UsageFrom.RESPONSE, last_call_only=True), told(1000, 50))
    assert usage == Usage()


def test_a_turn_that_says_nothing_makes_the_total_unknown() -> None:
    assert answered(OF_TURN, told(1000, 50), {}).tokens is None


def test_tokens_in_the_quota_are_found() -> None:
    count = {"input_tokens": 7, "output_tokens": 3}
    response = {"_meta": {"quota": {"token_count": count, "model_usage": [{"model": "gemini-x"}]}}}
    usage = answered(UsageWay(found=UsageFrom.QUOTA), response)
    assert (usage.tokens_in, usage.tokens_out) == (7, 3)
    assert model_of(response) == "gemini-x"


@pytest.mark.parametrize(
    "usage",
    [
        None,
        3,
        {},
        {"inputTokens": "1", "outputTokens": 2},
        {"inputTokens": -1, "outputTokens": 2},
        {"inputTokens": True},
    ],
)
def test_a_count_that_is_none_is_not_reported(usage: Any) -> None:
    found = answered(OF_TURN, {"usage": usage})
    assert found == Usage()
    assert found.source is UsageSource.NOT_REPORTED


def test_what_a_session_has_cost_is_the_last_that_was_told(bench: Bench) -> None:
    for amount in (0.01, 0.25):
        bench.tell("usage_update", used=1, size=2, cost={"amount": amount, "currency": "USD"})
    assert bench.counted.usage.cost_micros == 250_000
    assert [one.kind for one in bench.kept.happenings] == [Kind.USAGE, Kind.USAGE]


@pytest.mark.parametrize("cost", [None, {}, {"amount": 1, "currency": "EUR"}, {"amount": -1, "currency": "USD"}])
def test_a_cost_that_cannot_be_used_is_not(bench: Bench, cost: Any) -> None:
    bench.tell("usage_update", used=1, size=2, cost=cost)
    assert bench.counted.usage.cost_micros is None


def test_profiles_say_where_usage_is_found_as_it_was_measured() -> None:
    nowhere = {name for name, found in PROFILES.items() if found.usage.found is UsageFrom.NOWHERE}
    partial = {name for name, found in PROFILES.items() if found.usage.last_call_only}
    priced = {name for name, found in PROFILES.items() if found.usage.cost}
    assert nowhere == {"kimi-code", "qwen"}
    assert partial == {"goose", "opencode"}
    assert priced == {"claude", "opencode", "vibe"}
