"""Classifier and regressor with the protocol of scikit-learn, which need not be installed."""

import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable._checks import check_type
from deniable.errors import InputError
from deniable.estimate.scores import scores_of
from deniable.models.model import Model
from deniable.opened import OpenedRelease, Plan, mechanism_of
from deniable.opened import open as open_release
from deniable.randomness import SeededRandomness
from deniable.synthesis.outcome import Outcome
from deniable.synthesis.rows import ReleasedRows
from deniable.synthesis.tree import TreeModel
from deniable.tables import open_table
from deniable.tables.frames import named_frame

_SEED = 1
"""Seed of the sampled rows of a fit, so that equal rows give equal fits; it protects no one."""

_Self = TypeVar("_Self", bound="_Estimator")


class _Estimator(ABC):
    """Fit, parameters and tags of both estimators."""

    _kind: ClassVar[Literal["classifier", "regressor"]]

    def __init__(
        self, plan: Plan | None = None, response: str | None = None, formula: str | None = None
    ) -> None:
        self.plan = plan
        self.response = response
        self.formula = formula

    @classmethod
    def _names(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the parameters by name; ``deep`` is of scikit-learn's protocol."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self: _Self, **parameters: Any) -> _Self:
        """Set parameters and return the estimator."""
        for name, value in parameters.items():
            if name not in self._names():
                raise InputError(f"the parameters are {', '.join(self._names())}, not '{name}'")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        given = self.get_params().items()
        shown = (f"{k}={v!r}" for k, v in given if v is not None and k != "plan")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        of_classes = self._kind == "classifier"
        return Tags(
            estimator_type=self._kind,
            target_tags=TargetTags(required=False),
            classifier_tags=ClassifierTags() if of_classes else None,
            regressor_tags=None if of_classes else RegressorTags(),
            input_tags=InputTags(two_d_array=True, categorical=True, string=True),
            non_deterministic=False,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "feature_names_in_")

    def fit(self: _Self, X: Any, y: Any = None) -> _Self:
        """Fit the model to randomized rows.

        Args:
            X: randomized rows: a dataframe, or an array whose columns are those of the schema
                without the response, randomized ones first.
            y: randomized response; by default X has it as a column.

        Returns:
            The estimator.
        """
        if self.plan is None or self.response is None:
            raise InputError("the estimator needs the plan that randomized the rows and a response")
        check_type("response", self.response, str)
        check_type("formula", self.formula, str | None)
        schema = mechanism_of(self.plan).schema
        randomized = [schema.names[place] for place in schema.protected]
        kept = [name for name in schema.keep if self.formula is not None]
        if self.response not in randomized:
            raise InputError(
                f"the response '{self.response}' is no randomized attribute of the plan"
            )
        others = [name for name in (*randomized, *kept) if name != self.response]
        frame = named_frame(X, others, None if y is None else (self.response, y))
        release = open_release(frame, self.plan, randomized=True)
        attributes = {a.name: a for a in schema.attributes}
        self._attribute = attributes[self.response]
        self._covariates = [attributes[name] for name in others if name in attributes]
        if self.formula is not None:
            (model,) = release.model(f"{self.response} ~ {self.formula}")
            self._fit: Model | tuple[Outcome, tuple[int, ...]] = model
        else:
            self._fit = _regression(release, tuple(randomized), self.response)
        self.feature_names_in_ = np.array(others, dtype=object)
        self.n_features_in_ = len(others)
        self._prepare(y)
        return self

    @abstractmethod
    def _prepare(self, y: Any) -> None:
        """Set the attributes of one kind of estimator after a fit."""

    def _shares(self, X: Any) -> NDArray[np.float64]:
        """Return the predicted shares of the response's categories, shape (rows, categories)."""
        if not self.__sklearn_is_fitted__():
            raise _not_fitted(f"this {type(self).__name__} is not fitted; call fit first")
        frame = named_frame(X, list(self.feature_names_in_))
        if isinstance(self._fit, Model):
            return self._fit.probabilities(frame)
        regression, regressors = self._fit
        chosen = [self._covariates[place] for place in regressors]
        with open_table(frame, chosen, other_columns="drop") as reader:
            batches = [np.array(batch.codes, dtype=np.int64) for batch in reader]
        return regression.shares(np.concatenate(batches, axis=1))


class Classifier(_Estimator):
    """Predictor of a randomized response's category from true covariates, fitted to randomized
    rows; it has the protocol of scikit-learn's classifiers.

    Without a formula the response depends on every other randomized attribute, by the regression
    of :func:`deniable.synthesize` with ``about``; with one it is that of
    :meth:`deniable.OpenedRelease.model`.

    Args:
        plan: design that randomized the rows, or the file of it.
        response: name of the response.
        formula: right side of a formula such as ``age + education``, also with kept columns.

    Raises:
        InputError: from :meth:`fit` and the predictions, if rows do not fit the plan.

    Examples:
        >>> import deniable, pandas
        >>> smokes = deniable.Attribute("smokes", ("0", "1"))
        >>> schema = deniable.Schema((smokes, deniable.Attribute("age", ("0", "1", "2"))))
        >>> plan = deniable.design(schema, epsilon=8)
        >>> rows = pandas.DataFrame({"age": ["0", "1", "2", "2"] * 500})
        >>> rows["smokes"] = (rows["age"] == "2").astype(int).astype(str)
        >>> classifier = deniable.Classifier(plan, "smokes")
        >>> classifier.fit(deniable.randomize(rows, plan)).predict(rows[:3]).tolist()
        ['0', '0', '1']
        >>> classifier.predict_proba(rows[:3]).shape, classifier.score(rows, rows["smokes"])
        ((3, 2), 1.0)
        >>> classifier.set_params(response="age").get_params()["response"]
        'age'
    """

    _kind = "classifier"

    def _prepare(self, y: Any) -> None:
        categories = np.array(self._attribute.categories)
        if isinstance(self._fit, Model):
            categories = np.array(self._fit.answers)
        given = np.asarray(y) if y is not None else categories
        # Numbers, if the given responses are.
        self.classes_ = categories.astype(given.dtype) if given.dtype.kind in "iuf" else categories

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the predicted share of every category (``classes_``), shape (rows, categories), of
        rows with true covariates."""
        return self._shares(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest category of rows with true covariates, shape (rows,)."""
        shares = self._shares(X)
        return np.asarray(self.classes_[shares.argmax(axis=1)])

    def score(self, X: Any, y: Any) -> float:
        """Return the fraction of true responses that are predicted."""
        return float(np.mean(self.predict(X) == np.asarray(y)))


class Regressor(_Estimator):
    """Predictor of a response's mean score from true covariates, fitted to randomized rows; it has
    the protocol of scikit-learn's regressors.

    Scores are those of the attribute, or the middles of its bins; missing values are left out.

    Args:
        plan: design that randomized the rows, or the file of it.
        response: name of the response.
        formula: right side of a formula such as ``age + education``, also with kept columns.

    Raises:
        InputError: from :meth:`fit` and the predictions, if rows do not fit the plan.

    Examples:
        >>> import deniable, numpy, pandas
        >>> count = deniable.Attribute("children", ("0", "1", "2"), scores=(0, 1, 2))
        >>> schema = deniable.Schema((deniable.Attribute("sex", ("0", "1")), count))
        >>> plan = deniable.design(schema, epsilon=8)
        >>> sex = numpy.array(["0", "1"] * 1000)
        >>> children = numpy.where(sex == "1", "2", "0")
        >>> rows = deniable.randomize(pandas.DataFrame({"sex": sex, "children": children}), plan)
        >>> regressor = deniable.Regressor(plan, "children").fit(rows)
        >>> regressor.predict(numpy.array([["0"], ["1"]])).round(1).tolist()
        [0.0, 2.0]
        >>> regressor.score(sex[:, None], children.astype(float)) > 0.9
        True
    """

    _kind = "regressor"

    def _prepare(self, y: Any) -> None:  # noqa: ARG002 - classes are of a classifier
        scores = scores_of(self._attribute)
        self._scores = scores if scores.values is not None else scores_of(self._attribute, "middle")

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predicted means of rows with true covariates, shape (rows,)."""
        shares = self._shares(X)
        counted = shares * self._scores.counted
        assert self._scores.values is not None
        return np.asarray(counted @ self._scores.values / counted.sum(axis=1))

    def score(self, X: Any, y: Any) -> float:
        """Return R², the fraction of the variance of true responses that is predicted."""
        true = np.asarray(y, dtype=np.float64)
        off = ((true - self.predict(X)) ** 2).sum()
        return float(1 - off / ((true - true.mean()) ** 2).sum())


def _regression(
    release: OpenedRelease, names: tuple[str, ...], response: str
) -> tuple[Outcome, tuple[int, ...]]:
    """Return the regression of a tree's outcome, and the places of the regressors among the other
    attributes."""
    rows = ReleasedRows.read(release.source, names, None)
    model = TreeModel.fitted(rows, names, response)
    at = names.index(response)
    places = tuple(place - (place > at) for place in model.regressors)
    return model.regression(SeededRandomness(_SEED)), places


def _not_fitted(sentence: str) -> Exception:
    """Return the exception of scikit-learn where it is installed."""
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return InputError(sentence)
    error: Exception = NotFittedError(sentence)
    return error
