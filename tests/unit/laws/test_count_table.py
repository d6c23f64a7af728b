"""Tables by the number of changes against the table of all patterns."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from deniable.laws.count_table import CountTable
from deniable.laws.pattern_table import PatternTable


@pytest.mark.parametrize("densities", [[5.0, 1.0, 1.0, 1.0], [1.0, 2.0, 0.5, 7.0]])
def test_it_is_the_table_of_all_patterns(densities: list[float]) -> None:
    table = CountTable.of_counts((4,) * 3, densities)
    patterns = [3 ** sum(s) * table.weights[sum(s)] for s in product((0, 1), repeat=3)]
    whole = PatternTable((4,) * 3, table.bits, tuple(patterns))
    for subset in ((1,), (0, 2), (0, 1, 2)):
        (level,), (expected,) = table.record_level(subset), whole.record_level(subset)
        assert Fraction(*level) == Fraction(*expected)
        np.testing.assert_allclose(
            table.eigenvalues(subset), whole.eigenvalues(subset), rtol=0, atol=2e-16
        )
    assert table.projected(range(3)) == whole
    # A form may draw none of the attributes of a table.
    assert table.projected(()) == whole.projected(())
    given_rest = zip(table.given_rest_levels(), whole.given_rest_levels(), strict=True)
    assert all(Fraction(*own[0]) == Fraction(*other[0]) for own, other in given_rest)
    assert table.pair_eigenvalues() == pytest.approx(whole.pair_eigenvalues())
    high, low = max(densities), min(densities)
    assert float(Fraction(*table.record_level()[0])) == pytest.approx(high / low, rel=1e-15)


def test_many_answers_alike_have_the_level_that_is_asked_for_and_add_up() -> None:
    table = CountTable.of_counts((20,) * 300, [np.exp(4.0)] * 50 + [1.0] * 251)
    ((high, low),) = table.record_level()
    assert abs(high - low * np.exp(4.0)) < low * 1e-14
    assert sum(table.outcomes()) == 1 << table.bits
