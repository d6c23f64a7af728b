"""The methods: from levels, or strengths, to a law; and all that is known of each, in one table.

A new method is a function and an entry in ``METHODS``: what it takes, how it divides a total, what
it is called on screens, in help and in reports. Nothing else in the project knows a method by name.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from deniable._checks import check_level
from deniable.errors import InputError
from deniable.laws import PatternLaw, PatternTable, ProductLaw, SingleChangeMixture
from deniable.solvers.problem import MAX_LEVEL

if TYPE_CHECKING:
    from deniable.design.strength import Randomization, StrengthWishes
    from deniable.schema import Schema

_T = TypeVar("_T")

LP_MAX_ATTRIBUTES = 12
"""Largest number of attributes for which the linear program is solved: 2^12 variables."""

_AIM = 2e-11
"""Solvers aim this far below the request, so that their rounding never ends above it."""

GivenRest = str | float | Sequence[float | None] | None
"""A cap on ``epsilon_given_rest``: "2x" for a multiple of each attribute's own ε, a number of nats,
one number (or None) per protected attribute, "none" for no cap, or None for the method's default:
2x for ``balanced``, no cap for ``lp``."""


EXACT_CAPS = 10
"""Most attributes for which ``balanced`` tries the capped linear program."""

_RAMP_GAP = 0.02
"""Part of ε by which the capped program's law may miss its proof: the ramp would be no nearer."""

DEFAULT_METHOD = "balanced"
STRENGTH_METHOD = "lambda"
"""The methods of a request that names none: with levels or a total, and with strengths."""

INDEPENDENT_METHOD = "kronecker"
"""The method of independent responses at given levels, which has no limits of its own."""

INVARIANT_METHOD = "invariant"
MATRIX_METHOD = "matrix"
"""What a record calls matrices that were made from a table, and matrices that were given."""

DEFAULT_CAP = "2x"
DEFAULT_PAIR_FLOOR = 0.5
"""What ``balanced`` keeps by default: why a floor is needed is
docs/proofs/clipped.md, Proposition 5."""

Input = Literal["levels", "total", "importance", "caps", "floor", "order", "strength", "matrices"]
Division = Literal["importance", "ratio", "grid", "sum"]


@dataclass(frozen=True)
class Task:
    """What a method is given besides the levels.

    Args:
        n_categories: of the attributes to randomize, shape (k,).
        given_rest: cap on ``epsilon_given_rest``.
        pair_floor: least φ_ij/(φ_i φ_j), so that every table of two attributes can be estimated.
        order: in which the heuristic takes the attributes.
    """

    n_categories: tuple[int, ...]
    given_rest: GivenRest = None
    pair_floor: float | None = None
    order: Literal["given", "descending"] = "given"


@dataclass(frozen=True)
class Solution:
    """What a method answers: laws, and what is known of how near the optimum they are.

    Args:
        parts: independent laws, each with the positions of its attributes among those to
            randomize; nearly always one law for all.
        weights: for the lower bound, shape (k,), if the solver has better ones than the levels.
        optimal_epsilon: ε of the record at these levels without a cap and a floor, in nats.
        end: where the solver ended, for :attr:`MethodSpec.near`; None if it states none.
    """

    parts: tuple[tuple[tuple[int, ...], PatternLaw], ...]
    weights: Sequence[float] | None = None
    optimal_epsilon: float | None = None
    end: object = None

    @classmethod
    def one(cls, law: PatternLaw, weights: Sequence[float] | None = None) -> "Solution":
        """Return one law for all attributes, in their order."""
        return cls(((tuple(range(len(law.n_categories))), law),), weights)


def _aimed(levels: Sequence[float]) -> list[float]:
    return [level - min(_AIM, level * 1e-3) for level in levels]


def _optimal(task: Task, levels: Sequence[float]) -> Solution:
    from deniable.solvers.patterns import optimal

    solution = _solved(lambda: optimal.solve(task.n_categories, levels))
    return Solution(_laws(solution.parts), solution.weights.tolist())


def _balanced(task: Task, levels: Sequence[float]) -> Solution:
    """The capped linear program up to ``EXACT_CAPS`` attributes, the clipped ramp beyond.

    The program's optimum is exact; it takes seconds at ten different attributes and minutes at
    twelve. The ramp is within about 2 % of it unless the floor on pairs binds, which it does for
    few attributes only (docs/proofs/clipped.md); it also stands in where the program's numbers run
    out, at levels of many nats.
    """
    from deniable.solvers.patterns import balanced, optimal

    if len(levels) <= EXACT_CAPS:
        optimum = _solved(lambda: optimal.solve(task.n_categories, levels))
        try:
            exact = _linear_program(task, levels, max_gap=_RAMP_GAP)
        except _OutOfReachError:
            pass
        else:
            return Solution(exact.parts, optimum.weights.tolist(), optimum.epsilon)
    caps = resolve_caps(task.given_rest, levels)
    solution = _solved(lambda: balanced.solve(task.n_categories, levels, caps, task.pair_floor))
    if solution.method == "independent" and _has_room(caps, levels):
        raise _OutOfReachError("no capped law was found for these levels")
    return Solution(
        _laws(solution.parts),
        solution.weights.tolist(),
        solution.optimum.epsilon,
        solution.place,
    )


def _balanced_near(
    task: Task, levels: Sequence[float], start: Solution, search: bool
) -> Solution | None:
    from deniable.solvers.patterns import balanced
    from deniable.solvers.problem import SolverError

    if not isinstance(start.end, balanced.RampPlace):
        return None
    caps = resolve_caps(task.given_rest, levels)
    try:
        near = balanced.solve_near(
            task.n_categories, levels, caps, task.pair_floor, start.end, search=search
        )
    except (SolverError, ArithmeticError):
        return None
    return None if near is None else Solution(_laws(near[0]), start.weights, end=near[1])


def _balanced_proof(task: Task, levels: Sequence[float], solution: Solution) -> Solution | None:
    from deniable.solvers.patterns import balanced, optimal

    if not balanced.keep_floor((law for _, law in solution.parts), task.pair_floor):
        return None
    try:
        optimum = _solved(lambda: optimal.solve(task.n_categories, levels))
    except _OutOfReachError:  # the weights found nearby prove a bound here, too
        return solution
    return replace(solution, weights=optimum.weights.tolist(), optimal_epsilon=optimum.epsilon)


def _largest_apart(
    solve: Callable[[Task, Sequence[float]], Solution], task: Task, levels: Sequence[float]
) -> Solution:
    """Solve for all attributes together, or leave out the largest levels until that can be done.

    Levels of many nats beside ordinary ones are beyond the solvers' arithmetic. An attribute at
    such a level reveals nearly everything; it answers independently, at its own ε, and the bound
    that is printed says what that costs.
    """
    order = sorted(range(len(levels)), key=lambda i: levels[i], reverse=True)
    for n_apart in (0, 1, 2, 4, 8, 16, 32, 64, 128):
        apart, rest = sorted(order[:n_apart]), sorted(order[n_apart:])
        if not rest:
            break
        try:
            solution = solve(_part(task, rest), [levels[i] for i in rest])
        except (_OutOfReachError, ArithmeticError):
            continue
        if not apart:
            return solution
        sizes = [task.n_categories[i] for i in apart]
        alone = ProductLaw.from_levels(sizes, [levels[i] for i in apart])
        parts = tuple((tuple(rest[i] for i in places), law) for places, law in solution.parts)
        return Solution((*parts, (tuple(apart), alone)))
    return _kronecker(task, levels)


def _part(task: Task, places: Sequence[int]) -> Task:
    caps = task.given_rest
    if caps is not None and not isinstance(caps, str | int | float):
        caps = [caps[i] for i in places]
    return replace(task, n_categories=tuple(task.n_categories[i] for i in places), given_rest=caps)


def _has_room(caps: Sequence[float | None] | None, levels: Sequence[float]) -> bool:
    if caps is None:
        return True
    pairs = zip(caps, levels, strict=True)
    return any(cap is None or cap > 1.05 * level for cap, level in pairs)


class _OutOfReachError(InputError):
    """A request that a solver's arithmetic cannot answer, though some law may."""


def _laws(parts: Sequence[Any]) -> tuple[tuple[tuple[int, ...], PatternLaw], ...]:
    return tuple((part.attributes, part.law) for part in parts)


def _solved(solve: Callable[[], _T]) -> _T:
    from deniable.solvers.problem import SolverError

    try:
        return solve()
    except SolverError as error:
        raise _OutOfReachError(str(error)) from None


def _kronecker(task: Task, levels: Sequence[float]) -> Solution:
    # Its weights are rounded down exactly; there is no rounding to keep clear of.
    return Solution.one(ProductLaw.from_levels(task.n_categories, levels))


def _linear_program(task: Task, levels: Sequence[float], max_gap: float | None = None) -> Solution:
    from deniable.solvers.patterns import linear

    aimed = _aimed(levels)
    caps = resolve_caps(task.given_rest, levels)
    if caps is not None:
        # As for the levels, so that rounding ends below the cap; never below the level aimed at.
        caps = tuple(
            None if cap is None else max(cap - _AIM, aim) if cap >= level else cap
            for cap, level, aim in zip(caps, levels, aimed, strict=True)
        )
    solution = _solved(
        lambda: linear.solve(
            task.n_categories,
            aimed,
            given_rest_cap=caps,
            pair_floor=task.pair_floor,
            max_gap=linear.MAX_GAP if max_gap is None else max_gap,
        )
    )
    law = PatternTable.from_probabilities(task.n_categories, solution.pattern_probability)
    return Solution.one(law, list(solution.weights))


def _closed_form(task: Task, levels: Sequence[float]) -> Solution:
    from deniable.laws.patterns import other_outputs
    from deniable.solvers.patterns import closed_form, linear

    aimed = _aimed(levels)
    solution = closed_form.solve(task.n_categories, aimed)
    counts = other_outputs(task.n_categories).astype(np.float64)
    law = PatternTable.from_probabilities(task.n_categories, solution.pattern_density * counts)
    # The formula gives no dual; the linear program's prices are one.
    return Solution.one(law, list(linear.solve(task.n_categories, aimed).weights))


def _heuristic(task: Task, levels: Sequence[float]) -> Solution:
    from deniable.solvers.patterns import heuristic

    aim = np.asarray(_aimed(levels))
    places = np.argsort(-aim, kind="stable") if task.order == "descending" else np.arange(len(aim))
    n = np.asarray(task.n_categories)
    solution = heuristic.solve(n[places].tolist(), aim[places].tolist())
    change_excess = np.empty(len(aim))
    change_excess[places] = solution.change_excess
    law = SingleChangeMixture.from_excesses(task.n_categories, solution.keep_excess, change_excess)
    return Solution.one(law)


def _lambda(
    schema: "Schema", wishes: "StrengthWishes", epsilon: float | None = None
) -> "Randomization":
    from deniable.design.strength import lambda_blocks

    if epsilon is not None:
        raise InputError(
            f"method {STRENGTH_METHOD} takes no total; give λ, strengths or covariances to "
            f"preserve, or use method {INDEPENDENT_METHOD}, which is the same law requested by ε"
        )
    if not wishes:
        raise InputError(
            f"method {STRENGTH_METHOD} needs to know how strongly to randomize; give λ, strengths, "
            "covariances to preserve, or matrices"
        )
    return lambda_blocks(schema, wishes)


def _joint(
    schema: "Schema", wishes: "StrengthWishes", epsilon: float | None = None
) -> "Randomization":
    from deniable.design.strength import joint_blocks

    if wishes.preserve or wishes.matrices:
        raise InputError(
            "method joint multiplies every covariance by its one λ, and adds to it, and has no "
            "matrix per attribute; give one λ, one strength or epsilon, or use method "
            f"{STRENGTH_METHOD}"
        )
    return joint_blocks(
        schema, wishes, None if epsilon is None else check_level(epsilon, "epsilon")
    )


Solve = Callable[[Task, Sequence[float]], Solution]
Near = Callable[[Task, Sequence[float], Solution, bool], Solution | None]
Prove = Callable[[Task, Sequence[float], Solution], Solution | None]
Blocks = Callable[["Schema", "StrengthWishes", float | None], "Randomization"]


@dataclass(frozen=True)
class MethodSpec:
    """All that is known of a method.

    Args:
        name: as users give it, and as records state it.
        help: one line for the command line's help and the table in docs/methods.md.
        label: its name in figures.
        description: how a report says that the law was found.
        solve: from levels to a law; None if levels are not what it takes.
        near: the same for levels near those of a law that was found, in a fraction of the time, or
            with a search (True) that gains a little; the record's ε may be above that of ``solve``.
            None, or an answer of None: use ``solve``.
        prove: makes a law of ``near`` what ``solve`` would return: adds the lower bound's weights
            and the optimum, and answers None if the law does not keep the floor. Goes
            with ``near``.
        blocks: from strengths, and a total if one is given, to laws; None if it takes levels.
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
        instead_of_levels: what to do instead of giving it levels per attribute.
        remark: what a report says under its table of attributes.
        style: colour (#RRGGBB), marker and line of matplotlib, in figures.
    """

    name: str
    help: str
    label: str = ""
    description: str = ""
    solve: Solve | None = None
    near: Near | None = None
    prove: Prove | None = None
    blocks: Blocks | None = None
    takes: frozenset[Input] = frozenset({"levels", "total"})
    fewest: int = 1
    most: int | None = None
    largest_level: float = MAX_LEVEL
    division: Division = "ratio"
    given_rest: str | None = None
    pair_floor: float | None = None
    together: bool = False
    instead_of_levels: str = ""
    remark: str = ""
    style: tuple[str, str, str] = ("#000000", "", "-")

    @property
    def offered(self) -> bool:
        """Whether a design can be requested by this name; other names occur in records only."""
        return self.solve is not None or self.blocks is not None

    @property
    def by_strength(self) -> bool:
        """Whether it takes strengths rather than levels."""
        return "strength" in self.takes


def _inputs(*names: Input) -> frozenset[Input]:
    return frozenset({"levels", "total", *names})


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
            solve=partial(_largest_apart, _balanced),
            near=_balanced_near,
            prove=_balanced_proof,
            takes=_inputs("importance", "caps", "floor"),
            division="importance",
            given_rest=DEFAULT_CAP,
            pair_floor=DEFAULT_PAIR_FLOOR,
            together=True,
            style=("#009E73", "D", "-"),
        ),
        MethodSpec(
            "optimal",
            "the smallest ε of the record for the levels, with a proof, and nothing else asked",
            label="optimum",
            description="the law of smallest ε that keeps every requested level, with a proof of "
            "how near to the smallest it is",
            solve=partial(_largest_apart, _optimal),
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
            solve=_linear_program,
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
            solve=_kronecker,
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
            solve=_closed_form,
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
            solve=_heuristic,
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
            takes=frozenset({"total", "strength"}),
            instead_of_levels="its one parameter decides them all: give epsilon, one λ or one "
            "strength",
            style=("#CC79A7", "h", "-."),
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
        ),
        MethodSpec(
            MATRIX_METHOD,
            "a response matrix given for every attribute, by --matrix",
            description="a response matrix given for every attribute",
            takes=frozenset(),
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
}


def resolve_caps(given_rest: GivenRest, levels: Sequence[float]) -> tuple[float | None, ...] | None:
    """Return the cap on ``epsilon_given_rest`` per attribute in nats, or None for no cap.

    Raises:
        InputError: if a cap is not a number above zero, or there are too many or too few.
    """
    if given_rest is None or given_rest == "none":
        return None
    if isinstance(given_rest, str):
        multiple = given_rest.removesuffix("x")
        try:
            factor = float(multiple)
        except ValueError:
            factor = math.nan
        if multiple == given_rest or not factor >= 1:
            raise InputError(
                f"the cap '{given_rest}' on epsilon_given_rest should be a number of nats, or a "
                "multiple of each attribute's own ε such as 2x, at least 1x"
            )
        return tuple(factor * level for level in levels)
    if isinstance(given_rest, int | float):
        return (check_level(given_rest, "cap on epsilon_given_rest"),) * len(levels)
    if len(given_rest) != len(levels):
        raise InputError(
            f"{len(given_rest)} caps on epsilon_given_rest were given for {len(levels)} attributes"
        )
    return tuple(
        None if cap is None else check_level(cap, "cap on epsilon_given_rest") for cap in given_rest
    )


def cap_text(given_rest: GivenRest) -> str | None:
    """Return a cap as it is written in a record; None for no cap."""
    if given_rest is None or given_rest == "none":
        return None
    if isinstance(given_rest, str):
        return given_rest
    if isinstance(given_rest, int | float):
        return f"{given_rest:g}"
    return ",".join("none" if cap is None else f"{cap:g}" for cap in given_rest)
