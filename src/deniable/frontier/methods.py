"""The methods of a frontier, with their functions and texts, in one table.

A new method is a function from privacy limits to a matrix, and an entry in ``METHODS``. Two have no
such function, because they serve all levels of a frontier at once: the search of Huang and Du, and
the bound with the mechanisms that attain it (:mod:`deniable.frontier.tracing`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deniable.errors import InputError
from deniable.report.method_styles import (
    BLACK,
    BLUE,
    GREEN,
    LIGHT_GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    MethodStyle,
)

if TYPE_CHECKING:
    import numpy as np

    from deniable.laws.patterns import FloatArray
    from deniable.proofs.rows import Limits

SQUARE_UP_TO = 20
"""The search for square matrices solves systems in n² + n unknowns."""

SEARCH, BOUND = "search", "bound"


@dataclass(frozen=True, eq=False)
class Trial:
    """Input of a method."""

    limits: "Limits"
    generator: "np.random.Generator"
    n_starts: int


@dataclass(frozen=True)
class FrontierMethod:
    """A method of the table.

    ``matrix``: returns a matrix M[y, x] = Pr[y | x] within the limits, or raises ``InputError`` if
    the method has none; None for a method that serves all levels at once.
    """

    help: str
    style: MethodStyle
    matrix: "Callable[[Trial], FloatArray] | None" = None


def _warner(trial: Trial) -> "FloatArray":
    from deniable.solvers.matrices import schemes

    limits = trial.limits
    n = limits.n_categories
    if limits.epsilon is not None:
        return schemes.frapp(n, schemes.gamma_at(limits.epsilon))
    return schemes.warner(n, _truth_probability(limits))


def _uniform_perturbation(trial: Trial) -> "FloatArray":
    from deniable.solvers.matrices import schemes

    limits = trial.limits
    n = limits.n_categories
    if limits.epsilon is not None:
        gamma = schemes.gamma_at(limits.epsilon)
        return schemes.uniform_perturbation(n, (gamma - 1.0) / (gamma + n - 1.0))
    retention = schemes.retention_from_warner(n, _truth_probability(limits))
    return schemes.uniform_perturbation(n, min(1.0, max(0.0, retention)))


def _frapp(trial: Trial) -> "FloatArray":
    from deniable.solvers.matrices import schemes

    limits = trial.limits
    n = limits.n_categories
    if limits.epsilon is not None:
        return schemes.frapp(n, schemes.gamma_at(limits.epsilon))
    return schemes.frapp(n, schemes.gamma_from_warner(n, _truth_probability(limits)))


def _truth_probability(limits: "Limits") -> float:
    from deniable.solvers.matrices import schemes

    assert limits.success is not None
    return schemes.warner_at(limits.prior, 1.0 - limits.success, limits.most_posterior)


def _subset(trial: Trial) -> "FloatArray":
    from deniable.solvers.matrices import schemes

    return schemes.best_subset_selection(trial.limits)


def _blank(trial: Trial) -> "FloatArray":
    from deniable.solvers.matrices import schemes

    limits = trial.limits
    if limits.success is None:
        raise InputError("a blank answer reveals some people's answers for certain: it has no ε")
    if limits.most_posterior is not None:
        raise InputError(
            "a blank answer reveals some people's answers for certain: its worst posterior is 1"
        )
    truth = schemes.blank_answer_at(limits.prior, 1.0 - limits.success)
    return schemes.blank_answer(limits.n_categories, truth)


def _square(trial: Trial) -> "FloatArray":
    from deniable.solvers.matrices import square

    if trial.limits.n_categories > SQUARE_UP_TO:
        raise InputError(f"square matrices are searched for up to {SQUARE_UP_TO} categories")
    return square.solve(trial.limits, trial.generator, n_starts=trial.n_starts).matrix


METHODS: dict[str, FrontierMethod] = {
    "warner": FrontierMethod(
        "the truth with one probability, anything else with another",
        MethodStyle("Warner", VERMILION, "o", "-"),
        _warner,
    ),
    "up": FrontierMethod(
        "the truth, or a uniform draw; Warner's matrices under another name",
        MethodStyle("uniform perturbation", ORANGE, "x", ":"),
        _uniform_perturbation,
    ),
    "frapp": FrontierMethod(
        "the truth λ times as likely as any other category; the same matrices as Warner's",
        MethodStyle("FRAPP", PURPLE, "+", "--"),
        _frapp,
    ),
    "subset": FrontierMethod(
        "a random set of k categories that tends to hold the truth; the best k",
        MethodStyle("k-subset selection", SKY, "^", "-."),
        _subset,
    ),
    "blank": FrontierMethod(
        "the truth, or no answer", MethodStyle("blank answer", LIGHT_GREY, "v", "--"), _blank
    ),
    "square": FrontierMethod(
        "the best matrix that a search finds with as many answers as categories",
        MethodStyle("best square matrix found", BLUE, "s", "-"),
        _square,
    ),
    SEARCH: FrontierMethod(
        "the evolutionary search of Huang and Du",
        MethodStyle("evolutionary search", GREEN, "D", ""),
    ),
    BOUND: FrontierMethod(
        "the mechanism that attains the bound, with more answers than categories",
        MethodStyle("least error possible, attained", BLACK, "", "-"),
    ),
}
"""By name, in the order of help and plots; a method's place is its random seed."""
