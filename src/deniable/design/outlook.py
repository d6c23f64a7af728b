"""Expected variance of a design, and the least of any mechanism of its ε."""

from typing import Any

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
    if 0 < mechanism.epsilon <= MAX_LEVEL:
        from deniable.solvers.patterns.least_variance import least_share_variance

        n_categories = [mechanism.schema.n_categories[i] for i in mechanism.schema.protected]
        least = least_share_variance(n_categories, mechanism.epsilon)
        times = None if expected.shares is None else expected.shares / least
        limit = {"shares": least, "times": times}
    return {
        "expected": expected.to_plain() | {"form_count": forms and len(forms.forms)},
        "limit": limit,
    }
