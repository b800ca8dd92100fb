"""Mutants: wrong in one place, still programs, noticed by tests that assert and by no others."""

import ast
from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.verify.inspections.model import ChangedText
from fairwitness.verify.inspections.mutants import Mutant, mutants, mutants_of_covered

pytestmark = [pytest.mark.req("X1"), pytest.mark.req("P9")]

SHOP = '''
"""A shop."""
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal

__all__ = ["Cart", "total", "label", "grade"]
__version__ = "1.0"
LIMIT = 50
log = logging.getLogger(__name__)


def total(prices: list[float], member: bool = False) -> float:
    """What all cost together, in 2 digits."""
    if not prices:
        return 0.0
    result = 0.0
    for price in prices:
        if price < 0:
            raise ValueError("a price is negative")
        result += price
    if member and result >= LIMIT:
        result = result * 0.9
    log.info("total %s", result)
    return round(result, 2)


def label(name: str, count: int) -> str:
    if count == 1:
        return name
    return name + "s"


def grade(score):
    if score > 90:
        return "A"
    elif score > 75:
        return "B"
    return "C"


def fact(n):
    if n <= 1:
        return 1
    return n * fact(n - 1)


class Cart:
    def __init__(self, owner):
        self.owner = owner
        self.items = []

    def add(self, item, *, times=1):
        self.items.extend([item] * times)
        return self

    def is_empty(self):
        return len(self.items) == 0

    def find(self, item):
        return item in self.items and self.items.index(item)
'''

Check = Callable[[ModuleType], None]


def asserting(shop: ModuleType) -> None:
    assert shop.total([]) == 0
    assert shop.total([10, 20.5]) == 30.5
    assert shop.total([60], member=True) == 54
    assert shop.total([50], member=True) == 45
    assert shop.total([40], member=True) == 40
    assert shop.total([60]) == 60
    with pytest.raises(ValueError):
        shop.total([-1])
    assert shop.total([0]) == 0
    assert shop.label("cat", 1) == "cat"
    assert shop.label("cat", 2) == "cats"
    assert [shop.grade(score) for score in (91, 90, 76, 75)] == ["A", "B", "B", "C"]
    assert shop.fact(5) == 120
    cart = shop.Cart("joe")
    assert cart.is_empty()
    assert cart.add("x").items == ["x"]
    assert cart.add("y", times=2).items == ["x", "y", "y"]
    assert not cart.is_empty()
    assert cart.find("y") == 1
    assert cart.find("z") is False


def vacuous(shop: ModuleType) -> None:
    shop.total([10, 20.5])
    shop.total([60], member=True)
    shop.total([])
    shop.label("cat", 1)
    shop.label("cat", 2)
    shop.grade(80)
    shop.fact(5)
    cart = shop.Cart("joe")
    assert cart.add("x") is not None
    cart.add("y", times=2)
    cart.is_empty()
    cart.find("z")


def noticed(check: Check, content: str) -> bool:
    """Whether a check fails on a module with this text, by an assertion or a crash."""
    module = ModuleType("shop")
    try:
        exec(compile(content, "shop.py", "exec"), module.__dict__)
        check(module)
    except (Exception, pytest.fail.Exception):  # noqa: BLE001  # whatever a mutant raises, it was noticed
        return True
    return False


def all_of(text: str, limit: int = 1000) -> tuple[Mutant, ...]:
    return mutants([ChangedText.between("src/shop.py", None, text)], limit=limit, seed=7)


def test_the_sample_is_right() -> None:
    assert not noticed(asserting, SHOP)
    assert not noticed(vacuous, SHOP)


def test_tests_that_assert_notice_most_mutants() -> None:
    made = all_of(SHOP)
    survivors = [f"{mutant.line} {mutant.description}" for mutant in made if not noticed(asserting, mutant.content)]
    assert len(made) >= 40
    assert len(survivors) <= len(made) // 5, survivors


def test_vacuous_tests_notice_no_mutant() -> None:
    caught = [f"{mutant.line} {mutant.description}" for mutant in all_of(SHOP) if noticed(vacuous, mutant.content)]
    assert caught == []


@pytest.mark.parametrize("seed", range(5))
def test_a_few_mutants_tell_good_tests_from_vacuous_ones(seed: int) -> None:
    few = mutants([ChangedText.between("src/shop.py", None, SHOP)], limit=10, seed=seed)
    assert len(few) == 10
    assert sum(noticed(asserting, mutant.content) for mutant in few) >= 7
    assert not any(noticed(vacuous, mutant.content) for mutant in few)


def test_every_mutant_compiles_and_differs() -> None:
    made = all_of(SHOP)
    plain = ast.dump(ast.parse(SHOP))
    assert all(ast.dump(ast.parse(mutant.content)) != plain for mutant in made)
    assert len({mutant.content for mutant in made}) == len(made)
    assert len({mutant.id for mutant in made}) == len(made)


def test_what_no_test_could_notice_is_left_alone() -> None:
    touched = {mutant.line for mutant in all_of(SHOP)}
    lines = SHOP.split("\n")
    for number in touched:
        line = lines[number - 1]
        assert not any(word in line for word in ("import", "__all__", "__version__", "log.", '"""', "TYPE_CHECKING")), (
            line
        )


def test_only_added_lines_are_mutated_and_the_rest_stays_as_it_is() -> None:
    after = SHOP.replace("if count == 1:", "if count == 1 or count == -1:")
    change = ChangedText.between("src/shop.py", SHOP, after)
    made = mutants([change], limit=20, seed=1)
    assert made
    (line,) = change.added
    for mutant in made:
        assert mutant.line == line
        differing = [
            number
            for number, (old, new) in enumerate(zip(after.split("\n"), mutant.content.split("\n"), strict=True), 1)
            if old != new
        ]
        assert differing == [line]


def test_mutants_are_spread_over_the_lines() -> None:
    made = all_of(SHOP, limit=15)
    assert len({mutant.line for mutant in made}) == 15


def test_the_same_seed_gives_the_same_mutants_and_another_seed_others() -> None:
    change = [ChangedText.between("src/shop.py", None, SHOP)]
    assert mutants(change, limit=5, seed=1) == mutants(change, limit=5, seed=1)
    assert mutants(change, limit=5, seed=1) != mutants(change, limit=5, seed=2)


@pytest.mark.parametrize("path", ["tests/test_shop.py", "conftest.py", "setup.py", "src/shop.js", "docs/a.md"])
def test_only_python_production_code_is_mutated(path: str) -> None:
    assert mutants([ChangedText.between(path, None, SHOP)], limit=5, seed=1) == ()


def test_a_deleted_or_broken_file_has_no_mutants() -> None:
    assert mutants([ChangedText.between("src/a.py", SHOP, None)], limit=5, seed=1) == ()
    assert mutants([ChangedText.between("src/a.py", None, "def f(:\n")], limit=5, seed=1) == ()


def test_lines_that_tests_touch_can_be_mutated_without_a_change() -> None:
    line = SHOP.split("\n").index("    if count == 1:") + 1
    made = mutants_of_covered({"src/shop.py": SHOP}, {"src/shop.py": {line}}, limit=20, seed=1)
    assert {mutant.line for mutant in made} == {line}
    assert "`==` became `!=`" in {mutant.description for mutant in made}


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("def f(a, b):\n    return a < b\n", "`<` became `>=`"),
        ("def f(a, b):\n    return a < b\n", "`<` became `<=`"),
        ("def f(a, b):\n    return a and b\n", "`and` became `or`"),
        ("def f(a):\n    return a * 2\n", "`*` became `+`"),
        ("def f(a, b):\n    return a + b\n", "operand dropped"),
        ("def f(a):\n    return not a\n", "`not` is gone"),
        ("def f():\n    return 41\n", "`41` became `42`"),
        ("def f():\n    return 'text'\n", "'text' became ''"),
        ("def f():\n    return True\n", "`True` became `False`"),
        ("def f(a) -> int:\n    return len(a)\n", "returns 0"),
        ("def f(a):\n    return g(a)\n", "returns None"),
        ("def f(a):\n    if a:\n        return 1\n    return 2\n", "condition negated"),
        ("def f(a):\n    return 1 if a else 2\n", "condition negated"),
        ("def f(a):\n    a.clear()\n", "call deleted"),
        ("def f(a):\n    a += 1\n    return a\n", "statement deleted"),
        ("def f(a):\n    raise ValueError\n", "`raise` is gone"),
        ("def f(a):\n    return sorted(a, reverse=True)\n", "`reverse=` is gone"),
    ],
)
def test_kinds_of_mutants(code: str, says: str) -> None:
    assert says in {mutant.description for mutant in all_of(code)}


@pytest.mark.parametrize(
    "code",
    [
        "def f(a):\n    while a < 10:\n        a += 1\n",
        "def f(d):\n    x = d['key']\n",
        "def f(d):\n    x = d[0]\n",
        "def f(p):\n    with open(p, encoding='utf-8') as x:\n        pass\n",
        "def f(x: 'int') -> 'str': ...\n",
        "x = f'{1 + 2} and {3}'\n",
        "import os\nfrom sys import argv\n",
        "assert 1 < 2\n",
        "if __name__ == '__main__':\n    main(1)\n",
        "x = x\n",
    ],
)
def test_what_would_crash_or_change_nothing_is_left_alone(code: str) -> None:
    assert all_of(code) == ()


def test_a_guard_of_an_error_is_only_moved_by_one() -> None:
    said = {
        mutant.description for mutant in all_of("def f(a):\n    if a < 0:\n        raise ValueError\n    return g(a)\n")
    }
    assert said == {"`<` became `<=`", "`0` became `1`", "`raise` is gone", "returns None"}


def test_texts_beyond_ascii_and_windows_line_ends_are_cut_in_the_right_place() -> None:
    text = "def f(a):\r\n    é = 'ü'; return a == 'ö'\r\n"
    made = all_of(text)
    assert "def f(a):\r\n    é = 'ü'; return (a != 'ö')\r\n" in {mutant.content for mutant in made}


def test_a_number_that_cannot_be_spelled_spoils_nothing_else() -> None:
    text = f"def f(a):\n    x = a == 0x{'f' * 5000}\n    return a == 3\n"
    assert {mutant.line for mutant in all_of(text)} == {2, 3} or {mutant.line for mutant in all_of(text)} == {3}


@given(st.text(), st.integers())
def test_no_text_makes_it_raise(text: str, seed: int) -> None:
    mutants([ChangedText.between("src/a.py", None, text)], limit=5, seed=seed)


PIECES = st.lists(st.sampled_from(SHOP.splitlines(keepends=True)), max_size=20).map("".join)


@given(PIECES, st.integers())
def test_no_shuffled_module_makes_it_raise(text: str, seed: int) -> None:
    for mutant in mutants([ChangedText.between("src/a.py", None, text)], limit=3, seed=seed):
        compile(mutant.content, "a.py", "exec")
