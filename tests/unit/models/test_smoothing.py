"""The table of the all-pairs model beside the unbiased one."""

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.estimate.known import Margins
from deniable.estimate.source import open_release
from deniable.estimate.tabulate import Counts
from deniable.laws import PublishedForms
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.published import channel_of
from deniable.mechanism.strata import Strata
from deniable.models.smoothing import Smooth, Smoothed
from unit.models.cases import NAMES, SCHEMA, as_it_is, laws, people, released, truth

LAWS = laws()


def counted(mechanism: Mechanism, table: np.ndarray, n: float = 1e6) -> Smoothed:
    """The model of expected counts."""
    counts = np.round(n * channel_of(mechanism, NAMES).forward.apply(table))
    (found,) = Smooth(NAMES).answer(Counts.of(mechanism, counts))
    return found


def smoothed(release: object, **how: object) -> Smoothed:
    (found,) = Smooth(NAMES, **how).run(release)  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("law", LAWS)
def test_where_the_model_holds_it_is_the_truth_and_its_test_sees_nothing(law: str) -> None:
    found = counted(LAWS[law], truth())
    np.testing.assert_allclose(found.values, truth(), atol=1e-3)
    assert found.goodness_of_fit is not None
    assert found.goodness_of_fit.degrees_of_freedom == 2
    assert found.goodness_of_fit.p_value > 0.9
    assert found.unbiased is not None
    assert (found.standard_error < found.unbiased.standard_error).mean() > 0.9


def test_where_it_does_not_hold_its_test_says_so() -> None:
    # y depends on a and b together: parity.
    table = truth()
    table[1, :, 1], table[0, :, 1] = table[0, :, 1].copy(), table[1, :, 1].copy()
    table[:, 1] = table[::-1, 1]
    found = counted(LAWS["product"], table)
    assert found.goodness_of_fit is not None
    assert found.goodness_of_fit.p_value < 1e-6
    assert "disagrees with the model" in found.remarks()[0]


def test_the_test_of_all_pairs_is_the_score_test_by_brute_force() -> None:
    release = released(LAWS["product"], people(2000))
    found = smoothed(release)
    fit = found.fit
    pi = fit.probabilities.ravel()
    (observed,) = fit.likelihood.observed
    forward = np.stack(
        [observed.forward.apply(unit.reshape(found.values.shape)).ravel() for unit in np.eye(12)]
    ).T
    theta, counts = forward @ pi, observed.counts.ravel()
    # In the directions that the pairs leave, orthonormal contrasts of three.
    full = np.column_stack([np.ones(12), fit.design])
    left = np.linalg.svd(full.T)[2][10:].T
    change = forward @ (
        pi[:, None]
        * (np.column_stack([fit.design, left]) - pi @ np.column_stack([fit.design, left]))
    )
    information = counts.sum() * change.T @ (change / theta[:, None])
    score = change.T @ (counts / theta)
    inverse = np.linalg.inv(information[:9, :9])
    adjusted = score[9:] - information[9:, :9] @ inverse @ score[:9]
    variance = information[9:, 9:] - information[9:, :9] @ inverse @ information[:9, 9:]
    statistic = adjusted @ np.linalg.solve(variance, adjusted)
    assert found.goodness_of_fit is not None
    assert found.goodness_of_fit.statistic == pytest.approx(statistic, rel=1e-6)


@pytest.mark.slow
def test_rows_captions_and_plain_values() -> None:
    margins = Margins({("b",): {("f",): 0.5, ("m",): 0.5}})
    found = smoothed(released(LAWS["ramp"], people(2000)), known=margins, level=0.9)
    rows = found.table()
    numbers = ["estimate", "standard_error", "low", "high", "uncertain"]
    assert list(rows[0]) == [*NAMES, *numbers, "unbiased", "unbiased_standard_error"]
    assert sum(row["estimate"] for row in rows if row["b"] == "f") == pytest.approx(0.5, abs=1e-6)
    assert sum(row["unbiased"] for row in rows if row["b"] == "f") == pytest.approx(0.5, abs=1e-9)
    assert "known exactly: b" in found.caption()
    # Failed before: rounding of the margin's weight counted as degrees of freedom.
    assert found.goodness_of_fit is not None
    assert found.goodness_of_fit.degrees_of_freedom == 2
    assert found.table(0.99)[0]["low"] < rows[0]["low"] < rows[0]["estimate"] < rows[0]["high"]
    assert len(found.to_plain()["cells"]) == 12
    assert len(found.to_pandas()) == 12


@pytest.mark.slow
def test_pairs_are_enough_where_no_form_asks_all_three() -> None:
    pairs = [((i, j), np.array([[0.6, 0.1], [0.1, 0.2]])) for i, j in ((0, 1), (0, 2), (1, 2))]
    law = PublishedForms.from_probabilities((2, 3, 2), [0.4, 0.3, 0.3], pairs)
    found = smoothed(released(Mechanism.of(law, SCHEMA), people()))
    assert found.unbiased is None
    assert found.table()[0]["unbiased"] is None
    assert found.goodness_of_fit is None
    assert "to test the model" in found.remarks()[0]
    np.testing.assert_allclose(found.values, truth(), atol=6 * found.standard_error.max())
    without = PublishedForms.from_probabilities((2, 3, 2), [0.5, 0.5], pairs[:2])
    with pytest.raises(InputError, match="no form includes 'a', 'b' together"):
        smoothed(released(Mechanism.of(without, SCHEMA), people(200)))


@pytest.mark.slow
def test_what_cannot_be_smoothed_is_refused() -> None:
    release = released(LAWS["product"], people(200))
    with pytest.raises(InputError, match="three attributes or more"):
        Smooth(("y", "a")).run(release)
    with pytest.raises(InputError, match="put 'other' into the table"):
        smoothed(released(as_it_is(), people(200)), by=("other",))
    strata = Strata(dict.fromkeys("ABC", LAWS["product"]), "town")
    with pytest.raises(InputError, match="smooth within each \\(by 'town'\\)"):
        smoothed(open_release(release.rows, strata))
    assert len(Smooth(NAMES, by=("town",)).run(open_release(release.rows, strata))) == 3
    plain = Smooth(NAMES, by=("town",))
    assert len(plain.to_plain(plain.run(release))["groups"]) == 3
