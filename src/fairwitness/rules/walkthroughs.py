"""A worker's walkthrough held against what the harness saw: the files that changed, and what the tests did."""

from collections.abc import Collection, Iterator

from fairwitness.contracts.forge.documents import TestResult, Walkthrough

DOUBTFUL = 0.6
"""A worker below this confidence is worth a look."""
_SHOWN = 5


def differences(said: Walkthrough, changed: Collection[str], *, red: Collection[str]) -> tuple[str, ...]:
    """Everything in which the two differ, in words. `red` are the checks that failed on the attempt's tree."""
    return (*_files(said, changed), *_tests(said, red))


def _files(said: Walkthrough, changed: Collection[str]) -> Iterator[str]:
    named = {each.path for each in said.files_changed}
    invented, untold = sorted(named - set(changed)), sorted(set(changed) - named)
    if invented:
        yield f"the walkthrough names files that did not change: {_listed(invented)}"
    if untold:
        yield f"files changed that the walkthrough does not name: {_listed(untold)}"


def _tests(said: Walkthrough, red: Collection[str]) -> Iterator[str]:
    """Only a claimed green is compared: whoever says that something is red has said enough."""
    if not red:
        return
    claimed = said.tests or ()
    green = [test.name for test in claimed if test.result is TestResult.PASS]
    if green and not any(test.result in (TestResult.FAIL, TestResult.ERROR) for test in claimed):
        yield f"the walkthrough says that {_listed(green)} pass; for the harness {_listed(sorted(red))} failed"


def _listed(items: list[str]) -> str:
    more = len(items) - _SHOWN
    return ", ".join(items[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def is_doubtful(said: Walkthrough) -> bool:
    """Whether a worker is unsure of its own work."""
    return said.confidence < DOUBTFUL
