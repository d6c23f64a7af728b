"""Expected variance of a design, and the least of any mechanism of its ε."""

import math
from typing import Any

from deniable.laws import MatrixChannel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import expected_variance
from deniable.proofs.problem import MAX_LEVEL
from deniable.statement.account import Design


def outlook_to_plain(design: Design) -> dict[str, Any]:
    """Return the expected variances per row, and their lower bound, as plain values.

    ``expected``: the mean variance of a cell of the protected attributes and of pairs of them, at
    the uniform truth, for one row drawn from a population (None if some cannot be estimated), and
    the number of forms. ``limit``: the least mean variance of shares under any mechanism with this
    ε of the record, and the design's as a multiple of it; None without such an ε.

    >>> from deniable import Schema, design
    >>> plain = outlook_to_plain(design(Schema.anonymous((2, 5)), epsilon=2, method="kronecker"))
    >>> plain["expected"]["form_count"], plain["limit"]["times"] > 1
    (None, True)
    """
    mechanism = design.mechanism
    expected = expected_variance(mechanism)
    forms = mechanism.forms
    limit = None
    for_means = any(a.number_grid is not None and a.answers for a in mechanism.schema.attributes)
    if 0 < mechanism.epsilon <= MAX_LEVEL and not for_means:
        from deniable.solvers.patterns.least_variance import least_share_variance

        n_categories = [mechanism.schema.n_categories[i] for i in mechanism.schema.protected]
        least = least_share_variance(n_categories, mechanism.epsilon)
        times = None if expected.shares is None else expected.shares / least
        limit = {"shares": least, "times": times}
    return {
        "expected": expected.to_plain() | {"form_count": forms and len(forms.forms)},
        "limit": limit,
    }


def best_variance(n_categories: int, epsilon: float) -> float:
    """Return the least mean variance of a share of one attribute under any mechanism with this ε in
    nats, for one row drawn from a population, at the uniform truth.

    Subset selection attains it (Ye and Barg, 2018): an answer is a set of s of the a categories,
    e^ε = M times as likely under each of them. With m = (sM + a − s)/a the mean square of an
    answer's likelihood over m, less 1, is χ² = s(a − s)(M − 1)²/(am)², and the variance of a cell
    (a − 1)²/(a²χ²).
    """
    a, fall = n_categories, math.exp(-epsilon)  # over M throughout, so that no e^ε overflows
    return min(
        ((a - 1) * (s + (a - s) * fall) / (a * (1 - fall))) ** 2 / (s * (a - s))
        for s in range(1, a)
    )


def matrices_to_plain(design: Design) -> list[dict[str, Any]]:
    """Return the error of a share under each response matrix next to the least at the same ε, as
    variances for one row; None for the least without an ε."""
    mechanism = design.mechanism
    rows = []
    for block in mechanism.blocks:
        if not isinstance(block.law, MatrixChannel):
            continue
        attribute = mechanism.schema.attributes[block.attributes[0]]
        if attribute.number_grid is not None and attribute.answers:
            continue  # made for the mean
        epsilon = mechanism.attribute_epsilon[block.attributes[0]]
        variance = expected_variance(Mechanism.of(block.law)).shares
        best = best_variance(attribute.n_categories, epsilon) if math.isfinite(epsilon) else None
        times = None if best is None or variance is None else variance / best
        rows.append({"name": attribute.name, "shares": variance, "best": best, "times": times})
    return rows
