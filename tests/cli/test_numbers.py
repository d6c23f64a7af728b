"""Numbers that commands print: no exponents, nouns in their number, no error above 100 points."""

import re

import pytest

FAULTS = {
    "an exponent": re.compile(r"(?<![\w.])\d+(?:\.\d+)?e[+-]?\d+(?!\w)"),
    "a plural after 1": re.compile(
        r"(?<![\d.,])1 (?:rows|attributes|categories|columns|cells|records|tables|parts|units|"
        r"copies|people|forms|pairs|levels|releases|questions)\b"
    ),
}
_ERROR = re.compile(r"\d[\d,]*(?:\.\d+)?(?= %)")
_ERROR_TEXT = re.compile(r"± ([\d,.]*\d) (?:%|points)")


def faults(text: str) -> list[str]:
    """Return the faults of a printed text: in sentences, and in columns of standard errors."""
    found = [f"{what}: {m[0]}" for what, one in FAULTS.items() for m in one.finditer(text)]
    columns: list[int] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split("[│┃]", line)]
        if line.startswith("┃"):
            columns = [i for i, cell in enumerate(cells) if cell.endswith("standard error")]
        elif line.startswith("│"):
            found += [
                f"an error: {cells[i]}"
                for i in columns
                if (error := _ERROR.match(cells[i])) and _value(error[0]) > 100
            ]
        found += [f"an error: {m[0]}" for m in _ERROR_TEXT.finditer(line) if _value(m[1]) > 100]
    return found


def _value(number: str) -> float:
    return float(number.replace(",", ""))


@pytest.mark.parametrize(
    "planted",
    [
        "Variance of a share, for one row: 2.5e+04.",
        "p-value 3e-80",
        "1 rows, of these rows",
        "1 categories",
        "± 140 points",
        "┃ sex ┃ standard error ┃\n│ f │ 1,234.50 % │",
    ],
)
def test_a_planted_fault_is_found(planted):
    assert faults(planted)


def test_a_number_without_fault_is_passed():
    assert not faults(
        "0.00002 of 1 row, 11 rows, 2.1 rows, ± > 100 points; 0.75e\n"
        "┃ sex ┃ standard error ┃\n│ f │ > 100 % │"
    )


WEAK = "--attribute-epsilon 0.1,0.1,0.1 --method kronecker"

COMMANDS = f"""
design --schema people.toml {WEAK} --rows 1
design --categories 2 --epsilon 0.001 --method kronecker --rows 1
design --schema people.toml --attenuation 0.00002
design --schema people.toml {WEAK} --rows 1 --tables sex --tables sex,age --within 2pt
plan --schema people.toml --rows 1000000 --within 3pt
plan --categories 2 --rows 100000 --epsilon 1
share people.csv --schema people.toml {WEAK} --insecure-seed 1 --output weak
share one.csv --schema people.toml {WEAK} --insecure-seed 1 --output one
share one.csv --schema people.toml {WEAK} --output checked --check
share one.csv two.csv --schema people.toml {WEAK} --output parts --only-begin
share people.csv --schema people.toml --epsilon 30 --ledger l --output strong
inspect weak
inspect one
estimate weak --of sex
estimate weak --of sex,age
estimate mean strong --of age --scores middle
estimate strong --of sex,age
estimate compare strong --of age --column sex --values f,m
estimate one --of sex
estimate weak --of age,blood --method em
estimate independence strong --of sex,age
estimate independence weak --of sex,age
estimate independence weak --of sex,blood
estimate model strong sex~age
ledger show l
ledger check l
frontier --distribution uniform,3 --delta 0.9 --methods warner --records 1 --output front
frontier pick front --privacy 0.3 --output picked.json
synthesize strong --copies 5 --output synthetic
audit weak/record.json
"""


@pytest.mark.slow
def test_what_commands_print_has_no_such_number(deniable, people, no_plot):
    header, *rows = (people / "people.csv").read_text().splitlines()
    (people / "people.csv").write_text("\n".join([header, *rows * 40]) + "\n")
    for name in ("one.csv", "two.csv"):
        (people / name).write_text(f"{header}\n{rows[0]}\n")
    deniable("ledger", "budget", "l", "--epsilon", "1000000")
    found, refused = {}, {}
    for line in COMMANDS.strip().splitlines():
        words = line.split()
        done = deniable(*words)
        if done.status:
            refused[line] = done.err
        if wrong := faults(done.out + done.err):
            found[line] = wrong
    assert (found, refused) == ({}, {})
