"""One rule says of every share whether it can be read."""

import numpy as np
import pytest

from deniable.mechanism.readability import Readability, is_readable
from deniable.readable import RULE


def test_a_share_is_read_by_its_own_size_and_by_ten_points() -> None:
    shares = np.array([0.5, 0.5, 0.1, 0.1, -0.1, 1.05, 1.2, np.nan, 0.5])
    errors = np.array([0.05, 0.051, 0.05, 0.051, 0.01, 0.04, 0.04, 0.01, np.nan])
    assert is_readable(shares, errors).tolist() == [
        *(True, False, True, False, False, True, False, False, False),
    ]
    assert "two standard errors" in RULE
    assert "10 points" in RULE


def test_a_table_counts_its_cells_and_means_the_squares_of_their_errors() -> None:
    one = Readability.of(("a",), [0.6, 0.38, 0.02], [0.03, 0.04, np.inf], 100, "population")
    assert (one.cells, one.readable) == (3, 2)
    assert one.standard_error == pytest.approx(np.sqrt((0.03**2 + 0.04**2) / 2))
    assert one.is_readable
    assert not Readability.of(("a",), [0.6, 0.38, 0.02], [0.3] * 3, 100, "table").is_readable
    plain = one.to_plain(within=0.01)
    assert plain["half_width"] == pytest.approx(1.96 * plain["standard_error"], rel=1e-4)
    assert plain["rows_needed"] == one.rows_for(0.01)
    assert one.half_width * (100 / one.rows_for(0.01)) ** 0.5 <= 0.01
    assert plain["target"] == "population"


def test_what_is_wiped_out_needs_no_number_of_rows() -> None:
    gone = Readability.of(("a",), [0.5, 0.5], [np.inf, np.inf], 100, "table")
    assert gone.standard_error is gone.half_width is gone.readable_from is None
    assert gone.readable == 0
