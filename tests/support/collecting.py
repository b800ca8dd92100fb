"""Pytest hooks that leave out what the present width does not take; tests/conftest.py takes them over."""

import time
from collections.abc import Generator

import pytest

from support import ladder

_SHARED = {"file": 0.0, "session": 0.0}
"""Seconds that the present test spent on fixtures that it shares with its file, and with all tests."""


@pytest.hookimpl(trylast=True)  # after the order was shuffled: a slice has an order of its own
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the present width does not take; a test that the command line names is always taken."""
    if all("::" in argument for argument in config.args):
        return
    taken, left = ladder.choose(items)
    if left:
        config.hook.pytest_deselected(items=left)
    items[:] = taken if ladder.SLICE else ladder.dearest_first(taken)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what a slice has no time left for."""
    if ladder.is_out_of_time():
        pytest.skip("the time of this slice is used up")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Write down the seconds of a test when costs are measured."""
    began = time.monotonic()
    _SHARED.update(file=0.0, session=0.0)
    result = yield
    if ladder.IS_MEASURING:
        ladder.write_cost(item, time.monotonic() - began - sum(_SHARED.values()), _SHARED["file"])
    return result


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Count the seconds of a fixture that other tests use as well; the first of them does not pay for all."""
    began, before = time.monotonic(), dict(_SHARED)
    result = yield
    if fixturedef.scope == "session":
        _SHARED.update(before, session=before["session"] + time.monotonic() - began)
    elif fixturedef.scope != "function":  # fixtures that this one asked for are within its time
        within = _SHARED["session"] - before["session"]
        _SHARED["file"] = before["file"] + time.monotonic() - began - within
    return result
