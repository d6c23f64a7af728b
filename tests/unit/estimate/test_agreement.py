"""Whether forms agree: the χ² of a weighted fit, what it finds and refuses."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import chi2
from statsmodels.stats.multitest import multipletests

import deniable
from deniable.errors import InputError
from deniable.estimate.agreement import Agreement, FormAgreement, holm
from deniable.estimate.source import open_release
from deniable.estimate.tabulate import Counts
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.published import PublishedChannel
from deniable.mechanism.strata import Strata
from deniable.randomness import SeededRandomness
from deniable.schema import Attribute, Schema
from unit.estimate import releases
from unit.mechanism.test_published import BROAD, ONE, dense


@pytest.fixture(autouse=True)
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same release every time."""
    monkeypatch.setattr("deniable.api.SystemRandomness", lambda: SeededRandomness(1))


def expected(mechanism: Mechanism, name: str, n: float, seed: int = 3) -> NDArray[np.float64]:
    channel = PublishedChannel(mechanism, (name,)).of_every_form()
    forward, _ = dense(channel)
    (a,) = channel.n_categories
    return n * forward @ np.random.default_rng(seed).dirichlet(np.full(a, 5.0))


def agreement_of(mechanism: Mechanism, name: str, counts: NDArray[Any]) -> FormAgreement:
    (found,) = Agreement((name,)).answer(Counts.of(mechanism, np.round(counts)))
    return found


@pytest.mark.parametrize("name", ["a1", "a2", "a3"])
def test_what_is_expected_of_one_population_agrees(name: str) -> None:
    (found,) = agreement_of(ONE, name, expected(ONE, name, 10**8)).tests
    a = ONE.schema.n_categories[ONE.schema.position(name)]
    assert ONE.forms is not None
    asking = sum(ONE.schema.position(name) in form.asked for form in ONE.forms.forms)
    assert (found.forms, found.degrees_of_freedom) == (asking, (asking - 1) * (a - 1))
    assert found.statistic < 1e-3


def test_the_statistic_is_the_least_over_all_populations() -> None:
    random, name = np.random.default_rng(8), "a2"
    counts = random.poisson(expected(ONE, name, 50_000)).astype(float)
    (found,) = agreement_of(ONE, name, counts).tests
    channel = PublishedChannel(ONE, (name,)).of_every_form()
    pieces = [piece.ravel() for piece in channel.forward.pieces(counts)]
    asked = [
        (piece, part.apply(np.eye(3)).reshape(-1, 3))
        for piece, part in zip(pieces, channel.forward.parts, strict=True)
        if piece.size > 1
    ]

    def distance(free: NDArray[np.float64]) -> float:
        shares = np.append(free, 1 - free.sum())
        total = 0.0
        for piece, matrix in asked:
            theta = piece.sum() * matrix @ shares
            total += float(((piece - theta) ** 2 / theta).sum())
        return total

    least = minimize(distance, np.full(2, 1 / 3), method="Nelder-Mead", options={"xatol": 1e-9})
    assert found.statistic == pytest.approx(least.fun, rel=0.01)
    assert found.p_value == pytest.approx(chi2.sf(found.statistic, found.degrees_of_freedom))


def test_answers_that_name_sets_are_compared_too() -> None:
    for name in BROAD.schema.names:
        found = agreement_of(BROAD, name, expected(BROAD, name, 10**8))
        if found.tests:
            assert found.p_value > 0.5
        else:
            assert found.untested == (name,)


def test_a_form_that_says_otherwise_is_found_and_rare_answers_are_taken_together() -> None:
    counts = expected(ONE, "a2", 20_000)
    channel = PublishedChannel(ONE, ("a2",)).of_every_form()
    pieces = list(channel.forward.pieces(counts))
    wrong = next(piece for piece in pieces if piece.size > 1)
    wrong[:] = wrong.sum() * np.array([[0.6], [0.3], [0.1]]).reshape(wrong.shape)
    assert agreement_of(ONE, "a2", counts).p_value < 1e-6
    few = agreement_of(ONE, "a2", expected(ONE, "a2", 100)).tests[0]
    assert few.degrees_of_freedom < 2 * (few.forms - 1)


def released(keep: tuple[str, ...] = ()) -> tuple[Any, Strata]:
    schema = Schema(tuple(Attribute(f"a{i}", tuple("abc")) for i in (1, 2, 3)), keep=keep)
    plan = deniable.design(schema, epsilon=3, method="forms", pairs=0.5)
    random = np.random.default_rng(1)
    table = {name: random.choice(list("abc"), 3000, p=[0.5, 0.3, 0.2]) for name in schema.names}
    towns = {name: random.choice(["n", "s"], 3000) for name in keep}
    return deniable.randomize(pa.table(table | towns), plan), Strata.one(plan.mechanism)


def test_a_release_is_tested_whole_and_group_by_group() -> None:
    rows, strata = released(("town",))
    (whole,) = Agreement(()).run(open_release(rows, strata))
    assert [test.attribute for test in whole.tests] == ["a1", "a2", "a3"]
    assert whole.n_records == 3000
    assert 1e-3 < whole.p_value <= 1
    assert [row["p_holm"] for row in whole.table()] == pytest.approx(
        multipletests([test.p_value for test in whole.tests], method="holm")[1].tolist()
    )
    assert "with one population" in whole.caption()
    assert "cannot find a wrong attenuation" in whole.remarks()[-1]
    query = Agreement(("a1",), by=("town",))
    north, south = query.run(open_release(rows, strata))
    assert north.n_records + south.n_records == 3000
    assert len(query.to_plain([north, south])["groups"]) == 2


def test_what_cannot_be_compared_is_said() -> None:
    rows, strata = released()
    release = open_release(rows, strata)
    with pytest.raises(InputError, match="takes no weights"):
        Agreement((), weights="w")
    with pytest.raises(InputError, match="within subgroups of 'a2', which is randomized"):
        Agreement(("a1",), by=("a2",)).run(release)
    with pytest.raises(InputError, match="this release has no forms"):
        Agreement(()).run(open_release(releases.rows(), Strata.one(releases.mechanism())))
    schema = Schema((*strata.schema.attributes, Attribute("k", ("0", "1"))), keep=("k",))
    plan = deniable.design(schema, epsilon=3, method="forms")
    with pytest.raises(InputError, match="'k' is not under forms"):
        Agreement(("k",)).run(open_release(rows, Strata.one(plan.mechanism)))
    one = deniable.design(Schema.anonymous((2, 2)), epsilon=6, method="forms", pairs=0)
    found = agreement_of(one.mechanism, "a1", expected(one.mechanism, "a1", 1000))
    assert not found.tests
    assert found.untested == ("a1",)
    assert found.p_value == 1.0
    assert found.remarks()[0].startswith("Included by one form only")


def test_holm_adjusts_as_statsmodels_does() -> None:
    p_values = np.random.default_rng(2).random(9) ** 4
    assert np.allclose(holm(p_values), multipletests(p_values, method="holm")[1])
