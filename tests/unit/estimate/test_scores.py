"""Whose numbers stand for categories, and where there are none."""

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.estimate.scores import scores_of, single_scores
from deniable.schema import Attribute

BINNED = Attribute("age", bins=(0, 30, 60, 90), missing="?")
SCORED = Attribute("age", bins=(0, 30, 60, np.inf), missing="?", scores=(17, 44, 71))


def test_given_scores_come_before_the_schemas_and_these_before_edges() -> None:
    assert scores_of(SCORED, (1, 2, 3, 4)).source == "given"
    schemas = scores_of(SCORED)
    assert schemas.source == "schema"
    assert schemas.least.tolist() == schemas.most.tolist() == [17, 44, 71, 0]
    assert schemas.counted.tolist() == [1, 1, 1, 0]
    edges = scores_of(BINNED)
    assert (edges.least.tolist(), edges.most.tolist()) == ([0, 30, 60, 0], [30, 60, 90, 0])
    assert scores_of(BINNED, "middle").least.tolist() == [15, 45, 75, 0]


def test_a_covariance_needs_one_number_for_everybody() -> None:
    assert single_scores(BINNED, (1, 2, 3, 4)).tolist() == [1, 2, 3, 4]
    with pytest.raises(InputError, match="has bins and no scores"):
        single_scores(BINNED)
    with pytest.raises(InputError, match="missing values of 'age' have no score"):
        single_scores(SCORED)


def test_middles_are_for_bins_only() -> None:
    with pytest.raises(InputError, match="has no bins, so it has no middles"):
        scores_of(Attribute("sex", ("f", "m")), "middle")
