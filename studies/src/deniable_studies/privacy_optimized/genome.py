"""Figure 5 (S1 of the supplement) of Yamamoto and Shibuya: χ² of SNPs under a fixed total.

SNPs are simulated as section V-B has it, released and tested. A SNP's attribute holds an allele and
the disease status: four categories. Randomized with keep probability p, and otherwise any of the
other three, it is on the 2 × 2 table a joint law: every interaction is multiplied by the same
φ = (4p − 1)/3.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kstest

from deniable.design.design import design
from deniable.estimate.association import association
from deniable.estimate.chi_square import chi_square, released_chi_square
from deniable.laws import joint_of_epsilon
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.mechanism.table_map import TableMap
from deniable.randomness import SeededRandomness
from deniable.report.method_styles import BLACK, GREY
from deniable.schema import Schema
from deniable_studies.drawing import STYLES, grid, legend, letter, plot_method
from deniable_studies.study import Judged, Rows, Setting, Study, Values
from deniable_studies.text import read_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

N_PEOPLE = 1000
N_COPIES = 2 * N_PEOPLE
"""Every person has two copies of each allele, and every copy is a record."""

N_CATEGORIES = 4
LEVELS = (3.0, 5.0)
"""Between which the levels that the heuristic is given are drawn, in nats; from the authors'
notebook, the paper gives no numbers."""

METHODS = ("kronecker", "heuristic", "optimal")
IN_THE_NOTEBOOK = METHODS[:2]

GENOME_WIDE = 5e-8
"""The usual level of a single SNP in a study of a whole genome."""

NULL_EPSILON = 1.5
CASE_SHARE = 0.2
ALLELE_SHARES = (0.05, 0.5)
_SNPS_AT_ONCE = 250

PRINTED: dict[str, tuple[float, ...]] = {
    "heuristic": (
        *(18.74, 21.93, 23.45, 20.52, 18.66),
        *(20.92, 22.12, 18.51, 21.68, 20.09),
    ),
    "kronecker": (
        *(59.45, 63.24, 63.33, 64.11, 63.53),
        *(64.46, 63.50, 62.31, 63.42, 63.59),
    ),
}
"""Average differences at k = 10, 20, …, 100, as the authors' notebook (Example.ipynb in their
repository ay0408/Optimized-RR) prints the numbers of Figure 5, to two digits."""

SIZES = tuple(range(10, 101, 10))
"""The k of the paper's figure, where the averages of ``PRINTED`` are."""
_RUNS = dict.fromkeys(SIZES, 10)
_QUICK_RUNS = {10: 10, 100: 2}


# SNPs: simulated, randomized, tested.


def simulate(generator: np.random.Generator, n_snps: int) -> NDArray[np.int64]:
    """Return counts (allele, status) of SNPs by the paper's binomials, shape (n_snps, 2, 2).

    A = Bin(2N, 1/3), B = Bin(2N − A, 1/3), C = Bin(2N − A − B, 2/5), D the rest.
    """
    a = generator.binomial(N_COPIES, 1 / 3, n_snps)
    b = generator.binomial(N_COPIES - a, 1 / 3)
    c = generator.binomial(N_COPIES - a - b, 2 / 5)
    return np.stack([a, b, c, N_COPIES - a - b - c], axis=1).reshape(n_snps, 2, 2)


def statistic(tables: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return χ² of 2 × 2 tables as the paper writes it, shape (n_snps,)."""
    (a, b), (c, d) = np.moveaxis(tables.astype(np.float64), 0, 2)
    n = a + b + c + d
    below = (a + b) * (c + d) * (a + c) * (b + d)
    return np.asarray(n * (a * d - b * c) ** 2 / below)


@dataclass(frozen=True)
class Laws:
    """Mechanisms for k SNPs that spend the same total.

    Args:
        total: ε of a record under the heuristic, in nats: the total of the others.
        mechanisms: by method, ``kronecker``, ``heuristic`` and ``optimal``.
        gap: how far ε of the optimum can be above the least possible for its levels, in nats.
    """

    total: float
    mechanisms: dict[str, Mechanism]
    gap: float


def laws(levels: Sequence[float]) -> Laws:
    """Return the three methods at the heuristic's total.

    The heuristic achieves other levels than requested. Kronecker divides its total in their
    ratio, as the authors do; the optimum divides it evenly.

    Args:
        levels: requested of the heuristic, one per SNP in nats, shape (k,).
    """
    schema = Schema.anonymous([N_CATEGORIES] * len(levels))
    heuristic = design(
        schema, attribute_epsilon=list(levels), method="heuristic", allow_changed_levels=True
    )
    achieved = np.array(heuristic.mechanism.attribute_epsilon, dtype=np.float64)
    total = heuristic.epsilon
    shared = achieved * total / achieved.sum()
    kronecker = design(schema, attribute_epsilon=shared.tolist(), method="kronecker")
    optimum = design(schema, epsilon=total, method="optimal")
    designed = {"kronecker": kronecker, "heuristic": heuristic, "optimal": optimum}
    return Laws(total, {m: d.mechanism for m, d in designed.items()}, optimum.gap or 0.0)


def records_of(
    tables: NDArray[np.int64], generator: np.random.Generator
) -> list[NDArray[np.uint8]]:
    """Return a column per SNP with its table's copies in random order: SNPs are independent."""
    codes = np.arange(N_CATEGORIES, dtype=np.uint8)
    return [generator.permutation(np.repeat(codes, table.ravel())) for table in tables]


def release(
    mechanism: Mechanism, records: Sequence[NDArray[np.uint8]], seed: int
) -> NDArray[np.int64]:
    """Randomize records, one column per SNP, and count them; shape (n_snps, 2, 2)."""
    released = Randomizer(mechanism, SeededRandomness(seed)).randomize(list(records))
    counts = [np.bincount(codes, minlength=N_CATEGORIES) for codes in released]
    return np.stack(counts).reshape(-1, 2, 2).astype(np.int64)


def channel_of(keep_probability: float) -> tuple[TableMap, TableMap]:
    """Return M and its inverse on the 2 × 2 table of a SNP."""
    left = (N_CATEGORIES * keep_probability - 1) / (N_CATEGORIES - 1)
    forward = TableMap((2, 2), (0, 1), np.array([[1.0, left], [left, left]]), {})
    return forward, replace(forward, eigenvalues=1 / forward.eigenvalues)


@dataclass(frozen=True)
class Tested:
    """Statistics of the released tables.

    Args:
        naive: the paper's χ² of the released counts, shape (n_snps,).
        corrected: an estimate of χ² of the true table: n times the estimate of Φ² of the
            population, plus the one degree of freedom that sampling adds.
        p_value: of the corrected test.
    """

    naive: NDArray[np.float64]
    corrected: NDArray[np.float64]
    p_value: NDArray[np.float64]


def examine(released: NDArray[np.int64], keep_probability: Sequence[float]) -> Tested:
    """Return the statistics of released tables, SNP by SNP."""
    corrected, p_values = [], []
    for table, keep in zip(released.astype(np.float64), keep_probability, strict=True):
        forward, inverse = channel_of(keep)
        n = float(table.sum())
        corrected.append(n * association(table / n, inverse, n).square + 1.0)
        p_values.append(chi_square(table, forward, inverse).p_value)
    return Tested(statistic(released), np.array(corrected), np.array(p_values))


# Runs: accuracy over k, and p-values under independence.


@dataclass(frozen=True)
class Run:
    """One method in one run at one k; differences are averages over the k SNPs.

    Args:
        n_snps: k.
        method: which.
        number: of the run.
        total: the total that may be spent, in nats.
        spent: ε of a record, in nats.
        mean_level: average level of a SNP's attribute, in nats.
        gap: the optimum's distance from its lower bound at most, in nats; 0 for the others.
        original: χ² of the true tables.
        naive: absolute difference between the released χ² and the true one.
        corrected: absolute difference between the corrected χ² and the true one.
        bias: corrected χ² less the true one.
        found: share of SNPs that the corrected test finds at the genome-wide level.
        notebook: absolute difference between χ² of *the last SNP's* copies, randomized at this
            SNP's level, and the true χ² of this SNP; NaN for the optimum.
    """

    n_snps: int
    method: str
    number: int
    total: float
    spent: float
    mean_level: float
    gap: float
    original: float
    naive: float
    corrected: float
    bias: float
    found: float
    notebook: float


def accuracy(setting: Setting, n_runs: Mapping[int, int]) -> list[Run]:
    """Return all runs, the same number for every k."""
    work = [(k, number) for k, many in n_runs.items() for number in range(many)]
    whole = sum(k + 30 for k, _ in work)
    runs, done = [], 0
    for k, number in work:
        runs += _runs(setting, k, number)
        done += k + 30
        setting.advance(done / whole)
    return sorted(runs, key=lambda run: (run.n_snps, METHODS.index(run.method), run.number))


def runs_text(runs: Sequence[Run]) -> str:
    """Return how many runs there are, such as "10 runs"."""
    counts = Counter(run.n_snps for run in runs if run.method == METHODS[0])
    if len(set(counts.values())) == 1:
        return f"{next(iter(counts.values()))} runs"
    return ", ".join(f"{many} runs at k = {k}" for k, many in counts.items())


def _runs(setting: Setting, k: int, number: int) -> list[Run]:
    generator = setting.generator(1, k, number)
    found = laws(generator.uniform(*LEVELS, k).tolist())
    tables = simulate(generator, k)
    original = statistic(tables)
    records = records_of(tables, generator)
    runs = []
    for place, method in enumerate(METHODS):
        mechanism = found.mechanisms[method]
        released = release(mechanism, records, setting.release_seed(1, k, number, place))
        tested = examine(released, mechanism.keep_probability)
        difference = tested.corrected - original
        seed = setting.release_seed(2, k, number, place)
        runs.append(
            Run(
                k,
                method,
                number,
                found.total,
                mechanism.epsilon,
                float(np.mean(np.array(mechanism.attribute_epsilon))),
                found.gap if method == "optimal" else 0.0,
                float(original.mean()),
                float(np.abs(tested.naive - original).mean()),
                float(np.abs(difference).mean()),
                float(difference.mean()),
                float(np.mean(tested.p_value < GENOME_WIDE)),
                _as_in_the_notebook(mechanism, records[-1], original, seed)
                if method in IN_THE_NOTEBOOK
                else float("nan"),
            )
        )
    return runs


def _as_in_the_notebook(
    mechanism: Mechanism, last: NDArray[np.uint8], original: NDArray[np.float64], seed: int
) -> float:
    # Its loop over SNPs fills one array of copies, so that the last SNP's are left; then each SNP
    # is randomized from that array, independently of the others, at its own level.
    k = len(original)
    levels = [float(level) for level in mechanism.attribute_epsilon]
    apart = design(mechanism.schema, attribute_epsilon=levels, method="kronecker").mechanism
    return float(np.abs(statistic(release(apart, [last] * k, seed)) - original).mean())


@dataclass(frozen=True)
class PValues:
    """P-values of SNPs that are independent of the disease, ascending.

    Args:
        corrected: of the corrected test.
        naive: of Pearson's test on the released counts.
    """

    corrected: NDArray[np.float64]
    naive: NDArray[np.float64]


def nothing_to_find(setting: Setting, n_snps: int) -> PValues:
    """Return p-values where allele and status are independent; both are randomized together."""
    law = joint_of_epsilon((2, 2), NULL_EPSILON)
    schema = Schema.anonymous((2, 2))
    mechanism = Mechanism.of(law, schema)
    forward, inverse = channel_of(law.densities[0] / law.total)
    generator = setting.generator(3)
    corrected, naive = [], []
    for start in range(0, n_snps, _SNPS_AT_ONCE):
        many = min(_SNPS_AT_ONCE, n_snps - start)
        allele = np.repeat(generator.uniform(*ALLELE_SHARES, many), N_COPIES)
        records = [
            (generator.random(allele.size) < share).astype(np.uint8)
            for share in (allele, CASE_SHARE)
        ]
        random = SeededRandomness(setting.release_seed(3, start))
        first, second = Randomizer(mechanism, random).randomize(records)
        cells = np.repeat(np.arange(many), N_COPIES) * 4 + 2 * first.astype(np.intp) + second
        counts = np.bincount(cells, minlength=4 * many).reshape(many, 2, 2).astype(np.float64)
        corrected += [chi_square(table, forward, inverse).p_value for table in counts]
        naive += [released_chi_square(table).p_value for table in counts]
        setting.advance((start + many) / n_snps)
    return PValues(np.sort(corrected), np.sort(naive))


@dataclass(frozen=True)
class Numbers:
    """Everything that the study rests on.

    Args:
        runs: of every method at every k.
        null: p-values under independence.
    """

    runs: Sequence[Run]
    null: PValues


def measure(setting: Setting) -> Numbers:
    """Simulate, randomize, test."""
    n_runs, n_null = (_QUICK_RUNS, 1_500) if setting.quick else (_RUNS, 20_000)
    return Numbers(
        accuracy(setting.part(0.0, 0.8), n_runs), nothing_to_find(setting.part(0.8, 1.0), n_null)
    )


# Judges.


def at(runs: Sequence[Run], k: int, method: str, name: str) -> list[float]:
    """Return a number of every run of a method at one k."""
    return [getattr(run, name) for run in runs if (run.n_snps, run.method) == (k, method)]


def means(runs: Sequence[Run], method: str, name: str) -> list[float]:
    """Return the average over the runs of a method, at every k."""
    return [fmean(at(runs, k, method, name)) for k in sizes_of(runs)]


def sizes_of(runs: Sequence[Run]) -> list[int]:
    """Return every k."""
    return sorted({run.n_snps for run in runs})


def _printed(runs: Sequence[Run], method: str) -> list[float]:
    return [PRINTED[method][SIZES.index(k)] for k in sizes_of(runs)]


def _range(values: Sequence[float], form: str = ".1f") -> str:
    return f"{min(values):{form}} to {max(values):{form}}"


def _ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    return [a / b for a, b in zip(over, under, strict=True)]


def half(runs: Sequence[Run]) -> Judged:
    """Is the heuristic's difference at most half of Kronecker's?"""
    ratios = _ratios(means(runs, "heuristic", "naive"), means(runs, "kronecker", "naive"))
    held, n = sum(ratio <= 0.5 for ratio in ratios), len(ratios)
    return Judged(
        f"{_range(ratios, '.2f')} of Kronecker's; at most half at {held} of {n} k",
        held == n,
        2 * held > n,
    )


def heights(runs: Sequence[Run]) -> Judged:
    """Judge the printed averages."""
    ours = {m: means(runs, m, "naive") for m in IN_THE_NOTEBOOK}
    near = [abs(ratio - 1) <= 0.1 for m in ours for ratio in _ratios(ours[m], _printed(runs, m))]
    return Judged(
        "; ".join(f"{_range(values)} ({m})" for m, values in ours.items())
        + f"; {sum(near)} of {len(near)} points within 10 %",
        all(near),
        2 * sum(near) > len(near),
    )


def slip(runs: Sequence[Run]) -> Judged:
    """Do they come out if every SNP is randomized from the last one's copies?"""
    both = {
        m: (fmean(means(runs, m, "notebook")), fmean(_printed(runs, m))) for m in IN_THE_NOTEBOOK
    }
    near = [abs(ours / theirs - 1) <= 0.1 for ours, theirs in both.values()]
    return Judged(
        "averages over k: "
        + "; ".join(f"{o:.1f}, printed {t:.1f} ({m})" for m, (o, t) in both.items()),
        all(near),
        any(near),
    )


def optimum(runs: Sequence[Run]) -> Judged:
    """Is the optimum at least as accurate as the heuristic?"""
    best, other = (means(runs, m, "naive") for m in ("optimal", "heuristic"))
    held, n = sum(b <= 1.05 * o for b, o in zip(best, other, strict=True)), len(best)
    return Judged(
        f"optimum {_range(best)}, heuristic {_range(other)}; held at {held} of {n} k",
        held == n,
        2 * held > n,
    )


def corrected(runs: Sequence[Run]) -> Judged:
    """Is the corrected χ² nearer to the original?"""
    ratios = {m: _ratios(means(runs, m, "corrected"), means(runs, m, "naive")) for m in METHODS}
    smaller = [ratio < 1 for each in ratios.values() for ratio in each]
    return Judged(
        "; ".join(f"{_range(each, '.2f')} times ({m})" for m, each in ratios.items())
        + f"; smaller at {sum(smaller)} of {len(smaller)} points",
        all(smaller),
        2 * sum(smaller) > len(smaller),
    )


def unbiased(runs: Sequence[Run]) -> Judged:
    """Is it right on average?"""
    parts, good = [], []
    for method in METHODS:
        values = np.array([run.bias for run in runs if run.method == method])
        error = float(values.std(ddof=1)) / math.sqrt(len(values))
        good.append(abs(float(values.mean())) <= 3 * error)
        parts.append(f"{values.mean():+.2f} ± {error:.2f} ({method})")
    return Judged("; ".join(parts), all(good), any(good))


def uniform(null: PValues) -> Judged:
    """Judge whether p-values are uniform under independence."""
    n = len(null.corrected)
    distance = float(kstest(null.corrected, "uniform", method="asymp").statistic)
    limit = 1.63 / math.sqrt(n)
    size, naive = (float(np.mean(p <= 0.05)) for p in (null.corrected, null.naive))
    fine, misled = distance <= limit, naive > 0.1
    return Judged(
        f"distance {distance:.4f}; rejected at 5 %: {100 * size:.2f} % corrected, "
        f"{100 * naive:.1f} % as released ({n:,} SNPs)",
        fine and misled,
        fine or misled,
        values={"limit": limit},
    )


# Tables, figures and values of sentences.


def _accuracy_rows(runs: Sequence[Run]) -> Rows:
    return [
        [
            *(r.n_snps, r.method, r.number, r.total, r.spent, r.mean_level),
            *(r.gap if r.method == "optimal" else None, r.original, r.naive, r.corrected),
            *(r.bias, r.found, r.notebook),
        ]
        for r in runs
    ]


def _p_value_rows(null: PValues) -> Rows:
    levels = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    return [
        [x, float(np.mean(null.corrected <= x)), float(np.mean(null.naive <= x))] for x in levels
    ]


def _values(n: Numbers) -> Values:
    sizes = sizes_of(n.runs)
    level = fmean(at(n.runs, sizes[-1], "kronecker", "mean_level"))
    totals = means(n.runs, "heuristic", "total")
    found = {m: 100 * means(n.runs, m, "found")[-1] for m in METHODS}
    return {
        "runs": runs_text(n.runs),
        "n_null": len(n.null.corrected),
        "fewest": sizes[0],
        "most": sizes[-1],
        "level": level,
        "log_ratio": sizes[-1] * math.log((math.exp(level) + 1) / 2),
        "total_fewest": totals[0],
        "total_most": totals[-1],
        "found": ", ".join(f"{percent:.0f} % ({m})" for m, percent in found.items()),
    }


_LABELS = {"kronecker": "Kronecker", "heuristic": "heuristic", "optimal": "optimum"}


def _bars(axes: "Axes", runs: Sequence[Run], method: str, name: str, shift: float) -> None:
    sizes = sizes_of(runs)
    values = [at(runs, k, method, name) for k in sizes]
    places, average = np.array(sizes) + shift, np.array([np.mean(each) for each in values])
    low, high = (np.array([pick(each) for each in values]) for pick in (min, max))
    axes.errorbar(
        places,
        average,
        yerr=[average - low, high - average],
        fmt="none",
        ecolor=STYLES[method].colour,
        elinewidth=0.8,
        capsize=2.5,
    )
    plot_method(axes, method, places, average, label=_LABELS[method])


def _draw_differences(
    canvas: "MatplotlibFigure",
    runs: Sequence[Run],
    methods: Sequence[str],
    panels: Sequence[tuple[str, str]],
    *,
    printed: bool = False,
) -> None:
    """Draw two panels of averages over k, each (number of a run, title)."""
    both = canvas.subplots(1, 2, sharey=True)
    for axes, (name, _) in zip(both, panels, strict=True):
        for place, method in enumerate(methods):
            _bars(axes, runs, method, name, 0.9 * (place - (len(methods) - 1) / 2))
        for method in methods if printed else ():
            axes.plot(
                SIZES,
                PRINTED[method],
                "x",
                color="#D55E00",
                markersize=6,
                zorder=5,
                label="printed" if method == methods[0] else "_printed",
            )
    for axes in both:  # not before both are drawn, whose axis is one
        axes.set_xlabel("number of SNPs, k")
        axes.set_ylim(bottom=0)
        axes.set_xlim(0, 106)
        grid(axes)
    both[0].set_ylabel("average |difference from the original χ²|")
    letter(both, [title for _, title in panels])
    legend(canvas, both[0], ncols=3)


def _draw_p_values(canvas: "MatplotlibFigure", null: PValues) -> None:
    left, right = canvas.subplots(1, 2)
    n = len(null.corrected)
    fractions = np.arange(1, n + 1) / n
    least = 1 / n
    for axes in (left, right):
        axes.plot([least, 1], [least, 1], color=GREY, linewidth=0.8, label="uniform")
        for values, look, label in (
            (null.corrected, {"color": BLACK, "linestyle": "-"}, "corrected"),
            (null.naive, {"color": "#D55E00", "linestyle": "--"}, "released table, uncorrected"),
        ):
            axes.plot(
                np.maximum(values, least), fractions, drawstyle="steps-post", label=label, **look
            )
        axes.set_xlabel("p-value")
        grid(axes)
    left.set_ylabel("share of SNPs with at most this p-value")
    right.set_xscale("log")
    right.set_yscale("log")
    letter((left, right), ("all p-values", "small p-values"))
    legend(canvas, left, ncols=3)


STUDY = Study(
    read_text("privacy_optimized/genome.toml"),
    measure,
    judges={
        "half": lambda n: half(n.runs),
        "heights": lambda n: heights(n.runs),
        "slip": lambda n: slip(n.runs),
        "optimum": lambda n: optimum(n.runs),
        "corrected": lambda n: corrected(n.runs),
        "unbiased": lambda n: unbiased(n.runs),
        "uniform": lambda n: uniform(n.null),
    },
    figures={
        "accuracy": lambda canvas, n: _draw_differences(
            canvas,
            n.runs,
            METHODS,
            [("naive", "χ² of the released counts"), ("corrected", "corrected χ²")],
        ),
        "notebook": lambda canvas, n: _draw_differences(
            canvas,
            n.runs,
            IN_THE_NOTEBOOK,
            [("notebook", "from the last SNP's copies"), ("naive", "as the paper describes")],
            printed=True,
        ),
        "p-values": lambda canvas, n: _draw_p_values(canvas, n.null),
    },
    tables={
        "accuracy": lambda n: _accuracy_rows(n.runs),
        "p-values": lambda n: _p_value_rows(n.null),
    },
    values=_values,
)
