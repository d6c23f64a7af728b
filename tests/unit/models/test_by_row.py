"""Regressions by row: the ordinary fits without randomization, the likelihood's optimum with it."""

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas
import pyarrow as pa
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from numpy.typing import NDArray
from scipy.optimize import minimize
from statsmodels.miscmodels.ordinal_model import OrderedModel

import deniable
from deniable.errors import InputError
from deniable.estimate.source import open_release
from deniable.laws import MatrixChannel, ProductLaw
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.strata import Strata
from deniable.models.model import Model
from deniable.models.query import ModelQuery
from deniable.schema import Attribute, Schema
from marked import slow_after
from unit.models.cases import as_it_is, laws, people, released

PEOPLE = people(600)
FRAME = PEOPLE.to_pandas()
PLAIN = released(as_it_is(), PEOPLE)
KEPT = ("a", "b", "hours", "town", "weight")
FORMULA = "y ~ a*hours + town + I(hours**2)"

CHANNELS = {
    "forced": np.array([[5, 1], [1, 5]]) / 6,
    "warner": np.array([[0.7, 0.3], [0.3, 0.7]]),
    "more answers than categories": np.array([[0.5, 0.1], [0.3, 0.3], [0.2, 0.6]]),
}


def ask(formula: str, release: object = PLAIN, **how: object) -> Model:
    (model,) = ModelQuery(formula, **how).run(release)  # type: ignore[arg-type]
    return model


def logit(formula: str, frame: pandas.DataFrame = FRAME, **more: object) -> object:
    frame = frame.assign(y=(frame["y"] == "yes") * 1.0)
    return smf.glm(formula, frame, family=sm.families.Binomial(), **more).fit(tol=1e-14)


def shown_through(matrix: NDArray[np.float64], frame: pandas.DataFrame, seed: int = 4) -> object:
    """A release in which ``y`` was answered through a matrix and all else is unchanged."""
    schema = Schema((Attribute("y", ("no", "yes")),), keep=KEPT)
    mechanism = Mechanism(schema, (Block((0,), MatrixChannel.from_probabilities(matrix)),))
    random = np.random.default_rng(seed)
    labels = mechanism.output_labels[0]
    chances = matrix.T[(frame["y"] == "yes").astype(int)].cumsum(axis=1)
    codes = (random.random(len(frame))[:, None] > chances).sum(axis=1)
    table = frame.drop(columns=["y"]).assign(y=[labels[i] for i in codes])
    release = deniable.open(
        pa.Table.from_pandas(table, preserve_index=False), mechanism, randomized=True
    )
    return release.source


def optimum(
    off: Callable[[NDArray[np.float64]], float], start: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The least of a function, and the errors by the inverse of its differences."""
    best = minimize(off, start, method="BFGS", options={"gtol": 1e-9}).x
    step = 1e-3 * np.maximum(abs(best), 0.1)
    unit = np.diag(step)
    bend = np.array(
        [
            [
                sum(
                    s * t * off(best + s * unit[i] + t * unit[j])
                    for s, t in product((-1, 1), repeat=2)
                )
                / (4 * step[i] * step[j])
                for j in range(len(best))
            ]
            for i in range(len(best))
        ]
    )
    return best, np.sqrt(np.diag(np.linalg.inv(bend)))


def test_a_logistic_regression_is_the_ordinary_one() -> None:
    mine, theirs = ask(FORMULA), logit(FORMULA)
    assert (mine.kind, mine.prior, mine.fit) == ("logistic", False, None)
    names = list(mine.names)
    np.testing.assert_allclose(mine.coefficients, theirs.params[names], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(mine.covariance, theirs.cov_params().loc[names, names], rtol=1e-4)
    assert mine.by_row is not None
    assert mine.by_row.log_likelihood == pytest.approx(theirs.llf)
    wald = {test.of: test for test in mine.tests}
    assert wald["a"].without == ("a", "a:hours")
    restricted = theirs.wald_test("a[T.q]=0,a[T.r]=0,a[T.q]:hours=0,a[T.r]:hours=0", scalar=True)
    assert wald["a"].statistic == pytest.approx(restricted.statistic, rel=1e-5)
    nested = ask(FORMULA, against="y ~ a + hours + town + I(hours**2)").against
    assert nested is not None
    assert (nested.degrees_of_freedom, nested.kind) == (2, "Wald")
    with pytest.raises(InputError, match="neither of"):
        ask("y ~ a + hours", against="y ~ b + hours")


@pytest.mark.parametrize("name", CHANNELS)
def test_a_randomized_response_has_the_largest_likelihood(name: str) -> None:
    frame = FRAME.assign(hours=FRAME["hours"] / 10)
    release = shown_through(CHANNELS[name], frame)
    mine = ask("y ~ hours + weight + I(weight**2)", release)
    labels = list(release.strata.mechanism_of("").output_labels[0])  # type: ignore[attr-defined]
    rows = CHANNELS[name][[labels.index(y) for y in release.rows["y"].to_pylist()]]  # type: ignore[attr-defined]
    x = np.column_stack(
        [np.ones(len(frame)), frame["hours"], frame["weight"], frame["weight"] ** 2]
    )

    def off(beta: NDArray[np.float64]) -> float:
        yes = 1 / (1 + np.exp(-x @ beta))
        return -float(np.log(rows[:, 0] * (1 - yes) + rows[:, 1] * yes).sum())

    best, errors = optimum(off, mine.coefficients)
    np.testing.assert_allclose(mine.coefficients, best, atol=1e-6)
    np.testing.assert_allclose(mine.standard_errors, errors, rtol=1e-3)


def test_an_unchanged_response_on_a_randomized_covariate_is_a_mixture() -> None:
    frame = FRAME.assign(hours=FRAME["hours"] / 10)
    schema = Schema((Attribute("a", ("p", "q", "r")),), keep=("y", "b", "hours", "town", "weight"))
    mechanism = Mechanism.of(ProductLaw.from_levels((3,), (2.0,)), schema)
    release = released(mechanism, pa.Table.from_pandas(frame, preserve_index=False))
    mine = ask("y ~ a + hours", release)
    keep = mechanism.blocks[0].law
    shown = np.array(["pqr".index(a) for a in release.rows["a"].to_pylist()])
    e = np.exp(2.0)
    m = np.full((3, 3), 1 / (e + 2))
    np.fill_diagonal(m, e / (e + 2))
    assert keep.record_level() is not None
    yes, hours = (frame["y"] == "yes").to_numpy(), frame["hours"].to_numpy()

    def off(at: NDArray[np.float64]) -> float:
        odds = at[0] + np.array([0, at[1], at[2]])[:, None] + at[3] * hours
        share = 1 / (1 + np.exp(np.where(yes, -odds, odds)))
        of_z = np.exp(np.stack([0 * hours, at[4] + at[5] * hours, at[6] + at[7] * hours]))
        rho = of_z / of_z.sum(axis=0)
        return -float(np.log((share * rho * m[shown].T).sum(axis=0)).sum())

    best, errors = optimum(off, np.zeros(8))
    np.testing.assert_allclose(mine.coefficients, best[:4], atol=1e-5)
    np.testing.assert_allclose(mine.standard_errors, errors[:4], rtol=1e-3)
    assert mine.by_row is not None
    assert mine.by_row.log_likelihood == pytest.approx(-off(best))


@pytest.mark.parametrize("law", slow_after(1, ["ramp", "matrix", "forms"]))
def test_fits_of_cells_and_of_rows_are_one_model(law: str) -> None:
    # Saturated in the covariates, both have the same likelihood, under any law.
    release = released(laws()[law], PEOPLE)
    for formula in ("y ~ a + C(weight)", "town ~ y"):
        cells, rows = ask(formula, release, prior=False), ask(formula, release, errors="robust")
        assert (cells.by_row, rows.fit, rows.names) == (None, None, cells.names)
        np.testing.assert_allclose(rows.coefficients, cells.coefficients, atol=1e-6)
        np.testing.assert_allclose(rows.standard_errors, cells.standard_errors, rtol=0.2)
        names = [*cells.levels.categories]
        mine, theirs = (
            {tuple(row[name] for name in names): row["estimate"] for row in model.predict()}
            for model in (rows, cells)
        )
        assert mine == pytest.approx(theirs, abs=1e-6)


def test_strata_of_mechanisms_are_in_the_formula_where_a_covariate_is_randomized() -> None:
    own = {"A": laws()["product"], "B": laws()["votes"], "C": laws()["ramp"]}
    strata = Strata(own, "town")
    parts = [
        deniable.randomize(PEOPLE.filter(pa.compute.equal(PEOPLE["town"], t)), mechanism)
        for t, mechanism in own.items()
    ]
    release = open_release(pa.concat_tables(parts), strata)
    with pytest.raises(InputError, match="put it into the formula, or fit a model within each"):
        ask("y ~ a + weight", release)
    alone, each = ask("y ~ weight", release), ask("y ~ weight + town + a", release)
    for model in (alone, each):
        at = model.names.index("weight")
        assert abs(model.coefficients[at]) < 5 * model.standard_errors[at]


def test_a_multinomial_regression_is_the_ordinary_one() -> None:
    frame = FRAME.assign(hours=FRAME["hours"] / 10)
    mine = ask("a ~ b + hours", released(as_it_is(), pa.Table.from_pandas(frame)))
    codes = pandas.Categorical(frame["a"]).codes
    design = np.column_stack([np.ones(len(frame)), frame["b"] == "m", frame["hours"]]).astype(float)
    theirs = sm.MNLogit(codes, design).fit(disp=0, method="newton", maxiter=100, tol=1e-14)
    assert mine.kind == "multinomial"
    assert mine.names[3] == "r: Intercept"
    np.testing.assert_allclose(mine.coefficients, theirs.params.T.ravel(), atol=1e-6)
    np.testing.assert_allclose(mine.standard_errors, theirs.bse.T.ravel(), rtol=1e-5)
    shares = mine.probabilities(frame[["hours", "b"]].head(7))
    np.testing.assert_allclose(shares, theirs.predict(design[:7]), atol=1e-6)


def test_proportional_odds_are_the_ordinary_ones() -> None:
    frame = FRAME.assign(hours=FRAME["hours"] / 10)
    mine = ask("a ~ b + hours", released(as_it_is(), pa.Table.from_pandas(frame)), ordered=True)
    codes = pandas.Categorical(frame["a"]).codes
    design = pandas.DataFrame({"b": (frame["b"] == "m") * 1.0, "hours": frame["hours"]})
    theirs = OrderedModel(codes, design, distr="logit").fit(disp=0, method="newton", tol=1e-12)
    assert mine.kind == "proportional odds"
    assert mine.names == ("p|q", "q|r", "b[T.m]", "hours")
    assert mine.terms == ("(Intercept)", "(Intercept)", "b", "hours")
    np.testing.assert_allclose(mine.coefficients[2:], theirs.params[:2], atol=1e-5)
    np.testing.assert_allclose(mine.standard_errors[2:], theirs.bse[:2], rtol=1e-3)
    np.testing.assert_allclose(
        mine.coefficients[:2],
        [theirs.params.iloc[2], theirs.params.iloc[2] + np.exp(theirs.params.iloc[3])],
        atol=1e-5,
    )
    shares = mine.probabilities(frame[["hours", "b"]].head(7))
    np.testing.assert_allclose(shares, theirs.predict(design.head(7)), atol=1e-5)
    rows = mine.predict(frame[["hours", "b"]].head(2))
    for i, row in enumerate(rows):  # by differences of the coefficients
        x = np.array([-(frame["b"][i // 3] == "m") * 1.0, -frame["hours"][i // 3]])

        def odds(at: NDArray[np.float64], x: NDArray[np.float64] = x, k: int = i % 3) -> float:
            below = [0.0, *1 / (1 + np.exp(-(at[:2] + x @ at[2:]))), 1.0]
            return float(np.log((below[k + 1] - below[k]) / (1 - below[k + 1] + below[k])))

        change = np.array(
            [
                (odds(mine.coefficients + u) - odds(mine.coefficients - u)) / 2e-6
                for u in np.eye(4) * 1e-6
            ]
        )
        half = 1.959964 * np.sqrt(change @ mine.covariance @ change)
        middle = odds(mine.coefficients)
        assert row["low"] == pytest.approx(1 / (1 + np.exp(half - middle)), rel=1e-5)
        assert row["high"] == pytest.approx(1 / (1 + np.exp(-half - middle)), rel=1e-5)
    assert len(mine.odds_ratios()) == 2
    assert [test.of for test in mine.tests] == ["b", "hours"]


@pytest.mark.slow
def test_weights_clusters_and_strata_give_the_errors_of_a_survey() -> None:
    random = np.random.default_rng(3)
    frame = FRAME.assign(psu=random.integers(0, 40, len(FRAME)), town=FRAME["town"])
    schema = Schema(
        (*as_it_is().schema.attributes,), keep=("y", "a", "b", "town", "hours", "weight", "psu")
    )
    mechanism = deniable.design(schema, epsilon=1).mechanism
    release = released(mechanism, pa.Table.from_pandas(frame, preserve_index=False))
    formula = "y ~ b + hours"
    glm = logit(formula, frame, freq_weights=frame["weight"])
    w = frame["weight"].to_numpy()
    score = glm.model.exog * (w * (glm.model.endog - glm.fittedvalues.to_numpy()))[:, None]
    inverse = np.linalg.inv(-glm.model.hessian(glm.params))
    strata = frame["town"].to_numpy()
    for survey in (
        {},
        {"cluster": "psu"},
        {"cluster": "psu", "strata": "town"},
        {"strata": "town"},
    ):
        mine = ask(formula, release, weights="weight", **survey)
        np.testing.assert_allclose(mine.coefficients, glm.params, atol=1e-7)
        cluster = frame["psu"].to_numpy() if "cluster" in survey else np.arange(len(frame))
        middle = np.zeros((3, 3))
        for h in ["A", "B", "C"] if "strata" in survey else [None]:
            chosen = np.ones(len(frame), bool) if h is None else strata == h
            sums = np.array(
                [score[chosen & (cluster == c)].sum(axis=0) for c in np.unique(cluster[chosen])]
            )
            if survey:
                middle += len(sums) * np.cov(sums.T, ddof=1)
            else:
                middle += sums.T @ sums
        np.testing.assert_allclose(
            mine.covariance, inverse @ middle @ inverse, rtol=1e-6, atol=1e-9
        )
    clustered = logit(formula, frame).model.fit(
        tol=1e-14, cov_type="cluster", cov_kwds={"groups": frame["psu"], "use_correction": False}
    )
    mine = ask(formula, release, cluster="psu")
    np.testing.assert_allclose(mine.covariance * 39 / 40, clustered.cov_params(), rtol=1e-6)
    robust = logit(formula, frame).model.fit(tol=1e-14, cov_type="HC0")
    np.testing.assert_allclose(
        ask(formula, release, errors="robust").covariance, robust.cov_params(), rtol=1e-6
    )
    with pytest.raises(InputError, match="leave out `errors`"):
        ask(formula, release, errors="scores", weights="weight")
    with pytest.raises(InputError, match="`cluster` needs a model by row, and a log-linear model"):
        ask("~ y*b", release, cluster="psu")
    with pytest.raises(InputError, match="are for a response of categories, and 'hours'"):
        ask("hours ~ b", release, ordered=True)
    mine = ask("hours ~ b", release, cluster="psu", weights="weight")
    theirs = smf.wls("hours ~ b", frame, weights=frame["weight"]).fit(
        cov_type="cluster", cov_kwds={"groups": frame["psu"], "use_correction": False}
    )
    np.testing.assert_allclose(mine.covariance * 39 / 40, theirs.cov_params(), rtol=1e-6)
    mine = ask("hours ~ b", release, cluster="psu", where="psu<20")  # of 40 clusters
    some = frame[frame["psu"] < 20]
    theirs = smf.ols("hours ~ b", some).fit(
        cov_type="cluster", cov_kwds={"groups": some["psu"], "use_correction": False}
    )
    np.testing.assert_allclose(mine.covariance * 39 / 40, theirs.cov_params(), rtol=1e-6)


def test_splines_and_scales_are_those_of_the_rows() -> None:
    formula = "y ~ scale(hours) + bs(weight, df=3) + poly(hours, 2)"
    mine, theirs = ask("y ~ scale(hours)"), logit("y ~ standardize(hours)")
    np.testing.assert_allclose(mine.coefficients[0], theirs.params.iloc[0], atol=1e-3)
    model = ask(formula)
    assert len(model.names) == 7
    assert model.dropped  # scale is the first polynomial
    first = model.predict(FRAME.head(1))[1]["estimate"]
    alone = ask("y ~ bs(weight, df=3) + poly(hours, 2)").predict(FRAME.head(1))[1]["estimate"]
    assert first == pytest.approx(alone, rel=1e-6)


def test_groups_rows_left_out_and_the_rows_listed() -> None:
    gaps = FRAME.assign(hours=FRAME["hours"].where(FRAME.index > 2)).round({"hours": -1})
    release = released(as_it_is(), pa.Table.from_pandas(gaps, preserve_index=False))
    models = ModelQuery("y ~ b + hours", by=("town",)).run(release)
    assert [model.group for model in models] == [(("town", t),) for t in "ABC"]
    assert models.selection.left_out == (("hours", 3),)
    some = gaps[(gaps["town"] == "B")].dropna()
    np.testing.assert_allclose(
        models[1].coefficients, logit("y ~ b + hours", some).params, atol=1e-6
    )
    listed = models[1].predict()
    assert {(row["b"], row["hours"]) for row in listed} == {
        *zip(some["b"], some["hours"], strict=True)
    }
    row = next(r for r in listed if (r["y"], r["b"], r["hours"]) == ("yes", "m", 40.0))
    (asked,) = (
        r
        for r in models[1].predict(pandas.DataFrame({"b": ["m"], "hours": [40]}))
        if r["y"] == "yes"
    )
    assert row["estimate"] == asked["estimate"]
    assert list(row)[:4] == ["town", "y", "b", "hours"]
    plain = models[1].to_plain()
    assert (plain["prior"], plain["kind"], len(plain["predictions"])) == (
        None,
        "logistic",
        len(listed),
    )
    large = replace(models[1], by_row=replace(models[1].by_row, listed=None))
    with pytest.raises(InputError, match="give the rows to predict for in the frame"):
        large.predict()
    assert large.to_plain()["predictions"] == []


def test_missing_answers_that_are_not_randomized_are_left_out() -> None:
    frame = FRAME.assign(hours=FRAME["hours"] / 10)
    release = shown_through(CHANNELS["forced"], frame)
    shown = np.array(release.rows["y"].to_pylist(), dtype=object)  # type: ignore[attr-defined]
    answered = FRAME.index % 5 > 0
    alone = ask("y ~ hours + b", replace(release, rows=release.rows.filter(answered)))  # type: ignore[type-var, attr-defined]
    schema = Schema((Attribute("y", ("NA", "no", "yes"), missing="NA"),), keep=KEPT)
    matrix = np.eye(3)
    matrix[1:, 1:] = CHANNELS["forced"]
    mechanism = Mechanism(schema, (Block((0,), MatrixChannel.from_probabilities(matrix)),))
    table = frame.assign(y=np.where(answered, shown, None))
    whole = deniable.open(pa.Table.from_pandas(table), mechanism, randomized=True)
    (model,) = whole.model("y ~ hours + b", answered=True)
    assert (model.names, model.kind) == (alone.names, "logistic")
    np.testing.assert_allclose(model.coefficients, alone.coefficients, atol=1e-9)
    np.testing.assert_allclose(model.covariance, alone.covariance, rtol=1e-9)
    assert model.n_records == alone.n_records == answered.sum()
    assert "Only respondents with an answer to y." in model.summary()
    mixed = Mechanism(
        schema, (Block((0,), MatrixChannel.from_probabilities(0.7 * np.eye(3) + 0.1)),)
    )
    with pytest.raises(InputError, match="whether 'y' was answered is randomized, too"):
        deniable.open(pa.Table.from_pandas(table), mixed, randomized=True).model(
            "y ~ hours", answered=True
        )


def test_a_prior_is_used_and_named_where_it_is_asked_for() -> None:
    frame = FRAME.assign(hours=np.where(FRAME["y"] == "yes", 50.0, 20.0) + FRAME.index % 7)
    release = released(as_it_is(), pa.Table.from_pandas(frame, preserve_index=False))
    with pytest.raises(InputError, match=r"'(Intercept|hours)' in 'y ~ hours' is infinite"):
        ask("y ~ hours", release)
    model = ask("y ~ hours", release, prior=True)
    assert "weak prior" in model.caption()
    assert 0 < model.data_share[1] < 1
    assert 0 < model.coefficients[1] < 1


NIGERIA = Path(os.environ.get("NIGERIA", "nigeria.csv"))


@pytest.mark.skipif(not NIGERIA.exists(), reason="NIGERIA does not name nigeria.csv of R's rr")
def test_published_numbers_of_a_forced_response_are_repeated() -> None:
    # Blair, Imai and Zhou (2015), Design and analysis of the randomized response technique, as
    # printed by R's rr 1.4.2; its errors are those of the squares of the scores.
    kept = ("assets", "married", "age", "education", "female", "civic")
    schema = Schema((Attribute("contact", ("0", "1")),), keep=kept)
    law = MatrixChannel.from_probabilities(CHANNELS["forced"])
    release = deniable.open(NIGERIA, Mechanism(schema, (Block((0,), law),)), randomized=True)
    right = "assets + married + I(age/10) + I((age/10)**2) + education + female"
    (model,) = release.model(f"contact ~ {right}", errors="scores")
    assert model.n_records == 2423
    assert dict(model.selection.left_out)["contact"] == 14  # after gaps in the covariates
    printed = [-0.34017, 0.07896, -0.26743, -0.35283, 0.04099, -0.00691, -0.55439]
    errors = [0.50856, 0.04136, 0.25451, 0.26423, 0.02603, 0.04558, 0.16244]
    np.testing.assert_allclose(model.coefficients, printed, atol=5.1e-6)
    np.testing.assert_allclose(model.standard_errors, errors, atol=5.1e-6)
    (civic,) = release.model(f"civic ~ {right} + contact")
    assert civic.names[-1] == "contact[T.1]"
    assert civic.coefficients[-1] > 2 * civic.standard_errors[-1]
