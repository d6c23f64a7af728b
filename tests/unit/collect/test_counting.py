"""Questions asked of a running study get what a release of it would give."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from deniable.collect.client import draw
from deniable.collect.collector import submission_of
from deniable.collect.counting import collected_by, open_collected
from deniable.collect.releasing import export
from deniable.errors import InputError
from deniable.estimate.consistency import find_origin
from deniable.estimate.shares import Shares
from deniable.estimate.source import open_release
from deniable.randomness import SeededRandomness
from unit.collect.studies import ANSWERS, TODAY, example_folder


def test_a_study_is_asked_like_its_release(
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
    for question in (Shares(("smokes",)), Shares(("sleep", "alcohol"))):
        running = question.ask(open_collected(folder.path))
        released = question.ask(open_release(tmp_path / "release"))
        assert question.to_plain(running) == question.to_plain(released)
    with pytest.raises(InputError, match="collect export makes a release that does"):
        open_collected(folder.path).count(["smokes"], by=["lonely"])


def test_records_that_nobody_drew_are_told_from_drawn_ones(tmp_path: Path) -> None:
    folder = example_folder(tmp_path)
    assert find_origin(open_collected(folder.path)) is None
    drawn = [
        submission_of(folder.study, draw(folder.study, ANSWERS, "", SeededRandomness(n)).body)
        for n in range(300)
    ]
    store = folder.open_store()
    store.submit(drawn[:100], TODAY)
    honest = find_origin(open_collected(folder.path))
    assert honest is not None
    assert honest.rows == 100
    assert honest.p_value > 1e-3
    store.submit([replace(each, record=drawn[0].record) for each in drawn[100:]], TODAY)
    found = find_origin(collected_by(folder, store))
    store.dispose()
    assert found is not None
    assert found.p_value < 1e-6


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not the folder of a study"):
        open_collected(tmp_path)
