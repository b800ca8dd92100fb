"""Budgets: reserve then settle, no cap ever passed by a new dispatch, and the whole small table in sentences."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from pydantic import ValidationError

from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.budgets import (
    Amounts,
    Budget,
    BudgetCaps,
    BudgetLevel,
    Caps,
    OverBudget,
    Reservation,
    Reserved,
    Resource,
    Spending,
)
from fairwitness.contracts.common.problems import Problem
from fairwitness.rules.budgets import (
    amount,
    cap_of,
    exhausted,
    release,
    reserve,
    settle,
    sized,
    spelled_refusal,
    used,
)

ROLE = {
    **{"role": "intake", "workflow": "feature", "title": "Intake", "purpose": "Reads.", "prompt": "intake"},
    **{"timeout_s": 600, "turns": 25, "model": "strong", "prompt_tokens": 1_100},
    "budget": {"tokens": 200_000, "money_micros": 1_000_000, "milliseconds": 600_000},
}
FREE = Caps(tokens=None, money_micros=None, milliseconds=None)


def _budget(dispatch: Caps = FREE, phase: Caps = FREE, run: Caps = FREE) -> Budget:
    return Budget(caps=BudgetCaps(dispatch=dispatch, phase=phase, run=run))


def _tokens(cap: int) -> Caps:
    return Caps(tokens=cap, money_micros=None, milliseconds=None)


def _wanted(name: str, tokens: int, phase: str | None = "1") -> Reservation:
    return Reservation(id=name, phase=phase, asked=Amounts(tokens=tokens))


def _reserved(budget: Budget, wanted: Reservation) -> Budget:
    answer = reserve(budget, wanted)
    assert isinstance(answer, Reserved)
    return answer.budget


def _settled(budget: Budget, name: str, tokens: int) -> Budget:
    after = settle(budget, name, Amounts(tokens=tokens))
    assert isinstance(after, Budget)
    return after


@pytest.mark.req("P12", "A4")
def test_every_resource_has_an_amount_and_a_cap() -> None:
    for what in Resource:
        assert amount(Amounts.model_validate({what.value: 3}), what) == 3
        assert cap_of(Caps.model_validate(FREE.plain() | {what.value: 3}), what) == 3
        assert cap_of(FREE, what) is None


@pytest.mark.req("P12", "A4")
@pytest.mark.parametrize(
    ("level", "what"), [(level, what) for level in BudgetLevel for what in Resource], ids=lambda word: word.value
)
def test_each_cap_of_each_resource_is_held_at_each_level(level: BudgetLevel, what: Resource) -> None:
    caps: dict[str, Any] = {name.value: FREE.plain() for name in BudgetLevel}
    caps[level.value] |= {what.value: 10}
    budget = Budget(caps=BudgetCaps.model_validate(caps))
    fits = Reservation(id="d-1", phase="1", asked=Amounts.model_validate({what.value: 10}))
    over = Reservation(id="d-1", phase="1", asked=Amounts.model_validate({what.value: 11}))
    assert isinstance(reserve(budget, fits), Reserved)
    assert reserve(budget, over) == OverBudget(level=level, what=what, cap=10, used=0, asked=11)


@pytest.mark.req("P12", "A4")
def test_the_narrowest_cap_is_named_first() -> None:
    budget = _budget(_tokens(1), _tokens(1), _tokens(1))
    answer = reserve(budget, _wanted("d-1", 2))
    assert isinstance(answer, OverBudget)
    assert answer.level is BudgetLevel.DISPATCH
    answer = reserve(_budget(phase=_tokens(1), run=_tokens(1)), _wanted("d-1", 2))
    assert isinstance(answer, OverBudget)
    assert answer.level is BudgetLevel.PHASE


@pytest.mark.req("P12")
def test_a_dispatch_outside_any_phase_is_held_by_the_run_alone() -> None:
    budget = _budget(phase=_tokens(1), run=_tokens(5))
    assert isinstance(reserve(budget, _wanted("d-1", 5, phase=None)), Reserved)
    assert isinstance(reserve(budget, _wanted("d-1", 6, phase=None)), OverBudget)


@pytest.mark.req("P12", "A4")
def test_a_phase_does_not_pay_for_another() -> None:
    budget = _reserved(_budget(phase=_tokens(10)), _wanted("d-1", 10, phase="1"))
    assert isinstance(reserve(budget, _wanted("d-2", 1, phase="1")), OverBudget)
    assert isinstance(reserve(budget, _wanted("d-2", 10, phase="2")), Reserved)
    assert used(budget, Resource.TOKENS, phase="1") == 10
    assert used(budget, Resource.TOKENS, phase="2") == 0
    assert used(budget, Resource.MONEY) == 0


@pytest.mark.req("P12", "A4")
def test_settling_may_exceed_the_reservation_and_then_nothing_more_starts() -> None:
    budget = _settled(_reserved(_budget(run=_tokens(10)), _wanted("d-1", 5)), "d-1", 12)
    assert used(budget, Resource.TOKENS) == 12
    answer = reserve(budget, _wanted("d-2", 0))
    assert answer == OverBudget(level=BudgetLevel.RUN, what=Resource.TOKENS, cap=10, used=12, asked=0)
    assert exhausted(budget) == answer


@pytest.mark.req("P12", "A4")
def test_at_the_cap_not_even_a_dispatch_that_asks_for_nothing_starts() -> None:
    budget = _reserved(_budget(run=_tokens(10)), _wanted("d-1", 9))
    assert exhausted(budget) is None
    assert isinstance(reserve(budget, _wanted("d-2", 0)), Reserved)
    full = _reserved(budget, _wanted("d-2", 1))
    assert isinstance(reserve(full, _wanted("d-3", 0)), OverBudget)
    assert exhausted(full) == OverBudget(level=BudgetLevel.RUN, what=Resource.TOKENS, cap=10, used=10, asked=0)
    assert exhausted(_budget()) is None


@pytest.mark.req("P12", "P16")
def test_a_crash_between_reserve_and_settle_keeps_the_reservation_counted_until_it_is_released() -> None:
    crashed = _reserved(_budget(run=_tokens(10)), _wanted("d-1", 8))
    assert isinstance(reserve(crashed, _wanted("d-2", 3)), OverBudget)
    assert reserve(crashed, _wanted("d-1", 8)) == Reserved(budget=crashed)  # the step is repeated and adopts it
    released = release(crashed, "d-1")
    assert released == _budget(run=_tokens(10))
    assert isinstance(reserve(released, _wanted("d-2", 3)), Reserved)


@pytest.mark.req("P12", "P16")
def test_an_id_stands_for_one_dispatch_only() -> None:
    budget = _reserved(_budget(), _wanted("d-1", 8))
    assert isinstance(reserve(budget, _wanted("d-1", 9)), Problem)
    settled = _settled(budget, "d-1", 7)
    assert settled.reserved == {}
    assert settled.spent == {"d-1": Spending(phase="1", used=Amounts(tokens=7))}
    assert isinstance(reserve(settled, _wanted("d-1", 8)), Problem)


@pytest.mark.req("P12", "P16")
def test_settling_twice_is_once_and_settling_otherwise_is_a_problem() -> None:
    budget = _settled(_reserved(_budget(), _wanted("d-1", 8)), "d-1", 7)
    assert settle(budget, "d-1", Amounts(tokens=7)) == budget
    again, never = settle(budget, "d-1", Amounts(tokens=8)), settle(budget, "d-9", Amounts())
    assert isinstance(again, Problem)
    assert isinstance(never, Problem)
    assert (again.found, never.found) == ("other amounts, settled already", "nothing")
    assert release(budget, "d-1") == budget


@pytest.mark.req("P12")
def test_nothing_is_ever_negative() -> None:
    with pytest.raises(ValidationError):
        Amounts(tokens=-1)
    with pytest.raises(ValidationError):
        Caps(tokens=0, money_micros=None, milliseconds=None)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "settle", "release"]),
        st.sampled_from(["d-1", "d-2", "d-3", "d-4"]),
        st.sampled_from(["1", "2"]),
        st.integers(0, 12),
    ),
    max_size=25,
)


@pytest.mark.req("P12", "A4")
@settings(max_examples=300)
@given(STEPS)
def test_no_dispatch_is_ever_let_through_above_a_cap(steps: list[tuple[str, str, str, int]]) -> None:
    budget = _budget(_tokens(8), _tokens(15), _tokens(20))
    for verb, name, phase, tokens in steps:
        if verb == "settle":
            after = settle(budget, name, Amounts(tokens=tokens))
            budget = after if isinstance(after, Budget) else budget
        elif verb == "release":
            budget = release(budget, name)
        else:
            before = used(budget, Resource.TOKENS)
            answer = reserve(budget, _wanted(name, tokens, phase))
            if isinstance(answer, Reserved) and answer.budget != budget:
                assert tokens <= 8
                assert before < 20
                assert used(answer.budget, Resource.TOKENS) == before + tokens <= 20
                assert used(answer.budget, Resource.TOKENS, phase=phase) <= 15
                budget = answer.budget
        assert not set(budget.reserved) & set(budget.spent)
        assert used(budget, Resource.TOKENS) >= 0


@pytest.mark.req("P12", "A4")
def test_the_whole_table_of_a_small_budget() -> None:
    table = []
    for spent in (0, 4, 5, 6):
        for asked in (0, 1, 5, 6):
            budget = _settled(_reserved(_budget(run=_tokens(5)), _wanted("d-1", 0)), "d-1", spent)
            answer = reserve(budget, _wanted("d-2", asked))
            assert not isinstance(answer, Problem)
            table.append(f"cap 5, spent {spent}, asked {asked}: {answer.answer}")
    assert table == snapshot(
        [
            "cap 5, spent 0, asked 0: reserved",
            "cap 5, spent 0, asked 1: reserved",
            "cap 5, spent 0, asked 5: reserved",
            "cap 5, spent 0, asked 6: over_budget",
            "cap 5, spent 4, asked 0: reserved",
            "cap 5, spent 4, asked 1: reserved",
            "cap 5, spent 4, asked 5: over_budget",
            "cap 5, spent 4, asked 6: over_budget",
            "cap 5, spent 5, asked 0: over_budget",
            "cap 5, spent 5, asked 1: over_budget",
            "cap 5, spent 5, asked 5: over_budget",
            "cap 5, spent 5, asked 6: over_budget",
            "cap 5, spent 6, asked 0: over_budget",
            "cap 5, spent 6, asked 1: over_budget",
            "cap 5, spent 6, asked 5: over_budget",
            "cap 5, spent 6, asked 6: over_budget",
        ]
    )


@pytest.mark.req("P12", "A4")
def test_the_run_pays_for_all_its_phases() -> None:
    budget = _reserved(_budget(phase=_tokens(9), run=_tokens(10)), _wanted("d-1", 8, phase="1"))
    answer = reserve(budget, _wanted("d-2", 3, phase="2"))
    assert answer == OverBudget(level=BudgetLevel.RUN, what=Resource.TOKENS, cap=10, used=8, asked=3)


@pytest.mark.req("P12")
def test_a_problem_names_the_dispatch_it_is_about() -> None:
    budget = _reserved(_budget(), _wanted("d-1", 8))
    problems = [reserve(budget, _wanted("d-1", 9)), settle(budget, "d-9", Amounts())]
    assert [(one.where, one.expected, one.found) for one in problems if isinstance(one, Problem)] == [
        (("reserved", "d-1"), "an id that no other dispatch has", "d-1"),
        (("reserved", "d-9"), "a reservation to settle", "nothing"),
    ]


@pytest.mark.req("P12")
@pytest.mark.parametrize("what", Resource)
def test_a_refusal_says_what_would_have_been_needed(what: Resource) -> None:
    over = OverBudget(level=BudgetLevel.RUN, what=what, cap=5_000_000, used=0, asked=6_000_000)
    said = spelled_refusal(over, "intake")
    assert "none of them used" in said
    assert {
        Resource.TOKENS: "a cap of 6,000,000 is needed",
        Resource.MONEY: "reserves 6.00 dollars: a cap of 6.00 is needed",
        Resource.TIME: "reserves 100.0 minutes: a cap of 100.0 is needed",
    }[what] in said


@pytest.mark.req("P12")
def test_an_external_agent_gets_more_for_its_own_prompt_and_no_limit_stays_none() -> None:
    role = RoleSpec.model_validate(ROLE)
    assert sized(role, "api") == role
    more = sized(role, "acp")
    assert more.budget.tokens > role.budget.tokens
    assert more.budget.milliseconds == role.budget.milliseconds
    assert more.turns > role.turns
    free = role.model_copy(update={"budget": Amounts()})
    assert sized(free, "acp").budget == Amounts()
