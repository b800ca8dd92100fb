"""What only new tests can answer: are they red without the change, and would they notice a wrong one?"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fairwitness.contracts.common.words import Assessment
from fairwitness.contracts.verify.results import RED, Evidence, Item, Move, Outcome, Ran
from fairwitness.rules.identity import is_red_before
from fairwitness.verify.cascade import Checked, ask_all, items_before
from fairwitness.verify.harness import Harness
from fairwitness.verify.inspections.mutants import Mutant
from fairwitness.verify.model import Change, Tell
from fairwitness.verify.question import Question, narrowed

NAMED = 20
"""How many tests or mutants a sentence or a row lists."""
MUTANT_S = 60.0
"""Wall time of one mutant; one that runs on for ever was noticed."""
FEWEST = 2
"""Mutants that must have been judged before new tests are called vacuous."""


_ASSERTED = re.compile(r"\s*(?:$|assert\b|[\w.]*Assertion\w*|Failed\b|.*DID NOT RAISE)")
"""How a failed assertion begins in a report; a report that gives no words is taken at its word."""


class Proof(NamedTuple):
    """One answer: the row it stands under, whether it holds, and what it says."""

    check: str
    instance: str | None
    holds: bool
    text: str
    detail: dict[str, Any]


def new_tests(checked: Checked) -> tuple[str, ...]:
    """The tests that the change brings and that pass."""
    if checked.comparison is None or not checked.are_tests:
        return ()
    return tuple(moved.id for moved in checked.comparison.moved if moved.move is Move.NEW_PASSING)


def is_no_worse(checked: Checked) -> bool:
    """Whether a check passes, or is red only in what was red before: the base of many projects never is green."""
    if checked.comparison is None:
        return checked.after.evidence is Evidence.PASSED
    return not any(moved.move in (Move.BROKEN, Move.NEW_FAILING) for moved in checked.comparison.moved)


def red_at_baseline(harness: Harness, change: Change, checked: Checked, tree: str, *, tell: Tell) -> Proof | None:
    """At least one new test must fail, or not even load, on the old code."""
    new = new_tests(checked)
    if not new or tree == change.base.tree or items_before(checked.before) is None:
        return None
    question = Question(
        checked.spec,
        checked.project,
        tree,
        "red",
        # others would not know the name of a test whose file does not load; then everything is run
        ids=narrowed(checked.spec, new) if checked.spec.tool == "pytest" else (),
        environment_tree=change.head.tree,
    )
    (ran,) = ask_all(harness, [question], tell, 1)
    name = "red-at-baseline-new-tests"
    detail: dict[str, Any] = {"new": list(new[:NAMED]), "execution": ran.execution}
    if ran.evidence is Evidence.NONE and not _broke_by_itself(ran):
        text = f"nobody knows whether the new tests fail without the change: {ran.reason}"
        return Proof(name, checked.spec.id, False, text, detail)
    # a build that breaks without the change, as when a test calls what is not there yet, is as red as can be
    unbuilt = ran.reason if ran.evidence is Evidence.NONE else None
    judged = is_red_before(new, ran.items or None, unbuilt=unbuilt)
    detail |= {
        "red": [each.id for each in judged.red[:NAMED]],
        "not_red": [f"{each.id}: {each.reason}" for each in judged.not_red[:NAMED]],
    }
    if judged.red:
        return Proof(name, checked.spec.id, True, f"{len(judged.red)} of {len(new)} new tests fail without it", detail)
    text = f"no new test fails without the change ({_some(new)})"
    return Proof(name, checked.spec.id, False, text, detail)


def _broke_by_itself(ran: Ran) -> bool:
    """Whether the command ended by itself with a failure, although its report names nothing."""
    return (
        ran.exit_code not in (None, 0)
        and not ran.environmental
        and ran.assessment not in (Assessment.TIMEOUT, Assessment.LOST)
    )


def survives_mutants(
    harness: Harness,
    change: Change,
    checked: Checked,
    mutants: Sequence[Mutant],
    *,
    tell: Tell,
    parallel: int,
    deadline: float,
    now: Callable[[], float],
) -> Proof | None:
    """Some wrong form of the change must be noticed by the new tests."""
    new = new_tests(checked)
    if not new or not mutants:
        return None
    spec = checked.spec.model_copy(update={"timeout_s": min(checked.spec.timeout_s, MUTANT_S)})
    killed: list[Mutant] = []
    survived: list[Mutant] = []
    asserted = 0
    for start in range(0, len(mutants), parallel):
        if now() > deadline:
            break
        batch = mutants[start : start + parallel]
        questions = [
            Question(
                spec,
                checked.project,
                _mutated(harness, change, mutant),
                "mutant",
                ids=narrowed(spec, new),
                environment_tree=change.head.tree,
            )
            for mutant in batch
        ]
        for mutant, ran in zip(batch, ask_all(harness, questions, tell, parallel), strict=True):
            match _noticed(ran, frozenset(new)):
                case True:
                    killed.append(mutant)
                    asserted += any(item.id in new and _is_assertion(item) for item in ran.items)
                case False:
                    survived.append(mutant)
                case None:
                    pass
    judged = len(killed) + len(survived)
    detail = {
        "judged": judged,
        "noticed": len(killed),
        "by_assertion": asserted,
        "survivors": [f"{mutant.path}:{mutant.line} {mutant.description}" for mutant in survived[:NAMED]],
    }
    if judged < FEWEST:
        return None
    if asserted or len(killed) * 2 >= judged:
        text = f"the new tests notice {len(killed)} of {judged} wrong forms of the change"
        return Proof("tests-vacuous", checked.spec.id, True, text, detail)
    # a wrong form that merely crashes is noticed by a test that only calls it
    how = f"{len(killed)} of {judged} wrong forms crashed" if killed else f"none of {judged} wrong forms was noticed"
    text = f"the new tests assert nothing about the change: {how} ({_some(new)})"
    return Proof("tests-vacuous", checked.spec.id, False, text, detail)


def _mutated(harness: Harness, change: Change, mutant: Mutant) -> str:
    entry = harness.shadow.entries(change.head.tree)[mutant.path]
    blob = harness.shadow.add_blob(mutant.content.encode())
    return harness.shadow.compose(change.head.tree, {mutant.path: entry._replace(id=blob)})


def _noticed(ran: Ran, new: frozenset[str]) -> bool | None:
    """Whether a mutant was noticed by a test; None if nothing can be said, as when its file does not even load."""
    if ran.assessment is Assessment.TIMEOUT:
        return True
    if any(item.id in new and item.outcome is Outcome.FAILED for item in ran.items):
        return True
    passed = {item.id for item in ran.items if item.outcome is Outcome.PASSED}
    if ran.evidence is Evidence.PASSED or (ran.evidence is Evidence.FAILED and new <= passed):
        return False  # others in the same file may be red since before the change
    own = [item for item in ran.items if item.id in new and item.outcome in RED]
    return True if own else None


def _is_assertion(item: Item) -> bool:
    """Whether a test failed because something was not as it says, and not because something crashed."""
    return item.outcome is Outcome.FAILED and _ASSERTED.match(item.message) is not None


def _some(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:3])
    return f"{shown} and {len(ids) - 3} more" if len(ids) > 3 else shown
