"""What is stated of a design: computed once, and right where it can be computed otherwise."""

import math
from statistics import median

import pytest

from deniable.design.design import design
from deniable.schema import Attribute, Schema
from deniable.statement import account as module
from deniable.statement.record import design_to_plain, mechanism_to_plain

SCHEMA = Schema.anonymous((2, 3, 4))
DESIGN = design(SCHEMA, epsilon=3.0)


def test_the_pairs_are_the_eigenvalues_of_the_law() -> None:
    (block,) = DESIGN.mechanism.blocks
    names = SCHEMA.names
    for (a, b), phi in DESIGN.account.pairs:
        places = (names.index(a), names.index(b))
        assert phi == pytest.approx(block.law.eigenvalues(places)[1, 1], rel=1e-12)
    assert len(DESIGN.account.pairs) == 3


def test_the_saving_is_the_ratio_of_variances_of_shares_under_two_designs() -> None:
    levels = DESIGN.mechanism.attribute_epsilon
    scale = DESIGN.epsilon / math.fsum(levels)
    rival = design(SCHEMA, attribute_epsilon=[scale * x for x in levels], method="kronecker")
    assert rival.epsilon == pytest.approx(DESIGN.epsilon, rel=1e-9)
    mine, its = (d.account.strength.attenuation for d in (DESIGN, rival))
    ratios = [(a / b) ** 2 for a, b in zip(mine, its, strict=True)]
    assert DESIGN.account.saving.marginals == pytest.approx(median(ratios), rel=1e-9)
    pairs = [
        (a / b) ** 2
        for (_, a), (_, b) in zip(DESIGN.account.pairs, rival.account.pairs, strict=True)
    ]
    assert DESIGN.account.saving.pairs == pytest.approx(median(pairs), rel=1e-9)


def test_nothing_is_designed_while_a_design_is_written_down(monkeypatch) -> None:
    made = design(SCHEMA, epsilon=2.0)
    calls = []
    count = module.mechanism_strength
    monkeypatch.setattr(module, "mechanism_strength", lambda m: calls.append(m) or count(m))
    mechanism_to_plain(made), design_to_plain(made), made.account.comparison_to_plain()
    assert len(calls) == 1


def test_there_is_no_comparison_where_it_means_nothing() -> None:
    alone = design(Schema.anonymous((4,)), epsilon=1.0)
    product = design(SCHEMA, epsilon=1.0, method="kronecker")
    assert alone.account.comparison_to_plain() is None
    assert product.account.comparison_to_plain() is None
    kept = Schema((Attribute("a", ("x", "y")), Attribute("b", ("x", "y"))), keep=("b",))
    assert design(kept, epsilon=1.0).account.pairs == ()


def test_pairs_of_very_many_attributes_are_left_out() -> None:
    many = design(Schema.anonymous((2,) * 51), epsilon=51.0, method="kronecker")
    assert many.account.pairs is None
    assert many.account.pairs_to_plain() is None
