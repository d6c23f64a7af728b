"""A fileset released variant by variant."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import deniable
from deniable.errors import InputError
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SystemRandomness
from deniable.release import release as module
from deniable.release.record import verify
from deniable.release.release import Options, look_at, randomize_table, share
from deniable.schema import Attribute, Schema
from deniable.tables import open_table
from deniable.tables.plink import packed

N = 1201
BITS = np.array([3, 2, 0, 1], dtype=np.uint8)  # of no, one, two first alleles, and none known
ATTRIBUTES = (
    Attribute("rs2", ("2", "1", "0", "NA"), missing="NA"),
    Attribute("SEX", ("1", "2")),
    Attribute("rs1", ("0", "1", "2")),
)
SCHEMA = Schema(ATTRIBUTES, title="Cohort", keep=("IID", "rs3"))
DESIGN = deniable.design(SCHEMA, epsilon=3)


@pytest.fixture
def cohort(tmp_path: Path) -> Path:
    truth = np.random.default_rng(1).integers(0, [[3], [4], [3]], (3, N))
    content = b"".join(packed(BITS[row]).tobytes() for row in truth)
    (tmp_path / "c.bed").write_bytes(b"\x6c\x1b\x01" + content)
    (tmp_path / "c.bim").write_text("".join(f"1 rs{i} 0 {i} A G\n" for i in (1, 2, 3)))
    people = [f"{i // 2} p{i} 0 0 {1 + i % 2} -9\n" for i in range(N)]
    (tmp_path / "c.fam").write_text("".join(people))
    return tmp_path / "c.bed"


def columns_of(path: Path) -> dict[str, list[object]]:
    with open_table(path, [], ["IID", "SEX", "rs1", "rs2", "rs3"]) as reader:
        (batch,) = reader
        return {name: column.to_pylist() for name, column in batch.kept.items()}


def test_a_fileset_is_released_as_one_and_its_record_holds(cohort: Path, tmp_path: Path) -> None:
    done: list[float | None] = []
    assert look_at(cohort, SCHEMA, Options()) == N
    share(cohort, DESIGN, tmp_path / "r", Options(), SystemRandomness(), done.append)
    assert done == [1 / 3, 2 / 3, 1.0]
    verify(tmp_path / "r")
    record = json.loads((tmp_path / "r" / "record.json").read_text())
    assert record["release"]["columns"] == ["IID", "SEX", "rs1", "rs2", "rs3"]
    assert set(record["release"]["beside"]) == {"data.bim", "data.fam"}
    before, after = columns_of(cohort), columns_of(tmp_path / "r" / "data.bed")
    assert (before["IID"], before["rs3"]) == (after["IID"], after["rs3"])
    for name, place in (("rs2", 0), ("SEX", 1), ("rs1", 2)):
        kept = sum(x == y for x, y in zip(before[name], after[name], strict=True))
        assert kept == pytest.approx(N * DESIGN.mechanism.keep_probability[place], abs=130)
    estimate = deniable.open(tmp_path / "r").shares("SEX")[0]
    assert estimate.values.sum() == pytest.approx(1)
    for name in ("data.fam", "data.bim"):  # altered by hand
        (tmp_path / "r" / name).write_text((tmp_path / "r" / name).read_text() + " ")
        with pytest.raises(InputError, match=f"{name} is not the file that"):
            verify(tmp_path / "r")
        (tmp_path / "r" / name).unlink()
        with pytest.raises(InputError, match=f"{name}: cannot be read"):
            deniable.open(tmp_path / "r").shares("SEX")[0]
        (tmp_path / "r" / name).write_text("")


def test_nothing_is_in_the_fam_file_but_the_columns_that_the_record_states(
    cohort: Path, tmp_path: Path
) -> None:
    # Failed before: diagnoses in the .fam file, with its digest in the record, were vouched for.
    share(cohort, DESIGN, tmp_path / "r", Options(), SystemRandomness())
    fam, record = tmp_path / "r" / "data.fam", tmp_path / "r" / "record.json"
    true, stated = fam.read_text(), json.loads(record.read_text())
    assert true.startswith("p0 p0 0 0 ")
    for other in (true.replace("-9\n", "2\n", 1), "f" + true, true.replace(" 0 0 ", " m 0 ", 1)):
        fam.write_text(other)
        stated["release"]["beside"]["data.fam"] = hashlib.sha256(other.encode()).hexdigest()
        record.write_text(json.dumps(stated))
        for verdict in (verify, deniable.open):
            with pytest.raises(InputError, match=r"line 1: the record does not list"):
                verdict(tmp_path / "r")


def test_shuffling_moves_whole_people(cohort: Path, tmp_path: Path) -> None:
    class Kept(Randomizer):
        def by_attribute(self, _count, codes_of):  # type: ignore[no-untyped-def]
            return ((i, codes_of(i)) for i in range(3))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "Randomizer", Kept)
        share(cohort, DESIGN, tmp_path / "r", Options(shuffle=True), SystemRandomness())
    before, after = columns_of(cohort), columns_of(tmp_path / "r" / "data.bed")
    assert before["IID"] != after["IID"]
    assert sorted(map(str, zip(*before.values(), strict=True))) == sorted(
        map(str, zip(*after.values(), strict=True))
    )


def test_rows_of_a_family_count_for_each_of_it(cohort: Path, tmp_path: Path) -> None:
    share(
        cohort,
        DESIGN,
        tmp_path / "r",
        Options(person="FID", person_epsilon=99.0),
        SystemRandomness(),
    )
    person = json.loads((tmp_path / "r" / "record.json").read_text())["guarantee"]["person"]
    assert (person["column"], person["most_rows"]) == ("FID", 2)


def test_it_is_randomized_into_any_table(cohort: Path, tmp_path: Path) -> None:
    for name in ("o.bed", "o.parquet", "o.csv"):
        bits = SystemRandomness()
        assert randomize_table(cohort, DESIGN.mechanism, tmp_path / name, Options(), bits) == N
        after = columns_of(tmp_path / name)
        assert len(after["rs1"]) == N
    with pytest.raises(InputError, match="exists already"):
        randomize_table(cohort, DESIGN.mechanism, tmp_path / "o.bed", Options(), bits)
    with pytest.raises(InputError, match="only a PLINK fileset becomes"):
        randomize_table(tmp_path / "o.csv", DESIGN.mechanism, tmp_path / "p.bed", Options(), bits)


def test_forms_have_empty_cells_and_are_released_as_a_table(cohort: Path, tmp_path: Path) -> None:
    schema = Schema(ATTRIBUTES, keep=("IID", "rs3"))
    made = deniable.design(schema, epsilon=3, method="forms")
    share(cohort, made, tmp_path / "r", Options(), SystemRandomness())
    assert (tmp_path / "r" / "data.parquet").exists()
    with pytest.raises(InputError, match="rows with forms have empty cells"):
        randomize_table(cohort, made.mechanism, tmp_path / "o.bed", Options(), SystemRandomness())
    assert not list(tmp_path.glob("o.*"))


def test_nothing_is_left_of_a_release_that_fails(cohort: Path, tmp_path: Path) -> None:
    schema = Schema((Attribute("rs1", ("0", "1", "2")), Attribute("rs2", ("0", "1", "2"))))
    plan = deniable.design(schema, epsilon=2)
    options = Options(drop_other_columns=True)
    with pytest.raises(InputError, match="the value is missing"):
        randomize_table(cohort, plan.mechanism, tmp_path / "o.bed", options, SystemRandomness())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.bed", "c.bim", "c.fam"]
