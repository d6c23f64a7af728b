"""What a fitted model says: tables, odds ratios, predictions, tests, text and picture."""

import math
from dataclasses import replace

import numpy as np
import pandas
import pyarrow as pa
import pytest
from scipy.stats import chi2, norm

from deniable.errors import InputError
from deniable.models.hypotheses import Test
from deniable.models.model import UNDETERMINED, Model
from deniable.models.query import ModelQuery
from unit.models.cases import as_it_is, laws, people, released

PLAIN = released(as_it_is(), people())
NOISY = released(laws()["forms"], people())


def ask(formula: str, release: object = NOISY, **how: object) -> Model:
    (model,) = ModelQuery(formula, **how).run(release)  # type: ignore[arg-type]
    return model


LOGISTIC, LOG_LINEAR = ask("y ~ a + b"), ask("~ y*a + b")
LINEAR = ask("hours ~ a + b", PLAIN)


def test_a_row_has_what_broom_and_statsmodels_users_know() -> None:
    row = LOGISTIC.table()[1]
    assert list(row)[:7] == ["term", "estimate", "std_error", "statistic", "p_value", "low", "high"]
    assert row["statistic"] == pytest.approx(row["estimate"] / row["std_error"])
    assert row["p_value"] == pytest.approx(2 * norm.sf(abs(row["statistic"])))
    assert row["high"] - row["low"] == pytest.approx(2 * norm.ppf(0.975) * row["std_error"])
    wide, narrow = LOGISTIC.table(0.99)[1], ask("y ~ a + b", level=0.5).table()[1]
    assert wide["low"] < row["low"] < narrow["low"]
    assert list(LOGISTIC.tidy()["term"]) == list(LOGISTIC.names)


def test_odds_ratios_are_the_exponentials_without_intercepts() -> None:
    rows = LOGISTIC.odds_ratios()
    assert [row["term"] for row in rows] == ["a[T.q]", "a[T.r]", "b[T.m]"]
    assert rows[0]["odds_ratio"] == pytest.approx(math.exp(LOGISTIC.coefficients[1]))
    with pytest.raises(InputError, match="a linear model has no odds ratios"):
        LINEAR.odds_ratios()


def test_predictions_have_the_delta_methods_errors() -> None:
    rows = LOGISTIC.predict()
    assert len(rows) == 12
    some = next(r for r in rows if (r["y"], r["a"], r["b"]) == ("yes", "q", "m"))
    x = np.array([1.0, 1.0, 0.0, 1.0])
    odds, error = x @ LOGISTIC.coefficients, math.sqrt(x @ LOGISTIC.covariance @ x)
    share = 1 / (1 + math.exp(-odds))
    assert some["estimate"] == pytest.approx(share)
    assert some["std_error"] == pytest.approx(error * share * (1 - share))
    assert some["low"] == pytest.approx(1 / (1 + math.exp(-(odds - norm.ppf(0.975) * error))))
    cells = LOG_LINEAR.predict()
    assert sum(row["estimate"] for row in cells) == pytest.approx(1)
    assert LOG_LINEAR.fit is not None
    errors = LOG_LINEAR.fit.standard_errors_of_cells().ravel()
    np.testing.assert_allclose([row["std_error"] for row in cells], errors, rtol=1e-6)
    means = LINEAR.predict()
    assert len(means) == 6
    assert means[0]["estimate"] == pytest.approx(LINEAR.coefficients[0])
    first = LINEAR.table()[0]  # the reference of both
    assert (means[0]["low"], means[0]["high"]) == pytest.approx((first["low"], first["high"]))
    many = replace(LINEAR, design=np.zeros((0, 4)))
    assert many.to_plain()["predictions"] == []
    with pytest.raises(InputError, match="too many combinations"):
        many.predict()


@pytest.mark.parametrize("model", [LOGISTIC, LINEAR, ask("a ~ b", prior=False)])
def test_predictions_of_rows_are_those_of_their_combinations(model: Model) -> None:
    rows = {"b": ["m", "f", "m"], "a": ["q", "r", "q"], "more": [1, 2, 3]}
    found, listed = model.predict(pa.table(rows), level=0.9), model.predict(level=0.9)
    assert [row["row"] for row in found] == sorted([0, 1, 2] * len(model.answers))
    for row in found:
        named = {name: values[row["row"]] for name, values in rows.items()} | row
        (same,) = (
            other for other in listed if all(named[n] == other[n] for n in other if n in "yab")
        )
        for number in ("estimate", "std_error", "low", "high"):
            assert row[number] == pytest.approx(same[number], rel=1e-9)
    if model is not LINEAR:
        shares = model.probabilities(pandas.DataFrame(rows))
        assert shares.ravel().tolist() == [row["estimate"] for row in found]
        with pytest.raises(InputError, match="'b'"):
            model.probabilities(pa.table({"a": ["p"]}))


def test_rows_that_no_model_can_predict_are_refused() -> None:
    with pytest.raises(InputError, match="a linear model has no probabilities"):
        LINEAR.probabilities(pa.table({"a": ["p"], "b": ["f"]}))
    with pytest.raises(InputError, match="a log-linear model has no response"):
        LOG_LINEAR.predict(pa.table({"y": ["no"], "a": ["p"], "b": ["f"]}))
    with pytest.raises(InputError, match="has no covariates"):
        ask("y ~ 1").predict(pa.table({"a": ["p"]}))
    by_town = ask("hours ~ town + a", PLAIN)
    with pytest.raises(InputError, match=r"data row 2, column 'town': the model was fitted to no"):
        by_town.predict(pa.table({"town": ["A", "Z"], "a": ["p", "p"]}))


def test_what_the_prior_knows_best_is_not_said() -> None:
    share = LOGISTIC.data_share.copy()
    share[1] = 0.4
    model = replace(LOGISTIC, data_share=share)
    assert model.table()[1]["estimate"] is None
    assert model.odds_ratios()[0]["odds_ratio"] is None
    assert model.odds_ratios()[0]["remark"] == UNDETERMINED
    assert any(remark.startswith(UNDETERMINED) for remark in model.remarks())


def test_tests_name_their_kind_and_large_models_have_none() -> None:
    test = Test("a", 3.0, 2, "Wald")
    assert test.p_value == pytest.approx(chi2.sf(3.0, 2))
    assert [t.of for t in LINEAR.tests] == ["a", "b"]
    assert LINEAR.deviance is None
    assert LINEAR.goodness_of_fit is None
    assert LOGISTIC.fit is not None
    large = replace(LOGISTIC, fit=replace(LOGISTIC.fit, design=np.broadcast_to(0.0, (200_000, 10))))
    assert large.tests == ()
    assert large.goodness_of_fit is None
    assert large.deviance is None


def test_all_of_it_as_text_as_plain_values_and_as_a_picture() -> None:
    text = ask("y ~ a + b", against="y ~ a").summary()
    for part in (
        "Logistic model y ~ a + b: 3,000 rows",
        "a[T.q]",
        "test without a",
        "against y ~ a",
    ):
        assert part in text
    plain = LOGISTIC.to_plain()
    assert plain["prior"] == {"main": 3.0, "association": 2.5}
    assert len(plain["coefficients"]) == len(plain["covariance"]) == 4
    assert plain["deviance"] >= 0
    assert LOGISTIC.plot().axes[0].get_xscale() == "log"
    assert LINEAR.plot().axes[0].get_xlabel() == "coefficient"
    assert "no prior" in ask("y ~ a", prior=False).caption()
    nothing = replace(LOGISTIC, data_share=np.zeros(4))
    with pytest.raises(InputError, match="no coefficient to plot"):
        nothing.plot()
    assert "<table" in LOGISTIC._repr_html_()
    assert len(LOGISTIC.to_pandas()) == 4
