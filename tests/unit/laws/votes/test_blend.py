"""Every answer of a blend of votes against the enumerated law."""

import math
from dataclasses import replace

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws import law_from_plain
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import GatedSum
from unit.laws.votes import whole_law as oracle


def test_a_vote_blended_with_itself_is_that_vote() -> None:
    alone = oracle.random_sum(3)
    bare = replace(alone, retention=np.ones(alone.n_attributes))
    blended = VoteBlend((bare, bare), np.array([0.37, 2.0]), alone.retention)
    np.testing.assert_allclose(blended.moments().keep, alone.moments().keep, rtol=1e-13)
    np.testing.assert_allclose(blended.given_rest(), alone.given_rest(), rtol=1e-13)


def test_another_height_keeps_votes_and_alpha() -> None:
    law = oracle.random_blend(5)
    moved = law.at_height(1.25)
    assert moved.ideal_epsilon == 1.25
    parts = tuple(replace(part, height=1.25) for part in law.parts)
    fresh = VoteBlend(parts, law.alpha, law.retention)
    assert moved == fresh != law
    assert hash(moved) == hash(fresh)
    np.testing.assert_allclose(moved.moments().keep, fresh.moments().keep, rtol=1e-13)


def test_gates_of_several_heights_have_the_level_of_their_two_ends() -> None:
    low = GatedSum((2, 2), np.array([1, 1]), np.zeros(2), "vote", 1, 1, 1.0, np.ones(2))
    high = GatedSum((2, 2), np.array([1, 1]), np.zeros(2), "ramp", 0, 2, 3.0, np.ones(2))
    law = VoteBlend((low, high), np.array([2.0, 0.5]), np.ones(2))
    ends = [2.0 * math.exp(sign * 0.5) + 0.5 * math.exp(sign * 1.5) for sign in (1, -1)]
    assert law.ideal_epsilon == pytest.approx(math.log(ends[0] / ends[1]), rel=1e-14)
    assert law.record_level() == pytest.approx(law.ideal_epsilon, abs=1e-12)
    # A ramp of 3 nats over two attributes falls by 1.5 with each.
    np.testing.assert_allclose(law.given_rest(), 1.5, rtol=1e-12)
    plain = law.to_plain()
    assert [vote["gate"] for vote in plain["votes"]] == ["vote", "ramp"]
    assert VoteBlend.from_plain(plain, (2, 2)) == law
    with pytest.raises(InputError, match="no other height"):
        law.at_height(2.0)


def test_what_does_not_fit_together_is_refused() -> None:
    law = oracle.random_blend(1)
    first, ones = law.parts[0], np.ones(law.n_attributes)
    for parts, alpha, retention, sentence in (
        ((), [], ones, "one α per vote"),
        ((first,), [0.5, 0.5], ones, "one α per vote"),
        ((first,), [0.0], ones, "lie between"),
        ((replace(first, retention=0.5 * ones),), [1], ones, "without retention"),
        ((first, replace(first, n_categories=tuple(first.counts + 1))), [1, 1], ones, "same attri"),
        ((first,), [1], 0 * ones, "retention"),
    ):
        with pytest.raises(InputError, match=sentence):
            VoteBlend(parts, np.array(alpha, dtype=np.float64), retention)


def test_the_blend_that_was_drawn_bolder_than_it_stated_is_refused() -> None:
    """Its first gate was so narrow that dividing by the width overflowed: the account and the
    sampler took it for two different gates, and the record's 1.6 nats were 7.3 when drawn."""
    votes = [
        {"start": "0x1p+0", "width": "0x0.0000000000001p-1022", "weights": ["1", "0"]},
        {"start": "0x1p+0", "width": "0x1p+0", "weights": ["0", "3"]},
    ]
    same = {"gate": "vote", "height": (8.0).hex(), "dither": [(0.5).hex(), (0.0).hex()]}
    plain = {
        "family": "blended-votes",
        "votes": [vote | same for vote in votes],
        "shares": [(1.0).hex(), (1.0).hex()],
        "retention": [(1.0).hex()] * 2,
    }
    with pytest.raises(InputError, match="width of 1 or more"):
        law_from_plain(plain, (2, 10))
