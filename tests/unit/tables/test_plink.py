"""PLINK 1 filesets: hand-made bytes, another program's reader and writer, and damaged files."""

import errno
import io
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from deniable.errors import InputError
from deniable.schema import Attribute
from deniable.tables import FilesetWriter, open_table, plink, released_columns
from deniable.tables.drafting import draft_schema
from deniable.tables.plink import Fileset, packed, unpacked

GENOTYPE = ("0", "1", "2")
A = Attribute("rs1", GENOTYPE, missing="NA")
B = Attribute("rs2", ("2", "1", "0"))
BIM = "1\trs1\t0\t100\tA\tG\n1\trs2\t0.5\t200\tC\tT\n"
PEOPLE = [f"f{i} p{i} 0 0 {1 + i % 2} -9" for i in range(5)]
# Two bits a person, the first the lowest: 00 two of the first allele, 01 missing, 10 one, 11 none.
BED = b"\x6c\x1b\x01" + bytes([0b11_10_01_00, 0b00_00_00_10, 0b00_10_11_10, 0b11_11_11_00])
RS1 = [2, None, 1, 0, 1]
RS2 = [1, 0, 1, 2, 2]


@pytest.fixture
def cohort(tmp_path: Path) -> Path:
    (tmp_path / "c.bed").write_bytes(BED)
    (tmp_path / "c.bim").write_text(BIM)
    (tmp_path / "c.fam").write_text("\n".join(PEOPLE) + "\n")
    return tmp_path / "c.bed"


def test_hand_made_bytes_are_read_by_rows(cohort: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cells in (8, 1 << 20):  # four people at a time, and all
        monkeypatch.setattr(plink, "_CELLS", cells)
        with open_table(cohort, [A, B], ["SEX"]) as reader:
            assert reader.all_names == ("SEX", "rs1", "rs2")
            batches = list(reader)
            assert reader.fraction == 1
        first, second = ([c for b in batches for c in b.codes[i]] for i in (0, 1))
        assert len(batches) == (2 if cells == 8 else 1)
        assert first == [2, 3, 1, 0, 1]
        assert second == [1, 2, 1, 0, 0]
        assert [s for b in batches for s in b.kept["SEX"].to_pylist()] == ["1", "2", "1", "2", "1"]


def test_and_variant_by_variant(cohort: Path) -> None:
    bins = Attribute("rs2", bins=(0, 1, 2))
    merged = Attribute.merged([A, B])
    with open_table(cohort, [A, bins, Attribute("SEX", ("2", "1"))]) as reader:
        codes = [reader.genotypes(i).tolist() for i in range(3)]
        assert reader.look() == 5
    assert codes == [[2, 3, 1, 0, 1], [1, 0, 1, 1, 1], [1, 0, 1, 0, 1]]
    with open_table(cohort, [merged]) as reader:
        assert reader.genotypes(0).tolist() == [7, 11, 4, 0, 3]
    many = Attribute("rs2", tuple(map(str, range(300, -1, -1))))
    with open_table(cohort, [many], other_columns="drop") as reader:
        assert reader.genotypes(0).tolist() == [299, 300, 299, 298, 298]


def test_a_genotype_that_is_not_declared_is_refused(cohort: Path) -> None:
    strict = Attribute("rs1", GENOTYPE)
    with open_table(cohort, [strict, B]) as reader:
        with pytest.raises(InputError, match="data row 2, column 'rs1': the value is missing"):
            reader.look()
        with pytest.raises(InputError, match="data row 2, column 'rs1': the value is missing"):
            reader.genotypes(0)
    two = [Attribute("rs2", ("0", "1")), A]
    several = r"the first in data row 4.*2 values are not"
    with open_table(cohort, two) as reader, pytest.raises(InputError, match=several):
        reader.look()
    with pytest.raises(InputError, match="neither declares nor keeps 'rs2'"):
        open_table(cohort, [A])
    # Five people: what fills up the last byte is nobody's.
    with open_table(cohort, [B], other_columns="drop") as reader:
        assert reader.source.bits_found("rs2").tolist() == [True, False, True, True]  # type: ignore[attr-defined]
        assert reader.source.bits_found("rs1").tolist() == [True, True, True, True]  # type: ignore[attr-defined]


def test_bits_are_packed_four_to_a_byte() -> None:
    codes = np.random.default_rng(1).integers(0, 4, 1003).astype(np.uint8)
    by_hand = [
        sum(int(c) << 2 * j for j, c in enumerate(codes[i : i + 4])) for i in range(0, 1003, 4)
    ]
    assert packed(codes).tolist() == by_hand
    assert unpacked(packed(codes), np.arange(4, dtype=np.uint8), 1003).tolist() == codes.tolist()
    assert packed(codes[:0]).size == 0


def write(cohort: Path, path: Path, attributes=(A, B), keep=(), **options) -> None:
    """Release the fileset with every genotype that can be turned, turned."""
    with open_table(cohort, attributes, keep, other_columns="drop") as reader:
        columns = released_columns(reader.columns, attributes, keep)
        with FilesetWriter(path, reader.source, columns, **options) as writer:  # type: ignore[arg-type]
            for column in reversed(columns):  # in any order
                if column.position is None:
                    writer.copy(column, None)
                else:
                    writer.write(column, {column.position: reader.genotypes(column.position)})


def test_what_is_written_is_what_was_read_and_people_are_numbered(cohort: Path) -> None:
    out = cohort.with_name("out.bed")
    write(cohort, out)
    assert out.read_bytes()[:4] == BED[:4]
    assert [b & 0b11 for b in out.read_bytes()[4::2]] == [BED[4] & 3, BED[6] & 3]
    assert out.with_suffix(".bim").read_text() == BIM
    assert out.with_suffix(".fam").read_text() == "".join(
        f"{i} {i} 0 0 0 -9\n" for i in range(1, 6)
    )
    with pytest.raises(InputError, match="exists already"):
        write(cohort, out)
    write(cohort, out, (B,), ["rs1", "IID", "SEX"], overwrite=True)
    assert out.read_bytes() == BED[:-1] + bytes([0])  # filled up with zeros
    assert out.with_suffix(".fam").read_text().splitlines()[1] == "p1 p1 0 0 2 -9"
    write(cohort, out, (B, Attribute("PHENO1", ("-9", "1"))), ["FID"], overwrite=True)
    assert out.with_suffix(".bim").read_text() == BIM.splitlines(keepends=True)[1]
    assert out.with_suffix(".fam").read_text().splitlines()[1] == "f1 2 0 0 0 -9"


def test_only_genotypes_and_words_can_be_written(cohort: Path) -> None:
    out = cohort.with_name("out.bed")
    for attribute in (Attribute("rs2", bins=(0, 1, 2)), Attribute("rs2", ("0", "1", "2", "3"))):
        with pytest.raises(InputError, match="'rs2' is released as"):
            write(cohort, out, (attribute,))
    with pytest.raises(InputError, match="a label with a blank"):
        write(cohort, out, (Attribute("SEX", ("1", "2", "not known")), B))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FilesetWriter, "write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write(cohort, out)
    assert sorted(p.name for p in cohort.parent.iterdir()) == ["c.bed", "c.bim", "c.fam"]


def test_another_program_reads_and_writes_the_same(tmp_path: Path) -> None:
    bed_reader = pytest.importorskip("bed_reader")
    values = np.random.default_rng(2).integers(-1, 3, (1001, 7)).astype(np.int8)
    values[values < 0] = -127
    ids = [f"v{i}" for i in range(7)]
    bed_reader.to_bed(tmp_path / "c.bed", values, properties={"sid": ids})
    attributes = [Attribute(name, GENOTYPE, missing="NA") for name in ids]
    with open_table(tmp_path / "c.bed", attributes) as reader:
        for i, column in enumerate(np.where(values < 0, 3, values).T):
            assert reader.genotypes(i).tolist() == column.tolist()
    write(tmp_path / "c.bed", tmp_path / "out.bed", attributes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = bed_reader.open_bed(tmp_path / "out.bed")
        np.testing.assert_array_equal(again.read(dtype="int8"), values)
        assert again.sid.tolist() == ids
        assert again.iid[:2].tolist() == ["1", "2"]


DAMAGED = {
    "not a .bed": ("c.bed", b"chr1\t1\t2\n", "this is not a PLINK 1 .bed file"),
    "person by person": ("c.bed", b"\x6c\x1b\x00" + BED[3:], "person by person"),
    "empty .bed": ("c.bed", b"", "this is not a PLINK 1 .bed file"),
    "cut off": ("c.bed", BED[:-1], "take 7 bytes and the file has 6"),
    "too long": ("c.bed", BED + b"\0", "take 7 bytes and the file has 8"),
    "no .bim": ("c.bim", None, "needs its .bim and .fam"),
    "no .fam": ("c.fam", None, "needs its .bim and .fam"),
    "empty .bim": ("c.bim", b"", "c.bim is empty"),
    "empty .fam": ("c.fam", b"", "c.fam is empty"),
    "short line": ("c.fam", "\n".join([*PEOPLE[:4], "f4 p4 0 0 1"]).encode(), "line 5: a person"),
    "long line": ("c.bim", BIM.encode() + b"1 rs3 0 3 A C T\n", "line 3: a variant has six .* 7"),
    "blank line": ("c.fam", b"\n" + "\n".join(PEOPLE).encode(), "line 1: a person.* not 0"),
    "no text": ("c.bim", BIM.encode().replace(b"rs2", b"\xff\xfe"), "not text in UTF-8"),
    "no id": ("c.bim", BIM.encode().replace(b"rs2", b"."), "line 2: the variant has no id"),
    "ids twice": ("c.bim", BIM.encode().replace(b"rs2", b"rs1"), "two columns are called 'rs1'"),
    "a field's name": (
        "c.bim",
        BIM.encode().replace(b"rs2", b"SEX"),
        "a variant has the name 'SEX'",
    ),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_fileset_is_one_sentence(what: str, cohort: Path) -> None:
    name, content, message = DAMAGED[what]
    cohort.with_name(name).unlink()
    if content is not None:
        cohort.with_name(name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        open_table(cohort, [A, B])
    assert "\n" not in str(caught.value)
    assert "p4" not in str(caught.value)


def test_a_file_that_changes_or_fails_while_it_is_read_is_noticed(
    cohort: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(io.BytesIO):
        def seek(self, *_: object) -> int:
            raise OSError(errno.EIO, "Input/output error")

    with cohort.open("rb") as file:
        source = Fileset(file, str(cohort))
        monkeypatch.setattr(source, "_file", io.BytesIO(BED[:4]))
        with pytest.raises(InputError, match="has become shorter"):
            source.column("rs1")
        monkeypatch.setattr(source, "_file", Broken())
        with pytest.raises(InputError, match="cannot be read \\(Input/output error\\)"):
            source.column("rs1")
    cohort.with_suffix(".bim").unlink()
    cohort.with_suffix(".bim").mkdir()
    with pytest.raises(InputError, match=r"c.bim: cannot be read"):
        open_table(cohort, [A, B])


def test_types_and_columns(cohort: Path) -> None:
    with cohort.open("rb") as file:
        source = Fileset(file, str(cohort), ["FID"])
        assert source.column_types(["FID", "rs1"]) == [pa.string(), pa.int8()]
        assert source.column("rs1").to_pylist() == RS1
        assert source.column("rs2").to_pylist() == RS2
        assert source.column("FID").to_pylist() == [f"f{i}" for i in range(5)]


def test_a_draft_declares_all_variants_alike(cohort: Path) -> None:
    seen: list[float | None] = []
    text = draft_schema(cohort, progress=seen.append)
    assert 'names = ["rs1", "rs2"]' in text
    assert 'missing = "category:NA"' in text
    assert seen == [0.5, 1.0]
    cohort.write_bytes(BED.replace(bytes([BED[3]]), b"\0"))
    assert 'missing = "error"' in draft_schema(cohort)
