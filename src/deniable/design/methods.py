"""Functions of the methods: from levels, a total or strengths to laws.

A new method is a function in :mod:`deniable.design.solving`, a row here, and a row in ``METHODS``
of :mod:`deniable.statement.methods`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deniable.design import solving
from deniable.design.request import DesignRequest, StrengthRequest
from deniable.design.solving import Solution, Task
from deniable.design.split_questionnaire import published_forms
from deniable.design.strength import Randomization, joint_blocks, lambda_blocks
from deniable.schema import Schema
from deniable.statement.account import Design
from deniable.statement.methods import (
    DEFAULT_METHOD,
    FORMS_METHOD,
    INDEPENDENT_METHOD,
    STRENGTH_METHOD,
)

Solve = Callable[[Task, Sequence[float]], Solution]
Divide = Callable[
    [Task, float, Sequence[float], Sequence[float | None], float | None],
    Solution,
]
Forms = Callable[[Schema, str, float, DesignRequest], Design]
Blocks = Callable[[Schema, StrengthRequest, float | None], Randomization]


@dataclass(frozen=True)
class Functions:
    """Functions of one method; exactly one of ``solve``, ``blocks`` and ``forms`` is set."""

    solve: Solve | None = None
    divide: Divide | None = None
    blocks: Blocks | None = None
    forms: Forms | None = None


FUNCTIONS: dict[str, Functions] = {
    DEFAULT_METHOD: Functions(
        solve=solving.solve_balanced,
        divide=solving.least_error,
    ),
    "optimal": Functions(solve=solving.solve_optimal),
    "lp": Functions(solve=solving.solve_linear_program),
    INDEPENDENT_METHOD: Functions(solve=solving.solve_independent),
    "closed-form": Functions(solve=solving.solve_closed_form),
    "heuristic": Functions(solve=solving.solve_heuristic),
    STRENGTH_METHOD: Functions(blocks=lambda_blocks),
    "joint": Functions(blocks=joint_blocks),
    FORMS_METHOD: Functions(forms=published_forms),
}
"""By method; every offered one has a row."""
