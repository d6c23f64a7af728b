"""The methods and all that is known of each, in one table.

A new method is a function in :mod:`deniable.design.solving` and an entry in ``METHODS``: what it
takes, how it divides a total, what it is called on screens, in help and in reports. Nothing else in
the project knows a method by name.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from deniable._checks import check_level
from deniable.design import solving
from deniable.design.solving import Divided, GivenRest, Solution, Task
from deniable.errors import InputError
from deniable.laws import (
    GatedSum,
    InvariantChannel,
    JointLaw,
    LiftedRamp,
    PatternTable,
    ProductLaw,
    PublishedForms,
    SingleChangeMixture,
    VoteBlend,
    VoteMixture,
)
from deniable.solvers.problem import MAX_LEVEL

if TYPE_CHECKING:
    from deniable.design.account import CapCost, Design
    from deniable.design.strength import Randomization, StrengthRequest
    from deniable.schema import Schema

LP_MAX_ATTRIBUTES = 12
"""Largest number of attributes for which the linear program is solved: 2^12 variables."""

DEFAULT_METHOD = "balanced"
STRENGTH_METHOD = "lambda"
"""The methods of a request that names none: with levels or a total, and with strengths."""

INDEPENDENT_METHOD = "kronecker"
"""The method of independent responses at given levels, which has no limits of its own."""

FORMS_METHOD = "forms"
"""The method that publishes which questions a row was asked."""

INVARIANT_METHOD = "invariant"
MATRIX_METHOD = "matrix"
"""What a record calls matrices that were made from a table, and matrices that were given."""

DEFAULT_CAP = "2x"
DEFAULT_PAIR_FLOOR = 0.5
"""What ``balanced`` keeps by default: why a floor is needed is
docs/proofs/clipped.md, Proposition 5."""

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

Broad = Literal["auto", "never"]
"""Whether answers under forms name sets of categories: where that gains, or never."""

DEFAULT_BROAD: Broad = "auto"


@dataclass(frozen=True)
class FormRequest:
    """What a method that divides people among forms is told besides the total.

    Args:
        importance: of single attributes, by name; adds to the schema's.
        at_most: largest level of single attributes alone in nats, by name.
        pairs: how much tables of two attributes count against shares, 0 to 1.
        asked: most attributes that a form may ask; None for what is best of what can be found.
        column: the column of the release that holds the number of the form.
        given_rest: cap on ``epsilon_given_rest``.
        broad: whether answers may name sets of categories; `DEFAULT_BROAD` if not given.
    """

    importance: Mapping[str, float] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)
    pairs: float | None = None
    asked: int | None = None
    column: str | None = None
    given_rest: GivenRest = None
    broad: Broad | None = None

    def __bool__(self) -> bool:
        """Whether something is asked for that is for forms only."""
        return any(each is not None for each in (self.pairs, self.asked, self.column, self.broad))


def _forms(schema: "Schema", epsilon: float, request: FormRequest) -> "Design":
    from deniable.design.split_questionnaire import published_forms

    return published_forms(schema, FORMS_METHOD, epsilon, request)


def _cost_of_caps_on_forms(design: "Design") -> "tuple[CapCost, ...] | None":
    from deniable.design.split_questionnaire import cost_of_caps

    return cost_of_caps(design)


def _lambda(
    schema: "Schema", request: "StrengthRequest", epsilon: float | None = None
) -> "Randomization":
    from deniable.design.strength import lambda_blocks

    if epsilon is not None:
        raise InputError(
            f"method {STRENGTH_METHOD} takes no total; give λ, strengths or covariances to "
            f"preserve, or use method {INDEPENDENT_METHOD}, which is the same law requested by ε"
        )
    if not request:
        raise InputError(
            f"method {STRENGTH_METHOD} needs to know how strongly to randomize; give λ, strengths, "
            "covariances to preserve, or matrices"
        )
    return lambda_blocks(schema, request)


def _joint(
    schema: "Schema", request: "StrengthRequest", epsilon: float | None = None
) -> "Randomization":
    from deniable.design.strength import joint_blocks

    if request.preserve or request.matrices:
        raise InputError(
            "method joint multiplies every covariance by its one λ, and adds to it, and has no "
            "matrix per attribute; give one λ, one strength or epsilon, or use method "
            f"{STRENGTH_METHOD}"
        )
    return joint_blocks(
        schema, request, None if epsilon is None else check_level(epsilon, "epsilon")
    )


Solve = Callable[[Task, Sequence[float]], Solution]
Spend = Callable[
    [Task, float, Sequence[float], Sequence[float], float | None],
    Divided | None,
]
CostOfCaps = Callable[[Task, Sequence[float], Sequence[str], object], list[float | None]]
Forms = Callable[["Schema", float, FormRequest], "Design"]
CurveOfForms = Callable[["Design"], "tuple[CapCost, ...] | None"]
Blocks = Callable[["Schema", "StrengthRequest", float | None], "Randomization"]


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
        forms: from a total to the design of forms; None if all rows are asked the same.
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


def _inputs(*names: Input) -> frozenset[Input]:
    return frozenset({"levels", "total", *names})


_SEARCHED = frozenset(
    law.family for law in (PatternTable, ProductLaw, GatedSum, LiftedRamp, VoteMixture, VoteBlend)
)
"""Families that a search for the smallest ε ends with."""

METHODS: dict[str, MethodSpec] = {
    spec.name: spec
    for spec in (
        MethodSpec(
            DEFAULT_METHOD,
            "near the smallest ε of the record for the levels, with a cap on what someone learns "
            "of an attribute who knows the rest, and every pair of attributes estimable",
            label="balanced",
            description="the law of smallest ε found that keeps every requested level, caps what "
            "is learnt by someone who knows the rest of the row, and leaves every table of two "
            "attributes estimable",
            solve=solving.solve_balanced,
            spend=solving.spend_balanced,
            cost_of_caps=solving.cost_of_balanced_caps,
            takes=_inputs("importance", "caps", "floor"),
            division="importance",
            given_rest=DEFAULT_CAP,
            pair_floor=DEFAULT_PAIR_FLOOR,
            families=_SEARCHED,
            together=True,
            style=("#009E73", "D", "-"),
        ),
        MethodSpec(
            "optimal",
            "the smallest ε of the record for the levels, with a proof, and nothing else asked",
            label="optimum",
            description="the law of smallest ε that keeps every requested level, with a proof of "
            "how near to the smallest it is",
            solve=solving.solve_optimal,
            families=_SEARCHED,
            takes=_inputs("importance"),
            division="importance",
            together=True,
            style=("#D55E00", "o", "-."),
        ),
        MethodSpec(
            "lp",
            f"the same by a linear program, up to {LP_MAX_ATTRIBUTES} attributes, with caps and "
            "floor if asked (Yamamoto and Shibuya)",
            label="linear program",
            description="privacy-optimized randomized response, linear program (Yamamoto and "
            "Shibuya, Algorithms 1 and 2)",
            solve=solving.solve_linear_program,
            families=frozenset({PatternTable.family}),
            smallest=True,
            takes=_inputs("caps", "floor"),
            most=LP_MAX_ATTRIBUTES,
            together=True,
            style=("#CC79A7", "x", "-"),
        ),
        MethodSpec(
            INDEPENDENT_METHOD,
            "an independent response for each attribute; the ε of the record is the sum",
            label="independent (Kronecker)",
            description="independent randomized response for each attribute (Kronecker product)",
            solve=solving.solve_independent,
            families=frozenset({ProductLaw.family}),
            largest_level=math.inf,
            division="sum",
            style=("#000000", "s", "-"),
        ),
        MethodSpec(
            "closed-form",
            "the smallest ε by formula, two attributes (Yamamoto and Shibuya)",
            label="closed form, two attributes",
            description="privacy-optimized randomized response, closed form for two attributes "
            "(Yamamoto and Shibuya)",
            solve=solving.solve_closed_form,
            families=frozenset({PatternTable.family}),
            smallest=True,
            fewest=2,
            most=2,
            together=True,
            style=("#F0E442", "P", ":"),
        ),
        MethodSpec(
            "heuristic",
            "fast at any number of attributes; may miss requested levels (Yamamoto and Shibuya, "
            "Algorithm 3)",
            label="heuristic, at the levels it achieves",
            description="privacy-optimized randomized response, heuristic (Yamamoto and Shibuya, "
            "Algorithm 3)",
            solve=solving.solve_heuristic,
            families=frozenset({SingleChangeMixture.family}),
            takes=_inputs("order"),
            division="grid",
            together=True,
            style=("#0072B2", "^", "--"),
        ),
        MethodSpec(
            STRENGTH_METHOD,
            "λ-randomization: an independent response for each attribute, asked for by λ, "
            "strength, covariances to preserve, or bistochastic matrices (Ruiz)",
            label="λ-randomization",
            description="λ-randomization: an independent bistochastic response for each attribute "
            "(Ruiz)",
            blocks=_lambda,
            families=frozenset({ProductLaw.family}),
            takes=frozenset({"strength", "matrices"}),
            instead_of_levels="give λ, strengths or covariances to preserve, or use method "
            f"{INDEPENDENT_METHOD}, which is the same law requested by levels",
            style=("#E69F00", "p", "--"),
        ),
        MethodSpec(
            "joint",
            "one response on whole records, asked for by one ε, λ or strength (Ruiz)",
            label="joint λ-randomization",
            description="one randomized response on whole records, the product of all categories "
            "(Ruiz, section 3)",
            blocks=_joint,
            families=frozenset({JointLaw.family}),
            takes=frozenset({"total", "strength"}),
            instead_of_levels="its one parameter decides them all: give epsilon, one λ or one "
            "strength",
            style=("#CC79A7", "h", "-."),
        ),
        MethodSpec(
            FORMS_METHOD,
            "different people are asked different questions, and it is released who was asked "
            "what: the smallest errors of shares, and of pairs as far as they count",
            label="forms",
            description="published forms: every row answers one of several forms, each of which "
            "asks some attributes, drawn without looking at the record; the shares of the forms "
            "and their laws are those of least variance found",
            forms=_forms,
            families=frozenset({PublishedForms.family}),
            curve_of_forms=_cost_of_caps_on_forms,
            takes=frozenset({"total", "importance", "caps", "forms"}),
            instead_of_levels="a level belongs to a form, and whoever is asked one question alone "
            "spends all of it there: give a total, and importances or largest levels",
            together=True,
            remark="A form asks some of the attributes. An attribute's ε is that of the people who "
            "are asked it in the least favourable form; of the others nothing is released.",
            style=("#56B4E9", "v", "-"),
        ),
        MethodSpec(
            INVARIANT_METHOD,
            "invariant PRAM, made by the command pram from a table",
            description="invariant post-randomization (PRAM): matrices made from the table so that "
            "its frequencies are kept in expectation (Gouweleeuw, Kooiman, Willenborg and de Wolf)",
            remark="Under invariant PRAM a value that is not kept is drawn by a matrix made from "
            "the table, more often from frequent categories; “kept” is the share of this table's "
            "values that are expected to be the true ones.",
            takes=frozenset(),
            families=frozenset({InvariantChannel.family}),
        ),
        MethodSpec(
            MATRIX_METHOD,
            "a response matrix given for every attribute, by --matrix",
            description="a response matrix given for every attribute",
            takes=frozenset(),
            families=frozenset(),
        ),
    )
}
"""Every name of a method that occurs in a record; users choose among those that are ``offered``."""


def method_named(name: str) -> MethodSpec:
    """Return the method of a name.

    Raises:
        InputError: if a design cannot be requested by that name.

    >>> method_named("optimal").together
    True
    """
    if name not in METHODS or not METHODS[name].offered:
        raise InputError(
            f"there is no method '{name}'; choose one of "
            + ", ".join(spec.name for spec in METHODS.values() if spec.offered)
        )
    return METHODS[name]


def methods_taking(*inputs: Input, joined: str = "or") -> str:
    """Return the names of the methods that take these inputs, as part of a sentence.

    >>> methods_taking("caps", "floor")
    'balanced or lp'
    """
    names = [s.name for s in METHODS.values() if s.offered and s.takes.issuperset(inputs)]
    return f" {joined} ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])


def methods_table() -> str:
    """Return the table of methods in docs/methods.md, in Markdown."""
    rows = [("method", "the law", "attributes", "is told")]
    for spec in METHODS.values():
        if not spec.offered:
            continue
        limit = "any number" if spec.most is None else f"up to {spec.most}"
        inputs = ", ".join(_INPUT_NAMES[name] for name in _INPUT_NAMES if name in spec.takes)
        first = f"`{spec.name}`" + (" (the default)" if spec.name == DEFAULT_METHOD else "")
        rows.append((first, spec.help, str(spec.most) if spec.fewest > 1 else limit, inputs))
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---|---|---|---|", *lines[1:]]) + "\n"


_INPUT_NAMES: dict[Input, str] = {
    "levels": "levels",
    "total": "a total",
    "importance": "importances",
    "caps": "caps",
    "floor": "a floor on pairs",
    "order": "an order",
    "strength": "λ or strengths",
    "matrices": "matrices",
    "forms": "what pairs count, how much a form may ask, and whether answers may name sets",
}
