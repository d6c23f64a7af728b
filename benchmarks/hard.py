"""Designs far from ordinary ones, row by row: what is demanded of each, and what came of it.

`python benchmarks/bench_optimal.py --hard` prints them. Levels and categories are drawn by
`numpy.random.default_rng(seed)`; seconds are CPU seconds of one core. A gap is what is proved: ε
as drawn, rounded up, less the lower bound, rounded down.
"""

import itertools
import json
import math
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from bench_commands import EXAMPLES, SHARE, run
from floor_bound import least_epsilon
from measured import Measured

from deniable.design.design import design
from deniable.errors import InputError
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.vote_law import VoteLaw
from deniable.mechanism.prediction import expected_variance
from deniable.schema import Schema
from deniable.solvers.patterns import optimal
from deniable.statement.account import Design

CLASSES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "0.3 to 3": lambda random, k: random.uniform(0.3, 3.0, k),
    "large": lambda random, k: random.uniform(1.0, 10.0, k),
    "giant": lambda random, k: np.append(random.uniform(0.2, 1.5, k - 1), 20.0),
    "spread": lambda random, k: np.exp(random.uniform(math.log(1e-3), math.log(12.0), k)),
    "equal": lambda _, k: np.full(k, 0.3),
    "8 to 20": lambda random, k: random.uniform(8.0, 20.0, k),
}
"""Levels in nats: *spread* is even in the logarithm from 0.001 to 12, *giant* one of 20 beside 0.2
to 1.5, *large* 1 to 10, *equal* 0.3."""

CATEGORIES = ("2", "5", "2…50", "10,000")
"""Of every attribute; "10,000" is one of so many beside 2 to 50."""

ORDINARY = [
    # attributes, levels, largest gap (nats), most seconds
    (2, (0.1, 3.0), 1e-8, 0.2),
    (5, (0.1, 3.0), 1e-8, 0.2),
    (8, (0.05, 6.0), 1e-8, 0.2),
    (12, (0.1, 3.0), 1e-8, 0.2),
    (20, (0.1, 3.0), 4e-4, 3.0),
    (30, (0.1, 3.0), 1e-4, 3.0),
    (40, (0.1, 3.0), 1e-4, 3.0),
    (60, (0.1, 3.0), 1e-4, 3.0),
    (100, (0.2, 1.0), 1e-3, 3.0),
    (200, (0.15, 0.6), 1e-3, 3.0),
    (1000, (0.13, 0.26), 1e-2, 10.0),
    (10_000, (0.02, 0.1), 8e-4, 10.0),
]

SHAPES = {
    "Adult": (5, 9, 5, 16, 16, 7, 15, 6, 5, 2, 5, 5, 5, 42, 2),
    "VietNamI": (22, 5, 5, 2, 2, 11, 9, 2, 32, 22, 2, 5),
    "insurance": (2, 2, 2, 2, 6, 6, 3, 5, 3, 4, 7, 4),
    "12 mixed": (2, 5, 7, 16, 41, 2, 5, 7, 16, 41, 2, 5),
    "16 mixed": (2, 5, 7, 16, 41, 2, 5, 7, 16, 41, 2, 5, 7, 16, 41, 2),
}
"""Categories of tables that people have."""


SLOWEST = 15.0
"""CPU seconds that any design may take."""


@dataclass(frozen=True)
class Demand:
    """A figure, and the limit that it may not cross: from above, or from below if `least`."""

    what: str
    figure: float
    limit: float
    least: bool = False

    @property
    def held(self) -> bool:
        """Whether the figure is within the limit; one that is not a number never is."""
        return self.figure >= self.limit if self.least else self.figure <= self.limit

    def __str__(self) -> str:
        return f"{self.what} {self.figure:.4g} {'≥' if self.least else '≤'} {self.limit:g}"


@dataclass(frozen=True)
class Line:
    """One design: what it is of, what came out, what is demanded, and the CPU seconds."""

    k: int
    levels: str
    categories: str
    seed: int
    epsilon: float
    gap: float | None
    demands: tuple[Demand, ...]
    seconds: float
    most: float
    asked: str = ""

    @property
    def missed(self) -> bool:
        """Whether a demand is not met, the seconds included."""
        return not (self.seconds <= self.most and all(demand.held for demand in self.demands))

    def __str__(self) -> str:
        gap = "" if self.gap is None else f"{self.gap:.1e}"
        demanded = ", ".join(map(str, self.demands))
        return (
            f"{self.k:>4} {self.levels:<12} {self.categories:<9} {self.seed:>4} "
            f"{self.epsilon:>10.5f} {gap:>8} {self.seconds:>6.2f} {self.most:>4g}  "
            f"{'MISS  ' if self.missed else ''}{demanded}{self.asked and '; '}{self.asked}"
        )


HEADING = (
    f"{'row':<9}{'k':>4} {'levels':<12} {'categories':<9} {'seed':>3} {'ε':>10} {'gap':>8} "
    f"{'s':>6} {'most':>4}  demanded"
)


def counts_of(categories: str, k: int, random: np.random.Generator) -> list[int]:
    """Return category counts, shape (k,)."""
    if categories in ("2", "5"):
        return [int(categories)] * k
    counts = np.rint(np.exp(random.uniform(math.log(2), math.log(50), k))).astype(int).tolist()
    if categories == "10,000":
        counts[0] = 10_000
    return counts


def instance(levels: str, categories: str, k: int, seed: int) -> tuple[list[int], list[float]]:
    """Return category counts and levels of a class."""
    random = np.random.default_rng(seed)
    return counts_of(categories, k, random), CLASSES[levels](random, k).tolist()


def timed(counts: list[int], **request: Any) -> tuple[Design, float]:
    """Return a design and its CPU seconds."""
    schema = Schema.anonymous(counts)
    start = time.process_time()
    made = design(schema, **request)
    return made, time.process_time() - start


def short(delivered: Iterable[float], asked: Iterable[float]) -> Demand:
    """Demand levels that are those asked for, none above."""
    off = max(level - got for level, got in zip(asked, delivered, strict=True))
    over = any(got > level for level, got in zip(asked, delivered, strict=True))
    return Demand("levels short by", math.inf if over else off, 1e-9)


def above(made: Design) -> float:
    """Return how far ε is above what is proved of any law, in nats; infinite if not known."""
    return math.inf if made.gap is None else made.gap


# --- The optimum ---


def optimum_cases(seeds: Iterable[int]) -> Iterator[tuple[Any, ...]]:
    far = ("large", "spread", "giant", "equal")
    for sizes, classes, most in (
        ((21, 30, 50), far, 6.0),
        ((100,), far, 8.0),
        ((300,), far[:3], 14.0),
    ):
        for k, levels, categories, seed in itertools.product(sizes, classes, CATEGORIES, seeds):
            yield levels, categories, k, seed, most
    for seed in seeds:
        yield "large", "2", 1000, seed, 15.0  # no design may take longer


def optimum(levels: str, categories: str, k: int, seed: int, most: float) -> Iterator[Line]:
    drawn = instance(levels, categories, k, seed)
    yield proved(*drawn, (levels, categories, seed), Demand("gap/ε", math.nan, 2.1e-4), most)


def ordinary_instance(
    k: int, levels: tuple[float, float], seed: int
) -> tuple[list[int], list[float]]:
    """Return category counts of 2 to 9 and levels."""
    random = np.random.default_rng(seed)
    return random.integers(2, 10, k).tolist(), random.uniform(*levels, k).tolist()


def ordinary(at: int, seed: int) -> Iterator[Line]:
    k, levels, gap, most = ORDINARY[at]
    drawn, said = ordinary_instance(k, levels, seed), f"{levels[0]:g} to {levels[1]:g}"
    yield proved(*drawn, (said, "2…9", seed), Demand("gap", math.nan, gap), most)


def eight_to_twenty(categories: str, k: int, seed: int) -> Iterator[Line]:
    drawn = instance("8 to 20", categories, k, seed)
    yield proved(*drawn, ("8 to 20", categories, seed), Demand("gap", math.nan, 1e-3), SLOWEST)


def proved(
    counts: list[int],
    asked: list[float],
    drawn: tuple[str, str, int],
    demand: Demand,
    most: float,
) -> Line:
    """Return the line of an optimum, of whose gap, or its part of ε, something is demanded."""
    start = time.process_time()
    solution = optimal.solve(counts, asked)
    seconds = time.process_time() - start
    figure = solution.gap / (solution.epsilon if demand.what == "gap/ε" else 1.0)
    levels = np.empty(len(asked))
    for part in solution.parts:
        levels[list(part.attributes)] = part.account.attribute_epsilon
    demands = (replace(demand, figure=figure), short(levels.tolist(), asked))
    return Line(len(asked), *drawn, solution.epsilon, solution.gap, demands, seconds, most)


# --- The default method ---


def balanced_cases(seeds: Iterable[int]) -> Iterator[tuple[Any, ...]]:
    for sizes, classes, most in (
        ((11, 13, 20, 30, 50), ("0.3 to 3", "large"), 0.6),
        ((21, 30, 50), ("giant", "spread"), 1.0),
    ):
        for k, levels, categories, seed in itertools.product(sizes, classes, CATEGORIES, seeds):
            yield levels, categories, k, seed, most


def balanced(levels: str, categories: str, k: int, seed: int, most: float) -> Iterator[Line]:
    counts, asked = instance(levels, categories, k, seed)
    made, seconds = timed(counts, attribute_epsilon=asked)
    levels_kept = short(made.mechanism.attribute_epsilon, asked)
    gap, said = above(made), ""
    if gap > most and made.pair_floor is not None:
        # The bound knows of no floor.
        bound = least_epsilon(counts, asked, made.pair_floor, made.epsilon)
        costs = bound - (made.epsilon - gap)
        if costs > 0.0:
            gap -= costs
            said = f"above any law with the floor, which alone costs {costs:.3g}"
    demands = (Demand("gap", gap, most), levels_kept)
    yield Line(k, levels, categories, seed, made.epsilon, made.gap, demands, seconds, 4.0, said)


def floor_cases(seeds: Iterable[int]) -> Iterator[tuple[Any, ...]]:
    for floor, sizes, most in ((0.9, (20, 30), 1.2), (1.0, (11, 13, 20, 30, 100), 1.6)):
        for k, categories, seed in itertools.product(sizes, CATEGORIES, seeds):
            yield floor, categories, k, seed, most


def floor(least: float, categories: str, k: int, seed: int, most: float) -> Iterator[Line]:
    counts, asked = instance("0.3 to 3", categories, k, seed)
    made, seconds = timed(counts, attribute_epsilon=asked, pair_floor=least)
    # Against the bound, which the optimum is not below.
    demands = (
        Demand("ε/bound", made.epsilon / (made.epsilon - above(made)), most),
        Demand("floor recorded", made.pair_floor or 0.0, least, least=True),
    )
    asked_text = f"floor {least:g}"
    limit = 4.0 if least < 1.0 else SLOWEST
    yield Line(
        k, "0.3 to 3", categories, seed, made.epsilon, made.gap, demands, seconds, limit, asked_text
    )


def pairs(k: int, least: float, seed: int) -> Iterator[Line]:
    counts, asked = instance("0.3 to 3", "2…50", k, seed)
    asked_text = f"floor {least:g}, {k * (k - 1) // 2:,} pairs"
    start = time.process_time()
    try:
        made, seconds = timed(counts, attribute_epsilon=asked, pair_floor=least)
    except InputError as error:  # rather than a floor that is not kept
        spent = time.process_time() - start
        yield Line(k, "0.3 to 3", "2…50", seed, math.nan, None, (), spent, SLOWEST, f"{error}")
        return
    demands = (
        Demand("least ratio", least_pair_ratio(made), least, least=True),
        Demand("floor recorded", made.pair_floor or 0.0, least, least=True),
    )
    yield Line(
        k, "0.3 to 3", "2…50", seed, made.epsilon, made.gap, demands, seconds, SLOWEST, asked_text
    )


def least_pair_ratio(made: Design) -> float:
    """Return min φ_ij/(φ_i φ_j) over all pairs, from the laws' integers, by sums of its own."""
    ratios = [1.0]
    for block in made.mechanism.blocks:
        law, k = block.law, len(block.attributes)
        if isinstance(law, GatedSum):
            single, both = attenuations(law)
            every = both / np.outer(single, single)
            ratios.append(float(every[np.triu_indices(k, 1)].min()))
        elif isinstance(law, VoteLaw):
            single = law.attenuations()
            ratios += [
                law.pair_attenuation(i, j) / float(single[i] * single[j])
                for i, j in itertools.combinations(range(k), 2)
            ]
        elif k > 1:
            ratios.append(law.least_pair_ratio())
    return min(ratios)


def attenuations(law: GatedSum) -> tuple[np.ndarray, np.ndarray]:
    """Return φ_i, (k,), and φ_ij, (k, k), before own responses, by an inverse Fourier sum over the
    sum s of n_i + B_i of the kept attributes, tilted by e^{t s} towards the middle of its gate.

    With g the density but for a constant, E[g h_i h_j] = Σ_ω ĝ(ω) χ(ω) V_i(ω) V_j(ω), where χ is
    the sum's characteristic function and V_i its i-th factor with h_i = 1 on the kept and
    −1/(a_i − 1) on the changed, over the factor itself.
    """
    n, dither = np.asarray(law.weights), np.asarray(law.dither)
    a = np.asarray(law.n_categories, dtype=float)
    mean = n + dither
    aim = min(law.start + 0.5 * law.width, 0.999 * float(mean.sum()))
    low, high = -50.0 / mean.max(), 50.0 / mean.max()
    for _ in range(100):
        t = (low + high) / 2
        spent = float(mean @ (1.0 / (1.0 + (a - 1.0) * np.exp(-t * mean))))
        low, high = (t, high) if spent < aim else (low, t)
    s = np.arange(int(n.sum()) + len(n) + 1)
    x = np.clip((s - law.start) / law.width, 0.0, 1.0)
    # (g − 1) e^{−height}; a ramp is e^{height x}, a vote's middle is a straight line.
    rise = (
        -math.expm1(-law.height) * x
        if law.gate == "vote"
        else (-np.exp(law.height * (x - 1.0)) * np.expm1(-law.height * x))
    )
    with np.errstate(divide="ignore"):
        logs = np.log(rise) - t * s
    shift = float(logs.max())
    change = np.fft.fft(np.exp(logs - shift))
    size = len(s)
    stay = ((a - 1.0) / a)[:, None]
    first = ((1.0 - dither) * np.exp(t * n) / a)[:, None]
    second = (dither * np.exp(t * (n + 1)) / a)[:, None]
    norm = (stay + first + second)[:, 0]
    total, single, both = 0.0, np.zeros(len(n)), np.zeros((len(n), len(n)))
    for part in np.array_split(np.arange(size), max(size * len(n) // 1_000_000, 1)):
        turn = np.exp(2j * math.pi / size * (np.outer(n, part) % size))
        kept = turn * (first + second * np.exp(2j * math.pi / size * part))
        factor = stay + kept
        share = (kept - stay / (a - 1.0)[:, None]) / factor
        term = change[part] * np.prod(factor / norm[:, None], axis=0) / size
        total += float(term.sum().real)
        single += (share @ term).real
        both += ((share * term) @ share.T).real
    everyone = total + math.exp(-law.height - float(np.log(norm).sum()) - shift)
    return single / everyone, both / everyone


# --- Totals ---


def total_cases(seeds: Iterable[int]) -> Iterator[tuple[Any, ...]]:
    for at, k in enumerate((13, 16, 20, 24, 30, 40)):
        for total, seed in itertools.product(range(1, 9), seeds):
            yield CATEGORIES[(at + total + seed) % 4], k, seed, float(total)


def total(categories: str, k: int, seed: int, epsilon: float) -> Iterator[Line]:
    counts = counts_of(categories, k, np.random.default_rng(seed))
    made, seconds = timed(counts, epsilon=epsilon)
    asked = f"total {epsilon:g}"
    yield Line(
        k, "", categories, seed, made.epsilon, made.gap, (met(made, epsilon),), seconds, 4.0, asked
    )


def met(made: Design, epsilon: float) -> Demand:
    """Demand that a total is spent and not exceeded, to a part in a million."""
    unspent = 1.0 - made.epsilon / epsilon
    return Demand("unspent", math.inf if unspent < 0.0 else unspent, 1e-6)


def total_of_two(seed: int) -> Iterator[Line]:
    counts = counts_of("2…50", 20, np.random.default_rng(seed))
    made, seconds = timed(counts, epsilon=2.0)
    levels = math.fsum(made.mechanism.attribute_epsilon)
    demands = (met(made, 2.0), Demand("Σ ε_i", levels, 9.0, least=True))
    yield Line(20, "", "2…50", seed, made.epsilon, made.gap, demands, seconds, 4.0, "total 2")


CAPS = {"1.25x": 1.25, "1.5x": 1.5, "2x": 2.0, "3x": 3.0, "none": math.inf}
"""Caps on ε given the rest, as multiples of the own level."""

DEFAULT_CAP = "2x"

WEIGHT = 0.2
"""Default weight θ of tables of two attributes against shares."""


def error_of(made: Design, weight: float) -> float:
    """Return J = (1 − θ) log(variance of shares) + θ log(variance of pairs), for one row."""
    expected = expected_variance(made.mechanism)
    terms = ((1.0 - weight, expected.shares), (weight, expected.pairs))
    # A law for shares alone may tell nothing of a pair.
    return math.fsum(part * math.log(variance or math.inf) for part, variance in terms if part)


def against_independent(made: Design, independent: Design, weight: float) -> Demand:
    """Demand that J is not above that of independent responses, but for the last millionth of a
    total."""
    rise = error_of(made, weight) - error_of(independent, weight)
    return Demand("J over that of independent", rise, 1e-5)


def capped(made: Design, cap: str) -> Demand:
    """Demand that ε given the rest is within a cap for every attribute."""
    mechanism = made.mechanism
    levels = zip(mechanism.epsilon_given_rest, mechanism.attribute_epsilon, strict=True)
    return Demand("given rest/own", max(rest / own for rest, own in levels), CAPS[cap])


def tables(shape: str, epsilon: float) -> Iterator[Line]:
    """Divide a total under every cap and weight of pairs, from the strictest on.

    J should never rise by more than a hundredth where the cap is loosened, nor the mean variance of
    a share where pairs count for less, nor be above that of independent responses.
    """
    counts = list(SHAPES[shape])
    independent, _ = timed(counts, epsilon=epsilon, method="kronecker")
    heavier = [math.inf] * len(CAPS)
    for weight in (0.5, WEIGHT, 0.0):
        least = math.inf
        for at, cap in enumerate(CAPS):
            made, seconds = timed(counts, epsilon=epsilon, given_rest=cap, pairs=weight)
            error, shares = error_of(made, weight), error_of(made, 0.0)
            least, heavier[at] = min(least, error), min(heavier[at], shares)
            demands = (
                met(made, epsilon),
                capped(made, cap),
                against_independent(made, independent, weight),
                Demand("J", error - least, 0.01),
                Demand("variance of shares", math.exp(shares - heavier[at]), 1.01),
            )
            asked = f"total {epsilon:g}, pairs {weight:g}, cap {cap}"
            k = len(counts)
            yield Line(k, "", shape, 0, made.epsilon, made.gap, demands, seconds, 4.0, asked)


def example() -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("insurance.csv", "insurance.toml"):
            shutil.copy(EXAMPLES / file, folder)
        seconds = min(run([*SHARE, "--epsilon", "4"], folder)[0] for _ in range(2))
        epsilon = json.loads((folder / "r" / "record.json").read_text())["guarantee"]["epsilon"]
    demands = (Demand("unspent", 1.0 - epsilon / 4.0, 1e-6),)
    yield Line(12, "", "insurance", 0, epsilon, None, demands, seconds, 1.5, "deniable share")


def few_cases(seeds: Iterable[int]) -> Iterator[tuple[Any, ...]]:
    epsilons = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    for k, epsilon, categories in itertools.product((2, 3, 4, 5), epsilons, CATEGORIES):
        for seed in seeds if categories not in ("2", "5") else (0,):
            yield categories, k, seed, epsilon


def few(categories: str, k: int, seed: int, epsilon: float) -> Iterator[Line]:
    counts = counts_of(categories, k, np.random.default_rng(seed))
    made, seconds = timed(counts, epsilon=epsilon)
    independent, _ = timed(counts, epsilon=epsilon, method="kronecker")
    demands = (
        met(made, epsilon),
        capped(made, DEFAULT_CAP),
        against_independent(made, independent, WEIGHT),
    )
    asked = f"total {epsilon:g}, against independent responses"
    yield Line(k, "", categories, seed, made.epsilon, made.gap, demands, seconds, 4.0, asked)


# --- All of them ---


@dataclass(frozen=True)
class Row:
    """A row of demands.

    Args:
        measure: makes the designs of a case.
        cases: all of them, for these seeds.
        small: a few that take little time.
    """

    measure: Callable[..., Iterator[Line]]
    cases: Callable[[Iterable[int]], Iterable[tuple[Any, ...]]]
    small: tuple[tuple[Any, ...], ...]


ROWS = {
    "optimum": Row(
        optimum,
        optimum_cases,
        (
            ("large", "5", 21, 5, 6.0),
            ("spread", "2…50", 30, 1, 6.0),
            ("large", "10,000", 50, 0, 6.0),
            ("giant", "2…50", 50, 3, 6.0),
            ("equal", "2…50", 50, 4, 6.0),
            ("equal", "10,000", 100, 1, 8.0),
            ("spread", "10,000", 100, 4, 8.0),
            ("giant", "5", 300, 5, 14.0),
        ),
    ),
    "ordinary": Row(
        ordinary,
        lambda seeds: itertools.product(range(4, len(ORDINARY)), seeds),
        ((5, 0), (7, 0), (10, 0)),
    ),
    "8 to 20": Row(
        eight_to_twenty,
        lambda seeds: itertools.product(CATEGORIES, (25, 40, 60), seeds),
        (("5", 25, 0),),
    ),
    "balanced": Row(
        balanced,
        balanced_cases,
        (
            ("0.3 to 3", "5", 11, 0, 0.6),
            ("large", "10,000", 20, 1, 0.65),
            ("giant", "5", 21, 1, 1.0),
            ("spread", "2…50", 30, 0, 1.0),
        ),
    ),
    "total": Row(total, total_cases, (("5", 13, 0, 1.0), ("2…50", 24, 1, 4.0))),
    "total 2": Row(total_of_two, lambda seeds: ((seed,) for seed in seeds), ((0,),)),
    "floor": Row(
        floor,
        floor_cases,
        ((0.9, "5", 20, 0, 1.2), (1.0, "2…50", 11, 1, 1.6), (1.0, "5", 30, 0, 1.6)),
    ),
    "pairs": Row(
        pairs,
        lambda seeds: (
            (k, least, seed) for k, least in ((65, 0.95), (100, 0.97), (300, 0.9)) for seed in seeds
        ),
        ((65, 0.95, 0), (100, 0.97, 0), (300, 0.9, 0)),
    ),
    "tables": Row(
        tables,
        lambda _: itertools.product(SHAPES, (0.5, 1.0, 2.0, 4.0, 6.0, 8.0)),
        (("Adult", 4.0), ("VietNamI", 4.0)),
    ),
    "example": Row(example, lambda _: ((),), ((),)),
    "few": Row(
        few,
        few_cases,
        (
            ("5", 2, 0, 1.0),
            ("2…50", 2, 1, 0.25),
            ("10,000", 2, 0, 0.25),
            ("10,000", 3, 0, 1.0),
            ("2…50", 3, 0, 4.0),
            ("2", 5, 0, 8.0),
        ),
    ),
}


def print_rows(names: Iterable[str], seeds: range, measured: Measured) -> int:
    """Print every design of these rows; return how many missed what is demanded."""
    print(HEADING)
    missed: dict[str, tuple[int, int]] = {}
    for name in names:
        misses = lines = 0
        for case in ROWS[name].cases(seeds):
            try:
                for line in ROWS[name].measure(*case):
                    lines, misses = lines + 1, misses + line.missed
                    print(f"{name:<9}{line}", flush=True)
                    measured.add(
                        "hard designs",
                        row=name,
                        attributes=line.k,
                        levels=line.levels,
                        categories=line.categories,
                        seed=line.seed,
                        asked=line.asked,
                        epsilon=line.epsilon,
                        gap=line.gap,
                        CPU_s=line.seconds,
                        missed=line.missed,
                    )
            except Exception as error:  # it is a miss; the next ones follow
                lines, misses = lines + 1, misses + 1
                print(f"{name:<9}{case}  MISS  {type(error).__name__}: {error}", flush=True)
        missed[name] = misses, lines
    for name, (misses, lines) in missed.items():
        print(f"{name:<9}{misses} of {lines} missed")
    return sum(misses for misses, _ in missed.values())
