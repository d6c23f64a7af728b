"""Synthetic and imputed copies of releases of Adult: how often combined intervals hold the truth.

    ADULT=folder python benchmarks/bench_synthesize.py [--epsilon 4] [--releases 60]

Of people drawn from the complete cases of UCI Adult with replacement, nine attributes are released
again and again; 20 copies are drawn from the model of all pairs of income, sex, race and
relationship (120 cells), an ordinary logistic regression of income on sex, white and married is
fitted to each, and the results are combined. The truth is Adult's own. Beside it what not to do:
the intervals of one imputed copy, and of the likeliest value of every row. It needs the studies.
"""

import argparse
import os
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import deniable
from deniable.estimate.source import Release
from deniable.mechanism.published import channel_of
from deniable.mechanism.strata import Strata
from deniable.randomness import SystemRandomness
from deniable.synthesis.combining import combine
from deniable.synthesis.pairs import PairsModel
from deniable.synthesis.rows import ReleasedRows
from deniable_studies.adult import CATEGORICAL, read_adult, schema

NAMES = ("income", "sex", "race", "relationship")
TERMS = ("sex", "white", "married")


def regressors(attributes: dict[str, Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The design of every cell, and whether it is one of those with the large income."""
    shape = tuple(attributes[name].n_categories for name in NAMES)
    index = [grid.ravel() for grid in np.indices(shape)]
    labels = [np.array(attributes[n].categories)[i] for n, i in zip(NAMES, index, strict=True)]
    income, sex, race, relationship = labels
    married = np.isin(relationship, ["Husband", "Wife"])
    columns = [np.ones(len(sex)), sex == "Male", race == "White", married]
    return np.column_stack(columns).astype(float), np.char.startswith(income.astype(str), ">")


def logistic(
    counts: NDArray[np.float64], design: NDArray[np.float64], large: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coefficients and variances of an ordinary logistic regression, by Newton's method."""
    beta = np.zeros(design.shape[1])
    for _ in range(30):
        share = 1 / (1 + np.exp(-design @ beta))
        information = (design * (counts * share * (1 - share))[:, None]).T @ design
        beta = beta + np.linalg.solve(information, design.T @ (counts * (large - share)))
    return beta[1:], np.diag(np.linalg.inv(information))[1:]


def best_guess(model: PairsModel) -> NDArray[np.float64]:
    """How many rows have each cell as their likeliest true one."""
    (part,) = model.seen
    shown, times = np.unique(part.cells, return_counts=True)
    units = np.zeros((part.counts.size, len(shown)))
    units[shown, np.arange(len(shown))] = 1.0
    back = channel_of(part.mechanism, model.names, part.counts).forward.transposed()
    likely = back.apply(units.reshape(*part.counts.shape, -1)).reshape(-1, len(shown))
    best = np.argmax(likely * model.fit.probabilities.reshape(-1, 1), axis=0)
    return np.bincount(best, times, len(likely)).astype(float)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--releases", type=int, default=60)
    parser.add_argument("--method", default="forms")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    adult = read_adult(Path(os.environ.get("ADULT", "adult")))
    table = adult.table()
    declared = schema()
    attributes = {a.name: a for a in declared.attributes}
    more = {"pairs": 0.5} if chosen.method == "forms" else {}
    plan = deniable.design(declared, epsilon=chosen.epsilon, method=chosen.method, **more)
    design, large = regressors(attributes)
    shape = tuple(attributes[name].n_categories for name in NAMES)
    places = [CATEGORICAL.index(name) for name in NAMES]
    cells = np.ravel_multi_index(tuple(table[:, place] for place in places), shape)
    n = len(cells)
    everybody = np.bincount(cells, minlength=design.shape[0]).astype(float)
    truth, _ = logistic(everybody, design, large)
    print(f"Adult, {n:,} people, {chosen.method}, ε = {chosen.epsilon:g}; true", truth.round(2))
    import pyarrow as pa

    random = np.random.default_rng(chosen.seed)
    hits: dict[str, list[Any]] = {}
    widths: dict[str, list[Any]] = {}
    for _ in range(chosen.releases):
        people = random.integers(n, size=n)
        frame = pa.table(
            {
                name: np.array(attributes[name].categories)[table[people, place]]
                for place, name in enumerate(CATEGORICAL)
            }
        )
        rows = deniable.randomize(frame, plan)
        release = Release(Strata.one(plan.mechanism), rows)
        model = PairsModel.fitted(ReleasedRows.read(release, NAMES, {}), NAMES)
        for kind in ("synthetic", "imputed"):
            codes = getattr(model, kind)(20, n, SystemRandomness())
            flat = np.ravel_multi_index(tuple(codes.transpose(1, 0, 2).astype(np.int64)), shape)
            counts = [np.bincount(each, minlength=len(large)).astype(float) for each in flat]
            fits = [logistic(each, design, large) for each in counts]
            found = combine([f[0] for f in fits], [f[1] for f in fits], kind=kind)
            rows_of = found.table()
            held = [r["low"] <= t <= r["high"] for r, t in zip(rows_of, truth, strict=True)]
            hits.setdefault(kind, []).append(held)
            widths.setdefault(kind, []).append(found.estimates - truth)
            pairs = []
            for axes in combinations(range(4), 2):
                rest = tuple(i for i in range(4) if i not in axes)
                each = np.stack([c.reshape(shape).sum(axis=rest).ravel() / n for c in counts])
                true = everybody.reshape(shape).sum(axis=rest).ravel() / n
                shares = combine(each, each * (1 - each) / n, kind=kind)
                inside = [
                    r["low"] <= t <= r["high"]
                    for r, t in zip(shares.table(), true, strict=True)
                    if t > 0.001
                ]
                pairs += inside
            hits.setdefault(f"{kind}, pairs", []).append([np.mean(pairs)])
            if kind == "imputed":
                hits.setdefault("one imputed copy", []).append(covered(*fits[0], truth))
        guessed = logistic(best_guess(model) + 1e-9, design, large)
        hits.setdefault("best guess per row", []).append(covered(*guessed, truth))
    for name, held in hits.items():
        print(f"{name:24} held {np.round(100 * np.mean(held, axis=0), 1)} %", end="  ")
        print(f"all {100 * np.mean(held):.1f} %", end="")
        if name in widths:
            print("  rmse", np.sqrt(np.mean(np.square(widths[name]), axis=0)).round(2), end="")
        print()


def covered(
    values: NDArray[np.float64], variances: NDArray[np.float64], truth: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which of the ordinary 95 % intervals hold the truth."""
    return np.asarray(abs(values - truth) <= 1.96 * np.sqrt(variances))


if __name__ == "__main__":
    main()
