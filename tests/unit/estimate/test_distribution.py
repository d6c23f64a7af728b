"""Distribution functions of numbers: smoothed EM, the errors of its fixed point, and bounds."""

from collections.abc import Sequence

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.estimate.distribution import Distribution, EstimatedDistribution
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws import ProductLaw
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.schema import Attribute, Schema
from unit.dense import dense_channel

N = 5_000


def mechanism_of(points: int, level: float = 3.0, missing: str | None = None) -> Mechanism:
    attributes = (
        Attribute("x", range=(0, 8), grid=points, missing=missing),
        Attribute("sex", ("f", "m")),
    )
    law = ProductLaw.from_levels(tuple(a.n_categories for a in attributes), (level, 2.0))
    return Mechanism(Schema(attributes), (Block((0, 1), law),))


def hats(points: int, xs: np.ndarray) -> np.ndarray:
    return np.asarray(
        np.maximum(0.0, 1 - np.abs(xs[:, None] * (points - 1) / 8 - np.arange(points)))
    )


def released(mechanism: Mechanism, true: np.ndarray) -> np.ndarray:
    """Expected counts of N rows from shares of the rounded rows."""
    rows = dense_channel(mechanism, ("x", "sex")) @ true.ravel()
    return np.asarray(N * rows).reshape(true.shape)


def found(
    mechanism: Mechanism, counts: np.ndarray, *, by: str = "", at: Sequence[float], **options: str
) -> list[EstimatedDistribution]:
    counts = counts if by else counts.sum(axis=1)
    counted = Counts.of(mechanism, Tabulation(counts, None, N))
    query = Distribution("x", by=by, at=at, **options)  # type: ignore[arg-type]
    return query.answer(counted)


def smooth(xs: np.ndarray) -> np.ndarray:
    """A share for every value, larger in the middle."""
    weights = np.exp(-((xs - 3.5) ** 2) / 4)
    return np.asarray(weights / weights.sum())


XS = (np.arange(4_000) + 0.5) / 500


@pytest.mark.parametrize("points", [5, pytest.param(17, marks=pytest.mark.slow)])
def test_a_smooth_distribution_is_recovered_from_its_expected_counts(points: int) -> None:
    """Also by sex, and with a missing category; interpolated hat functions are far off."""
    mechanism = mechanism_of(points, missing="?")
    shares = [smooth(XS), smooth(np.minimum(XS + 1, 8))]
    true = np.zeros((points + 1, 2))
    for sex in range(2):
        true[:points, sex] = 0.45 * hats(points, XS).T @ shares[sex]
        true[points, sex] = 0.05
    at = [1.0, 3.0, 4.3, 6.0]
    answers = found(mechanism, released(mechanism, true), by="sex", at=at)
    for answer, share in zip(answers, shares, strict=True):
        exact = [share[value >= XS].sum() for value in at]
        assert [s.estimate for s in answer.shares] == pytest.approx(exact, abs=0.012)
        assert answer.leaves_out
        assert not answer.few
    crude = np.cumsum(hats(points, XS).T @ shares[0])[:-1]
    knots = np.arange(points - 1) * 8 / (points - 1)
    away = max(abs(c - shares[0][k >= XS].sum()) for c, k in zip(crude, knots, strict=True))
    assert away > 0.02


@pytest.mark.parametrize("by", ["", pytest.param("sex", marks=pytest.mark.slow)])
def test_the_error_is_the_change_of_the_fixed_point_with_the_counts(by: str) -> None:
    """Of even shares, whose released shares are the expected ones of the fixed point."""
    mechanism, at = mechanism_of(5), [2.0, 3.3, 7.0]
    true = np.stack([hats(5, XS).mean(axis=0)] * 2, axis=1) * [0.4, 0.6]
    counts = released(mechanism, true)
    answers = found(mechanism, counts, by=by, at=at, target="population")
    shape = counts.shape if by else counts.shape[:1]
    influence = np.zeros((len(answers), len(at), *shape))
    step = 1e-4
    for cell in np.ndindex(*shape):
        ends = []
        for sign in (1, -1):
            moved = counts.copy()
            moved[cell if by else (cell[0], 0)] += sign * step * N
            ends.append(found(mechanism, moved, by=by, at=at))
        for group, pair in enumerate(zip(*ends, strict=True)):
            up, down = ([s.estimate for s in one.shares] for one in pair)
            influence[(group, slice(None), *cell)] = np.subtract(up, down) / (2 * step)
    theta = (counts if by else counts.sum(axis=1)) / N
    flat = influence.reshape(len(answers), len(at), -1)
    variance = flat**2 @ theta.ravel() - (flat @ theta.ravel()) ** 2
    stated = [[s.standard_error for s in answer.shares] for answer in answers]
    assert np.array(stated) == pytest.approx(np.sqrt(variance / N), rel=1e-3)
    # Given the rows, the error is that of the randomization and a bound of the rounding's.
    of_rows = found(mechanism, counts, by=by, at=at)
    for wide, narrow in zip(answers, of_rows, strict=True):
        for one, other in zip(wide.shares, narrow.shares, strict=True):
            assert one.estimate == other.estimate
            assert 0 < other.standard_error < 1.01 * one.standard_error


def test_the_error_does_not_vanish_where_chance_puts_shares_at_zero() -> None:
    mechanism, at = mechanism_of(9), [6.0, 7.0]
    low = np.exp(-((XS - 2) ** 2) / 1.5)
    true = np.multiply.outer(hats(9, XS).T @ low / low.sum(), [0.4, 0.6])
    expected = released(mechanism, true)
    fewer = expected.copy()
    fewer[6:] *= 0.85  # two standard errors of each count
    fewer[1] += (expected - fewer).sum(axis=0)
    (usual,), (one,) = (found(mechanism, c, at=at, target="population") for c in (expected, fewer))
    for share, expected_share in zip(one.shares, usual.shares, strict=True):
        assert share.estimate > 0.999
        assert share.standard_error > expected_share.standard_error


def test_the_limits_hold_for_every_distribution() -> None:
    mechanism = mechanism_of(5, level=30.0)
    random = np.random.default_rng(3)
    at = np.linspace(0, 8, 17)
    for _ in range(4):
        xs = random.choice(np.linspace(0, 8, 81), 4, replace=False)
        true = np.outer(hats(5, xs).mean(axis=0), [0.5, 0.5])
        (answer,) = found(mechanism, released(mechanism, true), at=at.tolist())
        for value, least, most in zip(at, answer.least, answer.most, strict=True):
            exact = np.mean(xs <= value)
            assert least.estimate - 1e-6 <= exact <= most.estimate + 1e-6


@pytest.mark.parametrize(("points", "uncertain"), [(3, True), (17, False)])
def test_where_the_smoothing_decides_a_share_is_uncertain(points: int, uncertain: bool) -> None:
    mechanism = mechanism_of(points, level=4.0)
    true = np.outer(smooth(XS) @ hats(points, XS), [0.5, 0.5])
    (answer,) = found(mechanism, released(mechanism, true), at=[0.0, 3.0, 8.0])
    assert [row["uncertain"] for row in answer.table()] == [False, uncertain, False]


def test_strata_are_estimated_by_their_own_laws() -> None:
    """A second stratum with another law has other counts of the same people."""
    first, second = mechanism_of(5), mechanism_of(5, level=1.5)
    true = np.stack([hats(5, XS).T @ smooth(XS)] * 2, axis=1) / 2
    parts = tuple(
        (m, Tabulation(released(m, true).sum(axis=1) * size, None, round(N * size)))
        for m, size in ((first, 1.0), (second, 3.0))
    )
    (both,) = Distribution("x", at=[3.0]).answer(Counts(parts))
    alone = [Distribution("x", at=[3.0]).answer(Counts((part,)))[0].shares[0] for part in parts]
    assert both.shares[0].estimate == pytest.approx(
        0.25 * alone[0].estimate + 0.75 * alone[1].estimate
    )
    assert both.shares[0].standard_error == pytest.approx(
        np.hypot(0.25 * alone[0].standard_error, 0.75 * alone[1].standard_error)
    )


def test_what_is_no_number_or_outside_its_range_is_refused() -> None:
    mechanism = mechanism_of(3)
    counts = np.full((3, 2), 100.0)
    with pytest.raises(InputError, match=r"`at` takes numbers from 0 to 8"):
        found(mechanism, counts, at=[9.0])
    with pytest.raises(InputError, match="'sex' has no range"):
        Distribution("sex").answer(Counts.of(mechanism, np.array([3, 4])))
    with pytest.raises(InputError, match="of one number"):
        Distribution("x,sex")
