"""Imputed and synthetic rows of both models, against the exact conditional law of a small table."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.randomness import SeededRandomness
from deniable.synthesis import tree
from deniable.synthesis.pairs import PairsModel
from deniable.synthesis.rows import ReleasedRows
from deniable.synthesis.tree import TreeModel
from marked import slow_after
from unit.models.cases import NAMES, SIZES, as_it_is, laws, people, released, truth

LAWS = laws()
Model = PairsModel | TreeModel


def rows_of(law: str, n: int = 800) -> ReleasedRows:
    mechanism = as_it_is() if law == "none" else LAWS[law]
    return ReleasedRows.read(released(mechanism, people(n)), NAMES, {})


def dense(rows: ReleasedRows) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The channel as a matrix by brute force, and the released value of every row."""
    (seen,) = rows.seen(NAMES)
    channel, _ = rows.shown(NAMES, seen.rows, "")
    units = np.eye(12).reshape(*SIZES, 12)
    return channel.forward.apply(units).reshape(-1, 12), seen.cells


def shares(codes: NDArray[np.int64]) -> NDArray[np.float64]:
    flat = np.ravel_multi_index(tuple(codes.reshape(3, -1).astype(np.int64)), SIZES)
    return np.bincount(flat, minlength=12) / flat.size


def fixed(model: Model, monkeypatch: pytest.MonkeyPatch) -> NDArray[np.float64]:
    """Make all copies use the fitted parameters, and return the table they say."""

    def at_fit(fit: object, *_: object) -> NDArray[np.float64]:
        return fit.probabilities.ravel()  # type: ignore[attr-defined]

    monkeypatch.setattr("deniable.synthesis.pairs.drawn_shares", at_fit)
    if isinstance(model, PairsModel):
        return model.fit.probabilities.ravel()
    monkeypatch.setattr(tree, "exponentials", lambda *_: None)
    drawn = model.drawn(model.associations.fitted)
    cells = np.indices(SIZES).reshape(3, -1)
    table = np.ones(12)
    for place, parents in enumerate(drawn.parents):
        of = np.zeros(12, dtype=int)
        for parent in parents:
            of = of * SIZES[parent] + cells[parent]
        table *= drawn.shares[place][of, cells[place]]
    return table


def narrow(rows: ReleasedRows, names: tuple[str, ...]) -> TreeModel:
    """Return the tree that imputed rows are drawn from."""
    return TreeModel.fitted(rows, names, width=1)


@pytest.mark.parametrize("fit", [PairsModel.fitted, narrow])
@pytest.mark.parametrize("law", slow_after(3, [*LAWS, "none"]))
def test_rows_are_drawn_from_their_exact_law(
    law: str, fit: Callable[..., Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(law)
    model = fit(rows, NAMES)
    table = fixed(model, monkeypatch)
    assert table.sum() == pytest.approx(1)
    new = model.synthetic(5, 4000, SeededRandomness(2))
    np.testing.assert_allclose(shares(new.transpose(1, 0, 2)), table, atol=0.02)
    # Of the commonest released values the true ones, by Bayes' rule on the dense matrix.
    matrix, cells = dense(rows)
    old = model.imputed(6, rows.n_rows, SeededRandomness(3)).transpose(1, 0, 2)
    for value in np.argsort(-np.bincount(cells))[:4]:
        mine = cells == value
        exact = table * matrix[value]
        found = shares(old[:, :, mine])
        drawn = 6 * mine.sum()
        wrong = 5 * np.sqrt(exact / exact.sum() / drawn) + 2 / drawn
        assert (abs(found - exact / exact.sum()) <= wrong).all()


def test_the_tree_holds_the_associations_that_there_are() -> None:
    model = TreeModel.fitted(rows_of("none", 6000), NAMES)
    assert {frozenset(edge) for edge in model.to_plain()["pairs"]} >= {frozenset("yb")}
    assert model.to_plain()["cells"] == 12
    some = TreeModel.fitted(rows_of("none", 6000), NAMES, "b").to_plain()
    assert some["about"] == "b"
    assert {("b", "y"), ("b", "a")} <= {tuple(edge) for edge in some["pairs"]}
    nothing = rows_of("product", 60)
    assert TreeModel.fitted(nothing, NAMES).to_plain()["pairs"] == []


@pytest.mark.parametrize("fit", [PairsModel.fitted, TreeModel.fitted])
def test_every_copy_has_parameters_of_its_own(fit: Callable[..., Model]) -> None:
    """Copies drawn with the same parameters would differ by the rows' own chance alone."""
    rows = rows_of("ramp")
    copies = fit(rows, NAMES).synthetic(12, 20_000, SeededRandomness(4))
    each = (copies[:, 0] == 1).mean(axis=1)
    share = each.mean()
    chance = share * (1 - share) / 20_000
    assert each.var(ddof=1) > 4 * chance
    exact = truth().sum(axis=(1, 2))[1]
    assert abs(share - exact) < 4 * each.std() + 0.01


def test_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of("product", 200)
    monkeypatch.setattr(tree, "MOST_IMPUTED", 2)
    with pytest.raises(InputError, match="at most 2 attributes"):
        TreeModel.fitted(rows, NAMES).imputed(5, rows.n_rows, SeededRandomness(1))
    monkeypatch.setattr("deniable.synthesis.pairs.MOST_CELLS", 11)
    with pytest.raises(InputError, match="12 cells"):
        PairsModel.fitted(rows, NAMES)


@pytest.mark.parametrize("law", ["table", "forms"])
def test_an_outcome_goes_with_every_other_attribute(law: str) -> None:
    rows = rows_of(law, 5000)
    model = TreeModel.fitted(rows, NAMES, "y")
    copies = model.synthetic(5, 5000, SeededRandomness(5)).transpose(1, 0, 2)
    for other in (1, 2):
        exact = truth().sum(axis=3 - other)
        found = shares(copies).reshape(SIZES).sum(axis=3 - other)
        error = np.sqrt(model.associations.variance(0, other)).max()
        assert abs(found - exact).max() < 4 * error + 0.01
