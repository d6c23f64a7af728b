"""Plan of an audit, made from the claimed law before a row is drawn; and its power.

Rows are of three kinds. *Mixed* rows have random true values: they give the probability of every
released value given every true one, attribute by attribute, and how often two attributes are both
unchanged; further ones have numbers between the points of their grids. *Fixed* rows have one true
record x, or another x': between these the claimed law has, in every attribute, the largest ratio of
a column alone. *Single* rows differ from x in one attribute. In fixed and single rows an event is
counted that is much likelier under x by the claimed law; a sample from the law chooses the event,
and fresh draws are counted.

The probabilities of any event under two records differ by at most e^ε, so the quotient of a lower
and an upper limit is a lower limit of e^ε. A badly chosen event costs power, never truth.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.audit import limits
from deniable.errors import InputError
from deniable.laws import PatternLaw
from deniable.laws.forms import PublishedForms
from deniable.laws.matrix import ResponseLaw
from deniable.laws.set_answers import SetAnswers
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SystemRandomness
from deniable.tables.trials import middles, rounding_of_points

Floats = NDArray[np.float64]

DRAWS = 1_000_000
ERROR = 1e-6
"""Probability of refuting an honest mechanism, over the whole audit."""

_KINDS = 9
"""Kinds of comparisons, each with an equal part of the error, divided among its comparisons."""

_MOST_CELLS = 1 << 20
"""Largest response matrix of one attribute compared cell by cell, of 8 bytes a cell: 8 MB."""

_MOST_CELLS_OF_SETS = 1 << 25
"""The same for set-valued categories, 256 MB: these can only be audited by the matrix."""

_MOST_PAIRS = 5_000
"""Largest number of pairs, all those of 100 attributes; beyond, the nearest in the schema's
order."""

_LEAST_LOG = -60.0
"""ln 0 in a score: e^-60 is below any probability visible in the trials, and sums stay finite."""

_TRIALS = 20_000
"""Draws from the claimed law that choose the events."""


@dataclass(frozen=True)
class Power:
    """Probability of detecting a defect."""

    defect: str
    probability: float
    attribute: str = ""

    def to_plain(self) -> dict[str, Any]:
        """Return plain values."""
        plain = {"defect": self.defect, "probability": self.probability}
        return plain | ({"attribute": self.attribute} if self.attribute else {})


@dataclass(frozen=True)
class Response:
    """Claimed response of one attribute.

    ``keep``: probability that the released value is the true one, averaged over the categories; NaN
    if the outputs are not the categories. ``matrix``: M[y, x], shape (m, a); None beyond 2^20
    cells. ``at_points``: whether the true values are; a date has whole days, its grid may not.
    """

    position: int
    name: str
    size: int
    outputs: int
    keep: float
    pattern: bool
    matrix: Floats | None = field(repr=False)
    included: float = 1.0
    forms: int = 0
    sets: SetAnswers | None = None
    others: float = 0.0
    at_points: bool = True

    @property
    def square(self) -> bool:
        """Whether released values are categories, possibly with a form."""
        return self.at_points and (self.size == self.outputs or self.forms > 0)

    def seen(self, released: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
        """Return the released values, shape (n,), from a box's output."""
        codes = released[self.position].astype(np.int64)
        return released[-1] * (self._answers + 1) + codes if self.forms else codes

    @property
    def _answers(self) -> int:
        return self.size + (0 if self.sets is None else self.sets.n_answers)

    def unchanged(self, true: NDArray[Any], seen: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether released values are the true ones, shape (n,)."""
        answers = seen % (self._answers + 1) if self.forms else seen
        if self.sets is None:
            return np.asarray(answers == true)
        holds = np.zeros((self._answers + 1, self.size), dtype=bool)
        np.fill_diagonal(holds[: self.size], val=True)
        holds[self.size : -1] = self.sets.holds()
        return np.asarray(holds[answers, true])

    def label(self, seen: int, labels: Sequence[str]) -> str:
        """Return the label of a released value."""
        if not self.forms:
            return labels[seen]
        form, code = divmod(seen, self._answers + 1)
        answer = "no answer" if code == self._answers else labels[code]
        return f"{answer} under form {form + 1}"

    def column(self, code: int) -> Floats:
        """Return the probabilities of the released values of one true value, shape (m,)."""
        if self.matrix is not None:
            return self.matrix[:, code]
        rest = np.full(self.outputs, (1 - self.keep) / (self.size - 1))
        rest[code] = self.keep
        return rest

    @cached_property
    def worst(self) -> tuple[int, int, int]:
        """A released value, and the two true ones with the largest ratio for it."""
        if self.matrix is None or self.pattern:
            return (0, 0, 1) if self.keep >= 1 / self.size else (1, 0, 1)
        most, least = self.matrix.argmax(axis=1), self.matrix.argmin(axis=1)
        rows = np.arange(self.outputs)
        top, bottom = self.matrix[rows, most], self.matrix[rows, least]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(top > 0, top / bottom, 0.0)
        y = int(np.lexsort((top, ratios))[-1])
        return y, int(most[y]), int(least[y])


@dataclass(frozen=True)
class Event:
    """A set of released records: those with a score in an interval, and optionally a column in a
    set."""

    scores: Sequence[Floats]
    low: float
    high: float = math.inf
    attribute: int | None = None
    values: NDArray[np.bool_] | None = None

    def count(self, columns: Sequence[NDArray[Any]]) -> int:
        """Return the number of records in the event."""
        held = total_score(self.scores, columns)
        inside = (held >= self.low) & (held <= self.high)
        if self.attribute is not None and self.values is not None:
            inside &= self.values[columns[self.attribute]]
        return int(np.count_nonzero(inside))


def total_score(scores: Sequence[Floats], columns: Sequence[NDArray[Any]]) -> Floats:
    """Return the sum of the scores of every record, rounded to preserve ties, shape (n,)."""
    total = np.zeros(len(columns[0]))
    for score, column in zip(scores, columns, strict=True):
        total += score[column]
    return np.round(total, 9)


@dataclass(frozen=True)
class Plan:
    """An audit of a claimed mechanism, before any draw.

    ``rounds``: whether the audited program takes numbers and rounds them to the points of their
    grid, and that is audited, too: the codes j + 1/2 of its box are numbers between two points.
    """

    mechanism: Mechanism
    draws: int = DRAWS
    error: float = ERROR
    rounds: bool = False

    @cached_property
    def responses(self) -> tuple[Response, ...]:
        """The randomized attributes."""
        found = []
        for i, attribute in enumerate(self.mechanism.schema.attributes):
            if not self.mechanism.block_of(i)[0].law.kept_as_it_is:
                response = _response(self.mechanism, i)
                rounded = rounding_of_points(attribute) if self.rounds else None
                if rounded is not None and response.matrix is not None:
                    matrix = response.matrix @ rounded
                    response = replace(response, matrix=matrix, pattern=False, at_points=False)
                found.append(response)
        return tuple(found)

    @property
    def several(self) -> bool:
        """Whether the record has more than one randomized attribute."""
        return len(self.responses) > 1

    @property
    def n_mixed(self) -> int:
        """Number of rows with random true values."""
        return (self.draws // 2 if self.several else 3 * self.draws // 4) - self.n_between

    @cached_property
    def numbers(self) -> dict[int, Floats]:
        """The claimed probabilities of the released values by the interval between two points of a
        number near its middle, shape (m, intervals), by the place among the responses."""
        found = {}
        for place, response in enumerate(self.responses if self.rounds else ()):
            attribute = self.mechanism.schema.attributes[response.position]
            matrix = _response(self.mechanism, response.position).matrix
            if attribute.number_grid is not None and matrix is not None:
                upper = np.array(middles(attribute)[1])
                points = matrix[:, : len(upper) + 1]
                found[place] = points[:, :-1] * (1 - upper) + points[:, 1:] * upper
        return found

    @property
    def n_between(self) -> int:
        """Number of rows with numbers between the points of their grids."""
        return self.draws // 8 if self.numbers else 0

    @property
    def n_fixed(self) -> int:
        """Number of rows with the true record x; as many with x' for several attributes."""
        return self.draws // 8 if self.several else self.draws - 3 * self.draws // 4

    @property
    def n_single(self) -> int:
        """Number of rows per attribute whose true record differs from x in it alone."""
        if not self.several:
            return 0
        rest = self.draws - self.n_mixed - self.n_between - 2 * self.n_fixed
        return rest // len(self.responses)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Audited pairs, by their places among the attributes."""
        k = len(self.responses)
        pairs = [(i, i + step) for step in range(1, k) for i in range(k - step)]
        both = [p for p in pairs[:_MOST_PAIRS] if all(self.responses[i].square for i in p)]
        return tuple(both)

    @cached_property
    def both_unchanged(self) -> tuple[tuple[float, Callable[[float], float]], ...]:
        """Per pair the claimed probability that both are unchanged, and the map from that
        probability to φ of the pair; for matrices the identity."""
        return tuple(
            _both_unchanged(self.mechanism, self.responses[i], self.responses[j])
            for i, j in self.pairs
        )

    def share(self, questions: int) -> float:
        """Return the error of one comparison among ``questions`` of a kind."""
        return self.error / _KINDS / max(1, questions)

    @cached_property
    def n_cells(self) -> int:
        """Number of audited probabilities of a released value given a true one."""
        return sum(r.size * r.outputs for r in self.responses if r.matrix is not None)

    def seen(self, released: Sequence[NDArray[Any]]) -> list[NDArray[np.int64]]:
        """Return the released values of the randomized attributes from a box's output."""
        return [response.seen(released) for response in self.responses]

    # --- the events ------------------------------------------------------------------------------

    def record(self, *, other: bool = False) -> list[int]:
        """Return x, or x', as codes of all attributes of the schema."""
        codes = [0] * len(self.mechanism.schema.attributes)
        for response in self.responses:
            codes[response.position] = response.worst[2 if other else 1]
        return codes

    def single(self, place: int) -> list[int]:
        """Return the record that differs from x in one attribute."""
        codes = self.record()
        codes[self.responses[place].position] = self.responses[place].worst[2]
        return codes

    @cached_property
    def _trials(self) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        randomizer = Randomizer(self.mechanism, SystemRandomness())

        def drawn(codes: list[int]) -> list[NDArray[Any]]:
            columns = randomizer.randomize([np.full(_TRIALS, c, dtype=np.int64) for c in codes])
            return self.seen(columns)

        return drawn(self.record()), drawn(self.record(other=True))

    @cached_property
    def record_event(self) -> tuple[Event, float]:
        """The event for ε of the record, and its expected lower limit."""
        scores = [_log(r.column(r.worst[1])) - _log(r.column(r.worst[2])) for r in self.responses]
        here, there = (np.sort(total_score(scores, columns)) for columns in self._trials)
        best, shown = Event(scores, -math.inf), 0.0
        for low in np.unique(np.quantile(here, np.linspace(0, 0.999, 80), method="higher")):
            event = _TRIALS - np.searchsorted(here, low), _TRIALS - np.searchsorted(there, low)
            bound = self._expected(*event, self.n_fixed, self.n_fixed, self.share(1))
            if bound > shown:
                best, shown = Event(scores, float(low)), bound
        return best, shown

    @cached_property
    def single_events(self) -> tuple[tuple[Event, float], ...]:
        """Per attribute the event for ε given the rest, and its expected lower limit."""
        if not self.several:
            return ()
        randomizer = Randomizer(self.mechanism, SystemRandomness())
        count = min(_TRIALS, max(1000, 20 * _TRIALS // len(self.responses)))
        scores = [_log(r.column(r.worst[1])) - _log(_average(r)) for r in self.responses]
        here = [column[:count] for column in self._trials[0]]
        events = []
        for place, response in enumerate(self.responses):
            y, v, w = response.worst
            values = response.column(v) > response.column(w)
            values[y] = True
            rest = [np.zeros_like(s) if i == place else s for i, s in enumerate(scores)]
            columns = randomizer.randomize(
                [np.full(count, c, dtype=np.int64) for c in self.single(place)]
            )
            there = self.seen(columns)
            held = [np.sort(total_score(rest, c)[values[c[place]]]) for c in (here, there)]
            events.append(self._window(rest, place, values, held, count))
        return tuple(events)

    def _window(
        self,
        scores: Sequence[Floats],
        place: int,
        values: NDArray[np.bool_],
        held: Sequence[Floats],
        count: int,
    ) -> tuple[Event, float]:
        """Return the interval of the others' scores with the highest limit for one attribute."""
        error = self.share(len(self.responses))
        all_scores = np.concatenate(held)
        if not len(all_scores):
            return Event(scores, -math.inf, math.inf, place, values), 0.0
        edges = np.unique(np.quantile(all_scores, np.linspace(0, 1, 13), method="nearest"))
        lows, highs = [-math.inf, *edges[1:].tolist()], [*edges[:-1].tolist(), math.inf]
        best, shown = Event(scores, -math.inf, math.inf, place, values), -1.0
        for low in lows:
            for high in highs:
                if low > high:
                    continue
                inside = [
                    int(np.searchsorted(h, high, "right") - np.searchsorted(h, low)) for h in held
                ]
                scaled = [c * _TRIALS / count for c in inside]
                bound = self._expected(scaled[0], scaled[1], self.n_fixed, self.n_single, error)
                if bound > shown:
                    best, shown = Event(scores, low, high, place, values), bound
        return best, max(shown, 0.0)

    def _expected(self, here: float, there: float, n: int, n_there: int, error: float) -> float:
        """Return the expected limit from two counts of the trials."""
        if not here or not n or not n_there:
            return 0.0
        # Rare events of the trials look rarer than they are: add one to both counts.
        counts = here * n / (_TRIALS + 1), (there + 1) * n_there / (_TRIALS + 1)
        return log_quotient(counts[0], n, counts[1], n_there, error)

    # --- what would be seen ----------------------------------------------------------------------

    @cached_property
    def power(self) -> tuple[Power, ...]:
        """Probability of detecting each of five defects, in the attribute where it is lowest."""
        powers = []
        squares = [r for r in self.responses if r.square]
        defects: dict[str, Callable[[Response], float]] = {
            "an attribute is released unchanged": lambda r: self._keeps(r, r.included),
            "a changed value can be the true one": lambda r: self._keeps(
                r, r.keep + (r.included - r.keep) / r.size
            ),
            "two categories of an attribute are swapped": self._swapped,
            "a keep probability is 2 % too high": lambda r: self._keeps(
                r, min(r.included, 1.02 * r.keep)
            ),
        }
        for defect, probability in defects.items():
            each = [(probability(r), r.name) for r in squares]
            if each:
                least, name = min(each)
                powers.append(Power(defect, least, name))
        enough = self.n_fixed // 2 >= self.window
        powers.append(Power("a run repeats the random bits of another", float(enough)))
        return tuple(powers)

    def _keeps(self, response: Response, keep: float) -> float:
        error = self.share(len(self.responses))
        return limits.power(self.n_mixed, response.keep, keep, error)

    def _swapped(self, response: Response) -> float:
        # Rows with one true value: nearly all runs have nine tenths of their expected number.
        rows = self.n_mixed / response.size
        wrong = (response.included - response.keep) / (response.size - 1) + response.others
        cell = limits.power(0.9 * rows, response.keep, wrong, self.share(self.n_cells))
        if response.matrix is None or response.forms:
            cell = 0.0
        moved = response.keep + 2 / response.size * (wrong - response.keep)
        return max(cell, self._keeps(response, moved))

    @cached_property
    def window(self) -> int:
        """Number of consecutive rows of one true record that never repeat in an honest run, except
        with the error.

        c, the probability that two released records agree, is at most the product over blocks of
        the least such probability of one of their attributes. Two windows of w rows at any distance
        agree with probability at most c^(w/2): at a distance below w the rows fall into chains, and
        along one of length l the probability Σp^l of all equal is at most c^(l/2). There are fewer
        than n² pairs of windows.
        """
        least: dict[int, float] = {}
        for response in self.responses:
            block, _ = self.mechanism.block_of(response.position)
            agree = max(float((response.column(v) ** 2).sum()) for v in response.worst[1:])
            key = self.mechanism.blocks.index(block)
            least[key] = min(agree, least.get(key, 1.0))
        c = math.prod(least.values())
        if c >= 1:
            return self.draws + 1
        n = 2 * self.n_fixed
        return math.ceil(2 * (2 * math.log(max(n, 2)) - math.log(self.share(2))) / -math.log(c))


def _both_unchanged(
    mechanism: Mechanism, first: Response, second: Response
) -> tuple[float, Callable[[float], float]]:
    """Return the claimed probability that both are unchanged, and its map to φ of the pair.

    With z the indicator of an unchanged value, h = αz − β with α = a/(a − 1), β = 1/(a − 1), and
    φ_ij = E h_i h_j = α_i α_j Pr[both] − α_i β_j p_i − β_i α_j p_j + β_i β_j.
    """
    block, place = mechanism.block_of(first.position)
    other, other_place = mechanism.block_of(second.position)
    if block is other and isinstance(block.law, PublishedForms):
        return _answered_together(block.law, place, other_place), lambda both: both
    if not (first.pattern and second.pattern):
        return first.keep * second.keep, lambda both: both
    alphas = [r.size / (r.size - 1) for r in (first, second)]
    betas = [1 / (r.size - 1) for r in (first, second)]
    constant = (
        betas[0] * betas[1] - alphas[0] * betas[1] * first.keep - betas[0] * alphas[1] * second.keep
    )
    scale = alphas[0] * alphas[1]
    if block is other:
        assert isinstance(block.law, PatternLaw)
        phi = float(block.law.eigenvalues((place, other_place))[1, 1])
        both = (phi - constant) / scale
    else:
        both = first.keep * second.keep
    return both, lambda value: scale * value + constant


def _answered_together(law: PublishedForms, first: int, second: int) -> float:
    """Return the probability that two attributes are in one form and both unchanged, over the forms
    and their draws: Σ_T φ(T) ∏_{i∈T} (a_i − 1) / ∏ a_i for forms with both; a_i/s_i in place of a_i
    for answers that name sets of size s_i."""
    total = 0.0
    for share, form in zip(law.probabilities, law.forms, strict=True):
        for asked, probability in form.variants((first, second)):
            if len(asked) == 2:
                phi = form.given(asked).eigenvalues((first, second))
                a, b = (
                    law.n_categories[i] / (1 if (sets := form.sets_of(i)) is None else sets.breadth)
                    for i in (first, second)
                )
                kept = (
                    phi[0, 0]
                    + (a - 1) * phi[1, 0]
                    + (b - 1) * phi[0, 1]
                    + (a - 1) * (b - 1) * phi[1, 1]
                ) / (a * b)
                total += float(share) * probability * float(kept)
    return total


def log_quotient(here: float, n: int, there: float, n_there: int, error: float) -> float:
    """Return a lower limit of ln(p/q) from counts of two independent samples, at least 0."""
    low = float(limits.lower(here, n, error / 2))
    high = float(limits.upper(there, n_there, error / 2))
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def _response(mechanism: Mechanism, position: int) -> Response:
    block, place = mechanism.block_of(position)
    law = block.law
    if isinstance(law, PublishedForms):
        return _response_with_forms(mechanism, position, law, place)
    size, outputs = law.n_categories[place], law.n_outputs[place]
    keep = float(law.keep_probabilities()[place])
    matrix = None
    if isinstance(law, ResponseLaw):
        matrix = law.matrix()
    elif size * outputs <= _MOST_CELLS:
        matrix = _even(size, keep)
    name = mechanism.schema.names[position]
    return Response(position, name, size, outputs, keep, isinstance(law, PatternLaw), matrix)


def _even(size: int, keep: float) -> Floats:
    """Return the response matrix in which a changed value is uniform over the others."""
    matrix = np.full((size, size), (1 - keep) / (size - 1))
    np.fill_diagonal(matrix, keep)
    return matrix


def _response_with_forms(
    mechanism: Mechanism, position: int, law: PublishedForms, place: int
) -> Response:
    name, size, answers = mechanism.schema.names[position], law.n_categories[place], law.n_outputs
    outputs, sets = len(law.forms) * (answers[place] + 1), law.sets.get(place)
    kept = others = 0.0
    if sets is not None and outputs * size > _MOST_CELLS_OF_SETS:
        raise InputError(
            f"an audit of the sets that answers to '{name}' name is too large; use another method"
        )
    matrix = np.zeros((len(law.forms), answers[place] + 1, size))
    for share, form, rows in zip(law.probabilities, law.forms, matrix, strict=True):
        for asked, probability in form.variants((place,)):
            if not asked:
                rows[-1] += share * probability
                continue
            own, phi = form.sets_of(place), float(form.given(asked).eigenvalues((place,))[1])
            by_chance = (1 if own is None else own.breadth) / size
            keep = by_chance + (1 - by_chance) * phi
            kept += float(share) * probability * keep
            others += float(share) * probability * (by_chance * size - 1) / (size - 1)
            if own is None:
                rows[:size] += share * probability * _even(size, keep)
            else:
                evenly = np.where(
                    own.holds(), keep / own.breadth, (1 - keep) / (size - own.breadth)
                )
                weights = np.repeat(own.shares, size)[:, None]
                rows[size:-1] += share * probability * weights * evenly
    return Response(
        position,
        name,
        size,
        outputs,
        kept,
        pattern=False,
        matrix=matrix.reshape(outputs, size),
        included=float(matrix[:, :-1, 0].sum()),
        forms=len(law.forms),
        sets=sets,
        others=others,
    )


def _average(response: Response) -> Floats:
    if response.matrix is not None:
        return np.asarray(response.matrix.mean(axis=1))
    return np.full(response.outputs, 1 / response.outputs)


def _log(probabilities: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(probabilities), _LEAST_LOG)
