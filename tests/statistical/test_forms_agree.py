"""Every form's rows estimate the same shares; rows with another form's number do not.

Each form alone gives an unbiased estimate of a share, with a bounded contribution of every row. The
rows of a form are a sample of all rows, drawn without replacement, so that Hoeffding's inequality
(1963, Theorem 4) says how far two forms may be apart.
"""

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from deniable.laws import PublishedForms
from deniable.randomness import SystemRandomness
from statistical.budget import BUDGET, SHARE

ROWS = 300_000
TABLES = [
    ((0,), np.array([0.9, 0.1])),
    ((0,), np.array([0.55, 0.45])),
    ((0, 1), np.array([[0.5, 0.2], [0.1, 0.2]])),
]
LAW = PublishedForms.from_probabilities((3, 2), [0.25, 0.35, 0.4], TABLES)


def released(share: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the forms of rows and whether they answer category 0, of which so many are."""
    truth = (np.arange(ROWS) >= share * ROWS).astype(np.uint8)
    drawn = LAW.sampler().draw([truth, np.zeros(ROWS, dtype=np.uint8)], SystemRandomness())
    return drawn.form.astype(np.int64), (drawn.codes[0] == 0).astype(np.int64)


def apart(form: NDArray[np.int64], answer: NDArray[np.int64], share: float) -> list[float]:
    """Return, for every two forms, by how much their estimates differ more than they may, where
    each check errs with a probability of at most ``share``."""
    found = []
    for number, law in enumerate(LAW.forms):
        phi = float(law.eigenvalues((0,))[1])
        own = answer[form == number]
        # Answers lie within 1 of each other; both sides of both forms.
        allowed = math.sqrt(math.log(4 / share) / (2 * len(own))) / phi
        found.append(((own.mean() - (1 - phi) / 3) / phi, allowed))
    return [
        abs(first - second) - first_allowed - second_allowed
        for (first, first_allowed), (second, second_allowed) in combinations(found, 2)
    ]


def test_all_forms_estimate_the_same_share() -> None:
    share = BUDGET.spend("forms agree", 3 * SHARE)
    form, answer = released(0.7)
    assert max(apart(form, answer, share / 3)) <= 0


def test_rows_with_the_number_of_another_form_are_seen() -> None:
    form, answer = released(0.7)
    wrong = (form + 1) % len(LAW.forms)
    share = BUDGET.spend("forms with a wrong number", 3 * SHARE)
    expected = []
    for number, law in enumerate(LAW.forms):
        phi = float(law.eigenvalues((0,))[1])
        other = float(LAW.forms[(number - 1) % len(LAW.forms)].eigenvalues((0,))[1])
        expected.append((other * 0.7 + (1 - other) / 3 - (1 - phi) / 3) / phi)
    # Ten times as far apart as the estimates may be, so that all but an exponent of −2,000 sees it.
    assert max(expected) - min(expected) > 0.7
    assert max(apart(wrong, answer, share)) > 0.5
