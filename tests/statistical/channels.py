"""Counting what a randomizer does, and ways in which it could be wrong."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SystemRandomness
from laws import brute_force as oracle

Columns = list[NDArray[np.intp]]
Randomize = Callable[[Columns], Columns]


def as_drawn(mechanism: Mechanism) -> Randomize:
    """The sampler under test, on fresh bits from the operating system."""
    randomizer = Randomizer(mechanism, SystemRandomness())

    def randomize(columns: Columns) -> Columns:
        narrow = [c.astype(np.uint16) for c in columns]
        return [out.astype(np.intp) for out in randomizer.randomize(narrow)]

    return randomize


def attribute_by_attribute(mechanism: Mechanism) -> Randomize:
    """The same, all rows' codes of one attribute after the other."""
    randomizer = Randomizer(mechanism, SystemRandomness())

    def randomize(columns: Columns) -> Columns:
        narrow = [c.astype(np.uint16) for c in columns]
        drawn = dict(randomizer.by_attribute(len(columns[0]), narrow.__getitem__))
        return [drawn[i].astype(np.intp) for i in range(len(columns))]

    return randomize


@dataclass(frozen=True)
class Defect:
    """A mistake that a sampler could make, as a function of the true and the released codes."""

    name: str
    change: Callable[[Columns, Columns, Sequence[int]], Columns]

    def planted_in(self, randomize: Randomize, sizes: Sequence[int]) -> Randomize:
        return lambda columns: self.change(columns, randomize(columns), sizes)

    def channel(self, channel: NDArray[np.float64], sizes: Sequence[int]) -> NDArray[np.float64]:
        """The exact channel of a sampler with this defect, shape (inputs, outputs)."""
        total = int(np.prod(sizes))
        x, y = np.divmod(np.arange(total * total), total)
        split = [list(np.unravel_index(codes, sizes)) for codes in (x, y)]
        wrong = np.ravel_multi_index(self.change(split[0], split[1], sizes), sizes)
        result = np.zeros_like(channel)
        np.add.at(result, (x, wrong), channel[x, y])
        return result


def _at(i: int, one: Callable[..., NDArray[np.intp]]) -> Callable[..., Columns]:
    # Change only column i: one(true, released, n_categories).
    def change(true: Columns, released: Columns, sizes: Sequence[int]) -> Columns:
        place = i % len(sizes)
        return [
            one(t, r, n) if j == place else r
            for j, (t, r, n) in enumerate(zip(true, released, sizes, strict=True))
        ]

    return change


def _lie_may_be_true(true: NDArray, released: NDArray, n: int) -> NDArray:
    # The shift of a changed attribute in 0 … a−2 instead of 1 … a−1.
    return np.where(released == true, true, (released - 1) % n)


def _shift_off_by_one(true: NDArray, released: NDArray, n: int) -> NDArray:
    return (released + 1) % n


def _last_category_never_chosen(true: NDArray, released: NDArray, n: int) -> NDArray:
    # Among the others, the last one is never chosen and the first one twice as often.
    return np.where((released - true) % n == n - 1, (true + 1) % n, released)


def _one_category_is_safe(true: NDArray, released: NDArray, n: int) -> NDArray:
    return np.where(true == 0, true, released)


def _untouched(true: NDArray, released: NDArray, n: int) -> NDArray:
    return true


def _correlated(true: Columns, released: Columns, sizes: Sequence[int]) -> Columns:
    # The last attribute moves as the first one does: both alone are as they should be.
    shift = (released[0] - true[0]) % sizes[0]
    return [*released[:-1], (true[-1] + shift) % sizes[-1]]


def _exchanged(true: Columns, released: Columns, sizes: Sequence[int]) -> Columns:
    return [released[-1], *released[1:-1], released[0]]


def single_attribute_defects(n_attributes: int) -> list[Defect]:
    """Every mistake about one attribute, at every position."""
    kinds = {
        "the lie may be the truth": _lie_may_be_true,
        "the shift is off by one": _shift_off_by_one,
        "the last category is never chosen": _last_category_never_chosen,
        "one category is never changed": _one_category_is_safe,
        "the attribute is left untouched": _untouched,
    }
    return [
        Defect(f"{name}, attribute {i}", _at(i, one))
        for name, one in kinds.items()
        for i in range(n_attributes)
    ]


CORRELATED = Defect("two attributes move together", _correlated)
EXCHANGED = Defect("two columns are exchanged", _exchanged)


def exact_channel(mechanism: Mechanism) -> NDArray[np.float64]:
    """Pr[y | x] by brute force, shape (inputs, outputs)."""
    channel = oracle.channel_of_mechanism(mechanism)
    return np.array([[float(chance) for chance in row.values()] for row in channel.values()])


def count_cells(
    randomize: Randomize, sizes: Sequence[int], n_outputs: Sequence[int], repeats: int
) -> NDArray[np.int64]:
    """Randomize every possible record ``repeats`` times; counts of shape (inputs, outputs)."""
    inputs, outputs = int(np.prod(sizes)), int(np.prod(n_outputs))
    x = np.tile(np.arange(inputs), repeats)
    released = randomize(list(np.unravel_index(x, sizes)))
    y = np.ravel_multi_index(released, n_outputs)
    return np.bincount(x * outputs + y, minlength=inputs * outputs).reshape(inputs, outputs)


def some_records(sizes: Sequence[int], count: int) -> Columns:
    """Records in which every category of every attribute occurs."""
    # Row r of attribute i has (r(2i + 1) + i) mod n, which comes round again after n rows.
    rounds = [((np.arange(n) * (2 * i + 1) + i) % n) for i, n in enumerate(sizes)]
    return [np.tile(once, -(-count // len(once)))[:count] for once in rounds]


def count_shifts(randomize: Randomize, sizes: Sequence[int], count: int) -> list[NDArray[np.int64]]:
    """Per attribute, how often it moved by 0 … a−1, shape (a,)."""
    true = some_records(sizes, count)
    released = randomize(true)
    shifts = []
    for t, r, n in zip(true, released, sizes, strict=True):
        # Differences lie between 1 − n and n − 1: those below 0 stand for n more.
        counts = np.bincount(r - t + (n - 1), minlength=2 * n - 1)
        assert len(counts) == 2 * n - 1
        shifts.append(counts[n - 1 :] + np.append(0, counts[: n - 1]))
    return shifts


def count_patterns(randomize: Randomize, sizes: Sequence[int], count: int) -> NDArray[np.int64]:
    """How often every pattern of changes occurred, shape (2^k,), in C order."""
    true = some_records(sizes, count)
    pattern = np.zeros(count, dtype=np.intp)
    for t, r in zip(true, randomize(true), strict=True):
        pattern = 2 * pattern + (t != r)
    return np.bincount(pattern, minlength=1 << len(sizes))
