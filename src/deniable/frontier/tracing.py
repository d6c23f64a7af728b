"""A frontier: every method at every level of privacy, with the lower bound for all mechanisms.

A pure function of a request; the same request gives the same frontier.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from deniable.errors import InputError
from deniable.frontier.methods import BOUND, METHODS, SEARCH, Trial
from deniable.frontier.priors import Prior
from deniable.laws.patterns import FloatArray
from deniable.mechanism.privacy import finite_or_none
from deniable.numerals import number_text
from deniable.proofs.rows import (
    MAX_EXACT_CATEGORIES,
    Certificate,
    Limits,
    average_limits,
    local_limits,
)
from deniable.solvers.matrices import response, search
from deniable.solvers.matrices.search import hypervolume, outer_hypervolume

DEFAULT_POINTS = 40
_MOST_LEVELS = 1_000
# Of the possible privacy: beyond it errors grow without limit and dominate a plot.
_HIGHEST = 0.98
_DEFAULT_EPSILONS = (0.1, 5.0)
# Number of generations of the search that take about as long as one level, for the progress bar.
_GENERATIONS_A_LEVEL = 500
# Hypervolume: errors above this multiple of the largest bound are ignored.
_REFERENCE = 10.0

Advance = Callable[[float], None]


@dataclass(frozen=True)
class Request:
    """The attribute, the levels and the methods of a frontier.

    ``levels``: privacy (the error rate of the best guess), or with ``local`` ε in nats; None
    for 40 levels over the possible range. ``n_starts``: of the search for square matrices, at each
    level.
    """

    prior: Prior
    levels: tuple[float, ...] | None = None
    local: bool = False
    most_posterior: float | None = None
    methods: tuple[str, ...] = ("warner", "square", BOUND)
    n_records: int = 10_000
    n_starts: int = 20
    search_options: search.Options = field(default_factory=search.Options)
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.methods:
            raise InputError(f"methods: name at least one of {', '.join(METHODS)}")
        for name in self.methods:
            if name not in METHODS:
                raise InputError(
                    f"methods: there is no method '{name}'; choose among {', '.join(METHODS)}"
                )
        if self.n_records < 1:
            raise InputError("records: the number of records must be at least 1")
        if self.seed < 0:
            raise InputError("seed: it must not be below 0")
        if self.local and self.most_posterior is not None:
            raise InputError(
                "a worst posterior δ (--delta) is for average privacy; ε-LDP bounds it by itself"
            )
        levels = self._default_levels() if self.levels is None else self.levels
        if not levels or len(levels) > _MOST_LEVELS:
            raise InputError(f"levels: give from 1 to {_MOST_LEVELS} of them")
        object.__setattr__(self, "levels", tuple(sorted({float(level) for level in levels})))
        object.__setattr__(self, "methods", tuple(dict.fromkeys(self.methods)))
        for limits in self.limits():
            assert limits is not None  # building them is the check

    def _default_levels(self) -> tuple[float, ...]:
        if self.local:
            low, high = _DEFAULT_EPSILONS
            return tuple(np.geomspace(low, high, DEFAULT_POINTS).tolist())
        highest = _HIGHEST * (1.0 - max(self.prior.shares))
        # Under δ no guess is right in more than δ of the cases, so privacy is at least 1 − δ.
        # (An invalid δ is refused with the limits.)
        delta = self.most_posterior
        lowest = 1.0 - delta if delta is not None and 0.0 < delta < 1.0 else 0.0
        return tuple(np.linspace(min(lowest, highest), highest, DEFAULT_POINTS).tolist())

    def limits(self) -> list[Limits]:
        """Return the limits of every level, in rising order of the levels."""
        levels = self.levels or ()
        if self.local:
            return [local_limits(self.prior.shares, level) for level in levels]
        return [average_limits(self.prior.shares, level, self.most_posterior) for level in levels]


class Row(msgspec.Struct, frozen=True):
    """One method at one level. Errors are of the estimated shares of N records.

    ``epsilon``: ε in nats; None if unbounded.
    """

    method: str
    level: float
    privacy: float | None
    mse: float | None
    worst_posterior: float | None
    lower_bound: float
    ratio: float | None
    bound: str
    epsilon: float | None
    condition: float | None
    outputs: int | None


def measured(
    matrix: FloatArray | None, prior: FloatArray, n_records: int, lower_bound: float
) -> dict[str, Any]:
    """Return a row's measures of its matrix; None each without a matrix."""
    if matrix is None:
        names = ("privacy", "mse", "worst_posterior", "ratio", "epsilon", "condition", "outputs")
        return dict.fromkeys(names)
    mse = float(response.record_mse(matrix, prior)) / n_records
    return {
        "privacy": float(response.privacy(matrix, prior)),
        "mse": mse,
        "worst_posterior": float(response.worst_posterior(matrix, prior)),
        "ratio": mse / lower_bound if lower_bound > 0 else None,
        "epsilon": finite_or_none(float(response.epsilon(matrix))),
        "condition": finite_or_none(float(response.condition(matrix))),
        "outputs": len(matrix),
    }


@dataclass(frozen=True, eq=False)
class Frontier:
    """Rows, matrices and bounds.

    ``matrices``: of the rows, M[y, x] = Pr[y | x], shape (m, n), or None.
    """

    request: Request
    rows: tuple[Row, ...]
    matrices: tuple[FloatArray | None, ...]
    certificates: dict[float, Certificate]
    notes: tuple[str, ...]
    hypervolume_share: float | None


def trace(request: Request, advance: Advance | None = None) -> Frontier:
    """Compute a frontier."""
    # Thousands of small systems: with threads a library spends longer on waiting than on computing,
    # ten times longer next to other load.
    with threadpool_limits(1):
        return _Tracing(request, advance or (lambda _fraction: None)).run()


class _Tracing:
    def __init__(self, request: Request, advance: Advance) -> None:
        self.request = request
        self.prior = np.array(request.prior.shares)
        self.n = len(self.prior)
        self.limits = request.limits()
        self.exact = self.n <= MAX_EXACT_CATEGORIES
        self.rows: list[Row] = []
        self.matrices: list[FloatArray | None] = []
        self.notes: list[str] = []
        self.certificates: dict[float, Certificate] = {}
        generations = request.search_options.max_generations
        self._search_units = (
            math.ceil(generations / _GENERATIONS_A_LEVEL) if SEARCH in request.methods else 0
        )
        single = sum(METHODS[name].matrix is not None for name in request.methods)
        self._units = len(self.limits) * (single + 1) + self._search_units
        self._done = 0.0
        self._advance = advance

    def _finished(self, units: float) -> None:
        self._done += units
        self._advance(min(1.0, self._done / max(1, self._units)))

    def run(self) -> Frontier:
        request = self.request
        if request.prior.disclosure is not None:
            self.notes.append(request.prior.disclosure)
        bounds, attaining = self._bounds()
        covered = None
        for name in request.methods:
            if name == BOUND:
                matrices = attaining
            elif name == SEARCH:
                matrices, covered = self._searched(bounds)
            else:
                matrices = self._tried(name)
            for limits, level, bound, matrix in zip(
                self.limits, request.levels or (), bounds, matrices, strict=True
            ):
                if matrix is not None or name == BOUND:
                    self._add(name, level, limits, bound, matrix)
        if not self.rows:
            raise InputError("no method reaches any of these levels: " + " ".join(self.notes))
        return Frontier(
            request,
            tuple(self.rows),
            tuple(self.matrices),
            self.certificates,
            tuple(self.notes),
            covered,
        )

    def _bounds(self) -> tuple[list[float], Sequence[FloatArray | None]]:
        """Lower bounds on N·MSE by level, and mechanisms that attain them."""
        from deniable.proofs.problem import SolverError
        from deniable.solvers.matrices import frontier

        bounds: list[float] = []
        matrices: list[FloatArray | None] = []
        gaps: list[float] = []
        point: frontier.FrontierPoint | None = None
        # From the most private level on, whose mechanism is within all the others' limits too.
        private_first = not self.request.local
        order = range(len(self.limits))[:: -1 if private_first else 1]
        for at in order:
            level = (self.request.levels or ())[at]
            try:
                point = frontier.solve(self.limits[at], point)
            except SolverError as error:
                raise InputError(f"at level {level:g} {error}") from None
            self.certificates[level] = point.certificate
            bounds.append(point.certificate.record_mse)
            matrices.append(point.matrix)
            gaps.append(point.gap)
            self._finished(1)
        if not self.exact:
            self._say_how_near(max(gaps))
        if private_first:
            bounds.reverse()
            matrices.reverse()
        if BOUND in self.request.methods and self._tells_some(matrices):
            self.notes.append(
                "The mechanism of least error reveals some people's answers for certain (worst "
                "posterior 1); a worst posterior below 1 (--delta) rules that out."
            )
        return bounds, matrices

    def _say_how_near(self, gap: float) -> None:
        known = (
            f"At these levels the least error is at most {number_text(100.0 * gap, 2)} % above it."
            if math.isfinite(gap)
            else "Its distance below the least error is not known."
        )
        self.notes.append(
            f"Beyond {MAX_EXACT_CATEGORIES} categories, and there are {self.n}, the bound shown is "
            f"proven, but it may be below the least error. {known}"
        )

    def _tells_some(self, matrices: Sequence[FloatArray | None]) -> bool:
        return any(
            matrix is not None and response.worst_posterior(matrix, self.prior) >= 1.0 - 1e-9
            for matrix in matrices
        )

    def _generator(self, name: str, *numbers: int) -> np.random.Generator:
        # Each method draws for itself, so that asking for one more changes no other.
        return np.random.default_rng([self.request.seed, list(METHODS).index(name), *numbers])

    def _tried(self, name: str) -> list[FloatArray | None]:
        find = METHODS[name].matrix
        assert find is not None
        matrices: list[FloatArray | None] = []
        refused: dict[str, int] = {}
        for place, limits in enumerate(self.limits):
            trial = Trial(limits, self._generator(name, place), self.request.n_starts)
            try:
                matrix = find(trial)
                if not math.isfinite(response.record_mse(matrix, limits.prior)):
                    raise InputError("its matrix is singular: all truths look alike in its answers")
                matrices.append(matrix)
            except InputError as error:
                refused[str(error)] = refused.get(str(error), 0) + 1
                matrices.append(None)
            self._finished(1)
        self._keep_better(matrices)
        for reason, count in refused.items():
            levels = "level" if count == 1 else "levels"
            self.notes.append(f"{name} is not there at {count} {levels}: {reason}.")
        return matrices

    def _keep_better(self, matrices: list[FloatArray | None]) -> None:
        """Use a more private level's matrix where its error is less: it is within these limits."""
        best: FloatArray | None = None
        least = math.inf
        places = range(len(matrices))
        for place in places if self.request.local else reversed(places):
            matrix = matrices[place]
            if matrix is not None:
                error = float(response.record_mse(matrix, self.prior))
                if error <= least:
                    best, least = matrix, error
                matrices[place] = best

    def _searched(
        self, bounds: Sequence[float]
    ) -> tuple[Sequence[FloatArray | None], float | None]:
        """Return the best matrix of the evolutionary search by level, and the front's share of
        the hypervolume."""
        request, options = self.request, self.request.search_options
        if request.local:
            self.notes.append("search is for average privacy, and is left out under ε-LDP.")
            self._finished(self._search_units)
            return [None for _ in self.limits], None

        def counted(_generation: search.Generation) -> None:
            self._finished(self._search_units / options.max_generations)

        result = search.search(
            self.prior,
            self._generator(SEARCH),
            most_posterior=request.most_posterior,
            options=options,
            on_generation=counted,
        )
        front = result.front
        matrices: list[FloatArray | None] = []
        for level in request.levels or ():
            enough = np.flatnonzero(front.privacy >= level)
            # The front has no dominated matrix: the first that is private enough has least error.
            matrices.append(front.matrices[enough[0]] if len(enough) else None)
        if missed := sum(matrix is None for matrix in matrices):
            self.notes.append(f"search found no matrix as private as {missed} of the levels.")
        most = 1.0 - float(self.prior.max())
        reference = _REFERENCE * max(bounds)
        levels = np.array([0.0, *(level for level in request.levels or () if level > 0)])
        least = [b for level, b in zip(request.levels or (), bounds, strict=True) if level > 0]
        # Below the lowest level the only bound is the error of the true answers.
        alone = (1.0 - float(self.prior @ self.prior)) / self.n
        outer = outer_hypervolume(levels, np.array([alone, *least]), most, reference)
        covered = hypervolume(front.privacy, front.record_mse, reference) / outer
        self.notes.append(
            f"search: {result.n_generations} generations, {len(front)} matrices, at least "
            f"{100 * covered:.1f} % of the hypervolume that any mechanism can cover at these "
            "levels."
        )
        return matrices, covered

    def _add(
        self, name: str, level: float, limits: Limits, bound: float, matrix: FloatArray | None
    ) -> None:
        n_records = self.request.n_records
        lower = bound / n_records
        self.matrices.append(matrix)
        self.rows.append(
            Row(
                method=name,
                level=level,
                lower_bound=lower,
                bound="exact" if self.exact else "proven",
                **measured(matrix, limits.prior, n_records, lower),
            )
        )
