"""Expected errors of a release's shares.

The true shares are taken as even, 1/a, and 1/(a·b) in a table of two attributes; under a pattern
law the mean square error of an attribute's shares does not depend on the truth. With φ the
attenuations, a row contributes to it

    one attribute    (a − 1)(1/φ² − 1)/a²
    two              ((a − 1)(1/φ_a² − 1) + (b − 1)(1/φ_b² − 1)
                      + (a − 1)(b − 1)(1/φ_ab² − 1))/(a·b)²

(:func:`deniable.mechanism.prediction.expected_error`, which is used for response matrices). Under
forms φ² is their joint information Σ w_c φ_c² (docs/proofs/forms.md, Theorem 2). The standard
error of a share is inversely proportional to the root of the number of rows.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws import PatternLaw
from deniable.laws.votes.vote_law import VoteLaw
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import Target, expected_error
from deniable.mechanism.privacy import finite_or_none
from deniable.mechanism.published import channel_of
from deniable.mechanism.readability import Readability, is_readable
from deniable.schema import Schema
from deniable.statement.account import PAIRS_UP_TO, Account
from deniable.statement.strata import Designs


class Shares(NamedTuple):
    """The shares of one attribute, or the cells of several.

    Args:
        attributes: their names.
        cells: number of shares.
        variance: of one of them from one row; inf if the randomization has destroyed them.
    """

    attributes: tuple[str, ...]
    cells: int
    variance: float

    def readability(self, n_records: int, target: Target = "table") -> Readability:
        """Return the readability at this number of rows, if all cells are equally frequent."""
        sampled = (self.cells - 1) / self.cells**2 if target == "population" else 0.0
        error = math.sqrt((self.variance + sampled) / n_records)
        readable = self.cells if is_readable(1 / self.cells, error) else 0
        return Readability(
            *(self.attributes, self.cells, readable),
            *(finite_or_none(error), n_records, target),
        )


@dataclass(frozen=True)
class ExpectedAccuracy:
    """Expected accuracy of estimates, for any number of rows."""

    shares: tuple[Shares, ...]
    pairs: tuple[Shares, ...] | None

    def to_plain(self, n_records: int, target: Target = "table") -> dict[str, Any]:
        """Return plain values for this number of rows: the readability of ``attributes``, and the
        number of tables of two attributes with at least half of the cells readable (``pairs``;
        None if not known)."""
        if n_records < 1:
            raise InputError("the number of rows must be at least 1")
        pairs = None
        if self.pairs:
            found = [one.readability(n_records, target).is_readable for one in self.pairs]
            pairs = {"tables": len(found), "readable": sum(found)}
        shares = [one.readability(n_records, target).to_plain() for one in self.shares]
        return {"attributes": shares, "pairs": pairs}


@dataclass(frozen=True)
class EvenTables:
    """Variances of cells, per row, of tables of a design's attributes or of parts of merged ones,
    if all cells are equally frequent.

    >>> from deniable import Schema, design
    >>> tables = EvenTables(design(Schema.anonymous((2, 2)), epsilon=2, method="kronecker").account)
    >>> round(tables.of("a1").variance, 4), round(tables.of("a1", "a2").variance, 4)
    (0.9207, 1.7683)
    """

    account: Account

    @cached_property
    def singles(self) -> dict[str, float | None]:
        """φ by attribute, under forms their joint one; None where not defined for all rows."""
        strength = self.account.strength
        left = dict(zip(self._schema.names, strength.attenuation, strict=True))
        positions = self._mechanism.positions_under_forms
        if (joint := self._joint) is not None:
            left |= zip((self._schema.names[i] for i in positions), np.diagonal(joint), strict=True)
        return left

    @property
    def _mechanism(self) -> Mechanism:
        return self.account.design.mechanism

    @property
    def _schema(self) -> Schema:
        return self._mechanism.schema

    @cached_property
    def _joint(self) -> NDArray[np.float64] | None:
        """Joint φ of attributes and pairs under forms, shape (m, m) for m such attributes."""
        forms = self._mechanism.forms
        return None if forms is None else np.sqrt(forms.pair_information())

    @cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        """The block of each attribute, and the attribute's place in it."""
        return {
            self._schema.names[position]: (number, place)
            for number, block in enumerate(self._mechanism.blocks)
            for place, position in enumerate(block.attributes)
        }

    def _pair(self, first: str, second: str) -> float | None:
        """Return φ of two attributes that have one each, under forms their joint one."""
        (block, i), (other, j) = self._places[first], self._places[second]
        law, law_of_other = (self._mechanism.blocks[number].law for number in (block, other))
        if isinstance(law, PatternLaw) and law is law_of_other:
            if isinstance(law, VoteLaw):  # of all pairs at once
                return float(law.bounded_pair_attenuations()[0][i, j])
            return law.pair_attenuation(i, j)
        if self._joint is None or self._mechanism.forms not in (law, law_of_other):
            return float(self.singles[first] or 0.0) * float(self.singles[second] or 0.0)
        return float(self._joint[i, j]) if block == other else None

    def of(self, *names: str) -> Shares:
        """Return the cells of a table."""
        singles = [self.singles.get(name) for name in names]
        pair = None
        if len(names) == 2 and names[0] != names[1] and None not in singles:
            pair = self._pair(*names)
        left = [*singles, pair] if len(names) == 2 else singles
        if len(names) > 2 or None in left:
            channel = channel_of(self._mechanism, names)
            cells = math.prod(channel.n_categories)
            try:
                return Shares(names, cells, expected_error(channel, 1).mean_variance)
            except InputError:  # wiped out
                return Shares(names, cells, math.inf)
        sizes = [self._schema.n_categories[self._schema.position(name)] for name in names]
        cells = math.prod(sizes)
        if not all(left):
            return Shares(names, cells, math.inf)
        free = [size - 1 for size in sizes]
        components = zip([*free, math.prod(free)] if pair else free, left, strict=True)
        added = math.fsum(size * (float(phi or 1.0) ** -2 - 1) for size, phi in components)
        return Shares(names, cells, max(added, 0.0) / cells**2)


def expected_accuracy(account: Account) -> ExpectedAccuracy:
    """Return the expected accuracy of estimates from a release by a design."""
    mechanism = account.design.mechanism
    names, tables = mechanism.schema.names, EvenTables(account)
    protected = [names[i] for i in mechanism.schema.protected]
    asked = [names[i] for i in mechanism.positions_under_forms]
    paired = asked or [name for name in protected if tables.singles[name] is not None]
    # The matrix of a number alone is made for its mean, not for the shares of its points.
    of_mean = {a.name for a in mechanism.schema.attributes if a.number_grid and a.answers}
    return ExpectedAccuracy(
        tuple(tables.of(name) for name in protected if name not in of_mean),
        tuple(tables.of(*pair) for pair in combinations(paired, 2))
        if len(protected) <= PAIRS_UP_TO
        else None,
    )


def mean_variance(mechanism: Mechanism, name: str, target: Target = "table") -> float:
    """Return the variance of the mean of a number from one row, for numbers spread evenly over the
    range and none missing; inf if the randomization has destroyed it.

    With ℓ the inverse of the channel applied to the points less the middle of the range, it is
    E ℓ(y)², for the table less the known E (x − middle)² = range²/12 (docs/proofs/numbers.md,
    section 3).
    """
    attribute = mechanism.schema.variable(name).attribute
    grid = attribute.number_grid
    assert grid is not None
    channel = channel_of(mechanism, (name,))
    middle = (grid.low + grid.high) / 2
    scores = attribute.category_scores() or ()
    centred = np.array([0.0 if score is None else score - middle for score in scores])
    even = np.zeros(len(scores))
    even[: grid.n_points] = 1 / (grid.n_points - 1)
    even[[0, grid.n_points - 1]] /= 2
    try:
        influence = channel.inverse.transposed().apply(centred)
    except InputError:  # wiped out
        return math.inf
    total = float((channel.forward.apply(even) * influence**2).sum())
    return total if target == "population" else total - (grid.high - grid.low) ** 2 / 12


def expected_means(
    mechanism: Mechanism, n_records: int, target: Target = "table"
) -> list[dict[str, Any]]:
    """Return the standard error of the mean of each randomized number, as plain values.

    >>> from deniable import Attribute, Schema, design
    >>> schema = Schema((Attribute("age", range=(0, 100), unit="years"),))
    >>> expected_means(design(schema, epsilon=2).mechanism, 1000)[0]["standard_error"].__round__(2)
    1.46
    """
    schema = mechanism.schema
    columns = [c for i in schema.protected for c in schema.attributes[i].columns]
    return [
        {
            "attribute": column.name,
            "unit": "days" if column.dates else column.unit,
            "points": column.number_grid.n_points,
            "standard_error": finite_or_none(
                math.sqrt(mean_variance(mechanism, column.name, target) / n_records)
            ),
        }
        for column in columns
        if column.number_grid is not None
    ]


def expected_accuracy_of_strata(designs: Designs) -> ExpectedAccuracy:
    """Return the expected accuracy of designs of strata together, per row of the whole table:
    their errors are independent, and count by the strata's fractions of the rows."""
    by_stratum = [
        (name, expected_accuracy(design.account)) for name, design in designs.designs.items()
    ]
    if len(by_stratum) == 1:
        return by_stratum[0][1]
    rows = sum(designs.sizes.values())
    shares = []
    for together in zip(*(each.shares for _, each in by_stratum), strict=True):
        variance = math.fsum(
            designs.sizes[name] / rows * one.variance
            for (name, _), one in zip(by_stratum, together, strict=True)
        )
        shares.append(together[0]._replace(variance=variance))
    return ExpectedAccuracy(tuple(shares), None)
