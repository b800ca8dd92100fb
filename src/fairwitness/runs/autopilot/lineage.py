"""Passes that belong together: those of a phase, and an enforcement with the pass whose steps it repeats."""

from typing import Final

from fairwitness.contracts.autopilot.passes import PassKind, PhasePass, StepResult
from fairwitness.contracts.common.evidence import Observation
from fairwitness.runs.autopilot.book import AutopilotBook, pass_name

RATING: Final = "rating"
"""The kind of document in which a rating is kept; its subject is the phase."""


def passes_of(book: AutopilotBook, phase: str) -> tuple[PhasePass, ...]:
    """The passes of a phase, in order."""
    return tuple(each for each in book.passes() if each.phase == phase)


def lineage(book: AutopilotBook, asked: PhasePass) -> tuple[PhasePass, ...]:
    """A pass with those before it whose steps it repeats; the first of them is the one that was no repetition."""
    found: list[PhasePass] = []
    for each in passes_of(book, asked.phase):
        if each.number <= asked.number:
            found = [*found, each] if each.kind is PassKind.AGAIN else [each]
    return tuple(found)


def origin(book: AutopilotBook, asked: PhasePass) -> PhasePass:
    """The pass that an enforcement repeats steps of; of any other pass, itself."""
    return next(iter(lineage(book, asked)), asked)


def tasks_of(book: AutopilotBook, asked: PhasePass) -> tuple[str, ...]:
    """The tasks of a part, also where steps of it are done again; of any other pass none, since it has all."""
    return origin(book, asked).tasks


def results_of(book: AutopilotBook, asked: PhasePass) -> tuple[StepResult, ...]:
    """How all steps of a lineage ended, in order."""
    return tuple(result for each in lineage(book, asked) for result in book.results(each))


def revert_key(asked: PhasePass) -> str:
    """Under what it is kept that the work of a pass was taken back."""
    return f"reverted:{pass_name(asked)}"


def standing_rating(book: AutopilotBook, phase: str) -> Observation | None:
    """The last rating of a phase whose work was not taken back."""
    gone = {
        pass_name(each)
        for asked in passes_of(book, phase)
        if book.ledger.observation(book.run_id, revert_key(asked)) is not None
        for each in lineage(book, asked)
    }
    rows = [row for row in book.ledger.observations(book.run_id, RATING) if row.subject == phase]
    return next((row for row in reversed(rows) if row.key.split(":")[1] not in gone), None)
