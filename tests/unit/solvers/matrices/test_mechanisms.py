"""Matrices read off weighted rows."""

import numpy as np
import pytest

from deniable.proofs.rows import RowKinds, average_limits, local_limits, row_kinds
from deniable.solvers.matrices import mechanisms
from unit.solvers.matrices.priors import within


def test_reducing_a_mechanism_conserves_what_it_must() -> None:
    generator = np.random.default_rng(4)
    conserved = generator.random((7, 40))
    weights = generator.random(40)
    keep, reduced = mechanisms._reduce(conserved, np.arange(40), weights)
    assert len(keep) <= 7
    assert (reduced > 0).all()
    assert np.allclose(conserved[:, keep] @ reduced, conserved @ weights, rtol=1e-10)


GROUPS = np.array([0, 0, 1, 1, 1, 1, 1, 2])
SHARES = np.array([0.2, 0.1, 0.15, 0.1, 0.08, 0.05, 0.02, 0.3])


@pytest.mark.parametrize("even", [False, True])
def test_drawn_rows_are_of_their_kind_and_name_categories_in_proportion(even: bool) -> None:
    kinds = row_kinds(average_limits(SHARES, 0.3, 0.4), np.bincount(GROUPS))
    copies = np.full(len(kinds), 400.0)
    shares = np.ones(8) if even else SHARES
    generator = np.random.default_rng(1)
    named = mechanisms._drawn(shares, GROUPS, kinds.sums, copies, generator)
    member = np.eye(3)[GROUPS]
    assert np.allclose(named @ member, np.repeat(kinds.sums, 400, axis=0))
    assert np.allclose(named**2 @ member, np.repeat(kinds.squares, 400, axis=0))
    for kind, sums in enumerate(kinds.sums):
        found = named[400 * kind : 400 * (kind + 1)].mean(axis=0)
        part = shares / np.bincount(GROUPS, shares)[GROUPS]
        if (np.ceil(sums)[GROUPS] * part).max() <= 1.0:
            assert np.abs(found - sums[GROUPS] * part).max() < 0.1


def test_no_category_is_named_more_often_than_always() -> None:
    for count in range(5):
        found = mechanisms._inclusion(np.array([0.9, 0.05, 0.03, 0.02]), count)
        assert found.sum() == pytest.approx(count)
        assert found.max() <= 1.0
    assert np.allclose(
        mechanisms._inclusion(np.array([4.0, 2.0, 1.0, 1.0]), 2), [1, 0.5, 0.25, 0.25]
    )


@pytest.mark.parametrize("local", [False, True])
def test_a_drawn_mechanism_keeps_the_limits(local: bool) -> None:
    """Of equal weights for the kinds of a size: the truth and pairs, or sets of one and two."""
    limits = local_limits(SHARES, 1.0) if local else average_limits(SHARES, 0.1)
    kinds = row_kinds(limits, np.bincount(GROUPS))
    size = kinds.sums.sum(axis=1)
    chosen = np.flatnonzero((size == 1) | (size == 2))
    kinds = RowKinds(kinds.sums[chosen], kinds.squares[chosen])
    matrix = mechanisms.drawn_mechanism(limits, GROUPS, kinds, np.full(len(chosen), 0.08))
    assert matrix is not None
    assert np.allclose(matrix.sum(axis=0), 1.0, atol=1e-14)
    assert local is False or within(matrix, limits)
