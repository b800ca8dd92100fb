"""A pass says what it is for and nothing else, a step how it ended, and a verdict what follows."""

import json
from typing import Any, TypeVar

import pytest
from pydantic import ValidationError

from fairwitness.contracts.autopilot.passes import AfterPass, PassDecision, PassKind, PassMove, PhasePass, StepResult
from fairwitness.contracts.autopilot.vocabulary import ImprovementLoop, StepName, TriageRoute
from fairwitness.contracts.common.base import Contract

C = TypeVar("C", bound=Contract)

COMMIT = "a" * 40
ITEM = {"file": "a.py", "deficiency": "no test", "impact": "+1"}
PASS: dict[str, Any] = {"phase": "6.1", "number": 1, "kind": "whole", "start": COMMIT, "checkpoint": COMMIT}
OF_KIND: dict[PassKind, dict[str, Any]] = {
    PassKind.WHOLE: {},
    PassKind.CYCLE: {"loop": "gaps", "before_tenths": 82, "items": [ITEM]},
    PassKind.PART: {"tasks": ["06-01", "06-02"]},
    PassKind.AGAIN: {"again": ["verify", "rate"]},
}
EVERYTHING = {name: value for said in OF_KIND.values() for name, value in said.items()}


def pass_of(kind: PassKind, **differs: Any) -> dict[str, Any]:
    return PASS | {"kind": kind.value} | OF_KIND[kind] | differs


def same_again(document: C) -> bool:
    """Whether it is the same when it is read again."""
    return type(document).model_validate(json.loads(json.dumps(document.plain()))) == document


def places(shape: type[Contract], document: dict[str, Any]) -> list[tuple[str | int, ...]]:
    """Where it is refused."""
    with pytest.raises(ValidationError) as error:
        shape.model_validate(document)
    return [found["loc"] for found in error.value.errors()]


@pytest.mark.req("A3", "A13")
@pytest.mark.parametrize("kind", PassKind)
def test_a_pass_is_the_same_when_it_is_read_again(kind: PassKind) -> None:
    read = PhasePass.model_validate(pass_of(kind))
    assert same_again(read)
    assert (read.kind, read.loop) == (kind, ImprovementLoop.GAPS if kind is PassKind.CYCLE else None)


@pytest.mark.req("A3", "A13")
@pytest.mark.parametrize("kind", PassKind)
@pytest.mark.parametrize("field", [*EVERYTHING])
def test_a_pass_says_what_it_is_for_and_nothing_of_another_kind(kind: PassKind, field: str) -> None:
    mine = field in OF_KIND[kind]
    empty: list[Any] | None = [] if isinstance(EVERYTHING[field], list) else None
    changed = pass_of(kind, **{field: empty if mine else EVERYTHING[field]})
    assert places(PhasePass, changed) == [(field,)]


@pytest.mark.parametrize("field", [*PASS])
def test_what_a_pass_cannot_do_without_has_no_default(field: str) -> None:
    assert places(PhasePass, {key: value for key, value in PASS.items() if key != field}) == [(field,)]


@pytest.mark.parametrize(
    ("kind", "field", "bad"),
    [
        (PassKind.WHOLE, "phase", "six"),
        (PassKind.WHOLE, "number", 0),
        (PassKind.WHOLE, "number", True),
        (PassKind.WHOLE, "start", "HEAD"),
        (PassKind.WHOLE, "checkpoint", ""),
        (PassKind.WHOLE, "surprise", 1),
        (PassKind.CYCLE, "loop", "forever"),
        (PassKind.CYCLE, "before_tenths", 101),
        (PassKind.CYCLE, "before_tenths", -1),
        (PassKind.CYCLE, "items", [{"file": "a.py"}]),
        (PassKind.PART, "tasks", ["../up"]),
        (PassKind.AGAIN, "again", ["guess"]),
    ],
)
def test_what_a_pass_does_not_know_it_refuses(kind: PassKind, field: str, bad: object) -> None:
    assert places(PhasePass, pass_of(kind, **{field: bad}))[0][0] == field


def test_a_pass_of_an_unknown_kind_is_none() -> None:
    assert places(PhasePass, PASS | {"kind": "half"}) == [("kind",)]


@pytest.mark.req("A3")
def test_how_a_step_ended_is_the_same_when_it_is_read_again() -> None:
    bare = StepResult(step=StepName.EXECUTE, number=1, good=True)
    assert bare.plain() == {
        "step": "execute",
        "number": 1,
        "good": True,
        "defers": False,
        "splits": False,
        "unchanged": False,
        "issues": [],
    }, "what was not said is not there"
    whole = StepResult.model_validate(
        {
            "step": "judge",
            "number": 2,
            "good": False,
            "route": "verify_only",
            "recommendation": "rollback",
            "score_tenths": 100,
            "defers": True,
            "splits": True,
            "issues": ["a.py has no test"],
            "halt": "the budget is used up",
        }
    )
    assert same_again(bare)
    assert same_again(whole)
    assert whole.route is TriageRoute.VERIFY_ONLY


@pytest.mark.req("A3")
@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("step", "guess"),
        ("number", 0),
        ("good", "yes"),
        ("good", 1),
        ("good", None),
        ("route", "shortcut"),
        ("recommendation", "hope"),
        ("score_tenths", -1),
        ("score_tenths", 101),
        ("score_tenths", 69.5),
        ("defers", "no"),
        ("splits", 0),
        ("issues", [" "]),
        ("halt", ""),
        ("surprise", 1),
    ],
)
def test_an_end_that_says_nonsense_is_refused(field: str, bad: object) -> None:
    assert places(StepResult, {"step": "rate", "number": 1, "good": True, field: bad})[0][0] == field


@pytest.mark.parametrize("field", ["step", "number", "good"])
def test_whether_a_step_ended_well_has_no_default(field: str) -> None:
    plain = {"step": "rate", "number": 1, "good": True}
    del plain[field]
    assert places(StepResult, plain) == [(field,)]


def test_a_move_is_the_same_when_it_is_read_again() -> None:
    step = PassMove.model_validate({"kind": "step", "step": "verify", "number": 2})
    end = PassMove.model_validate(
        {"kind": "return", "outcome": "failed", "recommendation": "rollback", "because": "it has no score"}
    )
    assert same_again(step)
    assert same_again(end)
    assert step.plain() == {"kind": "step", "step": "verify", "number": 2}
    assert places(PassMove, {"step": "verify"}) == [("kind",)]


ANOTHER = PhasePass.model_validate(pass_of(PassKind.CYCLE, number=2))
PARTS = tuple(PhasePass.model_validate(pass_of(PassKind.PART, phase=phase)) for phase in ("6a", "6b"))


def verdict_of(after: AfterPass) -> dict[str, Any]:
    verdict: dict[str, Any] = {"phase": "6", "number": 1, "after": after.value, "because": "it is so"}
    verdict |= {"next": ANOTHER.plain()} if after is AfterPass.ONCE_MORE else {}
    return verdict | ({"parts": [part.plain() for part in PARTS]} if after is AfterPass.SPLIT else {})


@pytest.mark.req("A3", "A13")
@pytest.mark.parametrize("after", AfterPass)
def test_a_verdict_is_the_same_when_it_is_read_again(after: AfterPass) -> None:
    finding = {"number": 4, "name": "independence", "answer": "enforcement", "because": "no", "again": ["rate"]}
    read = PassDecision.model_validate(verdict_of(after) | {"findings": [finding], "cycles": 2})
    assert same_again(read)
    assert read.next == (ANOTHER if after is AfterPass.ONCE_MORE else None)
    assert read.parts == (PARTS if after is AfterPass.SPLIT else ())
    assert (read.findings[0].again, read.cycles) == ((StepName.RATE,), 2)


@pytest.mark.req("A13")
@pytest.mark.parametrize("after", AfterPass)
def test_a_verdict_has_another_pass_or_parts_exactly_if_it_says_so(after: AfterPass) -> None:
    plain = verdict_of(after)
    parts = [part.plain() for part in PARTS]
    is_more, is_split = after is AfterPass.ONCE_MORE, after is AfterPass.SPLIT
    assert places(PassDecision, plain | {"next": None if is_more else ANOTHER.plain()}) == [("next",)]
    assert places(PassDecision, plain | {"parts": [] if is_split else parts}) == [("parts",)]


@pytest.mark.parametrize("field", ["phase", "number", "after", "because"])
def test_what_a_verdict_cannot_do_without_has_no_default(field: str) -> None:
    assert places(
        PassDecision, {key: value for key, value in verdict_of(AfterPass.SETTLED).items() if key != field}
    ) == [(field,)]
