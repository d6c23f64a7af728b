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

    Args:
        name: as users give it, and as records state it.
        help: one line for the command line's help and the table in docs/methods.md.
        label: its name in figures.
        description: how a report says that the law was found.
        solve: from levels to a law; None if levels are not what it takes.
        spend: from a total, ratios of the levels, their largest values and about the scale at which
            the optimum spends the total, to the levels at the largest scale it pays for, and their
            law, in one search. None, or an answer of None: ``solve`` is called at scale after
            scale.
        cost_of_caps: from levels to the record's ε under several caps, None where one cannot be
            met. Goes with a default cap.
        blocks: from strengths, and a total if one is given, to laws; None if it takes levels.
        forms: from the schema, this method's name, a total and what counts how much, to the design
            of forms; None if all rows are asked the same.
        curve_of_forms: from such a design to what it would tell under several caps.
        takes: the inputs that it takes.
        fewest, most: numbers of attributes that it is for; None for no limit.
        largest_level: of an attribute, in nats.
        division: how a total is divided: by ``importance`` (or by ratios where the schema has
            them); by ``ratio`` with the largest common scale that keeps the total; by ratio over a
            ``grid`` of scales, where the total does not rise with the scale; or in levels that
            add up to the total, a ``sum``.
        given_rest, pair_floor: the cap and the floor that it keeps by default.
        together: whether its laws may randomize attributes together, so that they are compared with
            independent responses.
        families: of laws that it makes, beside matrices and kept columns; None for any.
        smallest: whether ε is the smallest for its levels where neither cap nor floor is kept, to
            the rounding of the law's integers.
        instead_of_levels: what to do instead of giving it levels per attribute.
        remark: what a report says under its table of attributes.
        style: colour (#RRGGBB), marker and line of matplotlib, in figures.
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
