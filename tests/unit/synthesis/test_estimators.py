"""Classifier and regressor: kinds of frames, both models, and scikit-learn's checks."""

import pickle
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import deniable
from deniable.errors import InputError
from unit.models.cases import SCHEMA, people

SCORED = deniable.Attribute("a", ("p", "q", "r"), scores=(0, 1, 5))


@cache
def plan() -> deniable.Design:
    attributes = tuple(SCORED if a.name == "a" else a for a in SCHEMA.attributes)
    return deniable.design(deniable.Schema(attributes, keep=SCHEMA.keep), epsilon=6)


@cache
def rows() -> pd.DataFrame:
    frame: pd.DataFrame = deniable.randomize(people(3000).to_pandas(), plan())
    return frame


def true() -> pd.DataFrame:
    frame: pd.DataFrame = people(500).to_pandas()
    return frame


def test_all_kinds_of_frames_are_the_same() -> None:
    frame, new = rows(), true()
    wanted = deniable.Classifier(plan(), "y").fit(frame).predict_proba(new)
    assert wanted.shape == (500, 2)
    others: list[Any] = ["a", "b"]
    for given, answers, asked in (
        (frame[others], frame["y"], new[others]),
        (pl.from_pandas(frame), None, pl.from_pandas(new)),
        (pl.from_pandas(frame[others]), frame["y"].to_list(), pl.from_pandas(new)),
        (frame[others].to_numpy(), frame["y"].to_numpy(), new[others].to_numpy()),
    ):
        found = deniable.Classifier(plan(), "y").fit(given, answers)
        np.testing.assert_array_equal(found.predict_proba(asked), wanted)
    assert found.classes_.tolist() == ["no", "yes"]
    assert found.feature_names_in_.tolist() == others
    assert found.predict(asked).tolist() == found.classes_[wanted.argmax(axis=1)].tolist()
    assert found.score(new[others], new["y"]) == (found.predict(new) == new["y"]).mean()
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.predict_proba(asked), wanted)
    np.testing.assert_array_equal(again.predict_proba(asked[::-1]), wanted[::-1])


def test_shares_are_those_of_the_truth() -> None:
    new = true()
    shares = deniable.Classifier(plan(), "y").fit(rows()).predict_proba(new)[:, 1]
    groups = people(100_000).to_pandas().groupby(["a", "b"])["y"]
    exact = groups.apply(lambda answers: (answers == "yes").mean())
    wanted = [exact[a, b] for a, b in zip(new["a"], new["b"], strict=True)]
    assert np.sqrt(np.mean((shares - wanted) ** 2)) < 0.08


def test_a_formula_is_a_model() -> None:
    (model,) = deniable.open(rows(), plan()).model("y ~ a + hours")
    found = deniable.Classifier(plan(), "y", "a + hours").fit(rows())
    np.testing.assert_allclose(found.predict_proba(true()), model.probabilities(true()))
    regressor = deniable.Regressor(plan(), "a", "y + b").fit(rows())
    (model,) = deniable.open(rows(), plan()).model("a ~ y + b")
    means = model.probabilities(true()) @ [0, 1, 5]
    np.testing.assert_allclose(regressor.predict(true()), means)


def test_means_are_of_the_scores() -> None:
    regressor = deniable.Regressor(plan(), "a").fit(rows())
    shares = deniable.Classifier(plan(), "a").fit(rows()).predict_proba(true())
    means = regressor.predict(true())
    np.testing.assert_allclose(means, shares @ [0, 1, 5])
    scores = true()["a"].map({"p": 0, "q": 1, "r": 5}).to_numpy()
    off = ((scores - means) ** 2).mean() / scores.var()
    assert regressor.score(true(), scores) == pytest.approx(1 - off)


def test_numbers_stay_numbers() -> None:
    schema = deniable.Schema.anonymous((2, 2))
    design = deniable.design(schema, epsilon=8)
    true = np.array([[0, 0], [1, 1]] * 200)
    rows = deniable.randomize(pd.DataFrame(true.astype(str), columns=["a1", "a2"]), design)
    found = deniable.Classifier(design, "a2").fit(rows[["a1"]].astype(int), rows["a2"].astype(int))
    assert found.predict(true[:2, :1]).tolist() == [0, 1]


def test_what_is_refused() -> None:
    frame = rows()
    for estimator, said in (
        (deniable.Classifier(), "needs the plan"),
        (deniable.Classifier(plan(), "town"), "'town' is no randomized attribute"),
        (deniable.Regressor(plan(), "y"), "'y' has no scores"),
    ):
        with pytest.raises(InputError, match=said):
            estimator.fit(frame)
    with pytest.raises(InputError, match="columns a, b"):
        deniable.Classifier(plan(), "y").fit(np.zeros((3, 3)), np.zeros(3))
    with pytest.raises(InputError, match="for 3000 rows"):
        deniable.Classifier(plan(), "y").fit(frame[["a", "b"]], ["no"])
    with pytest.raises(InputError, match="column 'y' already"):
        deniable.Classifier(plan(), "y").fit(frame, frame["y"])
    with pytest.raises(InputError, match="not 'level'"):
        deniable.Classifier().set_params(level=1)
    with pytest.raises(ValueError, match="not fitted"):
        deniable.Classifier(plan(), "y").predict(frame)


UNFITTED = {
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
}
"""Checks without rows; the others fit rows that no plan has randomized."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [deniable.Classifier, deniable.Regressor])
def test_checks_of_scikit_learn(estimator: Any) -> None:
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    results = checks.check_estimator(estimator(), on_fail=None, on_skip=None)
    passed = {each["check_name"] for each in results if each["status"] == "passed"}
    assert passed >= UNFITTED


@pytest.mark.slow
def test_cross_validation_and_grids() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    frame = rows()
    grid = selection.GridSearchCV(
        deniable.Classifier(plan(), "y"), {"formula": ["a", "a + b"]}, cv=2, refit=True
    )
    grid.fit(frame[["a", "b"]], frame["y"])
    assert 0.4 < grid.best_score_ <= 1
    scores = selection.cross_val_score(
        deniable.Classifier(plan(), "y"), frame[["a", "b"]], frame["y"], cv=2, scoring="roc_auc"
    )
    assert (scores > 0.5).all()
