"""Whose numbers stand for categories, and where there are none."""

from dataclasses import replace

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
    for values in (schemas.values, schemas.least, schemas.most):
        assert values is not None
        assert values.tolist() == [17, 44, 71, 0]
    assert schemas.counted.tolist() == [1, 1, 1, 0]
    edges = scores_of(BINNED)
    assert (edges.least.tolist(), edges.most.tolist()) == ([0, 30, 60, 0], [30, 60, 90, 0])
    assert edges.values is None
    assert scores_of(BINNED, "middle").most.tolist() == [15, 45, 75, 0]


def test_margins_widen_the_schemas_scores_up_to_the_edges_and_no_others() -> None:
    bins = (0, 30, 60, np.inf)
    scored = Attribute("age", bins=bins, missing="?", scores=(17, 44, 71), score_margins=(20, 5, 9))
    found = scores_of(scored)
    assert found.values is not None
    assert found.values.tolist() == [17, 44, 71, 0]
    assert (found.least.tolist(), found.most.tolist()) == ([0, 39, 62, 0], [30, 49, 80, 0])
    given = scores_of(scored, (1, 2, 3))
    assert given.least.tolist() == given.most.tolist() == [1, 2, 3, 0]
    assert single_scores(replace(scored, missing=None))[1].tolist() == [17, 44, 71]


def test_a_covariance_needs_one_number_for_everybody() -> None:
    source, values = single_scores(BINNED, (1, 2, 3, 4))
    assert (source, values.tolist()) == ("given", [1, 2, 3, 4])
    with pytest.raises(InputError, match="has bins and no scores"):
        single_scores(BINNED)
    with pytest.raises(InputError, match="missing values of 'age' have no score"):
        single_scores(SCORED)


def test_middles_are_for_bins_only() -> None:
    with pytest.raises(InputError, match="has no bins, so it has no middles"):
        scores_of(Attribute("sex", ("f", "m")), "middle")
