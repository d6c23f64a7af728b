"""Questions asked of a running study get what a release of it would give."""

from collections.abc import Callable
from pathlib import Path

import pytest

from deniable.collect.client import draw
from deniable.collect.collector import submission_of
from deniable.collect.counting import open_collected
from deniable.collect.releasing import export
from deniable.errors import InputError
from deniable.estimate.shares import Shares
from deniable.estimate.source import open_release
from deniable.randomness import SeededRandomness
from unit.collect.studies import ANSWERS, TODAY, example_folder


def test_a_study_answers_like_its_release(
    address: Callable[[], str | None], tmp_path: Path
) -> None:
    folder = example_folder(tmp_path, address())
    with pytest.raises(InputError, match="there are no records"):
        open_collected(folder.path).count(["smokes"])
    bodies = [draw(folder.study, ANSWERS, "", SeededRandomness(n)).body for n in range(60)]
    store = folder.open_store()
    store.submit([submission_of(folder.study, body) for body in bodies], TODAY)
    store.dispose()
    export(folder, tmp_path / "release", SeededRandomness(1))
    for query in (Shares(("smokes",)), Shares(("sleep", "alcohol"))):
        running = query.run(open_collected(folder.path))
        released = query.run(open_release(tmp_path / "release"))
        assert query.to_plain(running) == query.to_plain(released)
    with pytest.raises(InputError, match="collect export makes a release that does"):
        open_collected(folder.path).count(["smokes"], by=["lonely"])
