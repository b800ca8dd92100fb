"""The tool by which an answer is handed in: looked at roughly, taken once, and believed by nobody."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agents.acp.kit import READER, Ground
from agents.jobs import GOOD
from fairwitness.agents.backends.acp.answer_server import _answer, _problem
from fairwitness.agents.backends.acp.answer_tool import AnswerTool
from fairwitness.agents.base import AgentTurn, AnswerForm, Session
from fairwitness.agents.driver import drive
from fairwitness.contracts.agents.dispatch import OutcomeStatus
from fairwitness.sandbox.private_folders import PrivateFolders

pytestmark = pytest.mark.req("X3")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["recommendation"],
    "properties": {"recommendation": {"type": "string"}, "concerns": {"type": "array"}, "score": {"type": "number"}},
}


def test_in_the_sandbox_a_bad_try_comes_back_and_the_good_one_is_taken(ground: Ground) -> None:
    ours = ground.job(READER, schema=SCHEMA)
    turn = ground.ask(ground.backend("submits", submit=True), ours)
    told = json.loads(turn.text)
    assert told["tool"] == "submit_result"
    assert told["tries"] == [[True, "not taken: it lacks recommendation"], [False, "received"]]
    assert turn.submitted == GOOD


def test_who_hands_in_nothing_has_handed_in_nothing(ground: Ground) -> None:
    async def talk(session: Session) -> tuple[AgentTurn, AgentTurn]:
        return await session.ask("one"), await session.ask("two")

    first, second = ground.within(ground.backend("learns", submit=True), talk)
    assert (first.submitted, second.submitted) == (None, None)


def test_an_answer_that_was_handed_in_is_taken_once(tmp_path: Path) -> None:
    ours = hand(tmp_path)
    (tmp_path / "submit" / "answer.json").write_text('{"recommendation": "x"}')
    assert ours.take_answer() == {"recommendation": "x"}
    assert ours.take_answer() is None


def test_the_driver_validates_what_was_handed_in(ground: Ground) -> None:
    good = asyncio.run(drive(ground.backend("submits", submit=True), ground.job(READER, schema=SCHEMA)))
    assert good.status is OutcomeStatus.INVALID_ANSWER  # a judge's answer from a reviewer
    assert good.asked == 2


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, "it is not an object"),
        ([], "it is not an object"),
        ({}, "it lacks recommendation"),
        ({"recommendation": 3}, "recommendation must be of type string"),
        ({"recommendation": "x", "concerns": {}}, "concerns must be of type array"),
        ({"recommendation": "x", "score": True}, "score must be of type number"),
        ({"recommendation": "x", "score": 1, "other": None}, None),
    ],
)
def test_a_slip_at_the_top_is_seen_at_once(answer: Any, problem: str | None) -> None:
    assert _problem(SCHEMA, answer) == problem


def test_what_the_server_does_not_know_it_says_so(tmp_path: Path) -> None:
    for method, params in (("tools/call", {"name": "other"}), ("resources/list", {}), ("tools/call", None)):
        assert "error" in _answer({"method": method, "params": params}, SCHEMA, str(tmp_path / "a"))
    assert _answer({"method": "ping"}, SCHEMA, "") == {"result": {}}


def hand(folder: Path) -> AnswerTool:
    return AnswerTool(AnswerForm("x", SCHEMA), PrivateFolders(str(folder), str(folder / "home"), str(folder / "tmp")))


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', "NaN", '{"a": 1, "a": 2}'])
def test_what_is_no_document_is_no_answer_and_is_gone(tmp_path: Path, text: str) -> None:
    ours = hand(tmp_path)
    place = tmp_path / "submit" / "answer.json"
    place.write_text(text)
    assert ours.take_answer() is None
    assert not place.exists()


def test_a_planted_link_is_no_answer(tmp_path: Path) -> None:
    ours = hand(tmp_path)
    (tmp_path / "secret.json").write_text('{"secret": 1}')
    (tmp_path / "submit" / "answer.json").symlink_to(tmp_path / "secret.json")
    assert ours.take_answer() is None
    assert (tmp_path / "secret.json").exists()
