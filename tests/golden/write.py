"""Write the golden files of this version's formats: `python tests/golden/write.py FOLDER`.

What it writes has to stay readable. A folder of golden files, named after the version of the
formats, holds a mechanism per family of laws, a release of every kind, a study and
`answers/`: what the commands `inspect` and `estimate` printed of each when it was written
(tests/cli/test_golden_records.py asks them again).

Run this when the version of a format is raised, or for a new family of laws; never to make a test
pass: a golden file that is no longer read, or read differently, is the defect that the test is for.
Where score intervals became longer on purpose, and more estimates were marked as uncertain, these
numbers alone were written anew in all answers.
"""

import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

from deniable.cli import main

SCHEMA = """
title = "Golden"
keep = ["region"]
[[attribute]]
name = "sex"
categories = ["f", "m"]
scores = [0, 1]
[[attribute]]
name = "age"
bins = [0, 30, 60, 120]
[[attribute]]
name = "blood"
categories = ["A", "B", "AB", "0"]
missing = "category:NA"
[[attribute]]
name = "region"
categories = ["north", "south"]
"""
MERGED = """
[[attribute]]
name = "sex+blood"
[[attribute.part]]
name = "sex"
categories = ["f", "m"]
[[attribute.part]]
name = "blood"
categories = ["A", "B", "AB", "0"]
missing = "category:NA"
[[attribute]]
name = "age"
bins = [0, 30, 60, 120]
"""
FILES = {
    "schema.toml": SCHEMA,
    "merged.toml": MERGED,
    "zeros.json": "[[0.7, 0.2, 0.1], [0.1, 0.9, 0], [0.25, 0.25, 0.5]]",
    "mixing.json": "[[0.8, 0.15, 0.05], [0.15, 0.8, 0.05], [0.05, 0.05, 0.9]]",
    "prior.json": "[0.5, 0.3, 0.2]",
    "strata.json": '{"south": {"attenuation": 0.5}}',
}
PREPARE = ("frontier --prior prior.json --delta 0.8 --privacy 0.3 --methods bound --output front",)

MANY = ",".join(["3"] * 21)
SPREAD = "3.9,1.8,0.4,0.3,4.9,5.5,3.7,4.4,3.4,5.6,4.9,0.2,5.2,0.4,4.4,1.2,5.2,3.3,1.9,2.7,0.4"
ALIKE = ",".join(["3"] * 22)
ONES = ",".join(["1"] * 22)
TWELVE = "1,1.1,1.2,1,1.3,1.4,1,1,0.5,1,1.2,1"
SEVENTEEN = f"{TWELVE},1,1,1,1,1"

MECHANISMS = {
    "product": "design --categories 5,3,2 --attribute-epsilon 1,2,0.5 --method kronecker",
    "pattern-table": "design --categories 5,3,2 --attribute-epsilon 1,2,0.5 --method lp "
    "--given-rest 1.5x --pair-floor 0.5",
    "score-table": "design --categories 16,7,5,3,2 --epsilon 3",
    "single-change-mixture": "design --categories 5,3,4 --attribute-epsilon 2,1,0.5 "
    "--method heuristic",
    "matrix": "design --schema schema.toml --matrix age=zeros.json "
    "--attribute-epsilon sex=1,blood=1.5 --method optimal",
    "bistochastic-matrix": "design --schema schema.toml --attenuation 0.6 --matrix age=mixing.json",
    "designed-matrix": "frontier pick front --privacy 0.3 --name age --schema schema.toml",
    "gated-sum-vote": f"design --categories {ALIKE} --attribute-epsilon {ONES} --method optimal",
    "gated-sum-ramp": "design --categories 2,3,5,4,2,3,4,5,2,3,2,3,2,2,2,2,2 --attribute-epsilon "
    f"{SEVENTEEN} --method balanced",
    "balanced-table": "design --categories 2,3,5,4,2,3,4,5,2,3,2,3 --attribute-epsilon "
    f"{TWELVE} --method balanced",
    "forms": "design --categories 5,3,2 --epsilon 2 --method forms",
    "forms-broad": "design --categories 16,3,2 --epsilon 1 --method forms",
    "forms-counted": "design --categories 2,2,2,2,2,2,2,2,2,2,2,2,2,2 --epsilon 9 --method forms",
    "blended-votes": f"design --categories {MANY} --attribute-epsilon {SPREAD} --method optimal",
}

RELEASES = {
    "share": "share people.csv --schema schema.toml --epsilon 4 --shuffle",
    "pram": "pram people.csv --schema schema.toml --attenuation 0.6",
    "pram-invariant": "pram people.csv --schema schema.toml --attenuation 0.5 --invariant "
    "--alpha 0.9",
    "pram-strata": "pram people.csv --schema schema.toml --attenuation 0.7 --by region "
    "--per-stratum strata.json",
    "designed-matrix-share": "share people.csv --schema schema.toml "
    "--matrix age=designed-matrix.json --attribute-epsilon sex=1,blood=1 --method kronecker",
    "forms-share": "share people.csv --schema schema.toml --epsilon 3 --method forms",
    "parts-share": "share people.csv more.csv --schema schema.toml --attribute-epsilon "
    "sex=1,age=1,blood=1 --method kronecker",
    "merged-share": "share people.csv --schema merged.toml --epsilon 5 --drop-other-columns",
    "forms-broad-share": "share people.csv --schema schema.toml --epsilon 0.5 --method forms",
}

FRONTIERS = {
    "frontier": "frontier --prior prior.json --delta 0.8 --privacy 0.3 --methods warner,bound",
}

STUDIES = {
    "study": "collect open --mechanism gated-sum-ramp.json --questionnaire questionnaire.toml",
}

ASK_RELEASE = (
    "inspect {} --json",
    "estimate {} --of age --json",
    "estimate {} --of sex,blood --target population --json",
    "estimate {} --of blood --method em --json",
)


def questions(name: str, names: list[str]) -> list[str]:
    """Return what is asked of a golden file."""
    if name in RELEASES:
        return [question.format(name) for question in ASK_RELEASE]
    some = f" --subset {names[0]}" + (f",{names[-1]}" if len(names) > 1 else "")
    pair = (
        f" --covariance {names[0]},{names[1]}"
        if len(names) > 1 and name not in ("matrix", "forms", "forms-broad", "forms-counted")
        else ""
    )
    return [f"inspect {name}.json --json{some}{pair}"]


def questionnaire(schema: list[dict[str, str]]) -> str:
    """Return questions about all attributes of a schema."""
    head = 'title = "Golden"\npurpose = "p"\ncontact = "c"\ncloses = 9999-12-30\n'
    asked = [f'[[question]]\nattribute = "{a["name"]}"\ntext = "?"\n' for a in schema]
    return "".join([head, 'respondents = "open"\nconsent = ["It is up to you."]\n', *asked])


def people(n: int = 240) -> str:
    """Return a made-up table in which everything goes together a little."""
    rows = ["sex,age,blood,region"]
    for i in range(n):
        sex = "fm"[i * 7 % 5 % 2]
        age = (i * 37 + (20 if sex == "m" else 0)) % 110
        blood = ["A", "0", "A", "B", "AB", "0", ""][(i * i + age) % 7]
        rows.append(f"{sex},{age},{blood},{'north' if (i + age) % 3 else 'south'}")
    return "\n".join(rows) + "\n"


def run(line: str) -> str:
    """Run a command in this process and return what it prints."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    with patch.object(sys, "argv", ["deniable", *line.split()]), contextlib.redirect_stdout(out):
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"deniable {line} ended with {end.code}") from end
    return out.buffer.getvalue().decode()


FAMILIES = {
    "balanced-table": "pattern-table",
    "bistochastic-matrix": "matrix",
    "designed-matrix": "designed matrix",
    "forms-broad": "forms",
    "forms-counted": "forms",
    "gated-sum-vote": "gated-sum",
    "gated-sum-ramp": "gated-sum",
}
"""Of the names that are none of a family."""


def check_families(folder: Path) -> None:
    """Refuse to end with a mechanism that is of another family than its name says."""
    for name in MECHANISMS:
        plain = json.loads((folder / f"{name}.json").read_text())
        found = {block["law"]["family"] for block in plain["blocks"]}
        if FAMILIES.get(name, name) not in found:
            raise RuntimeError(f"{name}.json holds {sorted(found)}; ask for other levels")


def write(folder: Path) -> None:
    """Write all golden files into a folder that does not exist yet."""
    for place in (folder, folder / "answers"):
        place.mkdir()
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        Path("people.csv").write_text(people())
        Path("more.csv").write_text(people(100))
        for name, text in FILES.items():
            Path(name).write_text(text)
        for line in PREPARE:
            run(line)
        for name, line in MECHANISMS.items():
            run(f"{line} --output {name}.json")
            (folder / f"{name}.json").write_bytes(Path(f"{name}.json").read_bytes())
        check_families(folder)
        for seed, (name, line) in enumerate(RELEASES.items()):
            run(f"{line} --insecure-seed {seed} --output {name}")
            shutil.copytree(
                name, folder / name, ignore=shutil.ignore_patterns("codebook.csv", "report.html")
            )
        for name, line in FRONTIERS.items():
            run(f"{line} --output {name}")
            pictures = shutil.ignore_patterns("*.png", "*.svg", "*.csv")
            shutil.copytree(name, folder / name, ignore=pictures)
        for name, line in STUDIES.items():
            record = json.loads(Path(line.split()[3]).read_text())
            Path("questionnaire.toml").write_text(questionnaire(record["schema"]["attribute"]))
            run(f"{line} --output {name}")
            (folder / name).mkdir()
            shutil.copy(Path(name, "study.json"), folder / name)
    with contextlib.chdir(folder):
        for name in (*MECHANISMS, *RELEASES):
            record = Path(name) / "record.json" if name in RELEASES else Path(f"{name}.json")
            names = [a["name"] for a in json.loads(record.read_text()).get("attributes", [])]
            answers = {line: json.loads(run(line)) for line in questions(name, names)}
            text = json.dumps(answers, indent=1, ensure_ascii=False) + "\n"
            Path("answers", f"{name}.json").write_text(text)


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "100")
    write(Path(sys.argv[1]).resolve())
