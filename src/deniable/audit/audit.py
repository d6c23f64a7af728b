"""The audit: draw, count, and compare with the claim."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.audit import limits
from deniable.audit.boxes import Box
from deniable.audit.plan import Plan, Response, log_quotient
from deniable.mechanism.privacy import finite_or_none, nats_text
from deniable.numerals import number_text
from deniable.randomness import BitSource, ExactCategorical, SystemRandomness
from deniable.tables.trials import middles

_CELLS_AT_ONCE = 4_000_000
"""Codes passed to the box at once, of 8 bytes: 32 MB."""

_FEWEST_AT_ONCE = 1_000
"""Least number of rows passed to a program at once."""

CONSISTENT = "consistent with the claim; an audit cannot prove it"


@dataclass(frozen=True)
class Level:
    """A claimed ε and its lower limit from the audit, in nats; ``claimed`` is inf without a
    guarantee."""

    claimed: float
    at_least: float

    @property
    def refuted(self) -> bool:
        """Whether the lower limit exceeds the claim."""
        return self.at_least > self.claimed

    def to_plain(self) -> dict[str, Any]:
        """Return plain values; None for no bound."""
        return asdict(self) | {"claimed": finite_or_none(self.claimed), "refuted": self.refuted}


@dataclass(frozen=True)
class Quantity:
    """A claimed number and its interval from the audit."""

    claimed: float
    low: float
    high: float
    refuted: bool

    def to_plain(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Audited:
    """Result on one attribute."""

    name: str
    epsilon: Level
    given_rest: Level | None
    attenuation: Quantity | None
    kept: bool

    def to_plain(self) -> dict[str, Any]:
        """Return plain values."""
        what = "keep_probability" if self.kept else "attenuation"
        return {
            "name": self.name,
            "epsilon": self.epsilon.to_plain(),
            "epsilon_given_rest": None if self.given_rest is None else self.given_rest.to_plain(),
            what: None if self.attenuation is None else self.attenuation.to_plain(),
        }


@dataclass(frozen=True)
class Audit:
    """Result of an audit."""

    plan: Plan
    draws: int
    epsilon: Level
    attributes: tuple[Audited, ...]
    pairs: tuple[tuple[tuple[str, str], Quantity], ...]
    refutations: tuple[str, ...]

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted."""
        return bool(self.refutations)

    @property
    def verdict(self) -> str:
        """Verdict in one sentence."""
        return f"REFUTED: {self.refutations[0]}" if self.refutations else CONSISTENT

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for strict JSON."""
        return {
            "verdict": self.verdict,
            "refuted": self.refuted,
            "refutations": list(self.refutations),
            "draws": self.draws,
            "error": self.plan.error,
            "power": [power.to_plain() for power in self.plan.power],
            "epsilon": self.epsilon.to_plain(),
            "attributes": [attribute.to_plain() for attribute in self.attributes],
            "pairs": [
                {"attributes": list(names), "attenuation": quantity.to_plain()}
                for names, quantity in self.pairs
            ],
        }


def audit(
    plan: Plan, box: Box, progress: Callable[[float | None], None] = lambda _fraction: None
) -> Audit:
    """Audit a black box against a claim."""
    drawing = _Drawing(plan, box, progress)
    mixed = _Mixed(plan)
    for true, released in drawing.mixed():
        mixed.add(true, released)
    fixed = drawing.fixed(plan.record(), plan.n_fixed)
    record, singles = _events(plan, drawing, fixed)
    attributes = tuple(
        Audited(
            response.name,
            mixed.level(place),
            singles[place] if singles else None,
            mixed.attenuation(place),
            not response.pattern,
        )
        for place, response in enumerate(plan.responses)
    )
    pairs = tuple(mixed.pairs())
    epsilon = record or attributes[0].epsilon if attributes else Level(0.0, 0.0)
    refutations = [
        *_level_sentences(epsilon, attributes),
        *drawing.altered,
        *_attenuation_sentences(attributes, pairs),
        *mixed.cells(),
        *_between(plan, drawing),
        *_repeats(plan, fixed),
    ]
    return Audit(plan, drawing.drawn, epsilon, attributes, pairs, tuple(refutations))


class _Drawing:
    """Passes rows to the box, in batches that fit into memory, at least two for every kind of
    row."""

    def __init__(self, plan: Plan, box: Box, progress: Callable[[float | None], None]) -> None:
        self.altered: list[str] = []
        self.drawn = 0
        self._plan = plan
        self._box = box
        self._progress = progress
        schema = plan.mechanism.schema
        self._sizes = schema.n_categories
        self._at_once = max(_FEWEST_AT_ONCE, _CELLS_AT_ONCE // len(self._sizes))
        randomized = {response.position for response in plan.responses}
        self._unchanged = [i for i in range(len(self._sizes)) if i not in randomized]

    def mixed(self) -> Iterator[tuple[list[NDArray[Any]], list[NDArray[Any]]]]:
        """Yield true and released codes of the randomized attributes."""
        source: BitSource = SystemRandomness()
        uniform = {size: ExactCategorical([1] * size) for size in set(self._sizes)}
        for count in self._batches(self._plan.n_mixed):
            codes = [uniform[size].draw(count, source) for size in self._sizes]
            released = self._released(codes)
            yield [codes[r.position] for r in self._plan.responses], released

    def between(self) -> Iterator[tuple[dict[int, NDArray[Any]], list[NDArray[Any]]]]:
        """Yield the intervals of numbers near the middle of two points, by the attribute's place,
        and released codes; all other true values are random."""
        source: BitSource = SystemRandomness()
        for count in self._batches(self._plan.n_between):
            codes = [ExactCategorical([1] * size).draw(count, source) for size in self._sizes]
            intervals = {}
            for place, claimed in self._plan.numbers.items():
                intervals[place] = ExactCategorical([1] * claimed.shape[1]).draw(count, source)
                codes[self._plan.responses[place].position] = intervals[place] + 0.5
            yield intervals, self._released(codes)

    def fixed(self, record: Sequence[int], count: int) -> list[NDArray[Any]]:
        """Return released codes of the randomized attributes, all rows with one true record."""
        return self._all([np.full(count, code, dtype=np.int64) for code in record])

    def each(self, records: Sequence[Sequence[int]], count: int) -> Iterator[list[NDArray[Any]]]:
        """Yield the same for each of some true records, in as few calls as possible."""
        released = self._all(
            [np.repeat(np.array(codes), count) for codes in zip(*records, strict=True)]
        )
        for place in range(len(records)):
            yield [column[place * count : (place + 1) * count] for column in released]

    def _all(self, codes: list[NDArray[Any]]) -> list[NDArray[Any]]:
        parts, start = [], 0
        for n in self._batches(len(codes[0])):
            parts.append(self._released([column[start : start + n] for column in codes]))
            start += n
        return [np.concatenate(columns) for columns in zip(*parts, strict=True)]

    def _batches(self, count: int) -> Iterator[int]:
        pieces = max(2, math.ceil(count / self._at_once))
        for piece in range(pieces):
            size = count * (piece + 1) // pieces - count * piece // pieces
            if size:
                yield size

    def _released(self, codes: list[NDArray[Any]]) -> list[NDArray[Any]]:
        released = self._box(codes)
        self.drawn += len(codes[0])
        self._progress(self.drawn / self._plan.draws)
        for position in self._unchanged:
            if not self.altered and np.any(released[position] != codes[position]):
                name = self._plan.mechanism.schema.names[position]
                self.altered.append(f"{name} is altered, and is claimed to be released unchanged")
        return self._plan.seen(released)


class _Mixed:
    """Counts of the rows with random true values."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._rows = 0
        self._cells = [
            None if r.matrix is None else np.zeros((r.outputs, r.size), dtype=np.int64)
            for r in plan.responses
        ]
        k = len(plan.responses)
        self._both = np.zeros((k, k), dtype=np.int64)

    def add(self, true: list[NDArray[Any]], released: list[NDArray[Any]]) -> None:
        """Count a batch."""
        rows = len(true[0]) if true else 0
        self._rows += rows
        kept = np.zeros((rows, len(true)), dtype=np.float32)
        for place, response in enumerate(self._plan.responses):
            x, y = true[place].astype(np.int64), released[place]
            counts = self._cells[place]
            if counts is not None:
                seen = np.bincount(y * response.size + x, minlength=counts.size)
                counts += seen.reshape(counts.shape)
            if response.square:
                kept[:, place] = response.unchanged(x, y)
        # Numbers of rows below 2^24 are exact in single precision.
        self._both += np.rint(kept.T @ kept).astype(np.int64)

    def level(self, place: int) -> Level:
        """Return the lower limit of ε of one attribute alone."""
        plan, response = self._plan, self._plan.responses[place]
        claimed = plan.mechanism.attribute_epsilon[response.position]
        error = plan.share(len(plan.responses))
        n, kept = self._rows, int(self._both[place, place])
        counts = self._cells[place]
        if response.pattern or counts is None:
            # Averaged over the true value, a value is released with probability p if it is the true
            # one and (1 − p)/(a − 1) if it is another.
            p, others = float(limits.lower(kept, n, error)), response.size - 1
            if response.keep < 1 / response.size:
                p = float(limits.upper(kept, n, error))
                odds = (1 - p) / others / p if p > 0 else math.inf
            else:
                odds = p * others / (1 - p) if p < 1 else math.inf
            return Level(claimed, max(0.0, math.log(odds)) if odds > 0 else 0.0)
        y, v, w = response.worst
        here, there = counts[y, v], counts[y, w]
        n_here, n_there = int(counts[:, v].sum()), int(counts[:, w].sum())
        return Level(claimed, log_quotient(here, n_here, there, n_there, error))

    def attenuation(self, place: int) -> Quantity | None:
        """Return the attenuation of one attribute."""
        response = self._plan.responses[place]
        if not response.square:
            return None
        error = self._plan.share(len(self._plan.responses))
        n, kept = self._rows, int(self._both[place, place])
        a = response.size

        def to_phi(kept: float) -> float:
            return (a * kept - 1) / (a - 1) if response.pattern else kept

        return _quantity(response.keep, kept, n, error, to_phi)

    def pairs(self) -> Iterator[tuple[tuple[str, str], Quantity]]:
        """Yield the probability that two attributes are both unchanged, as φ of the pair; for
        matrices as the probability itself."""
        plan = self._plan
        error = plan.share(len(plan.pairs))
        for (i, j), (both, to_phi) in zip(plan.pairs, plan.both_unchanged, strict=True):
            first, second = plan.responses[i], plan.responses[j]
            count = int(self._both[i, j])
            yield (first.name, second.name), _quantity(both, count, self._rows, error, to_phi)

    def cells(self) -> Iterator[str]:
        """Yield a sentence per attribute on the released value whose frequency under some true
        value differs most from the claim, if significantly."""
        error = self._plan.share(self._plan.n_cells)
        labels = self._plan.mechanism.output_labels
        for response, counts in zip(self._plan.responses, self._cells, strict=True):
            if counts is None or response.matrix is None:
                continue
            true = self._plan.mechanism.schema.attributes[response.position].categories
            yield from _most_off(
                response, counts, response.matrix, error, true, labels[response.position]
            )


def _most_off(
    response: Response,
    counts: NDArray[np.int64],
    claimed: NDArray[np.float64],
    error: float,
    true: Sequence[str],
    labels: Sequence[str],
) -> Iterator[str]:
    """Yield a sentence on the released value whose frequency differs most from the claim, if
    significantly. ``counts, claimed``: by released and true value, shape (m, a)."""
    rows, claimed = counts.sum(axis=0), np.clip(claimed, 0.0, 1.0)
    wrong = limits.differs(counts, rows[None, :], claimed, error)
    if wrong.any():
        off = np.abs(counts / np.maximum(rows, 1) - claimed) * wrong
        y, x = np.unravel_index(int(np.argmax(off)), off.shape)
        low = float(limits.lower(counts[y, x], rows[x], error / 2))
        high = float(limits.upper(counts[y, x], rows[x], error / 2))
        yield (
            f"{response.name} = {true[int(x)]} is released as {response.label(int(y), labels)} "
            f"with probability {number_text(low)} to {number_text(high)} where "
            f"{number_text(claimed[y, x])} was claimed"
        )


def _between(plan: Plan, drawing: _Drawing) -> Iterator[str]:
    """Yield a sentence per number whose values between points are not rounded as claimed."""
    if not plan.numbers:
        return
    counts = {p: np.zeros(claimed.shape, dtype=np.int64) for p, claimed in plan.numbers.items()}
    for intervals, released in drawing.between():
        for place, x in intervals.items():
            np.add.at(counts[place], (released[place], x), 1)
    error = plan.share(sum(each.size for each in counts.values()))
    for place, claimed in plan.numbers.items():
        response = plan.responses[place]
        attribute = plan.mechanism.schema.attributes[response.position]
        labels = plan.mechanism.output_labels[response.position]
        true = middles(attribute)[0]
        yield from _most_off(response, counts[place], claimed, error, true, labels)


def _quantity(
    claimed: float, count: int, n: int, error: float, to_phi: Callable[[float], float]
) -> Quantity:
    """Compare a claimed probability with its observed count, both as an attenuation."""
    low, high = limits.lower(count, n, error / 2), limits.upper(count, n, error / 2)
    refuted = bool(limits.differs(count, n, min(max(claimed, 0.0), 1.0), error))
    return Quantity(to_phi(claimed), to_phi(float(low)), to_phi(float(high)), refuted)


def _events(
    plan: Plan, drawing: _Drawing, fixed: list[NDArray[Any]]
) -> tuple[Level | None, list[Level]]:
    """Return the lower limits of ε of the record, and of every attribute given the rest."""
    if not plan.several:
        return None, []
    event, _ = plan.record_event
    others = drawing.fixed(plan.record(other=True), plan.n_fixed)
    counts = event.count(fixed), event.count(others)
    record = Level(
        plan.mechanism.epsilon,
        log_quotient(counts[0], plan.n_fixed, counts[1], plan.n_fixed, plan.share(1)),
    )
    error = plan.share(len(plan.responses))
    claimed = [plan.mechanism.epsilon_given_rest[r.position] for r in plan.responses]
    if not plan.n_single:
        return record, [Level(level, 0.0) for level in claimed]
    singles = []
    records = [plan.single(place) for place in range(len(plan.responses))]
    released = drawing.each(records, plan.n_single)
    for level, (event, _), there in zip(claimed, plan.single_events, released, strict=True):
        counts = event.count(fixed), event.count(there)
        shown = log_quotient(counts[0], plan.n_fixed, counts[1], plan.n_single, error)
        singles.append(Level(level, shown))
    return record, singles


def _repeats(plan: Plan, fixed: list[NDArray[Any]]) -> Iterator[str]:
    """Yield a sentence for every trace of reused random bits."""
    if not fixed:
        return
    if _has_repeat(fixed, plan.window):
        yield f"{plan.window} consecutive rows occur twice: random bits were reused"
    # Neighbouring rows agree as often as two independent rows.
    error = plan.share(2 * len(plan.responses))
    for response, column in zip(plan.responses, fixed, strict=True):
        half = len(column) // 2
        agree = int(np.count_nonzero(column[: 2 * half : 2] == column[1 : 2 * half : 2]))
        claimed = float((response.column(response.worst[1]) ** 2).sum())
        if half and limits.differs(agree, half, min(claimed, 1.0), error):
            yield (
                f"neighbouring rows agree in {response.name} with frequency "
                f"{number_text(agree / half)} where {number_text(claimed)} was claimed: they "
                "share random bits"
            )


def _has_repeat(columns: Sequence[NDArray[Any]], window: int) -> bool:
    """Return whether some consecutive rows occur again later."""
    n = len(columns[0])
    if n < window + 1:
        return False
    numbers, most = np.zeros(n, dtype=np.int64), 1  # one number per distinct row, below `most`
    for column in columns:
        size = int(column.max()) + 1
        if most * size >= 1 << 62:
            numbers, most = _numbered(numbers), n
        numbers, most = numbers * size + column, most * size
    # Equal runs of rows get equal numbers: first runs of 2, then of 4, 8, …
    numbers, length = _numbered(numbers), 1
    while length < window:
        step = min(length, window - length)
        numbers, length = _numbered(numbers[:-step] * n + numbers[step:]), length + step
    return len(np.unique(numbers)) < len(numbers)


def _numbered(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return an index of each distinct value, from 0, shape (n,)."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _level_sentences(epsilon: Level, attributes: Sequence[Audited]) -> Iterator[str]:
    if epsilon.refuted and len(attributes) > 1:
        yield _at_least(epsilon, "of the record")
    for attribute in attributes:
        if attribute.epsilon.refuted:
            yield _at_least(attribute.epsilon, f"of {attribute.name} alone")
        if attribute.given_rest is not None and attribute.given_rest.refuted:
            yield _at_least(attribute.given_rest, f"of {attribute.name} given the rest")


def _at_least(level: Level, what: str) -> str:
    shown = "no bound at all"
    if math.isfinite(level.at_least):
        shown = "at least " + nats_text(number_text(level.at_least))
    return f"{shown} where {number_text(level.claimed)} was claimed, {what}"


def _attenuation_sentences(
    attributes: Sequence[Audited], pairs: Sequence[tuple[tuple[str, str], Quantity]]
) -> Iterator[str]:
    for attribute in attributes:
        quantity = attribute.attenuation
        if quantity is not None and quantity.refuted:
            what = "is kept with probability" if attribute.kept else "has an attenuation of"
            yield f"{attribute.name} {what} {_interval(quantity)}"
    for names, quantity in pairs:
        if quantity.refuted:
            yield f"{names[0]} and {names[1]} together have an attenuation of {_interval(quantity)}"


def _interval(quantity: Quantity) -> str:
    return (
        f"{number_text(quantity.low)} to {number_text(quantity.high)} where "
        f"{number_text(quantity.claimed)} was claimed"
    )
