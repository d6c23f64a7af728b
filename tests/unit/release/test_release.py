import json
import math
import os
from decimal import Decimal

import pyarrow as pa
import pytest

from deniable.design.design import design
from deniable.errors import InputError
from deniable.mechanism.strata import Strata
from deniable.randomness import SystemRandomness
from deniable.release.record import expected_errors, verify
from deniable.release.release import Options, randomize_table, share
from deniable.release.statements import guarantee_sentence
from deniable.schema import Attribute, Schema

SCHEMA = Schema(
    (Attribute("a", ("x", "y")), Attribute("b", ("1", "2", "3")), Attribute("c", ("n", "s"))),
    title="Letters",
    keep=("c",),
)
DESIGN = design(SCHEMA, attribute_epsilon=(1, 1))
ROWS = {"a": ["x", "y", "x", "y"], "b": [1, 2, 3, 1], "c": ["n", "s", "s", "n"]}


def released(tmp_path, rows, name="r", **options):
    share(pa.table(rows), DESIGN, tmp_path / name, Options(**options), SystemRandomness())
    return tmp_path / name


def test_nothing_but_the_rows_depends_on_the_true_values(tmp_path, monkeypatch):
    """Two different tables whose released rows are forced to be equal."""
    import deniable.release.release as module

    class Fixed:
        def __init__(self, mechanism, source):
            pass

        def randomize(self, columns):
            return [column * 0 for column in columns]

    monkeypatch.setattr(module, "Randomizer", Fixed)
    other = ROWS | {"a": ["y", "y", "y", "x"], "b": [3, 3, 3, 2]}
    first, second = released(tmp_path, ROWS, "one"), released(tmp_path, other, "two")
    for name in sorted(os.listdir(first)):  # noqa: PTH208  (names, not paths)
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_a_release_verifies_and_an_altered_one_does_not(tmp_path):
    folder = released(tmp_path, ROWS)
    verify(folder)
    record = (folder / "record.json").read_text()
    for old, new in (
        ('"single": {\n      "a": 0.', '"single": {\n      "a": 1.'),
        ('"sentence": "Every', '"sentence": "No'),
        ('"attenuation": {\n    "single"', '"attenuation": {\n    "double"'),
    ):
        assert old in record
        (folder / "record.json").write_text(record.replace(old, new))
        with pytest.raises(InputError, match=r"record\.json"):
            verify(folder)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (["title"], "Digits"),
        (["release", "rows"], 5),
        (["release", "columns"], ["a", "b"]),
        (["release", "row_order"], "shuffled"),
        (["release", "randomness"], "seeded"),
        (["release", "file"], ["data.csv"]),
        (["release"], []),
        (["guarantee", "person"], "x"),
        (["guarantee", "person"], {"column": "p", "most_rows": "3", "epsilon": 1.0}),
        (["guarantee", "person"], {"column": "p", "most_rows": 2, "epsilon": 1.0}),
        (["attenuation", "pairs", 0, "attributes"], ["b", "a"]),
        (["attenuation", "single"], {"b": 0.5, "a": 0.5, "c": 1.0}),
        (["expected_error", 0, "standard_error"], 1e-5),
        (["small_print"], []),
        (["format_version"], 9),
    ],
)
def test_no_altered_statement_verifies(where, value, tmp_path):
    folder = released(tmp_path, ROWS)
    record = part = json.loads((folder / "record.json").read_text())
    for step in where[:-1]:
        part = part[step]
    assert part[where[-1]] != value
    part[where[-1]] = value
    (folder / "record.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"record\.json"):
        verify(folder)


def test_a_number_of_rows_that_is_false_throughout_does_not_verify(tmp_path):
    """The record alone cannot tell: its expected errors follow from the number it states."""
    folder = released(tmp_path, ROWS)
    record = json.loads((folder / "record.json").read_text())
    record["release"]["rows"] = 40_000
    record["expected_error"] = expected_errors(Strata.one(DESIGN.mechanism), {"": 40_000})
    (folder / "record.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="number of rows"):
        verify(folder)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_every_kind_of_dataframe_is_released(library, tmp_path):
    frame = pytest.importorskip(library).DataFrame(ROWS)
    share(frame, DESIGN, tmp_path / "r", Options(), SystemRandomness())
    verify(tmp_path / "r")
    record = json.loads((tmp_path / "r" / "record.json").read_text())
    assert record["release"]["rows"] == len(frame)


def test_types_of_a_dataframe_survive(tmp_path):
    import pyarrow.parquet as pq

    table = pq.read_table(released(tmp_path, ROWS) / "data.parquet")
    assert table.schema.types == pa.table(ROWS).schema.types
    assert table["c"].to_pylist() == ROWS["c"]


def test_shuffling_moves_whole_rows(tmp_path):
    import pyarrow.parquet as pq

    n = 3000
    rows = {"a": ["x"] * n, "b": [1] * n, "c": [str("ns"[i >= n // 2]) for i in range(n)]}
    table = pq.read_table(released(tmp_path, rows, shuffle=True) / "data.parquet")
    kept = table["c"].to_pylist()
    assert sorted(kept) == sorted(rows["c"])
    assert kept != rows["c"]


def test_pair_attenuations_are_the_laws(tmp_path):
    (pair,) = DESIGN.account.pairs_to_plain()
    assert pair["attributes"] == ["a", "b"]
    law = DESIGN.mechanism.blocks[0].law
    assert pair["attenuation"] == law.eigenvalues((0, 1))[1, 1]


def test_a_table_without_rows_is_refused_and_leaves_nothing(tmp_path):
    empty = {name: pa.array([], type=pa.string()) for name in ("a", "b", "c")}
    with pytest.raises(InputError, match="no rows"):
        released(tmp_path, empty)
    assert not list(tmp_path.iterdir())


def test_only_a_release_or_an_empty_folder_is_ever_replaced(tmp_path):
    """Else --force would delete the true table, if the output is the folder that holds it."""
    foreign = ({"true.csv": "a"}, {"record.json": "{}", "true.csv": "a"}, {"data.csv": "a"})
    for number, inside in enumerate(foreign):
        folder = tmp_path / f"folder {number}"
        folder.mkdir()
        for name, text in inside.items():
            (folder / name).write_text(text)
        with pytest.raises(InputError, match="not replaced"):
            released(tmp_path, ROWS, folder.name, overwrite=True)
        assert {p.name: p.read_text() for p in folder.iterdir()} == inside
    (tmp_path / "true.csv").write_text("a")
    with pytest.raises(InputError, match="not replaced"):
        released(tmp_path, ROWS, "true.csv", overwrite=True)
    assert (tmp_path / "true.csv").read_text() == "a"
    (tmp_path / "empty").mkdir()
    for name in ("empty", "empty"):
        assert (released(tmp_path, ROWS, name, overwrite=True) / "record.json").exists()


def test_randomize_table_counts_rows(tmp_path):
    path = tmp_path / "out.csv"
    count = randomize_table(pa.table(ROWS), DESIGN.mechanism, path, Options(), SystemRandomness())
    assert count == 4
    assert len(path.read_text().splitlines()) == 5


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0, 100.0, 1000.0])
def test_the_guarantee_is_never_rounded_down(epsilon):
    sentence = guarantee_sentence(Strata.one(DESIGN.mechanism), epsilon)
    said = Decimal(sentence.split("ε = ")[-1].split()[0].strip(":").replace(",", ""))
    factor = sentence.split("at most ")[1].split()[0].replace(",", "")
    mantissa, _, power = factor.rpartition("^")
    stated = Decimal(10) ** int(power) if mantissa else Decimal(factor)
    assert said >= Decimal(epsilon)
    assert Decimal(epsilon).exp() <= stated <= Decimal(epsilon).exp() * 10


def test_the_guarantee_of_a_person_is_not_told_as_that_of_a_row():
    mechanism = design(SCHEMA, attribute_epsilon=(1, 1), method="kronecker").mechanism
    sentence = guarantee_sentence(Strata.one(mechanism), 3 * mechanism.epsilon)
    assert "on its own with ε = 2 " in sentence
    assert "together have ε = 6:" in sentence


def test_an_unbounded_mechanism_promises_nothing():
    sentence = guarantee_sentence(Strata.one(DESIGN.mechanism), math.inf)
    assert sentence.startswith("No ε-differential privacy")


def test_an_epsilon_just_above_a_round_number_is_rounded_up():
    assert "ε = 4.00001" in guarantee_sentence(
        Strata.one(DESIGN.mechanism), math.nextafter(4.0, 5.0)
    )
