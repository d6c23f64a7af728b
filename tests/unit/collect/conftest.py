"""Stores to try everything on."""

from collections.abc import Callable, Iterator

import pytest

from deniable.collect.folder import StudyFolder
from unit.collect import postgres
from unit.collect.studies import example_folder

POSTGRESQL = pytest.param(
    "postgresql",
    marks=[pytest.mark.slow, pytest.mark.skipif(not postgres.INITDB, reason=postgres.REASON)],
)


@pytest.fixture(scope="session")
def cluster() -> Iterator[postgres.Cluster]:
    with postgres.cluster(durable=False) as running:
        yield running


@pytest.fixture(scope="module", params=["sqlite", POSTGRESQL])
def address(request: pytest.FixtureRequest) -> Callable[[], str | None]:
    """Gives the address of a new, empty store; None for a file in the study's folder."""
    if request.param == "sqlite":
        return lambda: None
    running: postgres.Cluster = request.getfixturevalue("cluster")
    return lambda: running.url(running.database())


@pytest.fixture(scope="module")
def everyone(
    address: Callable[[], str | None], tmp_path_factory: pytest.TempPathFactory
) -> StudyFolder:
    """The folder of a study that anyone may answer."""
    return example_folder(tmp_path_factory.mktemp("everyone"), address())


@pytest.fixture(scope="module")
def invited(
    address: Callable[[], str | None], tmp_path_factory: pytest.TempPathFactory
) -> StudyFolder:
    """The folder of a study by invitation."""
    folder = tmp_path_factory.mktemp("invited")
    return example_folder(folder, address(), respondents='"invited"')
