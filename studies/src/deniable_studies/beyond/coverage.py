"""Coverage of intervals by the number of people in a cell.

People are drawn from one made-up population; they are released by the sampler that releases use;
every marginal, every table of two attributes and the table of all three is estimated; and each
cell's interval holds its truth or does not. For target ``table`` the same people are released again
and again, for ``population`` they are drawn anew each time.

The shipped intervals are score intervals that are made longer where errors come in few steps
(:mod:`deniable.estimate.intervals`), and plain
ones are measured, estimate ± z standard errors: these take the variance at the estimate through the
released counts; where these are few, a count that is too low gives an estimate and a variance that
are both too low, and the interval misses.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.estimate.inference import Inference, normal_quantile
from deniable.estimate.intervals import STEPS_ALLOWED, share_variance
from deniable.estimate.tabulate import Counts
from deniable.mechanism.prediction import Target
from deniable.mechanism.randomizer import Randomizer
from deniable.mechanism.readability import is_readable
from deniable.randomness import SeededRandomness
from deniable.schema import Schema
from deniable_studies.beyond.releases import OURS, mechanism_for
from deniable_studies.drawing import grid, legend, letter, plot_method
from deniable_studies.study import Judged, Rows, Setting, Study, Values
from deniable_studies.text import read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

N_CATEGORIES = (3, 5, 8)
LEVELS = (0.5, 0.8, 0.95)
TARGETS: tuple[Target, ...] = ("table", "population")
KINDS = ("marginal", "pair", "joint")
EDGES = (0.5, 2.5, 5.5, 10.5, 30.5, 199.5)
"""Groups of cells by the number of true records, the expected one for target ``population``."""
GROUPS = ("0", "1–2", "3–5", "6–10", "11–30", "31–199", "200+")
LARGE = len(GROUPS) - 1
AT_LEAST_ELEVEN = 4

SLACK = 0.01
"""Tolerance of the project's tests between coverage and level in cells of 200 records or more."""
LEAST = tuple(level**STEPS_ALLOWED for level in LEVELS)
"""Coverage that intervals are built for at ``LEVELS``, where errors come in few steps."""
ERRORS = 4.0
"""Standard errors that a measured coverage may be off by chance."""

CONCENTRATION = 0.4
"""Of the Dirichlet distribution that the population's 120 shares are drawn from: few common
combinations, many rare ones."""

Names = tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """A release and its queries.

    Args:
        method: how.
        epsilon: of the record, in nats.
        n_people: n.
        target: whose shares the intervals are for.
    """

    method: str
    epsilon: float
    n_people: int
    target: Target


@dataclass(frozen=True)
class Group:
    """Cells of one kind of table with about equally many true records, over the releases of a case.

    Args:
        case: which.
        kind: ``marginal``, ``pair`` or ``joint``.
        group: place in ``GROUPS``.
        n_cells: how many cells.
        shipped: fraction of the shipped intervals that hold the truth, one per level.
        standard_error: of each, from the differences between releases; at least what cells that
            are right and independent would have, for these may happen to be all covered.
        plain: the same for plain intervals.
        worst: the least coverage of a single cell's shipped interval at the highest level.
        worst_plain: the same for plain intervals.
        width: mean width of the shipped intervals over that of the plain ones, highest level.
        uncertain: fraction of estimates marked as uncertain.
        mistaken: for target ``table``, coverage of the intervals made for the population, highest
            level; NaN for target ``population``.
    """

    case: Case
    kind: str
    group: int
    n_cells: int
    shipped: tuple[float, ...]
    standard_error: tuple[float, ...]
    plain: tuple[float, ...]
    worst: float
    worst_plain: float
    width: float
    uncertain: float
    mistaken: float

    def __str__(self) -> str:
        case = self.case
        return (
            f"{case.method}, ε = {case.epsilon:g}, n = {case.n_people:,}, target {case.target}, "
            f"{self.kind}, {GROUPS[self.group]} records"
        )

    def beyond(self, slack: Sequence[float] | float) -> NDArray[np.bool_]:
        """Return at which levels the coverage is off by more than that and chance."""
        off = np.abs(np.array(self.shipped) - LEVELS)
        return np.asarray(off > np.array(slack) + ERRORS * np.array(self.standard_error))

    def below(self, least: Sequence[float]) -> NDArray[np.bool_]:
        """Return at which levels the coverage is less than that, by more than chance."""
        short = np.array(least) - np.array(self.shipped)
        return np.asarray(short > ERRORS * np.array(self.standard_error))


def population(setting: Setting) -> NDArray[np.float64]:
    """Return the population's shares, shape ``N_CATEGORIES``."""
    cells = int(np.prod(N_CATEGORIES))
    shares = setting.generator(20).dirichlet(np.full(cells, CONCENTRATION))
    return np.asarray(shares.reshape(N_CATEGORIES))


def cases(*, quick: bool) -> Iterator[Case]:
    """Yield the cases of the study."""
    for epsilon in (8.0,) if quick else (4.0, 8.0):
        for n in (300, 3000) if quick else (300, 3000, 30_000):
            for method in OURS:
                for target in TARGETS:
                    yield Case(method, epsilon, n, target)


def sweep(setting: Setting) -> list[Group]:
    """Return the results of every case."""
    chosen = list(cases(quick=setting.quick))
    n_releases = releases(quick=setting.quick)
    found: list[Group] = []
    for place, case in enumerate(chosen):
        part = setting.part(place / len(chosen), (place + 1) / len(chosen))
        found += cover(case, n_releases, part, place)
    return found


def releases(*, quick: bool) -> int:
    """Return how many releases every case has."""
    return 40 if quick else 500


class _Tally:
    """Counts of one table's cells over releases."""

    def __init__(self, truth: NDArray[np.float64], n_releases: int) -> None:
        self.truth = truth
        shape = (n_releases, truth.size)
        self.shipped = np.zeros((len(LEVELS), *shape), dtype=bool)
        self.plain = np.zeros((len(LEVELS), *shape), dtype=bool)
        self.uncertain = np.zeros(shape, dtype=bool)
        self.mistaken = np.zeros(shape, dtype=bool)
        self.width = np.zeros(shape)
        self.plain_width = np.zeros(shape)

    def add(self, release: int, inference: Inference) -> None:
        """Look at one release's estimate of the table."""
        values, error = inference.values, inference.standard_error
        variance = share_variance(inference)
        for place, level in enumerate(LEVELS):
            z = normal_quantile(level)
            low, high = variance.interval(values, level)
            self.shipped[place, release] = self._hold(low, high)
            self.plain[place, release] = self._hold(values - z * error, values + z * error)
            self.width[release] = (high - low).ravel()
            self.plain_width[release] = (2 * z * error).ravel()
        self.uncertain[release] = ~is_readable(values, error).ravel()
        if inference.target == "table":
            other = share_variance(replace(inference, target="population"))
            self.mistaken[release] = self._hold(*other.interval(values, LEVELS[-1]))

    def _hold(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.bool_]:
        return ((low <= self.truth) & (self.truth <= high)).ravel()


def cover(case: Case, n_releases: int, setting: Setting, stream: int) -> list[Group]:
    """Release again and again, and count the intervals that hold the truth.

    Args:
        case: the release and its queries.
        n_releases: how often.
        setting: for seeds and progress.
        stream: of the seeds.
    """
    schema = Schema.anonymous(N_CATEGORIES)
    mechanism = mechanism_for(case.method, schema, case.epsilon)
    randomizer = Randomizer(mechanism, SeededRandomness(setting.release_seed(21, stream)))
    shares = population(setting)
    columns = _draw_people(shares, case.n_people, setting.generator(22, case.n_people))
    people = setting.generator(23, stream)
    kinds: list[tuple[str, Names]] = [("marginal", (name,)) for name in schema.names]
    kinds += [("pair", pair) for pair in combinations(schema.names, 2)]
    kinds.append(("joint", schema.names))
    truth = shares if case.target == "population" else _count(columns) / case.n_people
    axes = [tuple(i for i, name in enumerate(schema.names) if name not in n) for _, n in kinds]
    tallies = [_Tally(truth.sum(axis=a), n_releases) for a in axes]
    for release in range(n_releases):
        with setting.step(release, n_releases):
            if case.target == "population":
                columns = _draw_people(shares, case.n_people, people)
            counts = _count(randomizer.randomize(columns))
            for (_, names), summed, tally in zip(kinds, axes, tallies, strict=True):
                counted = Counts.of(mechanism, counts.sum(axis=summed))
                tally.add(release, Inference(counted, names, case.target))
    found = []
    for kind in KINDS:
        chosen = [t for (k, _), t in zip(kinds, tallies, strict=True) if k == kind]
        found += _groups(case, kind, chosen)
    return found


def _draw_people(
    shares: NDArray[np.float64], n_people: int, generator: np.random.Generator
) -> list[NDArray[Any]]:
    cells = generator.choice(shares.size, size=n_people, p=shares.ravel())
    return [codes.astype(np.uint8) for codes in np.unravel_index(cells, shares.shape)]


def _count(columns: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    cells = np.ravel_multi_index([c.astype(np.intp) for c in columns], N_CATEGORIES)
    counts = np.bincount(cells, minlength=int(np.prod(N_CATEGORIES)))
    return counts.reshape(N_CATEGORIES).astype(np.float64)


def _groups(case: Case, kind: str, tallies: Sequence[_Tally]) -> list[Group]:
    truth = np.concatenate([t.truth.ravel() for t in tallies])
    place = np.digitize(case.n_people * truth, EDGES)

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(t, name) for t in tallies], axis=-1)

    shipped, plain, uncertain, mistaken = map(joined, ("shipped", "plain", "uncertain", "mistaken"))
    width, plain_width = joined("width"), joined("plain_width")
    n_releases, levels = len(uncertain), np.array(LEVELS)
    groups = []
    for group in range(len(GROUPS)):
        cells = place == group
        if not cells.any():
            continue
        per_release = shipped[:, :, cells].mean(axis=2)
        error = per_release.std(axis=1, ddof=1) / n_releases**0.5
        error = np.maximum(error, np.sqrt(levels * (1 - levels) / (cells.sum() * n_releases)))
        groups.append(
            Group(
                case,
                kind,
                group,
                int(cells.sum()),
                tuple(map(float, per_release.mean(axis=1))),
                tuple(map(float, error)),
                tuple(map(float, plain[:, :, cells].mean(axis=(1, 2)))),
                float(shipped[-1][:, cells].mean(axis=0).min()),
                float(plain[-1][:, cells].mean(axis=0).min()),
                float(width[:, cells].mean() / plain_width[:, cells].mean()),
                float(uncertain[:, cells].mean()),
                float(mistaken[:, cells].mean()) if case.target == "table" else float("nan"),
            )
        )
    return groups


@dataclass(frozen=True)
class Numbers:
    """Everything that the study rests on: the groups of cells, and the releases of each case."""

    groups: Sequence[Group]
    n_releases: int


def measure(setting: Setting) -> Numbers:
    """Release made-up people again and again, and count the intervals that hold the truth."""
    return Numbers(sweep(setting), releases(quick=setting.quick))


# Judges.


def large_cells(groups: Sequence[Group]) -> Judged:
    """Judge cells of 200 records or more."""
    large = [g for g in groups if g.group == LARGE]
    wrong = np.sum([g.beyond(SLACK) for g in large], axis=0).tolist()
    farthest = max(abs(g.shipped[-1] - LEVELS[-1]) for g in large)
    allowed = max(ERRORS * max(g.standard_error) for g in large)
    return Judged(
        f"{len(large)} groups of such cells; outside: "
        + ", ".join(f"{n} at {level:.0%}" for n, level in zip(wrong, LEVELS, strict=True))
        + f"; the farthest {100 * farthest:.1f} points off at 95 %; up to {100 * allowed:.1f} "
        "allowed for as chance",
        not any(wrong),
        not wrong[-1],
        # Where chance is allowed more than the slack itself, twice the slack could go unseen.
        decided=any(wrong) or allowed <= np.min(SLACK),
    )


def every_group(groups: Sequence[Group]) -> Judged:
    """Judge all cells, however few records are in them."""
    wrong = [g for g in groups if g.below(LEAST).any()]
    wrong_large = sum(g.group >= AT_LEAST_ELEVEN for g in wrong)
    low = min(groups, key=lambda g: g.shipped[-1])
    high = max(groups, key=lambda g: g.shipped[-1])
    return Judged(
        f"less in {len(wrong)} of {len(groups)} groups, of which {wrong_large} have cells of more "
        f"than ten records; the least coverage at 95 % is {low.shipped[-1]:.1%} ({low}), the "
        f"largest {high.shipped[-1]:.1%} ({high})",
        not wrong,
        not wrong_large,
    )


def marked(groups: Sequence[Group]) -> Judged:
    """Judge whether estimates are marked where intervals cover too little."""
    # An interval is to be read by itself only if its estimate is not marked.
    low = [g for g in groups if LEVELS[-1] - g.shipped[-1] > 0.05 + ERRORS * g.standard_error[-1]]
    unmarked = [g for g in low if g.uncertain < 0.5]
    return Judged(
        f"{len(low)} groups are covered less than 90 %; in {len(low) - len(unmarked)} of them at "
        "least half of the estimates are marked",
        not unmarked,
        2 * len(unmarked) <= len(low),
        values={"group": unmarked[0], "covered": unmarked[0].shipped[-1]} if unmarked else {},
        tested=bool(low),
    )


def mixed_up(groups: Sequence[Group]) -> Judged:
    """Judge intervals made for the population, taken for the table's."""
    mixed = [g for g in groups if g.case.target == "table" and g.group == LARGE]
    high = max(mixed, key=lambda g: g.mistaken)
    low = min(mixed, key=lambda g: g.mistaken)
    return Judged(
        f"{low.mistaken:.1%} ({low}) to {high.mistaken:.1%} ({high})",
        low.mistaken >= 0.995,
        high.mistaken >= 0.995,
    )


# The table, the figures and values of sentences.


def _rows(groups: Sequence[Group]) -> Rows:
    return [
        [
            *astuple(g.case),
            *(g.kind, GROUPS[g.group], g.n_cells),
            *g.shipped,
            *g.standard_error,
            *g.plain,
            *(g.worst, g.worst_plain, g.width, g.uncertain, g.mistaken),
        ]
        for g in groups
    ]


def _values(n: Numbers) -> Values:
    def span(groups: Iterable[Group], which: str) -> str:
        values = [getattr(g, which)[-1] for g in groups if g.group < AT_LEAST_ELEVEN]
        return f"{min(values):.1%} to {max(values):.1%}"

    noisy = [g for g in n.groups if g.case.method in ("kronecker", "lambda")]
    joint = [g for g in n.groups if g.case.method in ("optimal", "balanced")]
    people = [g for g in n.groups if g.case.target == "population"]
    widths = [g.width for g in n.groups if g.group == LARGE]
    return {
        "n_releases": n.n_releases,
        "epsilon": max(g.case.epsilon for g in n.groups),
        "noisy": span(noisy, "shipped"),
        "noisy_plain": span(noisy, "plain"),
        "joint": span(joint, "shipped"),
        "joint_plain": span(joint, "plain"),
        "people": span(people, "shipped"),
        "people_plain": span(people, "plain"),
        "least_width": min(widths),
        "most_width": max(widths),
    }


def _pooled(
    groups: Sequence[Group], value: Callable[[Group], float | Sequence[float]]
) -> NDArray[np.float64]:
    """Return a mean over all cells of the groups; NaN if there are none."""
    if not groups:
        return np.array(np.nan)
    return np.asarray(
        np.average([value(g) for g in groups], axis=0, weights=[g.n_cells for g in groups])
    )


def _draw(
    canvas: "MatplotlibFigure", groups: Sequence[Group], value: Callable[[Group], float]
) -> None:
    epsilon = max(g.case.epsilon for g in groups)
    groups = [g for g in groups if g.case.epsilon == epsilon]
    sizes = sorted({g.case.n_people for g in groups})
    panels = canvas.subplots(len(TARGETS), len(sizes), sharex=True, sharey=True, squeeze=False)
    methods = list(dict.fromkeys(g.case.method for g in groups))
    for row, target in enumerate(TARGETS):
        for column, size in enumerate(sizes):
            panel = panels[row][column]
            for method in methods:
                line = [
                    _pooled(
                        [
                            g
                            for g in groups
                            if (g.case.target, g.case.n_people, g.case.method, g.group)
                            == (target, size, method, place)
                        ],
                        value,
                    )
                    for place in range(len(GROUPS))
                ]
                plot_method(panel, method, range(len(GROUPS)), [100 * v for v in line])
            panel.axhline(100 * LEVELS[-1], color="#000000", linewidth=0.6)
            panel.set_xticks(range(len(GROUPS)), GROUPS, rotation=45)
            grid(panel)
        panels[row][0].set_ylabel("coverage, %")
    for column in range(len(sizes)):
        panels[-1][column].set_xlabel("true records in the cell")
    letter(
        [panel for row in panels for panel in row],
        [f"{target}, n = {size:,}" for target in TARGETS for size in sizes],
    )
    legend(canvas, panels[0][0], ncols=4)


def _draw_levels(canvas: "MatplotlibFigure", groups: Sequence[Group]) -> None:
    chosen = [
        (kind, words, keep)
        for kind in KINDS[:2]
        for words, keep in (
            ("≤ 10", range(AT_LEAST_ELEVEN)),
            ("≥ 200", range(LARGE, LARGE + 1)),
        )
    ]
    panels = canvas.subplots(1, len(chosen), sharey=True)
    methods = list(dict.fromkeys(g.case.method for g in groups))
    for panel, (kind, _, keep) in zip(panels, chosen, strict=True):
        for method in methods:
            these = [
                g for g in groups if g.case.method == method and g.kind == kind and g.group in keep
            ]
            plot_method(
                panel,
                method,
                [100 * level for level in LEVELS],
                100 * (_pooled(these, lambda g: g.shipped) - LEVELS),
            )
        panel.axhline(0, color="#000000", linewidth=0.6)
        panel.set_xticks([100 * level for level in LEVELS])
        panel.set_xlabel("level, %")
        grid(panel)
    panels[0].set_ylabel("coverage less level, points")
    letter(list(panels), [f"{kind}, {words}" for kind, words, _ in chosen])
    legend(canvas, panels[0], ncols=4)


STUDY = Study(
    read_text("beyond/coverage.toml"),
    measure,
    judges={
        "large": lambda n: large_cells(n.groups),
        "every-group": lambda n: every_group(n.groups),
        "mark": lambda n: marked(n.groups),
        "mixed": lambda n: mixed_up(n.groups),
    },
    figures={
        "shipped": lambda canvas, n: _draw(canvas, n.groups, lambda g: g.shipped[-1]),
        "plain": lambda canvas, n: _draw(canvas, n.groups, lambda g: g.plain[-1]),
        "levels": lambda canvas, n: _draw_levels(canvas, n.groups),
    },
    tables={"coverage": lambda n: _rows(n.groups)},
    values=_values,
)
