"""Synthetic tables as training data and as joint tables.

    ADULT=folder python benchmarks/bench_prediction.py [--epsilon 4 8] [--releases 1] [--only NAME]

Prediction: the area under the ROC curve (AUC) of a logistic regression on held-out rows, fitted to
the original rows, to the released rows, and to five copies of ``synthesize --about``; seconds for
the copies. Tables: UCI Adult with eleven attributes (income), the shipped example (own insurance),
and the affairs of statsmodels (any affair). Joint tables: mean total variation of the tables of
one, two and three of Adult's nine attributes, of one copy and of the mean of five, from forms
(``--pairs 0.5``) at ε = 1, 2, 4. It needs the studies, and statsmodels.
"""

import argparse
import os
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray
from scipy.stats import rankdata

import deniable
from deniable.estimate.source import Release
from deniable.mechanism.strata import Strata
from deniable.randomness import SystemRandomness
from deniable.synthesis.rows import ReleasedRows
from deniable.synthesis.tree import TreeModel
from deniable.tables import open_table
from deniable_studies.adult import CATEGORICAL, DOMAINS, read_adult

COPIES = 5
ELEVEN = (*(name for name in CATEGORICAL if name not in ("native-country", "income")),)
AGES, HOURS = (25, 35, 45, 55, 65), (20, 35, 41, 60)

Codes = NDArray[np.int64]
Task = tuple[deniable.Schema, str, Codes, Codes]
"""Schema, outcome, and the codes of the rows to learn and held out, shape (attributes, rows)."""


def schema_of(domains: dict[str, tuple[str, ...]]) -> deniable.Schema:
    return deniable.Schema(tuple(deniable.Attribute(n, c) for n, c in domains.items()))


def adult() -> Task:
    """30,162 rows to learn, 15,060 held out."""
    folder = Path(os.environ.get("ADULT", "adult"))
    first = read_adult(folder / "adult.data")
    both = read_adult(folder)
    codes = [both.codes[name] for name in ELEVEN]
    codes += [
        np.digitize(both.numbers["age"], AGES),
        np.digitize(both.numbers["hours-per-week"], HOURS),
        (both.numbers["capital-gain"] > 0).astype(int),
        both.codes["income"],
    ]
    domains = {name: DOMAINS[name] for name in ELEVEN}
    domains["age"] = tuple(map(str, range(len(AGES) + 1)))
    domains["hours"] = tuple(map(str, range(len(HOURS) + 1)))
    domains["gain"], domains["income"] = ("no", "yes"), DOMAINS["income"]
    n = first.n_people
    return schema_of(domains), "income", np.array(codes)[:, :n], np.array(codes)[:, n:]


def insurance() -> Task:
    """Every third row is held out."""
    folder = Path(__file__).parents[1] / "examples"
    schema = deniable.Schema.from_toml(folder / "insurance.toml")
    with open_table(folder / "insurance.csv", schema.attributes) as reader:
        codes = np.concatenate([np.array(b.codes, dtype=np.int64) for b in reader], axis=1)
    return schema, "whi", *split(codes)


def affairs() -> Task:
    """Every third row is held out."""
    from statsmodels.datasets import fair

    frame = fair.load_pandas().data
    frame["affairs"] = (frame["affairs"] > 0).astype(int)
    columns = {name: np.unique(frame[name], return_inverse=True)[1] for name in frame}
    domains = {name: tuple(map(str, range(c.max() + 1))) for name, c in columns.items()}
    random = np.random.default_rng(1)
    codes = np.array(list(columns.values()))[:, random.permutation(len(frame))]
    return schema_of(domains), "affairs", *split(codes)


def split(codes: Codes) -> tuple[Codes, Codes]:
    held = np.arange(codes.shape[1]) % 3 == 2
    return codes[:, ~held], codes[:, held]


def released(schema: deniable.Schema, codes: Codes, plan: deniable.Design) -> ReleasedRows:
    columns = zip(schema.attributes, codes, strict=True)
    middles = {
        a.name: [
            m if a.bins else c
            for m, c in zip(a.middles() or a.categories, a.categories, strict=False)
        ]
        for a in schema.attributes
    }
    frame = pa.table({a.name: np.array(middles[a.name])[c] for a, c in columns})
    release = Release(Strata.one(plan.mechanism), deniable.randomize(frame, plan))
    return ReleasedRows.read(release, schema.names, {})


def auc(learn: Codes, held: Codes, sizes: list[int], outcome: int) -> float:
    """AUC of a logistic regression with a ridge of one row."""
    others = [i for i in range(len(sizes)) if i != outcome]

    def design(codes: Codes) -> NDArray[np.float32]:
        columns = [np.eye(sizes[i], dtype=np.float32)[codes[i]][:, 1:] for i in others]
        return np.column_stack([np.ones(codes.shape[1], np.float32), *columns])

    x, y = design(learn), learn[outcome]
    beta = np.zeros(x.shape[1])
    for _ in range(15):
        share = 1 / (1 + np.exp(-(x @ beta)))
        bend = (x * (share * (1 - share))[:, None].astype(np.float32)).T @ x
        step = np.linalg.solve(bend + np.eye(len(beta)), x.T @ (y - share) - beta)
        beta += step
    return area(design(held) @ beta, held[outcome] == 1)


def area(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Area under the curve of scores of rows, shape (n,)."""
    ranks, n, m = rankdata(scores), positive.sum(), (~positive).sum()
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * m))


def prediction(name: str, task: Task, epsilons: list[float], releases: int) -> None:
    schema, outcome, learn, held = task
    sizes = [a.n_categories for a in schema.attributes]
    place = schema.names.index(outcome)
    print(
        f"\n{name}: AUC of {outcome}, {learn.shape[1]:,} rows to learn, {held.shape[1]:,} held out"
    )
    print(f"original rows {auc(learn, held, sizes, place):.3f}")
    for epsilon in epsilons:
        for method in ("balanced", "forms"):
            more = {"pairs": 0.5} if method == "forms" else {}
            plan = deniable.design(schema, epsilon=epsilon, method=method, **more)
            found, seconds = [], []
            for _ in range(releases):
                rows = released(schema, learn, plan)
                start = time.process_time()
                model = TreeModel.fitted(rows, schema.names, outcome)
                copies = model.synthetic(COPIES, rows.n_rows, SystemRandomness())
                seconds.append(time.process_time() - start)
                together = np.concatenate(list(copies), axis=1).astype(np.int64)
                shares = model.regression(SystemRandomness()).shares(held[[*model.regressors]])
                own = area(shares[:, 1], held[place] == 1)
                found.append([auc(together, held, sizes, place), own])
                if method == "balanced":
                    codes = np.array([rows.codes[i] for i in range(len(sizes))])
                    found[-1].append(auc(codes, held, sizes, place))
            mean = np.mean(found, axis=0)
            also = f", released rows {mean[2]:.3f}" if len(mean) > 2 else ""
            print(
                f"ε = {epsilon:g} {method:9} regression {mean[1]:.3f}, {COPIES} copies "
                f"{mean[0]:.3f}{also}; "
                f"{np.mean(seconds):.1f} s of CPU"
            )


def joint_tables(releases: int) -> None:
    table = read_adult(Path(os.environ.get("ADULT", "adult"))).table().T
    schema = schema_of({name: DOMAINS[name] for name in CATEGORICAL})
    sizes = [a.n_categories for a in schema.attributes]

    def shares(codes: Codes, axes: tuple[int, ...]) -> NDArray[np.float64]:
        shape = [sizes[axis] for axis in axes]
        cells = np.ravel_multi_index([codes[axis].astype(int) for axis in axes], shape)
        return np.bincount(cells, minlength=int(np.prod(shape))) / codes.shape[1]

    print(f"\nAdult's nine, {table.shape[1]:,} rows: mean total variation, one copy; mean of five")
    for epsilon in (1.0, 2.0, 4.0):
        plan = deniable.design(schema, epsilon=epsilon, method="forms", pairs=0.5)
        found = np.zeros((releases, 3, 2))
        for release in range(releases):
            rows = released(schema, table, plan)
            model = TreeModel.fitted(rows, schema.names)
            copies = model.synthetic(COPIES, rows.n_rows, SystemRandomness())
            for order in (1, 2, 3):
                off = []
                for axes in combinations(range(9), order):
                    each = [shares(copy, axes) for copy in copies]
                    true = shares(table, axes)
                    off.append([abs(t - true).sum() / 2 for t in (each[0], np.mean(each, axis=0))])
                found[release, order - 1] = np.mean(off, axis=0)
        cells = "   ".join(f"{one:.3f}; {five:.3f}" for one, five in found.mean(axis=0))
        print(f"ε = {epsilon:g}   one, two, three attributes   {cells}", flush=True)


TASKS: dict[str, Callable[[], Task]] = {
    "adult": adult,
    "insurance": insurance,
    "affairs": affairs,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilon", type=float, nargs="+", default=[4.0, 8.0])
    parser.add_argument("--releases", type=int, default=1)
    parser.add_argument("--only", choices=[*TASKS, "tables"])
    chosen: Any = parser.parse_args()
    for name, task in TASKS.items():
        if chosen.only in (None, name):
            prediction(name, task(), chosen.epsilon, chosen.releases)
    if chosen.only in (None, "tables"):
        joint_tables(chosen.releases)


if __name__ == "__main__":
    main()
