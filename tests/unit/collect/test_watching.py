"""What the steward of a running study is shown, against what a release of it would give."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from deniable.collect import counting
from deniable.collect.folder import StudyFolder
from deniable.collect.releasing import export
from deniable.collect.store import Outcome, Submission
from deniable.collect.watching import Batch, Watch, leverage
from deniable.errors import InputError
from deniable.estimate.consistency import find_origin
from deniable.estimate.shares import Shares
from deniable.estimate.source import open_release
from deniable.mechanism.channel import Channel
from deniable.mechanism.prediction import Target
from deniable.randomness import SeededRandomness
from deniable.statement.expected_accuracy import expected_accuracy
from unit.collect.studies import TODAY, example_folder, fill, packed


@pytest.fixture
def folder(address: Callable[[], str | None], tmp_path: Path) -> StudyFolder:
    made = example_folder(tmp_path, address())
    fill(made, 300)
    return made


def looked(watch: Watch) -> Batch:
    batch = watch.batch()
    assert batch is not None
    return batch


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
        shown = looked(watch).table(["smokes", "alcohol"])
    assert passes == [["smokes", "alcohol"]]
    (found,) = Shares(("smokes", "alcohol"), target="population").run(
        counting.open_collected(folder.path)
    )
    low, high = found.confidence_interval(0.95)
    assert shown.n_records == 300
    assert [cell.labels for cell in shown.cells][:2] == [
        ("No", "Never"),
        ("No", "About once a month"),
    ]
    assert looked(watch).table(["sleep"]).cells[1].labels == ("5 to under 7",)
    assert [cell.share for cell in shown.cells] == found.unbiased.ravel().tolist()
    assert [cell.low for cell in shown.cells] == low.ravel().tolist()
    assert [cell.high for cell in shown.cells] == high.ravel().tolist()
    passes.clear()
    fill(folder, 10)
    assert looked(watch).table(["smokes", "alcohol"]).n_records == 310
    store.dispose()
    assert len(passes) == 1


def test_no_look_shows_fewer_than_ten_more(folder: StudyFolder) -> None:
    """Whoever looks after every arrival, also when the server is started anew, sees batches."""
    store = folder.open_store()
    watch = Watch(folder, store)
    assert looked(watch).totals.records == 300
    seen = [300]
    for number in range(1, 36):
        record = Submission(bytes([number]) * 32, packed(folder.study, (0, 0, 0, 0, 0)))
        assert store.submit([record], TODAY) == [Outcome.STORED]
        if number == 17:
            store.withdraw("300 0", TODAY)
        if number % 4 == 0:  # another process: what it cannot show, it does not
            watch = Watch(folder, store)
        batch = watch.batch()
        if batch is None:
            continue
        assert len(np.concatenate(batch.packed)) == batch.totals.records
        assert batch.table(["smokes"]).n_records == batch.totals.records
        if batch.totals.records != seen[-1]:
            seen.append(batch.totals.records)
    assert seen == [300, 310, 319, 329]
    store.dispose()


def test_a_server_that_is_started_anew_shows_what_was_shown(folder: StudyFolder) -> None:
    store = folder.open_store()
    before = looked(Watch(folder, store))
    after = looked(Watch(folder, store))
    assert after.totals == before.totals
    (folder.path / "steward.shown").write_text("{}")
    with pytest.raises(InputError, match=r"steward.shown: not a valid file .* remove it"):
        Watch(folder, store).batch()
    store.dispose()


def test_fewer_than_ten_are_not_shown(tmp_path: Path) -> None:
    folder = example_folder(tmp_path)
    with folder.opened() as store:
        watch = Watch(folder, store)
        assert watch.batch() is None
        fill(folder, 9)
        assert watch.batch() is None
        store.close()
        assert watch.batch() is None
        assert Watch(folder, store).batch() is None


def test_what_can_be_read_is_what_a_report_says(folder: StudyFolder) -> None:
    """From as many records as the report's rule says, for one attribute and for two."""
    expected = expected_accuracy(folder.study.design.account)
    with folder.opened() as store:
        batch = looked(Watch(folder, store))
        for shares in [*expected.shares, *(expected.pairs or ())]:
            told = batch.table(shares.attributes, "table").readability
            expects = shares.readability(told.n_records, "table")
            assert told.readable_from == pytest.approx(expects.readable_from, rel=0.35)


@pytest.mark.parametrize("target", ["table", "population"])
def test_page_study_and_export_give_one_verdict(
    folder: StudyFolder, tmp_path: Path, target: Target
) -> None:
    """Failed before: 140 records on the page, none said by `estimate STUDY`, 3,800 rows by
    `estimate EXPORT`."""
    export(folder, tmp_path / "release", SeededRandomness(1))
    with folder.opened() as store:
        batch = looked(Watch(folder, store))
        for names in ("smokes",), ("smokes", "alcohol"):
            shown = batch.table(names, target).readability
            for source in counting.open_collected(folder.path), open_release(tmp_path / "release"):
                (estimate,) = Shares(names, target=target).run(source)
                assert estimate.readability == shown
                assert estimate.to_plain()["readable"] == shown.to_plain()


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
    needed = looked(watch).table(["smokes"]).needed(0.05)
    assert needed > 300
    fill(folder, needed - 300)
    cells = looked(watch).table(["smokes"]).cells
    store.dispose()
    assert max(cell.margin for cell in cells) == pytest.approx(0.05, rel=0.02)


def test_invented_records_are_told_from_draws(
    folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = folder.open_store()
    watch = Watch(folder, store)
    honest = looked(watch).origin
    assert honest is not None
    assert honest is looked(watch).origin
    assert honest.p_value > 1e-3
    assert honest.rows == 300
    record = packed(folder.study, (1, 3, 2, 3, 2))
    store.submit([Submission(bytes([n % 256, n // 256] * 16), record) for n in range(900)], TODAY)
    monkeypatch.setitem(find_origin.__globals__, "MOST_ROWS", 1000)  # one batch has more
    invented = looked(watch).origin
    assert invented is not None
    assert invented.p_value < 1e-6
    store.dispose()


def test_what_cannot_be_shown_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = example_folder(tmp_path)
    fill(folder, 10)
    store = folder.open_store()
    for n in range(10):
        store.withdraw(f"10 {n}", TODAY)
    batch = looked(Watch(folder, store))
    assert batch.origin is None
    assert batch.totals.records == 0
    with pytest.raises(InputError, match="there are no records"):
        batch.table(["smokes"])
    with pytest.raises(InputError, match="twice"):
        batch.table(["smokes", "smokes"])
    monkeypatch.setattr("deniable.collect.watching.MOST_CELLS", 7)
    with pytest.raises(InputError, match=r"has 8 cells, more than .*; use deniable estimate"):
        batch.table(["smokes", "alcohol"])
    store.dispose()
