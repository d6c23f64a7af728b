"""A PLINK fileset as a geneticist runs it: draft, share, inspect, estimate, randomize."""

import numpy as np

from deniable.tables.plink import packed


def test_a_fileset_from_draft_to_estimates(deniable, tmp_path):
    genotypes = np.random.default_rng(1).integers(0, 4, (3, 400)).astype(np.uint8)
    body = b"".join(packed(row).tobytes() for row in genotypes)
    (tmp_path / "cohort.bed").write_bytes(b"\x6c\x1b\x01" + body)
    (tmp_path / "cohort.bim").write_text("".join(f"1 rs{i} 0 {i} A G\n" for i in (1, 2, 3)))
    (tmp_path / "cohort.fam").write_text("".join(f"f p{i} 0 0 1 2\n" for i in range(400)))
    drafted = deniable("schema", "init", "cohort.bed", "--output", "s.toml")
    assert drafted.status == 0
    assert "the first allele of the .bim file" in drafted.err
    words = ("cohort.bed", "--schema", "s.toml", "--epsilon", 6)
    shared = deniable("share", *words, "--output", "release", "--shuffle")
    assert shared.status == 0, shared.err
    assert "People are numbered in the .fam file" in shared.out
    assert (tmp_path / "release" / "data.fam").read_text().startswith("1 1 0 0 0 -9\n")
    assert "Verified" in deniable("inspect", "release").out
    table = deniable("estimate", "release", "--of", "rs1,rs3", "--json").json
    assert len(table["cells"]) == 16
    assert deniable("estimate", "mean", "release", "--of", "rs2").status == 0
    done = deniable("randomize", "cohort.bed", "--mechanism", "release", "--output", "out.bed")
    assert (done.status, (tmp_path / "out.bed").stat().st_size) == (0, 303)
    named = (tmp_path / "s.toml").read_text().replace('# keep = ["FID", "IID"]', 'keep = ["IID"]')
    (tmp_path / "named.toml").write_text(named)
    words = ("cohort.bed", "--schema", "named.toml", "--epsilon", 6)
    shared = deniable("share", *words, "--output", "named")
    assert "Columns on people in the .fam file: IID" in shared.out
    assert (tmp_path / "named" / "data.fam").read_text().startswith("p0 p0 0 0 0 -9\n")
