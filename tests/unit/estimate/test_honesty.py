"""The test of instructions against enumeration of all answers, and intervals against grids."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, chi2

from deniable.design.design import design
from deniable.errors import InputError
from deniable.estimate.agreement import contradiction
from deniable.estimate.honesty import Honesty, allowed_shares, misfit, share_of
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.mechanism.strata import Strata
from deniable.schema import Attribute, Schema


def warner(p: float) -> np.ndarray:
    return np.array([[p, 1 - p], [1 - p, p]])


GROUPS = (warner(0.8), warner(0.3))


def outcomes(yes: tuple[float, ...], n: int = 30):
    """All pairs of counts of two groups of n rows, with their probabilities."""
    law = [binom.pmf(np.arange(n + 1), n, p) for p in yes]
    for first, second in product(range(0, n + 1), repeat=2):
        probability = law[0][first] * law[1][second]
        if probability > 1e-6:
            counts = [np.array([n - k, k], float) for k in (first, second)]
            yield probability, list(zip(counts, GROUPS, strict=True))


@pytest.mark.parametrize(("share", "rejected"), [(0.0, (0.03, 0.07)), (0.4, (0.5, 1.0))])
def test_honest_answers_are_rejected_at_the_level_and_false_ones_often(
    share: float, rejected: tuple[float, float]
) -> None:
    b = np.array([0.7, 0.3])
    yes = tuple(float((1 - share) * (matrix @ b)[1]) for matrix in GROUPS)
    limit = chi2.isf(0.05, 1)
    found = sum(
        probability
        for probability, answered in outcomes(yes)
        if contradiction(answered, 2)[0] > limit
    )
    assert rejected[0] <= found <= rejected[1]


@pytest.mark.parametrize(("share", "prevalence"), [(0.1, 0.3), (0.0, 0.0)])
def test_the_allowed_shares_hold_the_true_one(share: float, prevalence: float) -> None:
    # Also without any carrier, at the border of what is possible.
    b, limit = np.array([1 - prevalence, prevalence]), chi2.isf(0.05, 2)
    yes = [(1 - share) * (matrix @ b)[1] for matrix in GROUPS]
    draws = np.random.default_rng(1).binomial(400, yes, (200, 2))
    held = [
        misfit([(np.array([400.0 - k, k]), m) for k, m in zip(row, GROUPS, strict=True)], share)
        for row in draws
    ]
    assert np.mean([value <= limit for value, _ in held]) >= 0.94


def test_the_share_of_one_false_answer_is_estimated_without_bias() -> None:
    share, b = 0.15, np.array([0.6, 0.3, 0.1])
    matrices = [0.6 * np.eye(3) + 0.4 / 3, 0.2 * np.eye(3) + 0.8 / 3]
    for place in range(3):
        answers = [(1 - share) * (m @ b) + share * np.eye(3)[place] for m in matrices]
        answered = [(4000 * f, m) for f, m in zip(answers, matrices, strict=True)]
        estimate, error = share_of(answered, place)
        assert estimate == pytest.approx(share, abs=1e-9)
        draws = np.random.default_rng(place)
        drawn = [
            share_of(
                [(draws.multinomial(4000, f), m) for f, m in zip(answers, matrices, strict=True)],
                place,
            )[0]
            for _ in range(100)
        ]
        assert np.std(drawn) == pytest.approx(error, rel=0.3)
    assert share_of([(np.array([60.0, 40.0]), warner(0.7))], 0) == (None, None)


@pytest.mark.parametrize("counts", [((700, 300), (520, 480)), ((900, 100), (880, 120))])
def test_the_ends_of_the_allowed_shares_are_those_of_a_grid(
    counts: tuple[tuple[int, int], ...],
) -> None:
    answered = [(np.array(c, float), m) for c, m in zip(counts, GROUPS, strict=True)]
    limit = chi2.isf(0.05, 2)
    b, d = np.meshgrid(*2 * [np.linspace(0, 1, 201)])

    def least(share: float) -> float:
        total = np.zeros_like(b)
        for rows, matrix in answered:
            n = rows.sum()
            yes = (1 - share) * (matrix[1, 0] * (1 - b) + matrix[1, 1] * b) + share * d
            theta = (rows + 1) / (n + 2)
            total += n * (yes - rows[1] / n) ** 2 * (1 / theta).sum()
        return float(total.min())

    grid = np.linspace(0, 1, 201)
    allowed = [share for share in grid if least(share) <= limit]
    ends = allowed_shares(answered, 0.95)
    assert ends == (pytest.approx(allowed[0], abs=0.0101), pytest.approx(allowed[-1], abs=0.0101))
    # At probability 1e-9 the data allow more, and groups that no share explains allow none.
    assert allowed_shares(answered, 1 - 1e-9)[1] >= ends[1]  # type: ignore[index]
    apart = [(np.array([990.0, 10.0]), GROUPS[0]), (np.array([10.0, 990.0]), GROUPS[1])]
    assert allowed_shares(apart, 0.95) is None


def groups(*responses: str) -> Strata:
    mechanisms = {}
    for value, response in zip("AB", responses, strict=True):
        smokes = Attribute("smokes", ("no", "yes"), response=response)
        mechanisms[value] = design(Schema((smokes,), keep=("card",))).mechanism
    return Strata.by_value(mechanisms, "card")


def counted(strata: Strata, *rows: tuple[int, int]) -> Counts:
    parts = zip(strata.mechanisms.values(), map(np.array, rows), strict=True)
    return Counts(tuple((m, Tabulation.from_counts(c)) for m, c in parts), column="card")


def test_the_answer_states_the_test_and_both_shares() -> None:
    strata = groups("warner:0.75", "warner:0.25")
    (found,) = Honesty("smokes").answer(counted(strata, (650, 350), (450, 550)))
    (row,) = found.table()
    assert row["estimate"] == pytest.approx(0.1)
    assert row["low"] < 0.1 < row["high"]
    assert row["p_value"] < 1e-5
    assert 0 < row["least"] < 0.1 < row["most"]
    assert found.to_plain()["answer"] == "no"
    assert "if they all answer 'no'" in found.remarks()[0]
    (other,) = Honesty("smokes", evasive="yes").answer(counted(strata, (650, 350), (450, 550)))
    assert other.estimate == pytest.approx(-0.1)
    (apart,) = Honesty("smokes").answer(counted(strata, (990, 10), (10, 990)))
    assert apart.table()[0]["least"] is None
    assert "No share of false answers" in apart.remarks()[1]


def test_a_test_without_two_designs_is_refused() -> None:
    alike = groups("warner:0.75", "warner:0.75")
    two = groups("warner:0.75", "warner:0.25")
    for question, strata, said in (
        (Honesty("smokes"), alike, "all rows have one design of 'smokes'"),
        (Honesty("smokes", evasive="perhaps"), two, "none of the answers of 'smokes': no, yes"),
        (Honesty("smokes,card"), two, "for one attribute"),
        (Honesty("smokes", by="smokes"), two, "'smokes', which is randomized"),
    ):
        with pytest.raises(InputError, match=said):
            question.answer(counted(strata, (65, 35), (45, 55)))
    with pytest.raises(InputError, match="different answers"):
        groups("warner:0.75", "kuk:0.75,0.25")
