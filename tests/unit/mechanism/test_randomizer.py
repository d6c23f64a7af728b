"""Codes in, codes out: batches, order and types."""

import copy
import multiprocessing
import os
import pickle
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import joblib
import numpy as np
import pytest

from deniable.design.design import design
from deniable.laws import Identity, MatrixChannel, PatternTable, ProductLaw, SingleChangeMixture
from deniable.mechanism import randomizer
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SeededRandomness, SystemRandomness
from deniable.schema import Schema
from killing import finished, forked


def mixed_mechanism() -> Mechanism:
    """Six attributes; the blocks are not in the schema's order."""
    schema = Schema.anonymous((3, 4, 2, 300, 5, 2))
    schema = Schema(schema.attributes, keep=("a5",))
    nearly = (1 << 64) - 3 * (1 << 40)
    return Mechanism(
        schema,
        (
            Block((5, 0), PatternTable((2, 3), 64, (nearly, *[1 << 40] * 3))),
            Block((4,), Identity((5,))),
            Block((2,), MatrixChannel((2,), 30, (((1 << 30) - 2, 1), (1, 1), (1, (1 << 30) - 2)))),
            Block((3,), ProductLaw((300,), 64, ((1 << 64) - (1 << 40),))),
            Block((1,), SingleChangeMixture((4,), 64, 1 << 40, (1 << 64) - (1 << 40), (0,))),
        ),
    )


def columns(sizes: tuple[int, ...], count: int) -> list[np.ndarray]:
    generator = np.random.default_rng(8)
    return [generator.integers(0, n, count).astype(np.uint16) for n in sizes]


def test_every_column_comes_back_in_its_place_when_the_laws_hardly_change_anything() -> None:
    # Every law keeps with probability above 1 - 3e-7: what is mixed up would show.
    mechanism = mixed_mechanism()
    given = columns(mechanism.schema.n_categories, 2000)
    released = Randomizer(mechanism, SeededRandomness(1)).randomize(given)
    assert len(released) == 6
    for i in (0, 1, 3, 4, 5):
        np.testing.assert_array_equal(released[i], given[i])
    np.testing.assert_array_equal(released[2], 2 * given[2])  # the ends of three outputs


@pytest.mark.parametrize("count", [0, 1, 6, 7, 8, 20])
def test_batches_are_joined_without_losing_or_repeating_a_row(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(randomizer, "_ROWS", 7)
    mechanism = mixed_mechanism()
    given = columns(mechanism.schema.n_categories, count)
    released = Randomizer(mechanism, SeededRandomness(2)).randomize(given)
    assert [len(column) for column in released] == [count] * 6
    np.testing.assert_array_equal(released[3], given[3])
    np.testing.assert_array_equal(released[4], given[4])


def test_what_comes_out_is_a_code_of_the_attribute_in_an_unsigned_type() -> None:
    sizes = (2, 128, 129, 256, 257, 5000)
    laws = [ProductLaw.from_levels(sizes, [0.1] * 6)]
    mechanism = Mechanism.of(laws[0])
    given = columns(sizes, 3000)
    for column, n in zip(
        Randomizer(mechanism, SeededRandomness(3)).randomize(given), sizes, strict=True
    ):
        assert column.dtype.kind == "u"
        assert int(column.max()) < n


def test_the_codes_passed_in_are_not_changed() -> None:
    mechanism = mixed_mechanism()
    given = columns(mechanism.schema.n_categories, 50)
    before = [column.copy() for column in given]
    Randomizer(mechanism, SeededRandomness(4)).randomize(given)
    for column, original in zip(given, before, strict=True):
        np.testing.assert_array_equal(column, original)


def test_attribute_by_attribute_every_column_comes_back_under_its_number() -> None:
    mechanism = mixed_mechanism()
    given = columns(mechanism.schema.n_categories, 200_000)  # more than a piece
    fetched: list[int] = []

    def codes_of(i: int) -> np.ndarray:
        fetched.append(i)
        return given[i]

    released = Randomizer(mechanism, SeededRandomness(1)).by_attribute(200_000, codes_of)
    for count, (i, codes) in enumerate(released, 1):
        assert fetched[-1] == i
        assert len(fetched) == count  # none is fetched before its turn
        assert np.mean(codes == (2 if i == 2 else 1) * given[i]) > 0.9999
    assert sorted(fetched) == list(range(6))
    with pytest.raises(ValueError, match="is not below its categories"):
        list(Randomizer(mechanism, SeededRandomness(1)).by_attribute(1, lambda _: np.array([9])))


class CountingBits(SeededRandomness):
    """Counts the bytes handed out."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.used = 0

    def bits(self, dtype: type, count: int) -> np.ndarray:
        self.used += count * np.dtype(dtype).itemsize
        return super().bits(dtype, count)


def test_the_same_bits_give_the_same_pattern_of_changes_whatever_the_records_are() -> None:
    sizes = (3, 4, 2)
    weights = (*range(1, 8), (1 << 64) - 28)
    for law in (
        ProductLaw.from_levels(sizes, (0.5, 1.0, 2.0)),
        PatternTable(sizes, 64, weights),
        SingleChangeMixture(sizes, 8, 100, 56, (50, 20, 30)),
    ):
        mechanism = Mechanism.of(law)
        shifts, used = [], []
        for given in (columns(sizes, 4000), [np.zeros(4000, dtype=np.uint8)] * 3):
            source = CountingBits(5)
            released = Randomizer(mechanism, source).randomize(given)
            shifts.append(
                [
                    (out.astype(int) - code) % n
                    for out, code, n in zip(released, given, sizes, strict=True)
                ]
            )
            used.append(source.used)
        np.testing.assert_array_equal(shifts[0], shifts[1])
        assert used[0] == used[1]


# --- copies --------------------------------------------------------------------------------------


def votes() -> Mechanism:
    return design(Schema.anonymous((2, 3, 4, 5)), epsilon=3, method="balanced").mechanism


@pytest.mark.parametrize("make", [votes, mixed_mechanism])
def test_a_copied_randomizer_draws_by_the_same_law_with_other_bits(
    make: Callable[[], Mechanism],
) -> None:
    mechanism = make()
    randomizer = Randomizer(mechanism, SystemRandomness())
    given = [np.zeros(5000, dtype=np.uint16)] * len(mechanism.schema.attributes)

    def drawn(one: Randomizer) -> bytes:
        return b"".join(column.tobytes() for column in one.randomize(given))

    copies = [randomizer, copy.copy(randomizer), pickle.loads(pickle.dumps(randomizer))]
    if make is votes:
        with ThreadPoolExecutor(4) as threads:
            outputs = list(threads.map(drawn, [*copies, *copies]))
        assert len(set(outputs)) == len(outputs)
    seeded = [Randomizer(one.mechanism, SeededRandomness(1)) for one in copies]
    assert len({drawn(one) for one in seeded}) == 1


def test_a_forked_randomizer_draws_other_bits() -> None:
    mechanism = votes()
    randomizer = Randomizer(mechanism, SystemRandomness())
    given = [np.zeros(5000, dtype=np.uint16)] * 4
    read, write = os.pipe()

    def child() -> None:
        os.write(write, randomizer.randomize(given)[3].tobytes())

    assert finished(forked(child))
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        theirs = answer.read()
    assert len(theirs) == 5000
    assert theirs != randomizer.randomize(given)[3].tobytes()


_HANDED_OUT = [np.zeros(5000, dtype=np.uint16)] * 4


def _in_a_worker(randomizer: Randomizer) -> tuple[int, bytes]:
    time.sleep(0.05)  # so that the other workers get some too
    return os.getpid(), b"".join(column.tobytes() for column in randomizer.randomize(_HANDED_OUT))


def test_workers_of_a_pool_that_get_one_randomizer_draw_different_bits() -> None:
    # As joblib does: copies of one object, pickled, several to a process that lives on.
    randomizer = Randomizer(votes(), SystemRandomness())
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        found = list(pool.map(_in_a_worker, [randomizer] * 6))
    assert len({drawn for _, drawn in found}) == 6
    assert os.getpid() not in {process for process, _ in found}


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_joblib_hands_out_copies_that_draw_different_bits(backend: str) -> None:
    randomizer = Randomizer(votes(), SystemRandomness())
    found: set[bytes] = set()
    with joblib.Parallel(n_jobs=2, backend=backend) as parallel:
        for _ in range(2):  # a worker that lives on gets copies again
            drawn = parallel([joblib.delayed(randomizer.randomize)(_HANDED_OUT)] * 4)
            found |= {b"".join(column.tobytes() for column in columns) for columns in drawn}
    assert len(found) == 8


def test_bits_from_elsewhere_are_drawn_with_by_the_same_tables() -> None:
    first = Randomizer(votes(), SeededRandomness(1))
    second, fresh = first.with_bits(SeededRandomness(2)), Randomizer(votes(), SeededRandomness(2))
    given = columns((2, 3, 4, 5), 500)
    for drawn, expected in zip(second.randomize(given), fresh.randomize(given), strict=True):
        assert np.array_equal(drawn, expected)
    assert second._samplers is first._samplers
    assert isinstance(first.source, SeededRandomness)
    assert first.source is not second.source
