"""The laws as drawn, in exact rational arithmetic from the tables the samplers compare with."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.laws.votes import sampling
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.choices import Choice
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.mixture import VoteMixture
from deniable.laws.votes.sampling import (
    BlendSampler,
    SumSampler,
    TableSampler,
    path_slack,
)
from deniable.laws.votes.vote_law import VoteLaw
from deniable.randomness import SeededRandomness
from unit.laws.votes import whole_law as oracle

Drawn = dict[tuple[int, ...], Fraction]


def drawn_by_sums(law: GatedSum, memory: int) -> Drawn:
    """Pr of every pattern, exactly."""
    sampler = SumSampler(law, memory)
    tables = list(sampler.tables())
    out: Drawn = {}

    def visit(i: int, s: int, path: tuple[int, ...], mass: Fraction) -> None:
        if i == law.n_attributes:
            out[path] = out.get(path, Fraction(0)) + mass
            return
        low, high = sampler.backward.bounds(i)
        at = min(max(s, low), high) - low
        choice, dither = tables[i]
        changed = choice.probability(at)
        visit(i + 1, s, (*path, 1), mass * changed)
        n = int(law.weights[i])
        extra = dither.probability(at) if dither is not None else Fraction(0)
        visit(i + 1, s + n, (*path, 0), mass * (1 - changed) * (1 - extra))
        if extra:
            visit(i + 1, s + n + 1, (*path, 0), mass * (1 - changed) * extra)

    visit(0, 0, (), Fraction(1))
    return out


def drawn_by_table(law: VoteMixture) -> Drawn:
    sampler = TableSampler(law.n_categories, law.density)
    out: Drawn = {}
    for path in itertools.product((0, 1), repeat=law.n_attributes):
        mass, prefix = Fraction(1), 0
        for choice, changed in zip(sampler.choices, path, strict=True):
            chance = choice.probability(prefix)
            mass *= chance if changed else 1 - chance
            prefix = 2 * prefix + changed
        out[path] = mass
    return out


def drawn_by_votes(law: VoteBlend) -> Drawn:
    """Pr of every pattern: a vote by its weight, which is a double and drawn exactly, then that."""
    weights = [Fraction(float(weight)) for weight in law.weights_of_parts()]
    out: Drawn = {}
    for weight, part in zip(weights, law.parts, strict=True):
        for path, mass in drawn_by_sums(part, 1 << 28).items():
            out[path] = out.get(path, Fraction(0)) + weight / sum(weights) * mass
    return out


def check(law: VoteLaw, drawn: Drawn) -> None:
    k = law.n_attributes
    assert sum(drawn.values()) == 1
    assert len(drawn) == 2**k
    each, ratio = [], []
    ideal = oracle.density(law)
    for f, row in zip(ideal, itertools.product((0, 1), repeat=k), strict=True):
        others = [a - 1 for a, changed in zip(law.n_categories, row, strict=True) if changed]
        each.append(drawn[row] / math.prod(others))
        ratio.append(float(each[-1]) / f)
    # 1e-13 is the oracle's own rounding.
    assert math.log(max(ratio) / min(ratio)) <= law.drawing_slack + 1e-13
    assert math.log(max(each) / min(each)) <= law.ideal_epsilon + law.drawing_slack


@pytest.mark.parametrize("memory", [0, 1 << 28])
@pytest.mark.parametrize("seed", range(12))
def test_a_sum_as_drawn_stays_within_its_slack_of_the_ideal_law(seed: int, memory: int) -> None:
    law = oracle.random_sum(seed, 5)
    check(law, drawn_by_sums(law, memory))


@pytest.mark.parametrize("seed", range(12))
def test_a_mixture_as_drawn_stays_within_its_slack_of_the_ideal_law(seed: int) -> None:
    law = oracle.random_mixture(seed, 6)
    check(law, drawn_by_table(law))


@pytest.mark.parametrize("seed", range(12))
def test_a_blend_as_drawn_stays_within_its_slack_of_the_ideal_law(seed: int) -> None:
    law = oracle.random_blend(seed, 5)
    check(law, drawn_by_votes(law))


def test_the_slack_of_a_thousand_attributes_is_a_few_parts_in_a_trillion() -> None:
    assert 1e-12 < path_slack(1000, 10.0) < 2e-12


def test_tables_that_are_kept_hold_little_and_have_the_same_probabilities_to_the_last_bit() -> None:
    random = np.random.default_rng(5)
    counts = tuple(random.integers(2, 9, 130).tolist())
    weights = random.integers(0, 40, 130)
    ones = np.ones(130)
    for dither, start, width in ((np.zeros(130), 200, 700), (random.random(130), 0, 90)):
        law = GatedSum(counts, weights, dither, "ramp", start, width, 5.0, ones)
        sampler, whole = SumSampler(law), SumSampler(law, 0)
        list(sampler.tables())
        held, again = list(sampler.tables()), list(whole.tables())
        assert next(sampler.tables())[0] is held[0][0]
        assert next(whole.tables())[0] is not again[0][0]
        for pair, other in zip(held, again, strict=True):
            for choice, exact in zip(pair, other, strict=True):
                if exact is None:
                    assert choice is None
                    continue
                assert choice.words_agree()
                assert np.array_equal(choice.both(), exact.both())
                for state in {0, exact.n_states // 3, exact.n_states - 1}:
                    assert choice.probability(state) == exact.probability(state)


@pytest.mark.parametrize("narrower", [1, 3])
@pytest.mark.parametrize("dithered", [False, True])
def test_tables_built_where_rows_are_draw_what_whole_ones_draw(
    dithered: bool, narrower: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(5)
    counts = tuple(random.integers(2, 9, 130).tolist())
    dither = random.random(130) * dithered
    weights = random.integers(10, 40, 130)
    law = GatedSum(counts, weights, dither, "vote", 1000, 1, 8.0, np.ones(130))
    whole, parts = SumSampler(law), SumSampler(law, 0)
    list(whole.tables())
    # So narrow that now and then a row is further out, and all states are needed.
    usual = np.array(parts._usual)
    middle, half = usual.mean(axis=1).astype(int), np.diff(usual)[:, 0] // (2 * narrower)
    parts.__dict__["_usual"] = [*zip(middle - half, middle + half, strict=True)]
    sums, built = parts._sums, []

    def noted(first: int, rows: NDArray[np.int64]) -> tuple[int, int]:
        low, high = sums(first, rows)
        built.append((low, high) == parts.backward.bounds(first))
        return low, high

    monkeypatch.setattr(parts, "_sums", noted)
    drawn = [[*sampler.walk(500, SeededRandomness(1))] for sampler in (whole, parts)]
    assert np.array_equal(*drawn)
    assert set(built[2:]) == ({False} if narrower == 1 else {False, True})


@pytest.mark.parametrize(("piece", "alone"), [(1 << 16, 0.3), (64, 0.0), (64, 2.0)])
@pytest.mark.parametrize("seed", range(8))
def test_rows_of_all_votes_together_go_where_each_vote_says(
    seed: int, piece: int, alone: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every choice of a row is looked up at the sum that it has, and changes what it returns."""
    law = oracle.random_blend(seed, 7)
    monkeypatch.setattr(sampling, "_PIECE", piece)
    monkeypatch.setattr(sampling, "_ALONE", alone)
    sampler = BlendSampler(law.parts, law.weights_of_parts())
    list(sampler.walk(1, SeededRandomness(seed)))  # from the second time on tables are kept
    votes: list[int] = []
    seen: list[tuple[list[int], list[bool]]] = []
    draw_vote, draw = sampler._vote.draw, Choice.draw

    def noted_vote(*given: Any) -> Any:
        votes.extend(draw_vote(*given).tolist())
        return np.array(votes)

    def noted(self: Choice, states: Any, source: Any) -> Any:
        drawn = draw(self, states, source)
        seen.append((states.tolist(), drawn.tolist()))
        return drawn

    monkeypatch.setattr(sampler._vote, "draw", noted_vote)
    monkeypatch.setattr(Choice, "draw", noted)
    changed = list(sampler.walk(150, SeededRandomness(seed)))
    parts = [SumSampler(part) for part in law.parts]
    sizes = [[c.n_states for c, _ in part.tables()] for part in parts]
    pieces = [range(start, min(start + piece, 150)) for start in range(0, 150, piece)]
    orders = [sorted(rows, key=votes.__getitem__) for rows in pieces]
    sums = [0] * 150
    for i in range(law.n_attributes):
        first = [sum(size[i] for size in sizes[:c]) for c in range(len(parts))]

        def place(row: int, i: int = i, first: list[int] = first) -> int:
            low, high = parts[votes[row]].backward.bounds(i)
            return first[votes[row]] + min(max(sums[row], low), high) - low

        for rows in orders:
            states, drawn = seen.pop(0)
            assert states == list(map(place, rows))
            assert drawn == changed[i][rows].tolist()
            dithered = [row for row in rows if law.parts[votes[row]].dither[i] > 0]
            states, drawn = seen.pop(0)
            assert states == list(map(place, dithered))
            extra = dict.fromkeys(rows, False) | dict(zip(dithered, drawn, strict=True))
            for row, gone in zip(rows, changed[i][rows], strict=True):
                if not gone:
                    sums[row] += int(law.parts[votes[row]].weights[i]) + extra[row]
    assert not seen
