"""Clusters and strata of a sample."""

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.models.survey import Survey


def test_clusters_of_one_code_in_two_strata_are_two() -> None:
    survey = Survey.of(np.array([0, 0, 1, 0, 2, 2]), np.array([0, 0, 0, 1, 1, 1]), 6)
    assert survey is not None
    assert survey.cluster.tolist() == [0, 0, 1, 2, 3, 3]
    assert survey.stratum.tolist() == [0, 0, 1, 1]
    assert Survey.of(None, None, 6) is None


def test_without_clusters_every_row_is_one() -> None:
    survey = Survey.of(None, np.array([1, 0, 1, 0]), 4)
    assert survey is not None
    assert survey.stratum[survey.cluster].tolist() == [1, 0, 1, 0]
    rows = np.array([[1.0], [2.0], [3.0], [5.0]])
    sums = np.zeros((4, 1))
    sums[survey.cluster] = rows
    assert survey.squares(sums) == pytest.approx(
        2 * np.var([1, 3], ddof=1) + 2 * np.var([2, 5], ddof=1)
    )


def test_a_stratum_of_one_cluster_is_refused() -> None:
    with pytest.raises(InputError, match="has one cluster"):
        Survey(np.arange(3), np.array([0, 0, 1])).squares(np.zeros((3, 2)))
