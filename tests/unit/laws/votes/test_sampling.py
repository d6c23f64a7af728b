"""The laws as drawn, in exact rational arithmetic from the tables the samplers compare with."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deniable.laws.votes import sampling
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.choices import Choice
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.sampling import SumSampler, path_slack
from deniable.laws.votes.vote_law import VoteLaw
from deniable.randomness import SeededRandomness
from marked import slow_after
from unit.laws.votes import whole_law as oracle

Drawn = dict[tuple[int, ...], Fraction]


def drawn_by_sums(law: GatedSum, memory: int = 1 << 28) -> Drawn:
    """Pr of every pattern, exactly, from what random bits are compared with."""
    sampler = SumSampler([law], memory=memory)
    (part,) = sampler.parts
    out: Drawn = {}

    def visit(i: int, s: int, path: tuple[int, ...], mass: Fraction) -> None:
        if i == law.n_attributes:
            out[path] = out.get(path, Fraction(0)) + mass
            return
        at = min(max(s, part.backward.bounds(i)[0]), part.backward.bounds(i)[1])
        state = at - part.backward.bounds(i)[0]
        changed, n = stages[i]._change.probability(state), int(law.weights[i])
        visit(i + 1, s, (*path, 1), mass * changed)
        extra = stages[i]._dither.probability(state) if law.dither[i] > 0 else Fraction(0)
        visit(i + 1, s + n, (*path, 0), mass * (1 - changed) * (1 - extra))
        if extra:
            visit(i + 1, s + n + 1, (*path, 0), mass * (1 - changed) * extra)

    stages = list(sampler._built())
    visit(0, 0, (), Fraction(1))
    assert list(map(out.get, itertools.product((0, 1), repeat=law.n_attributes))) == (
        sampler.exact_patterns()
    )
    return out


def drawn_by_votes(law: VoteBlend) -> Drawn:
    """Pr of every pattern: a vote by its weight, which is a double and drawn exactly, then that."""
    parts = SumSampler(law.parts, law.alpha.tolist()).parts
    weights = [
        Fraction(float(alpha) * part.first) for alpha, part in zip(law.alpha, parts, strict=True)
    ]
    out: Drawn = {}
    for weight, part in zip(weights, law.parts, strict=True):
        for path, mass in drawn_by_sums(part).items():
            out[path] = out.get(path, Fraction(0)) + weight / sum(weights) * mass
    return out


def drawn(law: VoteLaw) -> Drawn:
    """Pr of every pattern before own responses."""
    if isinstance(law, GatedSum):
        return drawn_by_sums(law)
    assert isinstance(law, VoteBlend)
    return drawn_by_votes(law)


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
def test_several_votes_as_drawn_stay_within_their_slack_of_the_ideal_law(seed: int) -> None:
    law = oracle.random_blend(seed, 5)
    check(law, drawn_by_votes(law))


def test_the_slack_of_a_thousand_attributes_is_a_few_parts_in_a_trillion() -> None:
    assert 1e-12 < path_slack(1000, 10.0) < 2e-12


@pytest.mark.parametrize("dithered", slow_after(1, [False, True]))
def test_whatever_is_held_the_probabilities_are_the_same_to_the_last_bit(
    dithered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(5)
    counts = tuple(random.integers(2, 9, 130).tolist())
    weights, dither = random.integers(0, 40, 130), random.random(130) * dithered
    law = GatedSum(counts, weights, dither, "ramp", 200, 700, 5.0, np.ones(130))
    every = SumSampler([law])
    with monkeypatch.context() as patch:
        patch.setattr(sampling, "_HELD", (4,))
        some = SumSampler([law])
    none = SumSampler([law], memory=0)
    assert [sampler.kept for sampler in (every, some, none)] == [True, True, False]
    assert len(some.parts[0].held) < 40
    rows = [[*sampler.walk(500, SeededRandomness(1))] for sampler in (every, some, none)]
    assert np.array_equal(rows[0], rows[1])
    assert np.array_equal(rows[0], rows[2])
    for stages in zip(every._built(), some._built(), none._built(), strict=True):
        n_states = stages[0]._change.n_states
        for state in {0, n_states // 3, n_states - 1}:
            assert len({stage._at(state) for stage in stages}) == 1
    for sampler in (every, some, none):
        assert sampler.words_agree()
        assert next(sampler._built())._change is next(sampler._built())._change or sampler is none


def test_every_state_of_every_sum_has_the_probabilities_of_that_sum_alone() -> None:
    blend = next(law for seed in range(9) if len((law := oracle.random_blend(seed, 5)).parts) > 2)
    joint, laws = SumSampler(blend.parts, blend.alpha.tolist())._built(), blend.parts
    alone = zip(*(SumSampler([law])._built() for law in laws), strict=True)
    for stage, singles in zip(joint, alone, strict=True):
        for one, both in ((stage._change, "_change"), (stage._dither, "_dither")):
            each = [getattr(single, both) for single in singles]
            expected = [choice.probability(s) for choice in each for s in range(choice.n_states)]
            assert [one.probability(s) for s in range(one.n_states)] == expected


def test_a_sum_with_dither_beside_one_without_draws_it_by_its_own_states() -> None:
    # All three are kept, but for e^-40: the first sum, with half a unit of dither at the second
    # attribute, wins at 4 only, the other at 3.
    ones, dither = np.ones(3, dtype=np.int64), np.array([0.0, 0.5, 0.0])
    with_dither = GatedSum((2, 2, 2), ones, dither, "vote", 3, 1, 40.0, np.ones(3))
    without = GatedSum((2, 2, 2), ones, 0.0 * dither, "vote", 2, 1, 40.0, np.ones(3))
    sampler = SumSampler([with_dither, without], [1.0, 1.0])
    assert not np.any([*sampler.walk(500, SeededRandomness(1))])


@pytest.mark.parametrize("piece", [1 << 16, 64])
@pytest.mark.parametrize("seed", range(8))
def test_rows_of_all_votes_together_go_where_each_vote_says(
    seed: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every choice of a row is looked up at the sum that it has, and changes what it returns."""
    law = oracle.random_blend(seed, 7)
    monkeypatch.setattr(sampling, "_PIECE", piece)
    sampler = SumSampler(law.parts, law.alpha.tolist())
    votes: list[int] = []
    seen: list[tuple[list[int], list[bool]]] = []
    draw_vote, draw = sampler._which.draw, Choice.draw

    def noted_vote(*given: Any) -> Any:
        votes.extend(draw_vote(*given).tolist())
        return np.array(votes)

    def noted(self: Choice, states: Any, source: Any) -> Any:
        drawn = draw(self, states, source)
        seen.append((states.tolist(), drawn.tolist()))
        return drawn

    monkeypatch.setattr(sampler._which, "draw", noted_vote)
    monkeypatch.setattr(Choice, "draw", noted)
    changed = list(sampler.walk(150, SeededRandomness(seed)))
    backs = [part.backward for part in sampler.parts]
    pieces = [range(start, min(start + piece, 150)) for start in range(0, 150, piece)]
    orders = [sorted(rows, key=votes.__getitem__) for rows in pieces]
    sums = [0] * 150
    for i in range(law.n_attributes):
        first = [sum(back.n_states(i) for back in backs[:c]) for c in range(len(backs))]

        def place(row: int, i: int = i, first: list[int] = first) -> int:
            low, high = backs[votes[row]].bounds(i)
            return first[votes[row]] + min(max(sums[row], low), high) - low

        for rows in orders:
            states, drawn = seen.pop(0)
            assert states == list(map(place, rows))
            assert drawn == changed[i][rows].tolist()
            dithered = [row for row in rows if law.parts[votes[row]].dither[i] > 0]
            extra = dict.fromkeys(rows, False)
            if any(part.dither[i] > 0 for part in law.parts):
                states, drawn = seen.pop(0)
                assert states == list(map(place, dithered))
                extra |= dict(zip(dithered, drawn, strict=True))
            for row, gone in zip(rows, changed[i][rows], strict=True):
                if not gone:
                    sums[row] += int(law.parts[votes[row]].weights[i]) + extra[row]
    assert not seen
