"""Models and shares of those who answered: exact, by the expected counts of a known table."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import deniable
from deniable.errors import InputError
from deniable.estimate.comparing import Comparison
from deniable.estimate.covariance import Covariance
from deniable.estimate.known import Margins
from deniable.estimate.leverage import Leverage
from deniable.estimate.ordered import Mean, Quantile
from deniable.estimate.shares import Shares
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.models.cells import Axis
from deniable.models.query import ModelQuery
from deniable.schema import Attribute, Schema

Y = Attribute("y", ("no", "?", "yes"), missing="?")
X = Attribute("x", ("?", "a", "b", "c"), missing="?", ordered=True, scores=(1, 2, 4))
SCHEMA = Schema((Y, X), keep=("hours",))
LAWS = {
    "product": deniable.design(SCHEMA, attribute_epsilon=(1.5, 2.0), method="kronecker").mechanism,
    "balanced": deniable.design(SCHEMA, epsilon=3).mechanism,
    "forms": deniable.design(SCHEMA, epsilon=4, method="forms", pairs=0.9).mechanism,
}
every_law = pytest.mark.parametrize("law", LAWS)

ODDS = np.array([-0.7, 0.1, -1.3])
"""Of yes among those who answered both, by a, b, c."""


def truth() -> NDArray[np.float64]:
    """A distribution of y and x of which some answer neither, more of them in b."""
    table = np.zeros((3, 4))
    x = np.array([0.4, 0.25, 0.15])
    yes = 1 / (1 + np.exp(-ODDS))
    table[0, 1:], table[2, 1:] = x * (1 - yes), x * yes
    table[1] = 0.01, 0.02, 0.07, 0.01
    table[:, 0] = 0.03, 0.01, 0.05
    return np.asarray(table / table.sum())


def expected(law: Mechanism, names: tuple[str, ...] = ("y", "x"), n: float = 1e6) -> Counts:
    """The counts that n people with these true values have in expectation."""
    channel = channel_of(law, names)
    if isinstance(channel, PublishedChannel):
        forms = np.full(channel.n_outputs[0], 1 / channel.n_outputs[0])
        channel = channel.of_rows(n * forms)
    table = truth() if names == ("y", "x") else truth().T
    return Counts(((law, Tabulation(n * channel.forward.apply(table), None, int(n))),))


@every_law
def test_a_regression_is_that_of_those_who_answered(law: str) -> None:
    question = ModelQuery("y ~ x", answered=True, prior=False)
    axes = [Axis("y", ("no", "yes")), Axis("x", ("a", "b", "c"))]
    model = question.of_counts([expected(LAWS[law])], axes)
    np.testing.assert_allclose(model.coefficients, ODDS - [0, ODDS[0], ODDS[0]], atol=1e-5)
    assert model.names == ("Intercept", "x[T.b]", "x[T.c]")
    assert [test.kind for test in model.tests] == ["likelihood ratio"]
    assert {row["x"] for row in model.predict()} == {"a", "b", "c"}
    merged = question.of_counts([expected(LAWS[law])], [axes[0], axes[1].collapsed("a|b,c")])
    answered = truth()[[0, 2], 1:]
    few = np.stack([answered[:, 0], answered[:, 1:].sum(axis=1)])
    ratio = np.log(few[1, 1] / few[1, 0]) - np.log(few[0, 1] / few[0, 0])
    assert merged.coefficients[1] == pytest.approx(ratio, abs=1e-5)
    joint = ModelQuery("~ y*x", answered=True, prior=False).of_counts([expected(LAWS[law])], axes)
    assert joint.coefficients[-1] == pytest.approx(ODDS[2] - ODDS[0], abs=1e-5)


@every_law
def test_shares_and_means_are_those_of_whoever_answered(law: str) -> None:
    counts, table = expected(LAWS[law]), truth()
    both = table[[0, 2], 1:] / table[[0, 2], 1:].sum()
    (shares,) = Shares(("y", "x"), answered=True).answer(counts)
    np.testing.assert_allclose(shares.values, both, atol=1e-6)
    assert shares.categories == (("no", "yes"), ("a", "b", "c"))
    assert shares.interval_method == "normal"
    np.testing.assert_allclose(
        np.diag(shares.covariance()), shares.standard_error.ravel() ** 2, rtol=1e-6
    )
    (within,) = Shares(("y",), by=("x",), answered=True).answer(counts)
    np.testing.assert_allclose(within.values, both / both.sum(axis=0), atol=1e-6)
    turned = expected(LAWS[law], ("x", "y"))
    mean, *others = Mean(("x",), by=("y",), answered=True).answer(turned)
    assert [dict(each.group)["y"] for each in (mean, *others)] == ["no", "yes"]
    assert mean.estimate == pytest.approx((both[0] / both[0].sum()) @ [1, 2, 4], abs=1e-5)
    medians = Quantile(("x",), by=("y",), answered=True).answer(turned)
    assert [each.estimate for each in medians] == ["a", "b"]
    compared = Comparison(("x",), column="y", values=("no", "yes"), answered=True).answer(turned)
    alone = both / both.sum(axis=1, keepdims=True)
    assert [each.difference for each in compared] == pytest.approx(alone[0] - alone[1], abs=1e-5)


def test_a_covariance_is_that_of_those_who_answered_both() -> None:
    schema = Schema((Attribute("y", ("no", "?", "yes"), missing="?", scores=(0, 1)), X))
    law = deniable.design(schema, attribute_epsilon=(1.5, 2.0), method="kronecker").mechanism
    (found,) = Covariance(("y", "x"), answered=True).answer(expected(law))
    both = truth()[[0, 2], 1:] / truth()[[0, 2], 1:].sum()
    x, y = np.array([1, 2, 4]), np.array([0, 1])
    true = y @ both @ x - (y @ both.sum(axis=1)) * (both.sum(axis=0) @ x)
    assert found.estimate == pytest.approx(true, abs=1e-5)


@pytest.mark.slow
def test_errors_among_those_who_answered_are_those_of_repeated_randomization() -> None:
    law = LAWS["product"]
    channel, random = channel_of(law, ("y", "x")), np.random.default_rng(7)
    n, draws = 4000, 400
    chances = channel.forward.apply(truth())
    found = []
    for _ in range(draws):
        seen = random.multinomial(n, chances.ravel()).reshape(chances.shape)
        (shares,) = Shares(("y", "x"), answered=True, target="population").answer(
            Counts.of(law, seen)
        )
        found.append((shares.values.ravel(), shares.standard_error.ravel()))
    values, errors = np.array(found).swapaxes(0, 1)
    # The spread of 400 draws is known to 3.5 %.
    np.testing.assert_allclose(np.median(errors, axis=0), values.std(axis=0), rtol=0.2)


def test_where_everybody_answered_or_it_means_nothing_it_is_refused() -> None:
    table = {"a1": ["0", "1"] * 50, "a2": ["0", "1"] * 50}
    plan = deniable.design(deniable.Schema.anonymous((2, 2)), epsilon=3)
    release = deniable.open(pa.table(table), plan)
    for ask in (
        lambda: release.shares("a1", answered=True),
        lambda: release.model("a1 ~ a2", answered=True),
        lambda: release.independence("a1,a2", answered=True),
    ):
        with pytest.raises(InputError, match="declared missing category"):
            ask()
    with pytest.raises(InputError, match="`answered` is for shares"):
        Leverage(("a1",), answered=True)
    with pytest.raises(InputError, match="`known` margins are of all respondents"):
        Shares(("a1",), answered=True, known=Margins({}))
