"""Pytest hooks that leave out what the present width does not take; tests/conftest.py takes them over."""

import pytest

from support import ladder


@pytest.hookimpl(trylast=True)  # after the order was shuffled: a slice has an order of its own
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the present width does not take."""
    taken, left = ladder.choose(items)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = taken


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what a slice has no time left for."""
    if ladder.is_out_of_time():
        pytest.skip("the time of this slice is used up")
