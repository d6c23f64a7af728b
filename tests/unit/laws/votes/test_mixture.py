"""Every answer of a mixture of votes against the enumerated law."""

from typing import Any

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws.votes.mixture import VoteMixture
from unit.laws.votes import whole_law as oracle


def test_another_height_keeps_the_proportions_of_the_votes() -> None:
    law = oracle.random_mixture(4)
    moved = law.at_height(1.25)
    assert moved.ideal_epsilon == pytest.approx(1.25, rel=1e-14)
    np.testing.assert_allclose(
        moved.multipliers / law.multipliers, moved.multipliers[0] / law.multipliers[0]
    )
    fresh = VoteMixture(
        law.n_categories, law.votes, law.thresholds, moved.multipliers, law.retention
    )
    assert moved == fresh
    assert moved != law
    np.testing.assert_allclose(moved.moments().keep, fresh.moments().keep, rtol=1e-13)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("n_categories", (1, 3), "category counts"),
        ("votes", [[1, -1]], "weights >= 0"),
        ("votes", [[1]], "k weights"),
        ("votes", [[2**53, 1]], "at most 2"),
        ("votes", [[0, 0]], "threshold"),
        ("thresholds", [0], "threshold"),
        ("thresholds", [3], "threshold"),
        ("thresholds", [1, 1], "one threshold"),
        ("multipliers", [0.0], "at least"),
        ("multipliers", [np.inf], "at least"),
        ("multipliers", [np.nan], "at least"),
        ("multipliers", [], "one threshold"),
        ("retention", [0.0, 1.0], "retention"),
        ("retention", [1.0], "retention"),
    ],
)
def test_an_impossible_mixture_is_refused(field: str, value: Any, sentence: str) -> None:
    numbers: dict[str, Any] = {
        "n_categories": (3, 3),
        "votes": np.array([[1, 1]]),
        "thresholds": np.array([2]),
        "multipliers": np.array([1.0]),
        "retention": np.ones(2),
    }
    VoteMixture(**numbers)
    with pytest.raises(InputError, match=sentence):
        VoteMixture(**(numbers | {field: np.array(value) if isinstance(value, list) else value}))


def test_more_attributes_than_can_be_enumerated_are_refused() -> None:
    k = 21
    with pytest.raises(InputError, match="1 to 20 attributes"):
        VoteMixture(
            (2,) * k, np.ones((1, k), dtype=np.int64), np.array([1]), np.ones(1), np.ones(k)
        )
