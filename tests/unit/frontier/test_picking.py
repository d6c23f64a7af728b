"""Picking a point: the one asked for, checked, as a mechanism with its prior."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.frontier import folder
from deniable.frontier.picking import pick
from deniable.frontier.priors import Prior, from_distribution
from deniable.frontier.tracing import Request, trace
from deniable.laws import DesignedChannel
from deniable.schema import Attribute, Schema
from deniable.solvers.matrices import frontier, response
from deniable.statement import record

PRIOR = Prior(Attribute("blood", ("A", "B", "0")), (0.5, 0.3, 0.2), "a test")


@pytest.fixture(scope="module")
def average(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("average") / "f"
    folder.write(
        path,
        trace(Request(PRIOR, (0.2, 0.3, 0.4), methods=("warner", "square", "bound"))),
        overwrite=False,
    )
    return path


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("local") / "f"
    folder.write(
        path,
        trace(Request(PRIOR, (0.5, 1.0), local=True, methods=("warner", "bound"))),
        overwrite=False,
    )
    return path


@pytest.fixture(scope="module", autouse=True)
def _no_plots() -> Iterator[None]:
    """Folders are written without their pictures, which take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deniable.frontier.folder.draw", lambda *_, **__: (b"PNG", b"SVG"))
        yield


def law(design: record.Design) -> DesignedChannel:
    found = design.mechanism.blocks[0].law
    assert isinstance(found, DesignedChannel)
    return found


def test_the_best_point_that_is_private_enough_is_taken(average: Path) -> None:
    design, sentence = pick(average, privacy=0.25)
    assert sentence.startswith("Method bound at privacy 0.3:")
    prior = np.array(PRIOR.shares)
    assert response.privacy(law(design).matrix(), prior) == pytest.approx(0.3)
    assert law(design).prior == PRIOR.shares
    assert design.method == "matrix"
    assert design.mechanism.schema.names == ("blood",)


def test_a_level_finds_its_own_row_and_a_method_its_own_matrix(average: Path) -> None:
    design, sentence = pick(average, privacy=0.3, method="warner", name="group")
    assert "Method warner at privacy 0.3" in sentence
    assert design.mechanism.schema.names == ("group",)
    assert np.isfinite(design.epsilon)


def test_under_ldp_the_level_is_a_cap(local: Path) -> None:
    design, sentence = pick(local, epsilon=0.9)
    assert "at ε 0.5" in sentence
    assert design.epsilon <= 0.5
    assert pick(local, epsilon=1.0)[0].epsilon <= 1.0


def test_a_schema_lends_its_declaration(average: Path) -> None:
    declared = Attribute("b", ("1", "2", "3"), labels={"1": "one"}, epsilon=2.0)
    schema = Schema((Attribute("a", ("x", "y")), declared))
    attribute = pick(average, privacy=0.3, name="b", schema=schema)[0].mechanism.schema.attributes
    assert attribute[0].labels == {"1": "one"}
    assert attribute[0].epsilon is None
    with pytest.raises(InputError, match="2 categories in the schema"):
        pick(average, privacy=0.3, name="a", schema=schema)
    with pytest.raises(InputError, match="--name: give the attribute"):
        pick(average, privacy=0.3, schema=schema)


@pytest.mark.slow
def test_a_flat_prior_is_of_several_columns_of_a_schema(tmp_path: Path) -> None:
    """As many combinations as of two ordinary columns: 10 x 12 categories."""
    shares = np.random.default_rng(3).dirichlet(np.full(120, 2.0)) + 1e-4
    shares /= shares.sum()
    prior = Prior(Attribute("a1", tuple(map(str, range(120)))), tuple(shares), "a test")
    request = Request(prior, (0.4,), methods=("warner",))
    folder.write(tmp_path / "f", trace(request), overwrite=False)
    numbers = tuple(map(str, range(12)))
    schema = Schema((Attribute("b", numbers, epsilon=1.0), Attribute("a", numbers[:10])))
    design, _ = pick(tmp_path / "f", privacy=0.4, name="a,b", schema=schema)
    (attribute,) = design.mechanism.schema.attributes
    assert [part.name for part in attribute.parts] == ["a", "b"]
    assert attribute.n_categories == 120
    assert law(design).prior == prior.shares
    with pytest.raises(InputError, match="give their --schema"):
        pick(tmp_path / "f", privacy=0.4, name="a,b")
    small = Schema((Attribute("a", ("x", "y")), Attribute("b", numbers)))
    with pytest.raises(InputError, match="24 combinations in the schema"):
        pick(tmp_path / "f", privacy=0.4, name="a,b", schema=small)


def test_a_record_of_it_reads_back(average: Path, tmp_path: Path) -> None:
    design, _ = pick(average, privacy=0.2)
    (tmp_path / "m.json").write_bytes(record.to_json(record.mechanism_to_plain(design)))
    back = record.read_design(tmp_path / "m.json")
    assert back.mechanism == design.mechanism
    assert np.array_equal(law(back).left_inverse(), law(design).left_inverse())
    assert back.mechanism.unprotected == ("blood",)


def test_what_is_not_there_is_refused(average: Path, local: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"most private is at 0\.4"):
        pick(average, privacy=0.45)
    with pytest.raises(InputError, match=r"most private is at 0\.5"):
        pick(local, epsilon=0.1)
    with pytest.raises(InputError, match="no matrix of method 'search'"):
        pick(average, privacy=0.2, method="search")
    with pytest.raises(InputError, match="chosen by --privacy"):
        pick(average, epsilon=1.0)
    with pytest.raises(InputError, match="chosen by --epsilon-ldp"):
        pick(local, privacy=0.3)
    with pytest.raises(InputError, match="either --privacy or"):
        pick(average)
    with pytest.raises(InputError, match="frontier has made"):
        pick(tmp_path, privacy=0.3)


@pytest.mark.slow
def test_a_bound_without_a_mechanism_cannot_be_picked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frontier, "drawn_mechanism", lambda *_: None)
    wide = trace(Request(from_distribution("normal,17"), (0.3,), methods=("bound",)))
    folder.write(tmp_path / "f", wide, overwrite=False)
    with pytest.raises(InputError, match="no mechanism"):
        pick(tmp_path / "f", privacy=0.3)
