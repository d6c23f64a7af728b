"""Errors and power of the test whether a table can be its mechanism's output.

Tables are drawn by the sampler of releases and tested by :mod:`deniable.estimate.consistency`. They
are the mechanism's output, the true table, the output of the same method at twice or half the ε, or
the output with two columns exchanged.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from deniable.design.design import design
from deniable.estimate.consistency import REFUSED_BELOW, WARNED_BELOW, origin_of
from deniable.estimate.counting import Rows
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SeededRandomness
from deniable.schema import Schema
from deniable_studies.adult import CATEGORICAL, read_adult
from deniable_studies.adult import schema as adult_schema
from deniable_studies.drawing import grid, legend, letter, plot_method
from deniable_studies.study import Judged, Setting, Study, Values
from deniable_studies.study import Rows as TableRows
from deniable_studies.text import read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

METHODS = ("kronecker", "optimal", "balanced", "forms")
HONEST, RAW, WEAKER, STRONGER, SWAPPED = (
    "made by it", "not randomized", "at twice ε", "at half ε", "columns swapped",
)  # fmt: skip
FOREIGN = (RAW, WEAKER, STRONGER, SWAPPED)
ALPHAS = (0.1, 0.01, 0.001)
FALSE_ALARM = 1e-6
"""Of the whole study."""
SIZES = (2, 2, 5, 5)
CONCENTRATION = 0.4
TOLD = 0.9

Codes = list[NDArray[Any]]


@dataclass(frozen=True)
class People:
    """A population.

    Args:
        name: of them.
        schema: their attributes.
        codes: their true codes, shape (n,) each.
        swapped: places of columns that have equally many categories, one after the other.
        shares: of the people; even if not given.
    """

    name: str
    schema: Schema
    codes: Codes
    swapped: Sequence[tuple[int, int]]
    shares: NDArray[np.float64] | None = None

    def draw(self, n: int, generator: np.random.Generator) -> Codes:
        """Return the codes of a sample of the given size."""
        chosen = generator.choice(len(self.codes[0]), size=n, p=self.shares)
        return [column[chosen] for column in self.codes]

    def mechanism(self, method: str, epsilon: float) -> Mechanism:
        """Return a method's mechanism, with three times the level for the second of two columns
        that are swapped."""
        if method == "forms":
            return design(self.schema, epsilon=epsilon, method=method).mechanism
        second = {place for _, place in self.swapped}
        with_ratios = replace(
            self.schema,
            attributes=tuple(
                replace(attribute, ratio=3.0 if place in second else 1.0)
                for place, attribute in enumerate(self.schema.attributes)
            ),
        )
        return design(with_ratios, epsilon=epsilon, method=method).mechanism


def one_kind() -> People:
    """People with the first category of every attribute."""
    return People(
        "one kind",
        Schema.anonymous(SIZES),
        [np.zeros(1, dtype=np.int64) for _ in SIZES],
        [(0, 1), (2, 3)],
    )


def made_up(setting: Setting) -> People:
    """People of whom a few combinations are common and many rare."""
    cells = int(np.prod(SIZES))
    shares = setting.generator(60).dirichlet(np.full(cells, CONCENTRATION))
    codes = [codes.astype(np.int64) for codes in np.unravel_index(np.arange(cells), SIZES)]
    return People("made-up", Schema.anonymous(SIZES), codes, [(0, 1), (2, 3)], shares)


def adult(setting: Setting) -> People | None:
    """The people of the Adult data, if they are at hand."""
    if setting.adult is None:
        return None
    codes = read_adult(setting.adult).codes
    place = CATEGORICAL.index
    swapped = [(place("workclass"), place("marital-status")), (place("sex"), place("income"))]
    return People("Adult", adult_schema(), [codes[name] for name in CATEGORICAL], swapped)


@dataclass(frozen=True)
class Case:
    """Tables that were tested.

    Args:
        people: whose.
        method: of their stated mechanism.
        epsilon: its ε for the record, in nats.
        rows: of a table.
        table: its kind.
        p_values: one for each table.
    """

    people: str
    method: str
    epsilon: float
    rows: int
    table: str
    p_values: NDArray[np.float64]

    def __str__(self) -> str:
        return (
            f"{self.people}, {self.method}, ε = {self.epsilon:g}, {self.rows:,} rows: "
            f"{self.share(REFUSED_BELOW):.0%} detected"
        )

    def share(self, level: float) -> float:
        """Return the share of tables whose p-value is below a level."""
        return float((self.p_values < level).mean())


def look(
    people: People,
    method: str,
    epsilon: float,
    rows: int,
    tables: Mapping[str, Mechanism],
    n_tables: int,
    setting: Setting,
) -> Iterator[Case]:
    """Make tables and look at them.

    Args:
        people: whose.
        method, epsilon: of their stated mechanism.
        rows: of a table.
        tables: by what a table is, what makes it; ``HONEST`` is among them.
        n_tables: of each.
        setting: for seeds.
    """
    stream = (METHODS.index(method), round(1000 * epsilon), rows, len(people.schema.attributes))
    for table, mechanism in tables.items():
        seeds = (*stream, (HONEST, *FOREIGN).index(table), people.shares is None)
        randomizer = Randomizer(mechanism, SeededRandomness(setting.release_seed(61, *seeds)))
        generator = setting.generator(62, *seeds)
        found = []
        for _ in range(n_tables):
            true = people.draw(rows, generator)
            codes, forms = _shown(people, table, true, randomizer.randomize(true))
            found.append(_p_value(tables[HONEST], codes, forms))
        yield Case(people.name, method, epsilon, rows, table, np.array(found))


def _shown(
    people: People, table: str, true: Codes, released: Codes
) -> tuple[Codes, NDArray[Any] | None]:
    """Return the codes of a table, and the forms of its rows."""
    sizes = people.schema.n_categories
    codes = released[: len(sizes)]
    if table == RAW:  # what a form does not ask is empty all the same
        codes = [np.where(y < n, x, n) for x, y, n in zip(true, codes, sizes, strict=True)]
    if table == SWAPPED:
        codes = list(codes)
        for first, second in people.swapped:
            codes[first], codes[second] = codes[second], codes[first]
    return codes, released[len(sizes)].astype(np.int64) if len(released) > len(sizes) else None


def _p_value(mechanism: Mechanism, codes: Codes, forms: NDArray[Any] | None) -> float:
    if (
        forms is not None
        and mechanism.forms is not None
        and forms.max() >= len(mechanism.forms.forms)
    ):
        return 0.0  # no form of this mechanism: refused when it is read
    origin = origin_of(mechanism, Rows(mechanism.schema.names, codes, None, forms))
    assert origin is not None
    return origin.p_value


@dataclass(frozen=True)
class Numbers:
    """Everything that the study rests on.

    Args:
        honest: tables that the mechanism made, many of each case.
        told: tested tables of every kind.
    """

    honest: Sequence[Case]
    told: Sequence[Case]

    def of(self, *tables: str) -> list[Case]:
        """Return the cases of some kinds of table."""
        return [case for case in self.told if case.table in tables]


def measure(setting: Setting) -> Numbers:
    """Make tables of every kind, and look at them."""
    quick = setting.quick
    everybody = [one_kind(), made_up(setting)]
    if (people := adult(setting)) is not None:
        everybody.append(people)
    honest_rows = (100,) if quick else (100, 1000)
    power_rows = (300, 3000) if quick else (100, 300, 1000, 3000, 10_000, 30_000)
    n_tables, n_honest = (10, 50) if quick else (50, 1000)
    honest: list[Case] = []
    told: list[Case] = []
    work = [
        (people, method, epsilon)
        for people in everybody
        for method in METHODS
        for epsilon in ((4.0,) if quick else (1.0, 4.0))
    ]
    for done, (people, method, epsilon) in enumerate(work):
        with setting.step(done, len(work)):
            own = people.mechanism(method, epsilon)
            for rows in honest_rows:
                honest += look(people, method, epsilon, rows, {HONEST: own}, n_honest, setting)
            if people.name == everybody[0].name:
                continue
            tables = dict.fromkeys((HONEST, RAW, SWAPPED), own)
            tables[WEAKER] = people.mechanism(method, 2 * epsilon)
            tables[STRONGER] = people.mechanism(method, epsilon / 2)
            for rows in power_rows:
                told += look(people, method, epsilon, rows, tables, n_tables, setting)
    return Numbers(honest, told)


# Judges.


def false_alarms(cases: Sequence[Case]) -> Judged:
    """Judge tables that the mechanism made."""
    part = FALSE_ALARM / (len(cases) * len(ALPHAS))
    wrong, shares = [], []
    for alpha in ALPHAS:
        for case in cases:
            n = len(case.p_values)
            share = float((case.p_values <= alpha).mean())
            shares.append((share / alpha, f"{share:.2%} at α = {alpha:g} ({case})"))
            if share * n > binom.isf(part, n, alpha):
                wrong.append(case)
    n, alpha = min(len(case.p_values) for case in cases), ALPHAS[0]
    unseen = binom.cdf(binom.isf(part, n, alpha), n, 2 * alpha)
    return Judged(
        f"{len(wrong)} of {len(cases) * len(ALPHAS)} counts are above; the most, against α, is "
        f"{max(shares)[1]}",
        not wrong,
        values={"case": wrong[0] if wrong else ""},
        decided=bool(wrong) or unseen < 0.01,
    )


def told_from(cases: Sequence[Case], rows: int, partly: Callable[[list[Case]], bool]) -> Judged:
    """Judge whether nine of ten tables are detected in every case from a number of rows on.

    Args:
        cases: of one kind of table.
        rows: least number of rows.
        partly: whether the claim holds in part.
    """
    large = [case for case in cases if case.rows >= rows]
    if not large:
        return Judged("no tables of this size", fully=False, tested=False)
    least = min(large, key=lambda case: case.share(REFUSED_BELOW))
    told = sum(_is_told(case) for case in large)
    return Judged(
        f"detected in {told} of {len(large)} cases; the least is {least}",
        told == len(large),
        partly(large),
        values={"case": least},
    )


def _is_told(case: Case) -> bool:
    return case.share(REFUSED_BELOW) >= TOLD


def _half(cases: list[Case]) -> bool:
    return 2 * sum(map(_is_told, cases)) >= len(cases)


def _if_many(cases: list[Case]) -> bool:
    many = [case for case in cases if case.rows >= 10_000]
    return bool(many) and all(map(_is_told, many))


def passes(cases: Sequence[Case]) -> Judged:
    """Judge the output of mechanisms that randomize more."""
    complete = [case for case in cases if case.method != "forms"]
    forms = [case for case in cases if case.method == "forms"]
    most = max(complete, key=lambda case: case.share(REFUSED_BELOW))
    least = min(forms, key=lambda case: case.share(REFUSED_BELOW))
    silent = most.share(REFUSED_BELOW) <= 0.05
    return Judged(
        f"the most without forms is {most}; the least under forms is {least}",
        silent and _is_told(least),
        silent,
        values={"case": least if silent else most},
    )


# The tables, the figures and values of sentences.


def _told_rows(cases: Sequence[Case]) -> TableRows:
    return [
        [
            *(case.people, case.method, case.epsilon, case.rows, case.table, len(case.p_values)),
            *(case.share(REFUSED_BELOW), case.share(WARNED_BELOW)),
        ]
        for case in cases
    ]


def _honest_rows(cases: Sequence[Case]) -> TableRows:
    return [
        [
            *(case.people, case.method, case.epsilon, case.rows, len(case.p_values)),
            *(int((case.p_values <= alpha).sum()) for alpha in ALPHAS),
            float(case.p_values.min()),
        ]
        for case in cases
    ]


def _values(n: Numbers) -> Values:
    first: dict[tuple[str, str, float], str] = {}
    for case in n.of(RAW):
        known = first.get(key := (case.people, case.method, case.epsilon))
        if not _is_told(case):
            first[key] = "more"
        elif known is None or known == "more":
            first[key] = f"{case.rows:,}"
    honest = [*n.honest, *n.of(HONEST)]
    with_adult = any(case.people == "Adult" for case in honest)
    return {
        "adult": ', and the complete cases of "Adult" (UCI)' if with_adult else "",
        "n_releases": len(n.told[0].p_values),
        "n_honest": len(n.honest[0].p_values),
        "n_all_honest": sum(len(case.p_values) for case in honest),
        "least": min(float(case.p_values.min()) for case in honest),
        "from_rows": "; ".join(
            f"{people}, {method}, {epsilon:g}: {rows}"
            for (people, method, epsilon), rows in first.items()
        ),
        "epsilon": max(case.epsilon for case in n.told),
        "most_rows": max(case.rows for case in n.honest),
    }


def _draw_power(canvas: "MatplotlibFigure", cases: Sequence[Case]) -> None:
    epsilon = max(case.epsilon for case in cases)
    names = list(dict.fromkeys(case.people for case in cases))
    shown = (RAW, WEAKER, SWAPPED)
    panels = canvas.subplots(len(names), len(shown), sharex=True, sharey=True, squeeze=False)
    for row, people in enumerate(names):
        for column, table in enumerate(shown):
            panel = panels[row][column]
            for method in METHODS:
                line = [
                    case
                    for case in cases
                    if (case.people, case.table, case.method, case.epsilon)
                    == (people, table, method, epsilon)
                ]
                told = [case.share(REFUSED_BELOW) for case in line]
                plot_method(panel, method, [case.rows for case in line], told)
            panel.set_xscale("log")
            panel.xaxis.set_minor_formatter("")
            grid(panel)
        panels[row][0].set_ylabel("share of tables detected")
    for panel in panels[-1]:
        panel.set_xlabel("rows")
    letter(
        [panel for row in panels for panel in row],
        [f"{people}, {table}" for people in names for table in shown],
    )
    legend(canvas, panels[0][0], ncols=4)


def _draw_honest(canvas: "MatplotlibFigure", cases: Sequence[Case]) -> None:
    rows = max(case.rows for case in cases)
    levels = sorted({case.epsilon for case in cases})
    panels = canvas.subplots(1, len(levels), sharex=True, sharey=True, squeeze=False)[0]
    alphas = np.logspace(-3, 0, 61)
    for panel, epsilon in zip(panels, levels, strict=True):
        for case in cases:
            if (case.people, case.epsilon, case.rows) == (cases[0].people, epsilon, rows):
                plot_method(
                    panel, case.method, alphas, [(case.p_values <= a).mean() for a in alphas]
                )
        panel.plot(alphas, alphas, color="#000000", linewidth=0.6)
        panel.set_xscale("log")
        panel.set_yscale("symlog", linthresh=1e-3)
        panel.set_ylim(0, 1.5)
        panel.set_xlabel("α")
        grid(panel)
    panels[0].set_ylabel("share of p-values at most α")
    letter(list(panels), [f"ε = {epsilon:g}" for epsilon in levels])
    legend(canvas, panels[0], ncols=4)


STUDY = Study(
    read_text("beyond/foreign-tables.toml"),
    measure,
    judges={
        "honest": lambda n: false_alarms(n.honest),
        "raw": lambda n: told_from(n.of(RAW), 1000, _if_many),
        "weaker": lambda n: told_from(n.of(WEAKER), 10_000, _half),
        "stronger": lambda n: passes(n.of(STRONGER)),
        "swapped": lambda n: told_from(n.of(SWAPPED), 10_000, _half),
    },
    figures={
        "power": lambda canvas, n: _draw_power(canvas, n.told),
        "honest": lambda canvas, n: _draw_honest(canvas, n.honest),
    },
    tables={"told": lambda n: _told_rows(n.told), "honest": lambda n: _honest_rows(n.honest)},
    values=_values,
)
