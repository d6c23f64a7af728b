"""Files of SPSS, Stata and SAS against R's haven, an implementation of its own by other hands."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest

from deniable.tables import open_table
from deniable.tables.reading import column_names

ROOT = Path(__file__).parents[2]
HAVEN = Path("/usr/lib/R/site-library/haven")
LOUD = "R'S HAVEN IS MISSING, SO THAT SURVEY FILES ARE NOT TRIED IN R: apt-get install r-cran-haven"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("Rscript") and HAVEN.is_dir()), reason=LOUD),
]


def run_r(script, folder):
    done = subprocess.run(
        ["Rscript", "--vanilla", "-e", script],
        cwd=folder,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def columns(path):
    names = column_names(path)
    with open_table(path, [], names) as reader:
        batches = [batch.kept for batch in reader]
    return {name: pa.chunked_array([b[name] for b in batches]).to_pylist() for name in names}


@pytest.mark.parametrize("name", ["iris.sav", "iris.dta", "iris.sas7bdat"])
def test_files_that_haven_ships_are_read(name):
    found = columns(HAVEN / "examples" / name)
    length, species = next(iter(found)), list(found)[-1]
    assert found[length][:3] == pytest.approx([5.1, 4.9, 4.7], abs=1e-6)
    assert len(found[species]) == 150
    assert len(set(found[species])) == 3


def test_what_haven_writes_is_read_with_every_kind_of_missing(tmp_path):
    run_r(
        "library(haven);"
        "y <- labelled(c(1, 2, tagged_na('a'), tagged_na('z'), NA),"
        "  c(no = 1, yes = 2, refused = tagged_na('a'), lost = tagged_na('z')), 'Smoker?');"
        "write_dta(data.frame(y = y, n = c(1.5, NA, 2, 3, 4),"
        "  d = as.Date('1969-12-31') + 0:4, s = c('Köln', '', 'b', 'c', 'd')), 't.dta');"
        "x <- labelled_spss(c(1, 2, -9, 97, NA), c(no = 1, yes = 2, refused = -9),"
        "  na_values = -9, na_range = c(96, 99), label = 'Smoker?');"
        "write_sav(data.frame(x = x, n = c(1.5, NA, 2, 3, 4),"
        "  d = as.Date('1969-12-31') + 0:4, s = c('Köln', '', 'b', 'c', 'd')), 't.sav')",
        tmp_path,
    )
    stata, spss = columns(tmp_path / "t.dta"), columns(tmp_path / "t.sav")
    assert stata["y"] == ["1", "2", ".a", ".z", None]
    assert spss["x"] == ["1", "2", "-9", "97", None]
    for found in (stata, spss):
        assert found["n"] == [1.5, None, 2.0, 3.0, 4.0]
        assert str(found["d"][0]) == "1969-12-31"
        assert found["s"] == ["Köln", None, "b", "c", "d"]
    with open_table(tmp_path / "t.dta", [], ["y"], other_columns="drop") as reader:
        entry = reader.source.codebook["y"]
    assert entry.missing == {".a": "refused", ".z": "lost"}
    assert entry.labels == {"1": "no", "2": "yes"}
    assert entry.question == "Smoker?"
    with open_table(tmp_path / "t.sav", [], ["x"], other_columns="drop") as reader:
        entry = reader.source.codebook["x"]
    assert entry.labels == {"1": "no", "2": "yes"}
    assert entry.missing == {"-9": "refused"}
    assert entry.is_missing("97")


def test_a_release_goes_through_r_and_comes_back(deniable, tmp_path):
    rng = np.random.default_rng(2)
    data = pd.DataFrame(
        {"sex": rng.integers(1, 3, 400).astype(float), "happy": rng.choice([1.0, 2, -9], 400)}
    )
    pyreadstat.write_sav(
        data,
        tmp_path / "study.sav",
        column_labels={"sex": "Geschlecht?"},
        variable_value_labels={
            "sex": {1: "Männlich", 2: "Weiblich", 3: "nobody"},
            "happy": {1: "not", 2: "very", -9: "refused"},
        },
        missing_ranges={"happy": [-9]},
    )
    deniable("schema", "init", "study.sav", "--output", "s.toml")
    words = ("study.sav", "--schema", "s.toml", "--epsilon", 4, "--output", "release")
    shared = deniable("share", *words, "--as", "sav", "--as", "dta")
    assert shared.status == 0, shared.err
    said = run_r(
        "library(haven); x <- read_sav('release/data.sav', user_na = TRUE);"
        "z <- read_dta('release/data.dta');"
        "stopifnot(all(as.numeric(x$sex) == as.numeric(z$sex)));"
        "cat(attr(x$sex, 'label'), '|', names(attr(z$sex, 'labels')), '|',"
        "  attr(x$happy, 'na_values'), '|', table(x$happy));"
        "write_sav(x, 'back.sav'); write_dta(z, 'back.dta')",
        tmp_path,
    )
    question, labels, missing, counts = said.split(" | ")
    assert question == "Geschlecht?"
    assert labels == "Männlich Weiblich nobody"
    assert missing == "-9"
    assert sum(map(int, counts.split())) == 400
    expected = deniable("estimate", "release", "--of", "sex,happy", "--json").json
    for name in ("back.sav", "back.dta"):
        known = (name, "--mechanism", "release", "--of", "sex,happy", "--json")
        assert deniable("estimate", *known).json == expected


def test_the_page_for_r_runs_as_it_stands(deniable, tmp_path):
    page = (ROOT / "docs" / "howto" / "r.md").read_text()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (command,) = re.findall(r"^```sh\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL)
    assert deniable(*command.split()[1:]).status == 0
    script = "\n".join(re.findall(r"^```r\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    (tmp_path / "page.R").write_text(script)
    said = run_r("source('page.R', echo = TRUE)", tmp_path)
    assert "Randomized values" in said
    assert "white" in said
