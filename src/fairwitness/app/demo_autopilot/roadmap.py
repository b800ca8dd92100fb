"""What a person wrote for the demo: a roadmap of five phases, the requirements behind it, and commands."""

import json
from typing import NamedTuple


class Held(NamedTuple):
    """What must be true when a phase is done, and the command by which the harness decides it; None if none can."""

    criterion: str
    command: str | None = None


def _tests(module: str) -> str:
    return f"python3 -m unittest tests.{module}"


def _shown(*lines: str) -> str:
    """Some lines of Python that fail as long as the last of them does not hold."""
    return f'python3 -c "{"; ".join(lines)}"'


STOCK_HELD = (
    Held("What is put in can be taken out again, and never more than that", _tests("test_stock")),
    Held("What keeps shortest comes first, and what is over has days below zero", _tests("test_days")),
    Held(
        "An item is the same however its name is spelled",
        _shown(
            "from larder.stock import Stock",
            "stock = Stock()",
            "stock.put('Brown  Rice', 2)",
            "assert stock.amount('brown rice') == 2",
        ),
    ),
)
SHOPPING_HELD = (
    Held("Only what is short of the wanted amount is listed, in the order of names", _tests("test_shopping")),
    Held(
        "Each item is one line with all that is short of it, however its name is spelled",
        _shown(
            "from larder.shopping import missing",
            "from larder.stock import Stock",
            "assert missing({'Brown  Rice': 3}, Stock()) == {'brown rice': 3}",
        ),
    ),
)
RECIPES_HELD = (
    Held(
        "Amounts of a recipe are scaled exactly, whatever the number of servings",
        _shown(
            "from fractions import Fraction",
            "from larder.recipes import scaled",
            "assert scaled({'rice': 100}, 3, 2) == {'rice': Fraction(200, 3)}",
        ),
    ),
)
COOKING_HELD = (Held("A dish can be cooked only if the stock holds all of its scaled recipe", _tests("test_cooking")),)
SLIP_HELD = (
    Held("A shopping list is printed in lines of 24 signs, amounts on the right", _tests("test_slip")),
    Held("A printed slip can be read at the shelf, an arm's length away"),
)


class Phase(NamedTuple):
    """One phase as the roadmap has it."""

    number: int
    name: str
    about: str
    goal: str
    type: str
    depends_on: str
    requirements: dict[str, str]
    held: tuple[Held, ...]


PHASES = (
    Phase(
        1,
        "Stock",
        "what is there, and how long it keeps",
        "Somebody can put things in and take them out, and sees what keeps shortest.",
        "data",
        "Nothing",
        {
            "LAR-01": "Things are put in and taken out, never more than there is, under one name each.",
            "LAR-02": "Things are ordered by how long they keep.",
        },
        STOCK_HELD,
    ),
    Phase(
        2,
        "Shopping list",
        "what is to be bought",
        "Somebody who says what should be there gets the list of what is missing.",
        "mixed",
        "Phase 1 (compares with the stock)",
        {"LAR-03": "The list has every item once, with all that is short of it."},
        SHOPPING_HELD,
    ),
    Phase(
        3,
        "Recipes",
        "amounts for any number of servings",
        "A recipe for four feeds three as well as seven, and no grain of rice is rounded away.",
        "data",
        "Phase 1 (speaks of the same items)",
        {"LAR-04": "Amounts of a recipe are scaled exactly."},
        RECIPES_HELD,
    ),
    Phase(
        4,
        "Cooking",
        "what can be cooked with what is there",
        "Somebody sees which dishes the larder is good for, and what cooking one leaves.",
        "mixed",
        "Phase 3 (uses scaled recipes)",
        {"LAR-05": "A dish can be cooked exactly if the stock holds all that it needs."},
        COOKING_HELD,
    ),
    Phase(
        5,
        "Shopping slip",
        "the list on paper",
        "The shopping list comes out of the slip printer and can be read in the shop.",
        "ui",
        "Phase 2 (prints its list)",
        {"LAR-06": "A shopping list is printed on slips of 24 columns."},
        SLIP_HELD,
    ),
)


def _spelled(held: Held) -> str:
    return held.criterion if held.command is None else f"{held.criterion}, verified by `{held.command}`"


def _section(phase: Phase) -> str:
    criteria = "\n".join(f"{number}. {_spelled(held)}" for number, held in enumerate(phase.held, start=1))
    return (
        f"### Phase {phase.number}: {phase.name}\n\n"
        f"**Goal**: {phase.goal}\n"
        f"**Type**: {phase.type}\n"
        f"**Depends on**: {phase.depends_on}\n"
        f"**Requirements**: {', '.join(phase.requirements)}\n"
        f"**Success Criteria**:\n\n{criteria}\n\n"
        "**Plans**: made by the run\n"
    )


_LIST = "\n".join(f"- [ ] **Phase {phase.number}: {phase.name}** - {phase.about}" for phase in PHASES)
ROADMAP = "\n".join(
    ("# Roadmap\n\n## Phases\n", f"{_LIST}\n", "## Phase Details\n", *(_section(phase) for phase in PHASES))
)
REQUIREMENTS = "# Requirements\n\n" + "".join(
    f"- **{name}**: {text}\n" for phase in PHASES for name, text in phase.requirements.items()
)
COMMANDS = {
    "compile": "python3 -m compileall -q larder tests",
    "test": "python3 -m unittest",
    "lint": "python3 tools/lint.py larder tests tools",
    "build": None,
}
_CONFIG = {
    "project": {
        "type": "python",
        "commands": COMMANDS,
        "commands_source": "user-override",
        "spec_paths": [".planning/REQUIREMENTS.md", ".planning/ROADMAP.md"],
    }
}

FILES = {
    ".planning/ROADMAP.md": ROADMAP,
    ".planning/REQUIREMENTS.md": REQUIREMENTS,
    ".planning/config.json": json.dumps(_CONFIG, indent=2) + "\n",
}
