"""Published forms of record level ε with the least variance of shares and pairs.

Over forms c and their shares w the search minimises F = Σ_T κ_T/I_T, I_T = Σ_c w_c φ_c(T)², over
single attributes and pairs T, by column generation: w_c ← w_c (∂_c/F)^½…⁰·⁹ with
∂_c = Σ κ_T I_T(c)/I_T², whose mean over w is F; and the ascent of docs/proofs/forms.md, Theorem 3,
at the prices C_T = κ_T/I_T², from random votes and from the current forms, as it ends in local
maxima. Under caps each step is a linear program over patterns.

Attributes that are alike may form a class, of which a form draws a number for every row. A
*question* is a class with the number of categories that its answers name. If a form gives an
attribute more than its largest level, the answer passes an independent response.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray, IntArray
from deniable.proofs.problem import MAX_LEVEL, checked_problem, optional_limits
from deniable.solvers.patterns.capped_densities import CappedDensities
from deniable.solvers.patterns.interactions import Interactions
from deniable.solvers.patterns.votes_by_count import VotesByCount

BoolArray = NDArray[np.bool_]

MOST_ASKED, MOST_ASKED_CAPPED = 12, 8
"""Limits on a form's m attributes: a table of patterns, or a program under caps, has size 2^m."""

DEFAULT_ASKED, DEFAULT_ASKED_CAPPED = 9, 6
"""Default limits on a form's attributes: tables of 512 patterns, and programs of 64."""

DEFAULT_PAIRS = 0.2
"""Weight of pair tables against shares, whose variance is at most 1.6 times the least."""

EACH_BY_ITSELF, MANY_ALIKE = 12, 5
"""Attributes that are alike are one class beyond `EACH_BY_ITSELF` attributes, or if `MANY_ALIKE`
are alike: one form in place of up to 78, at equal variance of pairs of two categories each and up
to a quarter more of larger ones (decision 45)."""

_STARTS = 48
"""Starting votes of every round: with twice as many the variance of shares of Adult's columns
changes by up to 0.3 % either way, and that of pairs by up to 3 %."""


@dataclass(frozen=True, eq=False)
class Form:
    """A form of a solution.

    ``asked``: positions of the attributes that it includes, ascending. ``pattern_probability``: of
    every pattern, shape (2,)·m, index 1 for changed; the axes are the fixed attributes and then the
    drawn ones. For a draw too large for a table of patterns: the density of answers by the number
    of changes, shape (m + 1,). ``breadths``: number of categories that an answer names, by axis.
    """

    share: float
    asked: tuple[int, ...]
    pattern_probability: FloatArray
    drawn: tuple[tuple[tuple[int, ...], int], ...] = ()
    breadths: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class FormsSolution:
    """Forms and their variances.

    ``forms``: the most frequent first; their shares add up to 1. ``pairs``: the same of tables of
    two attributes; inf if a pair cannot be estimated. ``of_attributes``: the same of the cells of
    each attribute, shape (k,).
    """

    forms: tuple[Form, ...]
    shares: float
    pairs: float
    of_attributes: FloatArray


def solve(
    n_categories: Sequence[int],
    epsilon: float,
    *,
    importance: Sequence[float] | None = None,
    pairs: float = DEFAULT_PAIRS,
    asked: int | None = None,
    at_most: Sequence[float | None] | None = None,
    caps: Sequence[float | None] | None = None,
    broad: Sequence[Sequence[int]] | None = None,
    patience: int = 4,
) -> FormsSolution:
    """Return forms of a record level for which shares and pairs have the least variance found.

    The same arguments give the same forms.

    ``n_categories``: a_i, shape (k,). ``epsilon``: of the record, in nats. ``importance``: weight
    of each attribute, shape (k,); a pair has the product. ``pairs``: θ, weight of pair tables
    against shares, 0 to 1. Below 1 the variance of shares is at most 1 + 3θ times that at 0.
    ``at_most``: largest level of single attributes alone, in nats, shape (k,), None for no limit.
    ``caps``: largest level given the rest, in nats, shape (k,), None for no cap. ``broad``: numbers
    of categories that an answer may name, besides one, shape (k,); by default one only.

    >>> found = solve((2, 5), 2.0, pairs=0.0)
    >>> sorted(form.asked for form in found.forms)
    [(0,), (1,)]
    >>> found = solve((2, 20), 1.0, pairs=0.0, broad=[(), (5,)])
    >>> sorted((form.asked, form.breadths) for form in found.forms)
    [((0,), (1,)), ((1,), (5,))]
    """
    k = checked_problem(n_categories, [1.0] * len(n_categories)).n_attributes
    if not 0 < epsilon <= MAX_LEVEL:
        raise InputError(f"forms are for a total above 0 and up to {MAX_LEVEL:g} nats")
    if not 0 <= pairs <= 1:
        raise InputError(f"the importance of pairs must lie between 0 and 1, not {pairs:g}")
    weights = np.ones(k) if importance is None else np.asarray(importance, dtype=np.float64)
    limits = optional_limits(at_most, k, "at_most")
    given_rest = np.minimum(optional_limits(caps, k, "caps"), epsilon)
    capped = bool((given_rest < epsilon).any())
    most = MOST_ASKED_CAPPED if capped else MOST_ASKED
    many = asked is None and not capped and bool(np.isinf(limits).all())
    if asked is None:
        asked = DEFAULT_ASKED_CAPPED if capped else DEFAULT_ASKED
    if not 1 <= asked <= most:
        under = " under a cap on epsilon_given_rest" if capped else ""
        raise InputError(f"a form includes 1 to {most} attributes{under}, not {asked}")
    alike: dict[tuple[Any, ...], list[int]] = {}
    breadths = [()] * k if broad is None else [tuple(each) for each in broad]
    for i, kind in enumerate(zip(n_categories, weights, limits, given_rest, breadths, strict=True)):
        alike.setdefault(kind, []).append(i)
    classes: list[tuple[int, ...]] = []
    for members in alike.values():
        one = k > EACH_BY_ITSELF or len(members) >= MANY_ALIKE
        classes += [tuple(members)] if one else [(i,) for i in members]
    classes.sort()
    first = [members[0] for members in classes]
    interactions = Interactions(np.asarray(n_categories)[first], tuple(classes))
    questions = _Questions(interactions, [breadths[i] for i in first])
    by_count = None
    if many:
        sizes = interactions.n[:-1].astype(int).tolist(), interactions.members.tolist()
        by_count = VotesByCount(*sizes, epsilon, asked)
    limits, given_rest = limits[first], given_rest[first]
    most = min(asked, k)
    search = _Search(questions, epsilon, most, limits, given_rest, patience, by_count)
    share_costs, pair_costs = search.of.costs(weights[first])
    search.minimise(share_costs)
    if pairs > 0 and k > 1 and asked > 1:
        best = search.information
        scale = _value(share_costs, best)[0]
        against = float((pair_costs / search.of.one_law(best)).sum())
        weight = pairs / against
        search.minimise((1 - pairs) * share_costs / scale + weight * pair_costs)
        dearest = (1 + 3 * pairs) * scale
        while pairs < 1 and _value(share_costs, search.information)[0] > dearest:
            weight /= 2
            search.minimise((1 - pairs) * share_costs / scale + weight * pair_costs)
    return search.solution(share_costs, pair_costs)


class _Questions:
    """The questions of forms: a class of attributes and the number of categories in an answer. In
    the order of the classes, and in each first the question with answers of one category; the last
    question is empty."""

    def __init__(self, interactions: Interactions, broad: Sequence[Sequence[int]]) -> None:
        self.of = interactions
        listed = [(i, s) for i in range(interactions.k) for s in (1, *broad[i])]
        self.empty = len(listed)
        classes, breadths = np.array([*listed, (interactions.k, 1)], dtype=np.int64).T
        self.classes = classes
        """The class of each question."""
        self.breadths = breadths
        """Number of categories that an answer names."""
        self.parts: FloatArray = interactions.n[classes] / breadths
        """a/s: one over the probability of a hit by chance."""
        self.plain = np.searchsorted(classes, np.arange(interactions.k))
        """Of each class the question that is answered by one category."""
        self.kinds = np.bincount(classes)[: interactions.k]
        """Number of questions of each class."""


class _Column(NamedTuple):
    """A form during the search.

    Attributes:
        asked: questions, as many as a form may have, in order, shape (m,).
        density: of the patterns of hits against the uniform law, at least 1, shape (2^m,). It is
            symmetric in equal questions, and may be constant in some.
        information: I_T, for every T.
        by_count: of a vote by count the class, the number drawn and the least number of hits; only
            ``information`` is then defined of the others.
    """

    asked: IntArray
    density: FloatArray
    information: FloatArray
    by_count: tuple[int, int, int] | None = None


class _Found(NamedTuple):
    """The final column of a search at given prices, and its Σ C_T I_T."""

    worth: float
    asked: IntArray
    density: FloatArray


class _Search:
    """Columns found so far, and their shares."""

    def __init__(
        self,
        questions: _Questions,
        epsilon: float,
        most: int,
        limits: FloatArray,
        caps: FloatArray,
        patience: int,
        by_count: VotesByCount | None,
    ) -> None:
        self.of = interactions = questions.of
        self._patience, self._by_count = patience, by_count
        self._questions = questions
        limits, self._caps = np.append(limits, np.inf), np.append(caps, epsilon)
        self._epsilon, self._capped = epsilon, bool((caps < epsilon).any())
        self._kind = np.repeat(np.arange(interactions.k), interactions.members)
        self._apart = bool((interactions.members == 1).all())
        self._odds = math.expm1(epsilon)
        self._most = most
        self._pairs = np.triu_indices(most, 1)
        self._random = np.random.default_rng(16)  # the same arguments give the same forms
        patterns = np.arange(1 << most)[:, None] >> np.arange(most)[::-1]
        self._kept = (patterns & 1) == 0
        self._spaces: dict[bytes, _Space] = {}
        # φ of an attribute alone may lie between these.
        limits = limits[questions.classes]
        n, limited = questions.parts, np.minimum(limits, MAX_LEVEL)
        self._high = np.where(np.isinf(limits), 1.0, 1 / (1 + n / np.expm1(limited)))
        self._low = np.expm1(-limited) / (np.expm1(-limited) + n)
        self._limited = bool(np.isfinite(limits).any())
        self._columns: list[_Column] = []
        self._weights = np.empty(0)

    @property
    def _by_column(self) -> FloatArray:
        """I_T of every column, shape (columns, number of T)."""
        return np.array([column.information for column in self._columns])

    @property
    def information(self) -> FloatArray:
        """I_T of the forms together, for every T."""
        return np.asarray(self._weights @ self._by_column)

    def minimise(self, costs: FloatArray) -> None:
        """Find columns and their shares until no start of the search improves them."""
        self._add(self._simple(bool(costs[self.of.k :].any())), 0.5 if self._columns else 1.0)
        fruitless = 0
        for _ in range(120):  # some 30 are the rule
            self._weights = shares_of(self._by_column, costs, self._weights, 1e-4)
            value, prices = _value(costs, self.information)
            found = [each for start in self._starts() for each in self._ascend(prices, *start)]
            if self._capped:
                found += self._polished(prices, found)
            found = sorted(found, key=lambda each: -each.worth)[: _STARTS // 4]
            least = value * 1.001  # the largest worth bounds the excess of Σ κ_T/I_T over the least
            new = [self._column(*each[1:]) for each in found if each.worth > least]
            new += self._best_by_count(prices, least)
            fruitless = 0 if new else fruitless + 1
            if fruitless == self._patience:
                break
            if new:
                self._keep(self._weights > 1e-7)
                self._add(new, 0.1)
        self._weights = shares_of(self._by_column, costs, self._weights, 1e-6)
        frequent = self._weights >= 1e-4  # one person in ten thousand
        if (self._by_column[frequent][:, costs > 0] > 0).any(axis=0).all():
            self._keep(frequent)
            self._weights = shares_of(self._by_column, costs, self._weights, 1e-6)

    def _simple(self, with_pairs: bool) -> list[_Column]:
        """Return the forms of one attribute, and those of a pair by whether both values are hit."""
        questions = self._questions
        sets: list[tuple[int, ...]] = [(i,) for i in range(questions.empty)]
        if with_pairs:
            sets += [(questions.plain[i], questions.plain[j]) for i, j in self.of.pairs.tolist()]
        columns = []
        for chosen in sets:
            classes = questions.classes[list(chosen)]
            others = [i for i in range(self.of.k) if i not in classes] if self._apart else []
            rest = [*questions.plain[others].tolist(), *[questions.empty] * self._most]
            asked = np.array(sorted([*chosen, *rest[: self._most - len(chosen)]]))
            places = [int(np.searchsorted(asked, i)) for i in chosen]
            if chosen[0] == chosen[-1]:
                places[-1] += len(chosen) - 1
            yes = self._kept[:, places].all(axis=1)
            columns.append(self._column(asked, self._densities(asked, yes[None])[0]))
        return columns

    def _column(self, asked: IntArray, density: FloatArray) -> _Column:
        return _Column(asked, density, self._information(asked, density))

    def _best_by_count(self, prices: FloatArray, least: float) -> list[_Column]:
        """Return the vote by count with the largest value; none if that is at most ``least``."""
        votes = self._by_count
        if votes is None or not len(votes.forms):
            return []
        of = votes.forms[:, 0]
        pairs = self.of.place[of, of]
        worth = prices[of] * votes.single + prices[pairs] * votes.pair
        best = int(np.argmax(worth))
        if worth[best] <= least:
            return []
        information = np.zeros(len(prices))
        information[of[best]], information[pairs[best]] = votes.single[best], votes.pair[best]
        i, asked, hits = votes.forms[best].tolist()
        empty = np.full(self._most, self._questions.empty)
        return [_Column(empty, np.ones(1 << self._most), information, (i, asked, hits))]

    def _add(self, columns: list[_Column], weight: float) -> None:
        """Add columns with a total weight taken from the present ones."""
        self._columns += columns
        added = np.full(len(columns), weight / len(columns))
        self._weights = np.concatenate([(1 - weight) * self._weights, added])

    def _keep(self, chosen: BoolArray) -> None:
        self._columns = [self._columns[i] for i in np.flatnonzero(chosen)]
        self._weights = self._weights[chosen] / self._weights[chosen].sum()

    def solution(self, share_costs: FloatArray, pair_costs: FloatArray) -> FormsSolution:
        """Return the forms, each with only the attributes that it depends on."""
        merged: dict[tuple[Any, ...], Form] = {}
        for column, share in zip(self._columns, self._weights.tolist(), strict=True):
            form = self._form(column, share)
            key = form.asked, form.drawn, form.breadths, form.pattern_probability.tobytes()
            before = merged[key].share if key in merged else 0.0
            merged[key] = replace(form, share=share + before)
        forms = sorted(merged.values(), key=lambda form: (-form.share, form.asked, form.drawn))
        information = self.information
        rest = self.of.n[self._kind] - 1
        with np.errstate(divide="ignore"):
            of_attributes = rest / (rest + 1) ** 2 / information[self._kind]
        order = np.argsort([i for members in self.of.classes for i in members])
        return FormsSolution(
            tuple(forms),
            _value(share_costs, information)[0],
            _value(pair_costs, information)[0],
            of_attributes[order],
        )

    def _starts(self) -> Iterator[tuple[IntArray, BoolArray]]:
        """Yield attributes and votes on them to start from: random ones, and the heaviest columns
        with a change."""
        generator, m = self._random, self._most
        order = np.argsort(-self._weights, kind="stable")
        heavy = [self._columns[i] for i in order if self._columns[i].by_count is None]
        heavy = heavy[: _STARTS // 2]
        density = np.array([column.density for column in heavy]).reshape(len(heavy), 1 << m)
        high = density > np.sqrt(density.max(axis=1, keepdims=True))
        complete = self._apart and m == self._questions.empty
        if complete:
            starts = [(np.arange(m), high)]
        else:
            starts = [(self._random_questions(), high[:0]) for _ in range(_STARTS // 4)]
            picked = generator.choice(len(heavy), min(_STARTS // 4, len(heavy)), replace=False)
            starts += [(heavy[i].asked, high[i : i + 1]) for i in picked]
        for asked, known in starts:
            n = _STARTS // (1 if complete else 4)
            weights = generator.exponential(size=(n, m))
            weights *= generator.random((n, m)) < generator.random((n, 1))
            weights = weights[:, np.searchsorted(asked, asked)]  # one for each question
            scores = weights @ self._kept.T
            highest = scores.max(axis=1, keepdims=True)
            thresholds = np.maximum(generator.random((n, 1)) * highest, 1e-9 * highest)
            changed = known ^ (generator.random(known.shape) < 1 / (1 << m))
            votes = np.concatenate([(scores >= thresholds) & (highest > 0), changed])
            yield asked, votes[:, self._space(asked).alike]

    def _random_questions(self) -> IntArray:
        """Return questions about attributes drawn at random, in order."""
        drawn = self._kind[self._random.permutation(len(self._kind))[: self._most]]
        classes, counts = np.unique(drawn, return_counts=True)
        questions = self._questions.plain[classes]
        if self._questions.empty > self.of.k:
            questions = questions + self._random.integers(self._questions.kinds[classes])
        asked = np.repeat(questions, self._random.integers(1, counts + 1))
        return np.append(asked, [self._questions.empty] * (self._most - len(asked))).astype(
            np.int64
        )

    def _space(self, asked: IntArray) -> "_Space":
        """Return the common constants of densities over the patterns of these questions."""
        key = asked.tobytes()
        if key not in self._spaces:
            r, classes = (1 / self._questions.parts)[asked], self._questions.classes[asked]
            hits = (self._kept - r) / np.sqrt(r * (1 - r))
            first, second = self._pairs
            hits = np.concatenate([hits, hits[:, first] * hits[:, second]], axis=1)
            if len(self._spaces) >= 64:  # with 12 questions each takes three megabytes
                self._spaces.clear()
            uniform = np.where(self._kept, r, 1 - r).prod(axis=1)
            capped = CappedDensities(uniform, self._epsilon, self._caps[classes])
            changed = ~self._kept & (asked != self._questions.empty)
            for one in np.unique(asked[:-1][asked[1:] == asked[:-1]]):
                changed[:, asked == one] = np.sort(changed[:, asked == one], axis=1)
            alike = changed @ (1 << np.arange(self._most)[::-1])
            numbers = self.of.of(classes)
            used = capped if self._capped else None
            self._spaces[key] = _Space(uniform, hits, numbers, alike, used)
        return self._spaces[key]

    def _densities(self, asked: IntArray, yes: BoolArray, *, wide: bool = False) -> FloatArray:
        """Return the densities of votes D, shape (n, 2^m): e^ε there and 1 elsewhere, under caps
        with a slope within D, or if ``wide`` outside."""
        capped = self._space(asked).capped
        density: FloatArray = 1 + self._odds * yes.astype(np.float64)
        return density if capped is None else capped.sloped(density, wide=wide)

    def _means(self, asked: IntArray, density: FloatArray) -> FloatArray:
        """Return w̄_T of columns on the same attributes, shape (n, m + m(m − 1)/2), before largest
        levels."""
        space = self._space(asked)
        # The hits have mean 0; from a density of least 1 that much can be taken.
        law = space.uniform * (density - 1)
        return np.asarray((law @ space.hits) / (1 + law.sum(axis=1, keepdims=True)))

    def _damping(self, asked: IntArray, means: FloatArray) -> FloatArray:
        """Return the factor on φ_T that brings each attribute below its largest level."""
        single = means[:, : self._most] / np.sqrt(self._questions.parts[asked] - 1)
        limit = np.where(single > 0, self._high[asked], self._low[asked])
        above = np.abs(single) > np.abs(limit)
        factor = np.where(above, limit / np.where(above, single, 1.0), 1.0)
        first, second = self._pairs
        return np.concatenate([factor, factor[:, first] * factor[:, second]], axis=1)

    def _information(self, asked: IntArray, density: FloatArray) -> FloatArray:
        """Return I_T of a column for every T; exactly zero where it does not depend on T."""
        means = self._means(asked, density[None])
        if self._limited:
            means = means * self._damping(asked, means)
        table = density.reshape((2,) * self._most)
        depends = np.array([(table != np.flip(table, i)).any() for i in range(self._most)])
        first, second = self._pairs
        means = np.where(np.concatenate([depends, depends[first] & depends[second]]), means[0], 0.0)
        numbers = self._space(asked).numbers
        information = np.zeros(len(self.of.dimension))
        np.add.at(information, numbers, means**2 / (self.of.dimension * self.of.size)[numbers])
        return information

    def _ascend(self, prices: FloatArray, asked: IntArray, yes: BoolArray) -> list[_Found]:
        """Return the best column near each start."""
        density = self._densities(asked, yes)
        if self._capped:  # half of them start from without, half from within
            density = np.concatenate([density, self._densities(asked, yes, wide=True)])
        worth, best = np.full(len(density), -1.0), density
        for _ in range(60):  # ten are the rule
            value, score = self._worth(prices, asked, density)
            better = value > worth * (1 + 1e-12)
            if not better.any():
                break
            worth = np.where(better, value, worth)
            best = np.where(better[:, None], density, best)
            density = self._densities(asked, score > value[:, None])
            if self._capped:
                wide = self._densities(asked, score > value[:, None], wide=True)
                wider = [self._worth(prices, asked, each)[0] for each in (density, wide)]
                density = np.where((wider[1] > wider[0])[:, None], wide, density)
        return [
            _Found(value, asked, each) for value, each in zip(worth.tolist(), best, strict=True)
        ]

    def _worth(
        self, prices: FloatArray, asked: IntArray, density: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return Σ C_T I_T of columns on the same attributes, shape (n,), and the scores of the
        patterns with that mean under the column, shape (n, 2^m)."""
        space = self._space(asked)
        paid = (prices / (self.of.dimension * self.of.size))[space.numbers]
        means = self._means(asked, density)
        damped = paid * self._damping(asked, means) ** 2 if self._limited else paid
        scores = (damped * means) @ space.hits.T
        return (damped * means**2).sum(axis=1), scores[:, space.alike]

    def _polished(self, prices: FloatArray, found: Sequence[_Found]) -> list[_Found]:
        """Return the best columns, improved by linear programs."""
        # Those that are worth the same are taken for the same.
        different = {round(each.worth, 12): each for each in reversed(found)}
        polished = []
        for worth in sorted(different, reverse=True)[: _STARTS // 8]:
            value, asked, density = different[worth]
            space = self._space(asked)
            score = self._worth(prices, asked, density[None])[1]
            for _ in range(8):
                led = None if space.capped is None else space.capped.best(score[0])
                if led is None:
                    break
                summed = np.bincount(space.alike, led) / np.maximum(np.bincount(space.alike), 1)
                led = summed[space.alike] / summed[space.alike].min()
                further, score = self._worth(prices, asked, led[None])
                if further[0] <= value * (1 + 1e-6):
                    break
                value, density = float(further[0]), led
            polished.append(_Found(value, asked, density))
        return polished

    def _form(self, column: _Column, share: float) -> Form:
        """Return a column as a form with only the attributes that it depends on."""
        if column.by_count is not None:
            assert self._by_count is not None
            i, count, least = column.by_count
            members, density = self.of.classes[i], self._by_count.density(count, least)
            if count == len(members):
                return Form(share, members, density, (), (1,) * count)
            return Form(share, (), density, ((members, count),), (1,) * count)
        asked, density = column.asked, column.density
        shape = (2,) * self._most
        damping = self._damping(asked, self._means(asked, density[None]))[0, : self._most]
        probability = (self._space(asked).uniform * density).reshape(shape)
        probability, density = probability / probability.sum(), density.reshape(shape)
        kinds = self._questions.classes[asked].tolist()
        parts, breadths = (
            self._questions.parts[asked].tolist(),
            self._questions.breadths[asked].tolist(),
        )
        for axis in reversed(range(self._most)):
            if np.array_equal(np.take(density, 0, axis=axis), np.take(density, 1, axis=axis)):
                density, probability = np.take(density, 0, axis=axis), probability.sum(axis=axis)
                for each in (kinds, parts, breadths):
                    each.pop(axis)
            elif damping[axis] < 1:
                kept, changed = (np.take(probability, i, axis=axis) for i in (0, 1))
                answered = damping[axis] * kept
                answered += (1 - damping[axis]) / parts[axis] * (kept + changed)
                probability = np.stack([answered, kept + changed - answered], axis=axis)
        whole = [axis for axis, i in enumerate(kinds) if kinds.count(i) == self.of.members[i]]
        given = {axis: self.of.classes[i][axis - kinds.index(i)] for axis, i in enumerate(kinds)}
        whole = sorted(whole, key=given.__getitem__)
        rest = [axis for axis in range(len(kinds)) if axis not in whole]
        drawn = {i: (self.of.classes[i], kinds.count(i)) for i in (kinds[axis] for axis in rest)}
        return Form(
            share,
            tuple(given[axis] for axis in whole),
            np.transpose(probability, [*whole, *rest]),
            tuple(drawn.values()),
            tuple(breadths[axis] for axis in (*whole, *rest)),
        )


class _Space(NamedTuple):
    """Constants of all densities over the patterns of some classes.

    Attributes:
        uniform: the uniform law of the patterns, shape (2^m,).
        hits: their normalised hits and products of two, shape (2^m, m + m(m − 1)/2).
        numbers: of the sets T of these.
        alike: for every pattern the number of its representative, shape (2^m,): for attributes of
            one class only the number of changes matters.
        capped: the densities under the caps, if there are any.
    """

    uniform: FloatArray
    hits: FloatArray
    numbers: IntArray
    alike: IntArray
    capped: CappedDensities | None


def informative_breadths(n_categories: int, level: float) -> list[tuple[int, float]]:
    """Return the best numbers of categories for answers to a single question, with the factor of
    their information over that of answers with one category.

    With r = s/a and M = e^level the information is (M − 1)² r (1 − r)/((a − 1)(1 + (M − 1) r)²).

    >>> breadth, gain = informative_breadths(41, 1.0)[0]
    >>> breadth, round(gain, 2)
    (11, 4.2)
    """
    if level >= math.log(n_categories):  # best at r = 1/(M + 1), which is below 1/a
        return []
    r = np.arange(1, n_categories) / n_categories
    worth = r * (1 - r) / (1 + math.expm1(level) * r) ** 2
    near = [i for i in np.argsort(-worth, kind="stable") if worth[i] >= 0.995 * worth.max()]
    return [] if near[0] == 0 else [(int(i) + 1, float(worth[i] / worth[0])) for i in near if i]


def _value(costs: FloatArray, information: FloatArray) -> tuple[float, FloatArray]:
    """Return Σ κ_T/I_T, infinite if some T with a cost has no information, and the prices."""
    used = costs > 0
    if (information[used] <= 0).any():
        return math.inf, np.zeros(len(costs))
    prices = np.zeros(len(costs))
    prices[used] = costs[used] / information[used] ** 2
    return float((costs[used] / information[used]).sum()), prices


def shares_of(
    gathered: FloatArray, costs: FloatArray, start: FloatArray, tolerance: float
) -> FloatArray:
    """Return the shares of forms that minimise Σ κ_T/I_T, shape (n,).

    ``gathered``: I_T(c), shape (n, number of T).
    """
    used = costs > 0
    costs, shares = costs[used], start
    gathered = gathered[:, used]
    for sweep in range(2000):  # at most; it stops by the tolerance
        information = shares @ gathered
        slope = gathered @ (costs / information**2)
        value = float((costs / information).sum())
        if slope.max() <= value * (1 + tolerance):
            break
        shares = shares * (slope / value) ** (0.5 if sweep < 50 else 0.9)
        shares = shares / shares.sum()
    return np.asarray(shares)
