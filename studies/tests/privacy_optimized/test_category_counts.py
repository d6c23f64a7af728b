"""Figures 3 and 4: the numbers behind the verdicts, in the quick form."""

import pytest

from deniable_studies.privacy_optimized import category_counts
from deniable_studies.privacy_optimized.category_counts import MOST, SAME_MOST
from deniable_studies.privacy_optimized.instances import ATTRIBUTES, Instance, draw_instances
from deniable_studies.study import Findings, Setting, Verdict


@pytest.fixture(scope="module")
def of_counts() -> Findings:
    return category_counts.STUDY.run(Setting(quick=True))


def verdict(findings: Findings, part: str) -> Verdict:
    (found,) = [c.verdict for c in findings.claims if part in c.statement]
    return found


def test_what_has_a_proof_comes_out(of_counts: Findings) -> None:
    assert verdict(of_counts, "The value of (10) tends to increase") is Verdict.REPRODUCED
    assert verdict(of_counts, "No clear trend in the value of (11)") is Verdict.NOT
    assert verdict(of_counts, "However, the increasing trend") is Verdict.PARTLY
    assert verdict(of_counts, "significantly stronger") is not Verdict.NOT


def test_the_draws_have_the_ranges_that_the_choices_state(of_counts: Findings) -> None:
    table = of_counts.table("instances")
    for k, text in zip(table.column("attributes"), table.column("categories"), strict=True):
        counts = [int(count) for count in str(text).split()]
        assert len(counts) == k
        assert 2 <= min(counts) <= max(counts) <= MOST[len(counts)]
    assert all(f"2 to {most} (k = {k})" in of_counts.choices[0] for k, most in MOST.items())
    counts, asked = category_counts.draw_same(Setting().generator(1), 2000)
    assert (min(counts), max(counts)) == (2, SAME_MOST)
    assert set(asked) == {3.0}


def test_few_categories_are_near_optimal_up_to_about_30_in_all(of_counts: Findings) -> None:
    table = of_counts.table("thresholds")
    assert table.column("attributes") == [*ATTRIBUTES]
    # 28 to 33 with 200 draws.
    assert all(20 <= float(value) <= 40 for value in table.column("within_1_percent"))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_counts_and_the_second_set_is_another() -> None:
    def draws(stream: int) -> object:
        return draw_instances(Setting(), (3,), 4, category_counts.draw_counts, stream=stream)

    assert draws(0) == draws(0) != draws(1)


def of_sizes(sum_categories: int, excess: float) -> Instance:
    counts = (sum_categories - 4, 2, 2)
    return Instance(counts, (3.0,) * 3, (3.0,) * 3, 4 * excess, 4.0, 4.0, 0.0, None, 1.0)


def test_thresholds_are_read_per_tolerance() -> None:
    draws = {3: [of_sizes(total, 1 + (total - 10) / 100) for total in range(10, 30)]}
    assert category_counts.thresholds(draws, 1.05) == {3: 15}
    assert category_counts.thresholds(draws, 1.1) == {3: 20}
    assert category_counts.thresholds({3: [of_sizes(10, 1.5)]}, 1.1) == {3: None}


def test_the_threshold_verdict_asks_for_a_factor_and_for_all_four() -> None:
    for ends, expected in (
        ((30, 30, 30, 35), Verdict.REPRODUCED),
        ((30, 30, 30, 43), Verdict.PARTLY),
        ((30, 30, 30, 60), Verdict.NOT),
        ((30, 30, 30, None), Verdict.NOT),
    ):
        # Near-optimal up to the end and nowhere beyond; None: nowhere at all.
        draws = {
            k: [of_sizes(20, 1.5)] * 2 if end is None else [of_sizes(end, 1), of_sizes(99, 1.5)]
            for k, end in zip(ATTRIBUTES, ends, strict=True)
        }
        assert category_counts.same_threshold(draws, draws).verdict is expected


def test_every_figure_can_be_drawn(of_counts: Findings, draw_all) -> None:
    draw_all(of_counts)


def test_the_thresholds_of_levels_have_to_vary_more_with_k() -> None:
    draws = {k: [of_sizes(30, 1), of_sizes(99, 1.5)] for k in ATTRIBUTES}
    same = {k: [of_sizes(30, 1)] * 2 for k in ATTRIBUTES}
    assert category_counts.more_sensitive(draws, same).verdict is Verdict.NOT
    levels = {
        k: [Instance((2,) * k, (3.0,) * k, (3.0,) * k, 4.0, 4.0, 4.0, 0.0, None, 1.0)]
        for k in ATTRIBUTES
    }
    assert category_counts.more_sensitive(draws, levels).verdict is Verdict.REPRODUCED
    never = {k: [of_sizes(30, 1.5)] for k in ATTRIBUTES}
    assert category_counts.more_sensitive(draws, never).verdict is Verdict.UNTESTED
