"""What there is to know of a method: one record that designs, help, reports and figures share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from deniable.design.account import CapCost, Design
from deniable.design.form_request import FormRequest
from deniable.design.solving import Divided, Solution, Task
from deniable.design.strength import Randomization, StrengthRequest
from deniable.schema import Schema
from deniable.solvers.problem import MAX_LEVEL

Input = Literal[
    "levels",
    "total",
    "importance",
    "caps",
    "floor",
    "order",
    "strength",
    "matrices",
    "forms",
]
Division = Literal["importance", "ratio", "grid", "sum"]

Solve = Callable[[Task, Sequence[float]], Solution]
Spend = Callable[
    [Task, float, Sequence[float], Sequence[float], float | None],
    Divided | None,
]
CostOfCaps = Callable[[Task, Sequence[float], Sequence[str], object], list[float | None]]
Forms = Callable[[Schema, str, float, FormRequest], Design]
CurveOfForms = Callable[[Design], tuple[CapCost, ...] | None]
Blocks = Callable[[Schema, StrengthRequest, float | None], Randomization]


@dataclass(frozen=True)
class MethodSpec:
    """All that is known of a method.

    ``largest_level``: of an attribute, in nats. ``division``: how a total is divided: by
    ``importance`` (or by ratios where the schema has them); by ``ratio`` with the largest common
    scale that keeps the total; by ratio over a ``grid`` of scales, where the total does not rise
    with the scale; or in levels that add up to the total, a ``sum``.
    """

    name: str
    help: str
    label: str = ""
    description: str = ""
    solve: Solve | None = None
    spend: Spend | None = None
    cost_of_caps: CostOfCaps | None = None
    blocks: Blocks | None = None
    forms: Forms | None = None
    curve_of_forms: CurveOfForms | None = None
    takes: frozenset[Input] = frozenset({"levels", "total"})
    fewest: int = 1
    most: int | None = None
    largest_level: float = MAX_LEVEL
    division: Division = "ratio"
    given_rest: str | None = None
    pair_floor: float | None = None
    together: bool = False
    families: frozenset[str] | None = None
    smallest: bool = False
    instead_of_levels: str = ""
    remark: str = ""
    style: tuple[str, str, str] = ("#000000", "", "-")

    @property
    def offered(self) -> bool:
        """Whether a design can be requested by this name; other names occur in records only."""
        return any(way is not None for way in (self.solve, self.blocks, self.forms))

    @property
    def by_strength(self) -> bool:
        """Whether it takes strengths rather than levels."""
        return "strength" in self.takes
