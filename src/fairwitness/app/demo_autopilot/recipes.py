"""Phase 3, the recipes: a task meets its own weak criterion, a verifier believes it, and the harness looks.

The roadmap asks for exact amounts. The plan asks for a test that passes, and the test knows only even divisions.
"""

from fairwitness.app.demo_autopilot.roadmap import RECIPES_HELD, Held
from fairwitness.app.demo_autopilot.scripts import (
    Task,
    carried_out,
    judged,
    plan_checked,
    planned,
    researched,
    shown,
    verified,
)
from fairwitness.app.demo_feature.scripts import create
from fairwitness.contracts.autopilot.words import Recommendation

PHASE = 3
_PATH, _TESTS = "larder/recipes.py", "tests/test_recipes.py"
RECIPES = '''\
"""Recipes for any number of servings."""

from collections.abc import Mapping

from larder.names import tidy


def scaled(recipe: Mapping[str, int], servings: int, wanted: int) -> dict[str, int]:
    """A recipe for so many servings, made for as many as are wanted."""
    return {tidy(name): amount * wanted // servings for name, amount in recipe.items()}
'''
_TEST_RECIPES = '''\
"""Recipes are scaled."""

import unittest

from larder.recipes import scaled


class Recipes(unittest.TestCase):
    def test_amounts_grow_and_shrink_with_the_servings(self) -> None:
        recipe = {"Rice": 300, "salt": 6}
        self.assertEqual(scaled(recipe, 3, 5), {"rice": 500, "salt": 10})
        self.assertEqual(scaled(recipe, 3, 1), {"rice": 100, "salt": 2})
'''

(_EXACT,) = RECIPES_HELD
WEAK = Held("Recipes for 3 are scaled to 5 and to 1", "python3 -m unittest tests.test_recipes")
"""What the plan made of it."""
_SCALES = shown(_PATH, RECIPES, "return {tidy")
_TESTED = shown(_TESTS, _TEST_RECIPES, "scaled(recipe, 3, 5)")
TASK = Task(
    PHASE,
    "recipes",
    "Scale recipes. Write larder/recipes.py with scaled(recipe, servings, wanted): the amounts of a recipe for another "
    "number of servings, by tidied name.",
    "scaled() gives the amounts for as many servings as are wanted.",
    (WEAK,),
    ("LAR-04", _EXACT.criterion),
    (create(_TESTS, _TEST_RECIPES), create(_PATH, RECIPES)),
    (_SCALES,),
    ("larder/names.py", "larder/stock.py"),
)
TASKS = (TASK,)

SESSIONS = (
    researched(
        PHASE,
        (
            "Amounts of the stock are whole numbers, so whole numbers fit there.",
            "A recipe is a mapping of names to amounts, like a wish of the shopping list.",
        ),
        "One function that multiplies and divides.",
        ("Some divisions leave a remainder.",),
        ("larder/stock.py", "larder/names.py"),
    ),
    planned(PHASE, TASKS, concerns=("What becomes of a remainder is left to the executor.",)),
    plan_checked(PHASE, 7.0, "Its criterion names two divisions that leave nothing."),
    *carried_out(TASK),
    verified(
        PHASE,
        1,
        ((Held(_EXACT.criterion, WEAK.command), f"{_SCALES}; the test holds it: {_TESTED}"),),
        (_PATH, _TESTS),
    ),
    judged(
        PHASE,
        1,
        (
            f"{_SCALES.partition(' -- ')[0]} divides with //, which drops the remainder that the goal wants to keep.",
            "The stock counts in whole numbers, so an exact amount has nowhere to go: mending scaled() alone would "
            "only move the rounding. The phase has to be planned anew, amounts first.",
        ),
        (_SCALES, "scaled({'rice': 100}, 3, 2) -> {'rice': 66}, and not 200/3"),
        "The test knows only divisions without a remainder; the verifier ran that test and took it for the criterion. "
        "I ran the roadmap's own example, and there we differ: 66 is not 200/3. What stands promises exact amounts and "
        "rounds them, and phase 4 would build on that, so it should not stay.",
        (_PATH, _TESTS, "larder/stock.py"),
        wants=Recommendation.ROLLBACK,
        missed=("The command of the roadmap's criterion fails.",),
        missing=("LAR-04: amounts are rounded down, so they are not scaled exactly",),
    ),
)
