"""The evolutionary search of Huang and Du for square response matrices (OptRR, section V).

Choices that the paper leaves open: the random matrices at the start lean to the diagonal by a
random amount, since outputs can be renamed but crossover mixes outputs by name; distances are
measured as in `spea2`; the columns are repaired from left to right, once, and violations that a
later repair causes in an earlier column are removed by mixing in a uniform answer.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.proofs.prior import checked_prior
from deniable.solvers.matrices import spea2
from deniable.solvers.matrices.response import blend_to_bound, privacy, record_mse, worst_posterior
from deniable.solvers.matrices.spea2 import non_dominated


@dataclass(frozen=True)
class Options:
    """Sizes, rates and stop rules of a search: N_Q (`population_size`), N_V (`archive_size`), N_Ω
    (`optimal_set_size`); `mutation_step`: largest change of the chosen entry; `neighbour`: k of the
    density estimate; `max_stall`: generations in a row that left Ω unchanged, None for never.
    """

    population_size: int = 100
    archive_size: int = 100
    optimal_set_size: int = 1000
    crossover_rate: float = 1.0
    mutation_rate: float = 1.0
    mutation_step: float = 0.3
    neighbour: int = 1
    max_generations: int = 20_000
    max_stall: int | None = None

    def __post_init__(self) -> None:
        for name in ("population_size", "archive_size"):
            if getattr(self, name) < 2:
                raise InputError(f"{name}: it must be at least 2")
        for name in ("optimal_set_size", "neighbour", "max_generations"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}: it must be at least 1")
        if self.max_stall is not None and self.max_stall < 1:
            raise InputError("max_stall: it must be at least 1, or None")
        for name in ("crossover_rate", "mutation_rate"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise InputError(f"{name}: it must be from 0 to 1")
        if not 0.0 < self.mutation_step <= 1.0:
            raise InputError("mutation_step: it must be above 0 and at most 1")


@dataclass(frozen=True, eq=False)
class Matrices:
    """Some response matrices, shape (m, n, n), their privacy and their N·MSE, shape (m,)."""

    matrices: FloatArray
    privacy: FloatArray
    record_mse: FloatArray

    def __len__(self) -> int:
        return len(self.matrices)

    def take(self, chosen: npt.NDArray[np.intp]) -> "Matrices":
        """The chosen ones, copied."""
        return Matrices(self.matrices[chosen], self.privacy[chosen], self.record_mse[chosen])


@dataclass(frozen=True, eq=False)
class Generation:
    """The state after a generation, for a progress bar or a check; do not modify it.

    ``archive``: V before the exchange with Ω; ``population``: Q after it; ``n_optimal``: levels of
    privacy with a matrix in Ω; ``stall``: generations in a row that left Ω unchanged.
    """

    number: int
    archive: Matrices
    population: Matrices
    n_optimal: int
    stall: int


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The matrices of Ω that no other of Ω dominates, by rising privacy, and the stop rule that
    applied."""

    front: Matrices
    n_generations: int
    stopped_by: Literal["max_generations", "max_stall"]


def search(
    prior: npt.ArrayLike,
    generator: np.random.Generator,
    *,
    most_posterior: float | None = None,
    options: Options | None = None,
    on_generation: Callable[[Generation], None] | None = None,
) -> SearchResult:
    """Run the search until a stop rule holds.

    ``prior``: p, shape (n,).

    Source: Huang and Du, section V.

    >>> options = Options(population_size=20, archive_size=20, max_generations=20)
    >>> result = search([0.5, 0.3, 0.2], np.random.default_rng(1), options=options)
    >>> result.stopped_by, bool((np.diff(result.front.record_mse) > 0).all())
    ('max_generations', True)
    """
    chosen = options or Options()
    run = _Run(checked_prior(prior), generator, most_posterior, chosen)
    for generation in run.generations():
        if on_generation is not None:
            on_generation(generation)
        if chosen.max_stall is not None and generation.stall >= chosen.max_stall:
            return SearchResult(run.front(), generation.number, "max_stall")
        if generation.number >= chosen.max_generations:
            break
    return SearchResult(run.front(), chosen.max_generations, "max_generations")


class _Run:
    def __init__(
        self,
        prior: FloatArray,
        generator: np.random.Generator,
        most_posterior: float | None,
        options: Options,
    ) -> None:
        most = float(prior.max())
        if most_posterior is not None and not most < most_posterior <= 1.0:
            raise InputError(f"most_posterior: the bound must be above max p, {most:.6g}, up to 1")
        self.prior = prior
        self.n = n = len(prior)
        self.generator = generator
        self.delta = None if most_posterior == 1.0 else most_posterior
        self.options = options
        size = options.optimal_set_size
        self.optimal = Matrices(np.zeros((size, n, n)), np.zeros(size), np.full(size, np.inf))

    def generations(self) -> Iterator[Generation]:
        """Yield the state after each generation, for ever."""
        population = self.measured(self.bounded(self._random()))
        archive = population.take(np.empty(0, dtype=np.intp))
        number = stall = 0
        while True:
            union = _join(population, archive)
            values = spea2.fitness(union.privacy, union.record_mse, self.options.neighbour)
            kept = spea2.select(union.privacy, union.record_mse, values, self.options.archive_size)
            archive = selected = union.take(kept)
            parents = archive.matrices[self._tournament(values[kept])]
            children = self.mutate(self.crossover(parents))
            population = self.measured(self.bounded(children))
            both, changed = self.exchange(_join(population, archive))
            cut = len(population)
            population = both.take(np.arange(cut))
            archive = both.take(np.arange(cut, len(both)))
            number += 1
            stall = 0 if changed else stall + 1
            n_optimal = int(np.isfinite(self.optimal.record_mse).sum())
            yield Generation(number, selected, population, n_optimal, stall)

    def measured(self, matrices: FloatArray) -> Matrices:
        """Attach the objectives, equations (8) and (10)."""
        error = record_mse(matrices, self.prior)
        error = np.where(np.isfinite(error) & (error > 0), error, np.inf)
        return Matrices(matrices, privacy(matrices, self.prior), error)

    def front(self) -> Matrices:
        """The non-dominated part of Ω."""
        return self.optimal.take(spea2.non_dominated(self.optimal.privacy, self.optimal.record_mse))

    def _random(self) -> FloatArray:
        size, n = self.options.population_size, self.n
        columns = self.generator.dirichlet(np.ones(n), size=(size, n)).transpose(0, 2, 1)
        lean = self.generator.random((size, 1, 1))
        return np.asarray(lean * np.eye(n) + (1.0 - lean) * columns)

    def _tournament(self, values: FloatArray) -> npt.NDArray[np.intp]:
        """Binary tournament, section V.D: indices of the parents, shape (population_size,)."""
        pairs = self.generator.integers(len(values), size=(2, self.options.population_size))
        first_wins = values[pairs[0]] <= values[pairs[1]]
        return np.asarray(np.where(first_wins, pairs[0], pairs[1]))

    def crossover(self, parents: FloatArray) -> FloatArray:
        """Random pairs exchange all columns to the right of a random line (section V.E).

        The last of an odd number is passed on unchanged.
        """
        n_pairs = len(parents) // 2
        children = parents[self.generator.permutation(len(parents))]
        first, second = children[:n_pairs].copy(), children[n_pairs : 2 * n_pairs].copy()
        line = self.generator.integers(1, self.n, size=n_pairs)
        mates = self.generator.random(n_pairs) < self.options.crossover_rate
        swap = (np.arange(self.n) >= line[:, None]) & mates[:, None]
        children[:n_pairs] = np.where(swap[:, None, :], second, first)
        children[n_pairs : 2 * n_pairs] = np.where(swap[:, None, :], first, second)
        return children

    def mutate(self, matrices: FloatArray) -> FloatArray:
        """Change one entry of one column, and the others so that it still sums to 1: an increase is
        taken from the others in proportion to them, a decrease added in proportion to 1 minus them
        (section V.F).
        """
        draw = self.generator
        at = np.flatnonzero(draw.random(len(matrices)) < self.options.mutation_rate)
        if not len(at):
            return matrices
        column = draw.integers(self.n, size=len(at))
        entry = draw.integers(self.n, size=len(at))
        amount = draw.random(len(at)) * self.options.mutation_step
        adds = draw.random(len(at)) < 0.5
        theta = matrices[at, :, column]
        each = np.arange(len(at))
        old = theta[each, entry]
        change = np.where(adds, np.minimum(amount, 1.0 - old), -np.minimum(amount, old))
        weight = np.where(adds[:, None], theta, 1.0 - theta)
        weight[each, entry] = 0.0
        total = weight.sum(axis=1)
        proportion = weight / np.where(total > 0, total, 1.0)[:, None]
        theta = np.maximum(theta - np.where(total > 0, change, 0.0)[:, None] * proportion, 0.0)
        theta[each, entry] = np.where(total > 0, old + change, old)
        result = matrices.copy()
        result[at, :, column] = theta / theta.sum(axis=1, keepdims=True)
        return result

    def bounded(self, matrices: FloatArray) -> FloatArray:
        """Repair matrices whose worst posterior is above δ (section V.G)."""
        if self.delta is None:
            return matrices
        bad = np.flatnonzero(worst_posterior(matrices, self.prior) > self.delta)
        if not len(bad):
            return matrices
        theta = matrices[bad]
        occurrence = theta @ self.prior
        for j in range(self.n):
            p = self.prior[j]
            column = theta[:, :, j]
            # With θ' = δ R/((1 − δ) p), R the mass of the other columns, the posterior is δ.
            most = (occurrence - column * p) * (self.delta / ((1.0 - self.delta) * p))
            cut = np.minimum(column, np.maximum(most, 0.0))
            room = np.maximum(most - cut, 0.0)
            total = room.sum(axis=1, keepdims=True)
            spilled = (column - cut).sum(axis=1, keepdims=True)
            # Σ θ' = δ (1 − p)/((1 − δ) p) ≥ 1, so there is room for all that was cut off.
            cut += room * np.divide(spilled, total, out=np.zeros_like(total), where=total > 0)
            cut /= cut.sum(axis=1, keepdims=True)
            occurrence += (cut - column) * p
            theta[:, :, j] = cut
        result = matrices.copy()
        result[bad] = blend_to_bound(theta, self.prior, self.delta)
        return result

    def exchange(self, members: Matrices) -> tuple[Matrices, bool]:
        """Update Ω and the members by each other, replacing the worse (section V.H); return the
        members, and whether Ω has changed.
        """
        omega = self.optimal
        size = len(omega)
        slot = np.clip((members.privacy * size).astype(np.intp), 0, size - 1)
        # Of the members at one level the best: the first in the order (level, error).
        order = np.lexsort((members.record_mse, slot))
        first = np.concatenate([[True], np.diff(slot[order]) > 0])
        best = order[first]
        best = best[members.record_mse[best] < omega.record_mse[slot[best]]]
        omega.matrices[slot[best]] = members.matrices[best]
        omega.privacy[slot[best]] = members.privacy[best]
        omega.record_mse[slot[best]] = members.record_mse[best]
        worse = np.flatnonzero(members.record_mse > omega.record_mse[slot])
        matrices = members.matrices.copy()
        levels, errors = members.privacy.copy(), members.record_mse.copy()
        matrices[worse] = omega.matrices[slot[worse]]
        levels[worse] = omega.privacy[slot[worse]]
        errors[worse] = omega.record_mse[slot[worse]]
        return Matrices(matrices, levels, errors), len(best) > 0


def _join(one: Matrices, other: Matrices) -> Matrices:
    return Matrices(
        np.concatenate([one.matrices, other.matrices]),
        np.concatenate([one.privacy, other.privacy]),
        np.concatenate([one.record_mse, other.record_mse]),
    )


def hypervolume(privacy: FloatArray, error: FloatArray, reference: float) -> float:
    """Return the area dominated by some points, shape (m,), over privacy from 0 and ln(error) up to
    a reference."""
    _check(reference)
    front = non_dominated(privacy, error)
    front = front[error[front] < reference]
    widths = np.diff(privacy[front], prepend=0.0)
    return float(widths @ np.log(reference / error[front]))


def outer_hypervolume(
    levels: FloatArray, bounds: FloatArray, most_privacy: float, reference: float
) -> float:
    """Return an upper bound on the `hypervolume` of any mechanisms, from lower bounds on errors at
    rising levels of privacy, the first at 0; both of shape (m,). The bound at one level holds up to
    the next."""
    _check(reference)
    if not len(levels) or levels[0] != 0.0 or (np.diff(levels) <= 0).any():
        raise InputError("levels: they must rise strictly, from 0")
    widths = np.diff(np.minimum(levels, most_privacy), append=most_privacy)
    return float(widths @ np.maximum(np.log(reference / bounds), 0.0))


def _check(reference: float) -> None:
    if not reference > 0:
        raise InputError("reference: the largest error that counts must be above 0")
