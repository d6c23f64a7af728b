"""What the steward of a running study is shown, against what a release of it would give."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from deniable.collect import counting
from deniable.collect.folder import StudyFolder
from deniable.collect.store import Submission
from deniable.collect.watching import Watch, leverage
from deniable.errors import InputError
from deniable.estimate.consistency import find_origin
from deniable.estimate.shares import Shares
from deniable.mechanism.channel import Channel
from unit.collect.studies import TODAY, example_folder, fill, packed


@pytest.fixture
def folder(address: Callable[[], str | None], tmp_path: Path) -> StudyFolder:
    made = example_folder(tmp_path, address())
    fill(made, 300)
    return made


def test_tables_are_those_of_the_study_counted_again_when_it_changes(
    folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = folder.open_store()
    watch, passes = Watch(folder, store), []
    plain = counting.Collected._tabulated
    monkeypatch.setattr(
        counting.Collected,
        "_tabulated",
        lambda self, *rest: passes.append(rest[-1]) or plain(self, *rest),
    )
    for _ in range(2):
        shown = watch.table(["smokes", "alcohol"])
    assert passes == [["smokes", "alcohol"]]
    (found,) = Shares(("smokes", "alcohol"), target="population").ask(
        counting.open_collected(folder.path)
    )
    low, high = found.confidence_interval(0.95)
    assert shown.n_records == 300
    assert [cell.labels for cell in shown.cells][:2] == [
        ("No", "Never"),
        ("No", "About once a month"),
    ]
    assert watch.table(["sleep"]).cells[1].labels == ("5 to under 7",)
    assert [cell.share for cell in shown.cells] == found.unbiased.ravel().tolist()
    assert [cell.low for cell in shown.cells] == low.ravel().tolist()
    assert [cell.high for cell in shown.cells] == high.ravel().tolist()
    passes.clear()
    store.submit([Submission(b"x" * 32, packed(folder.study, (0, 0, 0, 0, 0)))], TODAY)
    assert watch.table(["smokes", "alcohol"]).n_records == 301
    store.dispose()
    assert len(passes) == 1


def test_false_records_move_a_share_by_no_more_than_its_leverage(folder: StudyFolder) -> None:
    mechanism = folder.study.design.mechanism
    phi = Channel(mechanism, ("smokes",)).attenuation[1]
    assert leverage(Channel(mechanism, ("smokes",))) == pytest.approx(1 / phi)
    channel = Channel(mechanism, ("smokes", "alcohol"))
    bound = leverage(channel)
    honest = np.random.default_rng(1).dirichlet(np.ones(8)).reshape(2, 4)
    most = np.zeros(bound.shape)
    for false in np.ndindex(2, 4):  # a tenth of all records say this
        invented = 0.9 * honest
        invented[false] += 0.1
        moved = channel.inverse.apply(invented) - channel.inverse.apply(honest)
        assert (np.abs(moved) <= 0.1 * bound + 1e-12).all()
        most = np.maximum(most, np.abs(moved))
    assert (most > 0.04 * bound).all()


def test_the_records_that_are_needed_give_the_wished_precision(folder: StudyFolder) -> None:
    store = folder.open_store()
    watch = Watch(folder, store)
    needed = watch.table(["smokes"]).needed(0.05)
    assert needed > 300
    fill(folder, needed - 300)
    cells = watch.table(["smokes"]).cells
    store.dispose()
    assert max(cell.margin for cell in cells) == pytest.approx(0.05, rel=0.02)


def test_invented_records_are_told_from_draws(
    folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = folder.open_store()
    watch = Watch(folder, store)
    honest = watch.origin()
    assert honest is not None
    assert honest is watch.origin()
    assert honest.p_value > 1e-3
    assert honest.rows == 300
    record = packed(folder.study, (1, 3, 2, 3, 2))
    store.submit([Submission(bytes([n % 256, n // 256] * 16), record) for n in range(900)], TODAY)
    monkeypatch.setitem(find_origin.__globals__, "MOST_ROWS", 1000)  # one batch has more
    invented = watch.origin()
    assert invented is not None
    assert invented.p_value < 1e-6
    store.dispose()


def test_what_cannot_be_shown_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = example_folder(tmp_path)
    store = folder.open_store()
    watch = Watch(folder, store)
    assert watch.origin() is None
    assert watch.totals().records == 0
    with pytest.raises(InputError, match="there are no records"):
        watch.table(["smokes"])
    with pytest.raises(InputError, match="twice"):
        watch.table(["smokes", "smokes"])
    monkeypatch.setattr("deniable.collect.watching.MOST_CELLS", 7)
    with pytest.raises(InputError, match="has 8 cells; deniable estimate writes it"):
        watch.table(["smokes", "alcohol"])
    store.dispose()
