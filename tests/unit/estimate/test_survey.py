"""Errors of a survey sample: clusters within strata, weights, domains."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import deniable
from deniable.errors import InputError
from deniable.estimate import inference as inference_module
from deniable.estimate.survey import ClusterCells, SampleColumns, cell_variance, total_variance
from deniable.mechanism.published import channel_of
from deniable.tables import open_table


def clusters_of(columns: dict[str, list[Any]], sample: SampleColumns, size: int) -> Any:
    reader, found = sample.reader, []
    assert reader is not None
    for start in range(0, 6, size):
        table = pa.table({name: values[start : start + size] for name, values in columns.items()})
        with open_table(table, [], [*columns]) as opened:
            found += [reader.clusters(batch, "w") for batch in opened]
    return np.concatenate(found).tolist(), reader.stratum.tolist()


@pytest.mark.parametrize("size", [6, 2, 1])
def test_clusters_of_one_name_in_two_strata_are_two_in_any_batches(size: int) -> None:
    columns: dict[str, list[Any]] = {
        "c": ["a", "a", "b", "a", None, "d"],
        "h": ["1", "1", "1", "2", "2", "2"],
        "w": [1.0, 1.0, 2.0, 1.0, 1.0, 3.0],
    }
    found = clusters_of(columns, SampleColumns("c", "h"), size)
    assert found == ([0, 0, 1, 2, -1, 3], [0, 0, 1, 1])


def test_without_clusters_every_row_of_the_sample_is_one() -> None:
    columns: dict[str, list[Any]] = {
        "h": ["1", "0", "1", "", "0", "1"],
        "w": [1.0, 1.0, None, 1.0, 1.0, 1.0],
    }
    found = clusters_of(columns, SampleColumns(None, "h"), 4)
    assert found == ([0, 1, -1, -1, 2, 3], [0, 1, 1, 0])
    assert SampleColumns().reader is None


def test_a_stratum_of_one_cluster_is_refused() -> None:
    with pytest.raises(InputError, match="has one cluster"):
        total_variance(np.zeros((3, 2)), np.array([0, 0, 1]))


def test_the_variance_of_cells_is_that_of_the_clusters_totals(monkeypatch: Any) -> None:
    random = np.random.default_rng(1)
    stratum = np.repeat([0, 1], [4, 7])
    parts, sums = [], np.zeros((11, 3))
    for cells in (5, 2):
        cluster, cell = random.integers(0, 9, 40), random.integers(0, cells, 40)
        weight, each = random.random(40), random.normal(size=(3, cells))
        np.add.at(sums, cluster, weight[:, None] * each[:, cell].T)
        parts.append((ClusterCells(cluster, cell, weight).merged(), each))
    expected = total_variance(sums, stratum)
    for at_once in (10**6, 9):
        monkeypatch.setattr("deniable.estimate.survey._AT_ONCE", at_once)
        np.testing.assert_allclose(cell_variance(parts, stratum), expected, rtol=1e-10)


# A sample of 4 strata with 5 to 8 clusters each; answers go together in clusters

SCHEMA = deniable.Schema(
    (
        deniable.Attribute("smokes", ("no", "yes")),
        deniable.Attribute("age", bins=(0, 30, 60, 90), scores=(15, 45, 75)),
        deniable.Attribute("sex", ("f", "m")),
    ),
    keep=("stratum", "psu", "weight", "part", "town"),
)
CLEAN = deniable.design(SCHEMA, attribute_epsilon=(30, 30, 30))
NOISY = deniable.design(SCHEMA, attribute_epsilon=(1.5, 2, 2))


def people(n: int = 600) -> pd.DataFrame:
    random = np.random.default_rng(7)
    stratum = random.integers(0, 4, n)
    psu = random.integers(0, 5 + stratum)
    effect = random.normal(size=(4, 8))[stratum, psu]
    smokes = (random.normal(size=n) + effect > 0.3).astype(int)
    age = np.clip(random.integers(0, 3, n) + (effect > 0.5), 0, 2)
    return pd.DataFrame(
        {
            "smokes": np.array(["no", "yes"])[smokes],
            "age": np.array(["[0,30)", "[30,60)", "[60,90]"])[age],
            "sex": np.array(["f", "m"])[random.integers(0, 2, n)],
            "stratum": stratum.astype(str),
            "psu": [f"p{c}" for c in psu],
            "weight": np.round(1 + random.random(n) + stratum, 3),
            "part": np.where(random.random(n) < 0.4, "in", "out"),
            "town": np.where((stratum == 1) & (psu < 2), "A", "B"),
        }
    )


PEOPLE = people()
HOW: dict[str, Any] = {"weights": "weight", "cluster": "psu", "strata": "stratum"}


def variance(z: Any, frame: pd.DataFrame = PEOPLE) -> Any:
    """The textbook: Σ_h n_h/(n_h − 1) Σ_c (z_hc − z̄_h)², z the rows' weighted contributions."""
    z = np.asarray(z).reshape(len(frame), -1)
    total = np.zeros((z.shape[1],) * 2)
    for _, rows in frame.assign(place=range(len(frame))).groupby("stratum"):
        sums = np.array([z[own["place"]].sum(axis=0) for _, own in rows.groupby("psu")])
        total += len(sums) * np.cov(sums.T, ddof=1).reshape(total.shape)
    return total


def ratio_errors(above: Any, below: Any) -> tuple[Any, Any]:
    w = PEOPLE["weight"].to_numpy()[:, None]
    share = (w * above).sum(axis=0) / (w * below).sum(axis=0)
    z = w * (above - share * below) / (w * below).sum(axis=0)
    return share, np.sqrt(np.diag(variance(z)))


def indicators(*names: str) -> Any:
    return pd.get_dummies(PEOPLE[[*names]].agg("/".join, axis=1)).to_numpy(float)


def test_shares_and_means_of_clean_data_have_the_textbook_errors() -> None:
    release = deniable.open(PEOPLE, CLEAN, randomized=True)
    how: dict[str, Any] = HOW | {"target": "population"}
    everyone = np.ones((len(PEOPLE), 1))
    (table,) = release.shares("smokes,age", **how)
    share, error = ratio_errors(indicators("smokes", "age"), everyone)
    np.testing.assert_allclose(table.values.ravel(), share, rtol=1e-6)
    np.testing.assert_allclose(table.standard_error.ravel(), error, rtol=1e-6)
    np.testing.assert_allclose(np.sqrt(np.diag(table.covariance())), error, rtol=1e-6)
    assert table.interval_method == "normal"
    inside = (PEOPLE["part"] == "in").to_numpy(float)[:, None]
    for which in ({"where": "part=in"}, {"by": "part"}):  # other rows are in the sample, too
        found = release.shares("age", **how, **which)[0]
        share, error = ratio_errors(inside * indicators("age"), inside)
        np.testing.assert_allclose(found.standard_error, error, rtol=1e-6)
    score = PEOPLE["age"].map({"[0,30)": 15, "[30,60)": 45, "[60,90]": 75}).to_numpy()[:, None]
    (mean,) = release.mean("age", **how)
    share, error = ratio_errors(score, everyone)
    assert (mean.estimate, mean.standard_error) == pytest.approx((share[0], error[0]), rel=1e-6)
    female = (PEOPLE["sex"] == "f").to_numpy(float)[:, None]
    (within,) = release.shares("smokes", by="sex", **how)
    share, error = ratio_errors(female * indicators("smokes"), female)
    np.testing.assert_allclose(within.values[:, 0], share, rtol=1e-6)
    np.testing.assert_allclose(within.standard_error[:, 0], error, rtol=1e-6)


def test_comparisons_and_correlations_of_clean_data_have_the_textbook_errors() -> None:
    release = deniable.open(PEOPLE, CLEAN, randomized=True)
    how: dict[str, Any] = HOW | {"target": "population"}
    w = PEOPLE["weight"].to_numpy()
    smokes = (PEOPLE["smokes"] == "yes").to_numpy(float)
    score = PEOPLE["age"].map({"[0,30)": 15, "[30,60)": 45, "[60,90]": 75}).to_numpy(float)
    everyone = np.ones(len(PEOPLE))

    def moved(y: Any, group: Any) -> tuple[float, Any]:
        share = (w * group) @ y / (w @ group)
        return share, w * group * (y - share) / (w @ group)

    # Clusters have rows of both groups: of a kept column, and of an attribute.
    for column, first, second in (("part", "in", "out"), ("sex", "f", "m"), ("part", "in", None)):
        groups = [(PEOPLE[column] == value).to_numpy(float) for value in (first, second)]
        groups = groups if second else [groups[0], everyone]
        values = ",".join([first, second] if second else [first])
        for y, options in ((smokes, {"of": "smokes"}), (score, {"of": "age", "mean": True})):
            (one, a), (other, b) = (moved(y, group) for group in groups)
            found = release.compare(column=column, values=values, **how, **options)[-1]
            assert found.difference == pytest.approx(one - other, rel=1e-6)
            assert found.standard_error == pytest.approx(variance(a - b)[0, 0] ** 0.5, rel=1e-6)
            ratio_error = variance(a / one - b / other)[0, 0] ** 0.5
            assert found.ratio_error == pytest.approx(ratio_error, rel=1e-6)
            assert found.n_records == len(PEOPLE)
    male = (PEOPLE["sex"] == "m").to_numpy(float)
    x, y = ((v - w @ v / w.sum()) for v in (score, male))
    x, y = (v / (w @ v**2 / w.sum()) ** 0.5 for v in (x, y))
    rho = w @ (x * y) / w.sum()
    error = variance(w * (x * y - rho / 2 * (x**2 + y**2)) / w.sum())[0, 0] ** 0.5
    (pair,) = release.correlation("age,sex", **how)
    assert pair.standard_error == pytest.approx(error, rel=0.01)  # its variances are corrected
    assert pair.estimate == pytest.approx(rho, abs=error**2)


def test_distributions_in_a_survey_have_the_errors_of_clusters() -> None:
    """A cluster of m equal rows is one row; of rows alone it is the error without a survey."""
    x = deniable.Attribute("x", range=(0, 8), grid=5)
    plan = deniable.design(
        deniable.Schema((x,), keep=("row", "pair")), epsilon=2, method="balanced"
    )
    rows = np.repeat([0, 2, 4, 6, 8], [130, 170, 250, 150, 100])
    table = {"x": np.repeat(rows, 2), "row": np.arange(1600), "pair": np.repeat(np.arange(800), 2)}
    release = deniable.open(pa.table(table), plan, randomized=True)
    how: dict[str, Any] = {"at": [1, 3, 5.5], "target": "population"}
    plain, single, pairs = (
        np.array([share.standard_error for share in found.shares])
        for which in ({}, {"cluster": "row"}, {"cluster": "pair"})
        for found in release.distribution("x", **how, **which)
    )
    np.testing.assert_allclose(single, plain * (1600 / 1599) ** 0.5, rtol=1e-4)
    np.testing.assert_allclose(pairs, plain * (2 * 800 / 799) ** 0.5, rtol=1e-4)


def test_weights_strata_and_clusters_of_randomized_rows(monkeypatch: Any) -> None:
    # The contribution of a row is the inverse of its matrix at the released value.
    release = deniable.open(PEOPLE, NOISY, anyway=True, randomized=True)
    how: dict[str, Any] = HOW | {"target": "population"}
    (found,) = release.shares("smokes,age", **how)
    names = ("smokes", "age")
    matrix = channel_of(NOISY.mechanism, names).forward.apply(np.eye(6).reshape(2, 3, 6))
    inverse = np.linalg.inv(matrix.reshape(6, 6))
    codes = [
        PEOPLE[name].map({x: i for i, x in enumerate(SCHEMA.variable(name).attribute.categories)})
        for name in names
    ]
    each = inverse.T[codes[0] * 3 + codes[1]]
    w = PEOPLE["weight"].to_numpy()[:, None]
    share = (w * each).sum(axis=0) / w.sum()
    np.testing.assert_allclose(found.values.ravel(), share, rtol=1e-9)
    covariance = variance(w * (each - share) / w.sum())
    np.testing.assert_allclose(found.covariance(), covariance, rtol=1e-7, atol=1e-12)
    monkeypatch.setattr(inference_module, "_AT_ONCE", 4)
    (found,) = release.shares("smokes,age", **how)
    np.testing.assert_allclose(found.standard_error.ravel() ** 2, np.diag(covariance), rtol=1e-7)
    monkeypatch.setattr(inference_module, "MOST_SURVEYED", 5)
    with pytest.raises(InputError, match="6 cells has no errors of a survey"):
        release.shares("smokes,age", **how)


# The F test of Rao and Scott; figures of svychisq(~a + b, svydesign(~psu, strata = ~stratum,
# weights = ~weight, nest = TRUE)) of R's package survey 4.1

OF_R = {
    ("smokes,age", None): (2.241593403179, 1.503844059939, 33.084569318651, 0.133563888995),
    ("smokes,age", "part=in"): (3.2019775640928, 1.7692009562692, 38.9224210379, 0.05726776728),
    ("smokes,part", None): (0.0103118579608, 1.0, 22.0, 0.9200358363866),
}


@pytest.mark.parametrize(("of", "where"), OF_R)
def test_independence_in_a_survey_is_as_in_r(of: str, where: str | None) -> None:
    release = deniable.open(PEOPLE, CLEAN, randomized=True)
    (found,) = release.independence(of, where=where, **HOW)
    plain = found.to_plain()
    names = ("statistic", "degrees_of_freedom", "denominator_degrees_of_freedom", "p_value")
    assert [plain[name] for name in names] == pytest.approx(OF_R[of, where], rel=1e-6)
    assert found.table()[0].items() >= {name: plain[name] for name in names}.items()
    assert plain["released"] is None


def by_rows(z: Any) -> Any:
    """Variance of a total of rows, each a cluster."""
    return len(z) * np.cov(z.T, ddof=1)


def test_independence_of_weighted_randomized_rows_compares_with_independent_rows() -> None:
    # Rare shares are not clearly above 0, so Δ is that of C = π − αβᵀ at M(αβᵀ).
    release = deniable.open(PEOPLE, NOISY, anyway=True, randomized=True)
    (found,) = release.independence("smokes,age", weights="weight")
    channel = channel_of(NOISY.mechanism, ("smokes", "age"))
    matrix = channel.forward.apply(np.eye(6).reshape(2, 3, 6)).reshape(6, 6)
    codes = [
        PEOPLE[n].map(SCHEMA.variable(n).attribute.categories.index) for n in channel.attributes
    ]
    w = PEOPLE["weight"].to_numpy()[:, None]
    each = np.linalg.inv(matrix).T[codes[0] * 3 + codes[1]]
    share = (w * each).sum(axis=0) / w.sum()
    table = share.reshape(2, 3)
    first, second = table.sum(axis=1), table.sum(axis=0)

    def excess(cells: Any) -> Any:
        cells = cells.reshape(-1, 2, 3)
        moved = cells - first[:, None] * cells.sum(axis=1, keepdims=True)
        moved -= second * cells.sum(axis=2, keepdims=True)
        return moved[:, :-1, :-1].reshape(len(cells), -1)

    null = matrix @ np.outer(first, second).ravel()
    at_null = excess(np.linalg.inv(matrix).T)
    at_null -= null @ at_null
    base = (at_null.T * null) @ at_null / len(PEOPLE)
    c = (table - np.outer(first, second))[:-1, :-1].ravel()
    own = excess(each) - excess(share)
    effects = np.linalg.solve(base, by_rows(w * own / w.sum()))
    free = np.trace(effects) ** 2 / np.trace(effects @ effects)
    plain = found.to_plain()
    assert plain["statistic"] == pytest.approx(c @ np.linalg.solve(base, c) / np.trace(effects))
    assert plain["degrees_of_freedom"] == pytest.approx(free)
    assert plain["denominator_degrees_of_freedom"] == pytest.approx(free * (len(PEOPLE) - 1))


def test_clusters_need_rows_and_the_population() -> None:
    release = deniable.open(PEOPLE, CLEAN, randomized=True)
    for query in (release.shares, release.mean, release.quantile):
        with pytest.raises(
            InputError, match="`cluster` and `strata` are for errors of the population"
        ):
            query("age", cluster="psu")
    with pytest.raises(InputError, match="'psus' is not a kept column"):
        release.shares("age", target="population", cluster="psus")
