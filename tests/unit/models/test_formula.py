"""Formulas as they are read, and the designs that they mean."""

import sys

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.models.cells import Axis, Cells
from deniable.models.formula import (
    check_size,
    design_of,
    prior_precision,
    read_formula,
    symmetric_precision,
    terms_of,
)

CELLS = Cells(
    (Axis("y", ("n", "y")), Axis("a", tuple("pqr")), Axis("x", ("1", "2", "4"), numbers=(1, 2, 4))),
    2,
)


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("log(a)", r"^formula 'y ~ log\(a\)': log\(a\) cannot be computed: 'a' has categories"),
        ("I(a == 'z')", "'z' is not a category of 'a'"),
        ("C(a, Treatment('z'))", "'z' is not a category of 'a'"),
        ("C(a, levels=['p', 'q'])", "cannot be computed"),
        ("bs(x, dff=4)", "cannot be computed: check its arguments"),
        ("log(x - 1)", "is not a finite number for some values of x; leave such rows out"),
    ],
)
def test_what_cannot_be_computed_is_one_sentence(code: str, what: str) -> None:
    with pytest.raises(InputError, match=what) as error:
        design_of(read_formula(f"y ~ {code}"), CELLS)
    assert "ꙮ" not in str(error.value)


def test_without_formulaic_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(InputError, match="pip install 'deniable\\[models\\]'"):
        read_formula("y ~ a")


def test_names_are_in_the_order_written_and_shown_as_they_have_to_be_written() -> None:
    formula = read_formula("`in-come` ~ zeta + C(alpha, Treatment('q')) + `marital-status`")
    assert formula.variables == ("in-come", "zeta", "alpha", "marital-status")
    cells = Cells((CELLS.axes[0], Axis("a:b", ("p", "_0")), Axis("log", ("0", "1"))), 3)
    columns = design_of(read_formula("y ~ `a:b`*log"), cells)
    assert columns.names[1:4] == ("`a:b`[T._0]", "log[T.1]", "`a:b`[T._0]:log[T.1]")


def test_a_response_named_as_a_placeholder_is_another_column() -> None:
    cells = Cells((Axis("ꙮ0ꙮ", ("n", "y")), Axis("a", tuple("pqr"))), 2)
    terms = terms_of(read_formula("ꙮ0ꙮ ~ a"), cells)
    assert [term.names for term in terms] == [("Intercept",), ("a[T.q]", "a[T.r]")]


def test_the_symmetric_prior_is_of_differences_and_their_differences() -> None:
    cells = Cells((CELLS.axes[0], Axis("a", ("p", "q"))), 2)
    found = symmetric_precision(design_of(read_formula("~ y*a"), cells), cells, None)
    # ((y + y:a/2)² + (a + y:a/2)²)/9 + (y:a)²/6.25
    half = 1 / 18
    expected = [[2 * half, 0, half], [0, 2 * half, half], [half, half, half + 1 / 6.25]]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_regression_has_the_covariates_whole_distribution_beside_its_terms() -> None:
    columns = design_of(read_formula("y ~ a + x"), CELLS)
    assert columns.names[:4] == ("Intercept", "a[T.q]", "a[T.r]", "x")
    assert columns.terms[:4] == ("(Intercept)", "a", "a", "x")
    assert columns.order[:4] == (1, 2, 2, 2)
    assert len(columns.names) == 4 + 8
    full = np.column_stack([np.ones(18), columns.values])
    assert np.linalg.matrix_rank(full) == 13
    assert not columns.values[:9, :4].any()  # where the response is no


def test_from_500_cells_on_the_covariates_have_all_pairs() -> None:
    sizes = (8, 8, 8)
    axes = [Axis(f"c{i}", tuple(map(str, range(n)))) for i, n in enumerate(sizes)]
    cells = Cells((CELLS.axes[0], *axes), 4)
    columns = design_of(read_formula("y ~ c0 + c1 + c2"), cells)
    assert len(columns.names) == 22 + 3 * 7 + 3 * 49


def test_a_log_linear_model_has_its_terms_alone() -> None:
    columns = design_of(read_formula("~ y*a"), Cells(CELLS.axes[:2], 2))
    assert columns.names == ("y[T.y]", "a[T.q]", "a[T.r]", "y[T.y]:a[T.q]", "y[T.y]:a[T.r]")
    assert columns.order == (1, 1, 1, 2, 2)
    np.testing.assert_allclose(prior_precision(columns), [1 / 9] * 3 + [1 / 6.25] * 2)


def test_the_prior_of_a_number_is_for_one_standard_deviation_of_it() -> None:
    columns = design_of(read_formula("y ~ x"), Cells((CELLS.axes[0], CELLS.axes[2]), 1))
    assert prior_precision(columns)[1] == pytest.approx(np.var([1, 2, 4]) / 6.25)


def test_a_model_too_large_is_refused_before_work_starts() -> None:
    wide = Cells(tuple(Axis(f"c{i}", tuple(map(str, range(60)))) for i in range(3)), 3)
    with pytest.raises(InputError, match=r"has 216,000 cells, 60 \(c0\) × 60 \(c1\) × 60 \(c2\)"):
        design_of(read_formula("~ c0 + c1 + c2"), wide)
    two = Cells((CELLS.axes[0], *wide.axes[:2]), 3)
    with pytest.raises(InputError, match="the model has 3,599 parameters on 7,200 cells"):
        design_of(read_formula("y ~ c0*c1"), two)
    check_size(CELLS, 10, "y ~ a")
