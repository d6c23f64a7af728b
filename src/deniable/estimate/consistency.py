"""A test whether a table can be a release of its mechanism, valid for every true table.

Inverted shares of released rows are, except by chance, neither negative nor above 1.
One row adds c(y) to such a share, and given any true value x the mean of c is 1 or 0. Rows are
independent given the true ones, so by Markov's inequality for e^{−tΣc}, t > 0, for any true rows,

    Pr[Σ c(y) <= s] <= e^{ts} max_x (E_x e^{−tc})^n.

This is evaluated for every category of every attribute, there with 1 − c too, and for every cell of
every pair of attributes under pattern laws. The p-value is the least of these bounds times their
number: never too small under the mechanism, however few the rows.

Under forms each form's rows are released by a law of their own, with a c of their own whose mean is
1 or 0. Their sums, weighted, are bounded by the product of the forms' factors given who has which
form; each form is tested alone too. A single row whose empty cells do not match its form is
refused. Where answers name sets, c is by whether a row's set contains the category.

A table that is a possible release is never refused, such as one with equal shares.
"""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import combinations, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError, Notice
from deniable.estimate.counting import NOT_AS_ASKED, Rows
from deniable.estimate.source import Release
from deniable.estimate.tabulate import Floats
from deniable.laws.form import Form
from deniable.laws.forms import PublishedForms
from deniable.laws.law import Law, PatternLaw
from deniable.laws.matrix import MatrixChannel
from deniable.laws.score import ScoreTable
from deniable.laws.set_answers import SetAnswers
from deniable.laws.votes.vote_law import VoteLaw
from deniable.mechanism.mechanism import Mechanism
from deniable.numerals import p_text

REFUSED_BELOW = 1e-6
WARNED_BELOW = 1e-3
"""p-values: the largest probability to refuse a release, or to warn of one."""

UNIDENTIFIED = (
    "this table cannot be identified as a release of the mechanism, and estimates from rows that "
    "were never randomized are wrong; name the folder of the release, or its own file in place of "
    "rows read from it, or confirm with `randomized = True` that the mechanism randomized it"
)
"""Columns and the number of rows do not identify a release: the true table has the same."""

MOST_ROWS = 200_000
"""Most rows that are tested."""

_MOST_READINGS = 32
"""For tables with columns of other than released values."""

_MOST_CELLS = 1 << 22
"""Of the tables of one attribute or two that are tested."""

_MOST_PAIRS = 3_000
_WORK = 100_000_000
"""Most pairs, and rows times pairs, that are tested: bounds on the time."""

_FEW = 8
"""Attributes of a law up to which φ is computed pair by pair: all of a law of hundreds of votes
take as long as about 30 pairs."""

_LEAST_PHI = 1e-6
"""Tables with smaller eigenvalues are not tested."""

_GRID = np.logspace(-6, 4, 121)
"""The t of the bound that are tried; each gives a true bound, the best of them is taken."""


@dataclass(frozen=True)
class Origin:
    """The result of the test of a table's origin.

    ``row``: a data row, from 1, whose cells do not match its form, if any.
    """

    p_value: float
    where: tuple[str, ...]
    rows: int
    row: int | None = None

    def sentence(self) -> str:
        """Return the reason for a refusal."""
        if self.row is not None:
            return (
                "the table is not a release of this mechanism: in data row "
                f"{self.row}, column '{self.where[0]}', {NOT_AS_ASKED}"
            )
        return (
            f"the table is not a release of this mechanism: {' and '.join(self.where)} "
            f"{'has' if len(self.where) == 1 else 'have'} shares that no true table leads to "
            f"(p-value {p_text(self.p_value)})"
        )


def check_origin(release: Release, *, anyway: bool, randomized: bool = False) -> Origin | None:
    """Return the test of a release's rows, or None without one. Warn if the rows cannot be
    identified as a release."""
    if not (release.identified or randomized):
        warnings.warn(UNIDENTIFIED, Notice, stacklevel=3)
    origin = find_origin(release)
    if origin is not None and origin.p_value < REFUSED_BELOW and not anyway:
        raise InputError(
            f"{origin.sentence()}; give the table and the mechanism that belong together, or "
            "`anyway` to go on all the same"
        )
    if origin is not None and origin.p_value < WARNED_BELOW:
        warnings.warn(f"it may be that {origin.sentence()}", Notice, stacklevel=2)
    return origin


def find_origin(release: Release) -> Origin | None:
    """Return the test of a release's rows or counts; None if rows can be read only once, or no
    column can be tested."""
    strata = release.strata
    by_stratum = [set(looked_at(mechanism)) for mechanism in strata.mechanisms.values()]
    names = [name for name in strata.schema.names if all(name in own for own in by_stratum)]
    if not names or not release.can_be_read_again:
        return None
    rows = _rows_of_fitting(release, names)
    origins = [
        origin_of(strata.mechanism_of(stratum), part)
        for stratum, part in rows.items()
        if stratum in strata.mechanisms
    ]
    known = [origin for origin in origins if origin is not None]
    if not known:
        return None
    worst = min(known, key=lambda origin: origin.p_value)
    p_value = min(1.0, worst.p_value * len(known))
    return replace(worst, p_value=p_value, rows=sum(origin.rows for origin in known))


def _rows_of_fitting(release: Release, names: list[str]) -> dict[str, Rows]:
    """Return the first rows, by stratum, of the columns with released values only."""
    fitting: list[str] = []
    left = [names]
    for _ in range(_MOST_READINGS):
        if not left:
            break
        some = left.pop(0)
        try:
            rows = release.first_rows(some, MOST_ROWS)
        except InputError:
            half = len(some) // 2
            left += [part for part in (some[:half], some[half:]) if half]
        else:
            if some == names:
                return rows
            fitting += some
    return release.first_rows(fitting, MOST_ROWS) if fitting else {}


def looked_at(mechanism: Mechanism) -> list[str]:
    """Return the attributes that can be tested: those that pattern laws, forms or response
    matrices randomize."""
    laws = [mechanism.block_of(i)[0].law for i in range(len(mechanism.schema.names))]
    return [
        name
        for name, law in zip(mechanism.schema.names, laws, strict=True)
        if not law.kept_as_it_is and isinstance(law, PatternLaw | PublishedForms | MatrixChannel)
    ]


def origin_of(mechanism: Mechanism, rows: Rows) -> Origin | None:
    """Return the origin of some released rows; None where none of them answers."""
    names = rows.names
    if not names or not len(rows.codes[0]):
        return None
    n = len(rows.codes[0]) if rows.counts is None else round(rows.counts.sum())
    if not n:
        return None
    bounds: list[tuple[float, tuple[str, ...]]] = []
    n_bounds = 0
    patterns: list[str] = []
    for name, codes in zip(names, rows.codes, strict=True):
        block, own = mechanism.block_of(mechanism.schema.position(name))
        if isinstance(block.law, MatrixChannel):
            counts = np.bincount(codes.astype(np.int64), rows.counts, block.law.n_outputs[own])
            bounds.append((_matrix_bound(block.law, counts), (name,)))
            n_bounds += 2 * block.law.n_categories[own]
        else:
            patterns.append(name)
    parts = _parts(mechanism, rows)
    for part in parts:
        if (wrong := part.wrongly_filled()) is not None:
            name, place = wrong
            assert rows.forms is not None
            assert part.rows.forms is not None
            of_form = np.flatnonzero(rows.forms == part.rows.forms[0])
            return Origin(0.0, (name,), n, int(of_form[place]) + 1)
    pairs = list(islice(combinations(patterns, 2), _MOST_PAIRS))
    most = max(10_000, _WORK // max(1, len(pairs)))
    fewer = parts if len(rows.codes[0]) <= most else _parts(mechanism, rows.where(slice(most)))
    tables = [*((parts, (name,)) for name in patterns), *((fewer, pair) for pair in pairs)]
    for of, table in tables:
        bound, compared = _cell_bound(of, table)
        n_bounds += compared
        bounds.append((bound, table))
    if not n_bounds:
        return None  # no form includes any of these
    least_log, where = min(bounds)
    return Origin(min(1.0, math.exp(min(0.0, least_log)) * n_bounds), where, n)


@dataclass(frozen=True)
class _Part:
    """Rows that one law, or one form of it, has made."""

    mechanism: Mechanism
    rows: Rows

    def wrongly_filled(self) -> tuple[str, int] | None:
        """Return an attribute and the place of a row that has a value of it against its form, or
        lacks one; None if all rows match their forms."""
        for name, codes in zip(self.rows.names, self.rows.codes, strict=True):
            law, place = self._law(name)
            if not isinstance(law, Form):
                continue
            wrong = codes < 0  # a category for a set, or the other way round
            if not any(place in draw.members for draw in law.drawn):
                wrong |= (codes < _released(law, place)) != (place in law.asked)
            if wrong.any():
                return name, int(np.argmax(wrong))
        return None

    def eigenvalues(self, names: tuple[str, ...]) -> Floats | None:
        """Return φ of one attribute or two, shape (2,)·m; None if it is too small, the form does
        not include them, or there are too many answers to count."""
        if math.prod(_released(*self._law(name)) for name in names) > _MOST_CELLS:
            return None
        (law, place), (other, other_place) = self._law(names[0]), self._law(names[-1])
        if law is not other:
            first, second = (self.eigenvalues((name,)) for name in names)
            return None if first is None or second is None else np.multiply.outer(first, second)
        places = (place, other_place)[: len(names)]
        if isinstance(law, Form):
            may = {*law.asked, *(i for draw in law.drawn for i in draw.members)}
            if not may.issuperset(places) or len(law.asked_of(places)) < len(places):
                return None
            law = law.given(places)
        assert isinstance(law, PatternLaw)
        if len(places) == 2 and (pairs := self._pairs.get(id(law))) is not None:
            single = pairs.diagonal()
            values = np.array([[1.0, single[places[1]]], [single[places[0]], pairs[places]]])
        else:
            values = law.eigenvalues(places)
        return values if np.abs(values).min() >= _LEAST_PHI else None

    @cached_property
    def _pairs(self) -> dict[int, Floats]:
        """φ of all pairs of laws of which many attributes are tested, by the law's id."""
        laws = [self._law(name)[0] for name in self.rows.names]
        times = Counter(map(id, laws))
        return {
            number: law.pair_eigenvalues()
            for number, law in {id(law): law for law in laws}.items()
            if times[number] > _FEW and isinstance(law, VoteLaw | ScoreTable)
        }

    def table(self, names: tuple[str, ...]) -> Floats:
        """Return counts by the answers to some attributes, one axis for each; by categories in the
        set where answers name sets."""
        cells = np.zeros(len(self.rows.codes[0]), dtype=np.int64)
        shape = []
        for name in names:
            law, place = self._law(name)
            shape.append(_released(law, place) + 1)  # and no answer
            cells *= shape[-1]
            cells += self.rows.codes[self.rows.names.index(name)]
        counts = np.bincount(cells, self.rows.counts, math.prod(shape)).reshape(shape)
        table = counts[(slice(-1),) * len(shape)].astype(np.float64)
        for axis, name in enumerate(names):
            if (sets := self._sets(name)) is not None:
                table = sets.breadth * sets.spread(table, axis, weighted=False)
        return table

    def breadths(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """Return how many categories answers to some attributes name."""
        return tuple(1 if (s := self._sets(name)) is None else s.breadth for name in names)

    def _sets(self, name: str) -> SetAnswers | None:
        law, place = self._law(name)
        return law.sets_of(place) if isinstance(law, Form) else None

    def _law(self, name: str) -> tuple[Law, int]:
        block, place = self.mechanism.block_of(self.mechanism.schema.position(name))
        return block.law, place


def _parts(mechanism: Mechanism, rows: Rows) -> list[_Part]:
    if rows.forms is None:
        return [_Part(mechanism, rows)]
    return [
        _Part(under, _as_the_form_releases(mechanism, under, rows.where(rows.forms == form)))
        for form in np.unique(rows.forms).tolist()
        for under in [mechanism.under(form)]
    ]


def _as_the_form_releases(mechanism: Mechanism, under: Mechanism, rows: Rows) -> Rows:
    """Return the rows of a form with its own codes: the number of values where it does not
    include an attribute, -1 for a category in place of a set or the reverse."""
    codes = []
    for name, column in zip(rows.names, rows.codes, strict=True):
        position = mechanism.schema.position(name)
        block, place = under.block_of(position)
        law, n_outputs = block.law, mechanism.n_outputs[position]
        if isinstance(law, Form) and n_outputs > law.n_categories[place]:
            own = column.astype(np.int64)
            if law.sets_of(place) is not None:
                own -= law.n_categories[place]
            released = _released(law, place)
            own = np.where((own < 0) | (own >= released), -1, own)
            column = np.where(column == n_outputs, released, own)
        codes.append(column)
    return replace(rows, codes=codes)


def _released(law: Law, place: int) -> int:
    """Return how many values a form, or a law without forms, releases of an attribute."""
    sets = law.sets_of(place) if isinstance(law, Form) else None
    return law.n_categories[place] if sets is None else sets.n_answers


def _matrix_bound(law: MatrixChannel, counts: NDArray[Any]) -> float:
    """Return the log of the bound for the least share of an attribute, or the largest."""
    inverse, n = law.left_inverse(), float(counts.sum())
    ends = np.concatenate([inverse, 1.0 - inverse])
    totals = ends @ counts
    worst = int(np.argmin(totals))
    return _bound(float(totals[worst]), [(ends[worst], law.matrix().T, n)])


@dataclass(frozen=True)
class _Scored:
    """Contributions of a part's rows to shares.

    ``scores``: c of every released value, shape (m,), the same for every share. ``truths``: return
    the probabilities of released values by true value, shape (a, m).
    """

    totals: Floats
    scores: Floats
    truths: Callable[[], Floats]
    n: float


def _cell_bound(parts: Sequence[_Part], names: tuple[str, ...]) -> tuple[float, int]:
    """Return the log of the bound for the least cell of the table of one attribute or of two, of
    one also for 1 less the largest; and the number of bounds compared."""
    least, most = [], []
    for weight, hits, table, breadths in _answered(parts, names):
        n = float(table.sum()) / math.prod(breadths)
        # By whether a row's values are those of the cell (or its sets hold them), along each axis:
        # a row's contribution to the cell's share, each indicator less its even share over its φ;
        # and the number of rows.
        scores, counts = 1.0 / hits, [table]
        for axis, (a, s) in enumerate(zip(table.shape, breadths, strict=True)):
            shown = (a - s) / (a - 1)
            indicators = np.array([[1 / a, 1 / a], [(1 - s / a) / shown, -s / a / shown]])
            scores = np.tensordot(scores, indicators, axes=(0, 0))
            alike = [each.sum(axis=axis, keepdims=True) / s for each in counts]
            counts = [
                c for own, all_of in zip(counts, alike, strict=True) for c in (own, all_of - own)
            ]
        scores = scores.ravel()
        totals = np.asarray(sum(map(np.multiply, scores, counts)))
        truths = cache(partial(_truths, hits, table.shape, breadths))
        least.append(_Scored(weight * totals, weight * scores, truths, n))
        if len(names) == 1:
            most.append(_Scored(weight * (n - totals), weight * (1 - scores), truths, n))
    bounds = [_least_bound(least), _least_bound(most)]
    return min(bound for bound, _ in bounds), sum(n_bounds for _, n_bounds in bounds)


def _truths(hits: Floats, shape: tuple[int, ...], breadths: tuple[int, ...]) -> Floats:
    """Return probabilities of released by true values, each by whether it is (or its set
    contains) the cell's value along each axis, shape (2^m, 2^m).

    ``hits``: eigenvalues, shape (2,)·m.
    """
    for m, breadth in zip(shape, breadths, strict=True):
        hits = np.tensordot(hits, _kernel(m, breadth), axes=(0, 0))
    axes = range(2 * len(shape))
    return np.transpose(hits, [*axes[::2], *axes[1::2]]).reshape(2 ** len(shape), -1)


@cache
def _kernel(m: int, breadth: int) -> Floats:
    """Return, by component along one axis, the probabilities that a released set of ``breadth``
    values contains a value or not, by whether it is the true one, shape (2, 2, 2)."""
    kept, changed = (
        [[own, 1 - own], [p, 1 - p]]
        for own, p in ((1.0, (breadth - 1) / (m - 1)), (0.0, breadth / (m - 1)))
    )
    by_component = np.linalg.inv(np.array([[1.0, 1.0], [1.0, -breadth / (m - breadth)]]))
    return np.tensordot(by_component, np.array([kept, changed]), axes=(0, 0))


def _least_bound(scored: Sequence[_Scored]) -> tuple[float, int]:
    """Return the log of the bound for the least of some shares, by all parts together and, if there
    are several, by each alone; and how many n_bounds that is."""
    if not scored:
        return 0.0, 0
    ways = [scored, *([one] for one in scored)] if len(scored) > 1 else [scored]
    bound = 0.0
    for way in ways:
        total = float(np.sum([one.totals for one in way], axis=0).min())
        if total < 0:
            bound = min(bound, _bound(total, [(one.scores, one.truths(), one.n) for one in way]))
    return bound, len(ways) * scored[0].totals.size


def _answered(
    parts: Sequence[_Part], names: tuple[str, ...]
) -> list[tuple[float, Floats, Floats, tuple[int, ...]]]:
    """Return for every part with some attributes its weight, their eigenvalues, its table, and
    the number of categories that its answers name.

    A part's score is unbiased for any true rows, so any positive weights are valid; φ² of all the
    attributes over the largest makes the variance of the sum about the least.
    """
    seen = [(part.eigenvalues(names), part) for part in parts]
    answered = [
        (phi, part.table(names), part.breadths(names)) for phi, part in seen if phi is not None
    ]
    answered = [each for each in answered if each[1].any()]
    most = max((float(phi.flat[-1]) ** 2 for phi, _, _ in answered), default=1.0)
    return [(float(phi.flat[-1]) ** 2 / most, phi, table, s) for phi, table, s in answered]


def _bound(total: float, parts: Sequence[tuple[Floats, Floats, float]]) -> float:
    """Return the log of the bound on Pr[Σ c <= total].

    ``parts``: of rows that were made alike: c of every released value, shape (m,); their
    probabilities by true value, shape (a, m); and how many rows there are.
    """
    if total >= 0:
        return 0.0
    bound = _GRID * total
    for scores, truths, n in parts:
        exponents = -_GRID[:, None] * scores[None, :]
        top = exponents.max(axis=1)
        with np.errstate(divide="ignore"):
            moments = np.log(np.exp(exponents - top[:, None]) @ np.maximum(truths, 0.0).T)
        bound += n * (moments.max(axis=1) + top)
    return float(min(0.0, bound.min()))
