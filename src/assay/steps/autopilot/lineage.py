"""Passes that belong together: those of a phase, and an enforcement with the pass whose steps it repeats."""

from assay.contracts.autopilot.passes import PassKind, PhasePass, StepResult
from assay.steps.autopilot.book import AutopilotBook


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


def results_of(book: AutopilotBook, asked: PhasePass) -> tuple[StepResult, ...]:
    """How all steps of a lineage ended, in order."""
    return tuple(result for each in lineage(book, asked) for result in book.results(each))
