"""A law that the library has never heard of goes all the way: subclass, one entry in FAMILIES, and
one in the families of the method that makes it."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.shares import Shares
from deniable.estimate.tabulate import Counts
from deniable.laws import FAMILIES
from deniable.laws.law import PatternLaw, Ratio, ShiftSampler
from deniable.laws.plain import PlainLaw
from deniable.laws.product import ProductLaw
from deniable.laws.transforms import kernel_of
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.mechanism.strength import mechanism_strength
from deniable.randomness import BitSource, ExactCategorical, SeededRandomness
from deniable.schema import Schema
from deniable.statement.account import Design
from deniable.statement.bound import lower_bound
from deniable.statement.methods import METHODS
from deniable.statement.record import mechanism_from_plain, mechanism_to_plain


class PlainAllOrNothing(PlainLaw, tag="all-or-nothing"):
    uniform: int


@dataclass(frozen=True)
class AllOrNothing(PatternLaw):
    """The record as it is, or, of 256 times so many, a uniform one."""

    family: ClassVar[str] = "all-or-nothing"
    Plain = PlainAllOrNothing

    n_categories: tuple[int, ...]
    uniform: int

    def record_level(self, subset: Sequence[int] | None = None) -> tuple[Ratio, ...]:
        seen = math.prod(
            self.n_categories if subset is None else [self.n_categories[i] for i in subset]
        )
        return (((256 - self.uniform) * seen + self.uniform, self.uniform),)

    def eigenvalues(self, subset: Sequence[int]) -> NDArray[np.float64]:
        values = np.full((2,) * len(subset), 1 - self.uniform / 256)
        values[(0,) * len(subset)] = 1
        return values

    def sampler(self) -> "AllOrNothingSampler":
        return AllOrNothingSampler(self)

    def to_plain(self) -> dict[str, Any]:
        return {"family": self.family, "uniform": self.uniform}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> "AllOrNothing":
        return cls(n_categories, int(plain["uniform"]))


class AllOrNothingSampler(ShiftSampler):
    def __init__(self, law: AllOrNothing) -> None:
        super().__init__(law.n_categories)
        self._coin = ExactCategorical([256 - law.uniform, law.uniform])
        self._any = [ExactCategorical([1] * n) for n in law.n_categories]

    def draws(self, law: AllOrNothing) -> bool:
        return self._coin.draws_by([256 - law.uniform, law.uniform]) and all(
            table.draws_by([1] * n) for table, n in zip(self._any, law.n_categories, strict=True)
        )

    def walk(self, count: int, source: BitSource) -> Iterator[NDArray[Any]]:
        coin = self._coin.draw(count, source)
        return (table.draw(count, source) * coin for table in self._any)


LAW = AllOrNothing((3, 2), 100)
SCHEMA = Schema.anonymous((3, 4, 2))
BLOCKS = (Block((0, 2), LAW), Block((1,), ProductLaw.from_levels((4,), (1.0,))))
MECHANISM = Mechanism(SCHEMA, BLOCKS)


def test_its_levels_are_those_of_its_whole_matrix() -> None:
    single = kernel_of(LAW.eigenvalues((0, 1)), LAW.n_categories)
    assert MECHANISM.epsilon == pytest.approx(math.log(single.max() / single.min()) + 1.0)
    assert MECHANISM.subset_epsilon(["a1"]) == MECHANISM.attribute_epsilon[0]
    assert MECHANISM.attribute_epsilon[0] == pytest.approx(math.log(156 * 3 / 100 + 1))
    assert MECHANISM.epsilon_given_rest[2] == pytest.approx(math.log(156 * 6 / 100 + 1))
    keep = [156 / 256 + 100 / 256 / n for n in (3, 2)]
    assert [MECHANISM.keep_probability[i] for i in (0, 2)] == pytest.approx(keep)
    assert LAW.least_pair_ratio() == pytest.approx(256 / 156)


def test_its_strength_is_accounted() -> None:
    found = mechanism_strength(Mechanism(Schema.anonymous((3, 2)), (Block((0, 1), LAW),)))
    p, q = 156 / 256 + 100 / 256 / 6, 100 / 256 / 6
    assert found.entropy == pytest.approx(-p * math.log2(p) - 5 * q * math.log2(q))
    assert found.attenuation == pytest.approx((156 / 256, 156 / 256))
    assert found.not_computed == ""


def test_its_record_is_written_and_read_back_once_it_is_among_the_families(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    claimed = Mechanism(SCHEMA, BLOCKS, MECHANISM.promise())
    design = Design(claimed, "balanced", (None,) * 3, lower_bound(claimed, None))
    plain = json.loads(json.dumps(mechanism_to_plain(design)))
    with pytest.raises(InputError, match="a family of laws that this version does not know"):
        mechanism_from_plain(plain)
    monkeypatch.setitem(FAMILIES, AllOrNothing.family, AllOrNothing)
    with pytest.raises(InputError, match="balanced makes no law of the family all-or-nothing"):
        mechanism_from_plain(plain)
    families = frozenset({AllOrNothing.family, ProductLaw.family})
    method = replace(METHODS[design.method], families=families)
    monkeypatch.setitem(METHODS, design.method, method)
    assert mechanism_from_plain(plain) == design
    plain["blocks"][0]["law"]["uniform"] = 99
    with pytest.raises(InputError, match="breaks its claim"):
        mechanism_from_plain(plain)


def test_what_it_draws_is_estimated() -> None:
    n = 20_000
    truth = np.random.default_rng(1).integers(0, [[3], [4], [2]], (3, n))
    truth[2] = truth[0] == 2
    released = Randomizer(MECHANISM, SeededRandomness(2)).randomize(list(truth))
    assert 0.7 < np.mean(released[0] == truth[0]) < 0.8
    counts = np.zeros((3, 2))
    np.add.at(counts, (released[0], released[2]), 1)
    (estimate,) = Shares(("a1", "a3")).answer(Counts.of(MECHANISM, counts))
    exact = np.array(
        [[np.mean((truth[0] == a) & (truth[2] == b)) for b in (0, 1)] for a in range(3)]
    )
    assert np.all(np.abs(estimate.values - exact) < 6 * estimate.standard_error)
