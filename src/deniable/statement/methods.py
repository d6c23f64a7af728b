"""Names, limits and descriptions of the methods, in one table.

The functions of each method are in :mod:`deniable.design.methods`. No other module names a method.
"""

import math
from dataclasses import dataclass
from typing import Literal

from deniable.errors import InputError
from deniable.laws import (
    GatedSum,
    InvariantChannel,
    PatternTable,
    ProductLaw,
    PublishedForms,
    ScoreTable,
    SingleChangeMixture,
    VoteBlend,
)
from deniable.proofs.problem import MAX_LEVEL
from deniable.schema import Schema
from deniable.schema.responses import NAMED, design_of

Input = Literal[
    "levels",
    "total",
    "importance",
    "caps",
    "floor",
    "pairs",
    "strength",
    "forms",
]
Division = Literal["importance", "ratio", "sum"]


@dataclass(frozen=True)
class Method:
    """Name, limits and texts of a method.

    ``largest_level``: of an attribute, in nats. ``division``: of a total: by ``importance`` (or by
    the schema's ratios); by ``ratio`` with the largest common scale that keeps the total; or into
    levels that add up to the total, a ``sum``. ``offered``: whether a design can be requested by
    this name; other names occur in records only.
    """

    name: str
    help: str
    label: str = ""
    description: str = ""
    offered: bool = True
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
    def by_strength(self) -> bool:
        """Whether the method takes strengths rather than levels."""
        return "strength" in self.takes


LP_MAX_ATTRIBUTES = 12
"""Largest number of attributes for which the linear program is solved: 2^12 variables."""

DEFAULT_METHOD = "balanced"
STRENGTH_METHOD = "lambda"
"""The methods of a request that names none: with levels or a total, and with strengths."""

INDEPENDENT_METHOD = "kronecker"
"""The method of independent responses at given levels, which has no limits of its own."""

FORMS_METHOD = "forms"
"""The method that publishes the form of each row."""

INVARIANT_METHOD = "invariant"
MATRIX_METHOD = "matrix"
"""Names in a record of matrices made from a table, and of matrices given by the user."""

DEFAULT_CAP = "2x"
DEFAULT_PAIR_FLOOR = 0.5
"""Default cap and floor of ``balanced``; the need for a floor is
docs/proofs/clipped.md, Proposition 5."""


def _inputs(*names: Input) -> frozenset[Input]:
    return frozenset({"levels", "total", *names})


_SEARCHED = frozenset(law.family for law in (PatternTable, ProductLaw, GatedSum, VoteBlend))
"""Families of the results of a search for the smallest ε."""

METHODS: dict[str, Method] = {
    spec.name: spec
    for spec in (
        Method(
            DEFAULT_METHOD,
            "for a total, the least error of shares and of tables of two attributes; for levels, "
            "near the smallest ε of the record; both with a cap on ε given the rest",
            label="balanced",
            description="for a total, the law of least error found of shares and of tables of two "
            "attributes; for levels, the law of smallest ε found that keeps them and leaves every "
            "table of two attributes estimable; both cap ε given the "
            "rest of the row",
            takes=_inputs("importance", "caps", "floor", "pairs"),
            division="importance",
            given_rest=DEFAULT_CAP,
            pair_floor=DEFAULT_PAIR_FLOOR,
            families=_SEARCHED | {ScoreTable.family},
            together=True,
            style=("#009E73", "D", "-"),
        ),
        Method(
            "optimal",
            "the smallest ε of the record for the levels, with a proof, without caps or floor",
            label="optimum",
            description="the law of smallest ε that keeps every requested level, with a proof of "
            "how near to the smallest it is",
            families=_SEARCHED,
            takes=_inputs("importance"),
            division="importance",
            together=True,
            style=("#D55E00", "o", "-."),
        ),
        Method(
            "lp",
            f"the same by a linear program, up to {LP_MAX_ATTRIBUTES} attributes, with optional "
            "caps and floor (Yamamoto and Shibuya)",
            label="linear program",
            description="privacy-optimized randomized response, linear program (Yamamoto and "
            "Shibuya, Algorithms 1 and 2)",
            families=frozenset({PatternTable.family}),
            smallest=True,
            takes=_inputs("caps", "floor"),
            most=LP_MAX_ATTRIBUTES,
            together=True,
            style=("#CC79A7", "x", "-"),
        ),
        Method(
            INDEPENDENT_METHOD,
            "an independent response for each attribute; the ε of the record is the sum",
            label="independent (Kronecker)",
            description="independent randomized response for each attribute (Kronecker product)",
            families=frozenset({ProductLaw.family}),
            largest_level=math.inf,
            division="sum",
            style=("#000000", "s", "-"),
        ),
        Method(
            "closed-form",
            "the smallest ε by formula, two attributes (Yamamoto and Shibuya)",
            label="closed form, two attributes",
            description="privacy-optimized randomized response, closed form for two attributes "
            "(Yamamoto and Shibuya)",
            families=frozenset({PatternTable.family}),
            smallest=True,
            fewest=2,
            most=2,
            together=True,
            style=("#F0E442", "P", ":"),
        ),
        Method(
            "heuristic",
            "fast at any number of attributes; may miss requested levels (Yamamoto and Shibuya, "
            "Algorithm 3)",
            label="heuristic, at the levels it achieves",
            description="privacy-optimized randomized response, heuristic (Yamamoto and Shibuya, "
            "Algorithm 3)",
            families=frozenset({SingleChangeMixture.family}),
            takes=_inputs(),
            together=True,
            style=("#0072B2", "^", "--"),
        ),
        Method(
            STRENGTH_METHOD,
            "λ-randomization: an independent response for each attribute, given by λ, strength or "
            "covariances to preserve (Ruiz)",
            label="λ-randomization",
            description="λ-randomization: an independent bistochastic response for each attribute "
            "(Ruiz)",
            families=frozenset({ProductLaw.family}),
            takes=frozenset({"strength"}),
            instead_of_levels="give λ, strengths or covariances to preserve, or use method "
            f"{INDEPENDENT_METHOD}, which is the same law requested by levels",
            style=("#E69F00", "p", "--"),
        ),
        Method(
            "joint",
            "one response on whole records, given by one ε, λ or strength (Ruiz)",
            label="joint λ-randomization",
            description="one randomized response on whole records, the product of all categories "
            "(Ruiz, section 3)",
            families=frozenset({ScoreTable.family}),
            takes=frozenset({"total", "strength"}),
            instead_of_levels="its one parameter decides them all: give epsilon, one λ or one "
            "strength",
            style=("#CC79A7", "h", "-."),
        ),
        Method(
            FORMS_METHOD,
            "different questions for different respondents, with the form of each row released: "
            "the smallest errors of shares, and of pairs by their importance",
            label="forms",
            description="published forms: every row answers one of several forms, each of which "
            "includes some attributes, drawn independently of the record; the shares of the forms "
            "and their laws are those of least variance found",
            families=frozenset({PublishedForms.family}),
            takes=frozenset({"total", "importance", "caps", "pairs", "forms"}),
            instead_of_levels="a level belongs to a form, and a form with one attribute alone "
            "spends all of it there: give a total, and importances or largest levels",
            together=True,
            remark="A form includes some of the attributes. An attribute's ε is that of the least "
            "favourable form that includes it; rows with other forms release no value of it.",
            style=("#56B4E9", "v", "-"),
        ),
        Method(
            INVARIANT_METHOD,
            "invariant PRAM, made by the command pram from a table",
            description="invariant post-randomization (PRAM): matrices made from the table so that "
            "its expected frequencies are unchanged (Gouweleeuw, Kooiman, Willenborg and de Wolf)",
            remark="Under invariant PRAM a changed value is drawn by a matrix made from "
            "the table, more often from frequent categories; “kept” is the expected share of this "
            "table's values that are the true ones.",
            offered=False,
            takes=frozenset(),
            families=frozenset({InvariantChannel.family}),
        ),
        Method(
            MATRIX_METHOD,
            "a response matrix given for every attribute, by --matrix",
            description="a response matrix given for every attribute",
            offered=False,
            takes=frozenset(),
            families=frozenset(),
        ),
        *(
            Method(
                one.name,
                f"{one.help} ({one.source})",
                description=f"{one.name}, a randomized response design of surveys: {one.help} "
                f"({one.source})",
                offered=False,
                takes=frozenset(),
                families=frozenset(),
            )
            for one in NAMED.values()
        ),
    )
}
"""Every name of a method that occurs in a record; users choose among those that are ``offered``."""


def method_of_responses(schema: Schema) -> str:
    """Return the method of a schema whose protected attributes all have a response matrix: the
    name of their design, if it is one."""
    responses = [schema.attributes[i].response for i in schema.protected]
    names = {design_of(response).name if response else MATRIX_METHOD for response in responses}
    return names.pop() if len(names) == 1 else MATRIX_METHOD


def method_named(name: str) -> Method:
    """Return the method of a name."""
    if name not in METHODS or not METHODS[name].offered:
        raise InputError(
            f"there is no method '{name}'; choose one of "
            + ", ".join(spec.name for spec in METHODS.values() if spec.offered)
        )
    return METHODS[name]


def check_number(method: Method, n_attributes: int) -> None:
    """Raise unless a method takes this number of protected attributes.

    >>> check_number(METHODS["closed-form"], 2)
    """
    if not method.fewest <= n_attributes <= (method.most or n_attributes):
        numbers = f"up to {method.most}" if method.fewest == 1 else f"exactly {method.most}"
        raise InputError(
            f"method {method.name} is for {numbers} attributes, and the schema protects "
            f"{n_attributes}: use method {methods_taking('importance')}"
        )


def methods_taking(*inputs: Input, joined: str = "or") -> str:
    """Return the names of the methods that take these inputs, as part of a sentence."""
    names = [s.name for s in METHODS.values() if s.offered and s.takes.issuperset(inputs)]
    return f" {joined} ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])


def methods_table() -> str:
    """Return the table of methods in docs/methods.md, in Markdown."""
    rows = [("method", "law", "attributes", "inputs")]
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
    "pairs": "the weight of pairs",
    "strength": "λ or strengths",
    "forms": "questions per form, answer sets",
}
