"""The SNPs most associated with a disease, ranked from releases by the optimum and by Kronecker."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deniable.design.design import design
from deniable.estimate.source import open_release
from deniable.estimate.trend import Trend
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.mechanism.strata import Strata
from deniable.planning.trend_power import TrendPlan
from deniable.randomness import SeededRandomness
from deniable.report.method_styles import BLACK, GREY
from deniable.schema import Schema
from deniable_studies.drawing import grid
from deniable_studies.study import Judged, Setting, Study
from deniable_studies.text import read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

CASES = 22 / 45
CARRIED = (8 / 23, 6 / 11)
"""The paper's shares of the second allele among controls and among cases."""

OVERALL = 4 / 9
LEVEL, POWER = 0.5, 0.9
OPTIMUM, SAME, TOTAL = "optimum", "Kronecker, same levels", "Kronecker, same total"


@dataclass(frozen=True)
class Case:
    """One method at one K.

    Args:
        k, method: which.
        epsilon: of the record, in nats.
        n_records: of a release.
        n_releases: how many.
        right_k: part of the releases whose first K are the associated SNPs.
        right: part of the first K that are associated.
        stated: average probability stated of the first K.
    """

    k: int
    method: str
    epsilon: float
    n_records: int
    n_releases: int
    right_k: float
    right: float
    stated: float


def planned(n_snps: int, k: int, attenuation: float) -> int:
    """Return the number of records that ranks the right K first with probability `POWER`."""
    plan = TrendPlan(None, n_snps, None, 0.3, CASES, "carrier", "optimal", POWER, 0.05, top=k)
    seen = attenuation * OVERALL + (1 - attenuation) / 2
    difference = attenuation * (CARRIED[1] - CARRIED[0])
    each = CASES * (1 - CASES) * difference**2 / (seen * (1 - seen))
    return ceil(plan.needed / each)


def mechanisms(n_snps: int) -> dict[str, Mechanism]:
    """Return the mechanisms by method."""
    schema = Schema(Schema.anonymous((2,) * n_snps).attributes, keep=("status",))
    levels = (LEVEL,) * n_snps
    optimum = design(schema, attribute_epsilon=levels, method="optimal")
    same = design(schema, attribute_epsilon=levels, method="kronecker")
    total = design(schema, epsilon=optimum.epsilon, method="kronecker")
    return {OPTIMUM: optimum.mechanism, SAME: same.mechanism, TOTAL: total.mechanism}


def ranked(
    mechanism: Mechanism, k: int, n_records: int, random: np.random.Generator, seed: int
) -> tuple[int, float]:
    """Return how many of the first K of a release are associated, and the average probability."""
    names = mechanism.schema.names
    cases = random.random(n_records) < CASES
    shares = np.full((len(names), 1), OVERALL)
    copies = random.random((len(names), n_records)) < shares
    copies[:k] = random.random((k, n_records)) < np.where(cases, CARRIED[1], CARRIED[0])
    columns = list(copies.astype(np.uint8))
    released = Randomizer(mechanism, SeededRandomness(seed)).randomize(columns)
    texts = {name: np.array(["0", "1"])[codes] for name, codes in zip(names, released, strict=True)}
    texts["status"] = np.array(["0", "1"])[cases.astype(int)]
    release = open_release(pa.table(texts), Strata.one(mechanism))
    (found,) = Trend(status="status", top=k).run(release)
    first = found.tests[:k]
    right = sum(test.attribute in names[:k] for test in first)
    return right, float(np.mean([test.probability_of_top for test in first]))


def measure(setting: Setting) -> list[Case]:
    """Release again and again by every method, at both K."""
    n_snps, sizes, n_releases = (20, (2,), 2) if setting.quick else (100, (5, 10), 40)
    made = mechanisms(n_snps)
    attenuation = float(np.tanh(LEVEL / 2))  # of two categories
    work = [(k, method) for k in sizes for method in made]
    cases = []
    for place, (k, method) in enumerate(work):
        n, random = planned(n_snps, k, attenuation), setting.generator(40, place)
        part = setting.part(place / len(work), (place + 1) / len(work))
        results = []
        for number in range(n_releases):
            with part.step(number, n_releases):
                seed = setting.release_seed(41, place, number)
                results.append(ranked(made[method], k, n, random, seed))
        right = np.array([each for each, _ in results])
        cases.append(
            Case(
                *(k, method, float(made[method].epsilon), n, n_releases),
                *(float(np.mean(right == k)), float(np.mean(right)) / k),
                float(np.mean([stated for _, stated in results])),
            )
        )
    return cases


def _by_k(cases: Sequence[Case], judge: Callable[[Case, Case, Case], tuple[str, bool]]) -> Judged:
    """Judge the three methods at every K: all for fully, one for partly."""
    sizes = sorted({case.k for case in cases})
    found = []
    for k in sizes:
        of = {case.method: case for case in cases if case.k == k}
        found.append(judge(of[OPTIMUM], of[SAME], of[TOTAL]))
    held = [good for _, good in found]
    text = "; ".join(f"K = {k}: {words}" for k, (words, _) in zip(sizes, found, strict=True))
    return Judged(text, all(held), any(held))


def same(optimum: Case, kronecker: Case, _: Case) -> tuple[str, bool]:
    """Compare the methods at the same levels."""
    both = (optimum.right_k + kronecker.right_k) / 2
    error = sqrt(max(both * (1 - both), 0.01) * 2 / optimum.n_releases)
    near = abs(optimum.right_k - kronecker.right_k) <= 3 * error
    return (
        f"{optimum.right_k:.0%} and {kronecker.right_k:.0%} of the releases, at ε = "
        f"{optimum.epsilon:.2f} and {kronecker.epsilon:.2f}",
        near and optimum.epsilon <= kronecker.epsilon / 4,
    )


def total(optimum: Case, _: Case, kronecker: Case) -> tuple[str, bool]:
    """Compare the methods at the same ε of the record."""
    return (
        f"{optimum.right:.0%} and {kronecker.right:.0%} of the K shown are right",
        kronecker.right <= optimum.right / 2,
    )


def stated(cases: Sequence[Case]) -> Judged:
    """Compare stated probabilities with the part that is right."""
    good = [abs(case.stated - case.right) <= 0.1 for case in cases]
    text = "; ".join(
        f"{case.stated:.2f} stated, {case.right:.2f} right (K = {case.k}, {case.method})"
        for case in cases
    )
    return Judged(text, all(good), 2 * sum(good) >= len(good))


def plan(optimum: Case, _same: Case, _total: Case) -> tuple[str, bool]:
    """Compare the planned probability with the part of the releases."""
    error = sqrt(POWER * (1 - POWER) / optimum.n_releases)
    return (
        f"{optimum.right_k:.0%} of the releases of {optimum.n_records:,} records",
        abs(optimum.right_k - POWER) <= 0.05 + 3 * error,
    )


def _draw(canvas: "MatplotlibFigure", cases: Sequence[Case]) -> None:
    panel = canvas.subplots()
    places = range(len(cases))
    panel.bar(places, [100 * case.right for case in cases], color=GREY, label="right")
    panel.plot(places, [100 * case.stated for case in cases], "x", color=BLACK, label="stated")
    names = [f"K = {case.k}\n{case.method.replace(', ', ',')}" for case in cases]
    panel.set_xticks(places, [name.replace(",", ",\n") for name in names], fontsize="small")
    panel.set_ylabel("%")
    grid(panel)
    panel.legend()


STUDY = Study(
    read_text("beyond/top-snps.toml"),
    measure,
    judges={
        "same": lambda cases: _by_k(cases, same),
        "total": lambda cases: _by_k(cases, total),
        "stated": stated,
        "plan": lambda cases: _by_k(cases, plan),
    },
    figures={"right": _draw},
    tables={
        "cases": lambda cases: [
            [c.k, c.method, c.epsilon, c.n_records, c.n_releases, c.right_k, c.right, c.stated]
            for c in cases
        ]
    },
)
