"""A frontier's folder: complete, repeatable to the byte, and read with a check."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

from deniable.errors import InputError
from deniable.frontier import folder
from deniable.frontier.priors import Prior
from deniable.frontier.tracing import Frontier, Request, trace
from deniable.schema import Attribute

PRIOR = Prior(Attribute("blood", ("A", "B", "0")), (0.5, 0.3, 0.2), "a test", 10)


@pytest.fixture(scope="module")
def found() -> Frontier:
    return trace(
        Request(PRIOR, (0.2, 1 / 3), most_posterior=0.8, methods=("warner", "square", "bound"))
    )


@pytest.fixture(scope="module")
def written(found: Frontier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frontier") / "f"
    folder.write(path, found, overwrite=False)
    return path


@pytest.fixture
def path(written: Path, tmp_path: Path) -> Path:
    """A copy that a test may alter."""
    return shutil.copytree(written, tmp_path / "f")


def test_everything_is_there_and_agrees(found: Frontier, path: Path) -> None:
    assert sorted(entry.name for entry in path.iterdir()) == [
        "about.json",
        "certificates",
        "frontier.csv",
        "frontier.html",
        "frontier.json",
        "frontier.png",
        "frontier.svg",
        "matrices",
    ]
    assert (path / "frontier.png").read_bytes().startswith(b"\x89PNG")
    ElementTree.parse(path / "frontier.svg")
    rows = json.loads((path / "frontier.json").read_text())
    with (path / "frontier.csv").open() as file:
        table = list(csv.DictReader(file))
    assert len(rows) == len(table) == len(found.rows)
    for row, line, true, matrix in zip(rows, table, found.rows, found.matrices, strict=True):
        assert row["method"] == line["method"] == true.method
        assert row["mse"] == float(line["mse"]) == true.mse
        assert row["lower_bound"] == true.lower_bound
        assert row["worst_posterior"] == true.worst_posterior
        assert row["privacy"] == true.privacy
        assert matrix is not None
        # A row of the file is a category's distribution over the answers.
        assert np.array_equal(np.array(json.loads((path / row["matrix"]).read_text())), matrix.T)
    about = json.loads((path / "about.json").read_text())
    assert about["prior_steps"] == 10
    assert "read off the data and rounded to 1/10" in about["disclosure"]


@pytest.mark.slow
def test_the_same_frontier_makes_the_same_bytes(
    found: Frontier, path: Path, tmp_path: Path
) -> None:
    folder.write(tmp_path / "g", found, overwrite=False)
    files = [file for file in path.rglob("*") if file.is_file()]
    assert len(files) > 10
    for file in files:
        assert file.read_bytes() == (tmp_path / "g" / file.relative_to(path)).read_bytes()


def test_it_reads_back_and_every_row_passes_its_check(found: Frontier, path: Path) -> None:
    stored = folder.read(path)
    assert stored.prior == PRIOR
    assert stored.most_posterior == 0.8
    for row, matrix in zip(stored.rows, found.matrices, strict=True):
        assert np.allclose(stored.load(row), matrix)


def change(file: Path, key: str, value: object, place: int | None = None) -> None:
    plain = json.loads(file.read_text())
    (plain if place is None else plain[place])[key] = value
    file.write_text(json.dumps(plain))


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        *((key, 0.123, f"{key} is stated as 0.123, and its matrix gives") for key in (
            "mse", "privacy", "worst_posterior", "epsilon", "condition", "ratio")),
        ("outputs", 2, "outputs is stated as 2"),
        ("mse", None, "mse is stated as None"),
        ("matrix", None, "and its matrix gives None"),
        ("method", "wizard", "there is no such method"),
        ("certificate", None, "has no proof of the bound"),
        ("lower_bound", 1e-9, "its bound differs from the one in"),
    ],
)  # fmt: skip
def test_a_row_that_states_what_its_matrix_and_proof_do_not_give_is_refused(
    path: Path, key: str, value: object, problem: str
) -> None:
    last = len(json.loads((path / "frontier.json").read_text())) - 1
    change(path / "frontier.json", key, value, last)
    with pytest.raises(InputError, match=problem):
        folder.read(path)


def test_a_matrix_of_a_less_private_level_is_refused(path: Path) -> None:
    rows = json.loads((path / "frontier.json").read_text())
    lower, upper = (row for row in rows if row["method"] == "bound")
    assert lower["privacy"] < upper["level"]
    kept = {key: upper[key] for key in ("level", "lower_bound", "certificate")}
    upper |= lower | kept | {"ratio": lower["mse"] / upper["lower_bound"]}
    (path / "frontier.json").write_text(json.dumps(rows))
    with pytest.raises(InputError, match=r"bound at 0\.333333 the matrix is not within the limits"):
        folder.read(path)


def test_a_nudged_certificate_a_wrong_matrix_and_a_missing_file_are_refused(path: Path) -> None:
    stored = folder.read(path)
    row = stored.rows[0]
    assert row.certificate is not None
    assert row.matrix is not None
    proof = path / row.certificate
    original = proof.read_text()
    change(proof, "claim", json.loads(original)["claim"] * 1.001)
    with pytest.raises(InputError, match="proves only"):
        folder.read(path)
    proof.write_text(original)
    assert folder.read(path).load(row).shape == (3, 3)
    (path / row.matrix).write_text("[[0.5, 0.5], [1], [1]]")
    with pytest.raises(InputError, match="differ in length"):
        folder.read(path)
    (path / row.matrix).write_text("[[0.5, 0.6], [0.5, 0.5], [0.5, 0.5]]")
    with pytest.raises(InputError, match="column 1 does not sum to 1"):
        folder.read(path)
    (path / row.matrix).unlink()
    with pytest.raises(InputError, match="cannot be read"):
        folder.read(path)


def test_a_bound_beyond_sixteen_categories_is_not_called_exact(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = folder.read(path)
    many = Prior(Attribute("many", tuple("abcdefghijklmnopq")), (1 / 17,) * 17, "a test")
    row = stored.rows[0]
    bound_only = msgspec.structs.replace(
        row, matrix=None, **dict.fromkeys(("privacy", "mse", "worst_posterior", "epsilon")),
        **dict.fromkeys(("condition", "outputs", "ratio")),
    )  # fmt: skip
    stored.check(bound_only)
    monkeypatch.setattr(folder.StoredFrontier, "_check_bound", lambda *_: None)
    with pytest.raises(InputError, match="bound is not exact for this number of categories"):
        replace(stored, prior=many).check(bound_only)


def test_only_a_frontier_is_read_and_only_a_frontier_is_replaced(
    found: Frontier, path: Path, tmp_path: Path, no_plot: None
) -> None:
    with pytest.raises(InputError, match="frontier has made"):
        folder.read(tmp_path)
    change(path / "about.json", "format_version", 2)
    with pytest.raises(InputError, match="version 2 of the format 'deniable frontier'"):
        folder.read(path)
    change(path / "about.json", "format", "else")
    with pytest.raises(InputError, match="this is not a frontier written by"):
        folder.read(path)
    with pytest.raises(InputError, match="exists already"):
        folder.write(path, found, overwrite=False)
    folder.write(path, found, overwrite=True)
    (path / "mine.txt").write_text("precious")
    with pytest.raises(InputError, match="holds other files"):
        folder.write(path, found, overwrite=True)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match="not a folder"):
        folder.write(file, found, overwrite=True)
