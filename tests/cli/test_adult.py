"""The whole way on UCI Adult: 48,000 records, ten attributes, ``?`` as a category.

The shipped excerpt, sixteen times.
"""

import csv
from collections import Counter
from pathlib import Path

import pytest

ADULT = Path(__file__).parents[2] / "examples" / "adult.data"
COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country", "income",
]  # fmt: skip
CATEGORICAL = [
    "workclass", "education", "marital-status", "occupation", "relationship", "race", "sex",
    "native-country", "income",
]  # fmt: skip


def records():
    with ADULT.open(newline="") as file:
        fields = list(csv.reader(file, skipinitialspace=True))
    return [dict(zip(COLUMNS, each, strict=True)) for each in fields] * 16


# The default divides the total and caps what is learnt by linear programs of 1,024 patterns each.
@pytest.mark.slow
@pytest.mark.parametrize("method", ["optimal", pytest.param("balanced", id="default")])
def test_adult_is_released_and_its_tables_recovered(deniable, tmp_path, method):
    rows = records()
    assert len(rows) == 48_000
    domains = {name: sorted({row[name] for row in rows}) for name in CATEGORICAL}
    assert "?" in domains["workclass"]
    with (tmp_path / "adult.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    text = "".join(
        f'[[attribute]]\nname = "{name}"\ncategories = {domain!r}\n'
        for name, domain in domains.items()
    )
    text += '[[attribute]]\nname = "hours-per-week"\nbins = [0, 20, 35, 41, 61, 99]\n'
    (tmp_path / "adult.toml").write_text(text)
    done = deniable(
        "share", "adult.csv", "--schema", "adult.toml", "--epsilon", "8", "--drop-other-columns",
        "--output", "r", "--json", *(["--method", method] if method != "balanced" else []),
    )  # fmt: skip
    assert done.status == 0, done.err
    assert done.json["release"]["rows"] == 48_000
    assert done.json["mechanism"]["method"] == method
    assert done.json["guarantee"]["epsilon"] <= 8
    assert set(done.json["release"]["columns"]) == {*CATEGORICAL, "hours-per-week"}
    for names in (["workclass"], ["sex", "income"]):
        plain = deniable("estimate", "r", "--of", ",".join(names), "--json").json
        counts = Counter(tuple(row[name] for name in names) for row in rows)
        for cell in plain["cells"]:
            true = counts[tuple(cell["values"])] / len(rows)
            # Seven standard errors: fails by chance less than once in ten billion runs.
            assert abs(cell["estimate"] - true) <= 7 * cell["standard_error"]
