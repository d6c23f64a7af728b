"""Numbers: errors of a mean against other mechanisms on the same rows, and speed.

    python benchmarks/bench_numbers.py [--adult adult.data] [--rows 1]

Part 1: standard errors of the mean of a number with a law of its own, of the rows of UCI Adult, in
per cent of half the range and exact: the variance of each row given its number. Part 2: the same
of six attributes at a total ε: the default law with the points of numbers, the same with bins
scored by their middles (with their bias: the root of the mean square error), and mechanisms for one
number at an equal share of ε. The hybrid mechanism is that of Wang and others (2019), PM-OPT the
piecewise mechanism of Zhao and others (2020) with the t of least worst-case variance. Part 3:
columns of numbers against columns of categories in memory, and a CSV of twelve columns, three of
them numbers, against a copy.
"""

import argparse
import csv
import math
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc_csv
from bench_files import DOMAIN, copy
from measured import Measured, cpu_seconds, seconds
from numpy.typing import NDArray

from deniable.design.design import design
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.published import channel_of
from deniable.randomness import SystemRandomness
from deniable.release.release import Options, randomize_table
from deniable.schema import Attribute, Schema

ROOT = Path(__file__).parents[1]
Floats = NDArray[np.float64]
RANGES = {"age": (0, 17, 90), "hours": (12, 1, 99), "education": (4, 1, 16)}
CATEGORIES = {"race": 8, "sex": 9, "income": 14}
LEVELS = (0.5, 1.0, 2.0, 4.0, 6.0)
BINS = 5
LEAST_RATIO, MOST_TIMES = 0.7, 2.0

Round = dict[str, tuple[float, float]]


def hybrid(x: Floats, epsilon: float) -> Floats:
    """Return the variance at numbers of [−1, 1]: Duchi and others up to ε = 0.61, else a mixture
    with the piecewise mechanism."""
    duchi = 1 / math.tanh(epsilon / 2) ** 2 - x**2
    if epsilon <= 0.61:
        return duchi
    rest = math.exp(-epsilon / 2)
    return (1 - rest) * piecewise(x, epsilon, math.exp(epsilon / 2)) + rest * duchi


def piecewise(x: Floats, epsilon: float, t: float) -> Floats:
    """Return the variance of the piecewise mechanism with parameter t."""
    e = math.exp(epsilon)
    at_zero = (t + e) * ((t + 1) ** 3 + e - 1) / (3 * t**2 * (e - 1) ** 2)
    return at_zero + (t + 1) / (e - 1) * x**2


def pm_opt(x: Floats, epsilon: float) -> Floats:
    """Return the variance of the piecewise mechanism with the best t for the worst case."""
    choices = np.exp(np.linspace(0.001, 1, 5000) * epsilon)
    best = min(choices.tolist(), key=lambda t: float(piecewise(np.ones(1), epsilon, t)[0]))
    return piecewise(x, epsilon, best)


def of_points(mechanism: Mechanism, name: str, x: Floats) -> Floats:
    """Return the variance of the summand of the mean, for a number with range [−1, 1]."""
    channel = channel_of(mechanism, (name,))
    points = np.array(mechanism.schema.variable(name).attribute.category_scores())
    influence = channel.inverse.transposed().apply(points)
    squares = channel.forward.transposed().apply(influence**2)
    return np.interp(x, points, squares) - x**2


def of_bins(mechanism: Mechanism, name: str, x: Floats) -> tuple[Floats, Floats]:
    """Return variance and bias of the summand, for bins of [−1, 1] scored by their middles."""
    channel = channel_of(mechanism, (name,))
    attribute = mechanism.schema.variable(name).attribute
    middles = np.array(attribute.middles())
    influence = channel.inverse.transposed().apply(middles)
    codes = np.clip(np.searchsorted(attribute.bins or (), x, "right") - 1, 0, BINS - 1)
    squares = channel.forward.transposed().apply(influence**2)
    return squares[codes] - middles[codes] ** 2, middles[codes] - x


def error(variances: Floats, bias: Floats | float = 0.0) -> float:
    """Return the root mean square error of the mean, in per cent of half the range."""
    n = len(variances)
    return 100 * math.sqrt(variances.sum() / n**2 + float(np.mean(bias)) ** 2)


def numbers_of(path: Path) -> tuple[dict[str, Floats], dict[str, tuple[str, ...]]]:
    """Return the numbers of Adult on [−1, 1], and the categories of its other attributes."""
    with path.open(newline="") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if len(row) == 15]
    numbers = {
        name: (2 * np.array([float(row[place]) for row in rows]) - low - high) / (high - low)
        for name, (place, low, high) in RANGES.items()
    }
    domains = {n: tuple(sorted({row[i] for row in rows})) for n, i in CATEGORIES.items()}
    return numbers, domains


def alone(numbers: dict[str, Floats], measured: Measured) -> None:
    """Print the errors of a number with a law of its own."""
    print("A number alone: standard error of the mean, % of half the range")
    heads = ("mean", "typical", "3 points", "hybrid", "PM-OPT")
    print(f"{'number':>10} {'ε':>4} " + " ".join(f"{head:>9}" for head in heads))
    for name, x in numbers.items():
        for epsilon in LEVELS:
            found = []
            for purpose, method in (("mean", None), ("typical", None), ("mean", "balanced")):
                attribute = Attribute(name, range=(-1, 1), purpose=purpose)
                plan = design(Schema((attribute,)), epsilon=epsilon, method=method)
                found.append(error(of_points(plan.mechanism, name, x)))
            found += [error(hybrid(x, epsilon)), error(pm_opt(x, epsilon))]
            shown = dict(zip(heads, found, strict=True))
            print(f"{name:>10} {epsilon:>4g} " + " ".join(f"{e:>9.3f}" for e in found), flush=True)
            measured.add("mean of a number alone, % of half the range", of=name, ε=epsilon, **shown)


def together(
    numbers: dict[str, Floats], domains: dict[str, tuple[str, ...]], measured: Measured
) -> None:
    """Print the errors of numbers among six attributes."""
    others = tuple(Attribute(name, values) for name, values in domains.items())
    points = Schema((*(Attribute(name, range=(-1, 1)) for name in numbers), *others))
    edges = tuple(np.linspace(-1, 1, BINS + 1).tolist())
    bins = Schema((*(Attribute(name, bins=edges) for name in numbers), *others))
    print(f"\nSix attributes: the same, at a total ε; bins: {BINS}, root mean square error")
    heads = ("default", "bins", "own", "hybrid", "PM-OPT")
    print(f"{'number':>10} {'ε':>4} " + " ".join(f"{head:>9}" for head in heads))
    for epsilon in LEVELS:
        share = epsilon / len(points.attributes)
        joint, binned = (design(one, epsilon=epsilon).mechanism for one in (points, bins))
        own = design(points, epsilon=epsilon, method="kronecker").mechanism
        for name, x in numbers.items():
            found = [
                error(of_points(joint, name, x)),
                error(*of_bins(binned, name, x)),
                error(of_points(own, name, x)),
                error(hybrid(x, share)),
                error(pm_opt(x, share)),
            ]
            shown = dict(zip(heads, found, strict=True))
            print(f"{name:>10} {epsilon:>4g} " + " ".join(f"{e:>9.3f}" for e in found), flush=True)
            measured.add(
                "mean among six attributes, % of half the range", of=name, ε=epsilon, **shown
            )


def speed(rows: int, measured: Measured) -> None:
    """Print times of columns of numbers against categories, and of CSV to CSV against a copy."""
    random = np.random.default_rng(1)
    ends = {"income": (0, 200_000), "hours": (1, 99), "born": (1900, 2010)}
    domain = dict(list(DOMAIN.items())[: 12 - len(ends)])
    numbers = {name: random.integers(low, high + 1, rows) for name, (low, high) in ends.items()}
    texts = {
        name: pa.array(values).take(pa.array(random.integers(0, len(values), rows)))
        for name, values in domain.items()
    }
    some = list(domain)[-len(ends) :]
    of_numbers = tuple(Attribute(name, range=one) for name, one in ends.items())
    of_texts = {name: Attribute(name, tuple(values)) for name, values in domain.items()}
    source = SystemRandomness()
    print(f"\n{rows:,} rows, ε = 6: CPU seconds, medians of 5; the CSV has twelve columns")
    for method in ("balanced", "kronecker"):
        with tempfile.TemporaryDirectory() as folder:

            def job(
                table: object, attributes: tuple[Attribute, ...], name: str, law: str = method
            ) -> Callable[[], object]:
                mechanism = design(Schema(attributes), epsilon=6, method=law).mechanism
                target, options = Path(folder, name), Options(overwrite=True)
                return lambda: randomize_table(table, mechanism, target, options, source)

            file = Path(folder, "table.csv")
            pc_csv.write_csv(pa.table(numbers | texts), file)
            jobs = {
                "numbers": job(pa.table(numbers), of_numbers, "numbers.parquet"),
                "categories": job(
                    pa.table({name: texts[name] for name in some}),
                    tuple(of_texts[name] for name in some),
                    "categories.parquet",
                ),
                "CSV": job(file, (*of_numbers, *of_texts.values()), "out.csv"),
                "copy": lambda f=file: copy(f, f.with_name("copy.csv")),
            }
            rounds = [
                {name: (cpu_seconds(one), seconds(one)) for name, one in jobs.items()}
                for _ in range(5)
            ]

        def middle(top: str, bottom: str, clock: int, found: list[Round] = rounds) -> float:
            return statistics.median(one[top][clock] / one[bottom][clock] for one in found)

        times, cpu = middle("numbers", "categories", 0), middle("copy", "CSV", 0)
        clock = middle("copy", "CSV", 1)
        missed = "  BELOW THE AIM" if times > MOST_TIMES or clock < LEAST_RATIO else ""
        print(
            f"{method:>10}: three numbers {times:.2f} times as long as three of categories; CSV to "
            f"CSV {cpu:.2f} of the speed of a copy by CPU, {clock:.2f} by the clock{missed}",
            flush=True,
        )
        measured.add(
            "numbers in memory and in a file", law=method, rows=rows, times=times, cpu=cpu, s=clock
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adult", type=Path, default=ROOT / "examples" / "adult.data")
    parser.add_argument("--rows", type=float, default=1.0, help="millions")
    measured = Measured(parser)
    options = parser.parse_args()
    numbers, domains = numbers_of(options.adult)
    alone(numbers, measured)
    together(numbers, domains, measured)
    speed(int(options.rows * 1e6), measured)
    measured.write(options)


if __name__ == "__main__":
    main()
