"""Pytest hooks that leave out what the present width does not take; tests/conftest.py takes them over."""

from collections.abc import Generator

import pytest

from support import ladder


@pytest.hookimpl(trylast=True)  # after the order was shuffled: a slice has an order of its own
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the present width does not take; a test that the command line names is always taken."""
    if all("::" in argument for argument in config.args):
        return
    taken, left = ladder.choose(items)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = taken


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what a slice has no time left for."""
    if ladder.is_out_of_time():
        pytest.skip("the time of this slice is used up")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Write down the CPU seconds of a test and its processes when costs are measured."""
    before = ladder.cpu_seconds()
    result = yield
    if ladder.IS_MEASURING:
        ladder.write_cost(item, ladder.cpu_seconds() - before)
    return result
