"""Stores to try everything on."""

from collections.abc import Callable, Iterator

import pytest

from unit.collect import postgres

POSTGRESQL = pytest.param(
    "postgresql",
    marks=[pytest.mark.slow, pytest.mark.skipif(not postgres.INITDB, reason=postgres.REASON)],
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[postgres.Cluster]:
    with postgres.cluster() as running:
        yield running


@pytest.fixture(scope="module", params=["sqlite", POSTGRESQL])
def address(request: pytest.FixtureRequest) -> Callable[[], str | None]:
    """Gives the address of a new, empty store; None for a file in the study's folder."""
    if request.param == "sqlite":
        return lambda: None
    running: postgres.Cluster = request.getfixturevalue("cluster")
    return lambda: running.url(running.database())
