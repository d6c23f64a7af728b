"""Numbers of synthetic copies: moments of the numbers, and typed columns."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import deniable
from deniable.randomness import SeededRandomness
from deniable.schema import Attribute
from deniable.synthesis.numbers import drawn_numbers

X = Attribute("x", range=(0, 80), grid=9)
Y = Attribute("y", range=(-3, 3), grid=7, missing="?")
SEX = Attribute("sex", ("f", "m"))


def test_numbers_have_the_moments_of_those_that_were_rounded() -> None:
    """Codes are roundings of known numbers. Draws around points without the fit, or the points
    themselves, have too large a variance."""
    random, n = np.random.default_rng(1), 60_000
    sex = random.integers(0, 2, n)
    true = np.clip(random.normal(35 + 10 * sex, 12), 0, 80)
    other = np.clip((true - 40) / 20 + random.normal(0, 0.7, n), -3, 3)
    codes = []
    for attribute, values in ((X, true), (Y, other)):
        assert attribute.range is not None
        low, high = attribute.range
        assert attribute.grid is not None
        place = (values - low) / (high - low) * (attribute.grid - 1)
        codes.append(np.floor(place + random.random(n)).astype(int))
    codes[1][:600] = 7  # missing
    found = drawn_numbers(np.array([*codes, sex]), (X, Y, SEX), SeededRandomness(2))
    (_, xs), (_, ys) = found
    assert np.isnan(ys).sum() == 600
    assert not np.isnan(xs).any()
    some = slice(600, None)
    exact, drawn = (
        np.cov(np.stack(columns))
        for columns in ((true[some], other[some], sex[some]), (xs[some], ys[some], sex[some]))
    )
    assert drawn == pytest.approx(exact, rel=0.03)
    assert [xs.mean(), np.nanmean(ys)] == pytest.approx([true.mean(), other[some].mean()], abs=0.1)
    assert np.var(codes[0] * 10.0) > 1.05 * exact[0, 0]
    assert len(np.unique(xs)) > n / 2
    assert xs.min() >= 0
    assert xs.max() <= 80


def test_copies_hold_numbers(tmp_path: Path) -> None:
    plan = deniable.design(deniable.Schema((X, SEX)), epsilon=8)
    random = np.random.default_rng(3)
    table = pa.table({"x": random.integers(0, 81, 500), "sex": ["f", "m"] * 250})
    deniable.share(table, plan, tmp_path / "r")
    for kind in ("csv", "parquet"):
        about = deniable.synthesize(
            tmp_path / "r", tmp_path / kind, copies=5, file_format=kind, tables="pairs"
        )
        file = tmp_path / kind / about["files"][0]
        copy = pyarrow.parquet.read_table(file) if kind == "parquet" else pa.csv.read_csv(file)
        assert pa.types.is_integer(copy["x"].type)
        assert len(set(copy["x"].to_pylist())) > 20
        assert about["tables"][0]["cells"][1]["categories"] == ["10"]
