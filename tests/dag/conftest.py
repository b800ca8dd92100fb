"""The grounds on which runs are killed; one for each process that tests."""

from collections.abc import Iterator

import pytest

from dag.kills import Grounds


@pytest.fixture(scope="session")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grounds]:
    """Runs that nobody killed are kept here, to hold others against them."""
    made = Grounds(tmp_path_factory.mktemp("kills"))
    yield made
    made.close()
