"""Do intervals hold at rare and empty categories, or does the answer mark them.

20,000 people of one population with categories of shares from 0 to 50 % are released again and
again: counts are drawn by the channel's own law. Direct estimates, the smoothed table, models and
combined synthetic copies are asked; each number's interval holds its truth, misses it, or is marked
as not to be read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable import design
from deniable.errors import InputError
from deniable.estimate.shares import Shares
from deniable.estimate.tabulate import Counts
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.published import channel_of
from deniable.models.cells import Axis
from deniable.models.query import ModelQuery
from deniable.models.smoothing import Smooth
from deniable.randomness import SeededRandomness
from deniable.schema import Attribute, Schema
from deniable.synthesis.combining import combine
from deniable.synthesis.pairs import PairsModel
from deniable.synthesis.rows import Seen
from deniable_studies.drawing import grid
from deniable_studies.study import Judged, Rows, Setting, Study
from deniable_studies.text import read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

Array = NDArray[np.float64]

N_PEOPLE = 20_000
RARE = (0.0, 1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5)
EDGES = (0.0, 3e-4, 3e-3, 0.02, 0.1)
"""Upper ends of the groups of true shares; the last group is above."""
GROUPS = ("0", "to 0.03 %", "to 0.3 %", "to 2 %", "to 10 %", "above")
WAYS = ("estimate", "smooth", "model", "predict", "combine")

LEAST, ERRORS = 0.93, 3.0
REFUSED: dict[str, Any] = {"low": None, "high": None, "remark": "refused"}
SCHEMA = Schema(
    (
        Attribute("kind", tuple("abcdefgh")),
        Attribute("sex", ("f", "m")),
        Attribute("ill", ("no", "yes")),
    )
)
NAMES = SCHEMA.names
CATEGORIES = {attribute.name: attribute.categories for attribute in SCHEMA.attributes}


def population() -> Array:
    """Return the shares of kind, sex and ill: all pairs go together, with odds ratios of 1.5 to 2;
    one in a thousand of the women of the first kind is ill."""
    kinds = np.array([1 - sum(RARE), *RARE])
    men = 1 / (1 + np.exp(-0.4 * np.linspace(-1, 1, 8)))
    odds = np.log(1e-3) + 0.7 * np.array([0, 1])[None, :] + 0.5 * (np.arange(8) % 2)[:, None]
    share = 1 / (1 + np.exp(-odds))
    both = kinds[:, None] * np.stack([1 - men, men], axis=1)
    return np.asarray(np.stack([both * (1 - share), both * share], axis=2))


@dataclass(frozen=True)
class Group:
    """Numbers of one way of asking about equally rare categories, over the releases of a case.

    Args:
        method, epsilon: how people are released.
        way: one of ``WAYS``.
        group: place in ``GROUPS``.
        n_numbers: how many.
        marked: the part of them that is marked.
        held: of those not marked, the part that holds the truth; NaN if all are marked.
        standard_error: of ``held`` where it is ``LEAST``.
    """

    method: str
    epsilon: float
    way: str
    group: int
    n_numbers: int
    marked: float
    held: float
    standard_error: float

    def __str__(self) -> str:
        return f"{self.method}, ε = {self.epsilon:g}, {self.way}, true shares {GROUPS[self.group]}"


Said = Iterator[tuple[str, Array, Array, list[dict[str, Any]]]]
"""Way, true shares of the rarest category that a number is about, true numbers, rows."""


def ask(mechanism: Mechanism, random: np.random.Generator, seed: int) -> Said:
    """Release once for every query, and yield the numbers."""
    for names in (("kind",), ("kind", "sex")):
        true, counts = drawn(mechanism, names, random)
        (shares,) = Shares(names, target="population").answer(Counts.of(mechanism, counts))
        yield "estimate", true.ravel(), true.ravel(), shares.table()
    true, counts = drawn(mechanism, NAMES, random)
    (smoothed,) = Smooth(NAMES).answer(Counts.of(mechanism, counts))
    yield "smooth", true.ravel(), true.ravel(), smoothed.table()
    for response in ("kind", "ill"):
        of, counts = drawn(mechanism, (response, "sex"), random)
        axes = [Axis(name, CATEGORIES[name]) for name in (response, "sex")]
        question = ModelQuery(f"{response} ~ sex")
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(of) - np.log(of[:1])
            truth = np.stack([logs[1:, 0], logs[1:, 1] - logs[1:, 0]], axis=1).ravel()
        known = ~np.isnan(truth)  # of an empty category there is no odds ratio
        try:
            model = question.of_counts([Counts.of(mechanism, counts)], axes)
            coefficients, predicted = model.table(), model.predict()
        except InputError:  # refused: the release tells too little
            coefficients, predicted = [REFUSED] * len(truth), [REFUSED] * of.size
        rows = [row for row, some in zip(coefficients, known, strict=True) if some]
        yield "model", np.repeat(of[1:].min(axis=1), 2)[known], truth[known], rows
        yield "predict", of.ravel(), (of / of.sum(axis=0)).ravel(), predicted
    names = ("kind", "sex")
    true, counts = drawn(mechanism, names, random)
    copies = copies_of(mechanism, names, counts, random, seed)
    margin, women = copies.sum(axis=2) / N_PEOPLE, copies[:, :, 0] / N_PEOPLE
    for share, of in ((margin, true.sum(axis=1)), (women, true[:, 0])):
        found = combine(share, share * (1 - share) / N_PEOPLE, kind="synthetic")
        yield "combine", of, of, found.table()
    with np.errstate(divide="ignore"):  # as R does, without any row: far off, with a large error
        odds = np.maximum(np.log(copies[:, 1:, 0] / copies[:, :1, 0]), -25.0)
        square = np.minimum(1 / copies[:, 1:, 0] + 1 / copies[:, :1, 0], 1e8)
        truth = np.maximum(np.log(true[1:, 0] / true[0, 0]), -25.0)
    yield "combine", true[1:, 0], truth, combine(odds, square, kind="synthetic").table()


def drawn(
    mechanism: Mechanism, names: Sequence[str], random: np.random.Generator
) -> tuple[Array, Array]:
    """Return the true shares of some attributes, and the counts of a fresh release of them."""
    away = tuple(i for i, name in enumerate(NAMES) if name not in names)
    true = population().sum(axis=away)
    true = true.transpose([[n for n in NAMES if n in names].index(name) for name in names])
    chances = channel_of(mechanism, tuple(names)).forward.apply(true)
    counts = random.multinomial(N_PEOPLE, (chances / chances.sum()).ravel())
    return true, counts.reshape(chances.shape).astype(float)


def copies_of(
    mechanism: Mechanism,
    names: Sequence[str],
    counts: Array,
    random: np.random.Generator,
    seed: int,
) -> Array:
    """Return the counts of twenty synthetic copies, shape (copies, *categories)."""
    shown = np.repeat(np.arange(counts.size), counts.ravel().astype(int))
    seen = Seen(mechanism, np.arange(len(shown)), shown, counts)
    model = PairsModel.of_seen(tuple(names), [CATEGORIES[name] for name in names], lambda: [seen])
    shares = model.drawn(20, len(shown), SeededRandomness(seed))
    copies = [random.multinomial(N_PEOPLE, each / each.sum()) for each in shares]
    return np.array(copies, dtype=float).reshape(20, *model.sizes)


def cover(
    method: str, epsilon: float, n_releases: int, setting: Setting, stream: int
) -> list[Group]:
    """Release repeatedly, and count intervals that cover."""
    more = {"pairs": 0.5} if method == "forms" else {}
    mechanism = design(SCHEMA, epsilon=epsilon, method=method, **more).mechanism  # type: ignore[arg-type]
    random = setting.generator(30, stream)
    tally = np.zeros((len(WAYS), len(GROUPS), 3))  # numbers, marked, held
    for release in range(n_releases):
        with setting.step(release, n_releases):
            for way, shares, truth, rows in ask(
                mechanism, random, setting.release_seed(31, stream, release)
            ):
                for share, true, row in zip(shares, truth.tolist(), rows, strict=True):
                    group = int(np.searchsorted(EDGES, share))
                    tally[WAYS.index(way), group] += (1, *read(row, true))
    found = []
    for place in np.ndindex(tally.shape[:2]):
        numbers, marked, held = tally[place]
        if numbers:
            unmarked = numbers - marked
            error = (LEAST * (1 - LEAST) / unmarked) ** 0.5 if unmarked else float("nan")
            found.append(
                Group(
                    *(method, epsilon, WAYS[place[0]], place[1], int(numbers)),
                    *(marked / numbers, held / unmarked if unmarked else float("nan"), error),
                )
            )
    return found


def read(row: Mapping[str, Any], true: float) -> tuple[bool, bool]:
    """Return whether a number is marked, and whether it is not and its interval holds the truth."""
    remark, low, high = row.get("remark", ""), row["low"], row["high"]
    if remark in ("no lower limit", "no upper limit"):
        low = -np.inf if low is None else low
        high = np.inf if high is None else high
    elif remark or low is None:
        return True, False
    return False, bool(low <= true <= high)


def measure(setting: Setting) -> list[Group]:
    """Release again and again by every method, at every ε."""
    cases = [("balanced", 4.0), ("forms", 8.0)][: 1 if setting.quick else 2]
    n, found = 1 if setting.quick else 60, list[Group]()
    for place, (method, epsilon) in enumerate(cases):
        part = setting.part(place / len(cases), (place + 1) / len(cases))
        found += cover(method, epsilon, n, part, place)
    return found


def judge(groups: Sequence[Group], *ways: str) -> Judged:
    """Judge how often numbers that are not marked hold, in groups of which at least one in twenty
    is not marked."""
    chosen = [g for g in groups if g.way in ways and g.marked <= 0.95]
    wrong = [g for g in chosen if g.held < LEAST - ERRORS * g.standard_error]
    worst = min(chosen, key=lambda g: g.held)
    n = sum((1 - g.marked) * g.n_numbers for g in chosen)
    held = sum((1 - g.marked) * g.n_numbers * g.held for g in chosen) / n
    return Judged(
        f"{held:.1%} of the {n:.0f} numbers that are not marked hold; least in {worst}: "
        f"{worst.held:.1%} ± {worst.standard_error:.1%}; {len(wrong)} of {len(chosen)} groups miss "
        "too often",
        not wrong,
        2 * len(wrong) <= len(chosen),
        decided=bool(wrong) or n >= 200,
    )


def _draw(
    canvas: "MatplotlibFigure", groups: Sequence[Group], of: Callable[[Group], float]
) -> None:
    epsilon = max(g.epsilon for g in groups if g.epsilon <= 4)
    panel = canvas.subplots()
    for way in WAYS:
        chosen = [g for g in groups if (g.way, g.epsilon, g.method) == (way, epsilon, "balanced")]
        panel.plot([g.group for g in chosen], [100 * of(g) for g in chosen], marker="o", label=way)
    panel.set_xticks(range(len(GROUPS)), GROUPS)
    panel.set_xlabel("true share")
    panel.set_ylabel("%")
    grid(panel)
    panel.legend()


STUDY = Study(
    read_text("beyond/rare.toml"),
    measure,
    judges={
        "estimate": lambda groups: judge(groups, "estimate"),
        "smooth": lambda groups: judge(groups, "smooth"),
        "model": lambda groups: judge(groups, "model", "predict"),
        "combine": lambda groups: judge(groups, "combine"),
    },
    figures={
        "held": lambda canvas, groups: _draw(canvas, groups, lambda g: g.held),
        "marked": lambda canvas, groups: _draw(canvas, groups, lambda g: g.marked),
    },
    tables={"rare": lambda groups: _rows(groups)},
)


def _rows(groups: Sequence[Group]) -> Rows:
    return [
        [
            *(g.method, g.epsilon, g.way, GROUPS[g.group], g.n_numbers),
            *(g.marked, g.held, g.standard_error),
        ]
        for g in groups
    ]
