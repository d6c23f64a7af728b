"""Formulas as they are read, and the designs that they mean."""

import sys

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.models.cells import Axis, Cells
from deniable.models.formula import check_size, design_of, prior_precision, read_formula

CELLS = Cells(
    (Axis("y", ("n", "y")), Axis("a", tuple("pqr")), Axis("x", ("1", "2", "4"), numbers=(1, 2, 4))),
    2,
)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("y", "is not a formula; expected 'response ~ covariates'"),
        ("y ~~ a", "is not a formula"),
        ("y ~ a +", r"formula 'y ~ a \+': Operator"),
        ("y ~ (a", r"Could not find matching context marker"),
        ("y ~ .", "requires additional context"),
        ("log(y) ~ a", "the left side is one column as it is"),
        ("y + z ~ a", "the left side is one column as it is"),
        ("y | z ~ a", "the left side is one column as it is"),
        ("y ~ a | b", r"the right side has one part, without \|"),
        ("y ~ y + a", "'y' stands on both sides"),
        ("y ~ 1", "name at least one column on the right side"),
    ],
)
def test_a_formula_with_a_mistake_is_one_sentence(text: str, what: str) -> None:
    with pytest.raises(InputError, match=what) as error:
        read_formula(text)
    assert "\n" not in str(error.value)
    assert "\x1b" not in str(error.value)


def test_what_cannot_be_evaluated_is_said() -> None:
    with pytest.raises(InputError, match=r"formula 'y ~ foo\(a\)': .*between backticks"):
        design_of(read_formula("y ~ foo(a)"), CELLS)


def test_without_formulaic_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(InputError, match="pip install 'deniable\\[models\\]'"):
        read_formula("y ~ a")


def test_names_are_in_the_order_written_and_stand_in_backticks() -> None:
    formula = read_formula("`in-come` ~ zeta + C(alpha, Treatment('q')) + `marital-status`")
    assert formula.variables == ("in-come", "zeta", "alpha", "marital-status")


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
