"""deniable estimate trend, agreement and leverage, plan --trend: words in, text out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable.tables.plink import packed

ALLELES = np.array([3, 2, 0], dtype=np.uint8)
"""The two bits of none, one and two of the first allele."""


@pytest.fixture
def cohort(tmp_path: Path) -> Path:
    """A fileset of 400 people and three SNPs; of the first SNP cases have more alleles."""
    random = np.random.default_rng(1)
    copies = random.binomial(2, 0.3, (3, 400))
    cases = random.random(400) < 0.2 + 0.25 * copies[0]
    body = b"".join(packed(ALLELES[row]).tobytes() for row in copies)
    (tmp_path / "cohort.bed").write_bytes(b"\x6c\x1b\x01" + body)
    (tmp_path / "cohort.bim").write_text("".join(f"1 rs{i} 0 {i} A G\n" for i in (1, 2, 3)))
    fam = "".join(f"f p{i} 0 0 1 {2 if case else 1}\n" for i, case in enumerate(cases))
    (tmp_path / "cohort.fam").write_text(fam)
    return tmp_path


def shared(deniable: Any, cohort: Path, *words: str, coding: str = "additive") -> None:
    drafted = deniable("schema", "init", "cohort.bed", "--coding", coding, "--output", "s.toml")
    assert drafted.status == 0, drafted.err
    text = (cohort / "s.toml").read_text()
    (cohort / "s.toml").write_text(text.replace('# keep = ["FID", "IID"]', 'keep = ["PHENO1"]'))
    done = deniable(
        *("share", "cohort.bed", "--schema", "s.toml", "--epsilon", 9, "--output", "release"),
        *("--insecure-seed", 3, *words),
    )
    assert done.status == 0, done.err


def test_every_snp_of_a_fileset_is_tested_against_a_status(deniable: Any, cohort: Path) -> None:
    shared(deniable, cohort)
    assert (cohort / "release" / "data.bed").exists()
    words = ("estimate", "trend", "release", "--status", "PHENO1")
    done = deniable(*words, "--output", "trends.csv")
    assert done.status == 0, done.err
    assert "Trend against PHENO1: mean score of '2' less that of '1'; 400 rows" in done.out
    assert "FDR (BH)" in done.out
    lines = (cohort / "trends.csv").read_text().splitlines()
    assert [line.split(",")[0].strip('"') for line in lines] == ["attribute", "rs1", "rs2", "rs3"]
    assert deniable(*words, "--output", "trends.csv").status == 2
    assert deniable(*words, "--output", "trends.csv", "--force").status == 0
    plain = deniable(*words, "--json").json
    first = plain["tests"][0]
    assert first["p_value"] < 1e-4
    assert first["p_bonferroni"] == pytest.approx(3 * first["p_value"])
    turned = deniable(
        *("estimate", "trend", "release", "--of", "rs1", "--status", "PHENO1", "--compare", "1,2"),
        *("--scores", "0,1,2", "--json"),
    ).json
    assert turned["tests"][0]["z"] == pytest.approx(-first["z"])


def test_the_snp_most_associated_is_shown_with_its_probability(deniable: Any, cohort: Path) -> None:
    shared(deniable, cohort)
    words = ("estimate", "trend", "release", "--status", "PHENO1", "--top", "1")
    done = deniable(*words)
    assert done.status == 0, done.err
    assert "in top 1" in done.out
    assert "rs1" in done.out
    assert "rs2" not in done.out
    assert "The 1 shown are the 1 most associated of 3 with probability" in done.out
    (row,) = deniable(*words, "--json").json["tests"]
    assert row["probability_of_top"] > 0.9
    assert row["p_bonferroni"] == pytest.approx(3 * row["p_value"])


def test_the_pairs_most_associated_are_shown(deniable: Any, cohort: Path) -> None:
    shared(deniable, cohort)
    done = deniable("estimate", "trend", "release", "--top", "2")
    assert done.status == 0, done.err
    assert "Trend between attributes: mean score per unit of other; 400 rows" in done.out
    assert "The 2 shown are the 2 most associated of 3 with probability" in done.out


def test_carriers_are_two_categories_and_come_out_as_a_table(deniable: Any, cohort: Path) -> None:
    shared(deniable, cohort, "--method", "balanced", coding="carrier")
    assert (cohort / "release" / "data.parquet").exists()
    words = ("estimate", "trend", "release", "--of", "rs1", "--status", "PHENO1", "--json")
    plain = deniable(*words).json
    assert plain["tests"][0]["difference"] > 0
    cells = deniable("estimate", "release", "--of", "rs1", "--json").json["cells"]
    assert [cell["values"] for cell in cells] == [["[0,1)"], ["[1,2]"]]
    (cohort / "t.csv").write_text("a,b\n1,2\n2,1\n")
    refused = deniable("schema", "init", "t.csv", "--coding", "carrier")
    assert refused.status == 2
    assert "a coding needs the genotypes of a PLINK .bed" in refused.err


def test_forms_are_compared_and_liars_measured(deniable: Any, cohort: Path) -> None:
    shared(deniable, cohort, "--method", "forms", "--pairs", "0.5", coding="carrier")
    done = deniable("estimate", "agreement", "release")
    assert done.status == 0, done.err
    assert "Agreement of all forms with one population: 400 rows" in done.out
    assert "cannot find a wrong attenuation" in done.out
    one = deniable("estimate", "leverage", "release", "--of", "rs1", "--json").json
    assert [share["rs1"] for share in one["shares"]] == ["[0,1)", "[1,2]"]
    assert one["shares"][0]["range"] >= one["least_range"] >= 0.01
    every = deniable("estimate", "leverage", "release")
    assert every.status == 0, every.err
    assert every.out.count("one liar in a hundred can move them") == 3
    assert every.out.count("under every mechanism with this ε") == 1
    many = deniable("estimate", "leverage", "release", "--json").json
    assert len(many["tables"]) == 3


@pytest.mark.slow
def test_of_many_tests_those_with_the_smallest_p_values_are_shown(
    deniable: Any, tmp_path: Path
) -> None:
    names = ",".join(f"s{i}" for i in range(50))
    random = np.random.default_rng(3)
    rows = [",".join(map(str, random.integers(0, 2, 51))) for _ in range(80)]
    (tmp_path / "t.csv").write_text("\n".join([f"{names},case", *rows]) + "\n")
    listed = ", ".join(f'"s{i}"' for i in range(50))
    (tmp_path / "s.toml").write_text(
        f'keep = ["case"]\n[[attribute]]\nnames = [{listed}]\ncategories = ["0", "1"]\n'
    )
    words = ("share", "t.csv", "--schema", "s.toml", "--epsilon", 90, "--method", "kronecker")
    assert deniable(*words, "--output", "release", "--insecure-seed", 3).status == 0
    done = deniable("estimate", "trend", "release", "--status", "case")
    assert "… 10 with larger p-values (--json or --output has all)." in done.out


@pytest.mark.slow
def test_a_study_of_genotypes_is_planned(deniable: Any) -> None:
    words = ("plan", "--trend", "--people", 100_000, "--snps", 10, "--epsilon", 5)
    done = deniable(*words, "--allele", 0.3)
    assert done.status == 0, done.err
    assert "Smallest odds ratio per allele found with 80 % power: 1.07" in done.out
    assert "a genome-wide scan under one record budget does not" in done.out
    plain = deniable(*words, "--coding", "additive", "--cases", 0.2, "--json").json
    assert plain["odds_ratio"] > 1.07
    assert (plain["coding"], plain["cases"]) == ("additive", 0.2)
    few = deniable("plan", "--trend", "--people", 20, "--snps", 10, "--epsilon", 1)
    assert "power: none (without privacy" in few.out
    most = ("plan", "--trend", "--snps", 10, "--top", 2, "--odds-ratio", 2)
    most = (*most, "--method", "kronecker")
    plain = deniable(*most, "--epsilon", 5, "--json").json
    done = deniable(*most, "--epsilon", 5)
    assert f"rank the right 2 first with probability 0.9: {plain['people']:,}." in done.out
    done = deniable(*most, "--people", plain["people"])
    assert "Smallest ε to rank the right 2 first with probability 0.9: " in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("estimate", "independence", "r"), "--of"),
        (("estimate", "trend", "r", "--compare", "1,2"), "name the status"),
        (("estimate", "trend", "r", "--of", "a,b", "--status", "b"), "'b' is the status and is"),
        (("estimate", "trend", "r", "--status", "b", "--compare", "1"), "two values of the status"),
        (("plan", "--trend", "--people", "5"), "two of --people, --epsilon and --odds-ratio"),
        (("plan", "--trend", "--rows", "5"), "are for shares"),
        (("plan", "--trend", "--pairs", "0.5"), "leave the rest out"),
        (("plan", "--categories", "2", "--snps", "5"), "need --trend"),
    ],
)
def test_what_does_not_go_together_is_said(
    deniable: Any, words: tuple[str, ...], said: str
) -> None:
    done = deniable(*words)
    assert done.status == 2
    assert said in done.err
