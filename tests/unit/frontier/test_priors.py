"""Priors from files, columns and textbooks; merged attributes; and what reading data gives away."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.frontier import priors
from deniable.schema import Attribute, Schema
from marked import slow_after

TABLE = "sex,smoker,age\n" + "f,no,20\nf,yes,30\nm,no,40\nf,no,50\n" * 100


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(TABLE)
    return path


def test_a_list_names_no_categories_and_an_object_does(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text("[0.5, 0.3, 0.2]")
    prior = priors.from_file(path)
    assert prior.shares == (0.5, 0.3, 0.2)
    assert prior.attribute.categories == ("0", "1", "2")
    assert prior.disclosure is None
    path.write_text('{"low": 0.25, "high": 0.75}')
    assert priors.from_file(path).attribute.categories == ("low", "high")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[0.5, 0.5, 0]", "entry 3 is not above 0"),
        ("[0.5, 0.4]", "sum to 0.9"),
        ("[1]", "2 categories"),
        ("[[0.5, 0.5]]", "1 category"),
        ("[[0.5, 0.1], [0.4]]", "differ in length"),
        ('[{"f": 0.5, "m": 0.1}, {"m": 0.3, "f": 0.1}]', "differ in length or categories"),
        ("[[0.5, 0.1], 0.4]", "JSON list of shares"),
        ("0.5", "JSON list of shares"),
        ("nonsense", "JSON list of shares"),
    ],
)
def test_a_file_that_is_no_distribution_is_refused(
    tmp_path: Path, text: str, sentence: str
) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence):
        priors.from_file(path)
    with pytest.raises(InputError, match="cannot be read"):
        priors.from_file(tmp_path / "none.json")


def test_nested_lists_and_objects_are_joint_priors(tmp_path: Path) -> None:
    path, other = tmp_path / "p.json", tmp_path / "q.json"
    path.write_text("[[0.1, 0.2, 0.05], [0.3, 0.25, 0.1]]")
    prior = priors.from_file(path)
    assert prior.shares == (0.1, 0.2, 0.05, 0.3, 0.25, 0.1)
    assert [part.n_categories for part in prior.attribute.parts] == [2, 3]
    assert prior.attribute.categories[:3] == ("0+0", "0+1", "0+2")
    other.write_text('{"f": {"yes": 0.1, "no": 0.2}, "m": {"yes": 0.3, "no": 0.4}}')
    assert priors.from_file(other).attribute.categories == ("f+yes", "f+no", "m+yes", "m+no")
    both = priors.outer([prior, priors.from_file(other)])
    assert [part.n_categories for part in both.attribute.parts] == [2, 3, 2, 2]
    assert both.shares[1] == pytest.approx(0.1 * 0.2)


def test_a_gamma_distribution_takes_its_shape() -> None:
    shares = priors.from_distribution("gamma,10,2").shares
    ends = (2 + 3 * math.sqrt(2)) * np.arange(11) / 10
    below = 1 - (1 + ends) * np.exp(-ends)
    assert shares == pytest.approx(np.diff(below) / below[-1])
    plain = priors.from_distribution("gamma,10").shares
    assert priors.from_distribution("gamma,10,1").shares == pytest.approx(plain, rel=1e-12)
    for text in ("gamma,10,x", "gamma,10,0", "gamma,10,1,2", "normal,10,1"):
        with pytest.raises(InputError, match="--distribution"):
            priors.from_distribution(text)


def test_distributions_are_cut_by_their_distribution_function() -> None:
    normal = priors.from_distribution("normal,6").shares
    phi = [0.5 * (1 + math.erf(z / math.sqrt(2))) for z in range(-3, 4)]
    assert normal == pytest.approx(np.diff(phi) / (phi[-1] - phi[0]))
    gamma = priors.from_distribution("gamma,4").shares
    assert gamma[1] / gamma[0] == pytest.approx(math.exp(-1))
    assert priors.from_distribution("uniform,5").shares == pytest.approx([0.2] * 5)


@pytest.mark.parametrize("text", ["normal", "normal,x", "cauchy,5", "normal,1", "normal,-3"])
def test_what_is_no_distribution_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--distribution"):
        priors.from_distribution(text)


def test_a_column_is_counted_and_said_to_be_a_disclosure(table: Path) -> None:
    prior = priors.from_column(f"{table}:sex")
    assert dict(zip(prior.attribute.categories, prior.shares, strict=True)) == {
        "f": 0.75,
        "m": 0.25,
    }
    assert prior.disclosure is not None
    assert "disclosure" in prior.disclosure
    assert "rounded to 1/20" in prior.disclosure
    assert "the list of its categories" in prior.disclosure
    assert prior.source == "column 'sex' of people.csv, rounded to 1/20"


def test_a_schema_decides_the_categories_and_their_order(table: Path) -> None:
    schema = Schema(
        (Attribute("sex", ("m", "f")), Attribute("age", bins=(0, 25, 100))), title="people"
    )
    assert priors.from_column(f"{table}:sex", schema).shares == (0.25, 0.75)
    assert priors.from_column(f"{table}:age", schema).shares == (0.25, 0.75)


def test_several_columns_are_merged_by_how_often_their_combinations_occur(table: Path) -> None:
    schema = Schema((Attribute("sex", ("f", "m")), Attribute("age", bins=(0, 45, 100))))
    # Nobody has the last combination: it looks like one that a few have.
    assert priors.from_column(f"{table}:sex,age", schema).shares == (0.45, 0.25, 0.25, 0.05)
    table.write_text(TABLE + "m,yes,60\n" * 100)
    prior = priors.from_column(f"{table}:sex,smoker")
    assert prior.attribute.name == "sex+smoker"
    assert prior.attribute.categories == ("f+no", "f+yes", "m+no", "m+yes")
    assert prior.shares == pytest.approx((0.4, 0.2, 0.2, 0.2))


def test_columns_that_are_not_there_or_cannot_be_used_are_named(table: Path) -> None:
    with pytest.raises(InputError, match="no column 'weight'"):
        priors.from_column(f"{table}:weight")
    with pytest.raises(InputError, match="there is no attribute 'weight'"):
        priors.from_column(f"{table}:weight", Schema((Attribute("sex", ("f", "m")),)))
    with pytest.raises(InputError, match=r"such as data\.csv:age"):
        priors.from_column("sex")
    with pytest.raises(InputError, match="no such file"):
        priors.from_column("nowhere.csv:sex")
    rows = "\n".join(f"id{i}" for i in range(60))
    table.write_text(f"name\n{rows}\n")
    with pytest.raises(InputError, match="--schema"):
        priors.from_column(f"{table}:name")


def test_a_colon_or_a_comma_in_a_name_is_no_hindrance(tmp_path: Path) -> None:
    path = tmp_path / "a:b.csv"
    path.write_text('"x:y","p,q"\n' + "1,2\n2,3\n" * 50)
    assert priors.from_column(f"{path}:x:y").shares == (0.5, 0.5)
    assert priors.from_column(f"{path}:p,q").attribute.name == "p,q"


@pytest.mark.parametrize(
    ("k", "n"),
    [
        *((2, n) for n in (1, 2, 20, 39, 55, 100, 119)),
        (3, 57),
        *slow_after(0, [(2, 22_272), (3, 100), (4, 52)]),
    ],
)
def test_no_count_follows_from_rounded_shares(k: int, n: int) -> None:
    """Of all vectors of counts that are written alike, every count takes ten values or more."""
    alike: dict[object, list[tuple[int, ...]]] = {}
    for ends in itertools.combinations_with_replacement(range(n + 1), k - 1):
        counts = tuple(b - a for a, b in itertools.pairwise((0, *ends, n)))
        alike.setdefault(priors.rounded_shares(counts), []).append(counts)
    for (shares, steps), vectors in alike.items():
        assert sum(round(share * steps) for share in shares) == steps
        assert min(shares) >= 1 / steps
        for values in zip(*vectors, strict=True):
            assert len(set(values)) >= min(10, n + 1)
        if any(0 in counts for counts in vectors):
            assert any(min(counts) >= min(5, n // k) for counts in vectors)
    if n < 10 * k:
        assert list(alike) == [((1 / k,) * k, k)]


@pytest.mark.parametrize(("n", "k"), [(22_272, 12), (100, 6), (3_000, 41), (1_000_000, 300)])
def test_rounded_shares_are_near_the_true_ones(n: int, k: int) -> None:
    generator = np.random.default_rng(1)
    for _ in range(20):
        counts = generator.multinomial(n, generator.dirichlet(np.ones(k)))
        shares, steps = priors.rounded_shares(counts.tolist())
        assert n / steps >= 10 or len(set(shares)) == 1
        if steps > k:
            assert np.abs(shares - np.maximum(counts / n, 1 / steps)).sum() < 2 * k / steps
            assert np.abs(np.array(shares) * steps - np.rint(np.array(shares) * steps)).max() < 1e-9


def test_priors_of_several_files_are_multiplied(tmp_path: Path) -> None:
    parts = []
    for i, shares in enumerate(([0.6, 0.4], [0.5, 0.3, 0.2])):
        path = tmp_path / f"{i}.json"
        path.write_text(json.dumps(shares))
        parts.append(priors.from_file(path))
    merged = priors.outer(parts)
    assert merged.shares == pytest.approx(np.outer([0.6, 0.4], [0.5, 0.3, 0.2]).ravel())
    assert merged.attribute.categories[1] == "0+1"
    assert "independent" in merged.source
    assert priors.outer(parts[:1]) == parts[0]


def test_a_prior_has_one_share_for_each_category() -> None:
    with pytest.raises(InputError, match="2 shares"):
        priors.Prior(Attribute("a", tuple("xyz")), (0.5, 0.5), "nowhere")
